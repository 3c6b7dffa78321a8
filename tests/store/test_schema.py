"""The index file: opened, refused, migrated, guarded (spec I35, I36, I37)."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import msgspec
import pytest

from ragcli.errors import IndexCorrupt, IndexMismatch, IndexMissing, RagcliError, UsageError
from ragcli.options import AnalyzerSettings, ChunkingSettings, IndexSettings, Settings
from ragcli.store.sqlite import schema
from tests import indexes


@pytest.fixture
def index(tmp_path: Path) -> Path:
    path = indexes.index_of(tmp_path)
    indexes.take_in(path, indexes.write(tmp_path / "docs", {"a.md": "# Alpha\n\nhello world\n"}))
    return path


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(IndexMissing) as caught:
        schema.open_reader(tmp_path / "none.db")
    assert "ragcli ingest" in caught.value.hint
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("name", ["a b.db", "a?b.db", "a#b.db", "100%.db", "a%41.db", "日本語.db", "é&x=1.db"])
def test_any_name_is_the_name_of_the_file(tmp_path: Path, name: str) -> None:
    indexes.take_in(tmp_path / name, indexes.write(tmp_path / "docs", {"a.txt": "hello"}))
    assert (tmp_path / name).is_file()
    with closing(schema.open_reader(tmp_path / name)) as db:
        assert db.execute("SELECT count(*) FROM chunks").fetchone() == (1,)


def test_a_reader_can_not_write(index: Path) -> None:
    with closing(schema.open_reader(index)) as db, pytest.raises(sqlite3.OperationalError):
        db.execute("DELETE FROM documents")


@pytest.mark.spec("I36")
def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE photos(id)")
        db.commit()
    before = path.read_bytes()
    for act in (schema.open_reader, schema.open_writer, schema.wipe):
        with pytest.raises(IndexCorrupt):
            act(path)
    with pytest.raises(IndexCorrupt):
        indexes.take_in(path, indexes.write(tmp_path / "docs", {"a.txt": "x"}), reset=True)
    assert path.read_bytes() == before


def test_a_text_file_is_no_index(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, and no index; " * 300)
    with pytest.raises(IndexCorrupt, match="is no index"):
        schema.open_reader(path)
    with pytest.raises(IndexCorrupt):
        schema.wipe(path)
    assert path.exists()


@pytest.mark.spec("I37")
def test_a_newer_format_is_refused(index: Path) -> None:
    with closing(sqlite3.connect(index)) as db:
        db.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    for act in (schema.open_reader, schema.open_writer):
        with pytest.raises(IndexMismatch, match="newer ragcli"):
            act(index)


OLD = """
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
INSERT INTO meta VALUES ('collection', 'old'), ('next_document', 2), ('chunk_count', 0), ('term_count', 0);
CREATE TABLE documents(
  id INTEGER PRIMARY KEY, document_id TEXT NOT NULL UNIQUE, raw TEXT, source INTEGER NOT NULL, title TEXT NOT NULL,
  name TEXT NOT NULL, format TEXT NOT NULL, metadata TEXT, created_at TEXT, updated_at TEXT,
  ingested_at INTEGER NOT NULL, hash BLOB NOT NULL, first_line INTEGER NOT NULL, characters INTEGER NOT NULL,
  first_chunk INTEGER NOT NULL, chunk_count INTEGER NOT NULL
);
INSERT INTO documents VALUES (1, 'kept', NULL, 1, 'Title', 'kept', 'text', NULL, NULL, NULL, 0, x'00', 1, 0, 0, 0);
"""


def old_index(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(OLD)
        db.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")


@pytest.mark.spec("I37")
def test_an_older_format_is_migrated_in_place(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    old_index(path)
    with pytest.raises(IndexMismatch, match="older ragcli"):
        schema.open_reader(path)
    schema.open_writer(path).close()
    with closing(schema.open_reader(path)) as db:
        assert db.execute("SELECT document_id FROM documents").fetchall() == [("kept",)]
        assert schema.meta(db)["next_document"] == 2
        tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert {"sources", "chunks", "text_blocks", "metadata", "terms", "posting_lists"} <= tables


@pytest.mark.spec("I37")
def test_a_migration_is_all_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    old_index(path)

    def fail(db: sqlite3.Connection) -> None:
        db.execute("CREATE TABLE half(id)")
        raise sqlite3.OperationalError("in the middle")

    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        with pytest.raises(sqlite3.OperationalError, match="in the middle"):
            schema.migrate(db, 0, {1: schema.create_tables, 2: fail})
        assert db.execute("PRAGMA user_version").fetchone() == (0,)
        assert {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")} == {
            "meta", "documents",
        }  # fmt: skip


@pytest.mark.spec("I35")
def test_an_index_whose_making_was_killed_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "i.db"
    with closing(sqlite3.connect(path)) as db:  # the file exists, with a header and nothing in it
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE t(x)")
        db.execute("DROP TABLE t")
    with pytest.raises(IndexMissing, match="did not finish"):
        schema.open_reader(path)
    indexes.take_in(path, indexes.write(tmp_path / "docs", {"a.txt": "hello"}))
    assert indexes.found(path, "hello") == {"a.txt"}


@contextmanager
def not_root() -> Iterator[None]:
    """Root may write everywhere; nobody may not."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def read_only() -> Iterator[Path]:
    """An index in a folder that can't be written."""
    top = Path(tempfile.mkdtemp())  # pytest's own folders are closed to others than their owner
    path = top / "medium" / "index.db"
    indexes.take_in(path, indexes.write(top / "docs", {"a.txt": "hello"}))
    for folder, mode in ((top, 0o755), (path.parent, 0o555)):
        folder.chmod(mode)
    yield path
    path.parent.chmod(0o755)
    shutil.rmtree(top)


