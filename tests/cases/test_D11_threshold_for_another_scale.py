"""D11: a threshold that leaves the dense arm nothing is a warning that names the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell
from tests.services import EmbeddingService


@pytest.fixture
def docs(shell: Shell, service: EmbeddingService, tmp_path: Path) -> None:
    texts = {"a": "oak", "b": "oak elm ash fir yew bay", "c": "stone sand clay"}
    lines = (f'{{"_id": "{name}", "text": "{text}"}}\n' for name, text in texts.items())
    indexes.write(tmp_path, {"records.jsonl": "".join(lines)})
    assert shell("ingest", "records.jsonl").code == 0


@pytest.mark.spec("R4")
@pytest.mark.usefixtures("docs")
@pytest.mark.parametrize("fusion", ["relative", "rrf"])
def test_a_threshold_that_leaves_the_dense_arm_nothing_is_named(shell: Shell, tmp_path: Path, fusion: str) -> None:
    indexes.write(tmp_path, {"ragcli.yaml": f"retrieval: {{min_score: 0.999}}\nfusion: {{method: {fusion}}}"})
    found = shell("query", "elm ash", "--json").json()
    assert [hit["document_id"] for hit in found["hits"]] == ["b"]
    assert found["warnings"] == [
        "retrieval.min_score = 0.999 left nothing of the dense arm: it is a cosine, and the best one is 0.577"
    ]
