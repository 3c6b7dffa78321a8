"""A TREC run: `qid Q0 document_id rank score tag`, as trec_eval and ir_measures read it.

Chunks are pooled to documents by their best chunk: documents stand in the order of their best ranks, each with the
highest score of its chunks. trec_eval reads no rank: it sorts by score, as 32-bit numbers, and equal ones by id. So a
score that does not lie below the one above it (two equal ones; what MMR picked late, but for more; a hit that was not
judged) is written as the next lower of those numbers: the order is that of the ranks, and a score that falls by itself
stays the true one.

The format separates by white space and has no quoting: white space and control characters of an id are percent-escaped
(`my%20file.md`); all else, a percent sign too, stays as it is, so that ids equal those of the judgements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from urllib.parse import quote

from ragcli.cli.formats import FIRST_QUERY_ID, Reply
from ragcli.explain import rank_of
from ragcli.types import Ranking, Result

TAG = "ragcli"
STEP = 2.0**-22  # two of the smallest steps of a 32-bit number, as a share of it: what is lower by that is lower there
LEAST = 2.0**-64  # in place of a share of zero
LOWERED = "scores that do not fall with the rank are written as the next lower number: trec_eval sorts by score"


def render(reply: Reply) -> Iterator[bytes]:
    """One line a document, best first."""
    query_id = one_word(reply.query_id or FIRST_QUERY_ID)
    pooled = _pooled(reply.result.ranking)
    for rank, (document, score) in enumerate(zip(pooled, _falling(pooled), strict=True), 1):
        yield f"{query_id} Q0 {one_word(document)} {rank} {score!r} {TAG}\n".encode()


def remark(result: Result) -> str:
    """What there is to say of a run: that a score in it rose with the rank, and is not the true one; else ""."""
    scores = list(_pooled(result.ranking).values())
    return LOWERED if any(after > before for before, after in pairwise(scores)) else ""


def _pooled(ranking: Ranking) -> Mapping[str, float]:
    """The documents, in the order of their best ranks, each with its highest score."""
    ranked = sorted(enumerate(ranking.hits, 1), key=lambda pair: rank_of(*pair))
    pooled: dict[str, float] = {}
    for _, hit in ranked:
        document = hit.chunk.document_id
        pooled[document] = max(hit.score, pooled.get(document, hit.score))
    return pooled


def _falling(pooled: Mapping[str, float]) -> Iterator[float]:
    """The scores, each below the one before it."""
    most = None
    for score in pooled.values():
        lowered = score if most is None else min(score, most)
        yield lowered
        most = lowered - max(abs(lowered) * STEP, LEAST)


def one_word(text: str) -> str:
    """`text` without white space or control characters: each is percent-escaped, as UTF-8."""
    return "".join(quote(c) if c.isspace() or ord(c) < 0x20 or ord(c) == 0x7F else c for c in text)
