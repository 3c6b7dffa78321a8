"""F02: on overflow only half of the window was used. What the answer leaves is for the prompt, and is filled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ragcli.chunk.measure import TokenizerSource
from ragcli.prompt import MARGIN, PER_MESSAGE, PER_PROMPT
from tests import indexes
from tests.cases.answering import answering
from tests.commands import Shell
from tests.streams import spoken


@pytest.mark.spec("P8", "A9")
def test_the_prompt_fills_what_the_answer_leaves(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tokenizer: TokenizerSource,
    pulled: Callable[[str], Path],
) -> None:  # fmt: skip
    monkeypatch.setenv("RAGCLI_MODELS", str(pulled("cl100k_base").parent))
    monkeypatch.setenv("RAGCLI_CHAT__CONTEXT_WINDOW", "2048")
    count = tokenizer().count
    # the shorter a text is the better it ranks
    indexes.write(tmp_path / "d", {f"{n:02}.md": "lamp " + "river " * (180 + n) for n in range(20)})
    assert shell("ingest", "d", "--chunk-size", "8000").code == 0
    with answering(monkeypatch, spoken("Bright [Source 1].")) as server:
        value = shell("ask", "lamp", "-k", "20", "--max-tokens", "512", "--json").json()
        request = server.requests[0].body
    used = PER_PROMPT + sum(PER_MESSAGE + count(message["content"]) for message in request["messages"])
    room = int((2048 - 512) / (1 + MARGIN))
    assert request["max_tokens"] == 512
    assert used == value["usage"]["sent_tokens"] <= room
    sent = [source["document_id"] for source in value["sources"]]
    assert sent == [f"{n:02}.md" for n in range(len(sent))]  # lowest rank first out
    following = count(f"[Source {len(sent) + 1}] {len(sent):02}.md, line 1\n\nlamp " + "river " * (180 + len(sent)))
    assert used + following > room  # one more would not fit
    assert {drop["stage"] for drop in value["retrieval"]["dropped"]} == {"window"}
    assert len(value["retrieval"]["dropped"]) == 20 - len(sent)
    assert any(f"{len(sent)} of 20 sources are sent" in warning for warning in value["warnings"])
