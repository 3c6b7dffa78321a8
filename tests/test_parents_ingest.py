"""Parents come with their documents, or later from the stored text, and go when they are not wanted (spec I23)."""

from __future__ import annotations

import os
import random
import shutil
import time
from bisect import bisect_right
from itertools import accumulate
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as profile
from hypothesis import strategies as st

from ragcli import chunk as chunking
from ragcli.errors import IndexMissing, OptionError
from ragcli.ingest import ingest_paths
from ragcli.ingest import parents as back_fill
from ragcli.options import (
    ChunkingSettings,
    EmbeddingSettings,
    IngestSettings,
    ModelsSettings,
    ParentsSettings,
    Settings,
)
from ragcli.read.pdf import BETWEEN
from ragcli.store.sqlite.documents import Stored
from ragcli.types import Chunk, Document, Event, Heading, IngestOptions, IngestReport
from tests import crash, indexes
from tests.read.sources import pdf
from tests.services import EmbeddingService

ON = ParentsSettings(enabled=True, size=300, overlap=40)
KEEPING = indexes.keywords(parents=ON)


def corpus(folder: Path, seed: int = 1) -> Path:
    """A document of each kind that has headings, pages, both or neither, of several parents; and an empty one."""
    chance = random.Random(seed)

    def words(count: int) -> str:
        return " ".join(chance.choices(crash.WORDS, k=count))

    sections = [(1 + chance.randrange(3), words(2), words(chance.randrange(5, 90))) for _ in range(12)]
    markdown = "\n".join(f"{'#' * level} {title}\n\n{text}\n" for level, title, text in sections)
    html = "".join(f"<h{level}>{title}</h{level}><p>{text}</p>" for level, title, text in sections)
    lines = (f'{{"_id": "r{n}", "title": "{words(2)}", "text": "{words(90)}"}}\n' for n in range(3))
    return indexes.write(
        folder,
        {
            "a.md": f"---\ntitle: T\n---\nbefore any heading\n\n{markdown}", "b.html": f"<p>{words(20)}</p>{html}",
            "c.txt": "\n\n".join(words(40) for _ in range(9)), "d.pdf": pdf([words(12) for _ in range(30)]),
            "e.jsonl": "".join(lines), "empty.txt": "\n",
        },
    )  # fmt: skip


def chosen(index: Path, *paths: Path, explicit: tuple[str, ...], settings: Settings = KEEPING) -> IngestReport:
    """An ingest for which somebody chose these settings."""
    return ingest_paths([str(path) for path in paths], settings, index, explicit=explicit)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """An index of `corpus` without parents."""
    indexes.take_in(tmp_path / "i.db", corpus(tmp_path / "docs"))
    return tmp_path / "i.db"


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """One that got its parents with its documents."""
    indexes.take_in(tmp_path / "fresh.db", corpus(tmp_path / "docs"), settings=KEEPING)
    return tmp_path / "fresh.db"


# ----------------------------------------------------------------------------------------------------- with documents


@pytest.mark.spec("I23")
def test_a_second_pass_cuts_parents_by_the_default_strategy(tmp_path: Path) -> None:
    docs, index = corpus(tmp_path / "docs"), tmp_path / "i.db"
    report = indexes.take_in(index, docs, settings=KEEPING)
    rows = indexes.parents_of(index)
    assert report.parents == sum(map(len, rows.values())) > 40
    assert rows["empty.txt"] == []
    assert indexes.faults(index) == []
    for name, (_, _, text, _) in indexes.content(index).items():
        spans = [row[:2] for row in rows[name]]
        assert [row[2] for row in rows[name]] == list(range(len(spans)))
        assert all(end - start <= 300 for start, end in spans)
        wanted = chunking.chunker(ChunkingSettings(size=300, overlap=40))(Document(id=name, text=text))
        assert spans == wanted


