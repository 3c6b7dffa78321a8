"""F04: a prompt of 17,248 tokens for a model of 16,384. Whole chunks go, lowest rank first, and each is listed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragcli.chunk.measure import TokenizerSource
from ragcli.context import SEPARATOR
from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("P8", "R8")
def test_twenty_chunks_of_four_hundred_tokens_in_a_thousand(
    shell: Shell, tmp_path: Path, tokenizer: TokenizerSource, pulled: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    count = tokenizer().count
    monkeypatch.setenv("RAGCLI_MODELS", str(pulled("cl100k_base").parent))
    text = "gauge " + "river " * 380
    indexes.write(tmp_path / "d", {f"{n:02}.md": text + "lamp " * n for n in range(20)})
    assert shell("ingest", "d", "--chunk-size", "8000").code == 0
    plain = shell("query", "gauge", "-k", "20", "--json").json()["hits"]
    asked = shell("query", "gauge", "-k", "20", "--max-context-tokens", "1000", "--json", "--explain").json()
    kept, dropped = asked["hits"], asked["dropped"]
    assert [hit["document_id"] for hit in kept] == [hit["document_id"] for hit in plain[: len(kept)]]
    assert [hit["text"] for hit in kept] == [hit["text"] for hit in plain[: len(kept)]]  # whole
    assert [drop["document_id"] for drop in dropped] == [hit["document_id"] for hit in plain[len(kept) :]]
    assert {drop["stage"] for drop in dropped} == {"budget"}
    lines = [f"[Source {n}] {hit['document_id']}, line 1\n\n{hit['text']}{SEPARATOR}" for n, hit in enumerate(kept, 1)]
    used = sum(count(line) for line in lines)
    assert count("".join(lines)) == used <= 1000
    third = count(f"[Source 3] {dropped[0]['document_id']}, line 1\n\n{plain[2]['text']}{SEPARATOR}")
    assert used + third > 1000
    assert dropped[0]["reason"] == f"needs {third} tokens, {1000 - used} of 1,000 are left"
    (warning,) = asked["warnings"]
    assert f"{len(kept)} of 20 hits kept ({used} tokens)" in warning
