"""`ragcli query`: a question in, the best chunks out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragcli.cli import streams
from ragcli.cli.common import Common, ConfigFile, Debug, Index, Offline, Quiet, Session, Verbose, as_text, begin
from ragcli.cli.formats import Reply, render, stage_lines
from ragcli.cli.wording import counted
from ragcli.errors import UsageError, shortened
from ragcli.options import AnalyzerSettings, Format, FusionMethod, FusionSettings, Mode, RetrievalOptions

if TYPE_CHECKING:
    from ragcli.types import Result

DEFAULTS, FUSION = RetrievalOptions(), FusionSettings()
RETRIEVAL, OUTPUT = "Retrieval", "Output"
EXAMPLES = """
Examples:
  ragcli query reset the torque sensor            words are joined to one query
  ragcli query gripper -k 20 --filter lang=de     only documents with that tag
  ragcli query gripper --filter 'year:=2024' --filter 'path=manuals/*'
  ragcli query gripper --where 'page < 20 and not heading == "Index"'
  ragcli query my invoice is wrong --weights bm25=0.3,dense=0.7
  ragcli query E-43 --mode keyword                no model is loaded
  echo gripper | ragcli query - --json | jq -r '.hits[].path'
  ragcli query gripper --format paths -0 | xargs -0 less
  ragcli query --batch queries.jsonl --format trec > run.txt
"""


def command(
    context: typer.Context,
    *,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT...", help="The query; - reads it from standard input.", show_default=False),
    ] = None,
    top_k: Annotated[
        int | None,
        typer.Option(
            "--top-k",
            "-k",
            metavar="N",
            help="Hits to show.",
            show_default=str(DEFAULTS.top_k),
            rich_help_panel=RETRIEVAL,
        ),
    ] = None,
    mode: Annotated[
        Mode | None,
        typer.Option(
            "--mode",
            help="keyword: by the query's terms (BM25); vector: by meaning, as the index's model sees it (cosine); "
            "hybrid: by both, fused.",
            show_default=DEFAULTS.mode,
            rich_help_panel=RETRIEVAL,
        ),
    ] = None,
    fusion: Annotated[
        FusionMethod | None,
        typer.Option(
            "--fusion",
            help="How hybrid makes one score of two: the weighted sum of scaled scores (relative), of standard "
            "scores (zscore), or of reciprocal ranks (rrf).",
            show_default=FUSION.method,
            rich_help_panel=RETRIEVAL,
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights",
            metavar="ARM=X,...",
            help="Weights of the arms bm25 and dense in hybrid, such as bm25=0.3,dense=0.7; an arm of weight 0 does "
            "not run.",
            show_default="equal",
            rich_help_panel=RETRIEVAL,
        ),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact",
            help="Compare the query with every vector, however large the index is.",
            rich_help_panel=RETRIEVAL,
        ),
    ] = False,
    candidates: Annotated[
        int | None,
        typer.Option(
            "--candidates",
            metavar="N",
            help="Hits that an arm gives to the fusion and to what comes after it.",
            show_default=f"top-k x {DEFAULTS.candidate_multiplier}; to a fusion at least {FUSION.depth}",
            rich_help_panel=RETRIEVAL,
        ),
    ] = None,
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            metavar="KEY=VALUE",
            help="Only documents with this tag; key:=json for a number, true, a date; path=GLOB for the document id. "
            "Repeatable: all must match.",
            rich_help_panel=RETRIEVAL,
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            metavar="EXPR",
            help="Keep hits for which this holds: comparisons, in, and, or, not over score, document_id, tag.KEY, "
            "page, heading.",
            rich_help_panel=RETRIEVAL,
        ),
    ] = None,
    min_score: Annotated[
        float | None,
        typer.Option(
            "--min-score",
            metavar="X",
            help="Lowest cosine of a dense hit, -1 to 1; BM25 hits and fused scores are not cut by it.",
            show_default=str(DEFAULTS.min_score),
            rich_help_panel=RETRIEVAL,
        ),
    ] = None,
    per_document: Annotated[
        int | None,
        typer.Option(
            "--per-document",
            metavar="N",
            help="At most N hits of one document.",
            show_default="no limit",
            rich_help_panel=RETRIEVAL,
        ),
    ] = None,
    batch: Annotated[
        str | None,
        typer.Option(
            "--batch",
            metavar="FILE",
            help="Queries from FILE or -: one a line, or JSONL with _id and text. Results stream in that order.",
            rich_help_panel=RETRIEVAL,
        ),
    ] = None,
    output: Annotated[
        Format | None,
        typer.Option(
            "--format",
            "-f",
            metavar="NAME",
            help="table, json, jsonl, csv, tsv, md, paths or trec.",
            show_default="table; with --batch jsonl",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="As --format json.", rich_help_panel=OUTPUT)] = False,
    as_jsonl: Annotated[bool, typer.Option("--jsonl", help="As --format jsonl.", rich_help_panel=OUTPUT)] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="As --format csv.", rich_help_panel=OUTPUT)] = False,
    as_md: Annotated[bool, typer.Option("--md", help="As --format md.", rich_help_panel=OUTPUT)] = False,
    null: Annotated[
        bool, typer.Option("--null", "-0", help="With --format paths: end each with NUL.", rich_help_panel=OUTPUT)
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Whole passages in the table of a terminal.", rich_help_panel=OUTPUT)
    ] = False,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain",
            help="How each score came about; below, the stages, what was dropped and why.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    fail_empty: Annotated[
        bool, typer.Option("--fail-empty", help="No hits: exit code 1 (grep's).", rich_help_panel=OUTPUT)
    ] = False,
    index: Index = None,
    config: ConfigFile = None,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    debug: Debug = False,
    offline: Offline = False,
) -> int:
    """Search the index and show the best passages.

    On a terminal a table; into a pipe plain text, whole passages, one block a hit. Messages go to standard error.
    """
    shorthands = {"json": as_json, "jsonl": as_jsonl, "csv": as_csv, "md": as_md}
    chosen = _chosen_format(output, shorthands)
    asked = _asked(words, batch)
    flags = {
        "retrieval.top_k": top_k,
        "retrieval.mode": mode,
        "retrieval.exact": exact or None,
        "retrieval.candidate_count": candidates,
        "fusion.method": fusion,
        "fusion.weights": None if weights is None else as_text(weights),
        "retrieval.metadata_filter": _conditions(filters),
        "retrieval.where": None if where is None else as_text(where),
        "retrieval.min_score": min_score,
        "retrieval.per_document": per_document,
        "output.format": chosen,
    }
    common = Common(index_file=index, settings_file=config, quiet=quiet, verbose=verbose, debug=debug, offline=offline)
    session = begin(context, common, flags)
    if batch is not None:
        from ragcli.cli.batch import run_batch

        return run_batch(session, batch, chosen, explain=explain, fail_empty=fail_empty)
    name = session.settings.output.format or "table"
    if null and name != "paths":
        raise UsageError("--null ends paths: it goes with --format paths")
    with session.open() as pipeline:
        found = pipeline.retrieve(asked, session.settings.retrieval)
        analyzer = pipeline.settings.analyzer
    _write(session, name, Reply(result=found, explain=explain, full=full, null=null), analyzer)
    return 1 if fail_empty and not found.ranking.hits else 0


def _chosen_format(output: Format | None, shorthands: dict[str, bool]) -> Any:
    """The one format that the flags name; None when they name none."""
    names = dict.fromkeys([name for name, given in shorthands.items() if given] + ([output] if output else []))
    if len(names) > 1:
        raise UsageError(f"two output formats: {' and '.join(names)}", "choose one")
    return next(iter(names), None)


def _asked(words: list[str] | None, batch: str | None) -> str:
    """The query's text, from the arguments or standard input; "" for a batch."""
    if batch is not None:
        if words:
            raise UsageError("a query and --batch: the queries come from the batch", "give one of them")
        return ""
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


