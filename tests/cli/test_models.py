"""`ragcli models pull|list|verify`: exit codes, streams, JSON, progress, words for what goes wrong."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragcli.models import catalogue, pull
from ragcli.models.catalogue import Hub, Model
from tests.commands import Shell
from tests.models.origin import REPOSITORY, REVISION, Origin, digest, hub_path, toy
from tests.models.toy_bert import write_folder

CONTENTS = {"weights.bin": b"weights" * 1000, "tokenizer.json": b"{}"}
TOY = toy(CONTENTS, Hub(REPOSITORY, REVISION))
ROOT = Path(__file__).parents[2]
# the command line with the toy for a catalogue
RUN = """
import sys
from ragcli.models import catalogue, pull
from tests.cli.test_models import TOY
catalogue.MODELS = (TOY,)
from ragcli.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def shell(capfd: pytest.CaptureFixture[str]) -> Shell:
    return Shell(capfd)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a catalogue of two: the toy, and one that nobody has."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RAGCLI_MODELS", str(tmp_path / "cache"))
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    gone = Model(
        name="gone", kind="chat", description="", licence="MIT", files=TOY.files, sources=(Hub("toys/gone", REVISION),)
    )
    monkeypatch.setattr(catalogue, "MODELS", (gone, TOY))
    return tmp_path / "cache"


@pytest.fixture
def origin(monkeypatch: pytest.MonkeyPatch) -> Iterator[Origin]:
    """The model hub."""
    import huggingface_hub.constants

    with Origin({hub_path(name): data for name, data in CONTENTS.items()}) as running:
        template = running.address + "/{repo_id}/resolve/{revision}/{filename}"
        monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
        yield running


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    for name, data in CONTENTS.items():
        (folder / name).write_bytes(data)
    return folder


@pytest.mark.spec("M3")
def test_pull_then_again(cache: Path, origin: Origin, shell: Shell) -> None:
    first = shell("models", "pull", "toy", "toy")
    assert (first.code, first.out) == (0, "")
    note, summary = first.err.splitlines()
    assert note == f"note: fetching toy (embedder, 0.0 MB) into {cache / 'toy'}"
    assert summary.startswith("toy: 0.0 MB in ")
    again = shell("models", "pull", "toy")
    assert (again.code, again.err) == (0, f"toy is here already: {cache / 'toy'}\n")
    assert shell("models", "pull", "toy", "--quiet").err == ""


@pytest.mark.spec("M2", "M3")
def test_pull_from_a_folder_works_offline(
    cache: Path, disk: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGCLI_OFFLINE", "1")
    assert shell("models", "pull", "toy", "--from", str(disk)).code == 0
    assert (cache / "toy" / "weights.bin").read_bytes() == CONTENTS["weights.bin"]


@pytest.mark.spec("M3", "C9")
@pytest.mark.parametrize("variable", ["RAGCLI_OFFLINE", "HF_HUB_OFFLINE"])
def test_offline_is_one_line_that_names_the_command(
    cache: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "1")
    outcome = shell("models", "pull", "toy")
    assert outcome.code == 1
    error, hint = outcome.err.splitlines()
    assert error == f"error: model toy is not in {cache / 'toy'}, and offline is on"
    assert "ragcli models pull toy" in hint


@pytest.mark.spec("M3", "C9")
def test_a_source_that_fails_is_code_5_and_the_other_models_come(cache: Path, origin: Origin, shell: Shell) -> None:
    outcome = shell("models", "pull", "gone", "toy")
    assert outcome.code == 5
    assert "error: model gone can't be fetched: hub toys/gone: HTTP 404 Not Found" in outcome.err.splitlines()
    assert (cache / "toy" / "weights.bin").exists()


@pytest.mark.spec("M3", "C7", "C9")
def test_an_unknown_name_is_usage_and_nothing_is_fetched(cache: Path, origin: Origin, shell: Shell) -> None:
    outcome = shell("models", "pull", "toy", "gon")
    assert outcome.code == 2
    assert outcome.err.splitlines()[0] == "error: no model is named 'gon'; did you mean gone?"
    assert shell("models", "verify", "gon").code == 2
    assert origin.seen == []


@pytest.mark.spec("M3", "C7")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["models", "pul", "toy"], "error: no such command: pul; did you mean pull?"),
        (["models", "pull"], "error: missing argument 'NAME...'"),
        (["models", "pull", "toy", "--form", "x"], "error: no such option: --form; did you mean --from?"),
    ],
)
def test_a_slip_is_one_line(cache: Path, shell: Shell, arguments: list[str], message: str) -> None:
    outcome = shell(*arguments)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.splitlines()[0] == message


@pytest.mark.spec("M3")
def test_list_says_what_is_here(cache: Path, origin: Origin, shell: Shell) -> None:
    shell("models", "pull", "toy")
    table = shell("models", "list")
    assert (table.code, table.err) == (0, "")
    assert [line.split()[:5] for line in table.out.splitlines()] == [
        ["NAME", "KIND", "MB", "STATE", "LICENCE"],
        ["gone", "chat", "0.0", "absent", "MIT"],
        ["toy", "embedder", "0.0", "here", "MIT"],
    ]
    answer = shell("models", "list", "--json").json()
    assert answer["schema"] == 1
    assert answer["folder"] == str(cache)
    assert [(entry["name"], entry["state"]) for entry in answer["models"]] == [("gone", "absent"), ("toy", "here")]
    assert answer["models"][1]["files"][1] == {"name": "tokenizer.json", "size": 2, "sha256": digest(b"{}")}
    assert answer["models"][1]["folder"] == str(cache / "toy")


