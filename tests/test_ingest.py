"""Ingest: what is done again, what is not, and what is told (spec I5, I11, I34, I39)."""

from __future__ import annotations

import errno
import io
import json
import os
import random
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragcli.errors import UsageError
from ragcli.ingest import commit, ingest_paths, prepare, run, workers
from ragcli.options import ChunkingSettings, IngestSettings
from ragcli.read import formats
from ragcli.store.sqlite import documents, schema
from ragcli.types import Document, Event, IngestOptions, Problem, ReadRequest
from tests import crash, indexes
from tests.crash import change_corpus, make_corpus

QUERIES = ("oak7", "changed oak3", "yew1 ash2 elm3", "note")


def docs_of(tmp_path: Path, **files: str) -> Path:
    return indexes.write(tmp_path / "docs", {name.replace("_", "."): text for name, text in files.items()})


@pytest.mark.spec("I1", "I34")
def test_counts_of_a_life(tmp_path: Path) -> None:
    index = tmp_path / "i.db"
    docs = docs_of(tmp_path, a_md="alpha\n", b_md="beta\n", c_md="gamma\n")
    report = indexes.take_in(index, docs)
    assert (report.added, report.changed, report.unchanged, report.removed, report.chunks) == (3, 0, 0, 0, 3)
    assert report.bytes == len("alpha\nbeta\ngamma\n")
    assert report.index == str(index)
    report = indexes.take_in(index, docs)
    assert (report.added, report.changed, report.unchanged, report.chunks, report.bytes) == (0, 0, 3, 0, 0)
    (docs / "a.md").write_text("alpha changed\n")
    (docs / "b.md").unlink()
    indexes.write(docs, {"d.md": "delta\n"})
    report = indexes.take_in(index, docs, prune=True)
    assert (report.added, report.changed, report.unchanged, report.removed) == (1, 1, 1, 1)
    assert indexes.ids(index) == ["a.md", "c.md", "d.md"]
    assert indexes.faults(index) == []


@pytest.mark.spec("I34")
def test_an_unchanged_file_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, docs = tmp_path / "i.db", docs_of(tmp_path, a_md="alpha\n", r_jsonl='{"_id": "1", "text": "x"}\n')
    old = time.time() - 100
    for path in docs.iterdir():
        os.utime(path, (old, old))
    indexes.take_in(index, docs)
    before = index.read_bytes(), index.stat().st_mtime_ns

    def never(request: ReadRequest) -> Iterator[Document]:
        raise AssertionError(request.source.location)

    monkeypatch.setattr(formats, "read", never)
    for path in docs.iterdir():
        path.chmod(0)
    assert indexes.take_in(index, docs).unchanged == 2
    assert (index.read_bytes(), index.stat().st_mtime_ns) == before


@pytest.mark.spec("I34")
def test_only_gone_files_below_the_given_paths_are_pruned(tmp_path: Path) -> None:
    index = tmp_path / "i.db"
    indexes.write(tmp_path, {"one/a.md": "a\n", "one/b.md": "b\n", "two/c.md": "c\n", "oneandhalf/d.md": "d\n"})
    indexes.take_in(index, tmp_path / "one", tmp_path / "two", tmp_path / "oneandhalf")
    for name in ("one/a.md", "two/c.md", "oneandhalf/d.md"):
        (tmp_path / name).unlink()
    report = indexes.take_in(index, tmp_path / "one")
    assert report.removed == 0
    assert report.warnings == ("1 file is gone, and is kept in the index: --prune removes what is gone",)
    assert indexes.take_in(index, tmp_path / "one", prune=True).removed == 1
    assert indexes.ids(index) == ["b.md", "c.md", "d.md"]


@pytest.mark.spec("I34")
def test_what_the_rules_leave_out_now_is_not_gone(tmp_path: Path) -> None:
    index, docs = tmp_path / "i.db", docs_of(tmp_path, a_md="a\n", b_txt="b\n")
    indexes.take_in(index, docs)
    only = indexes.keywords(ingest=IngestSettings(include=("*.md",)))
    report = indexes.take_in(index, docs, settings=only, prune=True)
    assert report.removed == 0
    assert report.warnings == ("1 indexed file is left out by the rules now, and is kept: --delete ID removes",)


