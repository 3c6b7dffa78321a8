"""Parents: larger spans of a document's text, which stand in for the chunks that were found in them (spec I23).

A row holds no text (`text_blocks` has it) and is found by its document and its start. A chunk's parent is worked out
when it is asked for: the one that has most characters in common with it, the earlier of two that have equally many. No
parent is longer than `size`, so those that hold any of a chunk start in a known stretch: a look-up reads a few
neighbouring rows, and a change of parents touches no chunk.

Whether an index keeps parents, and how long they are, is in `meta`; the documents that still have none wait in
`unparented`. Cuts nothing itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from ragcli.options import ParentsSettings
from ragcli.types import Chunk

TABLES = (
    """CREATE TABLE parents(
  document INTEGER NOT NULL,
  start INTEGER NOT NULL, "end" INTEGER NOT NULL,
  "index" INTEGER NOT NULL,        -- from 0, in the order of the starts
  start_line INTEGER NOT NULL, end_line INTEGER NOT NULL,  -- counted from the document's first_line
  page INTEGER, page_end INTEGER,
  heading TEXT, heading_level INTEGER NOT NULL, breadcrumb TEXT,
  PRIMARY KEY(document, start)
) WITHOUT ROWID""",
    # documents whose parents are still to be cut
    "CREATE TABLE unparented(document INTEGER PRIMARY KEY)",
)

# start, end, index, start_line, end_line, page, page_end, heading, heading_level, breadcrumb
Row = tuple[int, int, int, int, int, int | None, int | None, str | None, int, str | None]
COLUMNS = (
    'p.start, p."end", p."index", p.start_line, p.end_line, p.page, p.page_end, '
    "p.heading, p.heading_level, p.breadcrumb"
)


def row_of(chunk: Chunk, first_line: int) -> Row:
    """A parent, cut as a chunk is, as it is stored; `first_line`: its document's."""
    return (
        chunk.start, chunk.end, chunk.index, chunk.start_line - first_line, chunk.end_line - first_line,
        chunk.page, chunk.page_end, chunk.heading or None, chunk.heading_level, chunk.heading_breadcrumb or None,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------------- what is kept


def kept(db: sqlite3.Connection) -> ParentsSettings | None:
    """How the index keeps parents; None = it keeps none."""
    row = db.execute("SELECT value FROM meta WHERE key = 'parents'").fetchone()
    return msgspec.json.decode(row[0], type=ParentsSettings) if row else None


def start_over(db: sqlite3.Connection, settings: ParentsSettings | None) -> int:
    """Keep parents like this from now on (None: no more): all documents wait for theirs. In the caller's transaction.

    Gives the number of parents that went.
    """
    gone = total(db)
    db.execute("DELETE FROM parents")
    db.execute("DELETE FROM unparented")
    if settings is None:
        db.execute("DELETE FROM meta WHERE key = 'parents'")
    else:
        value = msgspec.json.encode(settings).decode()
        db.execute("INSERT OR REPLACE INTO meta VALUES ('parents', ?)", (value,))
        db.execute("INSERT INTO unparented SELECT id FROM documents WHERE chunk_count > 0")
    db.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")
    return gone


def total(db: sqlite3.Connection) -> int:
    """How many parents there are."""
    return int(db.execute("SELECT count(*) FROM parents").fetchone()[0])


def missing(db: sqlite3.Connection) -> int:
    """How many documents wait for their parents."""
    return int(db.execute("SELECT count(*) FROM unparented").fetchone()[0])


def waiting(db: sqlite3.Connection, documents: int, characters: int) -> list[int]:
    """The next documents that wait, at most so many, with together at most so many characters; at least one, if any."""
    rows = db.execute(
        "SELECT u.document, d.characters FROM unparented u JOIN documents d ON d.id = u.document "
        "ORDER BY u.document LIMIT ?",
        (documents,),
    )
    found: list[int] = []
    for number, length in rows:
        characters -= length
        if found and characters < 0:
            break
        found.append(number)
    return found


# -------------------------------------------------------------------------------------------------------------- writing


def put(db: sqlite3.Connection, rows: Sequence[tuple[int, *Row]]) -> None:
    """Write parents, each after the number of its document."""
    db.executemany(f"INSERT INTO parents VALUES ({','.join('?' * 11)})", rows)  # noqa: S608 - no value


def await_(db: sqlite3.Connection, documents: Sequence[int]) -> None:
    """These documents came in without parents, where the index keeps them."""
    db.executemany("INSERT INTO unparented VALUES (?)", [(number,) for number in documents])


def settle(db: sqlite3.Connection, documents: Sequence[int]) -> None:
    """These documents have their parents now; in the caller's transaction."""
    db.executemany("DELETE FROM unparented WHERE document = ?", [(number,) for number in documents])
    db.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")


def delete(db: sqlite3.Connection, document: int) -> None:
    """The document goes."""
    db.execute("DELETE FROM parents WHERE document = ?", (document,))
    db.execute("DELETE FROM unparented WHERE document = ?", (document,))


# ------------------------------------------------------------------------------------------------------------- fetching


def of_chunks(db: sqlite3.Connection, chunks: Sequence[int]) -> dict[int, tuple[int, Row]]:
    """Chunk id -> the number of its document, and its parent. Chunks that have none are left out."""
    settings = kept(db)
    if settings is None or not chunks:
        return {}
    ids = msgspec.json.encode(list(chunks)).decode()
    return {chunk: (document, tuple(row)) for chunk, document, *row in db.execute(_OF_CHUNKS, (ids, settings.size))}


_OF_CHUNKS = f"""
SELECT c.id, c.document, {COLUMNS} FROM json_each(?1) j JOIN chunks c ON c.id = j.value
JOIN parents p ON p.document = c.document AND p.start = (
  SELECT start FROM (
    SELECT q.start, min(q."end", c."end") - max(q.start, c.start) AS common FROM parents q
    WHERE q.document = c.document AND q.start > c.start - ?2 AND q.start < c."end" AND q."end" > c.start
  ) ORDER BY common DESC, start LIMIT 1
)
"""  # noqa: S608 - a constant


def of_document(db: sqlite3.Connection, document: int) -> list[Row]:
    """A document's parents, in their order."""
    return db.execute(f"SELECT {COLUMNS} FROM parents p WHERE document = ? ORDER BY start", (document,)).fetchall()  # noqa: S608
