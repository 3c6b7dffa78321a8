"""What a model's folder says about itself: which file is the network, how token vectors become one, how much it takes.

Read are our own `ragcli.json`, which wins, and the files that sentence-transformers writes: `modules.json`,
`1_Pooling/config.json`, `sentence_bert_config.json`, `config_sentence_transformers.json`, and the model's own
`config.json`. What can't be honoured (another pooling, a layer after it) is refused: its vectors would be wrong without
a word.
Opens no network.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Mapping
from io import BufferedReader
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import Any

import msgspec

from ragcli.errors import RagcliError, UsageError
from ragcli.models import notes
from ragcli.models.catalogue import CONFIG, TOKENIZER, WEIGHTS
from ragcli.options import Pooling

CARD = "ragcli.json"
NETWORKS = ("model.onnx", "onnx/model.onnx")
BESIDE = ("_data", ".data")  # where a network of more than 2 GB mostly has its tensors
NOTES = "hashes.json"
MOST = 2**20  # of a dimension and of a window, as the settings have it
LEAST_WINDOW = 3  # one token between two special ones
SETTLED = 2.0  # seconds: a file that changed just now may change again without its time telling


class FolderCard(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`ragcli.json`: what to know of an embedder; None is looked up in the other files.

    `dimension`: numbers in a vector. `max_tokens`: the window, special tokens included.
    """

    dimension: int | None = None
    pooling: Pooling | None = None
    max_tokens: int | None = None
    query_prefix: str | None = None
    passage_prefix: str | None = None


class ModelFolder(msgspec.Struct, frozen=True):
    """A folder with a network and its tokenizer. `network` is None where it has to be converted from safetensors.

    `positions`: the most tokens that its positions allow; 0 = not known. `card` is complete but for the dimension.
    """

    path: Path
    network: Path | None
    card: FolderCard
    positions: int

    @property
    def files(self) -> tuple[Path, ...]:
        """What the vectors depend on, besides the card and what `network` names in turn (`hashes`)."""
        if self.network is None:
            return self.path / WEIGHTS, self.path / CONFIG, self.path / TOKENIZER
        return self.network, self.path / TOKENIZER


def read_folder(path: Path) -> ModelFolder:
    """What is in the folder.

    Raises:
        UsageError: it is no folder of a model.
        RagcliError: a file of it is wrong, or it has something that can't be honoured.
    """
    if not path.is_dir():
        raise UsageError(f"{path}: no such folder", "models.embedder is a folder with model.onnx and tokenizer.json")
    if not (path / TOKENIZER).is_file():
        raise UsageError(f"{path}: no {TOKENIZER} in it", "a model needs the file that the tokenizers library writes")
    config = _json(path / CONFIG)
    positions = _positions(config)
    return ModelFolder(path, _network(path), _card(path, config, positions), positions)


def positions_of(path: Path) -> int:
    """The most tokens that the positions of the model in this folder allow; 0 = not known."""
    return _positions(_json(path / CONFIG))


def _network(path: Path) -> Path | None:
    for name in NETWORKS:
        if (path / name).is_file():
            return path / name
    if (path / WEIGHTS).is_file() and (path / CONFIG).is_file():
        return None
    raise UsageError(f"{path}: no network in it", f"it needs {NETWORKS[0]}, or {WEIGHTS} and {CONFIG} of a BERT model")


def _card(path: Path, config: Mapping[str, Any], positions: int) -> FolderCard:
    try:
        own = msgspec.json.decode((path / CARD).read_bytes(), type=FolderCard)
    except FileNotFoundError:
        own = FolderCard()
    except (OSError, msgspec.DecodeError) as error:
        known = ", ".join(FolderCard.__struct_fields__)
        raise RagcliError(f"{path / CARD}: {error}", f"it is a JSON object, its keys are {known}") from error
    _check_range(path / CARD, "dimension", own.dimension, 1, MOST)
    _check_range(path / CARD, "max_tokens", own.max_tokens, LEAST_WINDOW, positions or MOST)
    query, passage = _prompts(path)
    found = FolderCard(
        dimension=_number(config, "hidden_size") or _number(config, "dim"),
        pooling=own.pooling or _pooling(path),
        max_tokens=_window(path, positions),
        query_prefix=query,
        passage_prefix=passage,
    )
    given = {name: value for name, value in msgspec.structs.asdict(own).items() if value is not None}
    return msgspec.structs.replace(found, **given)


def _check_range(path: Path, name: str, value: int | None, least: int, most: int) -> None:
    if value is not None and not least <= value <= most:
        raise RagcliError(f"{path}: {name} = {value} is out of range: {least} to {most}", "correct the file")


def _window(path: Path, positions: int) -> int:
    said = _number(_json(path / "sentence_bert_config.json"), "max_seq_length")
    limit = said or _number(_json(path / "tokenizer_config.json"), "model_max_length") or positions or 512
    return min(limit, positions or limit, 2**20)