@pytest.mark.spec("I34")
def test_delete(tmp_path: Path) -> None:
    index, docs = tmp_path / "i.db", docs_of(tmp_path, a_md="alpha\n", b_md="beta\n")
    indexes.take_in(index, docs)
    with pytest.raises(UsageError, match=r"no document 'a\.mf' in the index; did you mean a\.md"):
        indexes.take_in(index, delete=("b.md", "a.mf"))
    assert indexes.ids(index) == ["a.md", "b.md"]
    assert indexes.take_in(index, delete=("a.md",)).removed == 1
    assert indexes.found(index, "alpha") == set()
    assert indexes.faults(index) == []
    assert indexes.take_in(index, docs).added == 1


@pytest.mark.spec("I34")
def test_a_changed_collection_replaces_what_changed(tmp_path: Path) -> None:
    def lines(texts: dict[str, str]) -> str:
        return "".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text in texts.items())

    index, docs = tmp_path / "i.db", docs_of(tmp_path, r_jsonl=lines({"a": "one", "b": "two", "c": "three"}))
    indexes.take_in(index, docs)
    kept = indexes.rows(index, "SELECT id FROM documents WHERE document_id = 'b'")
    indexes.write(docs, {"r.jsonl": "\n\n" + lines({"d": "four", "b": "two", "a": "one changed"})})
    report = indexes.take_in(index, docs)
    assert (report.added, report.changed, report.unchanged, report.removed) == (1, 1, 1, 1)
    assert indexes.rows(index, "SELECT id, first_line FROM documents WHERE document_id = 'b'") == [(*kept[0], 4)]
    (chunk,) = indexes.content(index)["b"][3]
    assert (chunk.start_line, chunk.end_line) == (4, 4)
    assert indexes.ids(index) == ["a", "b", "d"]
    assert indexes.faults(index) == []


@pytest.mark.spec("I5")
def test_two_records_with_one_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [json.dumps({"_id": f"r{n % 40}", "text": f"text {n}"}) for n in range(50)]
    index, docs = tmp_path / "i.db", docs_of(tmp_path, r_jsonl="\n".join(lines))
    report = indexes.take_in(index, docs)
    assert report.added == 40
    assert next((problem.kind, problem.reason) for problem in report.failed) == (
        "duplicate", "line 41: the id 'r0' was there before; not taken in",
    )  # fmt: skip
    assert len(report.failed) == 10
    # the same when they fall into different runs and batches
    monkeypatch.setattr(run, "ONE_RUN", 10)
    monkeypatch.setattr(run, "BATCH_COST", 10)
    monkeypatch.setattr("ragcli.read.load.RUN", 200)
    again = indexes.take_in(tmp_path / "j.db", docs)
    assert (again.added, len(again.failed)) == (40, 10)
    assert indexes.faults(tmp_path / "j.db") == []
    indexes.same(index, tmp_path / "j.db", ["text", "3"])


@pytest.mark.spec("I5")
def test_a_readers_bug_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, docs = tmp_path / "i.db", docs_of(tmp_path, a_md="alpha\n", b_md="beta\n", c_md="gamma\n")
    real = formats.read

    def buggy(request: ReadRequest) -> Iterator[Document | Problem]:
        if request.source.relative == "b.md":
            raise ZeroDivisionError("in the parser")
        return real(request)

    with monkeypatch.context() as patch:
        patch.setattr(formats, "read", buggy)
        report = indexes.take_in(index, docs)
    assert report.failed == (Problem(str(docs / "b.md"), "crashed", "ZeroDivisionError: in the parser"),)
    assert indexes.ids(index) == ["a.md", "c.md"]
    assert indexes.take_in(index, docs).added == 1  # tried again


@pytest.mark.spec("I5", "C12")
def test_a_file_that_became_unreadable_keeps_its_old_text(tmp_path: Path) -> None:
    index, docs = tmp_path / "i.db", docs_of(tmp_path, a_md="alpha\n", b_md="beta\n")
    indexes.take_in(index, docs)
    (docs / "a.md").write_bytes(b"\x00\x01\x02binary" * 100)
    report = indexes.take_in(index, docs)
    assert [problem.kind for problem in (*report.skipped, *report.failed)] == ["binary"]
    assert indexes.found(index, "alpha") == {"a.md"}


