"""The query and the options of a retrieval, each declared once, for every command that retrieves.

A command takes them as `**retrieval`; `options` puts them into the signature that typer reads, and `settings_of` makes
dotted settings of what was given. Retrieves nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple, TypeVar

import typer

from ragcli.cli import streams
from ragcli.cli.common import as_text
from ragcli.errors import UsageError, shortened
from ragcli.options import (
    MMR_MULTIPLIER,
    Compression,
    FusionMethod,
    FusionSettings,
    MmrRelevance,
    Mode,
    RerankSettings,
    RetrievalOptions,
    Settings,
)

Command = TypeVar("Command", bound=Callable[..., int])

DEFAULTS, FUSION, RERANK = RetrievalOptions(), FusionSettings(), RerankSettings()
RETRIEVAL, AFTER = "Retrieval", "After retrieval"
NAME = "retrieval"  # of the parameter that stands for all of them


class Flag(NamedTuple):
    """One option: the setting that it sets, and the type that typer reads."""

    setting: str
    kind: Any


def option(
    kind: Any, *names: str, help: str, metavar: str | None = None, default: object = None, panel: str = RETRIEVAL
) -> Any:
    """The type of an option that is None when it was not given; `default`: what then holds, in words."""
    shown = False if default is None else str(default)
    return Annotated[
        kind | None, typer.Option(*names, metavar=metavar, help=help, show_default=shown, rich_help_panel=panel)
    ]


def _after(kind: Any, *names: str, help: str, metavar: str | None = None, default: object = None) -> Any:
    return option(kind, *names, help=help, metavar=metavar, default=default, panel=AFTER)


FLAGS: Mapping[str, Flag] = {
    "top_k": Flag(
        "retrieval.top_k", option(int, "--top-k", "-k", metavar="N", help="Hits to show.", default=DEFAULTS.top_k)
    ),
    "mode": Flag(
        "retrieval.mode",
        option(
            Mode,
            "--mode",
            help="keyword: by the query's terms (BM25); vector: by meaning, as the index's model sees it (cosine); "
            "hybrid: by both, fused.",
            default=DEFAULTS.mode,
        ),
    ),
    "fusion": Flag(
        "fusion.method",
        option(
            FusionMethod,
            "--fusion",
            help="How hybrid makes one score of two: the weighted sum of scaled scores (relative), of standard "
            "scores (zscore), or of reciprocal ranks (rrf).",
            default=FUSION.method,
        ),
    ),
    "weights": Flag(
        "fusion.weights",
        option(
            str,
            "--weights",
            metavar="ARM=X,...",
            help="Weights of the arms bm25 and dense in hybrid, such as bm25=0.3,dense=0.7; an arm of weight 0 does "
            "not run.",
            default="equal",
        ),
    ),
    "exact": Flag(
        "retrieval.exact",
        option(bool, "--exact", help="Compare the query with every vector, however large the index is."),
    ),
    "candidates": Flag(
        "retrieval.candidate_count",
        option(
            int,
            "--candidates",
            metavar="N",
            help="Hits that an arm gives to the fusion and to what comes after it.",
            default=f"top-k x {DEFAULTS.candidate_multiplier}; to a fusion at least {FUSION.depth}",
        ),
    ),
    "filters": Flag(
        "retrieval.metadata_filter",
        option(
            list[str],
            "--filter",
            metavar="KEY=VALUE",
            help="Only documents with this tag; key:=json for a number, true, a date; path=GLOB for the document id. "
            "Repeatable: all must match.",
        ),
    ),
    "where": Flag(
        "retrieval.where",
        option(
            str,
            "--where",
            metavar="EXPR",
            help="Keep hits for which this holds: comparisons, in, and, or, not over score, document_id, tag.KEY, "
            "page, heading.",
        ),
    ),
    "min_score": Flag(
        "retrieval.min_score",
        option(
            float,
            "--min-score",
            metavar="X",
            help="Lowest cosine of a dense hit, -1 to 1; BM25 hits and fused scores are not cut by it.",
            default=DEFAULTS.min_score,
        ),
    ),
    "per_document": Flag(
        "retrieval.per_document",
        option(int, "--per-document", metavar="N", help="At most N hits of one document.", default="no limit"),
    ),
    "redundancy_filter": Flag(
        "retrieval.redundancy_filter",
        _after(
            bool,
            "--redundancy-filter/--no-redundancy-filter",
            help="Drop a hit that says the same as a better one, by the cosine of their vectors.",
            default="off",
        ),
    ),
    "redundancy_threshold": Flag(
        "retrieval.redundancy_threshold",
        _after(
            float,
            "--redundancy-threshold",
            metavar="X",
            help="The cosine from which on two hits say the same.",
            default=DEFAULTS.redundancy_threshold,
        ),
    ),
    "mmr": Flag(
        "retrieval.mmr",
        _after(
            bool,
            "--mmr/--no-mmr",
            help="Pick hits that are relevant and unlike those picked before (maximal marginal relevance).",
            default="off",
        ),
    ),
    "mmr_lambda": Flag(
        "retrieval.mmr_lambda",
        _after(
            float,
            "--lambda",
            metavar="X",
            help="MMR's weight of relevance: 1 orders by relevance alone, 0 picks what is most different.",
            default=DEFAULTS.mmr_lambda,
        ),
    ),
    "mmr_candidates": Flag(
        "retrieval.mmr_candidate_count",
        _after(
            int,
            "--mmr-candidates",
            metavar="N",
            help="Hits that MMR picks from.",
            default=f"top-k x {MMR_MULTIPLIER}",
        ),
    ),
    "mmr_relevance": Flag(
        "retrieval.mmr_relevance",
        _after(
            MmrRelevance,
            "--mmr-relevance",
            help="What MMR takes for relevant: the score so far (score), or the cosine with the query (cosine).",
            default=DEFAULTS.mmr_relevance,
        ),
    ),
    "rerank": Flag(
        "retrieval.rerank",
        _after(
            bool,
            "--rerank/--no-rerank",
            help="Let the reranker judge the candidates anew.",
            default="on where a reranker is set",
        ),
    ),
    "reranker": Flag(
        "rerank.reranker",
        _after(
            str,
            "--reranker",
            metavar="NAME",
            help="onnx (a cross-encoder that runs here), cohere, jina, vllm, llm, or python:module:attribute.",
            default=RERANK.reranker,
        ),
    ),
    "rerank_model": Flag(
        "rerank.model",
        _after(str, "--rerank-model", metavar="NAME", help="The reranker's model; of onnx a folder or hub:owner/name."),
    ),
    "parents": Flag(
        "retrieval.parent_document",
        _after(
            bool,
            "--parents/--no-parents",
            help="Show each hit's parent, the larger part of the document around it.",
            default="on where the index keeps parents",
        ),
    ),
    "max_context_tokens": Flag(
        "retrieval.max_context_tokens",
        _after(
            int,
            "--max-context-tokens",
            metavar="N",
            help="Drop hits, the lowest rank first, until a prompt of them has no more tokens (cl100k_base).",
            default="no limit",
        ),
    ),
    "compress": Flag(
        "retrieval.compression",
        _after(
            Compression,
            "--compress",
            help="Show of each hit the sentences nearest to the query (extractive), or what a language model keeps "
            "of it (llm).",
            default=DEFAULTS.compression,
        ),
    ),
    "lost_in_the_middle": Flag(
        "retrieval.lost_in_the_middle",
        _after(
            bool,
            "--lost-in-the-middle/--no-lost-in-the-middle",
            help="List the best hits at both ends, the worst in the middle, as suits a language model.",
            default="off",
        ),
    ),
}


def options(*, after: str, more: Mapping[str, Flag] | None = None) -> Callable[[Command], Command]:
    """Puts every option into a command's signature, behind its parameter `after` and in place of `**retrieval`.

    `more`: other options that go the same way.
    """

    def with_options(command: Command) -> Command:
        signature = inspect.signature(command, eval_str=True)
        own = [one for one in signature.parameters.values() if one.kind is not inspect.Parameter.VAR_KEYWORD]
        at = 1 + [one.name for one in own].index(after)
        shared = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=flag.kind)
            for name, flag in {**FLAGS, **(more or {})}.items()
        ]
        command.__signature__ = signature.replace(parameters=[*own[:at], *shared, *own[at:]])  # type: ignore[attr-defined]
        return command

    return with_options


def query_text(words: list[str] | None) -> str:
    """The query of a command line: its words, or with - standard input.

    Raises: UsageError where there is none.
    """
    if not words:
        raise UsageError("no query", "write it after the command, or - to read it from standard input")
    text = _decoded(streams.read_input()) if words == ["-"] else as_text(" ".join(words))
    if not text.strip():
        raise UsageError("the query is empty", "give at least one word")
    if not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text):
        raise UsageError(f"the query is not valid UTF-8: {shortened(ascii(text))}")
    return text.strip()


def _decoded(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("the query on standard input is not UTF-8", "convert it: iconv -t UTF-8") from error


def settings_of(retrieval: Mapping[str, Any]) -> dict[str, Any]:
    """The dotted settings that the options of a retrieval set; None of what was not given. Others are left out.

    Raises: UsageError: a filter that is none.
    """
    given = {FLAGS[name].setting: value for name, value in retrieval.items() if name in FLAGS}
    for setting in ("fusion.weights", "retrieval.where"):
        if given.get(setting) is not None:
            given[setting] = as_text(given[setting])
    return {**given, "retrieval.metadata_filter": _conditions(retrieval.get("filters"))}


def _conditions(filters: list[str] | None) -> tuple[Any, ...] | None:
    if not filters:
        return None
    from ragcli.filters import parse_filter

    return tuple(parse_filter(as_text(text)) for text in filters)


def given(retrieval: Mapping[str, Any], flags: Mapping[str, Flag] = FLAGS) -> list[str]:
    """The options among `flags` that were given, as they are written: --top-k."""
    named = ((flags[name], value) for name, value in retrieval.items() if name in flags)
    return [written(flag, value) for flag, value in named if value not in (None, [])]


def written(flag: Flag, value: object) -> str:
    """--mmr, or --no-mmr where the value is that."""
    (option,) = flag.kind.__metadata__
    on, _, off = str(option.default).partition("/")
    return off if value is False and off else on


def without_effect(retrieval: Mapping[str, Any], settings: Settings) -> list[str]:
    """What to say of each option that was given and that changes nothing in this call."""
    return [
        f"{written(FLAGS[name], retrieval[name])} has no effect: {reason}"
        for name, reason in _idle(settings)
        if retrieval.get(name) is not None
    ]


def _idle(settings: Settings) -> Iterator[tuple[str, str]]:
    """The options that this call does not look at, and why."""
    options, reranker = settings.retrieval, settings.rerank.reranker
    if not options.mmr:
        yield from _all("MMR is off (--mmr)", "mmr_lambda", "mmr_candidates", "mmr_relevance")
    if not options.redundancy_filter:
        yield from _all("the redundancy filter is off (--redundancy-filter)", "redundancy_threshold")
    if options.rerank is False:
        yield from _all("reranking is off (--rerank)", "reranker", "rerank_model")
    elif reranker == "none":
        yield from _all("there is no reranker (--reranker)", "rerank_model")
    if options.mode != "hybrid":
        yield from _all(f"{options.mode} search fuses nothing (--mode hybrid)", "fusion", "weights")
    if options.mode == "keyword":
        yield from _all("keyword search compares no vectors (--mode hybrid)", "exact", "min_score")


def _all(reason: str, *names: str) -> Iterator[tuple[str, str]]:
    for name in names:
        yield name, reason
