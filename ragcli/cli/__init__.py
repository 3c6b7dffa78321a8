"""The command line's front door: argv in, exit code out. The one place where errors become a line and a code.

Messages follow uv's grammar (`error:` / `warning:` / `hint:`) and go to standard error; data alone goes to standard
output. Knows no command: those are found by `app`, each in the file of its name.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from ragcli.errors import RagcliError, shortened

INTERRUPTED = 130  # 128 + SIGINT, as shells report it
LONGEST_PATH = 300  # characters of a path in a message
TERMINATED = 143  # 128 + SIGTERM


class Terminated(BaseException):
    """SIGTERM came. Like KeyboardInterrupt no `Exception`: everything is given back on the way out."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (default: `sys.argv[1:]`) and return its exit code (spec C9)."""
    from ragcli.cli import streams

    arguments = list(sys.argv[1:] if argv is None else argv)
    streams.make_safe()
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has what it wanted: `ragcli query x | head -1`
        streams.discard_output()
        return 0
    except KeyboardInterrupt:
        streams.say("error", "interrupted")
        return INTERRUPTED
    except Terminated:
        streams.say("error", "terminated")
        return TERMINATED
    except Exception as error:
        code = _report(error, debug=_asks_for_debug(arguments))
    return code


def _run(arguments: list[str]) -> int:
    from ragcli.cli.app import run

    return run(arguments)


def _asks_for_debug(arguments: list[str]) -> bool:
    """By the flag, wherever it stands, or by RAGCLI_DEBUG; asked only when there is an error."""
    from ragcli import config

    before_text = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--debug" in before_text or config.debug(environ=os.environ)


def _report(error: Exception, *, debug: bool) -> int:
    """One line and a hint; the traceback only when asked for. Returns the exit code."""
    from ragcli.cli import streams

    if debug:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, RagcliError):
        message, hint, code = error.message, error.hint, error.exit_code
    elif isinstance(error, OSError) and error.strerror:
        place = f": {shortened(str(error.filename), LONGEST_PATH)}" if error.filename else ""
        message, hint, code = f"{error.strerror}{place}", "", 1
    else:
        message, hint, code = f"{type(error).__name__}: {error}", "this is a fault in ragcli", 1
        hint += "" if debug else "; run again with --debug to see where"
    streams.say("error", message)
    if hint:
        streams.say("hint", hint)
    return code
