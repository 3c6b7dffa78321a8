"""The presets in configs/."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ragcli.config import load, preset_names, setting_keys
from ragcli.options import Settings

FOLDER = Path(__file__).parents[1] / "configs"


@pytest.mark.spec("C4")
def test_default_holds_every_key_with_its_default(tmp_path: Path) -> None:
    result = load(config=Path("default"), flags={}, environ={}, cwd=tmp_path, home=None)
    assert result.settings == Settings()
    assert [key for key in setting_keys() if result.origins[key] == "default"] == []


@pytest.mark.spec("C4")
def test_every_key_of_default_has_a_comment() -> None:
    lines = (FOLDER / "default.yaml").read_text(encoding="utf-8").splitlines()
    keys = [line for line in lines if re.match(r"  \w", line)]
    assert len(keys) == len(setting_keys())
    assert [line for line in keys if "#" not in line] == []


@pytest.mark.spec("C4")
@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.yaml")))
def test_every_preset_loads_and_says_what_it_is_for(name: str, tmp_path: Path) -> None:
    assert name in preset_names()
    assert (FOLDER / f"{name}.yaml").read_text(encoding="utf-8").startswith("# ")
    load(config=Path(name), flags={}, environ={}, cwd=tmp_path, home=None)


DESCRIBED: dict[str, dict[str, Any]] = {
    "keyword": {
        "models.embedder": "none", "retrieval.mode": "keyword",
        "analyzer.stemmer": "none", "analyzer.stopwords": "none",
    },
    "english": {
        "analyzer.stemmer": "english", "analyzer.stopwords": "english", "bm25.k1": 1.2, "bm25.b": 0.75,
        "fusion.method": "zscore", "fusion.weights": {"bm25": 0.5, "dense": 0.5}, "retrieval.mode": "hybrid",
    },
    "fast": {"models.embedder": "fast", "retrieval.mode": "hybrid"},
    "rag-net": {
        "retrieval.mode": "vector", "retrieval.top_k": 5, "retrieval.min_score": -1.0, "fusion.method": "rrf",
        "fusion.rrf_k": 60, "fusion.weights": {"bm25": 1.0, "dense": 1.0}, "fusion.normalize": False,
        "retrieval.mmr": False, "retrieval.mmr_lambda": 0.5, "retrieval.redundancy_threshold": 0.95,
        "parents.size": 2048, "parents.overlap": 100, "rerank.final": "reranker_only",
    },
    "semantic-memory": {
        "retrieval.mode": "vector", "retrieval.top_k": 5, "retrieval.candidate_count": 20, "retrieval.min_score": 0.6,
        "rerank.min_score": 0.1, "rerank.skip_when_few": True, "rerank.reranker": "none",
    },
    "mythosia": {
        "retrieval.mode": "hybrid", "retrieval.top_k": 5, "retrieval.candidate_multiplier": 3,
        "retrieval.min_score": 0.6, "fusion.method": "rrf", "fusion.normalize": True,
        "rerank.final": "reranker_only", "rerank.retrieval_weight": 0.65,
    },
    "agentic-dart": {
        "retrieval.mode": "vector", "retrieval.top_k": 4, "retrieval.mmr": True, "retrieval.mmr_lambda": 0.7,
    },
    "ollama": {"chat.base_url": "http://127.0.0.1:11434/v1", "chat.context_window": 4096},
    "vllm": {"chat.base_url": "http://127.0.0.1:8000/v1", "chat.context_window": 32768},
}  # fmt: skip


def value(settings: Settings, key: str) -> Any:
    """What stands at a dotted key."""
    section, _, name = key.partition(".")
    return getattr(getattr(settings, section), name)


@pytest.mark.spec("C4")
@pytest.mark.parametrize("name", DESCRIBED)
def test_a_preset_is_what_its_system_is_described_as(name: str, tmp_path: Path) -> None:
    settings = load(config=Path(name), flags={}, environ={}, cwd=tmp_path, home=None).settings
    assert {key: value(settings, key) for key in DESCRIBED[name]} == DESCRIBED[name]


def test_every_preset_is_described() -> None:
    assert {*DESCRIBED, "default"} == set(preset_names())


@pytest.mark.parametrize(("name", "candidates"), [("semantic-memory", 20), ("mythosia", 15), ("rag-net", 15)])
def test_a_preset_gives_its_stages_as_many_candidates_as_its_system(name: str, candidates: int, tmp_path: Path) -> None:
    settings = load(config=Path(name), flags={}, environ={}, cwd=tmp_path, home=None).settings
    assert settings.retrieval.candidates == candidates
    if name != "semantic-memory":
        assert settings.fusion.depth <= candidates  # so the fusion sees no more of each arm
