"""D44: `year=2024` against a number: kinds are compared, and the mismatch is explained."""

from __future__ import annotations

import pytest

from ragcli.filters import explain_mismatch, matches, parse_filter
from ragcli.types import Metadata

FRONT_MATTER: Metadata = {"year": 2024, "draft": True, "version": "3"}


@pytest.mark.spec("R9", "I10")
@pytest.mark.parametrize("text", ["year=2024", 'year:="2024"'])
def test_text_does_not_match_a_number_and_is_told_why(text: str) -> None:
    condition = parse_filter(text)
    assert not matches(FRONT_MATTER, condition)
    said = explain_mismatch(condition, {"year": {"number"}})
    assert said == "year holds numbers in this index; for a number write year:=2024"


@pytest.mark.spec("R9", "I10")
def test_the_typed_form_matches() -> None:
    assert matches(FRONT_MATTER, parse_filter("year:=2024"))
    assert matches(FRONT_MATTER, parse_filter("version=3"))


@pytest.mark.spec("R9")
@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("version:=3", "text", "version holds text in this index; for text write version=3"),
        ("draft=true", "boolean", "draft holds true or false in this index; for true or false write draft:=true"),
        ("since=2024-05-01", "date", "since holds dates in this index; for a date write since:=2024-05-01"),
    ],
)
def test_each_kind_is_explained_in_its_own_words(text: str, kind: str, said: str) -> None:
    key = text.partition("=")[0].removesuffix(":")
    assert explain_mismatch(parse_filter(text), {key: {kind}}) == said
