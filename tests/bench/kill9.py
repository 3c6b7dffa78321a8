"""How an index fares under `kill -9`: many seeds of `tests/crash.py`, with what each kill met.

    python -m tests.bench.kill9 --seeds 100 [--workers 2]

Each seed builds an index under kills until it is whole, then changes the corpus and does the same again. After every
kill: the index opens, its own check is clean, all that was reported is there; in the end it equals a fresh index.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests import crash, indexes

QUERIES = ("oak7", "changed oak3", "yew1 ash2 elm3", "note")


def trial(seed: int, folder: Path, workers: int) -> Counter[str]:
    """One seed; what its kills met. Raises AssertionError where an index is not as it should be."""
    chance = random.Random(seed)
    corpus, index = folder / "corpus", folder / "i.db"
    crash.make_corpus(corpus, seed)
    met = _until_whole(index, corpus, chance, workers)
    _compare(index, corpus, folder / "fresh.db")
    crash.change_corpus(corpus, seed)
    met += _until_whole(index, corpus, chance, workers)
    _compare(index, corpus, folder / "changed.db")
    return met


def _until_whole(index: Path, corpus: Path, chance: random.Random, workers: int) -> Counter[str]:
    met: Counter[str] = Counter()
    for _ in range(chance.randrange(1, 5)):
        before = crash.inspect(index, 0)
        reported, ended, children = crash.kill_at(index, corpus, chance, workers=workers)
        documents = crash.inspect(index, reported if not before else 0)
        assert not crash.wait_for_end(children)
        met["kills"] += 1
        met["after the end" if ended else "before any commit" if not reported else "amid the work"] += 1
        met["with more than was reported"] += not before and documents > reported
    indexes.take_in(index, corpus, prune=True)
    return met


def _compare(index: Path, corpus: Path, fresh: Path) -> None:
    assert indexes.faults(index) == []
    indexes.take_in(fresh, corpus)
    indexes.same(index, fresh, QUERIES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    met: Counter[str] = Counter()
    began = time.perf_counter()
    for seed in range(given.first, given.first + given.seeds):
        with tempfile.TemporaryDirectory() as folder:
            met += trial(seed, Path(folder), given.workers)
    print(f"{given.seeds} seeds, {given.workers} workers, {time.perf_counter() - began:.0f} s, no fault:")
    for what, number in met.most_common():
        print(f"{number:6} {what}")


if __name__ == "__main__":
    main()
