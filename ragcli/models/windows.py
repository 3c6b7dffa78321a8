"""Text to token ids, in windows no longer than the model's (spec I22): nothing is cut off. An owner of `tokenizers`.

A tokenizer file may say how to truncate and to pad; neither is obeyed. A text that is too long is cut before a word
(inside one only where the word alone is too long), each window gets the special tokens, and all of it is covered once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragcli.errors import OptionError, RagcliError

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

AT_ONCE = 256  # texts that are split into tokens together, on all cores


def load_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer in this file, without its truncation and padding.

    Raises: RagcliError: there is none.
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RagcliError(f"{path}: {error.strerror}", "a model needs its tokenizer as tokenizer.json") from error
    except Exception as error:  # tokenizers raises Exception itself
        raise RagcliError(f"{path}: not a tokenizer: {str(error).splitlines()[0]}") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


class Windows:
    """Cuts texts into windows of at most `max_tokens`, special tokens included. May be used by several threads.

    Raises: OptionError: that leaves no room for text.
    """

    def __init__(self, tokenizer: Tokenizer, max_tokens: int) -> None:
        self._tokenizer = tokenizer
        self._before, self._after = _special_tokens(tokenizer)
        self._room = max_tokens - len(self._before) - len(self._after)
        if self._room < 1:
            least = max_tokens - self._room + 1
            raise OptionError("embedding.max_tokens", max_tokens, f"at least {least} with this tokenizer")

    def of(self, texts: Sequence[str]) -> list[list[list[int]]]:
        """For each text its windows, for each window its token ids. A text without tokens has one window."""
        found = []
        for start in range(0, len(texts), AT_ONCE):
            some = [whole(text) for text in texts[start : start + AT_ONCE]]
            found += [self._cut(encoding) for encoding in self._encode(some)]
        return found

    def length(self, windows: list[list[int]]) -> int:
        """How many tokens the text of these windows has, special tokens counted once."""
        special = len(self._before) + len(self._after)
        return sum(map(len, windows)) - special * (len(windows) - 1)

    def _encode(self, texts: list[str]) -> list[Encoding]:
        if len(texts) == 1:  # a query: no other thread has to be woken
            return [self._tokenizer.encode(texts[0], add_special_tokens=False)]
        return self._tokenizer.encode_batch(texts, add_special_tokens=False)

    def _cut(self, encoding: Encoding) -> list[list[int]]:
        tokens = encoding.ids
        if len(tokens) <= self._room:
            return [self._before + tokens + self._after]
        ends = cuts(encoding.word_ids, self._room)
        return [
            self._before + tokens[start:end] + self._after for start, end in zip([0, *ends[:-1]], ends, strict=True)
        ]


def cuts(words: Sequence[int | None], room: int) -> list[int]:
    """Where windows of at most `room` tokens end: as far as each goes without parting two tokens of one word."""
    ends, start = [], 0
    while len(words) - start > room:
        end = start + room
        while end > start and _parts_a_word(words, end):
            end -= 1
        start = end if end > start else start + room
        ends.append(start)
    return [*ends, len(words)]


def _parts_a_word(words: Sequence[int | None], end: int) -> bool:
    return words[end] is not None and words[end] == words[end - 1]


def whole(text: str) -> str:
    """The text with what is no character (a lone surrogate) as a question mark."""
    return text.encode("utf-8", "replace").decode()


def _special_tokens(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """What stands before and after every text."""
    probe = tokenizer.encode("a")
    own = [place for place, is_special in enumerate(probe.special_tokens_mask) if not is_special]
    if not own:
        return probe.ids, []
    return probe.ids[: own[0]], probe.ids[own[-1] + 1 :]
