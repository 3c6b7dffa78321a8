from __future__ import annotations

import io
import os
import tempfile
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ragcli.errors import NotReadable, NotSupported
from ragcli.read import load
from ragcli.types import Problem, ReadRequest, Source

NOBODY = 65534


def source(name: str, location: str) -> Source:
    return Source(root="/r", relative=name, location=location, size=0, mtime_ns=0)


@contextmanager
def without_privileges() -> Iterator[None]:
    """Runs as nobody where the tests run as root, whom no permission stops."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.spec("I5")
def test_a_file_without_permission_is_named_with_its_errno() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = Path(folder, "secret.md")
        path.write_text("x")
        path.chmod(0)
        with without_privileges(), pytest.raises(NotReadable) as caught:
            list(load.requests(source("secret.md", str(path)), max_bytes=100))
    assert str(path) in caught.value.message
    assert "errno 13" in caught.value.message
    assert caught.value.kind == "unreadable"


@pytest.mark.spec("I5")
def test_a_file_that_vanished_is_its_own_kind(tmp_path: Path) -> None:
    with pytest.raises(NotReadable) as caught:
        list(load.requests(source("a.md", str(tmp_path / "a.md.tmp.1")), max_bytes=100))
    assert caught.value.kind == "vanished"


@pytest.mark.spec("I39")
def test_reading_a_small_file_takes_no_more_memory_than_it_has(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"the gauge\n")
    tracemalloc.start()
    (request,) = load.requests(replace(source("a.md", str(path)), size=10), max_bytes=2**26)
    highest = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(request, ReadRequest)
    assert request.data == b"the gauge\n"
    assert highest < 2**20


@pytest.mark.spec("I2")
@pytest.mark.parametrize("size", [-1, 0, 3, 10, 500])
def test_a_file_is_read_whole_whatever_size_it_had(tmp_path: Path, size: int) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(b"the gauge\n")
    (request,) = load.requests(replace(source("a.md", str(path)), size=size), max_bytes=10)
    assert isinstance(request, ReadRequest)
    assert request.data == b"the gauge\n"
    with pytest.raises(NotSupported):
        list(load.requests(replace(source("a.md", str(path)), size=size), max_bytes=9))


@pytest.mark.spec("I2")
def test_a_file_that_grew_over_the_limit_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"x" * 11)
    with pytest.raises(NotSupported, match="max_file_bytes = 10"):
        list(load.requests(source("a.md", str(tmp_path / "a.md")), max_bytes=10))


@pytest.mark.spec("I1")
def test_standard_input_is_read_from_the_stream_and_left_open() -> None:
    stream = io.BytesIO(b"text")
    (request,) = load.requests(source("notes.md", "-"), max_bytes=100, stdin=stream)
    assert isinstance(request, ReadRequest)
    assert request.data == b"text"
    assert not stream.closed


@pytest.mark.spec("I39")
@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 30), max_size=12),
    st.booleans(),
    st.integers(1, 40),
    st.integers(1, 25),
)
def test_runs_hold_every_line_once_on_its_number(lengths: list[int], ended: bool, run: int, limit: int) -> None:
    """A plain loop over the lines is the reference: each is within the limit or a problem, at its place."""
    lines = [bytes([97 + index]) * length for index, length in enumerate(lengths)]
    data = b"\n".join(lines) + b"\n" * ended
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load, "RUN", run)
        found = list(load.requests(source("c.jsonl", "-"), max_bytes=limit, stdin=io.BytesIO(data)))
    read: dict[int, bytes] = {}
    for item in found:
        if isinstance(item, ReadRequest):
            for number, line in enumerate(item.data.split(b"\n"), item.first_line):
                if line:
                    assert number not in read
                    read[number] = line
    assert read == {number: line for number, line in enumerate(lines, 1) if 0 < len(line) <= limit}
    over = [item.reason.split(":")[0] for item in found if isinstance(item, Problem)]
    assert over == [f"line {number}" for number, line in enumerate(lines, 1) if len(line) > limit]


@pytest.mark.spec("I3")
def test_a_collection_in_a_wide_encoding_comes_whole_within_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_bytes(('{"_id": "1", "text": "x"}\n' * 200_000).encode("utf-16"))
    size = path.stat().st_size
    collection = replace(source("c.jsonl", str(path)), size=size)
    (request,) = load.requests(collection, max_bytes=size)
    assert isinstance(request, ReadRequest)
    assert request.data == path.read_bytes()
    with pytest.raises(NotSupported, match="max_file_bytes"):
        list(load.requests(collection, max_bytes=size - 1))
