"""Whether there is anything that an answer could rest on (spec A10): only where both signs are low, there is not."""

from __future__ import annotations

import pytest

from ragcli.answer.confidence import confidence
from ragcli.options import AnswerSettings
from ragcli.types import ArmScore, Hit
from tests.answer.lens import FakeLens
from tests.stages.corpus import chunk

SETTINGS = AnswerSettings(min_cosine=0.3, min_coverage=0.4)
QUESTION = "oaks heavy"
LENS = FakeLens({"oaks": 2.0, "heavy": 3.0})  # "oaks" alone is 2 of 5: 0.4; "heavy" alone 0.6


def hit(text: str = "", cosine: float | None = None, *, arm: str = "dense", context: str = "") -> Hit:
    arms = {} if cosine is None and arm == "dense" else {arm: ArmScore(1, cosine)}
    return Hit(chunk=chunk("a.md", text=text, context=context), score=1.0, score_kind="relative", arms=arms)


@pytest.mark.spec("A10")
@pytest.mark.parametrize(
    ("cosine", "text", "is_enough"),
    [
        (0.3, "nothing", True),
        (0.29, "nothing", False),
        (0.29, "oaks", True),
        (0.9, "oaks heavy", True),
        (-1.0, "nothing", False),
        (-1.0, "heavy", True),
    ],
)
def test_one_of_the_two_signs_is_enough(cosine: float, text: str, is_enough: bool) -> None:
    assert confidence(QUESTION, [hit(text, cosine)], LENS, SETTINGS).is_enough == is_enough


@pytest.mark.spec("A10")
@pytest.mark.parametrize(("floor", "is_enough"), [(0.4, True), (0.41, False)])
def test_the_share_of_terms_is_enough_from_its_floor_on(floor: float, is_enough: bool) -> None:
    settings = AnswerSettings(min_cosine=0.3, min_coverage=floor)
    assert confidence(QUESTION, [hit("oaks", 0.0)], LENS, settings).is_enough == is_enough


@pytest.mark.spec("A10")
@pytest.mark.parametrize(("floor", "is_enough"), [(0.8, True), (0.82, False)])
def test_without_cosines_half_the_share_decides_alone(floor: float, is_enough: bool) -> None:
    settings = AnswerSettings(min_cosine=-1.0, min_coverage=floor)
    found = confidence(QUESTION, [hit("oaks"), hit("oaks", arm="bm25", cosine=9.0)], LENS, settings)
    assert (found.cosine, found.is_enough) == (None, is_enough)
    assert found.coverage == pytest.approx(0.4)


@pytest.mark.spec("A10")
def test_a_dense_arm_that_knows_nothing_of_a_hit_gives_no_cosine() -> None:
    unknown = Hit(chunk=chunk("a.md", text="oaks"), score=1, score_kind="rrf", arms={"dense": ArmScore(None, None)})
    assert confidence(QUESTION, [unknown], LENS, SETTINGS).cosine is None


@pytest.mark.spec("A10")
def test_each_sign_is_that_of_its_best_hit() -> None:
    found = confidence(QUESTION, [hit("nothing", 0.2), hit("heavy", 0.1), hit("oaks", -0.5)], LENS, SETTINGS)
    assert found.cosine == 0.2
    assert found.coverage == pytest.approx(0.6)


@pytest.mark.spec("A10")
def test_terms_are_not_gathered_over_several_hits() -> None:
    assert confidence(QUESTION, [hit("oaks", 0), hit("heavy", 0)], LENS, SETTINGS).coverage == pytest.approx(0.6)


@pytest.mark.spec("A10")
def test_what_heads_a_chunk_counts_as_search_counts_it() -> None:
    assert confidence(QUESTION, [hit("nothing", 0.0, context="Oaks: a heavy wood")], LENS, SETTINGS).coverage == 1


@pytest.mark.spec("A10")
def test_no_hits_are_never_enough() -> None:
    settings = AnswerSettings(min_cosine=-1.0, min_coverage=0.0)
    found = confidence(QUESTION, [], LENS, settings)
    assert (found.cosine, found.coverage, found.is_enough) == (None, 0.0, False)


@pytest.mark.spec("A10")
def test_a_question_without_terms_rests_on_its_cosine() -> None:
    assert not confidence("?!", [hit("oaks", 0.29)], LENS, SETTINGS).is_enough
    assert confidence("?!", [hit("oaks", 0.3)], LENS, SETTINGS).is_enough


@pytest.mark.spec("A10")
def test_the_signs_in_words() -> None:
    assert confidence(QUESTION, [hit("oaks", 0.284)], LENS, SETTINGS).words == (
        "the nearest source holds 40% of the question's terms by weight, its best cosine is 0.28"
    )
    assert confidence(QUESTION, [hit("oaks")], LENS, SETTINGS).words == (
        "the nearest source holds 40% of the question's terms by weight"
    )
