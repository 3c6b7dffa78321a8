from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.read.sources import one


def lines(name: str, data: str) -> list[str]:
    return one(name, data.encode()).text.split("\n")


@pytest.mark.spec("I4")
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_a_value_stands_with_its_column(delimiter: str) -> None:
    rows = [["name", "age", "town"], ["Ada", "36", ""], ["Bob, the; 2nd|\t.", "7", "Bern"]]
    data = "\n".join(delimiter.join(f'"{cell}"' for cell in row) for row in rows) + "\n"
    assert lines("a.csv", data) == [
        "name | age | town",
        "name: Ada; age: 36",
        "name: Bob, the; 2nd| .; age: 7; town: Bern",
    ]


@pytest.mark.spec("I15")
def test_one_line_a_record_so_that_line_numbers_hold() -> None:
    data = "a,b\r\n1,2\r\n\r\n3,4,5\r\n6,7\r\n"
    assert lines("a.csv", data) == ["a | b", "a: 1; b: 2", "", "3 | 4 | 5", "a: 6; b: 7"]


def test_a_newline_in_a_field_does_not_break_its_record() -> None:
    assert lines("a.csv", 'k,v\nx,"two\nlines"\n') == ["k | v", "k: x; v: two lines"]


def test_a_table_without_header() -> None:
    assert lines("a.csv", "1,2\n3,4\n") == ["1 | 2", "3 | 4"]
    assert lines("a.tsv", "x\tx\n3\t4") == ["x | x", "3 | 4"]


@pytest.mark.spec("I5")
def test_a_field_that_the_parser_refuses_makes_it_text() -> None:
    data = '"' + "x" * 200_000 + "\n"
    document = one("a.csv", data.encode())
    assert document.text == data
    assert "plain text" in document.warnings[0]


@pytest.mark.spec("I4")
def test_a_long_field_is_a_field() -> None:
    before = csv.field_size_limit()
    assert lines("a.csv", f"k,v\n1,{'x' * 200_000}\n2,y\n") == ["k | v", f"k: 1; v: {'x' * 200_000}", "k: 2; v: y"]
    assert lines("a.csv", f'k,v\n1,"{"x" * 200_000}"\n')[1] == f"k: 1; v: {'x' * 200_000}"
    assert csv.field_size_limit() == before


@pytest.mark.spec("I5")
@settings(max_examples=100, deadline=None)
@given(st.text("a1,;|\t\"\n\r' ", max_size=80))
def test_any_table_goes_in_with_all_its_letters(data: str) -> None:
    document = one("a.csv", data.encode())
    assert document.text.count("1") >= data.count("1")


def test_real_tables(shared: Path) -> None:
    folder = shared / "data/files/csv"
    assert one("a.csv", (folder / "csv-inconsistent-header.csv").read_bytes()).text.split("\n")[:2] == [
        "1 | 2 | 3",
        "a | b | c | d",
    ]
    assert "名前: 髙橋淳; 年齢: 35; 住所: 名古屋" in one("a.csv", (folder / "test_mskanji.csv").read_bytes()).text
    assert "Lorem, ipsum | dolor sit | amet" in one("a.csv", (folder / "semicolon-delimited.csv").read_bytes()).text
