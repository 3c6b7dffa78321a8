"""D43: a file-based store failed on a metadata type. Every kind comes back from the file as it went in."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import pytest

from ragcli.filters import matches
from ragcli.options import Condition
from ragcli.store.sqlite import documents, eligible, schema, tags
from ragcli.types import Metadata, Scalar, Source

METADATA: Metadata = {
    "int": 3,
    "negative": -(2**63),
    "float": 0.1,
    "whole float": 3.0,
    "yes": True,
    "no": False,
    "text": "3",
    "empty": "",
    "date": date(2024, 5, 1),
    "moment": datetime(2024, 5, 1, 10, 30, tzinfo=UTC),
    "zoned": datetime(2024, 5, 1, 12, 30, tzinfo=timezone(timedelta(hours=2))),
    "naive": datetime(2024, 5, 1, 10, 30, 0, 250),
    "list": ("a", 1, 2.5, True, date(2024, 5, 1)),
    "no members": (),
    "none": None,
    "größe": "Ünïcödé 漢字 🙂 'quoted' \x00 \"too\"",
    "odd.key $date": "{}",
}
ONE_CHUNK = (0, 0, 4, 1, 1, None, None, None, 0, None, None, 1)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "index.db"
    db = schema.open_writer(path)
    new = documents.NewDocument(
        "a.md",
        "",
        "a.md",
        "text",
        tags.encode(METADATA),
        tags.rows(METADATA),
        None,
        None,
        b"h" * 16,
        1,
        "text",
        [ONE_CHUNK],
    )
    with documents.batch(db, str.split, now=0) as batch:
        source = batch.put_source(Source(root="/r", relative="a.md", location="/r/a.md", size=4, mtime_ns=0))
        batch.add(new, source=source, document_id="a.md", first_chunk=1)
        batch.flush([])
    db.close()
    return path


@pytest.mark.spec("I10")
def test_every_kind_comes_back_from_the_file(index: Path) -> None:
    db = schema.open_reader(index)
    stored = documents.document(db, "a.md")
    db.close()
    assert stored is not None
    assert stored.metadata == METADATA
    for key, value in METADATA.items():
        assert type(stored.metadata[key]) is type(value), key
    assert [type(one) for one in stored.metadata["list"]] == [str, int, float, bool, date]  # type: ignore[union-attr]


WANTED: list[Scalar] = [
    3, 3.0, "3", 1, True, False, 0, "", 0.1, "0.1", -(2**63), date(2024, 5, 1), datetime(2024, 5, 1),
    datetime(2024, 5, 1, 10, 30, tzinfo=UTC), datetime(2024, 5, 1, 10, 30), datetime(2024, 5, 1, 10, 30, 0, 250),
    "2024-05-01", "a", 2.5, "None", "{}", str(METADATA["größe"]),
]  # fmt: skip


@pytest.mark.spec("R9", "I10")
def test_the_file_is_filtered_as_values_compare(index: Path) -> None:
    db = schema.open_reader(index)
    for key in METADATA:
        for value in WANTED:
            condition = Condition(key, value)
            found = eligible.eligible(db, [condition]) == [(1, 1)]
            assert found == matches(METADATA, condition), condition
    db.close()


@pytest.mark.spec("R9")
@pytest.mark.parametrize(
    "glob", ["*.md", "a.*", "?.md", "[ab].md", "[!a].md", "A.md", "a", "*", "b/*", "[", "a[.]md", "[^b].md"]
)
def test_the_file_is_filtered_by_path_as_globs_match(index: Path, glob: str) -> None:
    db = schema.open_reader(index)
    condition = Condition("path", glob)
    assert (eligible.eligible(db, [condition]) == [(1, 1)]) == matches({}, condition, "a.md")
    db.close()
