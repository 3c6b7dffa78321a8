"""Model files on disk: cache, a folder of the user's, hashes, offline, notes, room, two pulls at once."""

from __future__ import annotations

import hashlib
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ragcli.chunk.measure import TokenizerSource
from ragcli.errors import ModelMissing, RagcliError, RemoteError
from ragcli.models import notes, pull
from ragcli.models.catalogue import Hub, Model
from ragcli.models.place import ModelPlace, model_place
from ragcli.options import ModelsSettings, Settings
from ragcli.types import Event
from tests.models.origin import REPOSITORY, REVISION, Origin, digest, hub_path, toy

WEIGHTS = bytes(range(256)) * 40
TOKENIZER = b'{"model": {}}'
CONTENTS = {"weights.bin": WEIGHTS, "tokenizer.json": TOKENIZER}
TOY = toy(CONTENTS, Hub(REPOSITORY, REVISION))


@pytest.fixture(autouse=True)
def catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    def entry(name: str) -> Model:
        return TOY

    monkeypatch.setattr(pull, "model", entry)


@pytest.fixture
def origin() -> Iterator[Origin]:
    with Origin({hub_path(name): data for name, data in CONTENTS.items()}) as running:
        yield running


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def place(tmp_path: Path, origin: Origin, said: list[str]) -> ModelPlace:
    return ModelPlace(tmp_path / "cache", notify=said.append, endpoint=origin.address)


def elsewhere(place: ModelPlace, **changes: object) -> ModelPlace:
    from msgspec.structs import replace

    return replace(place, **changes)


