"""`ragcli query`: a question in, the best chunks out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragcli.cli import explained, progress, streams
from ragcli.cli.common import Common, ConfigFile, Debug, Index, Offline, Quiet, Session, Verbose, begin
from ragcli.cli.formats import Reply, remark, render
from ragcli.cli.last_query import remember
from ragcli.cli.retrieval import RETRIEVAL, options, query_text, settings_of, without_effect
from ragcli.cli.wording import counted
from ragcli.errors import UsageError
from ragcli.options import AnalyzerSettings, Format

if TYPE_CHECKING:
    from ragcli.types import Result

OUTPUT = "Output"
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


@options(after="words")
def command(
    context: typer.Context,
    *,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT...", help="The query; - reads it from standard input.", show_default=False),
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
    **retrieval: Any,
) -> int:
    """Search the index and show the best passages.

    On a terminal a table; into a pipe plain text, whole passages, one block a hit. Messages go to standard error.
    """
    shorthands = {"json": as_json, "jsonl": as_jsonl, "csv": as_csv, "md": as_md}
    chosen = _chosen_format(output, shorthands)
    asked = _asked(words, batch)
    common = Common(index_file=index, settings_file=config, quiet=quiet, verbose=verbose, debug=debug, offline=offline)
    session = begin(context, common, {**settings_of(retrieval), "output.format": chosen})
    for said in without_effect(retrieval, session.settings):
        session.common.note(said)
    if batch is not None:
        from ragcli.cli.batch import run_batch

        return run_batch(session, batch, chosen, explain=explain, fail_empty=fail_empty)
    name = session.settings.output.format or "table"
    if null and name != "paths":
        raise UsageError("--null ends paths: it goes with --format paths")
    with progress.shown_when_slow(quiet=session.common.quiet) as listen, session.open(listen) as pipeline:
        found = pipeline.retrieve(asked, session.settings.retrieval)
        analyzer = pipeline.settings.analyzer
    remember(session.index_file, "query", asked, retrieval)
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
    return query_text(words)


def _write(session: Session, name: str, reply: Reply, analyzer: AnalyzerSettings) -> None:
    """The hits to standard output, warnings, notes and the summary to standard error."""
    result = reply.result
    for warning in result.warnings:
        session.common.warn(warning)
    for piece in _pieces(name, reply, analyzer):
        streams.write(piece)
    streams.flush()
    for note in filter(None, (*result.notes, remark(name, result))):
        session.common.note(note)
    if result.ranking.dropped and not result.ranking.hits:
        session.common.note(f"the best of them: {result.ranking.dropped[0].reason}")
    if name == "table":
        session.common.tell(_summary(result))
    if session.common.verbose:
        for line in explained.stage_lines(result.trace):
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
