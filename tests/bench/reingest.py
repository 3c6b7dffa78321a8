"""Ingest of 10,000 files of which none changed, against `git status` on the same tree, in turn: `make bench-ingest`."""

from __future__ import annotations

import shutil
import subprocess
from itertools import islice
from pathlib import Path
from statistics import median

from tests.bench import measure
from tests.bench.engines import lines_of
from tests.bench.lexical import corpus_of

FILES = 10_000
FILES_A_FOLDER = 100
ROUNDS = 9


def plant(tree: Path) -> None:
    """Write the tree, a Markdown file a passage, and commit it to a repository of its own."""
    for number, passage in enumerate(islice(lines_of(corpus_of(FILES)), FILES)):
        path = tree / f"part-{number // FILES_A_FOLDER:03}" / f"note-{number:05}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Note {number}\n\n{passage}\n")
    me = ["-c", "user.name=bench", "-c", "user.email=bench@localhost", "-c", "commit.gpgsign=false"]
    for command in (["init", "--quiet"], ["add", "."], [*me, "commit", "--quiet", "--message", "notes"]):
        subprocess.run(["git", *command], cwd=tree, check=True)


def main() -> None:
    folder = measure.WORK / "reingest"
    shutil.rmtree(folder, ignore_errors=True)
    tree, index = folder / "tree", folder / "index"
    plant(tree)
    ingest = [str(measure.RAGCLI), "ingest", ".", "--index", str(index)]
    first = measure.seconds_of(ingest, cwd=tree)
    commands = {"git status": ["git", "status", "--porcelain"], "ragcli ingest": ingest}
    measure.in_turn([commands] * 2, cwd=tree)
    times = measure.in_turn([commands] * ROUNDS, cwd=tree)
    rows: list[dict[str, object]] = [
        {"process": name, "median_ms": median(found), "x_git": measure.ratio(times, name, "git status")}
        for name, found in times.items()
    ]
    rows.append({"process": "first ingest", "median_ms": first * 1000, "x_git": FILES / first})
    measure.table(f"{FILES:,} unchanged files, {ROUNDS} rounds in turn", rows[:2])
    print(f"first ingest: {first:.2f} s, {FILES / first:,.0f} files/s")
    measure.record("reingest", rows)


if __name__ == "__main__":
    main()
