"""Parents in the index: which one a chunk has, what comes back of it, what the check finds (spec I23)."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from ragcli.errors import IndexMismatch
from ragcli.options import ChunkingSettings, ParentsSettings, Settings
from ragcli.store.sqlite import schema
from ragcli.store.sqlite.inspect import Inspector
from ragcli.store.sqlite.store import SqliteStore
from tests import indexes
from tests.crash import WORDS

DOCS = {
    "a.md": "---\nyear: 2024\n---\n# Alpha\n\nhello world\n\n## Beta\n\nmore of it\n", "b.txt": "bye\n", "c.txt": "",
}  # fmt: skip


def keeping(size: int = 2048, overlap: int = 100, **sections: object) -> Settings:
    return indexes.keywords(parents=ParentsSettings(enabled=True, size=size, overlap=overlap), **sections)


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Parents of at most 20 characters, chunks of at most 12."""
    settings = keeping(20, 5, chunking=ChunkingSettings(size=12, overlap=3))
    indexes.take_in(tmp_path / "i.db", indexes.write(tmp_path / "docs", DOCS), settings=settings)
    return tmp_path / "i.db"


def opened(index: Path) -> closing[SqliteStore]:
    return closing(SqliteStore.open(index, Settings(), set()))


def best(start: int, end: int, parents: list[tuple[int, int]]) -> int:
    """The parent with most characters of the span, the earlier of equals: by counting characters."""
    common = [len(set(range(start, end)) & set(range(*parent))) for parent in parents]
    return common.index(max(common))


