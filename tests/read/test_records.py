from __future__ import annotations

import datetime as dt
from pathlib import Path

import pytest

from ragcli.read.formats import read
from ragcli.types import Document, Problem
from tests.read.sources import one, request


@pytest.mark.spec("I1", "I6", "I10", "I11")
def test_a_line_of_beir_is_a_document() -> None:
    document = one(
        "c.jsonl", b'{"_id": "d1", "title": "T", "text": "a\\nb", "metadata": {"n": 3, "s": "3", "b": true}}\n'
    )
    assert (document.id, document.title, document.text, document.name) == ("d1", "T", "a\nb", "")
    assert document.metadata == {"n": 3, "s": "3", "b": True}
    assert {key: type(value) for key, value in document.metadata.items()} == {"n": int, "s": str, "b": bool}


@pytest.mark.spec("I6")
def test_ids_of_records() -> None:
    data = b'{"id": 7, "text": "a"}\n\n{"text": "b"}\n{"_id": "x", "id": "y", "text": "c"}\n'
    assert [document.id for document in read(request("f/c.jsonl", data)) if isinstance(document, Document)] == [
        "7",
        "f/c.jsonl#3",
        "x",
    ]
    odd = list(read(request("f/c.jsonl", b'{"_id": null, "id": "z", "text": "a"}\n{"_id": "", "text": "b"}\n')))
    assert isinstance(odd[0], Document)
    assert odd[0].id == "z"
    assert isinstance(odd[1], Problem)
    assert odd[1].reason == "line 2: its id is empty"


@pytest.mark.spec("I5")
def test_a_broken_line_is_a_problem_with_its_number_and_the_rest_goes_in() -> None:
    lines = [
        b'{"_id": "1", "text": "one"}',
        b'{"_id": "2", "text": ',
        b"[1, 2]",
        b'{"_id": "3", "text": 5}',
        b'{"_id": "4", "text": "\xff"}',
        b'{"_id": [], "text": "x"}',
        b"[" * 100_000,
        b'{"_id": "8", "text": "eight"}',
    ]
    found = list(read(request("c.jsonl", b"\n".join(lines), first_line=101)))
    documents = [item for item in found if isinstance(item, Document)]
    problems = [item for item in found if isinstance(item, Problem)]
    assert [(document.id, document.first_line) for document in documents] == [("1", 101), ("8", 108)]
    assert [problem.kind for problem in problems] == ["malformed"] * 6
    assert [problem.reason.split(":")[0] for problem in problems] == [f"line {number}" for number in range(102, 108)]


def test_a_byte_order_mark_and_windows_newlines_are_no_part_of_a_record() -> None:
    document = one("c.jsonl", b'\xef\xbb\xbf{"_id": "1", "text": "x"}\r\n')
    assert (document.id, document.text) == ("1", "x")


@pytest.mark.spec("I3")
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
def test_a_collection_with_the_mark_of_a_wide_encoding(encoding: str) -> None:
    lines = '\ufeff{"_id": "1", "text": "\u0a0aé"}\r\n{"_id": "2", "text": "故乡"}\n'
    found = list(read(request("c.jsonl", lines.encode(encoding))))
    assert [(item.id, item.text, item.first_line) for item in found if isinstance(item, Document)] == [
        ("1", "\u0a0aé", 1),
        ("2", "故乡", 2),
    ]
    assert len(found) == 2


@pytest.mark.spec("I3")
def test_bytes_that_break_a_wide_encoding_are_told() -> None:
    data = '\ufeff{"_id": "1", "text": "x"}\n'.encode("utf-16-le") + b"\x00"
    assert [item.kind for item in read(request("c.jsonl", data)) if isinstance(item, Problem)][:1] == ["decoding"]


def test_a_reason_keeps_its_capitals() -> None:
    (problem,) = read(request("c.jsonl", b'{"a": 1,}'))
    assert isinstance(problem, Problem)
    assert "(JSON is malformed" in problem.reason


@pytest.mark.spec("I3")
def test_a_nul_in_a_record_is_replaced() -> None:
    document = one("c.jsonl", b'{"_id": "a\\u0000", "text": "x\\u0000y", "metadata": {"k\\u0000": "v\\u0000"}}')
    assert (document.id, document.text, document.metadata) == ("a\ufffd", "x\ufffdy", {"k\ufffd": "v\ufffd"})


@pytest.mark.spec("I10", "I14")
def test_other_keys_are_metadata_and_dates_stay_strings() -> None:
    document = one("c.jsonl", b'{"_id": "1", "text": "x", "url": "u", "created_at": "2024-05-01T12:00:00+02:00"}')
    assert document.metadata == {"url": "u", "created_at": "2024-05-01T12:00:00+02:00"}
    assert document.created_at == dt.datetime(2024, 5, 1, 10).isoformat() + "Z"


def test_a_record_without_text_is_shown_as_lines() -> None:
    document = one("c.jsonl", b'{"company": "3M", "year": 2015, "tags": ["a", "b"]}')
    assert document.text == "company: 3M\nyear: 2015\ntags: a, b"


@pytest.mark.spec("I4")
def test_json_becomes_a_line_a_leaf() -> None:
    document = one(
        "p.json", b'{"title": "Pump", "parts": [{"no": 1, "ok": true}, {"no": 2, "ok": null}], "tags": ["a", 2]}'
    )
    assert document.title == "Pump"
    assert document.text.split("\n") == [
        "title: Pump",
        "parts[0].no: 1",
        "parts[0].ok: true",
        "parts[1].no: 2",
        "parts[1].ok: null",
        "tags: a, 2",
    ]


@pytest.mark.spec("I1")
def test_a_json_array_of_records_is_a_collection() -> None:
    found = list(read(request("c.json", b'[{"_id": "1", "text": "a"}, {"id": 2, "text": "b", "title": "B"}]')))
    assert [(item.id, item.text, item.title) for item in found if isinstance(item, Document)] == [
        ("1", "a", ""),
        ("2", "b", "B"),
    ]


@pytest.mark.spec("I5", "I38")
@pytest.mark.parametrize("data", [b"{'single': 1}", b"// comment\n{}", b"[" * 5000, b'{"a":' * 100 + b"1" + b"}" * 100])
def test_json_that_cannot_be_shown_goes_in_as_text(data: bytes) -> None:
    document = one("x.json", data)
    assert document.text == data.decode()
    assert "plain text" in document.warnings[0]


def test_real_records(shared: Path) -> None:
    data = (shared / "data/files/json/financebench_document_information.jsonl").read_bytes()
    found = list(read(request("f.jsonl", data)))
    assert len(found) == data.count(b"\n") + (not data.endswith(b"\n"))
    assert isinstance(found[0], Document)
    assert "company: 3M" in found[0].text


@pytest.mark.spec("I11")
def test_a_record_without_text_keeps_its_metadata() -> None:
    document = one("c.jsonl", b'{"_id": "1", "name": "pump", "metadata": {"year": 2024}}\n')
    assert document.metadata == {"year": 2024}
    assert "name: pump" in document.text
