"""Which stages a call runs, in their fixed order (spec 3, P12): what is cheap comes first, the dear model last.

    where → redundancy → per_document   thin the candidates out
    mmr → rerank → parents → cut → budget → compress → reorder   run once, on what is left

A stage's module is imported only when the call asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ragcli.options import RerankSettings, RetrievalOptions
from ragcli.retrieval import Named, Stages
from ragcli.types import Chat, Reranker


class Tools(msgspec.Struct, frozen=True):
    """What stages work with beside the ranking; None: that stage does not run.

    `parents`: whether the index keeps them. `chat` condenses, where `retrieval.compression` is "llm".
    """

    reranker: Reranker | None = None
    parents: bool = False
    chat: Chat | None = None


def thinning(options: RetrievalOptions) -> tuple[Named, ...]:
    """The stages that thin candidates out. Raises: ExpressionError: `where` can't be parsed."""
    return tuple(_thinning(options))


def _thinning(options: RetrievalOptions) -> Iterator[Named]:
    if options.where.strip():
        from ragcli.stages.where import Where

        yield "where", Where(options.where)
    if options.redundancy_filter:
        from ragcli.stages.redundancy import Redundancy

        yield "redundancy", Redundancy(options.redundancy_threshold)
    if options.per_document is not None:
        from ragcli.stages.per_document import PerDocument

        yield "per_document", PerDocument(options.per_document)


def sequence(first: tuple[Named, ...], options: RetrievalOptions, settings: RerankSettings, tools: Tools) -> Stages:
    """All of a call's stages, `first` being the thinning ones, and how many candidates they need."""
    is_reranked = tools.reranker is not None
    needed = max(
        options.top_k,
        options.mmr_candidates if options.mmr else 0,
        options.candidates if is_reranked and not options.mmr else 0,
    )
    selects = bool(first) or options.mmr or is_reranked or tools.parents
    candidates = max(needed, options.candidates) if selects else options.top_k
    late = [*_selecting(options, settings, tools), *_shaping(options, tools)]
    merging = None
    if tools.parents and not (options.mmr or is_reranked):  # these choose from a number of candidates that is fixed
        from ragcli.stages.parents import Parents

        merging = Parents()
    if selects:
        late = _with_cut(late, options.top_k)
    return Stages(first, tuple(late), candidates, needed, merging)


def _selecting(options: RetrievalOptions, settings: RerankSettings, tools: Tools) -> Iterator[Named]:
    if options.mmr:
        from ragcli.stages.mmr import Mmr

        yield (
            "mmr",
            Mmr(
                picks=options.mmr_picks, candidates=options.mmr_candidates, lambda_=options.mmr_lambda,
                relevance=options.mmr_relevance, by_parent=tools.parents,
            ),
        )  # fmt: skip
    if tools.reranker is not None:
        from ragcli.stages.rerank import Rerank

        candidates = max(options.mmr_picks, options.candidates) if options.mmr else options.candidates
        yield (
            "rerank",
            Rerank(
                tools.reranker, top_k=options.top_k, candidates=candidates, min_score=settings.min_score,
                final=settings.final, retrieval_weight=settings.retrieval_weight,
                skip_when_few=settings.skip_when_few,
            ),
        )  # fmt: skip
    if tools.parents:
        from ragcli.stages.parents import Parents

        yield "parents", Parents()


def _with_cut(stages: list[Named], top_k: int) -> list[Named]:
    """The cut stands after what selects and before what shapes the page."""
    from ragcli.stages.cut import Cut

    at = sum(name in {"mmr", "rerank", "parents"} for name, _ in stages)
    return [*stages[:at], ("cut", Cut(top_k)), *stages[at:]]


def _shaping(options: RetrievalOptions, tools: Tools) -> Iterator[Named]:
    if options.max_context_tokens is not None:
        from ragcli.stages.budget import Budget

        yield "budget", Budget(options.max_context_tokens)
    if options.compression != "none":
        from ragcli.stages.compress import Compress

        yield "compress", Compress(options.compression, options.compression_sentences, tools.chat)
    if options.lost_in_the_middle:
        from ragcli.stages.reorder import Reorder

        yield "reorder", Reorder()
