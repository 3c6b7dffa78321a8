"""Models of the hub that are in no catalogue: a server on the loopback interface that lists and serves a repository."""

from __future__ import annotations

import hashlib
import json
import threading
from pathlib import Path

import numpy as np
import pytest

from ragcli.errors import ModelMissing, RemoteError
from ragcli.models.embedder import open_embedder
from ragcli.models.place import ModelPlace
from ragcli.models.snapshot import snapshot
from ragcli.options import ModelsSettings, Settings
from tests.models.origin import REPOSITORY, REVISION, Origin, hub_path
from tests.models.test_transformer import as_onnx, mean_of
from tests.models.toy_bert import reference, tensors, tokens, write_folder

LISTING = f"/api/models/{REPOSITORY}?blobs=true"


BIG = (".safetensors", ".onnx")
OTHER = "fedcba9876543210fedcba9876543210fedcba98"


def served(folder: Path, *, revision: str = REVISION, big: tuple[str, ...] = BIG, sha256: str = "") -> Origin:
    """An origin with the folder's files as a repository; `sha256`: what it states of every big file, wrongly."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    files["README.md"] = b"not asked for"
    siblings = []
    for name, data in files.items():
        blob = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        entry: dict[str, object] = {"rfilename": name, "size": len(data), "blobId": blob}
        if name.endswith(big):
            digest = sha256 or hashlib.sha256(data).hexdigest()
            entry["blobId"] = "0" * 40  # that of the pointer, which nobody sees
            entry["lfs"] = {"size": len(data), "sha256": digest, "pointerSize": 130}
        siblings.append(entry)
    listing = {"_id": "1", "id": REPOSITORY, "sha": revision, "siblings": siblings}
    served_files = {hub_path(name, revision): data for name, data in files.items()}
    return Origin({LISTING: json.dumps(listing).encode(), **served_files})


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}


@pytest.mark.spec("M5")
@pytest.mark.parametrize("kind", ["checkpoint", "onnx"])
def test_a_hub_id_is_fetched_once_and_then_opened_offline(tmp_path: Path, kind: str) -> None:
    folder = (write_folder if kind == "checkpoint" else as_onnx)(tmp_path / "toy")
    settings = Settings(models=ModelsSettings(embedder=f"hub:{REPOSITORY}", precision="fp32"))
    lines: list[str] = []
    with served(folder) as origin:
        place = ModelPlace(tmp_path / "cache", endpoint=origin.address, notify=lines.append)
        card = open_embedder(settings, place).card
        asked = {path for path, _ in origin.seen}
    assert lines[0].startswith(f"fetching {REPOSITORY} (revision {REVISION[:8]}) from the model hub into ")
    assert hub_path("README.md") not in asked
    assert (hub_path("model.safetensors") in asked) == (kind == "checkpoint")
    again = open_embedder(settings, ModelPlace(tmp_path / "cache", offline=True))
    assert again.card == card
    np.testing.assert_allclose(again.query("a b c"), mean_of(reference(tensors()), [tokens("a b c")]), atol=1e-5)


@pytest.mark.spec("M5")
def test_what_the_hub_can_not_give(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy")
    cache = tmp_path / "cache"
    with served(folder, sha256="0" * 64) as origin:
        place = ModelPlace(cache, endpoint=origin.address)
        with pytest.raises(RemoteError, match=r"model\.safetensors: SHA-256 is [0-9a-f]{64}, not 0{64}"):
            snapshot(REPOSITORY, place)
        with pytest.raises(RemoteError, match="hub:toys/other"):
            snapshot("toys/other", place)
    (folder / "model.safetensors").unlink()
    with served(folder) as origin, pytest.raises(RemoteError, match=r"has no model\.onnx or onnx/model\.onnx"):
        snapshot(REPOSITORY, ModelPlace(cache, endpoint=origin.address))
    with pytest.raises(ModelMissing, match="offline is on"):
        snapshot(REPOSITORY, ModelPlace(cache, offline=True))


@pytest.mark.spec("M5")
@pytest.mark.parametrize("big", [BIG, (*BIG, "tokenizer.json")])
def test_what_an_earlier_try_left_is_checked(tmp_path: Path, big: tuple[str, ...]) -> None:
    """By the hash that the hub states: SHA-256 of a big file, git's of a small one."""
    folder = write_folder(tmp_path / "toy")
    cache = tmp_path / "cache"
    with served(folder, big=big) as origin:
        place = ModelPlace(cache, endpoint=origin.address)
        origin.faults[hub_path("model.safetensors")] = ["404"]
        with pytest.raises(RemoteError, match="HTTP 404"):
            snapshot(REPOSITORY, place)
        assert not (cache / "hub" / "toys--toy").exists()
        (left,) = cache.rglob("tokenizer.json")
        left.write_bytes(bytes(left.stat().st_size))
        origin.seen.clear()
        assert contents(snapshot(REPOSITORY, place)) == contents(folder)
        asked = [path for path, _ in origin.seen]
        assert hub_path("config.json") not in asked
    assert not list((cache / ".partial" / "hub").glob("*/"))


