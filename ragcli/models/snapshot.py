"""Any model of the hub ("hub:ORG/NAME") as a folder of the cache, fetched once and kept as it was then.

What is not in the catalogue has no hash that is known beforehand: the repository's revision of the day is pinned, and
what comes is checked against the hash that the hub states: the SHA-256 of a big file, git's own of a small one. The
files come into a folder of that revision beside the cache, one process at a time (`room`); only when all of them are
there it gets its name, so a folder never holds files of two revisions. Only the files that `folder` reads are fetched,
by `hub`; of a BERT model the safetensors, which are converted here, else the ONNX file that the repository has.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ragcli.errors import ModelMissing, RagcliError, RemoteError, UsageError
from ragcli.models import hub
from ragcli.models.catalogue import CONFIG, TOKENIZER, WEIGHTS, File, Hub
from ragcli.models.folder import BESIDE, NETWORKS
from ragcli.models.place import ModelPlace
from ragcli.models.room import room
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
        hint = f"with a network: ragcli models pull hub:{name} (without --offline, RAGCLI_OFFLINE, HF_HUB_OFFLINE)"
        raise ModelMissing(f"model hub:{name} is not in {folder}, and offline is on", hint)
    listing = _listing(name, place)
    try:
        with room(f"hub/{folder.name}", place, shown=f"hub:{name}") as partial:
            if not (folder / DONE).is_file():  # else another process has brought it
                _fetch(name, listing, folder, partial, place)
            shutil.rmtree(partial, ignore_errors=True)
    except OSError as error:
        raise RagcliError(f"{error.filename or folder}: {error.strerror}", "check the models folder") from error
    return folder


def _fetch(name: str, listing: _Listing, folder: Path, partial: Path, place: ModelPlace) -> None:
    revision, listed = listing
    place.notify(f"fetching {name} (revision {revision[:8]}) from the model hub into {folder}")
    for other in set(partial.iterdir()) - {partial / revision}:
        shutil.rmtree(other, ignore_errors=True)
    whole = partial / revision
    source = Hub(name, revision)
    for file in _wanted(name, listed, _config_of(source, listed, whole, place)):
        _bring(source, file, whole, place)
    (whole / DONE).write_text(f"{revision}\n", encoding="ascii")
    folder.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(folder, ignore_errors=True)  # without its mark: it was never whole
    whole.rename(folder)


class _Listed(msgspec.Struct, frozen=True):
    """A file of the repository and the hashes that the hub states, "" where it does not."""

    name: str
    size: int
    sha256: str
    git: str  # of a small file, whose blob git has


_Listing = tuple[str, Mapping[str, _Listed]]  # the revision, and path -> file


def _listing(name: str, place: ModelPlace) -> _Listing:
    from httpx2 import HTTPError, InvalidURL
    from huggingface_hub import HfApi

    try:
        info = HfApi(endpoint=place.endpoint, library_name="ragcli").model_info(name, files_metadata=True)
    # a status is an HTTPError, "offline" an OSError; the others: an odd name, an answer that is not the hub's
    except (HTTPError, InvalidURL, OSError, ValueError, KeyError, TypeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise RemoteError(f"hub:{name}: {reason}", "is the name right, and can the hub be reached?") from error
    revision = str(info.sha)
    if not re.fullmatch(r"[0-9a-f]{40,64}", revision):
        raise RemoteError(f"hub:{name}: the hub states no revision", "is the address of the hub right?")
    files = {
        file.rfilename: _Listed(
            file.rfilename,
            file.size or 0,
            file.lfs.sha256 if file.lfs else "",
            "" if file.lfs else file.blob_id or "",  # of a big file, git has a pointer only
        )
        for file in info.siblings or ()
    }
    return revision, files


def _config_of(source: Hub, listed: Mapping[str, _Listed], folder: Path, place: ModelPlace) -> Mapping[str, object]:
    if CONFIG not in listed:
        return {}
    _bring(source, listed[CONFIG], folder, place)
    try:
        return msgspec.json.decode((folder / CONFIG).read_bytes(), type=dict[str, object])
    except msgspec.DecodeError as error:
        raise RemoteError(f"hub:{source.repository}: {CONFIG} is not the JSON that is expected: {error}") from error


def _wanted(name: str, listed: Mapping[str, _Listed], config: Mapping[str, object]) -> Iterator[_Listed]:
    networks = [path for path in NETWORKS if path in listed]
    if config.get("model_type") == "bert" and WEIGHTS in listed:
        chosen = [WEIGHTS]
    elif networks:
        chosen = [networks[0], *(networks[0] + ending for ending in BESIDE)]
    else:
        raise RemoteError(f"hub:{name} has no {' or '.join(NETWORKS)}, and is no BERT model with {WEIGHTS}")
    for path in (*SMALL, *chosen):
        if path in listed:
            yield listed[path]


def _bring(source: Hub, file: _Listed, folder: Path, place: ModelPlace) -> None:
    path = folder / file.name
    if path.is_file() and not _fault(file, path):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.touch()  # of a file without a byte, none comes
    wanted = File(file.name, file.size, file.sha256)
    hub.fetch(source, wanted, partial, place.endpoint, lambda *seen: place.listen(_event(*seen)))
    if fault := _fault(file, partial):
        partial.unlink()
        raise RemoteError(f"hub:{source.repository}: {file.name}: {fault}")
    partial.replace(path)


def _event(done: int, total: int, detail: str) -> Event:
    return Event("fetching", done, total, "bytes", detail)


def _fault(file: _Listed, path: Path) -> str:
    """What is wrong with these bytes; "" where they are what the hub states, and safe on disk."""
    size = path.stat().st_size
    if size != file.size:
        return f"{size:,} bytes, not {file.size:,}"
    with path.open("rb") as data:
        os.fsync(data.fileno())
        if file.sha256:
            found = hashlib.file_digest(data, "sha256").hexdigest()
            return "" if found == file.sha256 else f"SHA-256 is {found}, not {file.sha256}"
        found = hashlib.file_digest(data, lambda: _git_blob(size)).hexdigest()
    return "" if found == file.git or not file.git else f"git's hash is {found}, not {file.git}"


def _git_blob(size: int) -> hashlib._Hash:
    """Git hashes a blob with its kind and length before it (Pro Git, 10.2)."""
    return hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