@pytest.mark.spec("I23", "I12", "I13")
def test_lines_pages_and_headings_are_those_of_chunks_with_that_span(tmp_path: Path) -> None:
    docs = corpus(tmp_path / "docs")
    indexes.take_in(tmp_path / "p.db", docs, settings=KEEPING)
    as_chunks = indexes.keywords(chunking=ChunkingSettings(size=300, overlap=40))
    indexes.take_in(tmp_path / "c.db", docs, settings=as_chunks)
    rows = indexes.rows(
        tmp_path / "c.db",
        'SELECT document_id, start, "end", "index", start_line, end_line, page, page_end, heading, heading_level, '
        "breadcrumb FROM chunks c JOIN documents d ON d.id = c.document ORDER BY c.id",
    )
    found = indexes.parents_of(tmp_path / "p.db")
    assert [(name, *row) for name in found for row in found[name]] == rows


@pytest.mark.spec("I23", "I34")
def test_parents_go_and_come_with_their_documents(tmp_path: Path) -> None:
    docs, index = corpus(tmp_path / "docs"), tmp_path / "i.db"
    indexes.take_in(index, docs, settings=KEEPING)
    before = indexes.parents_of(index)
    indexes.write(docs, {"c.txt": "short\n"})
    (docs / "a.md").unlink()
    report = indexes.take_in(index, docs, prune=True)  # nobody says anything of parents: it keeps them
    after = indexes.parents_of(index)
    assert (report.changed, report.removed, report.parents) == (1, 1, 1)
    assert after == {name: rows for name, rows in before.items() if name != "a.md"} | {
        "c.txt": [(0, 5, 0, 0, 0, None, None, None, 0, None)]
    }
    assert indexes.faults(index) == []
    indexes.take_in(index, delete=("b.html",))
    assert indexes.faults(index) == []


@pytest.mark.spec("I23", "I34")
def test_unchanged_files_change_nothing(tmp_path: Path) -> None:
    docs, fresh = corpus(tmp_path / "docs"), tmp_path / "fresh.db"
    for path in docs.iterdir():
        os.utime(path, (time.time() - 60,) * 2)  # what was written just now is looked at again
    indexes.take_in(fresh, docs, settings=KEEPING)
    before = fresh.read_bytes()
    for explicit in ((), ("parents.enabled", "parents.size", "parents.overlap")):
        report = chosen(fresh, docs, explicit=explicit)
        assert (report.parents, report.parents_removed) == (0, 0)
    assert fresh.read_bytes() == before


