"""Lines of a batch, and what is written for each."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from ragcli.cli import batch
from ragcli.cli.common import Common, Session
from ragcli.errors import ExpressionError, UsageError
from ragcli.options import OutputSettings, Settings
from tests.cli.results import hit, result
from tests.cli.test_formats import SCHEMA


class FakePipeline:
    """Finds one hit for every query but `nothing` and `broken`."""

    def __enter__(self) -> FakePipeline:
        return self

    def __exit__(self, *error: object) -> None:
        return None

    def retrieve(self, query: str, options: object) -> Any:
        if query == "broken":
            raise ExpressionError("no such field")
        return result(*([] if query == "nothing" else [hit()]), query=query)


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setattr(Session, "open", lambda session, listen: FakePipeline())
    return Session(Common(), Settings(), {}, Path("index.db"))


def run(session: Session, path: Path, text: str, **how: Any) -> int:
    path.write_text(text, encoding="utf-8")
    return batch.run_batch(session, str(path), **({"chosen": None, "explain": False, "fail_empty": False} | how))


@pytest.mark.spec("C3", "C11")
def test_results_come_in_the_order_of_the_input_with_their_ids(
    session: Session, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    queries = '{"_id": "q9", "text": "one"}\ntwo words\n{"_id": 7, "text": "nothing"}\n'
    assert run(session, tmp_path / "q", queries) == 0
    objects = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    for value in objects:
        jsonschema.validate(value, SCHEMA)
    assert [(o["_id"], o["query"], len(o["hits"])) for o in objects] == [
        ("q9", "one", 1),
        ("2", "two words", 1),
        ("7", "nothing", 0),
    ]


@pytest.mark.spec("C3", "C9", "C11")
def test_a_failed_query_is_an_object_on_its_line_and_the_code_is_4(
    session: Session, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    queries = 'one\nbroken\n\n{"_id": "x"}\n{bad\n{"_id": [], "text": "a"}\nlast'
    assert run(session, tmp_path / "q", queries) == 4
    out, err = capfd.readouterr()
    objects = [json.loads(line) for line in out.splitlines()]
    for value in objects:
        jsonschema.validate(value, SCHEMA)
    assert [o["_id"] for o in objects] == ["1", "2", "3", "x", "5", "6", "7"]
    assert ["error" in o for o in objects] == [False, True, True, True, True, True, False]
    assert objects[1]["error"] == "no such field"
    assert "warning: query 2: no such field" in err


@pytest.mark.spec("C3")
def test_a_trec_run(session: Session, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    trec = session._replace(settings=Settings(output=OutputSettings(format="trec")))
    assert run(trec, tmp_path / "q", "one\nbroken\ntwo\n", chosen="trec") == 4
    assert capfd.readouterr().out.splitlines() == [
        "1 Q0 handbook/leave.md 1 2.5 ragcli",
        "3 Q0 handbook/leave.md 1 2.5 ragcli",
    ]


@pytest.mark.spec("C9")
def test_an_empty_batch_result_fails_when_asked_to(session: Session, tmp_path: Path) -> None:
    assert run(session, tmp_path / "q", "nothing\n", fail_empty=True) == 1
    assert run(session, tmp_path / "q", "nothing\none\n", fail_empty=True) == 0


@pytest.mark.spec("C7")
def test_formats_that_hold_one_result_are_refused(session: Session, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="csv"):
        run(session, tmp_path / "q", "one\n", chosen="csv")
    with pytest.raises(UsageError, match="No such file"):
        batch.run_batch(session, str(tmp_path / "none"), None, explain=False, fail_empty=False)


def test_lines_are_read_as_utf8_with_or_without_a_mark() -> None:
    read = list(batch.lines(io.BytesIO("\ufeffcafé\r\n故乡\n".encode() + b"caf\xe9\n")))
    assert [line.text for line in read] == ["café", "故乡", "caf\ufffd"]
    assert [line.fault for line in read] == ["", "", "not UTF-8"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig"])
def test_lines_in_wide_encodings_are_read(encoding: str) -> None:
    text = 'torque sensor\n{"_id": "q2", "text": "café"}\n'
    if encoding == "utf-16-be":
        text = "\ufeff" + text
    read = list(batch.lines(io.BytesIO(text.encode(encoding))))
    assert read == [batch.Line("1", "torque sensor"), batch.Line("q2", "café")]


def test_a_line_nested_too_deep_is_that_lines_fault() -> None:
    first, second = batch.lines(io.BytesIO(b'{"text": ' + b"[" * 100_000 + b"\ngripper\n"))
    assert first.fault.startswith("not JSON")
    assert second == batch.Line("2", "gripper")


def test_an_empty_batch_has_no_lines() -> None:
    assert list(batch.lines(io.BytesIO(b""))) == []
