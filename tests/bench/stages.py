"""Redundancy filter, MMR and reordering beside plain loops and langchain-core's MMR: `make bench-stages`.

Synthetic vectors of 384 numbers in clusters, as near-duplicates are. Times are medians of many rounds in one process,
the contenders in turn; `x ours` is the peer's time in units of ours. `stage` is the whole stage with its trace, the
others are the plain functions. langchain-core takes part where it is installed (group `bench`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from statistics import median
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from ragcli.stages.mmr import Mmr, mmr
from ragcli.stages.redundancy import Redundancy, redundancy_filter
from ragcli.stages.reorder import Reorder, lost_in_the_middle
from ragcli.types import Ranking
from tests.bench import measure
from tests.reference.mmr import mmr as mmr_in_loops
from tests.reference.redundancy import cosine, redundancy
from tests.stages.corpus import FakeCorpus, hit

DIMENSION = 384
SECONDS = 4.0  # of rounds for each table
FEW, SLOW = 3, 200.0  # what takes more milliseconds runs in so many rounds only
Run = Callable[[], object]
Row = dict[str, object]


def clustered(count: int, seed: int) -> NDArray[np.float64]:
    """Unit vectors around a handful of centres."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((max(count // 4, 1), DIMENSION))
    vectors = centres[random.integers(0, len(centres), count)] + 0.6 * random.standard_normal((count, DIMENSION))
    unit: NDArray[np.float64] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def hits(count: int) -> Ranking:
    """Hits of as many documents."""
    return Ranking(tuple(hit(f"{number:04}.md", score=1 - number / count) for number in range(count)))


class Held(FakeCorpus):
    """Gives its vectors at once: fetching them is not what is measured."""

    def __init__(self, vectors: NDArray[np.float64]) -> None:
        super().__init__(query=vectors[0].tolist())
        self._rows = vectors.astype(np.float32)

    def vectors(self, hits: object) -> NDArray[np.float32]:
        return self._rows[: len(hits)]  # type: ignore[arg-type]


def of_mmr(picks: int, count: int) -> Mapping[str, Run]:
    """Who picks `picks` of `count`."""
    vectors, ranking = clustered(count, 1), hits(count)
    query, held = vectors.mean(axis=0), Held(vectors)
    lists, stage = vectors.tolist(), Mmr(picks=picks, candidates=count)
    runs: dict[str, Run] = {
        "mmr": lambda: mmr(query, vectors, picks),
        "stage": lambda: stage("q", ranking, held),
        "plain loops": lambda: mmr_in_loops([cosine(query.tolist(), row) for row in lists], lists, picks, 0.5),
    }
    if find_spec("langchain_core"):
        from langchain_core.vectorstores.utils import maximal_marginal_relevance

        runs["langchain-core"] = lambda: maximal_marginal_relevance(query, list(vectors), 0.5, picks)
    return runs


def of_redundancy(count: int) -> Mapping[str, Run]:
    """Who compares `count` hits."""
    vectors, ranking = clustered(count, 2), hits(count)
    held, lists, stage = Held(vectors), vectors.tolist(), Redundancy(0.8)
    return {
        "redundancy_filter": lambda: redundancy_filter(vectors, 0.8),
        "stage": lambda: stage("q", ranking, held),
        "plain loops": lambda: redundancy(lists, 0.8),
    }


def of_reordering(count: int) -> Mapping[str, Run]:
    """Who reorders `count` hits."""
    ranking, nothing = hits(count), FakeCorpus()
    return {
        "lost_in_the_middle": lambda: lost_in_the_middle(ranking.hits),
        "stage": lambda: Reorder()("q", ranking, nothing),
    }


def timed(run: Run) -> float:
    """Milliseconds of one run."""
    start = perf_counter()
    run()
    return (perf_counter() - start) * 1000


def table(what: str, runs: Mapping[str, Run]) -> list[Row]:
    """Milliseconds of each, round by round, in turn."""
    times = {name: [timed(run) for _ in range(FEW)] for name, run in runs.items()}
    quick = {name: run for name, run in runs.items() if median(times[name]) < SLOW}
    end = perf_counter() + SECONDS
    while perf_counter() < end:
        for name, run in quick.items():
            times[name].append(timed(run))
    ours = median(times[next(iter(runs))])
    return [
        {"what": what, "run": name, "median_ms": median(of), "x ours": median(of) / ours, "rounds": len(of)}
        for name, of in times.items()
    ]


def same_as_langchain(rounds: int = 300) -> Row:
    """How often langchain-core picks the same, on random vectors."""
    from langchain_core.vectorstores.utils import maximal_marginal_relevance

    same = 0
    for seed in range(rounds):
        vectors = clustered(60, seed)
        query = vectors.mean(axis=0)
        same += list(maximal_marginal_relevance(query, list(vectors), 0.5, 20)) == mmr(query, vectors, 20).order
    return {"what": "same 20 of 60, in order, as langchain-core", "of": rounds, "same": same}


def main() -> None:
    """Print and keep the tables."""
    rows = [
        row
        for what, runs in (
            ("mmr 20 of 60", of_mmr(20, 60)),
            ("mmr 20 of 200", of_mmr(20, 200)),
            ("mmr 5 of 15", of_mmr(5, 15)),
            ("redundancy of 20", of_redundancy(20)),
            ("redundancy of 200", of_redundancy(200)),
            ("reordering of 20", of_reordering(20)),
        )
        for row in table(what, runs)
    ]
    measure.table("stages, warm", rows)
    if find_spec("langchain_core"):
        measure.table("agreement", [same_as_langchain()])
    measure.record("stages", rows)


if __name__ == "__main__":
    main()
