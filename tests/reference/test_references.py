"""The references themselves, against numbers worked by hand."""

from __future__ import annotations

from math import log

import pytest

from tests.reference import bm25
from tests.reference.terms import terms

CORPUS = {"a": ["x", "x", "y"], "b": ["y"], "c": ["z", "z", "z", "z"]}  # mean length 8/3


def test_idf_is_the_formula_and_never_negative() -> None:
    assert bm25.idf(3, 1) == pytest.approx(log(8 / 3), abs=1e-15)  # 1 + 2.5/1.5
    assert bm25.idf(3, 3) == pytest.approx(log(8 / 7), abs=1e-15)  # 1 + 0.5/3.5


def test_score_of_one_term() -> None:
    # tf 2, dl/avgdl 9/8: 1.5·(0.25 + 0.75·1.125) = 1.640625, so 2·2.5 / 3.640625
    assert bm25.scores(CORPUS, ["x"]) == {"a": pytest.approx(log(8 / 3) * 5 / 3.640625, abs=1e-15)}


def test_a_repeated_query_term_counts_each_time() -> None:
    once, twice = bm25.scores(CORPUS, ["x"]), bm25.scores(CORPUS, ["x", "x"])
    assert twice["a"] == pytest.approx(2 * once["a"], abs=1e-15)


def test_shorter_documents_come_first_and_ties_go_by_id() -> None:
    assert [name for name, _ in bm25.ranking(CORPUS, ["y"])] == ["b", "a"]
    assert [name for name, _ in bm25.ranking({"q": ["t"], "p": ["t"]}, ["t"])] == ["p", "q"]


def test_without_length_normalisation_length_does_not_matter() -> None:
    found = bm25.scores({"long": ["t", "u", "u"], "short": ["t"]}, ["t"], b=0.0)
    assert found["long"] == found["short"] == pytest.approx(log(1.2), abs=1e-15)  # 1 + 0.5/2.5, and tf·2.5/(1 + 1.5)


def test_nothing_matches_nothing() -> None:
    assert bm25.scores({}, ["x"]) == {}
    assert bm25.scores({"empty": []}, ["x"]) == {}
    assert bm25.scores(CORPUS, ["unknown"]) == {}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("The cat's my_name, real-time 3.14", ["the", "cat", "s", "my", "name", "real", "time", "3", "14"]),
        ("STRASSE Straße", ["strasse", "strasse"]),
        ("E\u0301t\u00e9", ["\u00e9t\u00e9"]),
        ("\u0301abc", ["abc"]),
        ("人工智能是未来", ["人工", "工智", "智能", "能是", "是未", "未来"]),
        ("人", ["人"]),
        ("iPhone16発売", ["iphone16", "発売"]),
        ("データ", ["デー", "ータ"]),
        ("초과근무 계산", ["초과", "과근", "근무", "계산"]),
        ("हिन्दी", ["हिन्दी"]),
        ("ประเทศไทย", ["ประเทศไทย"]),
        ("🎉🦀", []),
    ],
)
def test_terms(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


def test_accents_are_kept_unless_folded() -> None:
    assert terms("Café cafe\u0301") == ["café", "café"]
    assert terms("Café naïve が", fold_accents=True) == ["cafe", "naive", "が"]
