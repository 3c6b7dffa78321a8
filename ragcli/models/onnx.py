"""ONNX networks: sessions, how they are run, and the files that are converted for them. The owner of `onnxruntime`.

A text is run alone, in one thread, and several are run at once by as many threads (a run releases Python's lock). A
dynamically quantised network has one scale for a whole input, and padding changes the order in which numbers are added:
in a batch, a text's vector would depend on its neighbours. Alone it is as fast as in padded batches, or faster.

Converted files are kept in the cache, named by the hash of what they were made of, and written atomically; those of
another version of the exporter go when the new one is there. Beside each lies a note of its size and its SHA-256: one
without a note, or of another size, is made anew when it is asked for; `damaged` hashes them.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from ragcli.errors import RagcliError
from ragcli.models import notes

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np
    import onnxruntime
    from numpy.typing import NDArray

    from ragcli.models.bert import Head
    from ragcli.options import Precision

CONVERTED = "converted"  # the cache's folder of what was made from folders of the user's
NOTE = ".sha256"  # after the name of a converted file
T = TypeVar("T")
R = TypeVar("R")
EXPORTER = "2"  # grows whenever `bert` makes other numbers of the same weights: part of every fingerprint
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_TYPES = {"tensor(int64)": "int64", "tensor(int32)": "int32"}


class Network:
    """An open ONNX network over token ids. May be used by several threads.

    `is_final`: it was written by `bert`, and optimising it would make it slower to load and to run.
    """

    def __init__(self, path: Path, *, threads: int = 1, is_final: bool = False) -> None:
        self._path = path
        self._threads = threads
        self._session = _session(path, is_final=is_final)
        self._inputs = self._known_inputs()
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def _known_inputs(self) -> dict[str, str]:
        found = {given.name: _TYPES.get(given.type, "") for given in self._session.get_inputs()}
        unknown = [name for name, kind in found.items() if name not in INPUTS or not kind]
        if unknown or INPUTS[0] not in found:
            names = ", ".join(unknown) or f"no {INPUTS[0]}"
            raise RagcliError(f"{self._path}: its inputs can't be served: {names}", f"known: {', '.join(INPUTS)}")
        return found

    def output(self, dimensions: int) -> str:
        """The name of its first output with so many dimensions.

        Raises: RagcliError: there is none.
        """
        outputs = self._session.get_outputs()
        for output in outputs:
            if len(output.shape) == dimensions:
                return str(output.name)
        shapes = ", ".join(f"{output.name} {output.shape}" for output in outputs)
        raise RagcliError(f"{self._path}: no output has {dimensions} dimensions, only {shapes}")

    def width(self, output: str) -> int | None:
        """The last dimension of this output; None where the file leaves it open."""
        shape = next(found.shape for found in self._session.get_outputs() if found.name == output)
        return shape[-1] if isinstance(shape[-1], int) else None

    def run(self, output: str, tokens: Sequence[int], types: Sequence[int] | None = None) -> NDArray[np.float32]:
        """The output for one text, its first dimension 1. `types`: the token types, zeros where there are none.

        Raises: RagcliError: the network fails on it.
        """
        import numpy as np

        values = {
            "input_ids": tokens,
            "attention_mask": np.ones(len(tokens)),
            "token_type_ids": np.zeros(len(tokens)) if types is None else types,
        }
        feed = {name: np.asarray([values[name]], kind) for name, kind in self._inputs.items()}
        try:
            found: NDArray[np.float32] = self._session.run([output], feed)[0]
            return found
        except _failures() as error:
            raise RagcliError(f"{self._path}: {_first_line(error)} ({len(tokens)} tokens)") from error

    def each(self, work: Callable[[T], R], items: Sequence[T]) -> Iterator[R]:
        """`work`, which calls `run`, on each of the items, by all threads; results in the order of the items."""
        if self._threads == 1 or len(items) <= 1:
            return map(work, items)
        from concurrent.futures import ThreadPoolExecutor  # 4 ms, which a query shall not pay

        with self._lock:
            self._pool = self._pool or ThreadPoolExecutor(self._threads, "onnx")
        return self._pool.map(work, items)

    def close(self) -> None:
        """Ends its threads."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


def _session(path: Path, *, is_final: bool) -> onnxruntime.InferenceSession:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4  # what matters is raised
    if is_final:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except _failures() as error:
        raise RagcliError(f"{path}: no network that onnxruntime can open: {_first_line(error)}") from error


def _failures() -> tuple[type[Exception], ...]:
    """What onnxruntime raises: a class for each of its error codes, which share no base of their own."""
    from onnxruntime.capi import onnxruntime_pybind11_state as codes

    known = [one for one in vars(codes).values() if isinstance(one, type) and issubclass(one, Exception)]
    return (*known, RuntimeError)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Note(msgspec.Struct, frozen=True):
    """A converted file as it was written."""

    size: int
    sha256: str


class Damaged(msgspec.Struct, frozen=True):
    """A converted file whose SHA-256, `found`, is not the one that was noted when it was written, `wanted`."""

    path: Path
    found: str
    wanted: str


def converted(
    folder: Path,
    identity: Sequence[str],
    into: Path,
    precision: Precision,
    *,
    notify: Callable[[str], None],
    head: Head = "encoder",
) -> Path:
    """The ONNX file made of the BERT model in `folder`; made now if it is not whole in the folder `into`.

    `identity`: the hashes of the files it is made of. `notify` gets a line before it is made, which takes a second or
    two.
    Raises: RagcliError: the folder has no such model, or the file can't be written.
    """
    digest = sha256("\n".join(identity).encode()).hexdigest()[:16]
    path = into / f"{head}-{precision}-{EXPORTER}-{digest}.onnx"
    if not _has_its_size(path):
        from ragcli.models.bert import export

        notify(f"converting {folder} to ONNX ({precision}), once")
        data = export(folder, head=head, precision=precision)
        try:
            notes.replace(_note_path(path), msgspec.json.encode(_Note(len(data), sha256(data).hexdigest())))
            notes.replace(path, data)
        except OSError as error:
            raise RagcliError(f"{path}: {error.strerror}", "check the models folder") from error
        for other in into.glob(f"{head}-{precision}-*-{digest}.onnx"):
            if other != path:  # of another exporter: nobody opens it any more
                discard(other)
    return path


def damaged(folder: Path) -> list[Damaged]:
    """The converted files in the folder that are not what was written, all of them hashed. Those without a note are
    nobody's: they are not opened.

    Raises: OSError: one can't be read.
    """
    found = []
    for path in sorted(folder.glob("*.onnx")):
        note = _read_note(path)
        if note is not None:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            if digest != note.sha256:
                found.append(Damaged(path, digest, note.sha256))
    return found


def discard(path: Path) -> None:
    """Removes a converted file and its note; it is made anew when it is asked for."""
    for gone in (path, _note_path(path)):
        with suppress(OSError):
            gone.unlink()


def _note_path(path: Path) -> Path:
    return path.with_name(path.name + NOTE)


def _read_note(path: Path) -> _Note | None:
    return notes.read(_note_path(path), _Note)


def _has_its_size(path: Path) -> bool:
    note = _read_note(path)
    return note is not None and path.is_file() and path.stat().st_size == note.size
