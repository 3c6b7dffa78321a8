"""D11: a threshold that leaves the dense arm nothing is a warning that names the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.mark.spec("R4")
@pytest.mark.usefixtures("oaks")
@pytest.mark.parametrize("fusion", ["relative", "rrf"])
def test_a_threshold_that_leaves_the_dense_arm_nothing_is_named(shell: Shell, tmp_path: Path, fusion: str) -> None:
    indexes.write(tmp_path, {"ragcli.yaml": f"retrieval: {{min_score: 0.999}}\nfusion: {{method: {fusion}}}"})
    found = shell("query", "elm ash", "--json").json()
    assert [hit["document_id"] for hit in found["hits"]] == ["b"]
    assert found["warnings"] == [
        "retrieval.min_score = 0.999 left nothing of the dense arm: it is a cosine, and the best one is 0.577"
    ]
