"""Converted networks in the cache: written whole by whoever comes, and of one version of the exporter only."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

import pytest

from ragcli.errors import RagcliError
from ragcli.models import onnx
from tests.models.toy_bert import write_folder


def convert(folder: Path, into: Path) -> Path:
    return onnx.converted(folder, ["a hash"], into, "fp32", notify=lambda line: None)


def test_two_threads_convert_the_same_model_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, into = write_folder(tmp_path / "toy"), tmp_path / "converted"
    both, fsync = threading.Barrier(2), os.fsync  # of the note, then of the network
    found: list[Path | RagcliError] = []

    def fsync_together(file: int) -> None:
        both.wait(20)
        fsync(file)
        both.wait(20)

    def work() -> None:
        try:
            found.append(convert(folder, into))
        except RagcliError as error:
            found.append(error)

    monkeypatch.setattr(os, "fsync", fsync_together)
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    (path,) = into.glob("*.onnx")
    assert sorted(into.iterdir()) == [path, path.with_name(f"{path.name}.sha256")]
    assert found == [path, path]
    onnx.Network(path, is_final=True).close()


def test_what_an_earlier_exporter_made_of_the_same_files_is_removed(tmp_path: Path) -> None:
    folder, into = write_folder(tmp_path / "toy"), tmp_path / "converted"
    path = convert(folder, into)
    number = f"-{onnx.EXPORTER}-"
    earlier = path.rename(into / path.name.replace(number, "-0-"))
    others = [
        into / earlier.name.replace("fp32", "int8"),
        into / earlier.name.replace("encoder", "classifier"),
        into / "encoder-fp32-0-0123456789abcdef.onnx",
    ]
    for other in others:
        other.write_bytes(b"of other files, or another network of them")
    assert convert(folder, into) == path
    assert sorted(into.iterdir()) == sorted([path, path.with_name(f"{path.name}.sha256"), *others])


def test_zeroed_bytes_are_found_and_a_lost_note_means_converting_anew(tmp_path: Path) -> None:
    folder, into = write_folder(tmp_path / "toy"), tmp_path / "converted"
    path = convert(folder, into)
    data = path.read_bytes()
    assert onnx.damaged(into) == []
    zeroed = data[: len(data) // 2] + bytes(64) + data[len(data) // 2 + 64 :]
    path.write_bytes(zeroed)
    wanted, found = (hashlib.sha256(each).hexdigest() for each in (data, zeroed))
    assert onnx.damaged(into) == [onnx.Damaged(path, found, wanted)]
    path.with_name(f"{path.name}.sha256").unlink()
    assert convert(folder, into) == path
    assert onnx.damaged(into) == []
    onnx.discard(path)
    assert list(into.iterdir()) == []
