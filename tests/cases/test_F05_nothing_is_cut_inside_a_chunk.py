"""F05: "--prompt truncated for brevity--" stood in the middle of a prompt. A chunk is taken whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("P8")
@pytest.mark.usefixtures("tokenizer")
@pytest.mark.parametrize("limit", [1, 50, 100, 200, 400, 800])
def test_whatever_the_limit_a_hit_is_whole_or_gone(
    shell: Shell, tmp_path: Path, pulled: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setenv("RAGCLI_MODELS", str(pulled("cl100k_base").parent))
    texts = {f"{n}.md": "gauge " + " ".join(f"word{m}" for m in range(30 * n)) for n in range(1, 6)}
    indexes.write(tmp_path / "d", texts)
    assert shell("ingest", "d").code == 0
    found = shell("query", "gauge", "--max-context-tokens", str(limit), "--json").json()
    assert all(hit["text"] == texts[hit["document_id"]] for hit in found["hits"])
    gone = {drop["document_id"] for drop in found["dropped"]}
    assert gone | {hit["document_id"] for hit in found["hits"]} == set(texts)
    if not found["hits"]:
        assert any("the best hit alone needs" in warning for warning in found["warnings"])
