"""Retrieval from Python, on a real index: what a hit holds, and the record of how it came about (spec R2, R9, C10)."""

from __future__ import annotations

from math import log
from pathlib import Path

import pytest

from ragcli import Pipeline
from ragcli.errors import UsageError
from ragcli.options import Condition, RetrievalOptions, Settings
from ragcli.types import Event, Hit
from tests import indexes
from tests.read.sources import pdf

MANUAL = "---\nlang: de\nyear: 2024\n---\n# Handbook\n\n## Reset\n\nReset the gauge.\nHold the button.\n"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    files: dict[str, str | bytes] = {
        "manual.md": MANUAL,
        "sheet.pdf": pdf(["cover", "the gauge of the pump and of the valve"]),
        "notes/more.txt": "gauge gauge gauge\n",
        "other.txt": "nothing of interest\n",
    }
    indexes.take_in(tmp_path / "i.db", indexes.write(tmp_path / "d", files))
    return tmp_path / "i.db"


def hits_of(index: Path, query: str = "gauge", **options: object) -> dict[str, Hit]:
    with Pipeline.open(index) as pipeline:
        found = pipeline.retrieve(query, RetrievalOptions(**options))  # type: ignore[arg-type]
    return {hit.chunk.document_id: hit for hit in found.ranking.hits}


@pytest.mark.spec("R2", "C10")
def test_a_hit_holds_its_chunk_its_score_and_the_rank_in_the_arm(index: Path, tmp_path: Path) -> None:
    hit = hits_of(index)["manual.md"]
    text = MANUAL.partition("---\n# ")[2]
    body = "# " + text.rstrip("\n")
    chunk = hit.chunk
    assert (chunk.document_id, chunk.index, chunk.text) == ("manual.md", 0, body)
    assert (chunk.start, chunk.end) == (0, len(body))
    assert (chunk.start_line, chunk.end_line) == (5, 10)  # of the file: front matter is above it
    assert chunk.metadata == {"lang": "de", "year": 2024}
    assert chunk.path == str(tmp_path / "d" / "manual.md")
    assert (chunk.page, chunk.page_end) == (None, None)
    assert (hit.score_kind, hit.stale) == ("bm25", None)
    assert hit.arms["bm25"].score == hit.score == pytest.approx(sum(hit.terms.values()))


@pytest.mark.spec("R2", "I13")
def test_a_hit_of_a_paginated_source_has_its_page(index: Path) -> None:
    chunk = hits_of(index)["sheet.pdf"].chunk
    assert (chunk.page, chunk.page_end) == (1, 2)


@pytest.mark.spec("R2")
def test_best_first_and_ranks_count_from_1(index: Path) -> None:
    hits = list(hits_of(index).values())
    assert hits[0].chunk.document_id == "notes/more.txt"
    assert [hit.arms["bm25"].rank for hit in hits] == [1, 2, 3]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


@pytest.mark.spec("R2", "I32")
def test_the_score_is_the_formulas(index: Path) -> None:
    with Pipeline.open(index, Settings()) as pipeline:
        view = pipeline.inspector.chunk("notes/more.txt#0")
        average = pipeline.inspector.stats().average_length
    tf = 3 * 2.5 / (3 + 1.5 * (1 - 0.75 + 0.75 * view.length / average))
    expected = log(1 + (4 - 3 + 0.5) / (3 + 0.5)) * tf
    assert hits_of(index)["notes/more.txt"].score == pytest.approx(expected)


@pytest.mark.spec("R2", "C5")
def test_the_trace_tells_what_each_stage_did(index: Path) -> None:
    seen: list[Event] = []
    with Pipeline.open(index, listen=seen.append) as pipeline:
        found = pipeline.retrieve("gauge", RetrievalOptions(top_k=1, where='document_id != "notes/more.txt"'))
    steps = [(step.stage, step.taken, step.given) for step in found.trace.steps]
    assert steps == [("bm25", 4, 3), ("where", 3, 2), ("cut", 2, 1)]
    assert [event.stage for event in seen] == ["retrieving", "where", "cut"]
    assert {drop.stage: drop.hit.chunk.document_id for drop in found.ranking.dropped}["where"] == "notes/more.txt"
    assert [hit.arms["bm25"].rank for hit in found.ranking.hits] == [2]  # what the arm thought, not the place now


@pytest.mark.spec("R9")
def test_a_filter_keeps_what_it_admits(index: Path) -> None:
    assert set(hits_of(index, metadata_filter=(Condition("year", 2024),))) == {"manual.md"}
    assert hits_of(index, metadata_filter=(Condition("year", "2024"),)) == {}
    both = (Condition("path", "*.md"), Condition("lang", "de"))
    assert set(hits_of(index, top_k=1, metadata_filter=both)) == {"manual.md"}


@pytest.mark.spec("R10")
def test_where_asks_for_more_until_the_page_is_full(tmp_path: Path) -> None:
    files = {f"{n:03}.txt": "gauge gauge\n" for n in range(60)}
    docs = indexes.write(tmp_path / "d", {**files, "last.md": "---\nkeep: true\n---\na gauge and more words\n"})
    indexes.take_in(tmp_path / "i.db", docs)
    assert set(hits_of(tmp_path / "i.db", top_k=2, where="tag.keep == true")) == {"last.md"}


@pytest.mark.parametrize("query", ["", " \n"])
def test_a_blank_query_is_refused(index: Path, query: str) -> None:
    with Pipeline.open(index) as pipeline, pytest.raises(UsageError, match="empty"):
        pipeline.retrieve(query)


def test_a_long_query_of_unknown_terms_names_a_few(index: Path) -> None:
    words = [f"unknown{number}" for number in range(20_000)]
    with Pipeline.open(index) as pipeline:
        (note,) = pipeline.retrieve(" ".join(words)).notes
    assert note == f"not in the index: {', '.join(words[:10])} and 19990 more"
