"""What `inspect` shows, from views built by hand."""

from __future__ import annotations

from datetime import date

import pytest

from ragcli.cli import views
from ragcli.cli.inspect import _with_bare_config
from ragcli.cli.wording import counted
from ragcli.types import ChunkView, DocumentLine, DocumentView, EmbedderCard, Problem, Stats, TermStat, TermView
from tests.cli.results import chunk


def rows(text: str) -> dict[str, str]:
    """The lines `key  value`, parted at the first two spaces."""
    parted = (line.strip().partition("  ") for line in text.splitlines())
    return {key: value.strip() for key, _, value in parted}


@pytest.mark.spec("A11")
def test_stats() -> None:
    view = Stats(
        path="i.db", schema=1, collection="default", documents=1200, chunks=3400, terms=5600, postings=70000,
        total_terms=340000, average_length=100.0, segments=2, deleted_chunks=3, bytes=3 * 1024 * 1024, free=2048,
        generation=9, roots=("docs",), formats={"markdown": 1000, "pdf": 200},
        failed=(Problem("a.pdf", "encrypted", "a password"),),
        settings={"bm25": {"k1": 1.5}, "note": "x"},
    )  # fmt: skip
    shown = rows(views.stats(view))
    assert shown["documents"] == "1,200 (1,000 markdown, 200 pdf)"
    assert shown["terms"] == "5,600 different, 340,000 in all, 100.0 a chunk"
    assert shown["size"] == "3.0 MiB (2.0 KiB free)"
    assert shown["vectors"] == "none: keywords only"
    assert shown["bm25.k1"] == "1.5"
    assert views.stats(view).endswith("failed: 1\n  a.pdf: a password\n")


def test_stats_say_what_made_the_vectors() -> None:
    card = EmbedderCard(name="minilm", fingerprint="0", dimension=384, precision="int8")
    view = Stats(
        path="i.db", schema=2, collection="default", documents=1, chunks=3400, terms=1, postings=1, total_terms=1,
        average_length=1.0, segments=1, deleted_chunks=0, bytes=1, generation=1, vectors=3390, embedder=card,
    )  # fmt: skip
    assert rows(views.stats(view))["vectors"] == "3,390 of 3,400 chunks, by minilm (384 dimensions, int8)"


@pytest.mark.spec("A11", "I12", "I24")
def test_a_chunk_with_its_terms_and_neighbours() -> None:
    view = ChunkView(
        chunk=chunk(heading_breadcrumb="Handbook > Reset", context="Handbook\nleave.md", page=3, page_end=4),
        stale="changed", terms={"reset": 1, "torque": 2}, length=3, previous="handbook/leave.md#2", next=None,
    )  # fmt: skip
    shown = rows(views.chunk(view))
    assert shown["chunk"] == "handbook/leave.md#3"
    assert (shown["lines"], shown["page"], shown["stale"]) == ("12-13", "3-4", "changed")
    assert shown["heading"] == "Handbook > Reset"
    assert shown["context"] == "Handbook\\nleave.md"
    assert shown["previous"] == "handbook/leave.md#2"
    assert "next" not in shown
    assert "terms: torque:2 reset:1\n" in views.chunk(view)
    assert (shown["lang"], shown["year"], shown["day"]) == ('"de"', "2024", "2024-05-01")


@pytest.mark.spec("A11", "C13")
def test_a_document_with_its_chunks_and_text_inert() -> None:
    view = DocumentView(
        id="a\n.md", path="/x/a\n.md", title="T\x1b[31m", format="markdown",
        metadata={"when": (date(2024, 5, 1), True)},
        created_at=None, updated_at="2024-05-01T00:00:00Z", ingested_at=None, size=2048, characters=60, first_line=4,
        chunks=(chunk("word " * 60, index=0),), stale=None, text="one\n\x1b[2Jtwo\n",
    )  # fmt: skip
    text = views.document(view)
    shown = rows(text)
    assert (shown["document"], shown["title"], shown["size"]) == ("a\\n.md", "T\\x1b[31m", "2.0 KiB")
    assert shown["text"] == "60 characters from line 4"
    assert shown["when"] == "[2024-05-01, true]"
    assert text.endswith("one\n\\x1b[2Jtwo\n")
    assert "…" in text
    assert "created" not in shown


@pytest.mark.spec("A11")
def test_terms_with_their_postings() -> None:
    stat = TermStat(term="torque", document_frequency=3, idf=1.25, postings=(("a.md#0", 2),), total=7)
    shown = views.terms(TermView(word="Torque", terms=(stat,)))
    assert (rows(shown)["idf"], rows(shown)["occurrences"]) == ("1.2500", "7")
    assert shown.endswith("postings (chunk, frequency):\n  a.md#0  2\n  and 2 more\n")
    assert "no term" in views.terms(TermView(word="!!", terms=()))


@pytest.mark.spec("A11")
def test_check_lists_faults_or_says_there_is_none() -> None:
    assert views.check("i.db", []) == "i.db: whole\n"
    assert views.check("i.db", ["one", "two"]) == "fault: one\nfault: two\n"


@pytest.mark.spec("A11")
@pytest.mark.parametrize(
    ("given", "read"),
    [
        (["--config"], ["--show-config"]),
        (["--config", "--json"], ["--show-config", "--json"]),
        (["--config", "c.yaml"], ["--config", "c.yaml"]),
        (["--config=c.yaml", "--stats"], ["--config=c.yaml", "--stats"]),
        (["--", "--config"], ["--", "--config"]),
    ],
)
def test_a_bare_config_asks_for_the_settings(given: list[str], read: list[str]) -> None:
    assert _with_bare_config(given) == read


@pytest.mark.spec("A11")
def test_a_list_of_documents_is_aligned_and_inert() -> None:
    lines = [
        DocumentLine(id="a\n.md", format="markdown", chunks=1, title="T\x1b[31m"),
        DocumentLine(id="handbook/leave.md", format="text", chunks=1200, title=""),
    ]
    assert views.documents(lines) == (
        "a\\n.md             markdown  1 chunk       T\\x1b[31m\nhandbook/leave.md  text      1,200 chunks\n"
    )
    assert views.documents([]) == "no documents\n"


@pytest.mark.parametrize(("count", "words"), [(0, "0 chunks"), (1, "1 chunk"), (2, "2 chunks"), (1200, "1,200 chunks")])
def test_one_is_no_plural(count: int, words: str) -> None:
    assert counted(count, "chunk") == words
