"""The token budget: whole hits are dropped, lowest rank first, until the rest fits into a prompt (spec P8).

What is counted is the text that a prompt will hold (`context`): each source with its label and the line between it and
the next. Such a block ends where the tokens of what follows begin, so the counts of blocks add up to that of the whole,
in any order; only the line after the last block is counted and not there: three tokens at most.
Cuts no text, and knows nothing of the rest of a prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from ragcli.context import SEPARATOR, blocks
from ragcli.errors import OptionError
from ragcli.types import Corpus, Drop, Hit, Ranking

NAME = "budget"


class Fitted(msgspec.Struct, frozen=True):
    """How many of the first texts fit, and the tokens of each of all of them."""

    kept: int
    counts: tuple[int, ...]

    @property
    def used(self) -> int:
        """The tokens of those that fit."""
        return sum(self.counts[: self.kept])


def token_budget(texts: Sequence[str], limit: int, count: Callable[[str], int]) -> Fitted:
    """The longest run of the first `texts`, best first, whose tokens by `count` are no more than `limit` (1 or more).

    A text that fits after one that did not is not taken: what is dropped is what ranks lowest. Raises: OptionError.
    """
    if limit < 1:
        raise OptionError("retrieval.max_context_tokens", limit, "1 or more")
    counts = tuple(count(text) for text in texts)
    kept, used = 0, 0
    for tokens in counts:
        used += tokens
        if used > limit:
            break
        kept += 1
    return Fitted(kept, counts)


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Keeps the first hits that fit into `max_tokens` tokens. Raises: OptionError for less than 1."""

    max_tokens: int

    def __post_init__(self) -> None:
        token_budget((), self.max_tokens, len)

    def __call__(self, query: str, ranking: Ranking, corpus: Corpus) -> Ranking:  # noqa: ARG002 - a Stage's
        """The ranking without what does not fit."""
        if not ranking.hits:
            return ranking
        texts = [block + SEPARATOR for block in blocks(ranking.hits)]
        found = token_budget(texts, self.max_tokens, corpus.tokens)
        kept = tuple(
            hit.marked(NAME, f"{_tokens(count)}")
            for hit, count in zip(ranking.hits[: found.kept], found.counts, strict=False)
        )
        dropped = tuple(self._drops(ranking.hits, found))
        warnings = (*self._warnings(found), *_estimated(corpus))
        return Ranking(kept, ranking.dropped + dropped, ranking.warnings + warnings)

    def _drops(self, hits: Sequence[Hit], found: Fitted) -> list[Drop]:
        left = self.max_tokens - found.used
        reasons = [
            f"needs {_tokens(count)}, {left:,} of {self.max_tokens:,} are left"
            if at == found.kept
            else f"after a hit that did not fit; it needs {_tokens(count)}"
            for at, count in enumerate(found.counts)
        ]
        return [Drop(hits[at], NAME, reasons[at]) for at in range(found.kept, len(hits))]

    def _warnings(self, found: Fitted) -> list[str]:
        total = len(found.counts)
        if found.kept == total:
            return []
        if not found.kept:
            return [
                f"the best hit alone needs {_tokens(found.counts[0])}, more than max_context_tokens = "
                f"{self.max_tokens:,}: nothing is left"
            ]
        gone = sum(found.counts[found.kept :])
        return [
            f"max_context_tokens = {self.max_tokens:,}: {found.kept} of {total} hits kept ({_tokens(found.used)}), "
            f"{total - found.kept} dropped ({_tokens(gone)})"
        ]


def _tokens(count: int) -> str:
    return "1 token" if count == 1 else f"{count:,} tokens"


def _estimated(corpus: Corpus) -> list[str]:
    reason = corpus.tokens_are_estimated()
    return [f"tokens are estimated, rather too high than too low: {reason}"] if reason else []
