"""D47: lost in the middle. The best stand at both ends, scores and ranks stay, and the table says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell


@pytest.fixture
def six(shell: Shell, tmp_path: Path) -> None:
    """Six documents; the fewer the words beside it, the better the gauge."""
    indexes.write(tmp_path / "d", {f"{n}.md": "gauge" + " word" * n + "\n" for n in range(1, 7)})
    assert shell("ingest", "d").code == 0


@pytest.mark.spec("P10", "C2")
@pytest.mark.usefixtures("six")
@pytest.mark.parametrize(
    ("k", "expected"), [(6, [1, 3, 5, 6, 4, 2]), (5, [1, 3, 5, 4, 2]), (2, [1, 2]), (1, [1])]
)  # fmt: skip
def test_even_places_from_the_left_odd_from_the_right(shell: Shell, k: int, expected: list[int]) -> None:
    plain = shell("query", "gauge", "-k", str(k), "--json").json()["hits"]
    turned = shell("query", "gauge", "-k", str(k), "--lost-in-the-middle", "--json").json()["hits"]
    assert [hit["rank"] for hit in turned] == expected
    assert [hit["position"] for hit in turned] == list(range(1, k + 1))
    scores = {hit["document_id"]: hit["score"] for hit in plain}
    assert {hit["document_id"]: hit["score"] for hit in turned} == scores
    assert [hit["document_id"] for hit in turned] == [plain[rank - 1]["document_id"] for rank in expected]


@pytest.mark.spec("P10", "C2")
@pytest.mark.usefixtures("six")
def test_text_says_that_it_is_reordered(shell: Shell) -> None:
    shown = shell("query", "gauge", "-k", "6", "--lost-in-the-middle")
    assert "reordered" in shown.out + shown.err
    assert [line[0] for line in shown.out.splitlines() if line[:2] in {f"{n}." for n in range(1, 7)}] == list("135642")
    assert "reordered" not in "".join(shell("query", "gauge", "-k", "6")[1:])


@pytest.mark.spec("P10")
@pytest.mark.usefixtures("six")
def test_without_hits_there_is_nothing_to_reorder(shell: Shell) -> None:
    assert shell("query", "kestrel", "--lost-in-the-middle", "--json").json()["hits"] == []