@pytest.mark.spec("I2")
def test_a_binary_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, docs = tmp_path / "i.db", indexes.write(tmp_path / "docs", {"a.bin": bytes(range(256)) * 40, "b.md": "x\n"})
    old = time.time() - 100
    os.utime(docs / "a.bin", (old, old))
    first = indexes.take_in(index, docs)
    (docs / "a.bin").chmod(0)
    monkeypatch.setattr(formats, "read", None)
    assert indexes.take_in(index, docs).skipped == first.skipped
    assert [problem.kind for problem in first.skipped] == ["binary"]


@pytest.mark.spec("I11")
def test_tags_overrule_each_other(tmp_path: Path) -> None:
    index = tmp_path / "i.db"
    docs = docs_of(tmp_path, a_md="---\nx: front\ny: front\nz: front\n---\nalpha\n", b_txt="beta\n")
    rules = indexes.keywords(ingest=IngestSettings(tags={"*.md": {"y": "rule", "z": "rule"}, "b*": {"n": 3}}))
    indexes.take_in(index, docs, settings=rules, tags={"z": "flag"})
    found = {name: metadata for name, (_, metadata, *_) in indexes.content(index).items()}
    assert found == {"a.md": {"x": "front", "y": "rule", "z": "flag"}, "b.txt": {"n": 3, "z": "flag"}}


@pytest.mark.spec("I11")
def test_tags_reach_unchanged_files_and_stay(tmp_path: Path) -> None:
    index, docs = tmp_path / "i.db", docs_of(tmp_path, a_md="alpha\n", b_md="beta\n")
    indexes.take_in(index, docs)
    assert indexes.take_in(index, docs, tags={"team": "x"}).changed == 2
    assert indexes.take_in(index, docs, tags={"team": "x"}).unchanged == 2
    (docs / "a.md").write_text("alpha changed\n")
    indexes.take_in(index, docs)
    assert [metadata for _, metadata, *_ in indexes.content(index).values()] == [{"team": "x"}] * 2
    rules = indexes.keywords(ingest=IngestSettings(tags={"a*": {"rule": 1}}))
    report = indexes.take_in(index, docs, settings=rules)
    assert (report.changed, report.unchanged) == (1, 1)
    assert indexes.take_in(index, docs, settings=rules).unchanged == 2
    assert indexes.take_in(index, docs).changed == 1  # the rule is gone, and so is its tag
    assert indexes.faults(index) == []


@pytest.mark.spec("I3")
def test_a_guess_is_told(tmp_path: Path) -> None:
    docs = indexes.write(tmp_path / "docs", {"a.txt": "caf\xe9 \x97 dash\n".encode("latin-1")})
    (warning,) = indexes.take_in(tmp_path / "i.db", docs).warnings
    assert warning.startswith(f"{docs / 'a.txt'}: ")


@pytest.mark.spec("I34", "I39")
@pytest.mark.parametrize("cores", [1, 2])
@pytest.mark.parametrize("together", [1, 40, 10_000])
def test_batches_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int, together: int) -> None:
    corpus = tmp_path / "corpus"
    make_corpus(corpus, 3)
    indexes.take_in(tmp_path / "whole.db", corpus)
    monkeypatch.setattr(run, "BATCH_COST", 15_000)
    monkeypatch.setattr(run, "ONE_RUN", 20_000)
    monkeypatch.setattr("ragcli.read.load.RUN", 8_000)
    monkeypatch.setattr(prepare, "CHUNKS", 12)
    monkeypatch.setattr(commit, "GROUP_CHUNKS", together)
    many = indexes.keywords(ingest=IngestSettings(workers=cores))
    indexes.take_in(tmp_path / "parts.db", corpus, settings=many)
    assert (indexes.rows(tmp_path / "parts.db", "SELECT max(id) FROM segments") > [(3,)]) == (together < 10_000)
    indexes.same(tmp_path / "whole.db", tmp_path / "parts.db", QUERIES)
    change_corpus(corpus, 3)
    indexes.take_in(tmp_path / "parts.db", corpus, settings=many, prune=True)
    indexes.take_in(tmp_path / "fresh.db", corpus)
    assert indexes.faults(tmp_path / "parts.db") == []
    indexes.same(tmp_path / "fresh.db", tmp_path / "parts.db", QUERIES)


def test_a_document_of_more_chunks_than_a_segment_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, docs = tmp_path / "i.db", docs_of(tmp_path, a_txt="intro here\n", b_txt="word " * 70_000, c_txt="coda\n")
    tiny = indexes.keywords(chunking=ChunkingSettings(strategy="fixed", size=5, overlap=0))
    indexes.take_in(index, docs, settings=tiny)
    assert indexes.rows(index, "SELECT chunk_count > 65536 FROM documents WHERE document_id = 'b.txt'") == [(1,)]
    assert indexes.faults(index) == []
    indexes.take_in(index, settings=tiny, delete=("b.txt",))
    assert indexes.faults(index) == []
    assert indexes.found(index, "word") == set()


