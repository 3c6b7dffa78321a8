"""F13: line ranges were missing or wrong with overlap. `sed -n 'a,bp' file` prints the chunk."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from ragcli.chunk import chunker
from ragcli.chunk.annotate import chunk
from ragcli.options import ChunkingSettings
from ragcli.types import Chunk
from tests.read.sources import one

LINES = ["---", "title: Gauge", "tags: [a]", "---", "", "# Head", ""]
LINES += [f"\tStep {number} \t of the procedure, with a tab and some words to fill it." for number in range(60)]
LINES += ["", "## Tail", "", "The end."]


def chunks_of(data: bytes, strategy: str) -> list[Chunk]:
    settings = ChunkingSettings(strategy=strategy, size=400, overlap=150)
    return chunk(one("a.md", data), chunker(settings), context_header=True)


@pytest.mark.spec("I15")
@pytest.mark.parametrize("strategy", ["recursive", "markdown", "fixed"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_sed_prints_the_chunk(tmp_path: Path, strategy: str, newline: str) -> None:
    data = newline.join(LINES).encode()
    path = tmp_path / "a.md"
    path.write_bytes(data)
    chunks = chunks_of(data, strategy)
    assert len(chunks) > 5
    whole = 0
    for found in chunks:
        span = f"{found.start_line},{found.end_line}p"
        printed = subprocess.run(["sed", "-n", span, str(path)], capture_output=True, check=True).stdout.decode()
        first, last = printed.split("\n")[0], printed.rstrip("\n").split("\n")[-1]
        assert found.text in printed
        assert found.text.split("\n")[0] in first + "\n"
        assert found.text.rstrip("\n").split("\n")[-1] in last
        whole += printed.strip() == found.text.strip()
    if strategy != "fixed":  # which cuts within lines
        assert whole == len(chunks)


@pytest.mark.spec("I15")
def test_neighbours_share_lines() -> None:
    chunks = chunks_of("\n".join(LINES).encode(), "recursive")
    shared = [before.end_line - after.start_line + 1 for before, after in pairwise(chunks)]
    assert max(shared) >= 2
