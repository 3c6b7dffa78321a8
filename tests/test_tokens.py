"""cl100k_base (spec M10): published ids, and the stretches that keep time linear."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli import tokens
from ragcli.chunk.measure import TokenizerSource
from ragcli.errors import RagcliError
from ragcli.tokens import estimate
from tests.chunk.strategies import texts

pytestmark = pytest.mark.spec("M10")


def test_published_ids(tokenizer: TokenizerSource) -> None:
    cl100k = tokenizer()
    assert cl100k.encode("hello world") == [15339, 1917]
    # OpenAI's cookbook, "How to count tokens with tiktoken"
    assert cl100k.encode("tiktoken is great!") == [83, 1609, 5963, 374, 2294, 0]
    assert cl100k.count("antidisestablishmentarianism") == 6
    assert cl100k.count("2 + 2 = 4") == 7
    assert cl100k.count("お誕生日おめでとう") == 9
    assert cl100k.count("") == 0


def test_special_tokens_in_a_document_are_plain_text(tokenizer: TokenizerSource) -> None:
    assert 100257 not in tokenizer().encode("<|endoftext|>")
    assert tokenizer().count("<|endoftext|>") > 1


@settings(max_examples=60, deadline=None)
@given(text=st.lists(texts(), max_size=6).map(" ".join))
def test_stretches_change_no_token(text: str, tokenizer: TokenizerSource) -> None:
    """With short stretches, against tiktoken on the whole text, wherever there is a place to split."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "STRETCH", 40)
        pieces = list(tokens.stretches(text))
    assert "".join(pieces) == text
    assert all(0 < len(piece) <= 40 for piece in pieces) or text == ""
    sure = all(piece.startswith(" ") and not before[-1].isspace() for before, piece in zip(pieces, pieces[1:]))  # noqa: B905, RUF007
    if sure:
        whole = tokenizer().encoding.encode_ordinary(text)
        assert [token for piece in pieces for token in tokenizer().encoding.encode_ordinary(piece)] == whole


@pytest.mark.parametrize("run", [" ", "a", "é", "。", "\n", "1"])
def test_a_long_run_is_counted_and_nearly_right(run: str, tokenizer: TokenizerSource) -> None:
    """tiktoken itself overflows its stack on a million spaces."""
    text = run * 20_000
    whole = len(tokenizer().encoding.encode_ordinary(text))
    assert abs(tokenizer().count(text) - whole) <= 2 * (len(text) // tokens.STRETCH)
    assert tokenizer().count(run * 1_000_000) > 0


def test_characters_counts_whole_ones(tokenizer: TokenizerSource) -> None:
    ids = tokenizer().encode("a👩")  # the emoji takes several tokens, none of them a character
    assert tokenizer().characters(ids) == 2
    assert tokenizer().characters(ids[:-1]) == 1


def test_other_bytes_are_refused_by_both_hashes(tmp_path: Path) -> None:
    path = tmp_path / "cl100k_base.tiktoken"
    path.write_bytes(b"")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    with pytest.raises(RagcliError, match=f"SHA-256 is {empty}, not 00"):
        tokens.load(path, "00")


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(RagcliError, match=r"absent: No such file"):
        tokens.load(tmp_path / "absent", "00")


@pytest.mark.spec("P8")
@pytest.mark.parametrize(
    "alphabet",
    [
        "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcXYZ019+/", "0123456789", " \n\t", "{}();:.,<>=",
        "故乡的雨", "🙂👩‍👩‍👧", "äöüßéñ", "деревня",
    ],
)  # fmt: skip
@pytest.mark.parametrize("length", [1, 3, 5, 8, 20, 500])
def test_an_estimate_of_random_text_errs_high(tokenizer: TokenizerSource, alphabet: str, length: int) -> None:
    random = Random(length)
    words = ("".join(random.choice(alphabet) for _ in range(length)) for _ in range(max(4000 // length, 20)))
    text = " ".join(words)
    assert estimate(text) >= tokenizer().count(text)


@pytest.mark.spec("P8")
def test_an_estimate_of_the_sample_corpus_errs_high_and_not_by_much(tokenizer: TokenizerSource) -> None:
    corpus = Path(__file__).parents[1] / "sample_corpus"
    texts = {path: path.read_bytes().decode("utf-8", "replace") for path in corpus.rglob("*") if path.is_file()}
    for path, text in texts.items():
        if path.suffix == ".pdf":
            continue
        assert estimate(text) >= tokenizer().count(text), path
        if path.suffix == ".md" and path.parent.name != "international":
            assert estimate(text) <= 2 * tokenizer().count(text), path