@pytest.mark.spec("I5")
def test_a_worker_that_dies_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    docs = indexes.write(tmp_path / "docs", {f"{n:02}.md": f"number{n} " * 50 for n in range(12)})
    (docs / "05.md").write_text("DIE")
    monkeypatch.setattr(run, "BATCH_COST", 5_000)
    monkeypatch.setattr(workers, "_work", die_of_the_word)
    report = indexes.take_in(tmp_path / "i.db", docs, settings=indexes.keywords(ingest=IngestSettings(workers=2)))
    assert report.failed == (Problem(str(docs / "05.md"), "crashed", "the process that read it died"),)
    assert report.added == 11
    assert indexes.faults(tmp_path / "i.db") == []
    indexes.take_in(tmp_path / "one.db", *(path for path in docs.iterdir() if path.name != "05.md"))
    indexes.same(tmp_path / "i.db", tmp_path / "one.db", ["number3", "number11"])


def die_of_the_word(batch: workers.Jobs, encoded: bytes) -> prepare.Prepared:
    if any(Path(job.source.location).read_text() == "DIE" for job in batch):
        os._exit(3)
    return prepare.prepare(batch, workers._tools(encoded))


@pytest.mark.spec("I35")
def test_an_event_comes_after_its_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = tmp_path / "i.db"
    docs = indexes.write(tmp_path / "docs", {f"{n}.md": f"number {n}\n" for n in range(6)})
    monkeypatch.setattr(run, "BATCH_COST", 10)
    monkeypatch.setattr(commit, "GROUP_SECONDS", 0.0)
    monkeypatch.setattr(commit, "GROUP_SHARE", 0.0)
    seen: list[tuple[int, int]] = []

    def listen(event: Event) -> None:
        if event.stage == "saved":
            seen.append((event.done, indexes.rows(index, "SELECT count(*) FROM documents")[0][0]))

    ingest_paths([str(docs)], indexes.KEYWORDS, index, IngestOptions(), listen=listen)
    assert seen == [(9 * n, n) for n in range(1, 7)]


def test_nothing_is_made_for_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        indexes.take_in(tmp_path / "x" / "i.db", tmp_path / "nowhere")
    with pytest.raises(UsageError):
        indexes.take_in(
            tmp_path / "x" / "i.db", tmp_path, settings=indexes.keywords(chunking=ChunkingSettings(strategy="nonsense"))
        )
    assert not (tmp_path / "x").exists()


def test_the_index_does_not_read_itself(tmp_path: Path) -> None:
    docs = docs_of(tmp_path, a_md="alpha\n")
    for _ in range(2):
        report = indexes.take_in(docs / "my.db", docs)
        assert report.skipped == ()
    assert indexes.ids(docs / "my.db") == ["a.md"]


@pytest.mark.spec("I1")
def test_a_collection_from_standard_input(tmp_path: Path) -> None:
    index = tmp_path / "i.db"
    for expected in ((2, 0), (0, 2)):
        data = io.BytesIO(b'{"_id": "a", "text": "one"}\n{"_id": "b", "text": "two"}\n')
        report = ingest_paths(["-"], indexes.KEYWORDS, index, IngestOptions(name="r.jsonl"), stdin=data)
        assert (report.added, report.unchanged) == expected
    assert indexes.ids(index) == ["a", "b"]


