"""At most so many chunks of one document, so that one long document can't fill the page.

The best of each document stay: hits are taken in the order in which they come. Drops are recorded.
"""

from __future__ import annotations

from collections import Counter

import msgspec

from ragcli.errors import OptionError
from ragcli.types import Corpus, Drop, Hit, Ranking

NAME = "per_document"


class PerDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Keeps the first `limit` (1 or more) hits of each document.

    Raises: OptionError for a limit below 1.
    """

    limit: int = 1

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise OptionError("retrieval.per_document", self.limit, "1 or more")

    def __call__(self, query: str, ranking: Ranking, corpus: Corpus) -> Ranking:  # noqa: ARG002 - a Stage's
        """The ranking without the hits over the limit, in unchanged order."""
        seen: Counter[str] = Counter()
        kept: list[Hit] = []
        dropped: list[Drop] = []
        for hit in ranking.hits:
            document = hit.chunk.document_id
            seen[document] += 1
            if seen[document] <= self.limit:
                kept.append(hit)
            else:
                dropped.append(Drop(hit, NAME, f"hit {seen[document]} of {document}; limit {self.limit}"))
        return Ranking(tuple(kept), ranking.dropped + tuple(dropped), ranking.warnings)
