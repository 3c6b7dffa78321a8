"""`--filter`, `--tag` and what they match."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.errors import ExpressionError
from ragcli.filters import explain_mismatch, iso_date, kind_of, matches, parse_filter, parse_tag, same
from ragcli.options import Condition


@pytest.mark.spec("R9", "I10")
@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("lang=de", "lang", "de"),
        ("year=2024", "year", "2024"),
        ("year:=2024", "year", 2024),
        ("ratio:=0.5", "ratio", 0.5),
        ("draft:=true", "draft", True),
        ('name:="3"', "name", "3"),
        ("since:=2024-05-01", "since", date(2024, 5, 1)),
        ('since:="2024-05-01"', "since", "2024-05-01"),
        ("since=2024-05-01", "since", "2024-05-01"),
        ("at:=2024-05-01T10:30:00Z", "at", datetime(2024, 5, 1, 10, 30, tzinfo=UTC)),
        ("note=a=b", "note", "a=b"),
        ("empty=", "empty", ""),
        ("spaced=  x ", "spaced", "  x "),
        ("größe=groß", "größe", "groß"),
        ("a:b=c", "a:b", "c"),
        ("path=docs/*.md", "path", "docs/*.md"),
    ],
)
def test_a_condition_is_read_with_its_kind(text: str, key: str, value: object) -> None:
    condition = parse_filter(text)
    assert condition == Condition(key, value)
    assert type(condition.value) is type(value)


@pytest.mark.spec("R9")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("lang", "no `=`"),
        ("=de", "no key before `=`"),
        (":=3", "no key before `=`"),
        ("year:=de", "not JSON"),
        ("year:=", "not JSON"),
        ("year:=NaN", "not JSON"),
        ("year:=2024-13-01", "no such date"),
        ("year:=2024-05-01T25:00", "no such date"),
        ('tags:=["a"]', "one value"),
        ("x:=null", "one value"),
        ('x:={"a": 1}', "a value is text"),
        ("n:=9223372036854775808", "too large"),
        ("path:=3", "path takes a glob"),
        ("bad=\udcff", "UTF-8"),
    ],
)
def test_what_can_not_be_meant_is_named(text: str, words: str) -> None:
    with pytest.raises(ExpressionError, match=words):
        parse_filter(text)


@pytest.mark.spec("I11")
def test_a_tag_takes_lists_and_null_too() -> None:
    assert parse_tag("lang=de") == ("lang", "de")
    assert parse_tag('authors:=["Ann", "Bob"]') == ("authors", ("Ann", "Bob"))
    assert parse_tag("x:=null") == ("x", None)
    for nested in ("x:=[[1]]", 'x:={"a": 1}', "x:=[null]"):
        with pytest.raises(ExpressionError):
            parse_tag(nested)


@pytest.mark.spec("I10")
@pytest.mark.parametrize(
    ("value", "wanted", "expected"),
    [
        (3, "3", False),
        ("3", "3", True),
        (True, 1, False),
        (1, True, False),
        (1, 1.0, True),
        (0, False, False),
        ("true", True, False),
        (date(2024, 5, 1), "2024-05-01", False),
        (date(2024, 5, 1), date(2024, 5, 1), True),
        (date(2024, 5, 1), datetime(2024, 5, 1, tzinfo=UTC), True),
        (date(2024, 5, 1), datetime(2024, 5, 1, 1, tzinfo=UTC), False),
        (datetime(2024, 5, 1), datetime(2024, 5, 1, tzinfo=UTC), True),
        (("a", "b"), "b", True),
        (("a", "b"), "c", False),
        ((1, 2), "1", False),
        ((), "a", False),
        (None, "None", False),
    ],
)
def test_kinds_are_compared_before_values(value: object, wanted: object, expected: bool) -> None:
    assert matches({"key": value}, Condition("key", wanted)) is expected  # type: ignore[dict-item]


@pytest.mark.spec("R9")
def test_a_tag_that_is_not_there_matches_nothing() -> None:
    assert not matches({}, Condition("key", ""))
    assert not matches({"Key": "a"}, Condition("key", "a"))


@pytest.mark.spec("R9")
@pytest.mark.parametrize(
    ("glob", "document_id", "expected"),
    [
        ("docs/*.md", "docs/a.md", True),
        ("docs/*.md", "docs/sub/a.md", True),
        ("docs/*.md", "docs/a.MD", False),
        ("*.md", "docs/a.md", True),
        ("a?.md", "ab.md", True),
        ("docs/a.md", "docs/a.md", True),
        ("docs", "docs/a.md", False),
    ],
)
def test_path_is_a_glob_on_the_document_id(glob: str, document_id: str, expected: bool) -> None:
    assert matches({"path": "a tag of that name"}, Condition("path", glob), document_id) is expected


scalars = st.one_of(
    st.text(max_size=3), st.integers(-3, 3), st.booleans(), st.sampled_from([0.0, 1.0, 2.5]), st.dates()
)


@pytest.mark.spec("I10")
@settings(max_examples=100)
@given(scalars, scalars)
def test_equal_means_same_kind_and_equal_in_python(one: object, other: object) -> None:
    def rank(value: object) -> int:
        return [isinstance(value, bool), isinstance(value, str), isinstance(value, date), True].index(True)

    assert same(one, other) == (rank(one) == rank(other) and one == other)  # type: ignore[arg-type]
    assert same(one, other) == same(other, one)  # type: ignore[arg-type]


@settings(max_examples=150)
@given(st.text(max_size=20))
def test_any_text_is_a_condition_or_a_clear_error(text: str) -> None:
    for parse in (parse_filter, parse_tag):
        try:
            parse(text)
        except ExpressionError as error:
            assert error.message.startswith("--")


def test_dates_have_one_form() -> None:
    assert iso_date("2024-05-01") == date(2024, 5, 1)
    assert iso_date("20240501") is None
    assert iso_date("2024-W18") is None
    assert [kind_of(x) for x in ("a", 1, 1.5, True, date(2024, 5, 1))] == [
        "text",
        "number",
        "number",
        "boolean",
        "date",
    ]


def test_a_path_or_a_good_kind_needs_no_explanation() -> None:
    assert explain_mismatch(Condition("path", "x"), {}) is None
    assert explain_mismatch(Condition("lang", "de"), {"lang": {"text"}}) is None


def test_an_unknown_tag_is_explained_with_the_nearest() -> None:
    said = explain_mismatch(Condition("langauge", "de"), {"language": {"text"}})
    assert said == "no document in this index has the tag langauge; did you mean language?"


@pytest.mark.spec("R9")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a:=" + "[" * 100_000, "lists inside lists"),
        ("a:=" + "9" * 5000, "too large"),
        ("a:=" + "x" * 5000, "not JSON"),
        ("x" * 5000, "no `=`"),
        ("path:=" + "1" * 15, "path takes a glob"),
    ],
)
def test_a_huge_value_is_a_short_error(text: str, words: str) -> None:
    with pytest.raises(ExpressionError, match=words) as caught:
        parse_filter(text)
    assert len(caught.value.message) < 200


def test_a_mismatch_with_a_huge_value_is_told_shortly() -> None:
    told = explain_mismatch(Condition("year", "[" * 100_000), {"year": ["number"]})
    assert told == "year holds numbers in this index; for a number write year:=3"
