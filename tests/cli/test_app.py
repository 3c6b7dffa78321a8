"""The command tree: help, options before and after the command, suggestions, completion, what is imported."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ragcli
from ragcli.cli import main
from ragcli.cli.app import COMMANDS, build

HEAVY = ("rich", "numpy", "yaml", "onnxruntime", "tokenizers", "tiktoken", "sqlite_utils", "httpx", "selectolax")


def loaded_by(code: str, cwd: Path, *arguments: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after `code`."""
    script = f"{code}\nimport sys; print('\\n' + ' '.join(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, cwd=cwd, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.spec("C6")
def test_importing_ragcli_imports_nothing_heavy(tmp_path: Path) -> None:
    assert not loaded_by("import ragcli", tmp_path).intersection({*HEAVY, "msgspec", "typer"})


@pytest.mark.spec("C6")
@pytest.mark.parametrize("arguments", [["--help"], ["query", "--help"], ["ingest", "--help"], ["inspect", "--help"]])
def test_help_imports_nothing_heavy(tmp_path: Path, arguments: list[str]) -> None:
    modules = loaded_by(f"from ragcli.cli import main; main({arguments})", tmp_path)
    assert not modules.intersection(HEAVY)


@pytest.mark.spec("C6")
@pytest.mark.parametrize("output", ["json", "jsonl", "table", "paths"])
def test_a_keyword_query_imports_nothing_heavy(tmp_path: Path, output: str) -> None:
    (tmp_path / "a.md").write_text("torque sensor", encoding="utf-8")
    assert main(["ingest", str(tmp_path / "a.md"), "--index", str(tmp_path / "i.db"), "--quiet"]) == 0
    arguments = ["query", "torque", "--index", str(tmp_path / "i.db"), "--format", output]
    assert not loaded_by(f"from ragcli.cli import main; assert main({arguments}) == 0", tmp_path).intersection(HEAVY)


@pytest.mark.spec("C1")
def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"ragcli {ragcli.__version__}\n"


@pytest.mark.spec("C1")
@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_80_columns_and_has_examples(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main([*filter(None, [command]), "--help"]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 80
    assert f"  ragcli {command}".rstrip() in out.partition("Examples:")[2]


@pytest.mark.spec("C1")
def test_every_option_of_every_command_has_help() -> None:
    group = build()
    with group.make_context("ragcli", ["query"], resilient_parsing=True) as context:
        for name in COMMANDS:
            params = group.get_command(context, name).get_params(context)
            assert [param.name for param in params if not param.help and not param.hidden] == []


@pytest.mark.spec("C1")
def test_the_help_of_ingest_states_what_happens_the_second_time(capsys: pytest.CaptureFixture[str]) -> None:
    main(["ingest", "--help"])
    words = " ".join(capsys.readouterr().out.split())
    assert (
        "Run again, an unchanged file costs nothing, a changed one is replaced whole, and one that is gone stays in "
        "the index until --prune or --delete removes it." in words
    )


@pytest.mark.spec("C7", "C9")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["qurey", "x"], "no such command: qurey; did you mean query?"),
        (["query", "x", "--topk", "3"], "no such option: --topk; did you mean --top-k?"),
        (["query", "x", "--limit", "3"], "no such option: --limit; did you mean --top-k?"),
        (["query", "x", "-Z"], "no such option: -Z"),
        (["query", "x", "--top-k"], "option '--top-k' requires an argument"),
        (["query", "x", "--top-k", "many"], "invalid value for '--top-k' / '-k': 'many' is not a valid int"),
        (["query", "x", "--format", "xml"], "invalid value for '--format' / '-f': 'xml' is not one of 'table', 'json', "
         "'jsonl', 'csv', 'tsv', 'md', 'paths', 'trec'"),
        (["query", "x", "--top-k", "0"], "retrieval.top_k = 0 is out of range: 1 to 1000000"),
        (["query", "x", "--min-score", "nan"], "retrieval.min_score = nan is out of range: -1 to 1"),
        (["query", "x", "--json", "--csv"], "two output formats: json and csv"),
        (["query", "x", "--null"], "--null ends paths: it goes with --format paths"),
        (["inspect", "--stats", "--check"], "one view at a time: --stats and --check"),
        (["inspect", "--chunk", "a.md"], "--chunk a.md: no chunk number"),
    ],
)  # fmt: skip
def test_a_slip_is_one_line_with_the_nearest_word(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[0] == f"error: {message}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.spec("C1")
def test_bash_completes_commands_options_and_values(tmp_path: Path) -> None:
    def completed(line: str) -> list[str]:
        words = line.split(" ")
        asked = {"_RAGCLI_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        done = subprocess.run(
            [sys.executable, "-m", "ragcli"],
            env=os.environ | asked,
            capture_output=True,
            text=True,
            cwd=tmp_path,
            check=True,
        )
        return done.stdout.split()

    assert completed("ragcli in") == ["ingest", "inspect"]
    assert completed("ragcli query --per") == ["--per-document"]
    assert completed("ragcli query --format j") == ["json", "jsonl"]
    assert completed("ragcli --conf") == ["--config"]


@pytest.mark.spec("C1")
def test_the_completion_script_is_for_ragcli() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ragcli", "--show-completion", "bash"], capture_output=True, text=True, check=True
    )
    assert "complete -o default -F _ragcli_completion ragcli" in done.stdout


@pytest.mark.spec("C10")
def test_the_public_face_is_what_it_says_and_everything_in_it_can_be_had() -> None:
    assert sorted(ragcli.__all__) == dir(ragcli)
    for name in ragcli.__all__:
        assert getattr(ragcli, name) is not None
        assert not inspect.ismodule(getattr(ragcli, name))
    assert {
        "Pipeline",
        "RetrievalOptions",
        "Settings",
        "Document",
        "Chunk",
        "Hit",
        "Ranking",
        "Result",
        "ingest_paths",
    } <= set(ragcli.__all__)
    assert not hasattr(ragcli, "nothing")


@pytest.mark.spec("C10")
@pytest.mark.parametrize("before", ["", "import ragcli.ingest", "import ragcli.ingest.run"])
def test_no_package_hides_the_function_that_ingests(before: str) -> None:
    script = f"{before}\nfrom ragcli import ingest_paths\nassert ingest_paths.__module__ == 'ragcli.ingest.run'"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


@pytest.mark.spec("C10")
def test_every_error_of_the_tree_is_public_or_below_one_that_is() -> None:
    from ragcli import errors

    values = (getattr(ragcli, name) for name in ragcli.__all__)
    public = tuple(value for value in values if isinstance(value, type) and issubclass(value, Exception))
    tree = [
        value
        for value in vars(errors).values()
        if getattr(value, "__module__", "") == errors.__name__ and isinstance(value, type)
    ]
    assert all(issubclass(error, public) for error in tree)
