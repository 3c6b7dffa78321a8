"""Windows of token ids: everything is in one of them, in order, once, and none is longer than the model takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcli.errors import OptionError, RagcliError
from ragcli.models.windows import AT_ONCE, Windows, cuts, load_tokenizer
from tests.models.toy_bert import WORDS, tokens, write_tokenizer

TEXT = "a b c d e f g h i j"


def windows(folder: Path, room: int) -> Windows:
    """Of the toy tokenizer, with room for so many tokens besides the two special ones."""
    write_tokenizer(folder)
    return Windows(load_tokenizer(folder / "tokenizer.json"), room + 2)


@pytest.mark.spec("M5")
def test_truncation_and_padding_of_the_file_are_not_obeyed(tmp_path: Path) -> None:
    assert windows(tmp_path, 10).of([TEXT, "a"]) == [[tokens(TEXT)], [tokens("a")]]


@pytest.mark.spec("I22")
def test_a_long_text_is_in_windows_as_a_whole(tmp_path: Path) -> None:
    cut = windows(tmp_path, 4)
    (found,) = cut.of([TEXT])
    assert found == [tokens("a b c d"), tokens("e f g h"), tokens("i j")]
    assert cut.length(found) == 12


@pytest.mark.spec("I22")
def test_a_word_is_not_parted_unless_it_is_too_long_itself(tmp_path: Path) -> None:
    a, s = WORDS.index("a"), WORDS.index("##s")
    assert windows(tmp_path, 4).of(["b b as ass"])[0] == [[2, 5, 5, a, s, 3], [2, a, s, s, 3]]
    assert windows(tmp_path, 4).of(["b ass b"])[0] == [[2, 5, a, s, s, 3], [2, 5, 3]]
    assert windows(tmp_path, 3).of(["b assss"])[0] == [[2, 5, 3], [2, a, s, s, 3], [2, s, s, 3]]


@pytest.mark.spec("I22")
@given(st.lists(st.integers(1, 7), max_size=20), st.integers(1, 6))
def test_cuts_cover_all_and_part_only_what_must_be(lengths: list[int], room: int) -> None:
    words = [number for number, length in enumerate(lengths) for _ in range(length)]
    ends = cuts(words, room)
    starts = [0, *ends[:-1]]
    assert ends[-1] == len(words)
    assert all(end - start <= room for start, end in zip(starts, ends, strict=True))
    assert len(words) <= room or all(end > start for start, end in zip(starts, ends, strict=True))
    for end in ends[:-1]:
        assert words[end] != words[end - 1] or lengths[words[end]] > room


def test_empty_text_and_many_texts_keep_their_order(tmp_path: Path) -> None:
    names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"]
    texts = ["", *(names[number % 10] for number in range(2 * AT_ONCE + 3)), " \n"]
    assert windows(tmp_path, 4).of(texts) == [[tokens(text.strip())] for text in texts]
    assert windows(tmp_path, 4).of([]) == []


def test_what_is_no_character_is_a_question_mark(tmp_path: Path) -> None:
    cut = windows(tmp_path, 4)
    assert cut.of(["a \ud800"]) == cut.of(["a ?"])


def test_a_window_without_room_for_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"embedding\.max_tokens = 2 is out of range: at least 3"):
        windows(tmp_path, 0)


def test_a_file_that_is_no_tokenizer(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    with pytest.raises(RagcliError, match=r"tokenizer\.json: No such file"):
        load_tokenizer(path)
    path.write_text('{"model": 3}')
    with pytest.raises(RagcliError, match=r"tokenizer\.json: not a tokenizer"):
        load_tokenizer(path)
