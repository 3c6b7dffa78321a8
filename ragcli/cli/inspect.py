"""`ragcli inspect`: what is in the index, and what settings are in force. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer

from ragcli.cli import progress, streams, tracing, views
from ragcli.cli.app import Command
from ragcli.cli.common import Common, Debug, Index, Offline, Quiet, Session, Verbose, as_text, begin
from ragcli.cli.retrieval import given, options, query_text, settings_of, without_effect
from ragcli.errors import UsageError, shortened

VIEW, OUTPUT = "What to show (default: --stats)", "Output"
SCHEMA = 1
EXAMPLES = """
Examples:
  ragcli inspect                             counts, sizes, settings
  ragcli inspect --documents                 what there is: id, format, title
  ragcli inspect --document docs/leave.md    its metadata, chunks and text
  ragcli inspect --chunk 'docs/leave.md#3'   as the index sees it
  ragcli inspect --terms torque              document frequency, idf, postings
  ragcli inspect --config                    effective settings, their origins
  ragcli inspect gripper --trace --mmr       a query, stage by stage
  ragcli inspect --check                     integrity; 3 when damaged
"""


class _WithBareConfig(Command):
    """`--config` names a settings file everywhere; here, bare, it asks for the settings themselves."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As click's, after a bare `--config` was read as `--show-config`."""
        rest: list[str] = super().parse_args(ctx, _with_bare_config(args))
        return rest


def _with_bare_config(args: list[str]) -> list[str]:
    """`--config` followed by no value becomes `--show-config`; with a FILE it is both."""
    read: list[str] = []
    for at, word in enumerate(args):
        if word == "--":
            return read + args[at:]
        following = args[at + 1] if at + 1 < len(args) else "-"
        bare = word == "--config" and following.startswith("-")
        read.append("--show-config" if bare else word)
    return read


COMMAND_CLASS = _WithBareConfig


@options(after="check")
def command(
    context: typer.Context,
    *,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUERY...", help="With --trace: the query.", show_default=False),
    ] = None,
    stats: Annotated[
        bool, typer.Option("--stats", help="Counts, sizes, settings of the index.", rich_help_panel=VIEW)
    ] = False,
    documents: Annotated[
        bool, typer.Option("--documents", help="All documents: id, format, chunks, title.", rich_help_panel=VIEW)
    ] = False,
    document: Annotated[
        str | None,
        typer.Option("--document", metavar="ID", help="A document: metadata, chunks, text.", rich_help_panel=VIEW),
    ] = None,
    chunk: Annotated[
        str | None,
        typer.Option("--chunk", metavar="ID#N", help="A chunk: text, terms, neighbours.", rich_help_panel=VIEW),
    ] = None,
    terms: Annotated[
        str | None,
        typer.Option("--terms", metavar="WORD", help="A word's terms: df, idf, postings.", rich_help_panel=VIEW),
    ] = None,
    trace: Annotated[
        bool,
        typer.Option(
            "--trace",
            help="What each stage makes of QUERY: hits in and out, time, options, what it dropped and why, the order.",
            rich_help_panel=VIEW,
        ),
    ] = False,
    show_config: Annotated[bool, typer.Option("--show-config", hidden=True)] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Is the index whole? Exit code 3 when not.", rich_help_panel=VIEW)
    ] = False,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="[FILE]",
            help="The settings in force and where each came from. With FILE: read these settings first.",
            rich_help_panel=VIEW,
        ),
    ] = None,
    output: Annotated[
        Literal["text", "json"],
        typer.Option("--format", "-f", metavar="NAME", help="text, or json: one object.", rich_help_panel=OUTPUT),
    ] = "text",
    as_json: Annotated[bool, typer.Option("--json", help="As --format json.", rich_help_panel=OUTPUT)] = False,
    index: Index = None,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    debug: Debug = False,
    offline: Offline = False,
    **retrieval: Any,
) -> int:
    """Look into the index: figures, documents, chunks, terms, settings; or follow a query through it."""
    asked = {"--stats": stats, "--documents": documents, "--document": document, "--chunk": chunk, "--terms": terms}
    asked |= {"--trace": trace, "--check": check}
    views_asked = [name for name, wanted in asked.items() if wanted not in {None, False}]
    if show_config or (config and not views_asked):
        views_asked.append("--config")
    if len(views_asked) > 1:
        raise UsageError(f"one view at a time: {' and '.join(views_asked)}", "run inspect once for each")
    view = views_asked[0] if views_asked else "--stats"
    _check_query(view, words, retrieval)
    if chunk is not None:
        _check_reference(chunk)
    file = Path(config) if config else None
    common = Common(index_file=index, settings_file=file, quiet=quiet, verbose=verbose, debug=debug, offline=offline)
    session = begin(context, common, settings_of(retrieval))
    is_json = as_json or output == "json"
    if view == "--trace":
        return _trace(session, query_text(words), retrieval, as_json=is_json)
    return _show(session, view, as_text(document or chunk or terms or ""), as_json=is_json)


