"""Start-up: whole processes of ragcli against the barest typer app, in turn: `make bench-start`."""

from __future__ import annotations

import shutil
import sys
from statistics import median

from tests.bench import measure

ROUNDS = 25
QUERY = "how long do the batteries last"


def commands(index: str) -> dict[str, list[str]]:
    """One round: python alone, the bare app, and ragcli's commands."""
    ragcli, bare = str(measure.RAGCLI), [sys.executable, str(measure.APPS / "bare.py")]
    return {
        "python -c pass": [sys.executable, "-c", "pass"],
        "bare typer app": [*bare, QUERY],
        "bare typer app --help": [*bare, "--help"],
        "ragcli --help": [ragcli, "--help"],
        "ragcli --version": [ragcli, "--version"],
        "ragcli query --help": [ragcli, "query", "--help"],
        "ragcli query, JSON": [ragcli, "query", QUERY, "--index", index, "--mode", "keyword", "--format", "json"],
        "ragcli query, table": [ragcli, "query", QUERY, "--index", index, "--mode", "keyword", "--format", "table"],
    }


def main() -> None:
    folder = measure.WORK / "start"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    index = str(folder / "index")
    measure.build([str(measure.RAGCLI), "ingest", "sample_corpus", "--index", index])
    measure.in_turn([commands(index)])
    times = measure.in_turn([commands(index)] * ROUNDS)
    rows = [
        {
            "process": name,
            "median_ms": median(found),
            "fastest_ms": min(found),
            "x_bare": measure.ratio(times, name, "bare typer app --help" if "--help" in name else "bare typer app"),
        }
        for name, found in times.items()
    ]
    measure.table(
        f"Start-up, {ROUNDS} rounds in turn (x_bare: of the bare app, with --help where there is --help)", rows
    )
    measure.record("start", rows)


if __name__ == "__main__":
    main()