@pytest.mark.spec("I30")
def test_a_read_only_medium(read_only: Path) -> None:
    with not_root(), closing(schema.open_reader(read_only)) as db:
        assert db.execute("SELECT count(*) FROM chunks").fetchone() == (1,)


def test_a_read_only_medium_with_changes_in_the_log_is_refused(read_only: Path) -> None:
    Path(f"{read_only}-wal").write_bytes(b"x" * 4096)
    with not_root(), pytest.raises(IndexCorrupt, match="last changes are still in"):
        schema.open_reader(read_only)


@pytest.mark.spec("I30")
def test_a_moved_project_keeps_working(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    indexes.write(old, {"docs/a.md": "# Alpha\n\nhello\n", "docs/b.md": "world\n"})
    outside = indexes.write(tmp_path / "outside", {"c.md": "elsewhere\n"})
    indexes.take_in(indexes.index_of(old), old / "docs", outside)
    shutil.move(old, new)
    report = indexes.take_in(indexes.index_of(new), new / "docs", outside)
    assert (report.unchanged, report.added, report.changed) == (3, 0, 0)
    paths = {chunk.path for _, _, _, chunks in indexes.content(indexes.index_of(new)).values() for chunk in chunks}
    assert paths == {str(new / "docs/a.md"), str(new / "docs/b.md"), str(outside / "c.md")}


@pytest.mark.spec("I36")
def test_the_index_keeps_its_own_settings(tmp_path: Path) -> None:
    docs = indexes.write(tmp_path / "docs", {"a.md": "running\n"})
    index = tmp_path / "i.db"
    built = indexes.keywords(
        index=IndexSettings(collection="mine"),
        chunking=ChunkingSettings(size=500, overlap=50),
        analyzer=AnalyzerSettings(stemmer="english"),
    )
    indexes.take_in(index, docs, settings=built)
    with closing(schema.open_reader(index)) as db:
        assert schema.stored_settings(db) == (built.analyzer, built.chunking)
        own = schema.guard(db, Settings())
        assert (own.analyzer, own.chunking, own.index.collection) == (built.analyzer, built.chunking, "mine")
    indexes.take_in(index, indexes.write(docs, {"b.md": "runs\n"}))
    assert indexes.found(index, "run") == {"a.md", "b.md"}


@pytest.mark.spec("I36")
@pytest.mark.parametrize(
    ("asked", "explicit", "both"),
    [
        (Settings(chunking=ChunkingSettings(size=800)), None, ("chunking.size = 800", "1600")),
        (Settings(analyzer=AnalyzerSettings(stemmer="german")), None, ("analyzer.stemmer = 'german'", "'none'")),
        (Settings(index=IndexSettings(collection="b")), {"index.collection"}, ("index.collection = 'b'", "'default'")),
    ],
)
def test_other_settings_are_refused(
    index: Path, asked: Settings, explicit: set[str] | None, both: tuple[str, str]
) -> None:
    with closing(schema.open_reader(index)) as db, pytest.raises(IndexMismatch) as caught:
        schema.guard(db, asked, explicit)
    assert all(part in caught.value.message for part in both)
    assert "ragcli ingest --reset" in caught.value.hint
    with pytest.raises(IndexMismatch):
        indexes.take_in(index, index.parents[1] / "docs", settings=asked)


@pytest.mark.spec("I36")
def test_a_default_that_was_asked_for_counts_as_asked(tmp_path: Path) -> None:
    index = tmp_path / "i.db"
    built = indexes.keywords(chunking=ChunkingSettings(size=500, overlap=50))
    indexes.take_in(index, indexes.write(tmp_path / "docs", {"a.md": "x\n"}), settings=built)
    with closing(schema.open_reader(index)) as db:
        with pytest.raises(IndexMismatch, match=r"chunking\.size = 1600"):
            schema.guard(db, Settings(), {"chunking.size"})
        assert schema.guard(db, Settings(), {"retrieval.top_k"}).chunking.size == 500


def test_bm25_may_differ_at_query_time(index: Path) -> None:
    asked = msgspec.convert({"bm25": {"k1": 0.9, "b": 0.4}}, Settings)
    with closing(schema.open_reader(index)) as db:
        assert schema.guard(db, asked, {"bm25.k1", "bm25.b"}).bm25.k1 == 0.9


@pytest.mark.spec("I35")
def test_a_full_disk_is_one_line_and_the_index_stays(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = indexes.content(index)
    docs = indexes.write(index.parents[1] / "docs", {f"{n}.md": f"number {n} " * 2000 for n in range(40)})
    opened = schema.open_writer

    def small(path: Path) -> sqlite3.Connection:
        db = opened(path)
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages + 3}")  # SQLITE_FULL, as a full disk gives it
        return db

    with monkeypatch.context() as patch:
        patch.setattr(schema, "open_writer", small)
        with pytest.raises(RagcliError, match="the disk is full") as caught:
            indexes.take_in(index, docs)
    assert "\n" not in caught.value.message
    assert indexes.content(index) == before
    assert indexes.faults(index) == []
    assert indexes.take_in(index, docs).added == 40


def test_reset_starts_over(index: Path, tmp_path: Path) -> None:
    other = indexes.write(tmp_path / "other", {"z.md": "zulu\n"})
    report = indexes.take_in(index, other, reset=True, settings=indexes.keywords(chunking=ChunkingSettings(size=300)))
    assert report.added == 1
    assert indexes.ids(index) == ["z.md"]


def test_reset_of_a_damaged_index(index: Path, tmp_path: Path) -> None:
    index.write_bytes(b"garbage" * 1000)
    with suppress(FileNotFoundError):
        Path(f"{index}-wal").unlink()
    with pytest.raises(IndexCorrupt, match=r"damaged|no index"):
        indexes.take_in(index, tmp_path / "docs")
    indexes.take_in(index, tmp_path / "docs", reset=True)
    assert indexes.found(index, "hello") == {"a.md"}


@pytest.mark.skipif(os.name != "posix", reason="elsewhere names are Unicode")
@pytest.mark.parametrize("opened", [schema.open_reader, schema.open_writer])
def test_a_path_that_is_not_utf_8_is_refused_in_true_words(tmp_path: Path, opened: schema.Step) -> None:
    folder = Path(os.fsdecode(bytes(tmp_path) + b"/d\xe9"))
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes only names in UTF-8")
    (folder / "x.db").touch()
    with pytest.raises(UsageError, match="must be UTF-8") as caught:
        opened(folder / "x.db")  # type: ignore[arg-type]
    assert "--reset" not in caught.value.hint


@pytest.mark.spec("I37")
def test_a_text_file_is_not_to_be_reset(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("these are my notes\n" * 100)
    for opened in (schema.open_reader, schema.open_writer):
        with pytest.raises(IndexCorrupt) as caught:
            opened(notes)
        assert caught.value.hint == "name another file with --index"


def test_a_damaged_index_in_its_own_place_is_to_be_reset(index: Path) -> None:
    index.write_bytes(b"x" * 5000)
    with pytest.raises(IndexCorrupt) as caught:
        schema.open_reader(index)
    assert "--reset" in caught.value.hint
