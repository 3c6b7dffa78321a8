"""Any model of the hub ("hub:ORG/NAME") as a folder of the cache, fetched once and kept as it was then.

What is not in the catalogue has no hash that is known beforehand: the repository's revision of the day is pinned, the
sizes are checked, and of big files the SHA-256 that the hub states. Only the files that `folder` reads are fetched, by
`hub`; of a BERT model the safetensors, which are converted here, else the ONNX file that the repository has.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ragcli.errors import ModelMissing, RagcliError, RemoteError, UsageError
from ragcli.models import hub
from ragcli.models.catalogue import CONFIG, TOKENIZER, WEIGHTS, File, Hub
from ragcli.models.folder import BESIDE, NETWORKS
from ragcli.models.place import ModelPlace
from ragcli.types import Event

DONE = ".revision"
SMALL = (
    CONFIG, TOKENIZER, "tokenizer_config.json", "modules.json", "1_Pooling/config.json", "sentence_bert_config.json",
    "config_sentence_transformers.json", "ragcli.json",
)  # fmt: skip


def snapshot(name: str, place: ModelPlace) -> Path:
    """The folder with the model `name` ("ORG/NAME") of the hub.

    Raises:
        UsageError: that is no such name.
        ModelMissing: it is not here, and `place.offline` forbids to fetch it.
        RemoteError: the hub can't be reached, has no such model, or has none that can be used.
    """
    organisation, slash, model = name.partition("/")
    parts = (organisation, model)
    if not slash or any(not part.strip(".") or set(part) & set("/\\: ") for part in parts):
        raise UsageError(f"hub:{name} names no model of the hub", "it is hub:ORGANISATION/NAME")
    folder = place.cache / "hub" / f"{organisation}--{model}"
    if (folder / DONE).is_file():
        return folder
    if place.offline:
        raise ModelMissing(f"model hub:{name} is not in {folder}, and offline is on", "run once without offline")
    _fetch(name, folder, place)
    return folder


def _fetch(name: str, folder: Path, place: ModelPlace) -> None:
    revision, listed = _listing(name, place)
    place.notify(f"fetching {name} (revision {revision[:8]}) from the model hub into {folder}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for file, digest in _wanted(name, listed, _config_of(name, revision, listed, folder, place)):
            _bring(Hub(name, revision), msgspec.structs.replace(file, sha256=digest), folder, place)
        (folder / DONE).write_text(f"{revision}\n", encoding="ascii")
    except OSError as error:
        raise RagcliError(f"{folder}: {error.strerror}", "check the models folder") from error


def _listing(name: str, place: ModelPlace) -> tuple[str, dict[str, File]]:
    """The revision, and path -> file; the SHA-256 is "" where the hub states none."""
    from huggingface_hub import HfApi

    try:
        info = HfApi(endpoint=place.endpoint, library_name="ragcli").model_info(name, files_metadata=True)
    except Exception as error:  # a class of its own for each status, and those of the HTTP client
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise RemoteError(f"hub:{name}: {reason}", "is the name right, and can the hub be reached?") from error
    files = {
        file.rfilename: File(file.rfilename, file.size or 0, file.lfs.sha256 if file.lfs else "")
        for file in info.siblings or ()
    }
    return str(info.sha), files


def _config_of(
    name: str, revision: str, listed: Mapping[str, File], folder: Path, place: ModelPlace
) -> Mapping[str, object]:
    if CONFIG not in listed:
        return {}
    _bring(Hub(name, revision), listed[CONFIG], folder, place)
    try:
        return msgspec.json.decode((folder / CONFIG).read_bytes(), type=dict[str, object])
    except msgspec.DecodeError as error:
        raise RemoteError(f"hub:{name}: {CONFIG} is not the JSON that is expected: {error}") from error


def _wanted(name: str, listed: Mapping[str, File], config: Mapping[str, object]) -> Iterator[tuple[File, str]]:
    networks = [path for path in NETWORKS if path in listed]
    if config.get("model_type") == "bert" and WEIGHTS in listed:
        chosen = [WEIGHTS]
    elif networks:
        chosen = [networks[0], *(networks[0] + ending for ending in BESIDE)]
    else:
        raise RemoteError(f"hub:{name} has no {' or '.join(NETWORKS)}, and is no BERT model with {WEIGHTS}")
    for path in (*SMALL, *chosen):
        if path in listed:
            yield listed[path], listed[path].sha256


def _bring(source: Hub, file: File, folder: Path, place: ModelPlace) -> None:
    path = folder / file.name
    if path.is_file() and path.stat().st_size == file.size:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    hub.fetch(source, file, partial, place.endpoint, lambda *seen: place.listen(_event(*seen)))
    _check(source, file, partial)
    partial.replace(path)


def _event(done: int, total: int, detail: str) -> Event:
    return Event("fetching", done, total, "bytes", detail)


def _check(source: Hub, file: File, partial: Path) -> None:
    with partial.open("rb") as data:
        found = hashlib.file_digest(data, "sha256").hexdigest()
    if file.sha256 and found != file.sha256:
        partial.unlink()
        raise RemoteError(f"hub:{source.repository}: {file.name}: SHA-256 is {found}, not {file.sha256}")
