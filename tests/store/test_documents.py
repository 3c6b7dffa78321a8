"""Documents in and out of the index, whole (spec I6, I10, I14, I15)."""

from __future__ import annotations

import json
import os
import random
from contextlib import closing
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.filters import matches
from ragcli.options import ChunkingSettings, Condition
from ragcli.store.sqlite import documents, schema, tags
from ragcli.store.sqlite.eligible import eligible, kinds, sqlite_glob
from ragcli.types import MetadataValue
from tests import indexes

MOMENT = datetime(2024, 5, 1, 12, 30, 15, 250, tzinfo=timezone(timedelta(hours=2)))
EVERY_KIND: dict[str, MetadataValue] = {
    "int": 3, "big": 2**80, "float": 2.5, "inf": float("inf"), "yes": True, "no": False, "date": date(2024, 5, 1),
    "moment": MOMENT, "naive": datetime(2024, 5, 1), "text": "3", "none": None,
    "list": (1, "1", True, date(2024, 1, 1)),
    "empty": (), "ключ 鍵": "žluť 🦊\u200f", "looks": "2024-05-01",
}  # fmt: skip


@pytest.mark.spec("I10")
def test_every_kind_of_value_comes_back_as_it_went_in() -> None:
    back = tags.decode(tags.encode(EVERY_KIND))
    assert back == EVERY_KIND
    assert {key: type(value) for key, value in back.items()} == {key: type(value) for key, value in EVERY_KIND.items()}
    assert [type(member) for member in back["list"]] == [int, str, bool, date]  # type: ignore[union-attr]


@pytest.mark.spec("I10")
def test_equal_values_of_one_kind_have_one_form() -> None:
    assert tags.comparable(3) == tags.comparable(3.0)
    assert tags.comparable(date(2024, 5, 1)) == tags.comparable(datetime(2024, 5, 1, tzinfo=UTC))
    assert tags.comparable(MOMENT) == tags.comparable(MOMENT.astimezone(UTC))
    assert tags.comparable(2**80) == tags.comparable(float(2**80))
    assert tags.rows({"a": float("nan"), "b": None, "c": (), "d": (1, 1.0)}) == [("d", "number", 1)]


HOUR_EAST = timezone(timedelta(hours=1))
SCALARS = st.one_of(
    st.integers(-4, 4), st.sampled_from([0.0, 1.0, 2.5, -0.0]), st.booleans(), st.sampled_from(["1", "true", "", "a"]),
    st.sampled_from([date(2024, 1, 1), datetime(2024, 1, 1), datetime(2024, 1, 1, 1, tzinfo=HOUR_EAST)]),
)  # fmt: skip
VALUES = st.one_of(SCALARS, st.none(), st.lists(SCALARS, max_size=3).map(tuple))


