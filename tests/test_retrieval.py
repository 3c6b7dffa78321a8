"""One retrieval with stages: the page is filled where they thin it out, and what fails leaves the ranking as it was."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from ragcli.options import EmbeddingSettings, ModelsSettings, RerankSettings, RetrievalOptions, Settings
from ragcli.pipeline import Pipeline
from ragcli.types import Result
from tests import indexes
from tests.services import EmbeddingService

COPIES, OTHERS = 25, 6


@pytest.fixture
def settings() -> Iterator[Settings]:
    with EmbeddingService() as service:
        yield Settings(
            models=ModelsSettings(embedder="openai:toy"), embedding=EmbeddingSettings(base_url=service.url, api_key="k")
        )


@pytest.fixture
def copies(tmp_path: Path, settings: Settings) -> Path:
    """Twenty-five copies of the best text, and six others."""
    texts = {f"copy{n:02}.md": "gauge gauge" for n in range(COPIES)}
    words = ("river", "snow", "lamp", "meadow", "cloud", "bridge")
    texts |= {f"other{n}.md": f"gauge {words[n]} {words[n]} {words[n]}" for n in range(OTHERS)}
    indexes.take_in(indexes.index_of(tmp_path), indexes.write(tmp_path / "d", texts), settings=settings)
    return indexes.index_of(tmp_path)


def asked(index: Path, settings: Settings, **options: object) -> Result:
    with Pipeline.open(index, settings) as pipeline:
        return pipeline.retrieve("gauge", RetrievalOptions(**options))  # type: ignore[arg-type]


def names(found: Result) -> list[str]:
    return [hit.chunk.document_id for hit in found.ranking.hits]


@pytest.mark.spec("P1", "R8")
@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
def test_the_page_is_filled_although_copies_go(copies: Path, settings: Settings, mode: str) -> None:
    plain = asked(copies, settings, mode=mode, top_k=5)
    assert all(name.startswith("copy") for name in names(plain))
    found = asked(copies, settings, mode=mode, top_k=5, redundancy_filter=True, redundancy_threshold=0.9)
    assert len(names(found)) == 5
    assert sum(name.startswith("copy") for name in names(found)) == 1
    twins = [drop for drop in found.ranking.dropped if drop.stage == "redundancy"]
    assert len(twins) == COPIES - 1
    assert all("cosine 1.0000 with copy00.md#0 (rank 1)" in drop.reason for drop in twins)


@pytest.mark.spec("P2", "P12")
def test_mmr_picks_from_what_the_redundancy_filter_left(copies: Path, settings: Settings) -> None:
    found = asked(copies, settings, top_k=3, redundancy_filter=True, redundancy_threshold=0.9, mmr=True)
    steps = {step.stage: step for step in found.trace.steps}
    assert steps["mmr"].taken == OTHERS + 1  # all that is left of thirty-one
    assert steps["mmr"].given == 3
    assert [step.stage for step in found.trace.steps][-3:] == ["redundancy", "mmr", "cut"]


class Counting:
    """A reranker that likes short passages and keeps how many it was asked of."""

    asked: list[int] = []  # noqa: RUF012 - the class is what the setting names

    @property
    def name(self) -> str:
        return "counting"

    def __call__(self, query: str, passages: Sequence[str]) -> list[float]:
        Counting.asked.append(len(passages))
        return [1 / len(passage) for passage in passages]


@pytest.mark.spec("P3", "P4", "P12")
def test_the_reranker_is_asked_once_and_of_the_candidates_alone(copies: Path, settings: Settings) -> None:
    from msgspec.structs import replace

    Counting.asked.clear()
    reranked = replace(settings, rerank=RerankSettings(reranker="python:tests.test_retrieval:judge"))
    found = asked(copies, reranked, top_k=2, candidate_count=4, redundancy_filter=True, redundancy_threshold=0.9)
    assert Counting.asked == [4]
    assert len(names(found)) == 2
    assert {hit.score_kind for hit in found.ranking.hits} == {"rerank"}


judge = Counting()


@pytest.mark.spec("R8", "P3")
def test_a_reranker_that_fails_leaves_the_ranking(copies: Path, settings: Settings) -> None:
    from msgspec.structs import replace

    broken = replace(settings, rerank=RerankSettings(reranker="python:tests.test_retrieval:fails"))
    found = asked(copies, broken, top_k=3)
    assert names(found) == names(asked(copies, settings, top_k=3))
    (warning,) = found.warnings
    assert warning.startswith("rerank failed, and the ranking before it stands: ")
    assert "no judgement today" in warning


def fails(query: str, passages: Sequence[str]) -> list[float]:
    raise ValueError("no judgement today")


@pytest.mark.spec("P7")
def test_the_page_is_filled_with_distinct_parents(tmp_path: Path) -> None:
    from ragcli.options import ChunkingSettings, ParentsSettings

    own = indexes.keywords(
        chunking=ChunkingSettings(size=60, overlap=0), parents=ParentsSettings(enabled=True, size=1200, overlap=0)
    )
    many = "\n\n".join(f"A gauge gauge number {n}, and nothing else." for n in range(60))
    texts = {"many.md": many, **{f"one{n}.md": f"A gauge beside the {n} other things here." for n in range(5)}}
    index = indexes.index_of(tmp_path)
    indexes.take_in(index, indexes.write(tmp_path / "d", texts), settings=own)
    plain = asked(index, own, top_k=5, parent_document=False)
    assert set(names(plain)) == {"many.md"}
    found = asked(index, own, top_k=5)
    assert len(names(found)) == 5
    keys = [(hit.chunk.document_id, hit.parent.index if hit.parent else None) for hit in found.ranking.hits]
    assert len(set(keys)) == 5
    assert found.notes == ()


@pytest.mark.spec("P7", "R8")
def test_where_candidates_are_bounded_a_short_page_of_parents_is_told(tmp_path: Path) -> None:
    from ragcli.options import ChunkingSettings, ParentsSettings

    own = indexes.keywords(
        chunking=ChunkingSettings(size=60, overlap=0),
        parents=ParentsSettings(enabled=True, size=4000, overlap=0),
        rerank=RerankSettings(reranker="python:tests.test_retrieval:judge"),
    )
    many = "\n\n".join(f"A gauge gauge number {n}, and nothing else." for n in range(60))
    index = indexes.index_of(tmp_path)
    indexes.take_in(index, indexes.write(tmp_path / "d", {"many.md": many, "other.md": "A gauge."}), settings=own)
    found = asked(index, own, top_k=3, candidate_count=10)
    assert len(names(found)) < 3
    assert found.notes == (f"the 10 candidates lie in {len(names(found))} parents: --candidates N looks at more",)
