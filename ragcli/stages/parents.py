"""Parents in place of the chunks that were found in them (spec P7).

Parent-document retrieval: small chunks are found better, larger ones are read better. Each hit shows the text of its
chunk's parent; several hits of one parent become one, the best of them, with its score and its rank, and with its
chunk's index as what it is known by. Looks all parents up at once and cuts none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from ragcli.types import Chunk, Corpus, Drop, Hit, Parent, Ranking

NAME = "parents"
Key = tuple[str, int]  # (document id, parent index)


class Parents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Puts each hit's parent in its place; later hits of a parent that stands there already are dropped."""

    def __call__(self, query: str, ranking: Ranking, corpus: Corpus) -> Ranking:  # noqa: ARG002 - a Stage's
        """The ranking of distinct parents, in the order of their best hits. Raises: as `Corpus.parents`."""
        if not ranking.hits:
            return ranking
        pairs = list(zip(ranking.hits, corpus.parents(ranking.hits), strict=True))
        families: dict[Key, list[Hit]] = {}
        for hit, parent in pairs:
            families.setdefault(_key(hit, parent), []).append(hit)
        ranks = {key: rank for rank, key in enumerate(families, 1)}
        kept, dropped = [], []
        for hit, parent in pairs:
            best, *others = families[_key(hit, parent)]
            if hit is best:
                kept.append(_replaced(hit, parent, others))
            else:
                dropped.append(Drop(hit, NAME, _reason(_key(hit, parent), best, ranks)))
        return Ranking(tuple(kept), ranking.dropped + tuple(dropped), ranking.warnings)


def _key(hit: Hit, parent: Chunk) -> Key:
    return hit.chunk.document_id, parent.index


def _replaced(hit: Hit, parent: Chunk, others: Sequence[Hit]) -> Hit:
    """The hit with its parent's text and place."""
    replace = msgspec.structs.replace
    chunk = replace(
        hit.chunk, text=parent.text, start=parent.start, end=parent.end, start_line=parent.start_line,
        end_line=parent.end_line, page=parent.page, page_end=parent.page_end, heading=parent.heading,
        heading_level=parent.heading_level, heading_breadcrumb=parent.heading_breadcrumb,
    )  # fmt: skip
    children = tuple(one.chunk.index for one in (hit, *others))
    return replace(
        hit.marked(NAME, f"parent {parent.index} in place of {_listed(children)}"),
        chunk=chunk, parent=Parent(parent.index, children),
    )  # fmt: skip


def _listed(children: Sequence[int]) -> str:
    *first, last = map(str, children)
    return f"chunks {', '.join(first)} and {last}" if first else f"chunk {last}"


def _reason(key: Key, best: Hit, ranks: Mapping[Key, int]) -> str:
    document, index = key
    return f"part of parent {index} of {document}, which stands at rank {ranks[key]} for chunk {best.chunk.index}"
