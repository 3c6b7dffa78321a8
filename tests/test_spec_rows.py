"""The bookkeeping of `make spec`, on small inputs."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.spec_rows import TESTS, cases_of, faults, open_of, proofs_in, rows_of

SOURCE = """
import pytest
pytestmark = [pytest.mark.spec("C6")]
@pytest.mark.spec("I1", "I2")
@pytest.mark.parametrize("x", [1])
def test_walk(x): ...
@pytest.mark.spec("I3")
def no_test(): ...
@pytest.mark.spec("I4")
class TestFormats:
    @pytest.mark.spec("I5")
    async def test_bad(self): ...
"""


def test_rows_and_cases_are_read_from_tables_and_lists(tmp_path: Path) -> None:
    (tmp_path / "1-a.md").write_text("| ID | what |\n|---|---|\n| I1 | x |\n| I20 | see I1 |\n")
    (tmp_path / "README.md").write_text("| I9 | no part of the spec |\n")
    (tmp_path / "cases.md").write_text("- **A01 · x #1** as A02.\n## B\n- **B22 · y** z\n")
    assert rows_of(tmp_path) == ["I1", "I20"]
    assert cases_of(tmp_path / "cases.md") == ["A01", "B22"]


def test_marks_count_where_pytest_would_collect_them() -> None:
    found = sorted(proofs_in(TESTS / "read" / "test_x.py", ast.parse(SOURCE)))
    name = "read/test_x.py"
    assert found == [
        ("C6", name),
        ("I1", f"{name}::test_walk"),
        ("I2", f"{name}::test_walk"),
        ("I4", f"{name}::TestFormats"),
        ("I5", f"{name}::test_bad"),
    ]


def test_open_list_holds_an_id_and_what_it_waits_for(tmp_path: Path) -> None:
    path = tmp_path / "open.txt"
    path.write_text("# a list\n\nR3 dense search\nR4  fusion  # later\n")
    assert open_of(path) == {"R3": "dense search", "R4": "fusion"}


def test_every_kind_of_fault_is_named() -> None:
    proofs = {"I1": ["t"], "I2": ["t"], "X9": ["t"]}
    waiting = {"I2": "x", "I3": "x", "I99": "x"}
    assert faults("row", ["I1", "I2", "I3", "I4"], proofs, waiting) == [
        "row I4: no test proves it",
        "row I2: listed as open, but proved: take it off the list",
        "row I99: listed as open, but there is no such ID",
        "row X9: a test names it, but there is no such ID",
    ]
    assert faults("row", ["I1", "I3"], {"I1": ["t"]}, {"I3": "x"}) == []