def _check_query(view: str, words: list[str] | None, retrieval: Mapping[str, Any]) -> None:
    """Raises: UsageError: a query, or an option of one, without the view that it goes with."""
    named = given(retrieval)
    if view == "--trace" or not (words or named):
        return
    what = f"a query ({shortened(' '.join(words))})" if words else named[0]
    raise UsageError(f"{what} goes with --trace", "add --trace to see what each stage makes of the query")


def _trace(session: Session, query: str, retrieval: Mapping[str, Any], *, as_json: bool) -> int:
    """Run the query, and write what each stage made of it."""
    for said in without_effect(retrieval, session.settings):
        session.common.note(said)
    with progress.shown_when_slow(quiet=session.common.quiet) as listen, session.open(listen) as pipeline:
        found = pipeline.retrieve(query, session.settings.retrieval)
    if as_json:
        streams.write(msgspec.json.encode(tracing.trace_object(found)) + b"\n")
    else:
        streams.write(tracing.text(found, str(Path.cwd())))
    streams.flush()
    for warning in found.warnings:
        session.common.warn(warning)
    for note in found.notes:
        session.common.note(note)
    return 0


def _show(session: Session, view: str, subject: str, *, as_json: bool) -> int:
    """Write one view; returns the exit code."""
    value, draw, code = _look(session, view, subject)
    if as_json:
        streams.write(msgspec.json.encode({"schema": SCHEMA, **value}) + b"\n")
    else:
        streams.write(draw())
    streams.flush()
    return code


def _look(session: Session, view: str, subject: str) -> tuple[Mapping[str, Any], Callable[[], str], int]:
    """What was asked for as plain values, as text when drawn, and the exit code."""
    if view == "--config":
        settings = views.setting_rows(session)
        return {"settings": settings}, lambda: views.settings(settings), 0
    if view == "--check":
        return _check(session)
    with session.open() as pipeline:
        inspector = pipeline.inspector
        if view == "--documents":
            listed = inspector.listing()
            return {"documents": msgspec.to_builtins(listed)}, lambda: views.documents(listed), 0
        looks: dict[str, tuple[Callable[[], Any], Callable[[Any], str]]] = {
            "--stats": (inspector.stats, views.stats),
            "--document": (lambda: inspector.document(subject), views.document),
            "--chunk": (lambda: inspector.chunk(subject), views.chunk),
            "--terms": (lambda: inspector.terms(subject), views.terms),
        }
        look, draw = looks[view]
        found = look()
    return msgspec.to_builtins(found), lambda: draw(found), 0


def _check(session: Session) -> tuple[Mapping[str, Any], Callable[[], str], int]:
    with session.open() as pipeline:
        faults = pipeline.inspector.check()
    value = {"path": str(session.index_file), "ok": not faults, "faults": faults}
    return value, lambda: views.check(str(session.index_file), faults), 3 if faults else 0


def _check_reference(text: str) -> None:
    """Raises: UsageError where `text` has not the form `document_id#index`."""
    document, mark, number = text.rpartition("#")
    if not (document and mark and number.isdecimal()):
        raise UsageError(f"--chunk {text}: no chunk number", "write document_id#number, for example docs/leave.md#3")