@pytest.mark.spec("I23")
@pytest.mark.parametrize("seed", range(12))
def test_a_chunks_parent_holds_the_most_of_it(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    size, whole = chance.randrange(10, 400), chance.randrange(5, 700)
    settings = keeping(
        whole, chance.randrange(whole), chunking=ChunkingSettings(size=size, overlap=chance.randrange(size))
    )
    texts = {f"{n}.txt": _text(chance) for n in range(6)}
    indexes.take_in(tmp_path / "i.db", indexes.write(tmp_path / "docs", texts), settings=settings)
    rows = indexes.parents_of(tmp_path / "i.db")
    chunks = indexes.rows(
        tmp_path / "i.db",
        'SELECT c.id, document_id, c.start, c."end" FROM chunks c JOIN documents d ON d.id = c.document',
    )
    with opened(tmp_path / "i.db") as store:
        found = store.parents([number for number, *_ in chunks])
    assert len(chunks) > 20
    for number, name, start, end in chunks:
        assert found[number].index == best(start, end, [row[:2] for row in rows[name]])


def _text(chance: random.Random) -> str:
    paragraphs = (" ".join(chance.choices(WORDS, k=chance.randrange(1, 25))) for _ in range(chance.randrange(1, 30)))
    return "\n\n".join(paragraphs) + "\n"


@pytest.mark.spec("I23")
def test_of_two_that_hold_as_much_the_earlier_one(index: Path) -> None:
    (number, start, end), *_ = indexes.rows(
        index, 'SELECT c.id, c.start, c."end" FROM chunks c JOIN documents d ON d.id = document WHERE document_id = ?',
        "a.md",
    )  # fmt: skip
    assert (start, end) == (0, 7)  # "# Alpha"
    with closing(sqlite3.connect(index)) as db:
        db.execute("DELETE FROM parents WHERE document = (SELECT id FROM documents WHERE document_id = 'a.md')")
        for place, span in enumerate([(0, 3), (2, 5), (4, 24)]):  # 3, 3 and 3 characters of it
            db.execute(
                'INSERT INTO parents(document, start, "end", "index", start_line, end_line, heading_level) '
                "SELECT id, ?, ?, ?, 0, 0, 0 FROM documents WHERE document_id = 'a.md'",
                (*span, place),
            )
        db.commit()
    with opened(index) as store:
        assert store.parents([number])[number].index == 0


@pytest.mark.spec("I23", "I15")
def test_a_parent_comes_back_as_a_chunk_of_its_document(index: Path) -> None:
    text = "# Alpha\n\nhello world\n\n## Beta\n\nmore of it\n"  # front matter takes lines 1 to 3
    with opened(index) as store:
        children = {chunk.index: number for number, chunk in store.fetch(range(9)).items() if chunk.title == "Alpha"}
        found = store.parents(list(children.values()))
        child = store.fetch([children[0]])[children[0]]
    for parent in found.values():
        assert parent.text == text[parent.start : parent.end]
        assert len(parent.text) <= 20
        assert parent.start_line == 4 + text.count("\n", 0, parent.start)
        assert parent.end_line == 4 + text.count("\n", 0, parent.end - 1)
        assert (parent.document_id, parent.path, parent.title) == (child.document_id, child.path, child.title)
        assert parent.metadata == child.metadata == {"year": 2024}
    first, last = found[children[0]], found[children[max(children)]]
    assert (first.index, first.heading, first.heading_level, first.heading_breadcrumb) == (0, "Alpha", 1, "Alpha")
    assert last.heading_breadcrumb == "Alpha > Beta"


@pytest.mark.spec("I23")
def test_what_has_no_parent_is_left_out(index: Path, tmp_path: Path) -> None:
    indexes.take_in(tmp_path / "plain.db", tmp_path / "docs")
    with opened(tmp_path / "plain.db") as store:
        assert not store.keeps_parents()
        assert store.parents([1, 2]) == {}
    with opened(index) as store:
        assert store.keeps_parents()
        assert store.parents([]) == {}
        assert store.parents([999]) == {}


@pytest.mark.spec("P7")
def test_each_parents_text_is_read_once(tmp_path: Path) -> None:
    settings = keeping(chunking=ChunkingSettings(size=100, overlap=10))
    text = " ".join(WORDS[n % len(WORDS)] for n in range(600))
    indexes.take_in(tmp_path / "i.db", indexes.write(tmp_path / "docs", {"a.txt": text}), settings=settings)
    with opened(tmp_path / "i.db") as store:
        said: list[str] = []
        store.db.set_trace_callback(said.append)
        found = store.parents(range(40))
    parents = {parent.index for parent in found.values()}
    assert len(found) > 2 * len(parents)
    assert sum("FROM text_blocks" in statement for statement in said) == len(parents)


# ------------------------------------------------------------------------------------------------------------- inspect


@pytest.mark.spec("I23", "A11")
def test_inspect_counts_parents_and_shows_a_chunks_own(index: Path, tmp_path: Path) -> None:
    rows = indexes.parents_of(index)
    with opened(index) as store:
        stats, view = Inspector(store).stats(), Inspector(store).chunk("a.md#0")
    assert (stats.parents, stats.unparented) == (sum(map(len, rows.values())), 0)
    assert stats.settings["parents"] == {"enabled": True, "size": 20, "overlap": 5}
    assert view.parent is not None
    assert (view.parent.index, view.parent.start) == (0, 0)
    indexes.take_in(tmp_path / "plain.db", tmp_path / "docs")
    with opened(tmp_path / "plain.db") as store:
        assert Inspector(store).chunk("a.md#0").parent is None
        assert (Inspector(store).stats().parents, "parents" in Inspector(store).stats().settings) == (0, False)


FAULTS = {
    "DELETE FROM documents WHERE document_id = 'b.txt'": "parents of no document",
    "INSERT INTO outlines VALUES (99, '[]')": "1 outlines of no document",
    "INSERT INTO unparented VALUES (99)": "1 documents that wait for parents and are not there",
    "INSERT INTO unparented SELECT id FROM documents WHERE document_id = 'b.txt'": "wait for parents and have some",
    "DELETE FROM meta WHERE key = 'parents'": "in an index that keeps none",
    'DELETE FROM parents WHERE "index" = 1': "a.md: parent 1 is missing",
    'DELETE FROM parents WHERE "index" = 0': "b.txt: the end of its text is in no parent",
    'DELETE FROM parents WHERE "index" = (SELECT max("index") FROM parents)': "a.md: the end of its text is in",
    'UPDATE parents SET "end" = 999': "parent 0 is no span of its text",
    'UPDATE parents SET start = start + 1 WHERE "index" = 0': "text before parent 0 is in no parent",
}  # fmt: skip


@pytest.mark.spec("I35")
@pytest.mark.parametrize("statement", FAULTS)
def test_each_kind_of_fault_is_found(index: Path, statement: str) -> None:
    assert indexes.faults(index) == []
    with closing(sqlite3.connect(index)) as db:
        assert db.execute(statement).rowcount > 0
        db.commit()
    assert any(FAULTS[statement] in fault for fault in indexes.faults(index))


@pytest.mark.spec("I35")
def test_a_chunk_between_parents_is_found(index: Path) -> None:
    with closing(sqlite3.connect(index)) as db:
        db.execute('UPDATE parents SET "end" = start + 1')
        db.commit()
    assert any(fault.startswith("a.md: chunk ") and fault.endswith("has no parent") for fault in indexes.faults(index))


# ----------------------------------------------------------------------------------------------------------- migration


@pytest.mark.spec("I37")
def test_version_2_is_migrated_in_place(tmp_path: Path) -> None:
    index, docs = tmp_path / "i.db", indexes.write(tmp_path / "docs", DOCS)
    indexes.take_in(index, docs)
    before = indexes.content(index)
    indexes.made_version_2(index)
    with pytest.raises(IndexMismatch, match="format 2; this one reads 3"):
        schema.open_reader(index)
    report = indexes.take_in(index, docs)
    assert (report.unchanged, report.added, report.changed, report.parents) == (3, 0, 0, 0)
    assert indexes.content(index) == before
    assert indexes.faults(index) == []
    with closing(schema.open_reader(index)) as db:
        assert schema.meta(db)["outlines_from"] == schema.meta(db)["next_document"] == 4
