"""The model hub over HTTP, with all that can go wrong: a server on the loopback interface that speaks `resolve`."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragcli.errors import RemoteError
from ragcli.models import download, pull
from ragcli.models.catalogue import Hub, Model, Web
from ragcli.models.place import ModelPlace
from tests.models.origin import REPOSITORY, REVISION, Origin, digest, hub_path, toy

DATA = bytes(range(251)) * 1000
NAME = "weights.bin"
PATH = hub_path(NAME)
TOY = toy({NAME: DATA}, Hub(REPOSITORY, REVISION))
ROOT = Path(__file__).parents[2]
# what a killed pull runs: the toy in a process of its own
PULL = """
import sys
from pathlib import Path
from ragcli.models import pull
from ragcli.models.place import ModelPlace
from tests.models.test_pull_hub import TOY
pull.model = lambda name: TOY
pull.ensure("toy", ModelPlace(Path(sys.argv[1]), endpoint=sys.argv[2]))
"""


@pytest.fixture
def origin() -> Iterator[Origin]:
    with Origin({PATH: DATA}) as running:
        yield running


@pytest.fixture
def place(tmp_path: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch) -> ModelPlace:
    sell(TOY, monkeypatch)
    return ModelPlace(tmp_path / "cache", endpoint=origin.address)


def sell(entry: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull, "model", lambda name: entry)


def refused(place: ModelPlace) -> str:
    """The one line that a pull which fails comes to."""
    with pytest.raises(RemoteError) as caught:
        pull.ensure("toy", place)
    assert "\n" not in caught.value.message
    assert "ragcli models pull toy" in caught.value.hint
    assert not (place.cache / "toy").exists()
    return caught.value.message


BEGIN = f"model toy can't be fetched: hub {REPOSITORY}: "


@pytest.mark.spec("M2")
def test_the_pinned_revision_is_asked_for(place: ModelPlace, origin: Origin) -> None:
    assert (pull.ensure("toy", place) / NAME).read_bytes() == DATA
    assert origin.seen == [(f"/toys/toy/resolve/{REVISION}/weights.bin", "")]


@pytest.mark.spec("M3")
def test_an_answer_that_breaks_off_is_gone_on_with(place: ModelPlace, origin: Origin) -> None:
    origin.faults[PATH] = ["cut 1000", "cut 50"]
    assert (pull.ensure("toy", place) / NAME).read_bytes() == DATA
    assert [asked for _, asked in origin.seen] == ["", "bytes=1000-", "bytes=1050-"]


@pytest.mark.spec("M3")
def test_one_that_always_breaks_off_is_an_error_and_the_next_pull_goes_on(place: ModelPlace, origin: Origin) -> None:
    origin.faults[PATH] = ["cut 1000", "cut 0"]
    assert "(1,000 of 251,000 bytes here)" in refused(place)
    origin.seen.clear()
    assert (pull.ensure("toy", place) / NAME).read_bytes() == DATA
    assert [asked for _, asked in origin.seen] == ["bytes=1000-"]


@pytest.mark.spec("M3")
def test_a_server_without_ranges_sends_all_of_it_again(place: ModelPlace, origin: Origin) -> None:
    origin.faults[PATH] = ["cut 1000", "whole"]
    assert (pull.ensure("toy", place) / NAME).read_bytes() == DATA


@pytest.mark.parametrize(
    ("status", "words"), [("404", "HTTP 404 Not Found"), ("500", "HTTP 500 Internal Server Error")]
)
def test_a_status_is_said(place: ModelPlace, origin: Origin, status: str, words: str) -> None:
    origin.faults[PATH] = [status]
    assert refused(place) == BEGIN + words


@pytest.mark.spec("M3")
@pytest.mark.parametrize("wrong", [DATA[::-1], b"short" * 50200])
def test_wrong_bytes_are_an_error_that_names_both_hashes(place: ModelPlace, origin: Origin, wrong: bytes) -> None:
    origin.files[PATH] = wrong
    assert refused(place) == f"{BEGIN}SHA-256 of {NAME} is {digest(wrong)}, not {digest(DATA)}"
    assert not list((place.cache / ".partial" / "toy").iterdir())


def test_more_bytes_than_promised_are_not_taken(place: ModelPlace, origin: Origin) -> None:
    origin.files[PATH] = DATA + b"more"
    assert refused(place) == f"{BEGIN}it is longer than 251,000 bytes"


@pytest.mark.spec("M2")
def test_a_host_that_says_nothing_costs_seconds(
    place: ModelPlace, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert download.CONNECT_SECONDS <= 5
    assert download.SILENCE_SECONDS <= 10
    monkeypatch.setattr(download, "SILENCE_SECONDS", 0.3)
    origin.faults[PATH] = ["hang 0"] * 3
    assert refused(place) == f"{BEGIN}no byte for 0 s"


@pytest.mark.spec("M2")
def test_a_closed_port_is_an_error(place: ModelPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    message = refused(ModelPlace(place.cache, endpoint=f"http://127.0.0.1:{port}"))
    assert message == f"{BEGIN}[Errno 111] Connection refused"


@pytest.mark.spec("M3")
def test_the_next_source_has_the_same_bytes(place: ModelPlace, origin: Origin, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hub gives wrong bytes, and breaks off: nothing of them gets into what the address gives."""
    sell(toy({NAME: DATA}, Hub(REPOSITORY, REVISION), Web(f"{origin.address}/plain")), monkeypatch)
    origin.files |= {PATH: DATA[::-1], "/plain": DATA}
    origin.faults[PATH] = ["cut 500", "cut 0"]
    assert (pull.ensure("toy", place) / NAME).read_bytes() == DATA


@pytest.mark.spec("M3")
def test_a_bad_beginning_from_an_earlier_pull_is_thrown_away(place: ModelPlace, origin: Origin) -> None:
    partial = place.cache / ".partial" / "toy" / NAME
    partial.parent.mkdir(parents=True)
    partial.write_bytes(b"bad" * 100)
    assert (pull.ensure("toy", place) / NAME).read_bytes() == DATA
    assert [asked for _, asked in origin.seen] == ["bytes=300-", ""]


@pytest.mark.spec("M3")
def test_a_killed_pull_leaves_nothing_half_and_is_gone_on_with(place: ModelPlace, origin: Origin) -> None:
    origin.faults[PATH] = ["hang 100000"]
    command = [sys.executable, "-c", PULL, str(place.cache), origin.address]
    with subprocess.Popen(command, cwd=ROOT) as process:
        assert origin.hanging.wait(30)
        partial = place.cache / ".partial" / "toy" / NAME
        while not (partial.exists() and partial.stat().st_size):
            assert process.poll() is None
        process.kill()
        assert process.wait(10) == -signal.SIGKILL
    assert not (place.cache / "toy").exists()
    origin.release.set()
    got = partial.stat().st_size
    assert 0 < got <= 100_000
    origin.seen.clear()
    assert (pull.ensure("toy", place) / NAME).read_bytes() == DATA
    assert [asked for _, asked in origin.seen] == [f"bytes={got}-"]


def test_a_proxy_that_can_not_be_used_is_an_error(
    place: ModelPlace, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    sell(toy({NAME: DATA}, Web(f"{origin.address}/plain")), monkeypatch)
    monkeypatch.setenv("ALL_PROXY", "gopher://127.0.0.1:1")
    with pytest.raises(RemoteError, match="gopher"):
        pull.ensure("toy", place)