@pytest.mark.spec("M3", "C9")
def test_verify_has_a_line_for_each_damaged_file_and_code_1(cache: Path, origin: Origin, shell: Shell) -> None:
    empty = shell("models", "verify")
    assert (empty.code, empty.out, empty.err) == (0, "", f"note: no model is in {cache}\n")
    shell("models", "pull", "toy")
    good = shell("models", "verify")
    assert (good.code, good.out, good.err) == (0, "toy: all hashes are right\n", "")
    (cache / "toy" / "weights.bin").write_bytes(b"x")
    (cache / "toy" / "tokenizer.json").write_bytes(b"y")
    bad = shell("models", "verify", "toy")
    assert bad.code == 1
    wanted = {name: hashlib.sha256(data).hexdigest() for name, data in CONTENTS.items()}
    assert bad.out.splitlines() == [
        f"toy: {cache / 'toy' / name}: SHA-256 is {digest(data)}, not {wanted[name]}"
        for name, data in (("weights.bin", b"x"), ("tokenizer.json", b"y"))
    ]
    assert "ragcli models pull" in bad.err
    assert shell("models", "verify", "gone").code == 1


@pytest.mark.spec("M3", "C9")
def test_a_damaged_conversion_is_named_and_pull_removes_it(cache: Path, origin: Origin, shell: Shell) -> None:
    from ragcli.models import onnx

    shell("models", "pull", "toy")
    own = onnx.converted(write_folder(cache / "a"), ["1"], cache / "toy", "fp32", notify=lambda line: None)
    other = onnx.converted(cache / "a", ["2"], cache / "converted", "fp32", notify=lambda line: None)
    assert shell("models", "verify").code == 0
    wanted = digest(own.read_bytes())
    for path in (own, other):
        path.write_bytes(bytes(path.stat().st_size))
    found = digest(own.read_bytes())
    bad = shell("models", "verify")
    assert bad.code == 1
    assert bad.out.splitlines() == [
        f"toy: {own}: SHA-256 is {found}, not {wanted}", f"converted: {other}: SHA-256 is {found}, not {wanted}"
    ]  # fmt: skip
    assert "ragcli models pull" in bad.err
    assert f"delete what is damaged in {cache / 'converted'}" in bad.err
    pulled = shell("models", "pull", "toy")
    assert (pulled.code, own.exists()) == (0, False)
    assert f"{own} was damaged" in pulled.err
    assert shell("models", "verify", "toy").code == 0


@pytest.mark.spec("M3", "C5")
def test_progress_has_size_and_rate_on_a_terminal(tmp_path: Path, origin: Origin) -> None:
    """And the hub is the one that HF_ENDPOINT names."""
    leader, follower = pty.openpty()
    environ = os.environ | {
        "RAGCLI_MODELS": str(tmp_path / "cache"), "HF_ENDPOINT": origin.address, "TERM": "xterm", "COLUMNS": "120",
    }  # fmt: skip
    # slow enough to be seen: the rest comes when the bar has been drawn
    origin.faults[hub_path("weights.bin")] = ["hang 3000"]
    command = [sys.executable, "-c", RUN, "models", "pull", "toy"]
    with subprocess.Popen(command, cwd=ROOT, env=environ, stderr=follower, stdout=subprocess.DEVNULL) as process:
        os.close(follower)
        seen = _read_until(leader, b"0.0/0.0 MB")
        origin.release.set()
        _read_until(leader, b"toy: 0.0 MB in ")
        assert process.wait(30) == 0
    os.close(leader)
    assert b"fetching" in seen


def _read_until(terminal: int, words: bytes) -> bytes:
    seen = b""
    while words not in seen:
        assert select.select([terminal], [], [], 20)[0], seen
        seen += os.read(terminal, 65536)
    return seen


@pytest.mark.spec("C6")
def test_listing_imports_nothing_heavy(cache: Path) -> None:
    script = "from ragcli.cli import main; main(['models', 'list']); import sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=cache.parent, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.splitlines()[-1].split()}
    assert not loaded & {"numpy", "onnxruntime", "tokenizers", "huggingface_hub", "httpx2", "rich", "yaml", "onnx"}


@pytest.mark.spec("C1")
@pytest.mark.parametrize("command", ["pull", "list", "verify"])
def test_help_fits_80_columns_and_has_examples(command: str, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    outcome = shell("models", command, "--help")
    assert outcome.code == 0
    assert max(map(len, outcome.out.splitlines())) <= 80
    assert f"  ragcli models {command}" in outcome.out.partition("Examples:")[2]


def test_the_listing_as_json_is_the_catalogue(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGCLI_MODELS", str(tmp_path))
    names = [entry["name"] for entry in json.loads(shell("models", "list", "--json").out)["models"]]
    assert names == list(catalogue.names())
    assert pull.NOTES.startswith(".")


@pytest.mark.spec("M8")
def test_a_reranker_is_a_model_of_the_hub(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shell = Shell(capsys)
    monkeypatch.setenv("RAGCLI_MODELS", str(tmp_path))
    monkeypatch.setenv("RAGCLI_OFFLINE", "1")
    for name, repository in catalogue.RERANKERS.items():
        refused = shell("models", "pull", name)
        assert refused.code == 1
        assert f"model hub:{repository} is not in" in refused.err
    here = tmp_path / "hub" / "cross-encoder--ms-marco-MiniLM-L-6-v2"
    here.mkdir(parents=True)
    (here / ".revision").write_text("0" * 40)
    found = shell("models", "pull", "ms-marco-minilm")
    assert found.code == 0
    assert str(here) in found.err
