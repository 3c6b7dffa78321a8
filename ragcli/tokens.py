"""Token counts in cl100k_base (byte-pair encoding), offline. The owner of tiktoken.

The split pattern and the special tokens are those of `tiktoken_ext.openai_public.cl100k_base`; the merge table is the
data file of the catalogue, parsed here: tiktoken's own loader copies what it reads into a cache of its own choice.
Does not fetch (`models.pull` does) and does not cut (`chunk` does).

tiktoken takes more than linear time on a long run without a break, and overflows its stack on a run of a million
spaces. So text goes in by stretches of at most `STRETCH` characters. They end where the pattern splits anyway (before
a space that follows a character that is none), which leaves every token as it was; only inside a run of more than
`STRETCH` characters without such a place is the end arbitrary, and there a count may differ by a
token or two.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ragcli.errors import RagcliError

if TYPE_CHECKING:
    import tiktoken

STRETCH = 4000  # characters; time a character is flat up to here and grows fivefold by a million (tiktoken 0.14)

PATTERN = (
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"""
    r"""|\s++$|\s*[\r\n]|\s+(?!\S)|\s"""
)
SPECIAL_TOKENS = {
    "<|endoftext|>": 100257,
    "<|fim_prefix|>": 100258,
    "<|fim_middle|>": 100259,
    "<|fim_suffix|>": 100260,
    "<|endofprompt|>": 100276,
}


def stretches(text: str) -> Iterator[str]:
    """The text in pieces of at most `STRETCH` characters whose tokens, joined, are the text's (see above)."""
    start = 0
    while len(text) - start > STRETCH:
        end = _split_before(text, start, start + STRETCH)
        yield text[start:end]
        start = end
    yield text[start:] if start else text


def _split_before(text: str, start: int, limit: int) -> int:
    space = text.rfind(" ", start, limit)
    while space > start and text[space - 1].isspace():
        space -= 1
    # backing over tabs and line ends may have left a character that is no space: no place the pattern is sure to split
    return space if space > start and text[space] == " " else limit


class Tokenizer(msgspec.Struct, frozen=True):
    """cl100k_base. Words that look like special tokens are plain text: a document can't speak to the model."""

    encoding: tiktoken.Encoding

    def encode(self, text: str) -> list[int]:
        """The token ids of the text: `hello world` is [15339, 1917]."""
        encode = self.encoding.encode_ordinary
        if len(text) <= STRETCH:
            return encode(text)
        return [token for stretch in stretches(text) for token in encode(stretch)]

    def count(self, text: str) -> int:
        """How many tokens the text has, in time linear in its length."""
        encode = self.encoding.encode_ordinary
        if len(text) <= STRETCH:
            return len(encode(text))
        return sum(len(encode(stretch)) for stretch in stretches(text))

    def characters(self, tokens: Sequence[int]) -> int:
        """How many whole characters these tokens spell; a character that is only partly among them is not counted."""
        return len(self.encoding.decode_bytes(tokens).decode("utf-8", errors="ignore"))


def estimate(text: str) -> int:
    """About how many tokens the text has, without the data file; errs high: half as many again on English prose.

    What is not ASCII counts a token a byte, which it can't exceed. Words count a token for each three letters, strings
    that don't look like words (no vowel in three letters) more, up to what random letters take.
    """
    return sum(_estimated(run) for run in _RUNS.finditer(text))


def _estimated(run: re.Match[str]) -> int:
    kind, length = run.lastgroup, run.end() - run.start()
    if kind == "word":
        return 1 + (length - 1) // 3 if not _NO_WORD.search(run[0]) else 2 + length * 3 // 5
    if kind == "capitals":
        return min(length, 2 + length * 3 // 5)
    if kind == "digits":
        return (length + 2) // 3 + run[0].startswith(" ")
    if kind == "white":
        return 1 + length // 16 + sum(one != other for one, other in pairwise(run[0]))
    return len(run[0].encode("utf-8", "replace")) if kind == "other" else int(run[0] != " ")


_RUNS = re.compile(
    r"(?P<digits> ?[0-9]+)|(?P<word>[A-Z]?[a-z]+)|(?P<capitals>[A-Z]+)|(?P<other>[^\x00-\x7f]+)"
    r"|(?P<white>\s{2,}|[^\S ])|(?P<sign>.)",
    re.DOTALL,
)
_NO_WORD = re.compile(r"[^aeiouyAEIOUY]{3}")


@cache
def load(path: Path, sha256: str) -> Tokenizer:
    """The tokenizer of this data file; one a process.

    Raises:
        RagcliError: the file can't be read, or is not what was promised; the message names both hashes.
    """
    data = _read(path)
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise RagcliError(f"{path}: SHA-256 is {found}, not {sha256}", "remove the file; the next run fetches it again")
    return Tokenizer(_encoding(data))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise RagcliError(f"{path}: {error.strerror}") from error


def _encoding(data: bytes) -> tiktoken.Encoding:
    import tiktoken

    pairs = (line.split() for line in data.splitlines() if line)
    ranks = {b64decode(token): int(rank) for token, rank in pairs}
    return tiktoken.Encoding("cl100k_base", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=SPECIAL_TOKENS)
