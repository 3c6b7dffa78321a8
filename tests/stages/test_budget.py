"""The token budget (spec P8)."""

from __future__ import annotations

import pytest

from ragcli.errors import OptionError
from ragcli.stages.budget import Budget, token_budget
from ragcli.types import Ranking
from tests.stages.corpus import FakeCorpus, hit, order, ranking, reasons

WORDS = FakeCorpus()  # a word is a token


def of_size(name: str, tokens: int) -> Ranking:
    """A hit whose block has that many words: 5 are the label's and the separator's."""
    return Ranking((hit(name, text=" ".join(["w"] * (tokens - 6))),))


def of_sizes(**sizes: int) -> Ranking:
    return Ranking(tuple(of_size(name, tokens).hits[0] for name, tokens in sizes.items()))


@pytest.mark.spec("P8", "P11")
@pytest.mark.parametrize(
    ("limit", "kept", "used"), [(5, 0, 0), (6, 1, 6), (9, 1, 6), (10, 2, 10), (11, 2, 10), (12, 3, 12), (99, 3, 12)]
)
def test_the_longest_run_of_the_first_that_fits(limit: int, kept: int, used: int) -> None:
    found = token_budget(["aaaaaa", "bbbb", "cc"], limit, len)
    assert (found.kept, found.used, found.counts) == (kept, used, (6, 4, 2))


@pytest.mark.spec("P8")
def test_a_small_one_after_a_large_one_is_not_taken_in_its_place() -> None:
    assert token_budget(["aa", "bbbbbb", "c"], 4, len).kept == 1


@pytest.mark.spec("R1", "P11")
@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_out_of_range(limit: int) -> None:
    for make in (Budget, lambda value: token_budget([], value, len)):
        with pytest.raises(OptionError, match="max_context_tokens"):
            make(limit)


@pytest.mark.spec("P8")
def test_the_stage_counts_labels_and_separators() -> None:
    # "[Source 1] a, line 1", "---": 6 words
    before = ranking("a", "b")
    (text,) = {one.chunk.text.replace("a", "b", 1) for one in before.hits[:1]}
    assert len(text.split()) == 4
    assert order(Budget(20)("q", before, WORDS)) == ["a", "b"]
    assert order(Budget(19)("q", before, WORDS)) == ["a"]


@pytest.mark.spec("P8")
def test_drops_are_whole_lowest_first_and_told_with_their_numbers() -> None:
    after = Budget(1000)("q", of_sizes(a=500, b=456, c=412, d=400), WORDS)
    assert order(after) == ["a", "b"]
    assert reasons(after) == {
        "c": "needs 412 tokens, 44 of 1,000 are left",
        "d": "after a hit that did not fit; it needs 400 tokens",
    }
    assert after.warnings == (
        "max_context_tokens = 1,000: 2 of 4 hits kept (956 tokens), 2 dropped (812 tokens)",
    )  # fmt: skip
    assert [one.marks[-1].note for one in after.hits] == ["500 tokens", "456 tokens"]


@pytest.mark.spec("P8")
def test_when_the_best_alone_does_not_fit_its_size_is_said() -> None:
    after = Budget(1000)("q", of_sizes(a=1812, b=7), WORDS)
    assert after.hits == ()
    assert after.warnings == (
        "the best hit alone needs 1,812 tokens, more than max_context_tokens = 1,000: nothing is left",
    )  # fmt: skip
    assert set(reasons(after)) == {"a", "b"}


@pytest.mark.spec("P8")
def test_nothing_is_said_when_all_fits() -> None:
    assert Budget(1000)("q", of_sizes(a=500, b=456), WORDS).warnings == ()


@pytest.mark.spec("P8", "R8")
def test_an_estimate_is_said_to_be_one() -> None:
    corpus = FakeCorpus(estimated="model cl100k_base is not here, and offline is on")
    (warning,) = Budget(1000)("q", of_sizes(a=10), corpus).warnings
    assert "estimated" in warning
    assert "cl100k_base" in warning
