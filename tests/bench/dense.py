"""Dense search against numpy over mapped float32: `make bench-dense SIZES="100000 1000000"`.

Per size: the side file, made and brought up to date after a small change; searches in one process, ours and numpy's in
turn, with the share of numpy's best that ours finds; whole cold processes in turn. Vectors are synthetic, in clusters;
those of a `.npy` file of float32 may be named after the sizes, of which the last hundred are the queries:
`python -m tests.bench.dense 100000 vectors.npy`. A million of 384 numbers takes 4 GB of disk while it runs.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import mean, median, quantiles

from tests.bench import measure

COLD_ROUNDS = 15
Row = dict[str, object]


def command(what: str, folder: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "tests.bench.dense_work", what, str(folder), *more]


def run(what: str, folder: Path, *more: str) -> str:
    done = subprocess.run(
        command(what, folder, *more), check=True, cwd=measure.ROOT, env=measure.environment(), stdout=subprocess.PIPE
    )
    return done.stdout.decode()


def update(name: str, size: int, folder: Path) -> Row:
    built = measure.build(command("update", folder))
    database, side = (measure.size_of(folder / part) for part in ("index.db", "index.vec"))
    return {
        "size": size,
        "side file": name,
        "seconds": built.seconds,
        "peak_mib": built.peak / measure.MIB,  # with what is mapped of the file before
        "db_bytes_a_vector": database / size,
        "file_bytes_a_vector": side / size,
    }


def warm(size: int, folder: Path) -> list[Row]:
    found = json.loads(run("warm", folder))
    peer = median(found["numpy f32"]["ms"])
    return [
        {
            "size": size,
            "search": name,
            "median_ms": median(of["ms"]),
            "p95_ms": quantiles(of["ms"], n=20)[-1],
            "x_numpy": median(of["ms"]) / peer,
            "recall": f"{mean(of['recall']):.4f}",
        }
        for name, of in found.items()
    ]


def cold(size: int, folder: Path) -> list[Row]:
    names = {"import numpy": "cold_import", "numpy f32": "cold_numpy", "ragcli": "cold"}
    commands = {name: command(what, folder) for name, what in names.items()}
    measure.in_turn([commands])
    times = measure.in_turn([commands] * COLD_ROUNDS)
    return [
        {
            "size": size,
            "process": name,
            "median_ms": median(found),
            "x_numpy": measure.ratio(times, name, "numpy f32"),
        }
        for name, found in times.items()
    ]


def main(sizes: list[int], stored: tuple[str, ...]) -> None:
    for size in sizes:
        folder = measure.WORK / "dense" / str(size)
        shutil.rmtree(folder, ignore_errors=True)
        try:
            measured(size, folder, stored)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def measured(size: int, folder: Path, stored: tuple[str, ...]) -> None:
    run("make", folder, str(size), *stored)
    made = update("made", size, folder)
    warms, colds = warm(size, folder), cold(size, folder)
    run("change", folder, str(size))
    updates = [made, update("updated", size, folder)]
    measure.table(f"Side file of {size:,} vectors", updates)
    measure.table(f"Warm search in one process, {size:,} vectors", warms)
    measure.table(f"Cold, whole process, top 10 of {size:,}", colds)
    measure.record("dense", [*updates, *warms, *colds])


if __name__ == "__main__":
    main(
        [int(word) for word in sys.argv[1:] if word.isdigit()] or [10_000, 100_000],
        tuple(word for word in sys.argv[1:] if not word.isdigit())[:1],
    )