@pytest.mark.spec("M5")
def test_wrong_bytes_of_a_small_file_are_told(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy")
    with served(folder) as origin:
        origin.files[hub_path("tokenizer.json")] = bytes((folder / "tokenizer.json").stat().st_size)
        with pytest.raises(RemoteError, match=r"tokenizer\.json: git's hash is [0-9a-f]{40}, not [0-9a-f]{40}"):
            snapshot(REPOSITORY, ModelPlace(tmp_path / "cache", endpoint=origin.address))


@pytest.mark.spec("M5")
def test_a_repository_that_moved_between_two_tries_gives_one_revision(tmp_path: Path) -> None:
    first, second = write_folder(tmp_path / "first"), write_folder(tmp_path / "second", tensors(seed=1))
    tokenizer = (first / "tokenizer.json").read_bytes()
    (second / "tokenizer.json").write_bytes(tokenizer.replace(b"three", b"seven"))  # as long as before
    cache = tmp_path / "cache"
    with served(first) as origin:
        origin.faults[hub_path("model.safetensors")] = ["cut 100", "404"]
        with pytest.raises(RemoteError, match="HTTP 404"):
            snapshot(REPOSITORY, ModelPlace(cache, endpoint=origin.address))
    with served(second, revision=OTHER) as origin:
        found = snapshot(REPOSITORY, ModelPlace(cache, endpoint=origin.address))
        assert {asked for _, asked in origin.seen} == {""}
    assert contents(found) == contents(second)
    assert (found / ".revision").read_text() == f"{OTHER}\n"
    assert not list((cache / ".partial" / "hub").glob("*/"))


@pytest.mark.spec("M5")
def test_two_at_once_fetch_once(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy")
    waiting = threading.Event()
    heard: list[str] = []
    found: list[Path] = []

    def hear(line: str) -> None:
        heard.append(line)
        waiting.set()

    with served(folder) as origin:
        origin.faults[hub_path("tokenizer.json")] = ["hang 100"]
        place = ModelPlace(tmp_path / "cache", endpoint=origin.address)

        def start(place: ModelPlace) -> threading.Thread:
            thread = threading.Thread(target=lambda: found.append(snapshot(REPOSITORY, place)))
            thread.start()
            return thread

        first = start(place)
        assert origin.hanging.wait(10)
        second = start(ModelPlace(place.cache, endpoint=origin.address, notify=hear))
        assert waiting.wait(10)
        origin.release.set()
        first.join(20)
        second.join(20)
        asked = [path for path, _ in origin.seen]
    assert heard == [f"another process is fetching hub:{REPOSITORY}; waiting for it"]
    assert found == [place.cache / "hub" / "toys--toy"] * 2
    assert asked.count(hub_path("config.json")) == asked.count(hub_path("model.safetensors")) == 1