@pytest.mark.spec("I3")
def test_nul_and_lone_surrogates_can_be_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a reader gives: here one that cleans nothing."""
    bad = Document(id="a\0b", title="t\ud800", text="x\0y \udfff z", metadata={"k\0": ("v\ud800", 3)}, name="a\0b")

    def careless(request: ReadRequest) -> Iterator[Document]:
        yield bad

    monkeypatch.setattr(formats, "read", careless)
    index, docs = tmp_path / "i.db", docs_of(tmp_path, a_md="x\n")
    assert indexes.take_in(index, docs).failed == ()
    ((name, (title, metadata, text, chunks)),) = indexes.content(index).items()
    assert (name, title, text) == ("a\ufffdb", "t\ufffd", "x\ufffdy \ufffd z")
    assert metadata == {"k\ufffd": ("v\ufffd", 3)}
    assert [chunk.text for chunk in chunks] == [text]
    assert indexes.faults(index) == []


@pytest.mark.spec("I5", "I6")
def test_renamed_records_with_one_id_in_different_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(json.dumps({"_id": f"r{n % 30}", "text": f"text {n}"}) + "\n" for n in range(40))
    index = tmp_path / "i.db"
    docs = indexes.write(tmp_path / "docs", {"a.jsonl": lines[: len(lines) // 2], "b.jsonl": lines})
    monkeypatch.setattr(run, "ONE_RUN", 10)
    monkeypatch.setattr(run, "BATCH_COST", 10)
    monkeypatch.setattr("ragcli.read.load.RUN", 200)
    report = indexes.take_in(index, docs)
    b_only = [name for name in indexes.ids(index) if name.startswith("b.jsonl/")]
    assert 0 < len(b_only) <= 30
    assert indexes.rows(index, "SELECT source, count(*) FROM documents GROUP BY source ORDER BY source")[1][1] == 30
    assert sum(problem.kind == "duplicate" for problem in report.failed) == 10
    assert indexes.take_in(index, docs, tags={"x": 1}).added == 0  # read again: each record is known again
    assert indexes.faults(index) == []


@pytest.mark.spec("I32", "I34")
@pytest.mark.parametrize("seed", range(8))
def test_any_history_ends_like_a_fresh_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(run, "BATCH_COST", chance.choice([300, 3000, 10**6]))
    monkeypatch.setattr(run, "FILE_COST", 10)
    docs = tmp_path / "docs"
    for _ in range(7):
        step(docs, chance)
        report = indexes.take_in(tmp_path / "i.db", docs, prune=True, checksum=True)
        assert report.failed == ()
        assert indexes.faults(tmp_path / "i.db") == []
    indexes.take_in(tmp_path / "fresh.db", docs)
    indexes.same(tmp_path / "i.db", tmp_path / "fresh.db", ["alder1", "birch2 elm0", "yew1 oak2 fir0"])


def step(docs: Path, chance: random.Random) -> None:
    """Some files and records appear, change, move or go."""
    names = [f"{folder}{letter}.md" for folder in ("", "sub/") for letter in "abcdef"]
    for name in chance.sample(names, 4):
        indexes.write(docs, {name: f"# {name}\n\n" + words_of(chance, chance.choice([0, 3, 30, 400]))})
    for path in chance.sample(sorted(docs.rglob("*.md")), 2):
        path.unlink()
    records = [{"_id": f"r{n}", "text": words_of(chance, 12)} for n in chance.sample(range(12), 7)]
    path = docs / "r.jsonl"
    old = path.read_text().splitlines() if path.exists() else []
    kept = [
        line for line in chance.sample(old, len(old) // 2) if json.loads(line)["_id"] not in {r["_id"] for r in records}
    ]
    path.write_text("\n".join([*kept, *map(json.dumps, records)]) + "\n")


def words_of(chance: random.Random, number: int) -> str:
    return " ".join(
        chance.choice(["alder", "birch", "elm", "fir", "oak", "yew"]) + str(chance.randrange(3)) for _ in range(number)
    )


@pytest.mark.spec("I35")
@pytest.mark.parametrize("cores", [1, 2])
def test_interrupted(tmp_path: Path, cores: int) -> None:
    corpus, index = tmp_path / "corpus", tmp_path / "i.db"
    make_corpus(corpus, 9)
    process = crash.start(index, corpus, workers=cores)
    assert process.stdout
    lines = [process.stdout.readline() for _ in range(3)]
    children = crash._children(process.pid)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert crash.wait_for_end(children) == []
    crash.inspect(index, int(lines[-1]))
    indexes.take_in(index, corpus)
    indexes.take_in(tmp_path / "fresh.db", corpus)
    indexes.same(index, tmp_path / "fresh.db", QUERIES)


@pytest.mark.spec("I4", "I5")
def test_messy_files(tmp_path: Path, shared: Path) -> None:
    index = tmp_path / "i.db"
    first = indexes.take_in(index, shared / "data" / "files")
    assert first.added > 200
    assert "crashed" not in {problem.kind for problem in first.failed}
    again = indexes.take_in(index, shared / "data" / "files")
    assert (again.added, again.changed, again.unchanged) == (0, 0, first.added)
    assert {problem.path for problem in again.failed} == {problem.path for problem in first.failed}
    assert again.skipped == first.skipped
    assert indexes.faults(index) == []


@pytest.mark.spec("I34")
def test_indexed_files_that_the_rules_leave_out_now_are_counted_in_words(tmp_path: Path) -> None:
    docs, index = indexes.write(tmp_path / "docs", {"a.txt": "x", "b.txt": "y", "c.txt": "z"}), tmp_path / "i.db"
    indexes.take_in(index, docs)
    for names, told in (
        ("a.txt\n", "1 indexed file is left out by the rules now, and is kept: --delete ID removes"),
        ("a.txt\nb.txt\n", "2 indexed files are left out by the rules now, and are kept: --delete ID removes"),
    ):
        (docs / ".ragignore").write_text(names)
        assert indexes.take_in(index, docs, prune=True).warnings == (told,)


def unlistable(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Make the system refuse to list the folder, also to root."""
    real = os.scandir

    def scandir(path: str) -> object:
        if path == str(folder):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)


