"""Which chunks a search may see at all: the metadata filter, answered inside the store before the cut to k (spec R9).

Conditions become id ranges of chunks: a document's chunks have consecutive ids, so a filter that keeps whole folders
keeps few ranges. `filters.matches` is the reference for what equals what.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from math import isnan

from ragcli.filters import PATH_KEY, kind_of
from ragcli.options import Condition
from ragcli.store.sqlite.tags import comparable

Range = tuple[int, int]  # first and last chunk id, both counted in


def eligible(db: sqlite3.Connection, conditions: Sequence[Condition]) -> list[Range] | None:
    """The chunks of the documents that meet all `conditions`: sorted, disjoint ranges; None = no condition."""
    if not conditions:
        return None
    clauses, values = zip(*(_clause(condition) for condition in conditions), strict=True)
    statement = " AND ".join(
        ["SELECT first_chunk, first_chunk + chunk_count - 1 FROM documents WHERE chunk_count > 0", *clauses]
    )
    rows = db.execute(f"{statement} ORDER BY first_chunk", [value for group in values for value in group])
    return list(_joined(rows))


def _clause(condition: Condition) -> tuple[str, tuple[object, ...]]:
    if condition.key == PATH_KEY:
        return "document_id GLOB ?", (sqlite_glob(str(condition.value)),)
    if isinstance(condition.value, float) and isnan(condition.value):
        return "0", ()
    clause = "id IN (SELECT document FROM metadata WHERE key = ? AND kind = ? AND value = ?)"
    return clause, (condition.key, kind_of(condition.value), comparable(condition.value))


def _joined(ranges: Iterable[Range]) -> Iterator[Range]:
    """Neighbours without a gap become one range."""
    start, end = None, -2
    for first, last in ranges:
        if start is not None and first == end + 1:
            end = last
            continue
        if start is not None:
            yield start, end
        start, end = first, last
    if start is not None:
        yield start, end


def sqlite_glob(pattern: str) -> str:
    """A pattern of `fnmatch` as SQLite's GLOB: `[!a]` is `[^a]` there, and a lone `[` needs brackets."""
    out: list[str] = []
    at = 0
    while at < len(pattern):
        end = _class_end(pattern, at) if pattern[at] == "[" else 0
        if end:
            inside = pattern[at + 1 : end]
            out.append(f"[^{inside[1:]}]" if inside[0] == "!" else _plain_class(inside))
            at = end + 1
        else:
            out.append("[[]" if pattern[at] == "[" else pattern[at])
            at += 1
    return "".join(out)


def _class_end(pattern: str, at: int) -> int:
    """Where the class that opens at `at` closes; 0 if it never does. A `]` right after the opening is a member."""
    start = at + 1 + (pattern[at + 1 : at + 2] == "!")
    return max(pattern.find("]", start + 1), 0)


def _plain_class(inside: str) -> str:
    """A class that starts with `^` means that character in a shell; GLOB would negate."""
    if not inside.startswith("^"):
        return f"[{inside}]"
    return f"[{inside[1:]}^]" if len(inside) > 1 else "^"


def kinds(db: sqlite3.Connection) -> dict[str, set[str]]:
    """Every metadata key in the index with the kinds of its values: for the note of an empty result.

    One look-up for each pair of the primary key, however many documents carry it.
    """
    found: dict[str, set[str]] = {}
    pair = ("", "")
    while row := db.execute(_NEXT, pair).fetchone():
        pair = row
        found.setdefault(row[0], set()).add(row[1])
    return found


_NEXT = "SELECT key, kind FROM metadata WHERE (key, kind) > (?, ?) ORDER BY key, kind LIMIT 1"
