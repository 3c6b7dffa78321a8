"""Whether posting lists hold together: with themselves, with the dead, and with the lengths of the chunks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from struct import iter_unpack
from typing import TYPE_CHECKING

from ragcli.store.sqlite.layout import BLOCK, SATURATED
from ragcli.store.sqlite.merging import PostingList, read_lists

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def check(db: sqlite3.Connection) -> list[str]:
    """Every fault found, in words; [] when there is none. Reads all postings."""
    return list(_faults(db))


def _faults(db: sqlite3.Connection) -> Iterator[str]:
    import numpy as np

    lengths = np.array(db.execute("SELECT id, length FROM chunks ORDER BY id").fetchall(), np.int64).reshape(-1, 2)
    counted = np.zeros(len(lengths), np.int64)
    dead = np.array(sorted(_dead(db)), np.int64)
    for segment, first, last, chunks in db.execute("SELECT id, first, last, chunks FROM segments ORDER BY first"):
        alive = int(np.searchsorted(lengths[:, 0], last, "right") - np.searchsorted(lengths[:, 0], first))
        if alive != chunks:
            yield f"segment {segment} counts {chunks} chunks; {alive} are there"
        for entry in read_lists(db, segment):
            yield from _list_faults(entry, segment, lengths[:, 0], counted, dead)
    wrong = np.flatnonzero(counted != lengths[:, 1])
    if len(wrong):
        first_wrong = lengths[wrong[0], 0]
        yield f"{len(wrong)} chunks have a length that their postings don't add up to, the first is {first_wrong}"


def _dead(db: sqlite3.Connection) -> Iterator[int]:
    for block, ids in db.execute("SELECT block, ids FROM deleted"):
        yield from (block * BLOCK + low for low in memoryview(ids).cast("H"))


def _list_faults(
    entry: PostingList, segment: int, ids: NDArray[np.int64], counted: NDArray[np.int64], dead: NDArray[np.int64]
) -> Iterator[str]:
    """Faults of one list; adds its frequencies to `counted`, chunk by chunk.  # ids, counted: (n_chunks,)"""
    import numpy as np

    name = f"segment {segment}, term {entry.term!r}"
    pairs = list(iter_unpack("<II", entry.heads))
    sizes = {sum(size for _, size in pairs), len(entry.ids) // 2, len(entry.impacts), len(entry.tfs)}
    if len(sizes) > 1:
        yield f"{name}: columns of different lengths"
        return
    blocks = np.repeat(np.array([block for block, _ in pairs], np.int64), [size for _, size in pairs])
    chunks = blocks * BLOCK + np.frombuffer(entry.ids, "<u2")
    if not np.all(np.diff(chunks) > 0):
        yield f"{name}: chunk ids do not ascend"
    alive = ~np.isin(chunks, dead, assume_unique=True)
    if int(alive.sum()) != entry.df:
        yield f"{name}: df is {entry.df}, but {int(alive.sum())} chunks have it"
    tf = np.frombuffer(entry.tfs, np.uint8).astype(np.int64)
    for at, large in iter_unpack("<II", entry.overflow or b""):
        tf[at] = large
    if np.any(tf[np.frombuffer(entry.tfs, np.uint8) == SATURATED] < SATURATED) or np.any(tf == 0):
        yield f"{name}: a frequency is missing"
    at = np.searchsorted(ids, chunks[alive])
    known = (at < len(ids)) & (ids[np.minimum(at, len(ids) - 1)] == chunks[alive]) if len(ids) else at < 0
    if not np.all(known):
        yield f"{name}: names a chunk that is not there"
    np.add.at(counted, at[known], tf[alive][known])
