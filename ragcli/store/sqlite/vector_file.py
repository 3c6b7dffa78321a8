"""The side file `INDEX.vec`: the vectors of an index laid out to be mapped into memory and searched where they lie.

SQLite is the truth; this file is a copy that anyone may delete. It is made beside its place and renamed into it once
it is whole and on disk, so that whoever opens it sees all of it or the one before. Its header tells which state of
which index it shows. One that shows another state still serves for the vectors that are the same there: those with the
same chunk id and the same hash of their text, in the same epoch. Layout, each section on a multiple of 64 bytes::

    header  magic, format, dimension, count, state, epoch, index; its blake2b
    ids     int64 (n,)        ascending chunk ids
    tags    uint64 (n,)       the first 8 bytes of the text's hash
    norms   float32 (n,)
    mean    float32 (d,)      of a sample; what the bits are held against
    planes  uint64 (words, n) `bit_planes`
    rows    float16 (n, d)

Only the header is sealed: a checksum of the rest would cost more than a query. What is seen at a glance makes a file
useless (`load`), a few rows are compared whenever one is opened (`agrees`), all are looked at before they are copied
(`coherent`), and the check of the index compares everything (`differs`).

Searches nothing (`dense` does).
"""

from __future__ import annotations

import mmap
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from errno import ENOENT
from hashlib import blake2b
from json import dumps
from struct import Struct
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ragcli.errors import IndexCorrupt
from ragcli.store.sqlite import bit_planes, cosine, vectors

if TYPE_CHECKING:
    from io import FileIO

    from numpy.typing import NDArray

    Ids = NDArray[np.int64]
    Halves = NDArray[np.float16]

MAGIC = b"\x93RAGVEC\n"
FORMAT = 1
BLOCK = 8_192  # rows at a time, when a file is made
SAMPLE = 16_384  # vectors that tell the mean well enough
HINT = "embed everything anew: ragcli ingest --re-embed"
GROWN = 0.25  # the share of vectors that a file may lack before a reader makes it anew
PROBES = 64  # rows that are compared with SQLite's when a file is opened: a third of a millisecond
LENGTH_SLACK = 2.0**-10  # a vector of length 1 differs by less from it once it is rounded to float16
NORM_SLACK = 1e-6  # of a norm that is computed again
_FIELDS = Struct("<8sIIQqq16s")
_CHECKSUM = 16
_HEADER_BYTES = 128
_ALIGNMENT = 64


class Snapshot(msgspec.Struct, frozen=True):
    """Which vectors an index has: `state` is another after each change, `epoch` after all were replaced."""

    index: bytes  # tells indexes apart: when it was made, and with which embedder
    epoch: int
    state: int
    count: int

    @classmethod
    def read(cls, db: sqlite3.Connection) -> Snapshot:
        """That of the index as this connection sees it now."""
        row = dict(db.execute(_META).fetchall())
        index = blake2b(f"{row.get('created_at')}\n{row.get('embedder')}".encode(), digest_size=16).digest()
        values = (int(row.get(key) or 0) for key in ("vectors_epoch", "vectors_state", "vector_count"))
        return cls(index, *values)


_META = """
SELECT key, value FROM meta WHERE key IN ('created_at', 'embedder', 'vectors_epoch', 'vectors_state', 'vector_count')
"""


class VectorFile(msgspec.Struct, frozen=True):
    """An open side file: arrays that lie in its mapping, which lasts as long as one of them does."""

    shows: Snapshot
    ids: Ids  # (n,)
    tags: NDArray[np.uint64]  # (n,)
    norms: NDArray[np.float32]  # (n,)
    mean: NDArray[np.float32]  # (d,)
    planes: NDArray[np.uint64]  # (words, n)
    rows: Halves  # (n, d)

    def serves(self, now: Snapshot) -> bool:
        """Whether some of its vectors can still be those of the index."""
        return (self.shows.index, self.shows.epoch) == (now.index, now.epoch)


class Updated(msgspec.Struct, frozen=True):
    """What bringing the file up to date did: vectors copied from the one before, read from SQLite, and dropped."""

    kept: int = 0
    added: int = 0
    dropped: int = 0


# ---------------------------------------------------------------------------------------------------------- reading


def load(path: str, dimension: int) -> VectorFile | None:
    """The file at `path`; None when there is none that can be used: absent, cut short, of another shape, or with a
    header, ids or norms that can't be right.
    """
    file = _opened(path, dimension)
    return file if file is not None and _plausible(file) else None


def _opened(path: str, dimension: int) -> VectorFile | None:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - on every query's way
            header = file.read(_HEADER_BYTES)
            shows = _shown(header, dimension)
            if shows is None or os.fstat(file.fileno()).st_size != _Layout(shows.count, dimension).size:
                return None
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError):
        return None
    return _mapped(mapped, shows, dimension)


