"""Vectors in SQLite: what a transaction keeps in step (spec I31, I34)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ragcli.chunk.annotate import headed
from ragcli.store.sqlite import documents, schema, vectors
from ragcli.types import EmbedderCard
from tests import indexes

CARD = EmbedderCard(name="m", fingerprint="00", dimension=4)


@pytest.fixture
def db(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """A keyword index of two documents, three chunks, that is to be embedded from now on."""
    docs = indexes.write(tmp_path / "docs", {"a.txt": "one oak", "b.txt": "x " * 1000})
    index = indexes.index_of(tmp_path)
    indexes.take_in(index, docs)
    with closing(schema.open_writer(index)) as opened:
        with schema.transaction(opened):
            vectors.start_over(opened, CARD)
        yield opened


def meta(db: sqlite3.Connection, key: str) -> int:
    return int(str(schema.meta(db)[key]))


def row(chunk: int, text: str, value: float = 1.0) -> vectors.Row:
    return chunk, vectors.digest(text), vectors.packed(np.array([value, 0, 0, 0], np.float32))


def write(db: sqlite3.Connection, *rows: vectors.Row, settled: tuple[tuple[int, str | None], ...] = ()) -> None:
    with documents.batch(db, str.split, now=0) as batch:
        batch.vectors.put(rows)
        batch.vectors.settle(settled)


def test_starting_over_lets_every_document_wait(db: sqlite3.Connection) -> None:
    assert vectors.card(db) == CARD
    assert vectors.waiting(db, 0, 10) == [1, 2]
    assert (vectors.count(db), vectors.missing(db), vectors.total_chunks(db)) == (0, 3, 3)


@pytest.mark.spec("I24")
@pytest.mark.parametrize(
    ("context", "name", "expected"),
    [
        ("", "", "text"),
        ("Title", "", "Title\ntext"),
        ("Title\nA > B", "", "Title\nA > B\ntext"),
        ("Title\nA > B\nfile.md", "file.md", "Title\nA > B\ntext"),
        ("file.md", "file.md", "text"),
        ("My file.md", "file.md", "My file.md\ntext"),
        ("Title\na b.md", "a  b.md", "Title\ntext"),
    ],
)
def test_a_chunk_is_embedded_with_its_header_but_for_the_file_name(context: str, name: str, expected: str) -> None:
    assert headed(context, name, "text") == expected


def test_what_waits_is_the_chunk_as_it_is_embedded(db: sqlite3.Connection) -> None:
    (pending,) = documents.without_vectors(db, 1)
    assert (pending.document, pending.text, pending.hash) == (1, "one oak", vectors.digest("one oak"))


def test_what_is_put_counts_and_changes_the_state(db: sqlite3.Connection) -> None:
    state = meta(db, "vectors_state")
    (first,) = documents.without_vectors(db, 1)
    write(db, row(first.chunk, first.text), settled=((1, None),))
    assert (vectors.count(db), vectors.missing(db), vectors.waiting(db, 0, 10)) == (1, 2, [2])
    changed = meta(db, "vectors_state")
    assert changed != state
    assert list(documents.without_vectors(db, 1)) == []
    write(db)
    assert meta(db, "vectors_state") == changed


def test_a_chunk_that_is_gone_or_has_one_takes_no_vector(db: sqlite3.Connection) -> None:
    (first,) = documents.without_vectors(db, 1)
    write(db, row(first.chunk, "a", 1.0), row(10_000, "b"))
    write(db, row(first.chunk, "c", -1.0))
    assert vectors.count(db) == 1
    assert db.execute("SELECT hash FROM vectors").fetchall() == [(vectors.digest("a"),)]


def test_a_failed_document_waits_with_its_reason(db: sqlite3.Connection) -> None:
    write(db, settled=((2, "too long"),))
    assert vectors.waiting(db, 0, 10) == [1, 2]
    assert vectors.reasons(db) == [("b.txt", "too long")]


def test_a_deleted_document_leaves_its_vectors_to_equal_text_until_the_run_ends(db: sqlite3.Connection) -> None:
    (first,) = documents.without_vectors(db, 1)
    write(db, row(first.chunk, first.text, 0.5))
    with documents.batch(db, str.split, now=0) as batch:
        batch.delete([1])
    assert vectors.count(db) == 0
    assert vectors.waiting(db, 0, 10) == [2]
    known = vectors.known(db, [first.hash, vectors.digest("never seen")])
    assert known == {first.hash: np.array([0.5, 0, 0, 0], "<f2").tobytes()}
    vectors.drop_spare(db)
    assert vectors.known(db, [first.hash]) == {}


def test_starting_over_without_an_embedder_leaves_a_keyword_index(db: sqlite3.Connection) -> None:
    (first,) = documents.without_vectors(db, 1)
    write(db, row(first.chunk, first.text))
    epoch = meta(db, "vectors_epoch")
    with schema.transaction(db):
        vectors.start_over(db, None)
    assert vectors.card(db) is None
    assert (vectors.count(db), vectors.waiting(db, 0, 10)) == (0, [])
    assert meta(db, "vectors_epoch") == epoch + 1


def test_the_side_file_lies_beside_the_index() -> None:
    assert vectors.side_file("a/.ragcli/index.db") == "a/.ragcli/index.vec"
    assert vectors.side_file("a/other") == "a/other.vec"