def fill(folder: Path, **changed: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in CONTENTS.items():
        (folder / name).write_bytes(changed.get(name.partition(".")[0], data))
    return folder


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


@pytest.mark.spec("M3")
def test_it_is_fetched_once_with_one_line(place: ModelPlace, origin: Origin, said: list[str]) -> None:
    folder = pull.ensure("toy", place)
    assert folder == place.cache / "toy"
    assert {name: (folder / name).read_bytes() for name in visible(folder)} == CONTENTS
    assert said == [f"fetching toy (embedder, 0.0 MB) into {folder}"]
    assert pull.ensure("toy", elsewhere(place, offline=True)) == folder
    assert len(said) == 1
    assert [path for path, _ in origin.seen] == [hub_path("weights.bin"), hub_path("tokenizer.json")]
    assert not (place.cache / ".partial" / "toy").exists()


@pytest.mark.spec("M3", "C5")
def test_progress_is_in_bytes_and_ends_with_all(place: ModelPlace) -> None:
    events: list[Event] = []
    pull.ensure("toy", elsewhere(place, listen=events.append))
    assert {(event.stage, event.unit) for event in events} == {("fetching", "bytes")}
    last = {event.detail: (event.done, event.total) for event in events}
    assert last == {f"toy: {name}": (len(data), len(data)) for name, data in CONTENTS.items()}


@pytest.mark.spec("M3")
def test_offline_names_the_command(place: ModelPlace, origin: Origin, said: list[str]) -> None:
    with pytest.raises(ModelMissing, match=r"model toy is not in .*toy, and offline is on") as caught:
        pull.ensure("toy", elsewhere(place, offline=True))
    assert "ragcli models pull toy" in caught.value.hint
    assert not place.cache.exists()
    assert not origin.seen
    assert not said


@pytest.mark.spec("M2")
@pytest.mark.parametrize("below", ["toy", ""])
@pytest.mark.parametrize("offline", [True, False])
def test_a_folder_is_looked_into_first(
    place: ModelPlace, origin: Origin, tmp_path: Path, below: str, offline: bool
) -> None:
    fill(tmp_path / "disk" / below)
    folder = pull.ensure("toy", elsewhere(place, folder=tmp_path / "disk", offline=offline))
    assert {name: (folder / name).read_bytes() for name in visible(folder)} == CONTENTS
    assert origin.seen == []


@pytest.mark.spec("M2", "M3")
def test_wrong_bytes_in_the_folder_are_named_with_both_hashes(place: ModelPlace, tmp_path: Path) -> None:
    disk = fill(tmp_path / "disk", tokenizer=b"other")
    with pytest.raises(ModelMissing) as caught:
        pull.ensure("toy", elsewhere(place, folder=disk, offline=True))
    message = f"folder {disk}: SHA-256 of tokenizer.json is {digest(b'other')}, not {digest(TOKENIZER)}"
    assert caught.value.message == f"{message}, and offline is on"
    assert visible(place.cache / "toy") == ["weights.bin"]


@pytest.mark.spec("M2")
def test_what_the_folder_lacks_comes_from_the_next_source(place: ModelPlace, origin: Origin, tmp_path: Path) -> None:
    disk = fill(tmp_path / "disk")
    (disk / "tokenizer.json").unlink()
    pull.ensure("toy", elsewhere(place, folder=disk))
    assert [path for path, _ in origin.seen] == [hub_path("tokenizer.json")]


@pytest.mark.spec("M3")
def test_a_file_that_was_checked_is_not_read_again(place: ModelPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    pull.ensure("toy", place)
    monkeypatch.setattr(hashlib, "file_digest", None)
    pull.ensure("toy", place)


@pytest.mark.spec("M3")
def test_files_that_somebody_else_put_there_are_checked_once(place: ModelPlace, origin: Origin) -> None:
    fill(place.cache / "toy")
    pull.ensure("toy", elsewhere(place, offline=True))
    assert (place.cache / "toy" / pull.NOTES).exists()
    assert origin.seen == []


@pytest.mark.spec("M3")
def test_a_damaged_file_is_told_and_fetched_again(place: ModelPlace, origin: Origin, said: list[str]) -> None:
    path = fill(place.cache / "toy", weights=WEIGHTS[:5]) / "weights.bin"
    damage = f"{path}: SHA-256 is {digest(WEIGHTS[:5])}, not {digest(WEIGHTS)}"
    with pytest.raises(ModelMissing) as caught:
        pull.ensure("toy", elsewhere(place, offline=True))
    assert caught.value.message == f"{damage}, and offline is on"
    pull.ensure("toy", place)
    assert path.read_bytes() == WEIGHTS
    assert said[0] == f"{damage}; fetching it again"
    assert [path for path, _ in origin.seen] == [hub_path("weights.bin")]


@pytest.mark.spec("M3")
def test_verify_finds_what_size_and_time_hide_and_the_next_pull_mends_it(place: ModelPlace) -> None:
    path = pull.ensure("toy", place) / "weights.bin"
    assert pull.verify("toy", place) == ()
    status = path.stat()
    path.write_bytes(WEIGHTS[::-1])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    pull.ensure("toy", elsewhere(place, offline=True))  # looks at size and time only
    assert [fault.path.name for fault in pull.verify("toy", place)] == ["weights.bin"]
    assert str(pull.verify("toy", place)[0]) == f"{path}: SHA-256 is {digest(WEIGHTS[::-1])}, not {digest(WEIGHTS)}"
    pull.ensure("toy", place)
    assert path.read_bytes() == WEIGHTS
    path.unlink()
    assert str(pull.verify("toy", place)[0]) == f"{path}: not here"


def test_verify_believes_no_note_where_none_can_be_replaced(place: ModelPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    path = pull.ensure("toy", place) / "weights.bin"
    status = path.stat()
    path.write_bytes(WEIGHTS[::-1])
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    monkeypatch.setattr(notes, "write", lambda path, value: None)  # as on a medium that can't be written
    assert [fault.path.name for fault in pull.verify("toy", place)] == ["weights.bin"]


def test_verify_of_what_is_not_here_makes_nothing(place: ModelPlace) -> None:
    assert {str(fault).rpartition(": ")[2] for fault in pull.verify("toy", place)} == {"not here"}
    assert not (place.cache / "toy").exists()


def test_states(place: ModelPlace) -> None:
    assert pull.state("toy", place) == "absent"
    folder = pull.ensure("toy", place)
    assert pull.state("toy", place) == "here"
    (folder / "tokenizer.json").write_bytes(b"")
    assert pull.state("toy", place) == "partly"


@pytest.mark.spec("M3", "C7")
def test_no_room_is_one_line_before_anything_is_fetched(
    place: ModelPlace, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(9, 9, 5))
    with pytest.raises(RagcliError, match=r"0\.0 MB are free, and model toy has 0\.0 MB") as caught:
        pull.ensure("toy", place)
    assert "RAGCLI_MODELS" in caught.value.hint
    assert origin.seen == []


@pytest.mark.spec("M3", "C7")
def test_a_disk_that_fills_up_leaves_nothing_under_a_name(place: ModelPlace, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RagcliError, match="No space left on device") as caught:
        pull.ensure("toy", place)
    assert not isinstance(caught.value, RemoteError)
    assert "RAGCLI_MODELS" in caught.value.hint
    assert not (place.cache / "toy").exists()


@pytest.mark.spec("M3", "C7")
def test_a_cache_that_is_no_folder_is_one_line(place: ModelPlace) -> None:
    place.cache.write_text("a file", encoding="utf-8")
    with pytest.raises(RagcliError) as caught:
        pull.ensure("toy", place)
    assert str(place.cache) in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.spec("M3")
def test_two_pulls_at_once_fetch_once(place: ModelPlace, origin: Origin, said: list[str]) -> None:
    origin.faults[hub_path("weights.bin")] = ["hang 100"]
    heard: list[str] = []
    waiting = threading.Event()

    def hear(line: str) -> None:
        heard.append(line)
        waiting.set()

    done: list[Path] = []

    def start(other: ModelPlace) -> threading.Thread:
        thread = threading.Thread(target=lambda: done.append(pull.ensure("toy", other)))
        thread.start()
        return thread

    first = start(place)
    assert origin.hanging.wait(10)
    second = start(elsewhere(place, notify=hear))
    assert waiting.wait(10)
    origin.release.set()
    first.join(20)
    second.join(20)
    assert done == [place.cache / "toy"] * 2
    assert heard == ["another process is fetching toy; waiting for it"]
    asked = [path for path, _ in origin.seen]
    assert asked.count(hub_path("tokenizer.json")) == 1


def test_a_place_from_settings_and_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RAGCLI_MODELS", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    place = model_place(Settings(models=ModelsSettings(folder="disk")))
    assert (place.cache, place.offline, place.folder) == (tmp_path, True, Path("disk"))
    assert not model_place(offline=False).offline


@pytest.mark.spec("M10")
def test_the_real_tokenizer(tokenizer: TokenizerSource) -> None:
    assert tokenizer().encode("hello world") == [15339, 1917]


@pytest.mark.spec("M2")
def test_a_real_model_of_the_package_index(
    pulled: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.undo()
    from ragcli.models.catalogue import model

    folder = pulled("splade-tiny")
    for file in model("splade-tiny").files:
        assert digest((folder / file.name).read_bytes()) == file.sha256
