"""G10: the help page of a tool of this kind took seconds, because it loaded every model library first."""

from __future__ import annotations

import subprocess
import sys
from time import perf_counter

BARE = "import typer\napp = typer.Typer()\n@app.command()\ndef main() -> None: ...\napp(['--help'])"
HELP = "from ragcli.__main__ import run; import sys; sys.argv = ['ragcli', '--help']; sys.exit(run())"


def seconds(script: str) -> float:
    start = perf_counter()
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return perf_counter() - start


def test_help_takes_less_than_300_ms() -> None:
    pairs = [(seconds(HELP), seconds(BARE)) for _ in range(7)]  # in turn: a busy machine slows both
    bare = min(bare for _, bare in pairs)
    # 50 ms where the limit is meant; a machine on which the barest app takes three times as long gets as much more
    assert min(ours for ours, _ in pairs) < 0.3 * max(1.0, bare / 0.15)