@pytest.mark.spec("I23", "I39")
def test_workers_cut_the_same_parents(fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragcli.ingest import run

    monkeypatch.setattr(run, "BATCH_COST", 3000)
    settings = indexes.keywords(parents=ON, ingest=IngestSettings(workers=2))
    indexes.take_in(tmp_path / "w.db", tmp_path / "docs", settings=settings)
    assert indexes.parents_of(tmp_path / "w.db") == indexes.parents_of(fresh)


# --------------------------------------------------------------------------------------------------------- afterwards


@pytest.mark.spec("I23")
def test_of_stored_documents_they_are_cut_from_the_stored_text(index: Path, fresh: Path, tmp_path: Path) -> None:
    before = indexes.content(index)
    shutil.rmtree(tmp_path / "docs")
    heard: list[Event] = []
    report = ingest_paths([], KEEPING, index, listen=heard.append)
    assert indexes.parents_of(index) == indexes.parents_of(fresh)
    assert report.parents == sum(map(len, indexes.parents_of(fresh).values()))
    assert (report.chunks, report.bytes, report.added, report.changed, report.removed) == (0, 0, 0, 0, 0)
    assert [event for event in heard if event.stage == "parents"][-1] == Event("parents", 7, 7, "documents")
    assert indexes.content(index) == before
    assert indexes.faults(index) == []


@pytest.mark.spec("I23")
def test_an_ingest_with_paths_cuts_those_that_are_missing_too(index: Path, tmp_path: Path) -> None:
    docs = indexes.write(tmp_path / "docs", {"new.txt": "one more\n", "c.txt": "changed\n"})
    report = indexes.take_in(index, docs, settings=KEEPING)
    indexes.take_in(tmp_path / "other.db", docs, settings=KEEPING)
    assert (report.added, report.changed) == (1, 1)
    assert indexes.parents_of(index) == indexes.parents_of(tmp_path / "other.db")


@pytest.mark.spec("I23", "M11")
def test_nothing_is_embedded_for_them(tmp_path: Path) -> None:
    docs, index = corpus(tmp_path / "docs"), tmp_path / "i.db"
    with EmbeddingService() as service:
        models, endpoint = ModelsSettings(embedder="openai:toy"), EmbeddingSettings(base_url=service.url, api_key="k")
        indexes.take_in(index, docs, settings=Settings(models=models, embedding=endpoint))
        vectors, asked = indexes.vectors_of(index), len(service.requests)
        report = indexes.take_in(index, settings=Settings(models=models, embedding=endpoint, parents=ON))
    assert report.parents > 40
    assert len(service.requests) == asked
    assert indexes.vectors_of(index) == vectors
    assert indexes.faults(index) == []


@pytest.mark.spec("I23")
def test_another_size_cuts_all_anew(fresh: Path, tmp_path: Path) -> None:
    larger = indexes.keywords(parents=ParentsSettings(enabled=True, size=500, overlap=40))
    report = chosen(fresh, explicit=("parents.enabled", "parents.size"), settings=larger)
    indexes.take_in(tmp_path / "other.db", tmp_path / "docs", settings=larger)
    assert indexes.parents_of(fresh) == indexes.parents_of(tmp_path / "other.db")
    assert report.parents_removed > report.parents > 0
    assert indexes.faults(fresh) == []


@pytest.mark.spec("I23", "I36")
def test_what_nobody_says_stays_as_the_index_has_it(fresh: Path, index: Path) -> None:
    before = indexes.parents_of(fresh)
    other = indexes.keywords(parents=ParentsSettings(size=500, overlap=7))  # not enabled: sizes alone mean nothing
    for explicit in ((), ("parents.size", "parents.overlap")):
        assert chosen(fresh, explicit=explicit, settings=other).parents_removed == 0
        assert chosen(index, explicit=explicit, settings=other).parents == 0
    only_on = indexes.keywords(parents=ParentsSettings(enabled=True))
    assert chosen(fresh, explicit=("parents.enabled",), settings=only_on).parents == 0  # its own sizes hold
    assert indexes.parents_of(fresh) == before
    with pytest.raises(OptionError, match=r"parents\.overlap"):
        small = indexes.keywords(parents=ParentsSettings(enabled=True, size=30, overlap=7))
        chosen(fresh, explicit=("parents.enabled", "parents.size"), settings=small)
    assert indexes.parents_of(fresh) == before


@pytest.mark.spec("I23")
def test_not_wanted_any_more_they_go(fresh: Path, tmp_path: Path) -> None:
    rows = sum(map(len, indexes.parents_of(fresh).values()))
    before = indexes.content(fresh)
    off = indexes.keywords()
    assert chosen(fresh, explicit=("models.embedder",), settings=off).parents_removed == 0
    report = chosen(fresh, explicit=("parents.enabled",), settings=off)
    assert (report.parents_removed, report.parents) == (rows, 0)
    assert not any(indexes.parents_of(fresh).values())
    assert indexes.content(fresh) == before
    indexes.write(tmp_path / "docs", {"new.txt": "one more\n"})
    assert indexes.take_in(fresh, tmp_path / "docs").parents == 0
    assert indexes.faults(fresh) == []


@pytest.mark.spec("I23")
def test_a_dry_run_tells_what_would_be_cut(index: Path, fresh: Path, tmp_path: Path) -> None:
    docs, dry = str(tmp_path / "docs"), IngestOptions(dry_run=True)
    assert ingest_paths([docs], KEEPING, index, dry).unparented == 7
    assert ingest_paths([docs], KEEPING, fresh, dry).unparented == 0
    assert not any(indexes.parents_of(index).values())


@pytest.mark.spec("I23")
def test_an_index_that_is_not_there_gets_none(tmp_path: Path) -> None:
    with pytest.raises(IndexMissing):
        ingest_paths([], KEEPING, tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()


# ----------------------------------------------------------------------------------------------- killed on the way


class Killed(BaseException):
    """Ends the run where it stands."""


@pytest.mark.spec("I23", "I35")
def test_what_was_begun_is_ended_by_the_next_run(
    index: Path, fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(back_fill, "DOCUMENTS", 2)

    def kill(event: Event) -> None:
        if event.stage == "parents" and event.done >= 4:
            raise Killed

    with pytest.raises(Killed):
        ingest_paths([], KEEPING, index, listen=kill)
    done = [rows for rows in indexes.parents_of(index).values() if rows]
    assert len(done) == 4
    assert indexes.faults(index) == []
    report = indexes.take_in(index, tmp_path / "docs")  # without a word of parents: the index knows
    assert indexes.parents_of(index) == indexes.parents_of(fresh)
    assert report.parents == sum(map(len, indexes.parents_of(fresh).values())) - sum(map(len, done))


@pytest.mark.spec("I35")
def test_a_transaction_is_bounded_and_takes_one_document_at_least(
    index: Path, fresh: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(back_fill, "CHARACTERS", 10)
    heard: list[Event] = []
    ingest_paths([], KEEPING, index, listen=heard.append)
    assert [event.done for event in heard if event.stage == "parents"] == [1, 2, 3, 4, 5, 6, 7]
    assert indexes.parents_of(index) == indexes.parents_of(fresh)


@pytest.mark.spec("I23", "I35")
@pytest.mark.parametrize("seed", range(4))
def test_killed_at_any_moment(tmp_path: Path, seed: int) -> None:
    chance = random.Random(900 + seed)
    docs, index, whole = tmp_path / "docs", tmp_path / "i.db", tmp_path / "whole.db"
    crash.make_corpus(docs, seed)
    if seed % 2:
        indexes.take_in(index, docs)  # parents come afterwards
    settings = indexes.keywords(parents=ParentsSettings(enabled=True, size=400, overlap=50))
    for is_changed in (False, True):
        if is_changed:
            crash.change_corpus(docs, seed)
        for _ in range(2):
            reported, _, _ = crash.kill_at(index, docs, chance, parents=True)
            crash.inspect(index, 0 if is_changed else reported)
        indexes.take_in(index, docs, settings=settings, prune=True)
        indexes.take_in(whole, docs, settings=settings, prune=True)
        assert indexes.faults(index) == []
        assert indexes.parents_of(index) == indexes.parents_of(whole)


# ---------------------------------------------------------------------------------------------- documents of version 2


@pytest.mark.spec("I23", "I37")
def test_of_an_older_index_all_but_html_is_as_from_a_fresh_ingest(index: Path, fresh: Path) -> None:
    indexes.made_version_2(index)
    indexes.take_in(index, settings=KEEPING)
    found, wanted = indexes.parents_of(index), indexes.parents_of(fresh)
    assert found.keys() == wanted.keys()
    for name in found:
        if name != "b.html":
            assert found[name] == wanted[name]
    assert [row[:7] for row in found["b.html"]] == [row[:7] for row in wanted["b.html"]]  # all but headings
    assert any(row[6] for row in found["d.pdf"])
    assert indexes.faults(index) == []


@pytest.mark.spec("I23", "I12")
def test_headings_of_older_html_are_those_of_the_chunk_that_holds_the_start(index: Path) -> None:
    indexes.made_version_2(index)
    indexes.take_in(index, settings=KEEPING)
    chunks = indexes.rows(
        index, "SELECT start, heading, heading_level, breadcrumb FROM chunks WHERE document = "
        "(SELECT id FROM documents WHERE document_id = 'b.html') ORDER BY start"
    )  # fmt: skip
    starts = [start for start, *_ in chunks]
    for start, *_, heading, level, breadcrumb in indexes.parents_of(index)["b.html"]:
        assert (heading, level, breadcrumb) == chunks[bisect_right(starts, start) - 1][1:]


@pytest.mark.spec("I23", "I34")
def test_what_is_ingested_anew_is_exact_again(index: Path, fresh: Path, tmp_path: Path) -> None:
    indexes.made_version_2(index)
    indexes.take_in(index, settings=KEEPING)
    path = tmp_path / "docs" / "b.html"
    indexes.take_in(index, delete=("b.html",))
    indexes.take_in(index, path.parent)
    assert indexes.parents_of(index) == indexes.parents_of(fresh)


PAGE = st.lists(st.sampled_from(["oak", "elm tree", "an ash", "\n\n", "\n", ". "]), max_size=9).map(
    lambda words: " ".join(words).strip()
)
HEADINGS = st.lists(st.tuples(st.integers(0, 150), st.integers(1, 3), st.sampled_from("XYZ")), max_size=4)


@pytest.mark.spec("I23", "I13")
@profile(max_examples=300, deadline=None)
@given(
    st.lists(PAGE, max_size=8), HEADINGS, st.integers(8, 60), st.integers(0, 7), st.integers(8, 60), st.integers(0, 7)
)
def test_pages_of_older_documents_are_never_wrong(
    pages: list[str], headings: list[tuple[int, int, str]], size: int, overlap: int, whole: int, shared: int
) -> None:
    text = BETWEEN.join(pages)
    starts = tuple(accumulate((len(page) + len(BETWEEN) for page in pages[:-1]), initial=0)) if pages else ()
    marks = tuple(Heading(*one) for one in sorted(headings) if one[0] < len(text))
    document = Document(id="d", text=text, format="pdf", pages=starts, headings=marks, first_line=3)
    cutter = chunking.chunker(ChunkingSettings(size=size, overlap=overlap))
    chunks = [
        msgspec.structs.replace(chunk, text="") for chunk in chunking.chunk(document, cutter, context_header=False)
    ]
    stripped = msgspec.structs.replace(document, pages=(), headings=())
    settings = ParentsSettings(enabled=True, size=whole, overlap=shared)
    found = back_fill.rows_of(Stored(stripped, is_known=False, chunks=tuple(chunks)), settings)
    true = back_fill.rows_of(Stored(document, is_known=True, chunks=()), settings)
    assert [row[:5] for row in found] == [row[:5] for row in true]  # spans, indices, lines
    for (*_, page, page_end, _, _, _), (*_, first, last, _, _, _) in zip(found, true, strict=True):
        assert page is not None
        assert first is not None
        assert page <= first <= (last or first) <= (page_end or page)


@pytest.mark.spec("I23", "I13")
def test_a_blank_line_within_a_page_makes_a_range_of_what_is_uncertain() -> None:
    # pages start at 0 and 10, before "four"; the only chunk tells that it begins on page 1 and ends on page 2
    text = "one\n\ntwo\n\nfour\n\nfive\n\nsix"
    pages = (0, 10)
    document = Document(id="d", text=text, format="pdf", pages=pages)

    def cut(document: Document) -> list[tuple[int, int]]:
        return [(0, len(text))]

    (chunk,) = chunking.chunk(document, cut, context_header=False)
    assert (chunk.page, chunk.page_end) == (1, 2)
    stripped = msgspec.structs.replace(document, pages=())
    stored = Stored(stripped, is_known=False, chunks=(msgspec.structs.replace(chunk, text=""),))
    found = back_fill.rows_of(stored, ParentsSettings(enabled=True, size=9, overlap=0))
    assert [text[start:end] for start, end, *_ in found] == ["one\n\ntwo", "four", "five\n\nsix"]
    assert [row[5:7] for row in found] == [(1, 2), (1, 2), (1, 2)]


def test_chunks_without_pages_or_headings_tell_that_there_are_none() -> None:
    chunk = Chunk(document_id="d", index=0, start=0, end=9, text="", start_line=1, end_line=1)
    document = Document(id="d", text="oak, elm,")
    stored = Stored(document, is_known=False, chunks=(chunk,))
    assert back_fill.rows_of(stored, ON) == [(0, 9, 0, 0, 0, None, None, None, 0, None)]
