from __future__ import annotations

import datetime as dt

import pytest

from ragcli.read.metadata import flatten, iso_utc, pdf_time, times


@pytest.mark.spec("I10")
def test_maps_flatten_and_kinds_stay() -> None:
    values = {"a": {"b": {"c": 1}}, "l": [1, "1", True, None], "d": dt.date(2024, 5, 1), 3: {"x": 1.5}, "m": [{"k": 1}]}
    assert flatten(values) == {
        "a.b.c": 1,
        "l": (1, "1", True),
        "d": dt.date(2024, 5, 1),
        "3.x": 1.5,
        "m": ('{"k":1}',),
    }


@pytest.mark.spec("I38")
def test_nesting_ends() -> None:
    nested: object = 1
    for _ in range(500):
        nested = {"k": nested}
    assert all(key.count(".") < 20 for key in flatten({"a": nested}))


@pytest.mark.spec("I14")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (dt.date(2024, 5, 1), "2024-05-01T00:00:00Z"),
        (dt.datetime(2024, 5, 1, 23, 30, tzinfo=dt.timezone(dt.timedelta(hours=-2))), "2024-05-02T01:30:00Z"),
        (dt.datetime(2024, 5, 1, 12), "2024-05-01T12:00:00Z"),
        ("2024-05-01", "2024-05-01T00:00:00Z"),
        ("2024-05-01T12:00:00Z", "2024-05-01T12:00:00Z"),
        ("2024-05-01 12:00:00.5", "2024-05-01T12:00:00Z"),
        ("2024", None),
        ("1 May 2024", None),
        ("20240501ish", None),
        (1714521600, None),
        (None, None),
        (dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=5))), None),
    ],
)
def test_times_in_utc(value: object, expected: str | None) -> None:
    assert iso_utc(value) == expected


@pytest.mark.spec("I14")
def test_the_first_key_that_is_a_time_counts() -> None:
    assert times({"created": "soon", "Date": "2024-05-01", "modified": dt.date(2024, 6, 1)}) == (
        "2024-05-01T00:00:00Z",
        "2024-06-01T00:00:00Z",
    )
    assert times({"title": "x"}) == (None, None)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("D:20061006163404-04'00'", "2006-10-06T20:34:04Z"),
        ("D:20230830155932Z00'00'", "2023-08-30T15:59:32Z"),
        ("D:2007", "2007-01-01T00:00:00Z"),
        ("D:20071399", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_times_of_pdf(text: str, expected: str | None) -> None:
    assert pdf_time(text) == expected
