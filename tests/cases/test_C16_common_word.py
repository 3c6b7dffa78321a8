"""C16: the score was 0 when a word stands in more than half of the documents. The idf is never below 0."""

from __future__ import annotations

from math import log
from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("I32")
@pytest.mark.parametrize("holders", [6, 9, 10])
def test_a_common_word_scores_above_zero(shell: Shell, tmp_path: Path, holders: int) -> None:
    words = ["gauge"] * holders + ["pump"] * (10 - holders)
    indexes.write(tmp_path / "d", {f"{n}.md": f"{word} {n}\n" for n, word in enumerate(words)})
    shell("ingest", "d")
    scores = [hit["score"] for hit in shell("query", "gauge", "-k", "10", "--format", "json").json()["hits"]]
    idf = log(1 + (10 - holders + 0.5) / (holders + 0.5))
    assert scores == pytest.approx([idf] * holders)  # all of one length: the tf part is 1
    assert min(scores) > 0
