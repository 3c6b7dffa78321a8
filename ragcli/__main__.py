"""`python -m ragcli`, and the `ragcli` command."""

from __future__ import annotations

import sys

from ragcli.cli import main


def run() -> None:
    """Run the command line and end the process with its exit code."""
    sys.exit(main())


if __name__ == "__main__":
    run()
