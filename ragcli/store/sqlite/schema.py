"""The index file: its tables, how it is opened, what makes it unusable, and the settings it was built with (I30-I37).

Owns the connection and everything SQLite says about the file as a whole. One writer at a time (`lock`), in WAL mode
(https://sqlite.org/wal.html): readers go on while it writes. Knows no document and no posting.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from ragcli.errors import IndexCorrupt, IndexLocked, IndexMismatch, IndexMissing, RagcliError, UsageError
from ragcli.options import AnalyzerSettings, ChunkingSettings, Settings

APPLICATION_ID = 0x52414743  # "RAGC" at offset 68 of the file: tells it from another program's database
VERSION = 3  # 1: keywords only; 2: vectors; 3: outlines, parents
PAGE_SIZE = 8192
SLACK = 0.1  # the share of free pages that may stay: the next ingest fills them
BUSY_SECONDS = 10.0
REBUILD = "rebuild it: ragcli ingest --reset PATH…"

SCHEMA = """
CREATE TABLE IF NOT EXISTS meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sources(
  id INTEGER PRIMARY KEY,
  location TEXT NOT NULL UNIQUE,   -- relative to the folder that holds .ragcli/, else absolute; `stdin:` of a pipe
  root TEXT NOT NULL, relative TEXT NOT NULL,
  size INTEGER, mtime_ns INTEGER,  -- of the version that was ingested
  hash BLOB,                       -- blake2b-16 of its bytes
  status TEXT NOT NULL CHECK (status IN ('complete', 'partial', 'failed', 'skipped')),
  problem TEXT, reason TEXT,       -- of a failed one: the kind to count by, and the words
  tags TEXT,                       -- from --tag; they stay with the source
  rules BLOB                       -- digest of the ingest.tags applied; of a skipped one, the version
);
CREATE TABLE IF NOT EXISTS documents(
  id INTEGER PRIMARY KEY,
  document_id TEXT NOT NULL UNIQUE,
  raw TEXT,                        -- the reader's id, where document_id had to differ from it
  source INTEGER NOT NULL,
  title TEXT NOT NULL, name TEXT NOT NULL, format TEXT NOT NULL,
  metadata TEXT,                   -- JSON (tags.py); NULL = none
  created_at TEXT, updated_at TEXT, -- updated_at NULL: the source's mtime, if it is a file of its own
  ingested_at INTEGER NOT NULL,    -- seconds since 1970
  hash BLOB NOT NULL,
  first_line INTEGER NOT NULL, characters INTEGER NOT NULL,
  first_chunk INTEGER NOT NULL, chunk_count INTEGER NOT NULL  -- its chunks have consecutive ids
);
CREATE INDEX IF NOT EXISTS documents_by_source ON documents(source);
CREATE INDEX IF NOT EXISTS documents_by_raw ON documents(source, raw) WHERE raw IS NOT NULL;
CREATE TABLE IF NOT EXISTS chunks(
  id INTEGER PRIMARY KEY,
  document INTEGER NOT NULL,
  "index" INTEGER NOT NULL,
  start INTEGER NOT NULL, "end" INTEGER NOT NULL,
  start_line INTEGER NOT NULL, end_line INTEGER NOT NULL,  -- counted from the document's first_line
  page INTEGER, page_end INTEGER,
  heading TEXT, heading_level INTEGER NOT NULL, breadcrumb TEXT,
  context,                         -- NULL = none, 1 = the document's title, else the header itself
  length INTEGER NOT NULL          -- in terms, the context's included
);
CREATE TABLE IF NOT EXISTS text_blocks(id INTEGER PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS metadata(
  key TEXT NOT NULL, kind TEXT NOT NULL, value NOT NULL, document INTEGER NOT NULL,
  PRIMARY KEY(key, kind, value, document)
) WITHOUT ROWID;
"""

COUNTERS = {"chunk_count": 0, "term_count": 0, "generation": 0, "next_document": 1}  # kept exact by each transaction

Connection = sqlite3.Connection  # for those above, who know no SQLite
Step = Callable[[Connection], None]


def open_reader(path: str | os.PathLike[str]) -> sqlite3.Connection:
    """A read-only connection to the index at `path`. On a read-only medium the file is taken as it is.

    Raises: IndexMissing, IndexCorrupt, IndexMismatch (made by a newer or an older ragcli), IndexLocked, UsageError (its
    path is not UTF-8).
    """
    place = os.fspath(path)
    _check_path(place)
    if not os.path.isfile(place):  # noqa: PTH113 - pathlib is slower, and this is on every query's way
        raise IndexMissing(f"there is no index at {place}", "make one: ragcli ingest PATH…")
    with translated(place):
        db = _connect_reader(place)
        try:
            _check_readable(db, place)
        except BaseException:
            db.close()
            raise
    return db


def _check_path(place: str) -> None:
    """SQLite's own names are UTF-8, and what an index says of its files starts from where it lies."""
    try:
        os.fsencode(os.path.abspath(place)).decode()  # noqa: PTH100
    except UnicodeError:
        raise UsageError(
            f"{place}: the path of an index must be UTF-8, and a name in this one is not",
            "rename that folder, or name another place with --index",
        ) from None


def _connect_reader(place: str) -> sqlite3.Connection:
    db = _connect(_uri(place, "mode=ro"), uri=True)
    try:
        _tune_reader(db)
    except sqlite3.OperationalError as error:
        db.close()
        if not _is_read_only_medium(place, error):
            raise
        db = _connect(_uri(place, "mode=ro&immutable=1"), uri=True)
        _tune_reader(db)
    return db


def _tune_reader(db: sqlite3.Connection) -> None:
    db.execute("PRAGMA mmap_size = 2147418112")
    db.execute("PRAGMA query_only = 1")
    db.execute("SELECT 1 FROM sqlite_master").fetchone()  # the first look at the file and its log


def _is_read_only_medium(place: str, error: sqlite3.OperationalError) -> bool:
    """Whether the log's files can't be made beside the index. A log that holds something may not be passed over."""
    if _primary_code(error) not in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
        return False
    log = Path(place + "-wal")
    if log.exists() and log.stat().st_size:
        raise IndexCorrupt(
            f"{place}: its last changes are still in {log.name}, and this folder can't be written",
            "copy both files to a folder that can be written, or ingest again where they came from",
        ) from error
    return True


def _check_readable(db: sqlite3.Connection, place: str) -> None:
    version = _version(db, place)
    if version is None:
        raise IndexMissing(f"{place} is empty: its first ingest did not finish", "run it again: ragcli ingest PATH…")
    if version < VERSION:
        raise IndexMismatch(
            f"{place} was made by an older ragcli (format {version}; this one reads {VERSION})",
            "bring it up to date: ragcli ingest PATH…",
        )


def open_writer(path: str | os.PathLike[str]) -> sqlite3.Connection:
    """The writing connection to the index at `path`, which is made, or migrated, when it has to be.

    Transactions are explicit (`transaction`). Hold the `lock` before you call this.
    Raises: IndexCorrupt, IndexMismatch (newer ragcli), IndexLocked, RagcliError (disk full, I/O error), UsageError (its
    path is not UTF-8).
    """
    place = os.fspath(path)
    _check_path(place)
    with translated(place):
        folder = Path(place).parent
        folder.mkdir(parents=True, exist_ok=True)
        db = _connect(_uri(place, "mode=rwc"), uri=True)
        try:
            _prepare_writer(db, place)
        except BaseException:
            db.close()
            raise
    return db


def _prepare_writer(db: sqlite3.Connection, place: str) -> None:
    version = _version(db, place)
    if version is None:
        db.execute(f"PRAGMA page_size = {PAGE_SIZE}")
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA cache_size = -32768")
    db.execute("PRAGMA wal_autocheckpoint = 4000")
    db.execute("PRAGMA journal_size_limit = 67108864")
    if version is None:
        _create(db)
    elif version < VERSION:
        migrate(db, version)


def _connect(database: str, *, uri: bool) -> sqlite3.Connection:
    return sqlite3.connect(database, timeout=BUSY_SECONDS, isolation_level=None, uri=uri, cached_statements=256)


def _uri(place: str, query: str) -> str:
    """RFC 3986 by hand: urllib.parse costs milliseconds to import. SQLite takes UTF-8 as it is."""
    full = os.path.abspath(place)  # noqa: PTH100
    quoted = full.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
    return f"file://{quoted}?{query}"


def _version(db: sqlite3.Connection, place: str) -> int | None:
    """The format's version; None = nothing in it yet.

    Raises: IndexCorrupt for another program's database, IndexMismatch for a newer ragcli's.
    """
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if application == APPLICATION_ID and version <= VERSION:
        return int(version)
    if application == APPLICATION_ID:
        raise IndexMismatch(
            f"{place} was made by a newer ragcli (format {version}; this one knows {VERSION})",
            f"install the newer ragcli, or {REBUILD}",
        )
    if application or version or db.execute("SELECT 1 FROM sqlite_master").fetchone():
        raise _not_ours(place)
    return None


def _not_ours(place: str) -> IndexCorrupt:
    if Path(place).parent.name == ".ragcli":  # nobody else's place: it must be the header
        return IndexCorrupt(f"{place} is damaged: its header is not that of an index", REBUILD)
    return IndexCorrupt(f"{place} is a database of another program, not an index", "name another file with --index")


def _create(db: sqlite3.Connection) -> None:
    with transaction(db):
        create_tables(db)
        _stamp(db)


def _stamp(db: sqlite3.Connection) -> None:
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {VERSION}")


def create_tables(db: sqlite3.Connection) -> None:
    """Every table that is not there yet, and the counters at their start; inside the caller's transaction."""
    from ragcli.store.sqlite import outlines, parents, segments, vectors  # not on the way of a query

    for statement in SCHEMA.split(";\n"):
        db.execute(statement)
    for statement in (*segments.TABLES, *vectors.TABLES, *outlines.TABLES, *parents.TABLES):
        kind = "INDEX" if statement.startswith("CREATE INDEX") else "TABLE"
        db.execute(statement.replace(f"CREATE {kind} ", f"CREATE {kind} IF NOT EXISTS ", 1))
    counters = {**COUNTERS, **vectors.COUNTERS, **outlines.COUNTERS}
    db.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", counters.items())


def _add_parents(db: sqlite3.Connection) -> None:
    from ragcli.store.sqlite import outlines

    create_tables(db)
    outlines.begin(db)


# What brings an index from the version before to this one. Version 0 has what tables it has, and keeps their rows.
STEPS: Mapping[int, Step] = {1: create_tables, 2: create_tables, 3: _add_parents}


def migrate(db: sqlite3.Connection, version: int, steps: Mapping[int, Step] = STEPS) -> None:
    """Bring the index from `version` to the present one: all steps in one transaction, or none (spec I37)."""
    from sqlite_utils import Database, Migrations

    plan = Migrations("ragcli")
    for number in sorted(steps):
        if number > version:
            plan(name=f"version {number}")(_step(db, steps[number]))
    with transaction(db):
        plan.apply(Database(db, execute_plugins=False))
        _stamp(db)


def _step(db: sqlite3.Connection, step: Step) -> Callable[[object], None]:
    def apply(_: object) -> None:
        step(db)

    return apply


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All of the block's writes, or none of them."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # a full disk has already rolled it back; the first error is the one to tell
            db.execute("ROLLBACK")
        raise


@contextmanager
def translated(path: str | os.PathLike[str]) -> Iterator[None]:
    """What SQLite and the file system say of the index at `path`, as one clear error of ours."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        raise _translate(error, os.fspath(path)) from error


def _primary_code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def _translate(error: sqlite3.DatabaseError, place: str) -> RagcliError:
    code = _primary_code(error)
    if code == sqlite3.SQLITE_NOTADB:
        return IndexCorrupt(f"{place} is no index, or its start is damaged ({error})", _way_out(place))
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return IndexLocked(f"{place} is held by another process ({error})", "run it again when that one is through")
    if code == sqlite3.SQLITE_FULL:
        return RagcliError(
            f"{place}: the disk is full; the index is as it was after the last batch",
            "free some space and run ingest again: it goes on from there",
        )
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return RagcliError(f"{place}: {error}", "check the disk and the folder's permissions")
    return IndexCorrupt(f"{place} is damaged ({error})", _way_out(place))


def _way_out(place: str) -> str:
    """What to do about a file that can't be used: --reset where `wipe` would remove it."""
    return REBUILD if _may_be_wiped(Path(place)) else "name another file with --index"


def wipe(path: str | os.PathLike[str]) -> None:
    """Remove the index at `path` with its log. Only what is an index, or lies in a `.ragcli` folder, is removed.

    Raises: IndexCorrupt for a file that is something else.
    """
    place = Path(path)
    if not place.exists():
        return
    if not _may_be_wiped(place):
        raise IndexCorrupt(f"{place} is no ragcli index: not removed", "remove it yourself, or name another --index")
    # The log goes first: left behind, it would be replayed into the next index of this name.
    from ragcli.store.sqlite.vectors import side_file

    for name in (f"{place}-wal", f"{place}-shm", side_file(place), f"{side_file(place)}.new", str(place)):
        Path(name).unlink(missing_ok=True)


def _may_be_wiped(place: Path) -> bool:
    return place.parent.name == ".ragcli" or _is_ours(place)


def _is_ours(place: Path) -> bool:
    try:
        with place.open("rb") as file:
            header = file.read(100)
    except OSError:
        return False
    named = header[:16] == b"SQLite format 3\0" and header[68:72] == APPLICATION_ID.to_bytes(4, "big")
    return named or not header


def tidy(db: sqlite3.Connection) -> None:
    """Statistics fresh, room given back, the log written back into the file: the end of a run that wrote something."""
    (pages,), (free,) = (db.execute(f"PRAGMA {name}").fetchone() for name in ("page_count", "freelist_count"))
    if free > SLACK * pages:  # what merges and deletes left over
        db.executescript("PRAGMA incremental_vacuum")  # `execute` takes one step of it, which gives one page back
    db.execute("PRAGMA analysis_limit = 400")
    db.execute("PRAGMA optimize")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def meta(db: sqlite3.Connection) -> dict[str, object]:
    """Everything the index remembers about itself."""
    return dict(db.execute("SELECT key, value FROM meta"))


def set_meta(db: sqlite3.Connection, **values: object) -> None:
    """Write keys of `meta`; inside the caller's transaction."""
    db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())


