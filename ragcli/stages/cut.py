"""The cut to a page: the first `top_k` hits stay, the others are dropped with their rank."""

from __future__ import annotations

import msgspec

from ragcli.errors import OptionError
from ragcli.types import Corpus, Drop, Ranking

NAME = "cut"


class Cut(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Keeps the first `top_k` (1 or more) hits.

    Raises: OptionError for a `top_k` below 1.
    """

    top_k: int = 5

    def __post_init__(self) -> None:
        if self.top_k < 1:
            raise OptionError("retrieval.top_k", self.top_k, "1 or more")

    def __call__(self, query: str, ranking: Ranking, corpus: Corpus) -> Ranking:  # noqa: ARG002 - a Stage's
        """The ranking's first page."""
        rest = enumerate(ranking.hits[self.top_k :], self.top_k + 1)
        dropped = tuple(Drop(hit, NAME, f"rank {rank}; top_k is {self.top_k}") for rank, hit in rest)
        return Ranking(ranking.hits[: self.top_k], ranking.dropped + dropped, ranking.warnings)