def _conditions(filters: list[str] | None) -> tuple[Any, ...] | None:
    if not filters:
        return None
    from ragcli.filters import parse_filter

    return tuple(parse_filter(as_text(text)) for text in filters)


def _write(session: Session, name: str, reply: Reply, analyzer: AnalyzerSettings) -> None:
    """The hits to standard output, warnings, notes and the summary to standard error."""
    result = reply.result
    for warning in result.warnings:
        session.common.warn(warning)
    for piece in _pieces(name, reply, analyzer):
        streams.write(piece)
    streams.flush()
    for note in result.notes:
        session.common.note(note)
    if result.ranking.dropped and not result.ranking.hits:
        session.common.note(f"the best of them: {result.ranking.dropped[0].reason}")
    if name == "table":
        session.common.tell(_summary(result))
    if session.common.verbose:
        for line in stage_lines(result.trace):
            session.common.tell(line)


def _pieces(name: str, reply: Reply, analyzer: AnalyzerSettings) -> Iterator[bytes | str]:
    """A table is for a terminal: elsewhere it is plain text."""
    from msgspec.structs import replace

    here = replace(reply, folder=str(Path.cwd()))
    if name != "table":
        return render(name, here)
    if not streams.output_is_terminal():
        return render("plain", here)
    from ragcli.cli.highlight import Highlighter
    from ragcli.text import Analyzer

    highlighter = Highlighter(reply.result.query, Analyzer(analyzer))
    return render("table", replace(here, width=streams.terminal_width(), highlighter=highlighter))


def _summary(result: Result) -> str:
    count = len(result.ranking.hits)
    seconds = sum(step.seconds for step in result.trace.steps)
    hits = counted(count, "hit") if count else "no hits"
    dropped = f", {len(result.ranking.dropped)} dropped" if result.ranking.dropped else ""
    return f"{hits}{dropped} ({result.mode}, {seconds * 1000:.1f} ms)"
