"""D16: MMR's lambda was ignored, and 0.1 and 0.9 gave the same. Worked by hand on directions in a plane.

With lambda 0.9 the next best after `a` is `b` (0.9 cos 8 - 0.1 cos 3 = 0.791), then `c` (0.9 cos 10 - 0.1 cos 2 =
0.786). With 0.1 it is `e` (0.1 cos 100 - 0.9 cos 95 = 0.061), then `d` (0.1 cos 60 - 0.9 cos 40 = -0.639; of `b` it
is 0.1 cos 8 - 0.9 cos 3 = -0.800).
"""

from __future__ import annotations

from math import cos, radians
from pathlib import Path

import pytest

from tests import indexes
from tests.cases.plane import directions, records
from tests.commands import Shell
from tests.services import EmbeddingService


@pytest.fixture
def plane(shell: Shell, service: EmbeddingService, tmp_path: Path) -> None:
    """The index of the five directions."""
    service.rule = directions
    indexes.write(tmp_path, {"records.jsonl": records()})
    assert shell("ingest", "records.jsonl").code == 0


@pytest.mark.spec("P2")
@pytest.mark.usefixtures("plane")
@pytest.mark.parametrize(("value", "expected"), [("0.9", ["a", "b", "c"]), ("0.1", ["a", "e", "d"])])
def test_lambda_decides(shell: Shell, value: str, expected: list[str]) -> None:
    asked = ("query", "query", "--mode", "vector", "--mmr", "--lambda", value, "--min-score", "-1", "-k", "3")
    assert [hit["document_id"] for hit in shell(*asked, "--json").json()["hits"]] == expected


@pytest.mark.spec("P2", "R2")
@pytest.mark.usefixtures("plane")
def test_the_score_is_the_sum_of_what_it_is_made_of(shell: Shell) -> None:
    asked = ("query", "query", "--mode", "vector", "--mmr", "--lambda", "0.9", "--min-score", "-1", "-k", "3")
    hits = shell(*asked, "--json").json()["hits"]
    wanted = [
        0.9 * cos(radians(5)), 0.9 * cos(radians(8)) - 0.1 * cos(radians(3)),
        0.9 * cos(radians(10)) - 0.1 * cos(radians(2)),
    ]  # fmt: skip
    assert [hit["score"] for hit in hits] == pytest.approx(wanted, abs=1e-3)  # vectors are stored as float16
    assert {hit["score_kind"] for hit in hits} == {"mmr"}
    for hit in hits:
        assert sum(hit["trace"][-1]["parts"].values()) == pytest.approx(hit["score"], abs=1e-12)