@pytest.mark.spec("R9", "I10")
@settings(max_examples=60, deadline=None)
@given(st.lists(st.dictionaries(st.sampled_from(["k", "l"]), VALUES, max_size=2), min_size=1, max_size=6), SCALARS)
def test_the_stores_filter_is_the_reference_filter(metadata: list[dict[str, object]], value: object) -> None:
    with closing(schema._connect(":memory:", uri=False)) as db:
        schema.create_tables(db)
        for n, found in enumerate(metadata):
            db.execute(
                "INSERT INTO documents VALUES (?,?,NULL,1,'','','',NULL,NULL,NULL,0,x'00',1,0,?,2)", (n, f"d{n}", n * 2)
            )
            db.executemany("INSERT INTO metadata VALUES (?,?,?,?)", [(*row, n) for row in tags.rows(found)])  # type: ignore[arg-type]
        condition = Condition("k", value)
        wanted = {n for n, found in enumerate(metadata) if matches(found, condition)}  # type: ignore[arg-type]
        ranges = eligible(db, [condition])
        assert ranges is not None
        assert {id_ // 2 for first, last in ranges for id_ in range(first, last + 1)} == wanted
        assert all(one[1] + 1 < other[0] for one, other in pairwise(ranges))
        assert kinds(db) == _kinds(metadata)


def _kinds(metadata: list[dict[str, object]]) -> dict[str, set[str]]:
    expected: dict[str, set[str]] = {}
    for found in metadata:
        for key, kind, _ in tags.rows(found):  # type: ignore[arg-type]
            expected.setdefault(key, set()).add(kind)
    return expected


def test_no_condition_is_no_filter() -> None:
    with closing(schema._connect(":memory:", uri=False)) as db:
        assert eligible(db, []) is None


GLOBS = [
    "a/*",
    "*.md",
    "a/?.md",
    "[ab].md",
    "[!a]*",
    "a[b",
    "x]y",
    "[]]",
    "[!]]",
    "*",
    "",
    "[^a]",
    "[a^]",
    "[a-c].md",
    "[[]b",
]
NAMES = ["a/b.md", "a/bb.md", "a.md", "b.md", "c/d/e.txt", "a[b", "x]y", "]", "^", "", "A.md", "é.md", "[b"]


@pytest.mark.spec("R9")
@pytest.mark.parametrize("pattern", GLOBS)
def test_a_glob_is_a_glob_of_the_shell(pattern: str) -> None:
    condition = Condition("path", pattern)
    with closing(schema._connect(":memory:", uri=False)) as db:
        found = {name for name in NAMES if db.execute("SELECT ? GLOB ?", (name, sqlite_glob(pattern))).fetchone()[0]}
    assert found == {name for name in NAMES if matches({}, condition, name)}


@pytest.mark.spec("I15")
def test_chunks_are_spans_of_their_document(tmp_path: Path) -> None:
    chance = random.Random(1)
    text = "\n".join("".join(chance.choice("abcé日🦊 ") for _ in range(chance.randrange(200))) for _ in range(1500))
    assert len(text) > 3 * documents.BLOCK
    index = tmp_path / "i.db"
    small = indexes.keywords(chunking=ChunkingSettings(size=300, overlap=40))
    indexes.take_in(index, indexes.write(tmp_path / "docs", {"a.txt": text, "b.txt": "x"}), settings=small)
    with closing(schema.open_reader(index)) as db:
        stored = documents.document(db, "a.txt")
        assert stored is not None
        assert documents.text_of(db, stored.number) == text
        chunks = documents.chunks(db, range(stored.first_chunk, stored.first_chunk + stored.chunk_count))
        assert len(chunks) == stored.chunk_count > 300
        for chunk in chunks.values():
            assert chunk.text == text[chunk.start : chunk.end]
            assert chunk.start_line == text.count("\n", 0, chunk.start) + 1
            assert chunk.end_line == text.count("\n", 0, chunk.end - 1) + 1
        for start, end in ((0, 1), (32767, 32769), (32768, 32768), (0, len(text)), (65535, 98305)):
            assert documents.span_of(db, stored.number, start, end) == text[start:end]
        assert documents.chunks(db, [10**9]) == {}


@pytest.mark.spec("I14")
def test_times_are_known_or_not_there(tmp_path: Path) -> None:
    records = '{"_id": "r1", "text": "x"}\n{"_id": "r2", "text": "y", "metadata": {"updated_at": "2020-02-02"}}\n'
    docs = indexes.write(
        tmp_path / "docs",
        {"a.md": "---\ncreated: 2021-03-04\n---\nhello\n", "b.md": "hello\n", "r.jsonl": records},
    )
    os.utime(docs / "b.md", (1_600_000_000, 1_600_000_000))
    index = tmp_path / "i.db"
    indexes.take_in(index, docs)
    with closing(schema.open_reader(index)) as db:
        found = {name: documents.document(db, name) for name in ("a.md", "b.md", "r1", "r2")}
    times = {name: (one.created_at, one.updated_at) for name, one in found.items() if one}
    assert times["a.md"][0] == "2021-03-04T00:00:00Z"
    assert times["b.md"] == (None, "2020-09-13T12:26:40Z")
    assert times["r1"] == (None, None)
    assert times["r2"] == (None, "2020-02-02T00:00:00Z")


@pytest.mark.spec("C12")
def test_stale(tmp_path: Path) -> None:
    docs = indexes.write(
        tmp_path / "docs", {name: f"word {name}\n" for name in ("same", "touched", "edited", "longer", "gone")}
    )
    index = tmp_path / "i.db"
    indexes.take_in(index, docs)
    os.utime(docs / "touched", (1, 1))
    (docs / "edited").write_text("sword edited"[1:] + "!")
    assert (docs / "edited").stat().st_size == len("word edited\n")
    (docs / "longer").write_text("longer than before\n")
    (docs / "gone").unlink()
    with closing(schema.open_reader(index)) as db:
        names = dict(db.execute("SELECT first_chunk, document_id FROM documents"))
        found = {names[chunk]: state for chunk, state in documents.stale(db, list(names)).items()}
    assert found == {"same": None, "touched": None, "edited": "changed", "longer": "changed", "gone": "missing"}


@pytest.mark.spec("I6")
def test_two_roots_with_the_same_relative_path(tmp_path: Path) -> None:
    index = tmp_path / "i.db"
    for name in ("one/docs", "two/docs", "three/docs"):
        indexes.write(tmp_path / name, {"a.md": f"{name}\n"})
    indexes.take_in(index, tmp_path / "one/docs", tmp_path / "two/docs")
    indexes.take_in(index, tmp_path / "three/docs")
    assert indexes.ids(index) == ["a.md", "docs/a.md", "three/docs/a.md"]
    # a document keeps its id, changed or not, whatever happens to the others
    indexes.write(tmp_path / "two/docs", {"a.md": "changed\n"})
    (tmp_path / "one/docs/a.md").unlink()
    report = indexes.take_in(index, *(tmp_path / name for name in ("one/docs", "two/docs", "three/docs")), prune=True)
    assert (report.changed, report.removed, report.unchanged) == (1, 1, 1)
    assert indexes.ids(index) == ["docs/a.md", "three/docs/a.md"]
    assert indexes.found(index, "changed") == {"docs/a.md"}


@pytest.mark.spec("I6")
def test_a_file_reached_two_ways_is_one_document(tmp_path: Path) -> None:
    index = tmp_path / "i.db"
    docs = indexes.write(tmp_path / "top", {"docs/a.md": "hello\n", "b.md": "hello\n"})
    indexes.take_in(index, docs)
    assert indexes.ids(index) == ["b.md", "docs/a.md"]
    (docs / "docs/a.md").write_text("hello again\n")
    report = indexes.take_in(index, docs / "docs")
    assert (report.added, report.changed) == (0, 1)
    assert indexes.ids(index) == ["b.md", "docs/a.md"]


@pytest.mark.spec("I6")
def test_records_of_two_collections_do_not_collide(tmp_path: Path) -> None:
    index = tmp_path / "i.db"
    line = json.dumps({"_id": "1", "text": "hello"}) + "\n"
    indexes.take_in(index, indexes.write(tmp_path / "docs", {"a.jsonl": line, "b.jsonl": line.replace("hello", "bye")}))
    assert indexes.ids(index) == ["1", "b.jsonl/1"]
    assert indexes.take_in(index, tmp_path / "docs").unchanged == 2
    indexes.write(tmp_path / "docs", {"b.jsonl": line.replace("hello", "farewell")})
    assert indexes.take_in(index, tmp_path / "docs").changed == 1
    assert indexes.ids(index) == ["1", "b.jsonl/1"]
    assert indexes.faults(index) == []
