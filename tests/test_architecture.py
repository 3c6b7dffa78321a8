"""ARCHITECTURE.md can't drift: it names every module, nothing that is not there, and the linter's layers."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "ragcli"
TEXT = (PACKAGE / "ARCHITECTURE.md").read_text("utf-8")
OUTSIDE = ("tests/", "configs/")  # of the project, not of the package
TO_BE_MADE = "NAME"  # in the part that says how to add a file


def section(title: str) -> str:
    """The text below a heading of the second level."""
    found = re.search(rf"^## {re.escape(title)}$(.*?)(?=^## |\Z)", TEXT, re.DOTALL | re.MULTILINE)
    assert found, title
    return found[1]


def paths(text: str) -> set[str]:
    """The files and folders that stand in it as code."""
    found = re.findall(r"`((?:\w+/)*\w+\.(?:py|yaml)|(?:\w+/)+)`", text)
    return {path for path in found if TO_BE_MADE not in path}


def modules() -> set[str]:
    """Every file of the package; a package is known by its folder."""
    found = {path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}
    return {name.removesuffix("__init__.py") if "/" in name else name for name in found}


def test_every_module_is_on_the_code_map() -> None:
    assert modules() - paths(section("Code map")) == set()


@pytest.mark.parametrize("path", sorted(paths(TEXT)))
def test_every_path_exists(path: str) -> None:
    assert ((ROOT if path.startswith(OUTSIDE) else PACKAGE) / path).exists()


def test_the_layers_are_those_of_the_linter() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    held = [set(re.findall(r"\w+", layer)) for layer in layers if "__main__" not in layer]
    line = re.search(r"^`(cli › .*)`$", section("Layers"), re.MULTILINE)
    assert line
    assert [set(re.findall(r"\w+", layer)) for layer in line[1].split(" › ")] == held


def test_it_can_be_read_at_one_sitting() -> None:
    assert len(TEXT.splitlines()) <= 150