def _shown(header: bytes, dimension: int) -> Snapshot | None:
    if len(header) < _HEADER_BYTES or header != _sealed(header[: _FIELDS.size]):
        return None
    magic, version, width, count, state, epoch, index = _FIELDS.unpack_from(header)
    return Snapshot(index, epoch, state, count) if (magic, version, width) == (MAGIC, FORMAT, dimension) else None


def _sealed(fields: bytes) -> bytes:
    return (fields + blake2b(fields, digest_size=_CHECKSUM).digest()).ljust(_HEADER_BYTES, b"\0")


class _Layout:
    """Where each section starts, and how long the file is."""

    def __init__(self, count: int, dimension: int) -> None:
        planes = bit_planes.words(dimension)
        lengths = (8 * count, 8 * count, 4 * count, 4 * dimension, 8 * planes * count, 2 * count * dimension)
        starts = [_HEADER_BYTES]
        for length in lengths:
            starts.append(starts[-1] + -(-length // _ALIGNMENT) * _ALIGNMENT)
        self.ids, self.tags, self.norms, self.mean, self.planes, self.rows, self.size = starts


def _mapped(mapped: mmap.mmap, shows: Snapshot, dimension: int) -> VectorFile:
    at, count, planes = _Layout(shows.count, dimension), shows.count, bit_planes.words(dimension)
    return VectorFile(
        shows,
        np.frombuffer(mapped, "<i8", count, at.ids),
        np.frombuffer(mapped, "<u8", count, at.tags),
        np.frombuffer(mapped, "<f4", count, at.norms),
        np.frombuffer(mapped, "<f4", dimension, at.mean),
        np.frombuffer(mapped, "<u8", count * planes, at.planes).reshape(planes, count),
        np.frombuffer(mapped, "<f2", count * dimension, at.rows).reshape(count, dimension),
    )


@np.errstate(invalid="ignore", over="ignore")  # not a number is damage, and no warning
def _plausible(file: VectorFile) -> bool:
    return bool((file.ids[1:] > file.ids[:-1]).all() and (np.abs(file.norms - 1) <= LENGTH_SLACK).all())


@np.errstate(invalid="ignore", over="ignore")
def agrees(db: sqlite3.Connection, file: VectorFile, positions: Ids | None = None) -> bool:
    """Whether a few rows, spread over the file or over `positions`, are those of SQLite."""
    count = len(file.ids) if positions is None else len(positions)
    at = np.unique(np.linspace(0, count - 1, min(PROBES, count)).astype(np.int64))
    at = at if positions is None else positions[at]
    chunks, rows = rows_of(db, file.ids[at].tolist(), file.rows.shape[1])
    if chunks != file.ids[at].tolist() or not _same(rows, file.rows[at]):
        return False
    return np.array_equal(bit_planes.signs(cosine.widened(rows), file.mean), file.planes[:, at])


def _same(one: Halves, other: Halves) -> bool:
    """To the bit."""
    return np.array_equal(one.view("<i2"), other.view("<i2"))


@np.errstate(invalid="ignore", over="ignore")
def coherent(file: VectorFile) -> bool:
    """Whether norms and bits are those of the rows. Reads the whole file, nothing of SQLite."""
    for start in range(0, len(file.ids), BLOCK):
        block = slice(start, start + BLOCK)
        wide = cosine.widened(file.rows[block])
        if not (np.abs(cosine.norms(wide) - file.norms[block]) <= NORM_SLACK).all():
            return False
        if not np.array_equal(bit_planes.signs(wide, file.mean), file.planes[:, block]):
            return False
    return True


def differs(db: sqlite3.Connection, path: str, dimension: int) -> bool:
    """Whether the file says that it shows the index as it is, and does not. Compares every vector."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            claim = _shown(file.read(_HEADER_BYTES), dimension)
    except OSError:
        return False
    if claim is None or claim != Snapshot.read(db):
        return False
    found = load(path, dimension)
    return found is None or not (_lists(found, *live(db)) and coherent(found) and _holds(db, found))


def _lists(file: VectorFile, ids: Ids, tags: NDArray[np.uint64]) -> bool:
    return np.array_equal(file.ids, ids) and np.array_equal(file.tags, tags)


def _holds(db: sqlite3.Connection, file: VectorFile) -> bool:
    cursor = db.execute("SELECT vector FROM vectors ORDER BY chunk")
    blocks = (file.rows[start : start + BLOCK] for start in range(0, len(file.ids), BLOCK))
    return all(b"".join([row[0] for row in cursor.fetchmany(BLOCK)]) == block.tobytes() for block in blocks)


def live(db: sqlite3.Connection) -> tuple[Ids, NDArray[np.uint64]]:
    """The ids of all chunks that have a vector, ascending, and their tags. Reads no vector."""
    cursor = db.execute("SELECT chunk, hash FROM vectors INDEXED BY vectors_by_hash")
    ids, tags = [np.empty(0, np.int64)], [np.empty(0, np.uint64)]
    while rows := cursor.fetchmany(BLOCK):
        ids.append(np.array([row[0] for row in rows], np.int64))
        tags.append(np.frombuffer(b"".join([row[1][:8] for row in rows]), "<u8"))
    found, marks = np.concatenate(ids), np.concatenate(tags)
    if len(found) != len(marks):
        raise IndexCorrupt("the index is damaged: a vector's hash is cut short", HINT)
    order = np.argsort(found)
    return found[order], marks[order]


def rows_of(db: sqlite3.Connection, chunks: Sequence[int], dimension: int) -> tuple[list[int], Halves]:
    """Those of the chunks that have a vector, ascending, and their vectors from SQLite.  # (n, dimension)

    Raises: IndexCorrupt for a vector of another length.
    """
    return _taken(db.execute(_ROWS, (dumps(list(chunks)),)), len(chunks), dimension)


def every_row(db: sqlite3.Connection, dimension: int) -> tuple[list[int], Halves]:
    """The same for all chunks."""
    (count,) = db.execute("SELECT count(*) FROM vectors").fetchone()
    return _taken(db.execute("SELECT chunk, vector FROM vectors ORDER BY chunk"), count, dimension)


_ROWS = "SELECT chunk, vector FROM vectors WHERE chunk IN (SELECT value FROM json_each(?)) ORDER BY chunk"


def _taken(cursor: sqlite3.Cursor, most: int, dimension: int) -> tuple[list[int], Halves]:
    ids: list[int] = []
    rows = np.empty((most, dimension), "<f2")
    while found := cursor.fetchmany(BLOCK):
        wrong = next((chunk for chunk, vector in found if len(vector) != 2 * dimension), None)
        if wrong is not None:
            raise IndexCorrupt(f"the index is damaged: the vector of chunk {wrong} has a wrong length", HINT)
        joined = np.frombuffer(b"".join([vector for _, vector in found]), "<f2")
        rows[len(ids) : len(ids) + len(found)] = joined.reshape(-1, dimension)
        ids += [chunk for chunk, _ in found]
    return ids, rows[: len(ids)]


def places(file: VectorFile, ids: Ids, tags: NDArray[np.uint64]) -> Ids:
    """Where in the file each chunk's vector stands; -1 where it has none, or that of another text.  # (n,)"""
    if not len(file.ids):
        return np.full(len(ids), -1, np.int64)
    at = np.minimum(np.searchsorted(file.ids, ids), len(file.ids) - 1)
    return np.where((file.ids[at] == ids) & (file.tags[at] == tags), at, -1)


# ---------------------------------------------------------------------------------------------------------- writing


def update(db: sqlite3.Connection, index: str | os.PathLike[str], *, few: int = vectors.FEW) -> Updated:
    """Bring the file beside `index` in step with it: the end of a run that wrote vectors.

    An index of up to `few` vectors, or without an embedder, needs no file and keeps none. Takes about as much memory as
    50 bytes a vector. Raises: OSError (disk full …), after which the file is as it was.
    """
    path, card = vectors.side_file(index), vectors.card(db)
    with one_state(db):
        now = Snapshot.read(db)
        if card is None or not card.dimension or now.count <= few:
            remove(path)
            return Updated()
        old = load(path, card.dimension)
        if old is not None and old.shows == now and _lists(old, *live(db)) and coherent(old):
            return Updated(kept=now.count)
        with _turn(path, wait=True) as file:
            assert file is not None
            return _write(db, file, path, old, card.dimension)


def write_beside(
    db: sqlite3.Connection, path: str, seen: VectorFile | None, dimension: int, *, anew: bool = False
) -> bool:
    """Make the file for the state that `db` sees, where nobody else is at it or was since the file `seen`.

    For a reader that found no file it can use. `anew`: nothing is copied from `seen`. False: it was not made.
    """
    with _turn(path, wait=False) as file:
        present = load(path, dimension)
        if file is None or (present and present.shows) != (seen and seen.shows):
            return False
        _write(db, file, path, None if anew else seen, dimension)
        return True


def remove(path: str) -> None:
    """Take the file away, and what a killed run left of the next one; waits for who makes that. Raises: OSError."""
    if not any(map(os.path.lexists, (path, temporary(path)))):
        return
    with _turn(path, wait=True):  # takes the next one away
        try:
            os.unlink(path)  # noqa: PTH108
        except FileNotFoundError:
            return


def temporary(path: str) -> str:
    """Where the next file is made."""
    return f"{path}.new"


@contextmanager
def one_state(db: sqlite3.Connection) -> Iterator[None]:
    """All that is read in the block is one state of the index."""
    if db.in_transaction:
        yield
        return
    db.execute("BEGIN")
    try:
        yield
    finally:
        db.execute("ROLLBACK")


@contextmanager
def _turn(path: str, *, wait: bool) -> Iterator[FileIO | None]:
    """The file in which the next one is made, for us alone; None when another process is at it.

    The lock is the kernel's, on the file itself: a killed process leaves a file that the next one takes over.
    """
    file = _locked(temporary(path), wait=wait)
    try:
        yield file
    finally:
        if file is not None:
            if _is_at(file.fileno(), temporary(path)):  # not renamed: it failed, or was not needed
                os.unlink(temporary(path))  # noqa: PTH108
            file.close()


def _locked(name: str, *, wait: bool) -> FileIO | None:
    try:
        import fcntl
    except ImportError:  # Windows: queries do without the file
        return None
    while True:
        file = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            if _is_at(file, name):  # else it was renamed while we waited: that is the file in use now
                return os.fdopen(file, "r+b", buffering=0)
        except BlockingIOError:
            os.close(file)
            return None
        except BaseException:
            os.close(file)
            raise
        os.close(file)


def _is_at(file: int, name: str) -> bool:
    try:
        return os.path.samestat(os.fstat(file), os.stat(name))  # noqa: PTH116
    except FileNotFoundError:
        return False


def _write(db: sqlite3.Connection, file: FileIO, path: str, seen: VectorFile | None, dimension: int) -> Updated:
    ids, tags = live(db)
    now = msgspec.structs.replace(Snapshot.read(db), count=len(ids))
    old = seen if seen is not None and seen.serves(now) and coherent(seen) else None
    at = np.full(len(ids), -1, np.int64) if old is None else places(old, ids, tags)
    _Making(db, file, old, _Layout(len(ids), dimension), dimension)(now, ids, tags, at)
    if not _is_at(file.fileno(), temporary(path)):
        raise FileNotFoundError(ENOENT, "another process took the unfinished file away", temporary(path))
    os.replace(temporary(path), path)  # noqa: PTH105
    kept = int(np.count_nonzero(at >= 0))
    return Updated(kept, len(ids) - kept, (len(old.ids) if old else 0) - kept)


class _Making:
    """Writes the sections, a block of rows at a time: memory stays flat."""

    def __init__(
        self, db: sqlite3.Connection, file: FileIO, old: VectorFile | None, layout: _Layout, dimension: int
    ) -> None:
        self._db, self._file, self._old, self._layout, self._dimension = db, file, old, layout, dimension

    def __call__(self, now: Snapshot, ids: Ids, tags: NDArray[np.uint64], at: Ids) -> None:
        layout, count = self._layout, len(ids)
        self._file.truncate(0)
        step = max(1, count // SAMPLE)
        mean = self._rows(ids[::step], at[::step]).mean(axis=0, dtype=np.float64).astype("<f4")
        for place, section in ((layout.ids, ids), (layout.tags, tags), (layout.mean, mean)):
            self._put(place, section)
        for start in range(0, count, BLOCK):
            rows = self._rows(ids[start : start + BLOCK], at[start : start + BLOCK])
            self._put_block(start, count, rows, mean)
        self._file.truncate(layout.size)
        fields = _FIELDS.pack(MAGIC, FORMAT, self._dimension, count, now.state, now.epoch, now.index)
        self._file.seek(0)
        self._write(_sealed(fields))
        os.fsync(self._file.fileno())

    def _put_block(self, start: int, count: int, rows: Halves, mean: NDArray[np.float32]) -> None:
        layout = self._layout
        self._put(layout.rows + 2 * self._dimension * start, rows)
        wide = cosine.widened(rows)
        self._put(layout.norms + 4 * start, cosine.norms(wide))
        for word, plane in enumerate(bit_planes.signs(wide, mean)):
            self._put(layout.planes + 8 * (word * count + start), plane)

    def _rows(self, ids: Ids, at: Ids) -> Halves:
        """The vectors of chunks: from the old file where it has them, else from SQLite."""
        rows = np.empty((len(ids), self._dimension), "<f2")
        kept = at >= 0
        if self._old is not None:
            rows[kept] = self._old.rows[at[kept]]
        new = ids[~kept].tolist()
        if new:
            found, fresh = rows_of(self._db, new, self._dimension)
            if found != new:
                raise IndexCorrupt("the index is damaged: its vectors differ from their list", HINT)
            rows[~kept] = fresh
        return rows

    def _put(self, place: int, array: NDArray[np.generic]) -> None:
        self._file.seek(place)
        self._write(np.ascontiguousarray(array).view(np.uint8).reshape(-1).data)

    def _write(self, data: bytes | memoryview) -> None:
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]