@pytest.mark.spec("I5", "I34")
@pytest.mark.parametrize("refused", ["docs", "docs/locked"])
def test_nothing_below_a_folder_that_cannot_be_listed_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    index = tmp_path / "i.db"
    docs = indexes.write(tmp_path / "docs", {"a.md": "alpha\n", "locked/b.md": "beta\n", "locked/s/c.md": "gamma\n"})
    indexes.take_in(index, docs)
    (docs / "locked/s/c.md").unlink()
    with monkeypatch.context() as patch:
        unlistable(patch, tmp_path / refused)
        for prune, dry_run in ((False, False), (True, True), (True, False)):
            report = indexes.take_in(index, docs, prune=prune, dry_run=dry_run)
            assert [(problem.path, problem.kind) for problem in report.failed] == [
                (str(tmp_path / refused), "unreadable")
            ]
            assert (report.removed, report.skipped, report.warnings) == (0, (), ())
    assert indexes.ids(index) == ["a.md", "locked/b.md", "locked/s/c.md"]
    assert indexes.take_in(index, docs, prune=True).removed == 1


@pytest.mark.spec("I5", "I34")
def test_a_file_that_the_system_does_not_tell_of_is_not_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index, docs = tmp_path / "i.db", docs_of(tmp_path, a_md="alpha\n", b_md="beta\n")
    indexes.take_in(index, docs)
    known, unseen = str(docs / "b.md"), indexes.keywords(ingest=IngestSettings(exclude=("b.md",)))
    real = os.lstat

    def lstat(path: str, **how: Any) -> os.stat_result:
        if path == known:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real(path, **how)

    monkeypatch.setattr(os, "lstat", lstat)
    report = indexes.take_in(index, docs, settings=unseen, prune=True)
    assert (report.removed, report.warnings) == (0, ())


@pytest.mark.spec("I34")
def test_pruning_an_empty_folder_and_one_that_is_not_there(tmp_path: Path) -> None:
    index, docs = tmp_path / "i.db", docs_of(tmp_path, a_md="alpha\n", b_md="beta\n")
    indexes.take_in(index, docs)
    docs.rename(tmp_path / "away")
    with pytest.raises(UsageError, match="docs: no such file or folder") as told:
        indexes.take_in(index, docs, prune=True)
    assert told.value.hint.startswith("nothing was removed")
    assert indexes.ids(index) == ["a.md", "b.md"]
    docs.mkdir()
    assert indexes.take_in(index, docs, prune=True).removed == 2


@pytest.mark.spec("I34")
def test_a_file_whose_place_a_folder_took_is_gone(tmp_path: Path) -> None:
    index, docs = tmp_path / "i.db", docs_of(tmp_path, a_md="alpha\n", b_md="beta\n")
    indexes.take_in(index, docs)
    (docs / "a.md").unlink()
    indexes.write(docs, {"a.md/c.md": "gamma\n"})
    report = indexes.take_in(index, docs, prune=True)
    assert (report.added, report.removed, report.warnings) == (1, 1, ())
    assert indexes.ids(index) == ["a.md/c.md", "b.md"]


