"""F08: a budget by characters is wrong for Chinese, emoji, code. Tokens are counted, or estimated rather too high."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ragcli.chunk.measure import TokenizerSource
from ragcli.tokens import estimate
from tests import indexes
from tests.commands import Shell

TEXTS = {
    "chinese": "水位计 每小时 发送 一次 数据。" * 12,
    "emoji": "gauge 🙂👩‍👩‍👧🏔️ " * 20,
    "code": "for (int i = 0; i < n; ++i) { sum += a[i] * b[i]; }\n" * 10,
    "english": "The gauge is read by hand every morning before ten. " * 12,
}


def counted(note: str) -> int:
    found = re.fullmatch(r"([\d,]+) tokens?", note)
    assert found, note
    return int(found[1].replace(",", ""))


@pytest.mark.spec("P8")
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("offline", [False, True])
def test_the_count_is_the_tokenizers_or_above_it(
    shell: Shell, tmp_path: Path, tokenizer: TokenizerSource, pulled: Callable[[str], Path],
    monkeypatch: pytest.MonkeyPatch, name: str, *, offline: bool,
) -> None:  # fmt: skip
    monkeypatch.setenv("RAGCLI_MODELS", str(tmp_path / "none" if offline else pulled("cl100k_base").parent))
    indexes.write(tmp_path / "d", {"x.txt": TEXTS[name] + " gauge"})
    assert shell("ingest", "d").code == 0
    flags = ("--offline",) if offline else ()
    found = shell("query", "gauge", "--max-context-tokens", "100000", "--json", "--explain", *flags).json()
    (hit,) = found["hits"]
    lines = f"{hit['start_line']}-{hit['end_line']}" if hit["end_line"] > 1 else "1"
    place = f"lines {lines}" if "-" in lines else "line 1"
    block = f"[Source 1] x.txt, {place}\n\n{hit['text']}\n\n---\n\n"
    tokens, wanted = counted(hit["trace"][-1]["note"]), tokenizer().count(block)
    if offline:
        assert tokens == estimate(block) >= wanted
        assert any("tokens are estimated" in warning for warning in found["warnings"])
    else:
        assert tokens == wanted
        assert found["warnings"] == []
