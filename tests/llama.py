"""A real language model behind a real server of chat completions on 127.0.0.1: llama.cpp's, by xllamacpp.

It runs in a process of its own, with the catalogue's smallest model, and ends when its standard input does.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

MOST_TOKENS = 48  # of any reply: on a slow machine that is two seconds

# what is said on standard output by the server itself goes to standard error
SCRIPT = """
import os, sys
told = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
import xllamacpp
params = xllamacpp.CommonParams()
params.model.path = sys.argv[1]
params.n_predict = int(sys.argv[2])
params.n_ctx = 2048
params.n_parallel = 1
params.port = 0
server = xllamacpp.Server(params)
print(server.listening_address, file=told, flush=True)
sys.stdin.read()
os._exit(0)
"""


class Llama(msgspec.Struct, frozen=True):
    """A server that is up: what `chat.base_url` and `chat.model` take."""

    url: str
    model: str


@contextmanager
def serving(file: Path, model: str, log: Path) -> Iterator[Llama]:
    """A server of the model in `file`, on a free port. Raises: RuntimeError: it does not come up."""
    command = [sys.executable, "-c", SCRIPT, str(file), str(MOST_TOKENS)]
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()  # "" where it ended
            if not address:
                raise RuntimeError(f"no server: {log.read_text(errors='replace')[-2000:]}")
            yield Llama(url=f"{address}/v1", model=model)
        finally:
            process.kill()
