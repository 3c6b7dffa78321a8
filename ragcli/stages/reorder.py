"""Lost in the middle: the best hits go to both ends of the list, the worst to its middle (spec P10).

A language model attends least to the middle of a long context (Liu et al., Lost in the Middle: How Language Models Use
Long Contexts, 2023). Ranks and scores stay; it is the last of all stages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from ragcli.types import Corpus, Ranking

NAME = "reorder"
T = TypeVar("T")


def lost_in_the_middle(items: Sequence[T]) -> list[T]:
    """Items, best first, so that those at even places (from 0) come from the left and those at odd ones from the right.

    [1, 2, 3, 4, 5, 6] becomes [1, 3, 5, 6, 4, 2].
    """
    return [*items[::2], *reversed(items[1::2])]


class Reorder(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Reorders hits that stand best first; each keeps its `rank`."""

    def __call__(self, query: str, ranking: Ranking, corpus: Corpus) -> Ranking:  # noqa: ARG002 - a Stage's
        """The same hits in the new order."""
        ranked = [replace(hit, rank=rank) for rank, hit in enumerate(ranking.hits, 1)]
        return replace(ranking, hits=tuple(lost_in_the_middle(ranked)))
