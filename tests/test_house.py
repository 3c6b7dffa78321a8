"""The rules of the house that no linter holds: what start-up may load, names of files, who reads the environment."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "ragcli"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# Each costs 25 ms or more to import, or pulls in one that does; `--help` and a keyword query need none of them.
HEAVY = (
    "numpy", "onnxruntime", "tokenizers", "tiktoken", "sqlite_utils", "huggingface_hub", "httpx2", "pydantic",
    "asyncio", "Stemmer", "selectolax", "pypdfium2", "charset_normalizer", "pathspec", "multiprocessing",
    "onnx", "safetensors",
)  # fmt: skip
# Light enough for a help page, or needed by some commands only; never at the top of a module of ours.
LAZY = (*HEAVY, "yaml", "regex", "rich")
FORBIDDEN_NAMES = {"utils", "util", "base", "manager", "helpers", "helper"}


def loaded_by(*arguments: str) -> set[str]:
    """The modules that a fresh interpreter has loaded when it ends, running `python ARGUMENTS`."""
    script = (
        "import atexit, runpy, sys\n"
        "atexit.register(lambda: print('MODULES', *sys.modules, file=sys.stderr))\n"
        f"sys.argv = {['ragcli', *arguments[1:]]!r}\n"
        f"{arguments[0]}\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=60, check=False
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("MODULES ")]
    assert lines, f"no clean end: {done.stderr[-2000:]}"
    return set(lines[-1].split()[1:])


RUN = "from ragcli.__main__ import run; sys.exit(run())"


@pytest.mark.spec("C6")
@pytest.mark.parametrize("module", [*HEAVY, "yaml", "rich.table", "typer", "ragcli.cli"])
def test_importing_the_package_loads_nothing_heavy(module: str, import_modules: set[str]) -> None:
    assert module not in import_modules


@pytest.fixture(scope="module")
def import_modules() -> set[str]:
    return loaded_by("import ragcli")


@pytest.fixture(scope="module")
def help_modules() -> set[str]:
    return loaded_by(RUN, "--help")


@pytest.fixture(scope="module")
def version_modules() -> set[str]:
    return loaded_by(RUN, "--version")


@pytest.mark.spec("C6")
@pytest.mark.parametrize("module", [*HEAVY, "yaml", "sqlite3"])
def test_help_loads_nothing_heavy(module: str, help_modules: set[str]) -> None:
    assert module not in help_modules


@pytest.mark.spec("C6")
@pytest.mark.parametrize("module", [*HEAVY, "yaml", "sqlite3", "rich.table", "rich.console"])
def test_version_loads_nothing_heavy(module: str, version_modules: set[str]) -> None:
    assert module not in version_modules


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_file_is_named_for_nothing(path: Path) -> None:
    assert not FORBIDDEN_NAMES & {path.stem.strip("_"), *path.relative_to(ROOT).parts}


def at_import(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run when the module is imported: not those inside functions or under TYPE_CHECKING."""
    for child in ast.iter_child_nodes(node):
        typing_only = isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING")
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and not typing_only:
            yield child
            yield from at_import(child)


def imported(nodes: Iterable[ast.AST]) -> set[str]:
    """The dotted names that the import statements among the nodes may load: modules, and names that may be modules."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return names


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@pytest.fixture(scope="module")
def importers() -> dict[str, set[str]]:
    """Module -> the modules of the package that import it when they are imported themselves."""
    found: dict[str, set[str]] = {}
    for path in SOURCES:
        for name in imported(at_import(ast.parse(path.read_text("utf-8")))):
            found.setdefault(name, set()).add(name_of(path))
    return found


def heavy_at_import(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imported(at_import(ast.parse(path.read_text("utf-8"))))} & set(LAZY)


@pytest.mark.spec("C6")
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_heavy_modules_are_imported_inside_functions(path: Path, importers: dict[str, set[str]]) -> None:
    """Or by a module that is itself imported inside functions only, or by others of that kind: all numpy, say."""
    heavy = {name_of(one) for one in SOURCES if one.stem != "__init__" and heavy_at_import(one)}
    assert not heavy_at_import(path) or importers.get(name_of(path), set()) <= heavy


def environment_reads(tree: ast.Module) -> list[str]:
    """Where a module reads the environment. `f(environ=os.environ)`, passing it on whole, is no reading."""
    names = {"environ", "environb", "getenv", "getenvb", "expandvars"}
    passed = [node.value for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg == "environ"]
    found = []
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Attribute | ast.ImportFrom)):
        read = isinstance(node, ast.Attribute) and node.attr in names and node not in passed
        taken = isinstance(node, ast.ImportFrom) and node.module == "os" and names & {name.name for name in node.names}
        if read or taken:
            found.append(f"{node.lineno}: {ast.unparse(node)}")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_only_config_reads_the_environment(path: Path) -> None:
    if path != PACKAGE / "config.py":
        assert not environment_reads(ast.parse(path.read_text("utf-8")))


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_module_says_what_it_owns(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    assert not tree.body or ast.get_docstring(tree)


SHARED = {"msgspec", "numpy"}  # libraries that any module may use


def test_every_library_that_is_used_has_an_owner() -> None:
    """The linter's contract names a library by what is imported: a name that nobody imports guards nothing."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (owned,) = [contract["forbidden_modules"] for contract in contracts if contract["name"].startswith("One library")]
    used = {
        name.partition(".")[0] for path in SOURCES for name in imported(ast.walk(ast.parse(path.read_text("utf-8"))))
    }
    foreign = used - sys.stdlib_module_names - {"ragcli"} - SHARED
    assert foreign - set(owned) == set()
