"""`ragcli inspect`: what is in the index, and what settings are in force. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import msgspec
import typer

from ragcli.cli import answer_options, progress, streams, tracing, views
from ragcli.cli.app import Command
from ragcli.cli.common import Common, Debug, Index, Offline, Quiet, Session, Verbose, as_text, begin
from ragcli.cli.retrieval import FLAGS, given, options, query_text, settings_of, without_effect
from ragcli.errors import UsageError, shortened

if TYPE_CHECKING:
    from ragcli.pipeline import Pipeline

VIEW, OUTPUT = "What to show (default: --stats)", "Output"
SCHEMA = 1
ABOUT_A_QUERY = ("--trace", "--prompt", "--why")
EXAMPLES = """
Examples:
  ragcli inspect                             counts, sizes, settings
  ragcli inspect --documents                 what there is: id, format, title
  ragcli inspect --document docs/leave.md    its metadata, chunks and text
  ragcli inspect --chunk 'docs/leave.md#3'   as the index sees it
  ragcli inspect --terms torque              document frequency, idf, postings
  ragcli inspect --config                    effective settings, their origins
  ragcli inspect gripper --trace --mmr       a query, stage by stage
  ragcli inspect --prompt                    what the last query or question
                                             sends to a model, token by token
  ragcli inspect what is E-43 --why --expect 'refuses the certificate'
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


@options(after="check", more=answer_options.FLAGS)
def command(
    context: typer.Context,
    *,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="QUERY...", help="With --trace, --prompt and --why: the query or question.", show_default=False
        ),
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
    prompt: Annotated[
        bool,
        typer.Option(
            "--prompt",
            help="What `ask` would send: the messages, the tokens of each source, what was dropped and why. Without "
            "QUERY: for the last query or question.",
            rich_help_panel=VIEW,
        ),
    ] = False,
    why: Annotated[
        bool,
        typer.Option(
            "--why",
            help="Why the answer to QUERY fails: nothing retrieved, the wrong text, or the right one not used.",
            rich_help_panel=VIEW,
        ),
    ] = False,
    expect: Annotated[
        str | None,
        typer.Option(
            "--expect",
            metavar="TEXT",
            help="With --why: what the answer should rest on, word for word.",
            rich_help_panel=VIEW,
        ),
    ] = None,
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
    asked |= {"--trace": trace, "--prompt": prompt, "--why": why, "--check": check}
    views_asked = [name for name, wanted in asked.items() if wanted not in {None, False}]
    if show_config or (config and not views_asked):
        views_asked.append("--config")
    if len(views_asked) > 1:
        raise UsageError(f"one view at a time: {' and '.join(views_asked)}", "run inspect once for each")
    view = views_asked[0] if views_asked else "--stats"
    _check_query(view, words, retrieval, expect)
    if chunk is not None:
        _check_reference(chunk)
    file = Path(config) if config else None
    common = Common(index_file=index, settings_file=file, quiet=quiet, verbose=verbose, debug=debug, offline=offline)
    is_json = as_json or output == "json"
    if view in ABOUT_A_QUERY:
        query = Query(query_text(words) if words else "", as_text(expect or ""), retrieval)
        return _query_view(context, common, view, query, as_json=is_json)
    session = begin(context, common, {})
    return _show(session, view, as_text(document or chunk or terms or ""), as_json=is_json)


class Query(NamedTuple):
    """A query or question with the options that were given for it; `expect`: with --why."""

    text: str
    expect: str
    options: Mapping[str, Any]


class Shown(NamedTuple):
    """What a view of a query has to show."""

    value: Mapping[str, Any]
    text: str
    warnings: tuple[str, ...]
    notes: tuple[str, ...]


