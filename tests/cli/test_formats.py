"""Every data format: what is written is read back by the reader of that format."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import ir_measures
import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.cli.formats import Reply, render
from ragcli.cli.formats.json import error_object
from ragcli.types import Chunk, Drop, Result
from tests.cli.results import hit, result

SCHEMA = json.loads((Path(__file__).parent / "query.schema.json").read_text())
NASTY = 'a\n"b",c\td.md'


def written(name: str, found: Result, **how: Any) -> str:
    pieces = list(render(name, Reply(result=found, **how)))
    return "".join(piece.decode() if isinstance(piece, bytes) else piece for piece in pieces)


def checked(text: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(text)
    jsonschema.validate(value, SCHEMA)
    return value


@pytest.mark.spec("C11", "R2")
def test_json_holds_the_contract() -> None:
    drop = Drop(hit(index=9), "where", "score > 3: score is 2.5")
    value = checked(written("json", result(hit(), hit(stale="changed", page=3, page_end=4), dropped=(drop,))))
    first, second = value["hits"]
    assert (value["schema"], value["query"], value["mode"]) == (1, "torque sensor", "keyword")
    assert (first["rank"], second["rank"]) == (1, 2)
    assert (first["start"], first["end"]) == (100, 100 + len(first["text"]))
    assert first["arms"] == {"bm25": {"rank": 1, "score": 2.5, "part": 2.5}}
    assert first["metadata"] == {"lang": "de", "year": 2024, "day": "2024-05-01", "at": "2024-05-01T10:00:00Z"}
    assert "page" not in first
    assert (second["page"], second["page_end"], second["stale"]) == (3, 4, "changed")
    assert value["dropped"] == [
        {"document_id": "handbook/leave.md", "chunk_index": 9, "stage": "where", "reason": "score > 3: score is 2.5"}
    ]
    assert value["stages"] == [{"name": "bm25", "in": 7, "out": 2, "ms": 2.5}]


@pytest.mark.spec("C11")
def test_no_hits_is_an_empty_list_and_an_error_is_an_object() -> None:
    assert checked(written("json", result()))["hits"] == []
    assert checked(json.dumps(error_object("q7", "x", "no such field")))["error"] == "no such field"


def test_explained_json_has_the_parts_that_add_up_to_the_score() -> None:
    (only,) = checked(written("json", result(hit()), explain=True))["hits"]
    assert sum(only["terms"].values()) == pytest.approx(only["score"])


@pytest.mark.spec("C13")
@given(text=st.text(st.characters(exclude_categories=["Cs"])))
@settings(max_examples=60, deadline=None)
def test_json_keeps_the_exact_text_whatever_it_is(text: str) -> None:
    line = written("json", result(hit(text)))
    assert line.count("\n") == 1
    assert json.loads(line)["hits"][0]["text"] == text


@pytest.mark.spec("C11")
def test_jsonl_is_a_hit_a_line_and_of_a_batch_a_result_a_line() -> None:
    lines = written("jsonl", result(hit(), hit(index=4))).splitlines()
    assert [json.loads(line)["chunk_index"] for line in lines] == [3, 4]
    assert written("jsonl", result()) == ""
    assert checked(written("jsonl", result(hit()), query_id="q1"))["_id"] == "q1"


@pytest.mark.spec("C2", "C13")
@given(
    text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
    path=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1),
)
@settings(max_examples=60, deadline=None)
def test_csv_and_tsv_give_back_text_and_path(text: str, path: str) -> None:
    found = result(hit(text, path=path))
    header, row = csv.reader(io.StringIO(written("csv", found), newline=""))
    values = dict(zip(header, row, strict=True))
    assert (values["text"], values["path"], values["start_line"]) == (text, path, "12")
    assert json.loads(values["metadata"])["year"] == 2024
    names, fields, rest = written("tsv", found).split("\n")
    values = dict(zip(names.split("\t"), map(unescaped, fields.split("\t")), strict=True))
    assert (values["text"], values["path"], rest) == (text, path, "")


def unescaped(field: str) -> str:
    """A plain reading of the four escapes, character by character."""
    meaning = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}
    characters = iter(field)
    return "".join(meaning[next(characters)] if character == "\\" else character for character in characters)


def test_csv_of_no_hits_is_its_header() -> None:
    assert written("csv", result()).startswith("rank,score,score_kind,document_id,")
    assert written("csv", result()).endswith("metadata,compressed_text\r\n")
    assert written("tsv", result()).count("\n") == 1


@pytest.mark.spec("C2")
def test_paths_are_each_document_once_in_the_order_of_the_hits() -> None:
    found = result(hit(path="b.md"), hit(path="a b.md"), hit(path="b.md", index=4))
    assert written("paths", found) == "b.md\na b.md\n"
    assert written("paths", found, null=True) == "b.md\0a b.md\0"


@pytest.mark.spec("C13")
def test_a_path_with_a_line_end_is_quoted_as_git_does_or_exact_with_null() -> None:
    assert written("paths", result(hit(path=NASTY))) == '"a\\n\\"b\\",c\\td.md"\n'
    assert written("paths", result(hit(path="\x1b[31m"))) == '"\\033[31m"\n'
    assert written("paths", result(hit(path=NASTY)), null=True) == NASTY + "\0"


@pytest.mark.spec("C11")
def test_trec_pools_chunks_to_documents_by_their_best_chunk() -> None:
    hits = [hit(score=s, document_id=d) for d, s in (("a", 3.0), ("d", 2.0), ("a", 1.0), ("b c", 0.5))]
    run = written("trec", result(*hits), query_id="q 1")
    assert run.splitlines() == [
        "q%201 Q0 a 1 3.0 ragcli",
        "q%201 Q0 d 2 2.0 ragcli",
        "q%201 Q0 b%20c 3 0.5 ragcli",
    ]
    read = [(entry.query_id, entry.doc_id, entry.score) for entry in ir_measures.read_trec_run(io.StringIO(run))]  # type: ignore[no-untyped-call]
    assert read == [("q%201", "a", 3.0), ("q%201", "d", 2.0), ("q%201", "b%20c", 0.5)]


def test_trec_of_a_single_query_is_query_1() -> None:
    assert written("trec", result(hit())) == "1 Q0 handbook/leave.md 1 2.5 ragcli\n"


@pytest.mark.spec("C2", "C13")
def test_markdown_is_a_numbered_list_with_quoted_passages() -> None:
    found = result(hit("line one\n\n# two", heading="[x](y) <b>"), hit(path="a`b.md", stale="missing"))
    assert written("md", found).splitlines() == [
        "1. `handbook/leave.md:12-13` › \\[x\\](y) \\<b\\> (bm25 2.5000)",
        "",
        "   > line one",
        "   >",
        "   > # two",
        "",
        "2. `` a`b.md:12-13 `` › Reset (bm25 2.5000) **[missing]**",
        "",
        "   > Reset the torque sensor.",
        "   > Hold the button for five seconds.",
    ]
    assert written("md", result()) == "No hits.\n"


@pytest.mark.spec("C2", "C12")
def test_plain_text_is_whole_uncoloured_and_marks_stale_hits() -> None:
    long = "torque " * 400
    shown = written("plain", result(hit(), hit(long.strip(), stale="changed", page=7, heading="")))
    assert shown.splitlines() == [
        "1. handbook/leave.md:12-13  bm25 2.5000  Reset",
        "    Reset the torque sensor.",
        "    Hold the button for five seconds.",
        "",
        "2. handbook/leave.md p. 7  bm25 2.5000  [changed since ingest]",
        "    " + long.strip(),
    ]


def test_plain_text_explains_scores_and_drops() -> None:
    drop = Drop(hit(), "where", "page > 3: no page")
    shown = written("plain", result(hit(), dropped=(drop,)), explain=True)
    assert "= bm25 2.5000 = torque 1.5000 + sensor 1.0000" in shown
    assert shown.endswith("dropped: 1\n    handbook/leave.md#3  where: page > 3: no page\n")


def test_a_record_of_a_collection_is_known_by_its_id() -> None:
    record = Chunk(document_id="MED-10", index=0, start=0, end=1, text="x", start_line=1, end_line=1)
    found = result(hit("x", document_id="MED-10", path=""))
    assert record.path == ""
    assert written("paths", found) == "MED-10\n"
    assert written("plain", found).startswith("1. MED-10:12-13")


def test_people_see_paths_below_the_working_folder_relative_to_it() -> None:
    found = result(hit(path="/home/ann/docs/a.md"), hit(path="/home/annika/b.md"))
    shown = written("plain", found, folder="/home/ann")
    assert [line.split()[1] for line in shown.splitlines() if line[:1] in set("12")] == [
        "docs/a.md:12-13",
        "/home/annika/b.md:12-13",
    ]
    assert json.loads(written("json", found, folder="/home/ann"))["hits"][0]["path"] == "/home/ann/docs/a.md"
