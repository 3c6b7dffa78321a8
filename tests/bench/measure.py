"""Measuring whole processes on Linux: wall time, memory of a process tree, commands in turn; tables and records."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from statistics import median

import msgspec

ROOT = Path(__file__).parents[2]
WORK = ROOT / ".bench"
RAGCLI = Path(sys.executable).parent / "ragcli"
APPS = Path(__file__).parent / "apps"
MIB = 1024 * 1024
NO_BYTECODE = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")  # a developer may have set them


class Built(msgspec.Struct, frozen=True):
    """What a build cost: wall seconds; the most memory that its processes held at once, in bytes."""

    seconds: float
    peak: int


def tree(pid: int) -> list[int]:
    """The process and all that it started, as far as they still run."""
    found = [pid]
    for parent in found:
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            found += [int(child) for child in children.read_text().split()]
    return found


def held(pid: int) -> int:
    """The bytes that the process tree holds now; what processes share counts once (Pss)."""
    total = 0
    for member in tree(pid):
        for line in Path(f"/proc/{member}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                total += int(line.split()[1]) * 1024
    return total


class Sampler(threading.Thread):
    """Watches the memory of a process tree, 50 times a second, until it is gone."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.pid, self.peak, self.ended = pid, 0, threading.Event()

    def run(self) -> None:
        while not self.ended.wait(0.02):
            try:
                self.peak = max(self.peak, held(self.pid))
            except (FileNotFoundError, ProcessLookupError):  # a process ended between two reads
                continue


@cache
def environment() -> Mapping[str, str]:
    """What measured commands run in: ragcli has its bytecode, as an installed tool has it, and may keep it."""
    kept = {name: value for name, value in os.environ.items() if name not in NO_BYTECODE}
    subprocess.run([sys.executable, "-m", "compileall", "-q", "ragcli"], cwd=ROOT, env=kept, check=True)
    return kept


def build(command: Sequence[str]) -> Built:
    """Run a build to its end. Raises: RuntimeError when it fails, with the end of what it said."""
    env = environment()
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=ROOT, env=env
    )
    sampler = Sampler(process.pid)
    sampler.start()
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stderr.close()
    sampler.ended.set()
    sampler.join()
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)}: exit {process.returncode}: {said[-600:].decode(errors='replace')}")
    return Built(seconds, max(sampler.peak, usage.ru_maxrss * 1024))


def seconds_of(command: Sequence[str], cwd: Path = ROOT) -> float:
    """Wall seconds of a whole process. Raises: RuntimeError when it fails."""
    env = environment()
    start = time.perf_counter()
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, cwd=cwd, env=env, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(command)}: exit {done.returncode}: {done.stderr[-600:].decode(errors='replace')}"
        )
    return seconds


def in_turn(rounds: Iterable[Mapping[str, Sequence[str]]], cwd: Path = ROOT) -> dict[str, list[float]]:
    """Run the commands of each round one after the other: what slows the machine slows all. Milliseconds by name."""
    times: dict[str, list[float]] = {}
    for commands in rounds:
        for name, command in commands.items():
            times.setdefault(name, []).append(seconds_of(command, cwd) * 1000)
    return times


def ratio(times: Mapping[str, Sequence[float]], name: str, peer: str) -> float:
    """The median over the rounds of `name`'s time over its peer's in the same round."""
    return median(ours / theirs for ours, theirs in zip(times[name], times[peer], strict=True))


def size_of(path: Path) -> int:
    """The bytes of a file, or of all files of a folder."""
    return path.stat().st_size if path.is_file() else sum(p.stat().st_size for p in path.rglob("*") if p.is_file())


def table(title: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Print rows of the same keys with their columns aligned."""
    print(f"\n{title}")
    if not rows:
        return
    lines = [list(rows[0]), *([shown(value) for value in row.values()] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def shown(value: object) -> str:
    """A cell: numbers with three significant digits or none after the point."""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def record(name: str, rows: Iterable[Mapping[str, object]]) -> None:
    """Append the rows to `.bench/NAME.jsonl`, each with the machine and the versions that it was measured on."""
    WORK.mkdir(exist_ok=True)
    here = {"cpus": os.cpu_count(), "python": platform.python_version(), "versions": versions(), "at": int(time.time())}
    with (WORK / f"{name}.jsonl").open("a") as file:
        file.writelines(json.dumps({**row, **here}) + "\n" for row in rows)


def versions() -> dict[str, str]:
    """The versions of what is compared, as far as it is installed."""
    names = ("ragcli", "typer", "tantivy", "bm25s", "numpy", "ir-measures")
    installed = {dist.metadata["Name"].lower(): dist.version for dist in metadata.distributions()}
    return {name: installed[name] for name in names if name in installed}
