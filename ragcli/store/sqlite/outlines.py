"""Where a document's pages and headings start, as its reader saw it: needed to cut its text anew (I12, I13).

Only documents that have any of these have a row. Nothing is known of documents that came in before version 3, those
with ids below `outlines_from` in `meta`: ids are never used twice, so that one number tells them.
"""

from __future__ import annotations

import sqlite3

import msgspec

from ragcli.types import Document, Heading

TABLES = (
    # JSON: [offsets of pages, [offset, level, words] of headings]
    "CREATE TABLE outlines(document INTEGER PRIMARY KEY, outline TEXT NOT NULL)",
)
COUNTERS = {"outlines_from": 1}


class Outline(msgspec.Struct, frozen=True, array_like=True):
    """As in `Document`."""

    pages: tuple[int, ...] = ()
    headings: tuple[tuple[int, int, str], ...] = ()

    @property
    def as_headings(self) -> tuple[Heading, ...]:
        """The headings as a document has them."""
        return tuple(Heading(*one) for one in self.headings)


def encoded(document: Document) -> str | None:
    """The document's outline as it is stored; None = it has none."""
    if not (document.pages or document.headings):
        return None
    headings = tuple((one.start, one.level, one.title) for one in document.headings)
    return msgspec.json.encode(Outline(document.pages, headings)).decode()


def of(db: sqlite3.Connection, document: int) -> Outline | None:
    """The outline of a document; None = nobody knows it."""
    row = db.execute("SELECT outline FROM outlines WHERE document = ?", (document,)).fetchone()
    if row:
        return msgspec.json.decode(row[0], type=Outline)
    (first,) = db.execute("SELECT value FROM meta WHERE key = 'outlines_from'").fetchone()
    return Outline() if document >= first else None


def begin(db: sqlite3.Connection) -> None:
    """The documents that are there now have none; in the migration's transaction."""
    db.execute(
        "INSERT OR REPLACE INTO meta SELECT 'outlines_from', value FROM meta WHERE key = 'next_document'",
    )


def put(db: sqlite3.Connection, rows: list[tuple[int, str]]) -> None:
    """Write outlines of new documents."""
    db.executemany("INSERT INTO outlines VALUES (?, ?)", rows)


def delete(db: sqlite3.Connection, document: int) -> None:
    """The document goes."""
    db.execute("DELETE FROM outlines WHERE document = ?", (document,))
