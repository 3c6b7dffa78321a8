"""C11: weights of title and path were applied to the wrong column.

There are no weights by field. The title and the file name are indexed with every chunk of a document, as part of its
length and of its term counts; `--explain` shows what each term of the query adds to the score.
"""

from __future__ import annotations

from math import log
from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell

FILES = {
    "one.md": "---\ntitle: Zebra handbook\n---\nplain words stand here\n",
    "two.md": "---\ntitle: Plain handbook\n---\nzebra words stand here\n",
    "three.md": "---\ntitle: Other handbook\n---\nplain words stand here\n",
}


@pytest.mark.spec("I24", "I32")
def test_a_word_counts_the_same_in_the_title_and_in_the_text(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "d", FILES)
    shell("ingest", "d")
    hits = shell.hits("zebra")
    assert [hit["document_id"] for hit in hits] == ["one.md", "two.md"]
    # 3 chunks of one length, 2 with the word once: idf = ln(1 + (3 - 2 + 0.5)/(2 + 0.5)), tf part 1·2.5/(1 + 1.5) = 1
    assert [hit["score"] for hit in hits] == pytest.approx([log(1 + 1.5 / 2.5)] * 2)
    assert "Zebra" not in hits[0]["text"]


@pytest.mark.spec("I24")
def test_explain_shows_what_each_term_adds(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "d", FILES)
    shell("ingest", "d")
    first = shell("query", "zebra plain", "--explain", "--format", "json").json()["hits"][0]
    assert set(first["terms"]) == {"zebra", "plain"}
    assert sum(first["terms"].values()) == pytest.approx(first["score"])
    shown = shell("query", "zebra", "--explain").out
    assert "= bm25 0.4700 = zebra 0.4700" in shown


@pytest.mark.spec("I24")
def test_without_the_header_only_the_text_is_found(shell: Shell, tmp_path: Path) -> None:
    indexes.write(tmp_path / "d", FILES)
    (tmp_path / "ragcli.yaml").write_text("chunking:\n  context_header: false\n", encoding="utf-8")
    shell("ingest", "d")
    assert [hit["document_id"] for hit in shell.hits("zebra")] == ["two.md"]