def _positions(config: Mapping[str, Any]) -> int:
    """RoBERTa and its kin number positions from the padding token's id plus 1."""
    most = _number(config, "max_position_embeddings") or 0
    offset = (_number(config, "pad_token_id") or 0) + 1 if "roberta" in str(config.get("model_type")) else 0
    return max(most - offset, 0)


def _pooling(path: Path) -> Pooling:
    """As `modules.json` and the pooling's config say; the mean where nothing does."""
    modules = _json(path / "modules.json", list)
    kinds = {str(module.get("type", "")).rsplit(".", 1)[-1]: module for module in modules if isinstance(module, dict)}
    extra = set(kinds) - {"Transformer", "Pooling", "Normalize"}
    if extra:
        raise RagcliError(f"{path}: its vectors go through {', '.join(sorted(extra))}, which is not supported")
    where = path / str(kinds.get("Pooling", {}).get("path", "1_Pooling")) / CONFIG
    said = _json(where)
    modes = [name.removeprefix("pooling_mode_") for name, value in said.items() if value is True and "_mode_" in name]
    mode = modes or [str(said.get("pooling_mode", "mean"))]
    known: dict[str, Pooling] = {"mean_tokens": "mean", "mean": "mean", "cls_token": "cls", "cls": "cls"}
    if len(mode) != 1 or mode[0] not in known:
        raise RagcliError(f"{where}: pooling {' and '.join(mode)} is not supported", "only the mean, or the CLS token")
    return known[mode[0]]


def _prompts(path: Path) -> tuple[str, str]:
    """What sentence-transformers puts before queries and passages."""
    prompts = _json(path / "config_sentence_transformers.json").get("prompts")
    prompts = prompts if isinstance(prompts, dict) else {}
    passages = (prompts.get(name) for name in ("passage", "document"))
    return str(prompts.get("query") or ""), str(next(filter(None, passages), ""))


def _number(values: Mapping[str, Any], name: str) -> int | None:
    value = values.get(name)
    return value if isinstance(value, int) and 0 < value < 2**31 else None


def _json(path: Path, kind: type = dict) -> Any:
    """What the file holds; nothing where there is none. Raises: RagcliError: it is no JSON of this kind."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (FileNotFoundError, NotADirectoryError):
        return kind()
    except OSError as error:
        raise RagcliError(f"{path}: {error.strerror}") from error
    except msgspec.DecodeError as error:
        raise RagcliError(f"{path}: not the JSON that is expected: {error}") from error


# --- hashes of big files, remembered


class _Note(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was when it was hashed; `beside`: the files that an ONNX network has its tensors in."""

    size: int
    mtime_ns: int
    inode: int
    sha256: str
    beside: tuple[str, ...]


def hashes(folder: ModelFolder, cache: Path) -> list[str]:
    """The SHA-256 of each of the folder's files, then of those in which its network has tensors.

    A file with the same size, time and inode as last time has the hash of last time.
    Raises: RagcliError: a file can't be read.
    """
    known = notes.read(cache / NOTES, dict[str, _Note]) or {}
    fresh = dict(known)
    try:
        found = [_noted(path.absolute(), fresh) for path in folder.files]
        beside = {path.parent / name for path, note in zip(folder.files, found, strict=True) for name in note.beside}
        there = [path for path in sorted(beside - set(folder.files)) if os.path.isfile(path)]  # noqa: PTH113 - any name
        found += [_noted(path.absolute(), fresh) for path in there]
    except OSError as error:
        raise RagcliError(f"{error.filename}: {error.strerror}", "check the model's folder") from error
    if fresh != known:
        notes.write(cache / NOTES, fresh)
    return [note.sha256 for note in found]


def _noted(path: Path, known: dict[str, _Note]) -> _Note:
    status = path.stat()
    state = (status.st_size, status.st_mtime_ns, status.st_ino)
    note = known.get(str(path))
    if note is not None and (note.size, note.mtime_ns, note.inode) == state:
        return note
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        note = _Note(*state, digest, _external_data(file) if path.suffix == ".onnx" else ())
    known.pop(str(path), None)
    if time.time() - status.st_mtime > SETTLED:
        known[str(path)] = note
    return note


def _external_data(file: BufferedReader) -> tuple[str, ...]:
    """The files in which a network's tensors lie, as it names them: relative to its folder.

    A tensor's `external_data` has an entry of key "location" (onnx.proto). The bytes of that are looked for as they
    are, without parsing it, which would have all of its weights in memory; they may stand elsewhere too, so a name
    that is returned need not be that of a file.
    """
    if not os.fstat(file.fileno()).st_size:
        return ()
    names = set()
    with mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        for match in _LOCATION.finditer(data):
            low, high = data[match.end() : match.end() + 2].ljust(2, b"\0")  # the length, 7 bits a byte
            start, length = (match.end() + 1, low) if low < 128 else (match.end() + 2, low - 128 + 128 * high)
            names.add(data[start : start + length])
    return tuple(sorted(name.decode("utf-8", "replace") for name in names))


_LOCATION = re.compile(rb"\x0a\x08location\x12")
