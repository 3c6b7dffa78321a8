"""E02: an embedder of the same dimension that the index was not built with is refused, by what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import indexes
from tests.commands import Shell
from tests.models import toy_bert
from tests.services import EmbeddingService


@pytest.mark.spec("I36")
def test_another_name_is_refused(
    shell: Shell, service: EmbeddingService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexes.write(tmp_path / "docs", {"a.txt": "an oak"})
    assert shell("ingest", "docs").code == 0
    monkeypatch.setenv("RAGCLI_MODELS__EMBEDDER", "openai:other")
    refused = shell("query", "oak")
    assert refused.code == 3
    assert "'openai:other'" in refused.err
    monkeypatch.delenv("RAGCLI_MODELS__EMBEDDER")  # nobody chose: the index keeps its own
    assert shell("query", "oak", "--json").json()["hits"][0]["arms"]["dense"]["rank"] == 1


@pytest.mark.spec("I36", "M5")
def test_a_folder_whose_weights_changed_is_refused_by_its_fingerprint(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAGCLI_MODELS", str(tmp_path / "models"))
    monkeypatch.setenv("RAGCLI_MODELS__EMBEDDER", "./toy")
    toy_bert.write_folder(tmp_path / "toy")
    indexes.write(tmp_path / "docs", {"a.txt": "one two three"})
    assert shell("ingest", "docs").code == 0
    assert shell("query", "two", "--json").json()["mode"] == "hybrid"
    toy_bert.write_folder(tmp_path / "toy", toy_bert.tensors(seed=1))
    refused = shell("query", "two")
    assert refused.code == 3
    toy = str(tmp_path / "toy")
    assert f"the index was built with {toy!r} (16 dimensions, int8, #" in refused.err
    assert f"but there is {toy!r} (16 dimensions, int8, #" in refused.err
    assert "ragcli ingest --re-embed" in refused.err
    assert shell("ingest", "--re-embed").code == 0
    assert shell("query", "two").code == 0
