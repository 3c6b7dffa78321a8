"""Keyword search and its build against tantivy-py, SQLite FTS5 and bm25s: `make bench-lexical SIZES="10000 100000"`.

Engines may be named after the sizes to measure only these: `python -m tests.bench.lexical 10000 tantivy ragcli`.
Per size: builds in processes of their own (rate, peak memory of the process tree, bytes a passage); warm searches;
whole cold processes in turn, ragcli against the barest typer app and against a typer app that opens the peer's index.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import median

from tests.bench import measure
from tests.bench.engines import ENGINES, place_of

COLD_ROUNDS = 40
Row = dict[str, object]


def corpus_of(size: int) -> Path:
    """The folder with the corpus of that size, made when it is not there. Made by another process: numpy is large."""
    folder = measure.WORK / "lexical" / str(size)
    if not (folder / "queries.json").exists():
        subprocess.run([sys.executable, "-m", "tests.bench.corpus", str(size), str(folder)], check=True)
    return folder


def engine_command(what: str, engine: str, folder: Path) -> list[str]:
    return [sys.executable, "-m", "tests.bench.engines", what, engine, str(folder)]


def build_command(engine: str, folder: Path) -> list[str]:
    if engine == "ragcli":
        place = str(place_of("ragcli", folder))
        return [str(measure.RAGCLI), "ingest", str(folder / "corpus.jsonl"), "--index", place]
    return engine_command("build", engine, folder)


def remove(place: Path) -> None:
    """Take away an index of an earlier run, with SQLite's side files."""
    for path in place.parent.glob(f"{place.name}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def build(engine: str, size: int, folder: Path) -> Row:
    place = place_of(engine, folder)
    remove(place)
    built = measure.build(build_command(engine, folder))
    return {
        "size": size,
        "engine": engine,
        "passages_per_s": size / built.seconds,
        "peak_mib": built.peak / measure.MIB,
        "bytes_per_passage": measure.size_of(place) / size,
    }


def warm(engine: str, size: int, folder: Path) -> Row:
    done = subprocess.run(
        engine_command("warm", engine, folder),
        capture_output=True,
        text=True,
        check=True,
        cwd=measure.ROOT,
        env=measure.environment(),
    )
    times = json.loads(done.stdout)
    named = {f"{kind}_{what}_ms": value for kind, found in times.items() for what, value in found.items()}
    return {"size": size, "engine": engine, **named}


def cold_commands(query: str, folder: Path, engines: tuple[str, ...]) -> dict[str, list[str]]:
    """One round: every command with the same query."""
    commands = {"bare typer app": [sys.executable, str(measure.APPS / "bare.py"), query]}
    for engine in (engine for engine in ("tantivy", "fts5") if engine in engines):
        app = str(measure.APPS / f"{engine}_query.py")
        commands[engine] = [sys.executable, app, query, str(place_of(engine, folder))]
    if "ragcli" in engines:
        place = str(place_of("ragcli", folder))
        commands["ragcli"] = [str(measure.RAGCLI), "query", query, "--index", place, "--mode", "keyword"]
        commands["ragcli"] += ["--format", "json", "--top-k", "10"]
    return commands


def cold(size: int, folder: Path, engines: tuple[str, ...]) -> list[Row]:
    queries = json.loads((folder / "queries.json").read_text())
    rows: list[Row] = []
    for kind, chosen in queries.items():
        rounds = [cold_commands(query, folder, engines) for query in chosen[:COLD_ROUNDS]]
        measure.in_turn(rounds[:1])
        times = measure.in_turn(rounds)
        for name, found in times.items():
            ratio = measure.ratio(times, name, "bare typer app")
            rows.append({"size": size, "queries": kind, "process": name, "median_ms": median(found), "x_bare": ratio})
    return rows


def main(sizes: list[int], engines: tuple[str, ...]) -> None:
    for size in sizes:
        folder = corpus_of(size)
        builds = [build(engine, size, folder) for engine in engines]
        measure.table(f"Build, {size:,} passages of about 100 words", builds)
        warms = [warm(engine, size, folder) for engine in engines]
        measure.table(f"Warm search in one process, top 10 of {size:,}", warms)
        colds = cold(size, folder, engines)
        measure.table(f"Cold, whole process, top 10 of {size:,}", colds)
        measure.record("lexical", [*builds, *warms, *colds])


if __name__ == "__main__":
    named = sys.argv[1:]
    main(
        [int(word) for word in named if word.isdigit()] or [10_000, 100_000],
        tuple(word for word in named if not word.isdigit()) or (*ENGINES, "ragcli"),
    )
