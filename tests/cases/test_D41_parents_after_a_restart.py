"""D41: a parent store in memory was empty after a restart, and queries found nothing.

Parents are in the index: what one process ingests, another one shows.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell

ROOT = Path(__file__).parents[2]
PLAIN = " ".join(f"plain{n}" for n in range(60))
TEXT = f"# Gauges\n\n{PLAIN}\n\nthe torque gauge\n\n{PLAIN}\n"
INGEST = ("ingest", "d", "--parents", "--chunk-size", "100", "--chunk-overlap", "0")


def in_another_process(*arguments: str) -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-m", "ragcli", *arguments], check=True, env=environment, capture_output=True)


@pytest.mark.spec("P7", "I23")
def test_parents_are_there_in_the_next_process(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "d", {"a.md": TEXT})
    in_another_process(*INGEST)
    (hit,) = shell.hits("torque")
    assert hit["text"] == TEXT.rstrip()
    assert hit["parent"]["index"] == 0
    assert (hit["start_line"], hit["end_line"]) == (1, 7)
    (child,) = shell("query", "torque", "--no-parents", "--json").json()["hits"]
    assert "torque" in child["text"]
    assert len(child["text"]) <= 100
    assert child["chunk_index"] == hit["chunk_index"] == hit["parent"]["children"][0]


@pytest.mark.spec("P7", "I23")
def test_also_those_that_were_cut_when_the_file_was_gone(shell: Shell, tmp_path: Path) -> None:
    path = indexes.write(tmp_path / "d", {"a.md": TEXT}) / "a.md"
    in_another_process("ingest", "d", *INGEST[3:])
    assert shell("query", "torque", "--parents").code == 3
    path.unlink()
    in_another_process("ingest", "--parents")
    (hit,) = shell.hits("torque")
    assert hit["text"] == TEXT.rstrip()


@pytest.mark.spec("P7")
def test_children_of_one_parent_are_one_hit_and_the_rest_is_told(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "d", {"a.md": TEXT, "b.md": "a plain7 thing\n"})
    in_another_process(*INGEST)
    reply = shell("query", "plain7", "--json").json()
    assert sorted(hit["document_id"] for hit in reply["hits"]) == ["a.md", "b.md"]
    (drop,) = [drop for drop in reply["dropped"] if drop["stage"] == "parents"]
    assert drop["reason"].startswith("part of parent 0 of a.md, which stands at rank ")


@pytest.mark.spec("I23")
def test_ingest_and_inspect_say_what_there_is(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "d", {"a.md": TEXT})
    assert "1 parent in" in shell(*INGEST).err
    assert json.loads(shell("inspect", "--json").out)["parents"] == 1
    shown = shell("inspect").out
    assert "parents.size" in shown
    assert "parent      0: lines 1-7, characters 0-" in shell("inspect", "--chunk", "a.md#0").out
    assert shell("inspect", "--check").code == 0
    assert "1 parent removed" in shell("ingest", "--no-parents").err
    assert json.loads(shell("inspect", "--json").out)["parents"] == 0
    assert "1 stored document to cut" in shell("ingest", "d", "--parents", "--dry-run").err