def _check_query(view: str, words: list[str] | None, retrieval: Mapping[str, Any], expect: str | None) -> None:
    """Raises: UsageError: a query, or an option of one, without the view that it goes with, or the other way round."""
    named = [*given(retrieval), *given(retrieval, answer_options.FLAGS)]
    if expect is not None and (view != "--why" or not expect.strip()):
        raise UsageError("--expect goes with --why and holds a text", "the words that the answer should rest on")
    if view in ABOUT_A_QUERY:
        if not words and view != "--prompt":
            raise UsageError(f"{view} needs a query", "write it after the command")
        if view == "--trace" and (of_answers := given(retrieval, answer_options.FLAGS)):
            raise UsageError(f"{of_answers[0]} goes with --prompt or --why", "a trace is of the retrieval alone")
        return
    if words or named:
        what = f"a query ({shortened(' '.join(words))})" if words else named[0]
        raise UsageError(
            f"{what} goes with --trace, --prompt or --why", "add --trace to see what each stage makes of the query"
        )


def _query_view(context: typer.Context, common: Common, view: str, query: Query, *, as_json: bool) -> int:
    """Write one view of a query."""
    session = begin(context, common, {})
    if not query.text:
        query = _last(session, query)
    options = {**settings_of(query.options), **answer_options.settings_of(query.options)}
    session = begin(context, common, options)
    for idle in (without_effect, answer_options.without_effect if view != "--prompt" else lambda *_: []):
        for said in idle(query.options, session.settings):
            session.common.note(said)
    look = {"--trace": _trace, "--prompt": _prompt, "--why": _why}[view]
    with progress.shown_when_slow(quiet=session.common.quiet) as listen, session.open(listen) as pipeline:
        shown = look(session, pipeline, query)
    streams.write(msgspec.json.encode(shown.value) + b"\n" if as_json else shown.text)
    streams.flush()
    for warning in shown.warnings:
        session.common.warn(warning)
    for note in shown.notes:
        session.common.note(note)
    return 0


def _last(session: Session, query: Query) -> Query:
    """The last query that was put to this index, with its options; those that are given now stand before them.

    Raises: UsageError: none is known.
    """
    from ragcli.cli.last_query import recall

    last = recall(session.index_file)
    known = None if last is None else _known(last.options)
    if last is None or known is None:
        raise UsageError(f"no query of {session.index_file} is known yet", "write one: ragcli inspect QUERY --prompt")
    now = {name: value for name, value in query.options.items() if value not in (None, [])}
    session.common.note(f"the last one: ragcli {last.command} {shortened(last.text)}")
    return Query(last.text, query.expect, {**query.options, **known, **now})


def _known(kept: Mapping[str, Any]) -> dict[str, Any] | None:
    """The options that were kept, without those that there are no more; None where one is not what it must be."""
    flags = {**FLAGS, **answer_options.FLAGS}
    try:
        return {name: msgspec.convert(value, flags[name].kind) for name, value in kept.items() if name in flags}
    except msgspec.ValidationError:
        return None


def _trace(session: Session, pipeline: Pipeline, query: Query) -> Shown:
    """What each stage made of the query."""
    found = pipeline.retrieve(query.text, session.settings.retrieval)
    return Shown(tracing.trace_object(found), tracing.text(found, str(Path.cwd())), found.warnings, found.notes)


def _prompt(session: Session, pipeline: Pipeline, query: Query) -> Shown:
    """What would be sent for the question."""
    from ragcli.cli import prompts

    draft = pipeline.draft(query.text, session.settings.retrieval)
    engine = pipeline.engine_name
    return Shown(
        prompts.draft_object(query.text, engine, draft), prompts.text(query.text, engine, draft, str(Path.cwd())),
        draft.warnings, draft.result.notes,
    )  # fmt: skip


def _why(session: Session, pipeline: Pipeline, query: Query) -> Shown:
    """Why its answer fails."""
    from ragcli.cli import whys
    from ragcli.why import why

    found = why(pipeline, query.text, query.expect, session.settings.retrieval)
    return Shown(whys.why_object(found), whys.text(found), found.warnings, ())


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
