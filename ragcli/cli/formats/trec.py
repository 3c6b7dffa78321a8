"""A TREC run: `qid Q0 document_id rank score tag`, as trec_eval and ir_measures read it.

Chunks are pooled to documents by their best chunk, documents ranked by score. The format separates by white space
and has no quoting: white space and control characters of an id are percent-escaped (`my%20file.md`); all else, a
percent sign too, stays as it is, so that ids equal those of the judgements.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

from ragcli.cli.formats import FIRST_QUERY_ID, Reply

TAG = "ragcli"


def render(reply: Reply) -> Iterator[bytes]:
    """One line a document, best first."""
    best: dict[str, float] = {}
    for hit in reply.result.ranking.hits:
        document = hit.chunk.document_id
        best[document] = max(hit.score, best.get(document, hit.score))
    query_id = one_word(reply.query_id or FIRST_QUERY_ID)
    ordered = sorted(best.items(), key=lambda pair: -pair[1])
    for rank, (document, score) in enumerate(ordered, 1):
        yield f"{query_id} Q0 {one_word(document)} {rank} {score!r} {TAG}\n".encode()


def one_word(text: str) -> str:
    """`text` without white space or control characters: each is percent-escaped, as UTF-8."""
    return "".join(quote(c) if c.isspace() or ord(c) < 0x20 or ord(c) == 0x7F else c for c in text)
