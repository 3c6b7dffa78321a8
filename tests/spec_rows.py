"""Which test proves which row of the spec: what `make spec` prints and enforces.

Reads the rows of `../shared/spec/*.md`, the cases of `../shared/cases.md`, the marks `@pytest.mark.spec("I3")` of the
tests (from their syntax trees: nothing is imported), and the lists of what is not asked for yet, `open_rows.txt` and
`open_cases.txt` (an ID a line, then what it waits for). A row needs a mark; a case needs a file
`tests/cases/test_<ID>_….py` with a test in it. The exit code is 1 when one lacks its proof and is not listed as open,
when one is listed and proved (the lists stay honest), and when a mark, a file or a list names what does not exist.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

TESTS = Path(__file__).parent
SHARED = TESTS.parents[1] / "shared"

Proofs = Mapping[str, list[str]]


def rows_of(folder: Path) -> list[str]:
    """The IDs of the spec's rows, in the order of the files."""
    text = "\n".join(path.read_text("utf-8") for path in sorted(folder.glob("[0-9]-*.md")))
    return re.findall(r"^\| ([IRPACBM]\d+) \|", text, re.MULTILINE)


def cases_of(path: Path) -> list[str]:
    """The IDs of the handed cases, and of those without a number in the order of the file."""
    return re.findall(r"^- \*\*([A-H]\d\d) ·", path.read_text("utf-8"), re.MULTILINE)


def open_of(path: Path) -> dict[str, str]:
    """What an open list holds: ID → what it waits for."""
    lines = (line.partition("#")[0].strip() for line in path.read_text("utf-8").splitlines())
    return {line.split()[0]: line.partition(" ")[2].strip() for line in lines if line}


def marked(node: ast.AST) -> Iterator[str]:
    """The row IDs of the spec marks in an expression."""
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("mark.spec"):
            yield from (str(argument.value) for argument in call.args if isinstance(argument, ast.Constant))


def is_test(node: ast.AST) -> bool:
    """Whether pytest would collect the function or class."""
    if isinstance(node, ast.ClassDef):
        return node.name.startswith("Test")
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")


def proofs_in(path: Path, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(row ID, the test's name) of every mark on a test of the file, or on the file by `pytestmark`."""
    name = path.relative_to(TESTS).as_posix()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and is_test(node):
            yield from ((row, f"{name}::{node.name}") for mark in node.decorator_list for row in marked(mark))
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            yield from ((row, name) for row in marked(node.value))


def row_proofs() -> dict[str, list[str]]:
    """Row ID → the tests that prove it."""
    proofs: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for row, test in proofs_in(path, ast.parse(path.read_text("utf-8"))):
            proofs.setdefault(row, []).append(test)
    return proofs


def case_proofs() -> dict[str, list[str]]:
    """Case ID → the files that hold a test of it."""
    proofs: dict[str, list[str]] = {}
    for path in sorted((TESTS / "cases").glob("test_[A-H][0-9][0-9]_*.py")):
        if any(is_test(node) for node in ast.walk(ast.parse(path.read_text("utf-8")))):
            proofs.setdefault(path.name[5:8], []).append(f"cases/{path.name}")
    return proofs


def faults(kind: str, known: list[str], proofs: Proofs, waiting: Mapping[str, str]) -> list[str]:
    """What is wrong between the IDs, their proofs and the open list, one line each."""

    def each(ids: Iterable[str], fault: str) -> list[str]:
        return [f"{kind} {name}: {fault}" for name in ids]

    return [
        *each((name for name in known if known.count(name) > 1), "stands twice in the spec"),
        *each((name for name in known if name not in proofs and name not in waiting), "no test proves it"),
        *each((name for name in waiting if name in proofs), "listed as open, but proved: take it off the list"),
        *each((name for name in waiting if name not in known), "listed as open, but there is no such ID"),
        *each((name for name in proofs if name not in known), "a test names it, but there is no such ID"),
    ]


def report(known: list[str], proofs: Proofs, waiting: Mapping[str, str]) -> None:
    """Print every ID with its proofs, or what it waits for."""
    for name in known:
        tests = proofs.get(name, [])
        more = f"  (+{len(tests) - 3} more)" if len(tests) > 3 else ""
        state = "  ".join(tests[:3]) + more if tests else f"open: {waiting[name]}" if name in waiting else "NO PROOF"
        print(f"{name:<4} {state}")
    print(f"{sum(name in proofs for name in known)} of {len(known)} proved\n")


def main() -> int:
    """Print the report; 0 when every row and case is proved or listed as open, 1 otherwise."""
    if not SHARED.is_dir():
        print("spec: needs ../shared/spec, which is not part of the project; nothing checked", file=sys.stderr)
        return 1
    rows, cases = rows_of(SHARED / "spec"), cases_of(SHARED / "cases.md")
    parts = (
        ("row", rows, row_proofs(), open_of(TESTS / "open_rows.txt")),
        ("case", cases, case_proofs(), open_of(TESTS / "open_cases.txt")),
    )
    for _, known, proofs, waiting in parts:
        report(known, proofs, waiting)
    wrong = [fault for part in parts for fault in faults(*part)]
    print("\n".join(wrong) or "spec: every row and case is proved or listed as open")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