def base_folder(db: sqlite3.Connection) -> str:
    """The folder that relative locations count from: the one that holds `.ragcli/`, else the index's own."""
    file = next(row[2] for row in db.execute("PRAGMA database_list") if row[1] == "main")
    folder, name = os.path.split(os.path.dirname(file))  # noqa: PTH120
    return str(folder) if name == ".ragcli" else os.path.join(folder, name)  # noqa: PTH118


def is_new(db: sqlite3.Connection) -> bool:
    """Whether nothing was ever built into the index."""
    return db.execute("SELECT 1 FROM meta WHERE key = 'analyzer'").fetchone() is None


def remember(db: sqlite3.Connection, settings: Settings, *, now: str, by: str) -> None:
    """Write into a new index what it is built with, but for its embedder; inside the caller's transaction."""
    set_meta(
        db,
        collection=settings.index.collection,
        analyzer=_json(settings.analyzer),
        chunking=_json(settings.chunking),
        bm25=_json(settings.bm25),
        schema_version=VERSION,
        created_at=now,
        created_by=by,
    )


def _json(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()


def stored_settings(db: sqlite3.Connection) -> tuple[AnalyzerSettings, ChunkingSettings]:
    """The analyzer and chunking settings that the index was built with."""
    kept = dict(db.execute("SELECT key, value FROM meta WHERE key IN ('analyzer', 'chunking')"))
    return (
        msgspec.json.decode(kept.get("analyzer", "{}"), type=AnalyzerSettings),
        msgspec.json.decode(kept.get("chunking", "{}"), type=ChunkingSettings),
    )


def guard(db: sqlite3.Connection, settings: Settings, explicit: Collection[str] | None = None) -> Settings:
    """`settings` with the index's own collection, analyzer and chunking in place of what nobody asked for (spec I36).

    `explicit`: the dotted names that the user set (`chunking.size`); None: those that differ from the defaults.
    Raises: IndexMismatch when one of these is not what the index was built with: names both and the command.
    """
    analyzer, chunking = stored_settings(db)
    row = db.execute("SELECT value FROM meta WHERE key = 'collection'").fetchone()
    index = msgspec.structs.replace(settings.index, collection=row[0] if row else settings.index.collection)
    own = msgspec.structs.replace(settings, index=index, analyzer=analyzer, chunking=chunking)
    differences = [_difference(name, settings, own) for name in _guarded(settings, explicit)]
    found = [difference for difference in differences if difference]
    if found:
        raise IndexMismatch("; ".join(found), f"keep the index's setting, or {REBUILD}")
    return own


def _guarded(settings: Settings, explicit: Collection[str] | None) -> list[str]:
    names = ["index.collection"]
    for part in ("analyzer", "chunking"):
        names += [f"{part}.{field}" for field in getattr(settings, part).__struct_fields__]
    if explicit is None:
        return [name for name in names if _value(settings, name) != _value(Settings(), name)]
    return [name for name in names if name in explicit or name.split(".")[0] in explicit]


def _value(settings: Settings, name: str) -> object:
    part, field = name.split(".")
    return getattr(getattr(settings, part), field)


def _difference(name: str, asked: Settings, own: Settings) -> str:
    wanted, built = _value(asked, name), _value(own, name)
    return "" if wanted == built else f"{name} = {wanted!r}, but the index was built with {built!r}"
