"""What click says of a command line it can't read, in our words: one line, the nearest option, where to look.

Translates only; the command line itself is read by typer.
"""

from __future__ import annotations

from typing import Any

from ragcli.errors import UsageError, shortened

# What other tools call it. A word here is a guess at what was meant, never accepted in its place.
_ALSO_CALLED = {
    "--glob": "--include",
    "--pattern": "--include",
    "--ignore": "--exclude",
    "--limit": "--top-k",
    "--num": "--top-k",
    "--output": "--format",
    "--collection": "--index",
    "--database": "--index",
    "--threshold": "--min-score",
    "--force": "--yes",
}


def translated(error: Any) -> UsageError:
    """`error`, an exception of click's, as a `UsageError` of ours."""
    command = _command_of(error)
    hint = f"see {command} --help"
    if hasattr(error, "possibilities"):
        nearest = _nearest(error.option_name, _options_of(error))
        return UsageError(f"no such option: {shortened(error.option_name)}{nearest}", hint)
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    return UsageError(_one_sentence(message), hint)


def _command_of(error: Any) -> str:
    context = getattr(error, "ctx", None)
    return str(context.command_path) if context is not None else "ragcli"


def _options_of(error: Any) -> list[str]:
    context = getattr(error, "ctx", None)
    if context is None:
        return []
    params = context.command.get_params(context)
    return [name for param in params if not getattr(param, "hidden", False) for name in (*param.opts,)]


def _nearest(name: str, options: list[str]) -> str:
    from difflib import get_close_matches

    known = [option for option in options if option.startswith("--")]
    others = [word for word, meant in _ALSO_CALLED.items() if meant in known]
    close = get_close_matches(name, [*known, *others], n=1, cutoff=0.7)
    if not close:
        return ""
    return f"; did you mean {_ALSO_CALLED.get(close[0], close[0])}?"


def _one_sentence(message: str) -> str:
    """Click's messages are sentences; ours begin small and end without a full stop."""
    text = " ".join(shortened(word) for word in message.split()).rstrip(".")
    return text[:1].lower() + text[1:]
