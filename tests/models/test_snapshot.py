"""Models of the hub that are in no catalogue: a server on the loopback interface that lists and serves a repository."""

from __future__ import annotations

import hashlib
import json
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


def served(folder: Path, **wrong: str) -> Origin:
    """An origin with the folder's files as a repository; `wrong`: a SHA-256 to state of every big file."""
    files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    files["README.md"] = b"not asked for"
    siblings = []
    for name, data in files.items():
        entry: dict[str, object] = {"rfilename": name, "size": len(data)}
        if name.endswith((".safetensors", ".onnx")):
            digest = wrong.get("sha256", hashlib.sha256(data).hexdigest())
            entry["lfs"] = {"size": len(data), "sha256": digest, "pointerSize": 130}
        siblings.append(entry)
    listing = {"_id": "1", "id": REPOSITORY, "sha": REVISION, "siblings": siblings}
    return Origin({LISTING: json.dumps(listing).encode(), **{hub_path(name): data for name, data in files.items()}})


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
