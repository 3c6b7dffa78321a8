"""What is marked is what the index matched; the snippet is where most of it stands."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.cli.highlight import Highlighter
from ragcli.options import AnalyzerSettings
from ragcli.text import Analyzer


def marked(query: str, text: str, **analyzer: object) -> list[str]:
    settings = AnalyzerSettings(**analyzer)  # type: ignore[arg-type]
    return [text[start:end] for start, end in Highlighter(query, Analyzer(settings)).matches(text)]


@pytest.mark.spec("C2")
def test_terms_are_marked_as_whole_words_in_any_case() -> None:
    assert marked("torque sensor", "The Torque-SENSOR; torques, sensor_2") == ["Torque", "SENSOR", "sensor"]
    assert marked("straße", "Die STRASSE") == ["STRASSE"]
    assert marked("café", "cafe\u0301 bar") == ["cafe\u0301"]
    assert marked("", "anything") == []


@pytest.mark.spec("C2", "I33")
def test_pairs_of_cjk_characters_are_marked_where_the_query_has_them() -> None:
    assert marked("人工智能", "谈人工智能的未来") == ["人工智能"]
    assert marked("未来", "谈人工智能的未来，未来") == ["未来", "未来"]
    assert marked("工智", "人工智能") == ["工智"]
    assert marked("AB未来", "ab的未来") == ["ab", "未来"]
    assert marked("人", "a人人 人") == ["人"]  # a character alone is a term of its own, not a part of pairs


def test_options_of_the_analyzer_hold_here_too() -> None:
    assert marked("running", "He runs", stemmer="english") == ["runs"]
    assert marked("cafe", "Café", fold_accents=True) == ["Café"]


@given(st.text("ab 人工\u0301-_", max_size=60), st.text("ab 人工", max_size=8))
@settings(max_examples=150, deadline=None)
def test_marks_are_disjoint_ascending_and_hold_terms_of_the_query(text: str, query: str) -> None:
    analyzer = Analyzer(AnalyzerSettings())
    spans = Highlighter(query, analyzer).matches(text)
    ends = [at for span in spans for at in span]
    assert ends == sorted(ends)
    wanted = set(analyzer.terms(query))
    assert all(wanted.intersection(analyzer.terms(text[start:end])) for start, end in spans)


@pytest.mark.spec("C2")
def test_the_snippet_is_the_place_with_most_different_terms() -> None:
    text = "torque " * 10 + "x " * 300 + "the torque of the sensor " + "y " * 300
    part = Highlighter("torque sensor", Analyzer(AnalyzerSettings())).snippet(text, 80)
    assert "torque of the sensor" in text[part.start : part.end]
    assert part.end - part.start <= 80
    assert [text[start:end] for start, end in part.matches] == ["torque", "sensor"]


def test_a_short_text_is_whole_and_one_without_matches_begins_at_its_beginning() -> None:
    highlighter = Highlighter("torque", Analyzer(AnalyzerSettings()))
    assert highlighter.snippet("short", 80).end == 5
    part = highlighter.snippet("word " * 100, 52)
    assert (part.start, part.matches) == (0, ())
    assert part.end <= 52


@given(st.text("ab \n", min_size=1, max_size=300), st.integers(1, 60))
@settings(max_examples=150, deadline=None)
def test_a_snippet_is_inside_the_text_and_not_wider_than_asked(text: str, width: int) -> None:
    part = Highlighter("a b ab", Analyzer(AnalyzerSettings())).snippet(text, width)
    assert 0 <= part.start <= part.end <= len(text)
    longest_word = max(map(len, text.split()), default=0)
    assert part.end - part.start <= max(width, longest_word)
    assert all(part.start <= start < end <= part.end for start, end in part.matches)
