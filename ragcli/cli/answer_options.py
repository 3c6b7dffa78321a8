"""The options of an answer, each declared once, for the commands that ask or show what would be asked.

A command takes them with those of a retrieval (`retrieval.options(more=FLAGS)`). Asks nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragcli.cli.common import as_text
from ragcli.cli.retrieval import Flag, option, written
from ragcli.errors import UsageError, shortened
from ragcli.options import AnswerSettings, ChatSettings, Engine, Settings

ANSWER = "Answer"
DEFAULTS, CHAT = AnswerSettings(), ChatSettings()
NEEDS_MODEL = ("model", "base_url", "system", "temperature", "max_tokens", "seed", "sources_as_tool", "rewrite")


def _answer(kind: Any, *names: str, help: str, metavar: str | None = None, default: object = None) -> Any:
    return option(kind, *names, help=help, metavar=metavar, default=default, panel=ANSWER)


FLAGS: Mapping[str, Flag] = {
    "engine": Flag(
        "answer.engine",
        _answer(
            Engine,
            "--engine",
            help="Who answers: sentences of the sources (extractive), a service (openai), a model here (gguf).",
            default="as --model says; without one, extractive",
        ),
    ),
    "model": Flag(
        "chat.model",
        _answer(
            str,
            "--model",
            metavar="NAME",
            help="The language model: its name at the service, a .gguf file, or a chat model of ragcli models list.",
        ),
    ),
    "base_url": Flag(
        "chat.base_url",
        _answer(
            str,
            "--base-url",
            metavar="URL",
            help="An OpenAI-compatible service, up to and with /v1.",
            default="$OPENAI_BASE_URL, else OpenAI's own",
        ),
    ),
    "system": Flag(
        "answer.system",
        _answer(str, "--system", metavar="TEXT", help="In place of the system prompt; @FILE reads it from a file."),
    ),
    "temperature": Flag(
        "chat.temperature",
        _answer(
            float,
            "--temperature",
            metavar="X",
            help="0: the likeliest words; more: others too, up to 2.",
            default=CHAT.temperature,
        ),
    ),
    "max_tokens": Flag(
        "answer.max_tokens",
        _answer(int, "--max-tokens", metavar="N", help="The longest answer.", default=DEFAULTS.max_tokens),
    ),
    "seed": Flag("answer.seed", _answer(int, "--seed", metavar="N", help="Of the model's chance.")),
    "sources_as_tool": Flag(
        "answer.sources_as",
        _answer(bool, "--sources-as-tool", help="Send the sources as the result of a tool call."),
    ),
    "always": Flag("answer.always", _answer(bool, "--always", help="Answer also where nothing relevant was found.")),
    "verify": Flag(
        "answer.verify",
        _answer(
            bool,
            "--verify/--no-verify",
            help="Hold each sentence of the answer against the sources, by words and by meaning.",
            default="off",
        ),
    ),
    "strict_citations": Flag(
        "answer.strict_citations",
        _answer(
            bool,
            "--strict-citations",
            help="Exit code 1 where the answer cites no source, one that was not sent or, with --verify, one that does "
            "not say so.",
        ),
    ),
    "renumber": Flag(
        "answer.renumber", _answer(bool, "--renumber", help="Number the sources in the order in which they are cited.")
    ),
    "rewrite": Flag(
        "answer.rewrite",
        _answer(
            bool,
            "--rewrite/--no-rewrite",
            help="Let the model make a question that follows on others stand alone, for the search.",
            default="on",
        ),
    ),
}


def settings_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The dotted settings that the options of an answer set; None of what was not given. Others are left out.

    Raises: UsageError: the file of a system prompt can't be read.
    """
    found = {flag.setting: _text(flag, given.get(name)) for name, flag in FLAGS.items()}
    tool = found["answer.sources_as"]
    return {
        **found,
        "answer.sources_as": None if tool is None else "tool" if tool else "user",
        "answer.system": _system(found["answer.system"]),
    }


def _text(flag: Flag, value: Any) -> Any:
    """The value; of a text, as UTF-8 whatever the locale. Raises: UsageError: it is none."""
    text = as_text(value) if isinstance(value, str) else ""
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise UsageError(f"{written(flag, value)} is not valid UTF-8: {shortened(ascii(text))}")
    return text if isinstance(value, str) else value


def _system(text: str | None) -> str | None:
    if text is None or not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"--system {text}: not UTF-8", "convert it: iconv -t UTF-8") from error
    except OSError as error:
        raise UsageError(f"--system {text}: {error.strerror}", "@FILE names a file with the prompt") from error


def asks_model(settings: Settings) -> bool:
    """Whether an answer is written by a language model."""
    from ragcli.models.chat import engine_of

    return (settings.answer.engine or engine_of(settings)) != "extractive"


def without_effect(given: Mapping[str, Any], settings: Settings) -> list[str]:
    """What to say of each option that was given and changes nothing where no model is asked."""
    if asks_model(settings):
        return []
    named = ((FLAGS[name], given[name]) for name in NEEDS_MODEL if given.get(name) is not None)
    return [f"{written(*one)} has no effect: extracts need no language model (--model NAME)" for one in named]
