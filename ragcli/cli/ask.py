"""`ragcli ask`: a question in, an answer with its sources out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ragcli.cli import answer_options, streams
from ragcli.cli.answering import Listening, Wanted, answered
from ragcli.cli.common import Common, ConfigFile, Debug, Index, Offline, Quiet, Session, Verbose, begin
from ragcli.cli.last_query import remember
from ragcli.cli.retrieval import options, query_text, settings_of, without_effect
from ragcli.errors import UsageError

if TYPE_CHECKING:
    from ragcli.types import Message, Observer

TALK, OUTPUT = "Conversation", "Output"
EXAMPLES = """
Examples:
  ragcli ask what does error E-43 mean           extracts, without a model
  ragcli ask --model qwen2.5-coder-0.5b how long do batteries last
  ragcli ask --config ollama --model llama3.2 -- may I paint the housing?
  export OPENAI_API_KEY=...; ragcli ask --model gpt-4o-mini is painting covered
  ragcli ask is painting covered --verify --json | jq -r .answer
  ragcli ask --chat --history talk.jsonl         goes on where it was left
  ragcli inspect is painting covered --prompt    what would be sent, and why

Exit codes: 1 no confident answer, or citations that --strict-citations refuses;
5 the answer broke off, or the service failed.
"""


@options(after="words", more=answer_options.FLAGS)
def command(
    context: typer.Context,
    *,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT...", help="The question; - reads it from standard input.", show_default=False),
    ] = None,
    chat: Annotated[
        bool,
        typer.Option("--chat", help="Ask on: a question a line, with the turns before it.", rich_help_panel=TALK),
    ] = False,
    history: Annotated[
        Path | None,
        typer.Option(
            "--history",
            metavar="FILE",
            help="Go on with the messages in FILE (JSONL), and add to it.",
            rich_help_panel=TALK,
        ),
    ] = None,
    stream: Annotated[
        bool | None,
        typer.Option(
            "--stream/--no-stream",
            help="Show the answer as it is written; --no-stream: also ask the service to send it whole.",
            show_default="on a terminal",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    output: Annotated[
        Literal["text", "json"],
        typer.Option("--format", "-f", metavar="NAME", help="text, or json: one object.", rich_help_panel=OUTPUT),
    ] = "text",
    as_json: Annotated[bool, typer.Option("--json", help="As --format json.", rich_help_panel=OUTPUT)] = False,
    show_prompt: Annotated[
        bool,
        typer.Option("--show-prompt", help="What is sent, on standard error, before it is.", rich_help_panel=OUTPUT),
    ] = False,
    prompt_log: Annotated[
        Path | None,
        typer.Option("--prompt-log", metavar="FILE", help="Add what is sent to FILE (JSONL).", rich_help_panel=OUTPUT),
    ] = None,
    index: Index = None,
    config: ConfigFile = None,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    debug: Debug = False,
    offline: Offline = False,
    **retrieval: Any,
) -> int:
    """Answer a question from the index, citing the sources.

    Without a language model the answer is made of sentences of the sources. Nothing leaves this machine unless a model
    at a service is named.
    """
    common = Common(index_file=index, settings_file=config, quiet=quiet, verbose=verbose, debug=debug, offline=offline)
    if chat and words == ["-"]:
        raise UsageError("- and --chat: both read standard input", "leave the - out: each line is a question")
    question = query_text(words) if words or not chat else ""
    session = begin(
        context, common,
        {**settings_of(retrieval), **answer_options.settings_of(retrieval), "answer.stream": stream},
    )  # fmt: skip
    for idle in (without_effect, answer_options.without_effect):
        for said in idle(retrieval, session.settings):
            session.common.note(said)
    if (show_prompt or prompt_log) and not answer_options.asks_model(session.settings):
        session.common.note("no prompt to show: extracts need no language model (--model NAME)")
    is_json = as_json or output == "json"
    comes_whole = _comes_whole(session, is_json=is_json)
    if stream and comes_whole:
        session.common.note(f"--stream has no effect: {comes_whole}")
    is_live = not comes_whole and (streams.output_is_terminal() if stream is None else stream)
    wanted = Wanted(
        session, is_json, is_live, session.settings.answer.strict_citations, history,
        _observers(session, prompt_log, show=show_prompt),
    )  # fmt: skip
    if prompt_log and any(_is_same(prompt_log, other) for other in (history, session.index_file)):
        raise UsageError(f"--prompt-log {prompt_log}: this file is something else already", "name a file of its own")
    if question:
        remember(session.index_file, "ask", question, retrieval)
    return _run(wanted, question, is_chat=chat)


def _run(wanted: Wanted, question: str, *, is_chat: bool) -> int:
    from ragcli.cli.messages import check_writable, read_history

    before = read_history(wanted.history) if wanted.history else ()
    if wanted.history:
        check_writable(wanted.history)
    with Listening(wanted) as listening, wanted.session.open(listening) as pipeline:
        if is_chat:
            from ragcli.cli.chat import converse

            return converse(wanted, listening, pipeline, question, before)
        return answered(wanted, listening, pipeline, question, before)[0]


def _is_same(one: Path, other: Path | None) -> bool:
    return other is not None and one.absolute() == other.absolute()


def _comes_whole(session: Session, *, is_json: bool) -> str:
    """Why the answer can't be shown piece by piece; "" where it can."""
    if is_json:
        return "JSON is one object"
    return "sources are numbered once all of them are cited (--renumber)" if session.settings.answer.renumber else ""


def _observers(session: Session, log: Path | None, *, show: bool) -> tuple[Observer, ...]:
    found: list[Observer] = []
    if show:
        found.append(_show)
    if log is not None:
        from ragcli.cli.messages import PromptLog

        found.append(PromptLog(log, model=session.settings.chat.model or ""))
    return tuple(found)


def _show(messages: Sequence[Message]) -> None:
    """The messages, on standard error."""
    import sys

    from ragcli.cli.answers import prompt_text

    sys.stderr.write(prompt_text(messages))
