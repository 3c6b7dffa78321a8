"""D17: lambda was turned round on one backend. 1 is pure relevance; 0 is as different as can be, after the best hit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.cases.plane import directions, records
from tests.commands import Shell
from tests.services import EmbeddingService


@pytest.mark.spec("P2")
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("1", ["a", "b", "c", "d", "e"]),  # by angle to the query
        ("0", ["a", "e", "d", "c", "b"]),  # e: 95 degrees from a; d: 55 and 40; c: 5 from a; b: 3 from a, 2 from c
    ],
)
def test_both_ends_of_lambda(
    shell: Shell, service: EmbeddingService, tmp_path: Path, value: str, expected: list[str]
) -> None:
    service.rule = directions
    indexes.write(tmp_path, {"records.jsonl": records()})
    assert shell("ingest", "records.jsonl").code == 0
    asked = shell("query", "query", "--mode", "vector", "--mmr", "--lambda", value, "--min-score", "-1", "--json")
    assert [hit["document_id"] for hit in asked.json()["hits"]] == expected
