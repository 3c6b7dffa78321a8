"""`python -m ragcli`, and the `ragcli` command."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

from ragcli.cli import Terminated, main


def run() -> None:
    """Run the command line and end the process with its exit code. Once that is known, Ctrl-C changes it no more."""
    # numpy's BLAS would start its threads while it is imported: half of the time that takes, and nobody needs them
    os.putenv("OPENBLAS_NUM_THREADS", "1")
    signal.signal(signal.SIGTERM, _end)
    code = main()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    sys.exit(code)


def _end(*_: object) -> NoReturn:
    raise Terminated


if __name__ == "__main__":
    run()
