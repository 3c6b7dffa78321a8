"""Names in settings become classes."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from ragcli.errors import ConfigError
from ragcli.registry import Kind, names, resolve
from ragcli.stages.where import Where

KINDS: tuple[Kind, ...] = ("chunker", "reader", "reranker", "stage")


def test_a_name_is_the_class_in_the_file_of_that_name() -> None:
    assert resolve("stage", "where") is Where


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in names(kind)])
def test_every_name_resolves(kind: Kind, name: str) -> None:
    found = resolve(kind, name)
    assert callable(found)
    assert found.__module__.rpartition(".")[2] == name


def test_names_are_sorted() -> None:
    assert names("chunker") == ("code", "fixed", "markdown", "recursive", "sentence", "token")


@pytest.mark.spec("C6")
def test_nothing_is_imported_before_it_is_asked_for() -> None:
    code = "import sys, ragcli.registry; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    rooms = ("ragcli.chunk", "ragcli.read", "ragcli.rerankers", "ragcli.stages")
    assert [module for module in out.split() if module.startswith(rooms)] == []


def test_an_unknown_name_is_told_the_nearest_and_all() -> None:
    with pytest.raises(ConfigError, match=r"unknown chunker recursiv; did you mean recursive\?") as caught:
        resolve("chunker", "recursiv")
    assert "sentence" in caught.value.hint


def test_foreign_code_is_taken() -> None:
    import fractions

    assert resolve("chunker", "fractions:Fraction") is fractions.Fraction


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("no_such_package_of_ours:Class", "there is no module no_such_package_of_ours"),
        ("json.no_such:Class", r"there is no module json\.no_such"),
        ("json:Class", "json has no Class"),
        ("math:pi", "pi is neither a class nor a function"),
        (":Class", "not of the form"),
        ("json:", "not of the form"),
        ("a b:C", "not of the form"),
        ("a:b:c", "not of the form"),
    ],
)
def test_foreign_code_that_is_not_there_is_a_clear_error(name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        resolve("chunker", name)


def test_foreign_code_that_breaks_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "broken_syntax_of_ours.py").write_text("def")
    (tmp_path / "needs_more_of_ours.py").write_text("import no_such_package_of_ours")
    assert find_spec("broken_syntax_of_ours")
    with pytest.raises(ConfigError, match="can't be imported"):
        resolve("chunker", "broken_syntax_of_ours:C")
    with pytest.raises(ConfigError, match="needs the module no_such_package_of_ours"):
        resolve("chunker", "needs_more_of_ours:C")
