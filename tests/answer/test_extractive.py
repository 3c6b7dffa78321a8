"""Answers of the sources' own sentences (spec A1): values worked by hand, and what is taken for a sentence.

A sentence is worth 0.3 × its cosine with the question + 0.7 × its share of the question's terms + 0.3 × the standing of
its source, which is 1 of the first and 1/n of the last of n.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log

import pytest
from msgspec.structs import replace

from ragcli.answer.citations import citations
from ragcli.answer.extractive import Extract, extracts, written
from ragcli.types import Hit
from tests.answer.lens import FakeLens
from tests.stages.corpus import hit

QUESTION = "how tall oaks"


def hits(*texts: str) -> list[Hit]:
    return [hit(f"{n}.md", text=text) for n, text in enumerate(texts, 1)]


def found(*texts: str, question: str = QUESTION, lens: FakeLens | None = None, most: int = 9) -> Sequence[Extract]:
    return extracts(question, hits(*texts), lens or FakeLens(), most)


def values(*texts: str, **more: object) -> dict[str, float]:
    return {one.text: one.value for one in found(*texts, **more)}  # type: ignore[arg-type]


@pytest.mark.spec("A1")
def test_a_value_is_cosine_terms_and_standing() -> None:
    table = {QUESTION: [1.0, 0.0], "Oaks grow tall.": [0.6, 0.8], "Elms die early.": [-0.8, 0.6]}
    assert values("Oaks grow tall.", "Elms die early.", lens=FakeLens(embed=table.__getitem__)) == {
        "Oaks grow tall.": pytest.approx(0.3 * 0.6 + 0.7 * 2 / 3 + 0.3 * 1),
        "Elms die early.": pytest.approx(0.3 * -0.8 + 0.7 * 0 + 0.3 * 1 / 2),
    }


@pytest.mark.spec("A1")
def test_without_vectors_the_cosine_counts_as_nothing() -> None:
    assert values("Oaks grow tall.", "Elms die early.", "Oaks die early.") == {
        "Oaks grow tall.": pytest.approx(0.7 * 2 / 3 + 0.3),
        "Oaks die early.": pytest.approx(0.7 * 1 / 3 + 0.3 / 3),
        "Elms die early.": pytest.approx(0.3 * 2 / 3),
    }


@pytest.mark.spec("A1")
def test_terms_count_by_their_idf() -> None:
    lens = FakeLens(texts=["how oaks grow", "how elms grow"])
    # how: in both, ln(1 + 0.5 / 2.5); oaks: in one, ln(1 + 1.5 / 1.5); tall: in none, ln(1 + 2.5 / 0.5)
    how, oaks, tall = log(1.2), log(2), log(6)
    (one,) = found("Oaks grow tall.", lens=lens)
    assert one.value == pytest.approx(0.7 * (oaks + tall) / (how + oaks + tall) + 0.3)


@pytest.mark.spec("A1", "A9")
def test_a_sentence_of_two_sources_is_given_once_and_cites_both() -> None:
    (one, other) = found("Oaks grow tall. Elms die early.", "So it is. Oaks grow\ntall.", question="oaks tall", most=2)
    assert (one.text, one.sources) == ("Oaks grow tall.", (1, 2))
    assert one.value == pytest.approx(0.7 + 0.3)  # of the nearer source
    assert (other.text, other.sources) == ("Elms die early.", (1,))
    assert written([one]) == "“Oaks grow tall.” [Source 1][Source 2]"


@pytest.mark.spec("A1")
def test_a_sentence_twice_in_one_source_cites_it_once() -> None:
    (one,) = found("Oaks grow tall. Oaks grow tall.")
    assert one.sources == (1,)


@pytest.mark.spec("A1")
def test_the_best_come_first_and_of_equals_those_of_the_nearer_source_in_its_order() -> None:
    texts = ("Elms die early. Elms grow fast. Oaks grow tall.", "Pines stay green. Oaks are old trees.")
    assert [one.text for one in found(*texts, question="oaks tall")] == [
        "Oaks grow tall.",  # 0.7 + 0.3
        "Oaks are old trees.",  # 0.35 + 0.15
        "Elms die early.",  # 0.3
        "Elms grow fast.",
        "Pines stay green.",  # 0.15
    ]
    assert [one.text for one in found(*texts, question="oaks tall", most=2)] == [
        "Oaks grow tall.",
        "Oaks are old trees.",
    ]


@pytest.mark.spec("A1")
def test_headings_marks_of_items_and_what_says_too_little_are_left_out() -> None:
    text = (
        "# Oaks grow tall here\n\nOaks grow tall.\n\n- Elms die early\n* Pines stay green\n2) Firs are dark\n\nSo it.\n"
    )
    assert {one.text for one in found(text)} == {
        "Oaks grow tall.", "Elms die early", "Pines stay green", "Firs are dark",
    }  # fmt: skip


@pytest.mark.spec("A1")
@pytest.mark.parametrize("texts", [(), ("",), ("# Oaks grow tall here",), ("Oaks.", "So it.")])
def test_where_no_sentence_says_something_there_are_no_extracts(texts: Sequence[str]) -> None:
    lens = FakeLens(embed=lambda text: [1.0])
    sent = [replace(hits("Oaks grow tall.")[0], compressed_text=text) for text in texts]
    assert extracts(QUESTION, sent, lens, 3) == ()
    assert lens.embedded == []
    assert written(()) == ""


@pytest.mark.spec("A1", "P9")
def test_of_a_compressed_hit_the_rest_is_not_quoted() -> None:
    short = replace(hits("Oaks grow tall. Elms die early.")[0], compressed_text="Elms die early.")
    assert [one.text for one in extracts(QUESTION, [short], FakeLens(), 9)] == ["Elms die early."]


@pytest.mark.spec("A1", "A9")
def test_an_answer_is_a_line_a_sentence_with_its_markers() -> None:
    some = [Extract("Oaks grow tall.", (2, 5), 1.0), Extract("Elms die early.", (1,), 0.5)]
    text = written(some)
    assert text == "“Oaks grow tall.” [Source 2][Source 5]\n“Elms die early.” [Source 1]"
    assert [one.source for one in citations(text, 5)] == [2, 5, 1]


@pytest.mark.spec("A9", "A13")
def test_a_sentence_that_holds_markers_cites_nothing_with_them() -> None:
    (one,) = found("Oaks grow tall.[3] Trust this (Source 2) [Source 9] 【4】")
    text = written([one])
    assert text == r"“Oaks grow tall.\[3] Trust this \(Source 2) \[Source 9] \【4】” [Source 1]"
    assert [each.source for each in citations(text, 9)] == [1]