@pytest.mark.spec("I5")
@pytest.mark.parametrize("run_bytes", [4 * 1024 * 1024, 40])
def test_lost_records_are_told_until_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_bytes: int
) -> None:
    monkeypatch.setattr(run, "ONE_RUN", run_bytes)
    index, docs = tmp_path / "i.db", tmp_path / "docs"
    good = '{"_id": "a", "text": "one"}\n{"_id": "b", "text": "two"}\n'
    indexes.write(docs, {"x.jsonl": good + "no JSON\n" + '{"_id": "a", "text": "again"}\n', "y.jsonl": good[:28]})
    where = str(docs / "x.jsonl")
    for path in docs.iterdir():
        os.utime(path, (1e9, 1e9))
    first = indexes.take_in(index, docs)
    assert [(problem.path, problem.kind) for problem in first.failed] == [(where, "malformed"), (where, "duplicate")]
    before = index.read_bytes()
    lost = [Problem(where, "incomplete", "2 records could not be read, and it is unchanged since")]
    for dry_run in (False, True, False):
        report = indexes.take_in(index, docs, dry_run=dry_run)
        assert list(report.failed) == lost
        assert (report.added, report.changed, report.bytes) == (0, 0, 0)
    assert index.read_bytes() == before
    with closing(schema.open_reader(index)) as db:
        assert documents.failed_sources(db) == [Problem(where, "incomplete", "2 records could not be read")]
    indexes.write(docs, {"x.jsonl": good})
    for _ in range(2):
        assert indexes.take_in(index, docs).failed == ()


@pytest.mark.spec("I3")
@pytest.mark.parametrize("run_bytes", [4 * 1024 * 1024, 10])
def test_a_collection_in_utf_16(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_bytes: int) -> None:
    monkeypatch.setattr(run, "ONE_RUN", run_bytes)
    lines = '{"_id": "a", "text": "one"}\n{"_id": "b", "text": "two"}\n'
    docs = indexes.write(tmp_path / "docs", {"x.jsonl": lines.encode("utf-16")})
    for expected in ((2, 0), (0, 2)):
        report = indexes.take_in(tmp_path / "i.db", docs)
        assert (report.added, report.unchanged, report.failed) == (*expected, ())
    assert indexes.found(tmp_path / "i.db", "two") == {"b"}


@pytest.mark.spec("I2")
def test_what_lies_beside_another_index_is_no_document(tmp_path: Path) -> None:
    docs = docs_of(tmp_path, a_md="alpha\n")
    indexes.take_in(docs / "A.db", docs)
    indexes.write(docs, {"A.db-wal": "", "gone.db.lock": (docs / "A.db.lock").read_bytes(), "uv.lock": "version = 1\n"})
    report = indexes.take_in(tmp_path / "i.db", docs)
    assert indexes.ids(tmp_path / "i.db") == ["a.md", "uv.lock"]
    left_out = {Path(problem.path).name: problem.kind for problem in report.skipped}
    assert left_out == {"A.db": "binary", "A.db-wal": "index", "A.db.lock": "index", "gone.db.lock": "index"}


@pytest.mark.spec("I1")
def test_a_name_without_standard_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--name is for standard input"):
        indexes.take_in(tmp_path / "i.db", docs_of(tmp_path, a_md="alpha\n"), name="x")


@pytest.mark.spec("I5")
def test_a_name_that_is_not_utf8_is_a_failure(tmp_path: Path) -> None:
    docs = docs_of(tmp_path, a_md="alpha\n")
    Path(os.fsdecode(os.fsencode(docs) + b"/caf\xe9.md")).write_text("x")
    report = indexes.take_in(tmp_path / "i.db", docs)
    assert [(problem.kind, problem.path) for problem in report.failed] == [("unreadable name", f"{docs}/caf\\udce9.md")]
    assert report.skipped == ()


@pytest.mark.spec("I34")
def test_more_records_change_than_are_deleted_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commit, "AT_ONCE", 2)
    records = tmp_path / "docs" / "r.jsonl"
    for word, count in (("alpha", 9), ("beta", 9), ("gamma", 3)):
        lines = [json.dumps({"_id": f"r{n}", "text": f"{word} {n}"}) for n in range(count)]
        indexes.write(tmp_path / "docs", {"r.jsonl": "\n".join(lines)})
        report = indexes.take_in(tmp_path / "i.db", records)
    assert (report.added, report.changed, report.removed) == (0, 3, 6)
    assert indexes.faults(tmp_path / "i.db") == []
    indexes.take_in(tmp_path / "fresh.db", records)
    indexes.same(tmp_path / "fresh.db", tmp_path / "i.db", ["alpha", "gamma 2"])
