"""The exporter: every head against a plain forward pass, on a toy and on the catalogue's models."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ragcli.errors import RagcliError
from ragcli.models.bert import Head, export, read_weights
from ragcli.options import Precision
from tests.models import toy_bert
from tests.models.toy_bert import reference, tensors, write_model
from tests.reference.bert import Bert

TEXT = [2, 4, 9, 15, 7, 3]
TYPES = [0, 0, 0, 1, 1, 1]


def outputs(model: bytes, rows: list[list[int]], types: list[list[int]] | None = None) -> NDArray[np.float32]:
    """The only output of an ONNX model for a padded batch."""
    import onnxruntime as ort

    longest = max(map(len, rows))
    padded = np.array([row + [0] * (longest - len(row)) for row in rows])
    mask = np.array([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
    feed = {"input_ids": padded, "attention_mask": mask, "token_type_ids": np.array(types or np.zeros_like(padded))}
    session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(None, feed)[0])


@pytest.mark.spec("M4")
def test_an_encoder_gives_the_states_of_the_plain_forward_pass(tmp_path: Path) -> None:
    write_model(tmp_path, tensors())
    found = outputs(export(tmp_path, precision="fp32"), [TEXT], [TYPES])
    assert found.shape == (1, len(TEXT), toy_bert.HIDDEN)
    np.testing.assert_allclose(found[0], reference(tensors()).states(TEXT, TYPES), atol=1e-5)


@pytest.mark.spec("M4")
def test_padding_is_masked(tmp_path: Path) -> None:
    write_model(tmp_path, tensors())
    short, plain = [2, 5, 3], reference(tensors())
    states = outputs(export(tmp_path, precision="fp32"), [TEXT, short])[1]
    np.testing.assert_allclose(states[: len(short)], plain.states(short), atol=1e-5)
    terms = outputs(export(tmp_path, head="splade", precision="fp32"), [TEXT, short])[1]
    np.testing.assert_allclose(terms, plain.splade(short), atol=1e-5)


@pytest.mark.spec("M4")
def test_the_masked_language_model_gives_terms_as_splade_weighs_them(tmp_path: Path) -> None:
    write_model(tmp_path, tensors())
    found = outputs(export(tmp_path, head="splade", precision="fp32"), [TEXT])
    assert found.shape == (1, len(toy_bert.WORDS))
    np.testing.assert_allclose(found[0], reference(tensors()).splade(TEXT), atol=1e-5)


@pytest.mark.spec("M4")
@pytest.mark.parametrize("labels", [1, 3])
@pytest.mark.parametrize(("precision", "within"), [("fp32", 1e-5), ("int8", 0.05)])
def test_a_classifier_gives_logits(tmp_path: Path, labels: int, precision: Precision, within: float) -> None:
    write_model(tmp_path, tensors(labels=labels))
    found = outputs(export(tmp_path, head="classifier", precision=precision), [TEXT], [TYPES])
    assert found.shape == (1, labels)
    np.testing.assert_allclose(found[0], reference(tensors(labels=labels)).logits(TEXT, TYPES), atol=within)


@pytest.mark.spec("M4")
def test_names_of_older_checkpoints_are_the_same_tensors(tmp_path: Path) -> None:
    def older(name: str) -> str:
        name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        return name if name.startswith(("cls.", "classifier.")) else f"bert.{name}"

    write_model(tmp_path / "new", tensors())
    write_model(tmp_path / "old", {older(name): value for name, value in tensors().items()})
    heads: tuple[Head, ...] = ("encoder", "splade", "classifier")
    for head in heads:
        assert export(tmp_path / "old", head=head) == export(tmp_path / "new", head=head)


@pytest.mark.spec("M4")
def test_half_precision_checkpoints_are_read(tmp_path: Path) -> None:
    halved = {name: value.astype(np.float16) for name, value in tensors().items()}
    write_model(tmp_path, halved)
    found = outputs(export(tmp_path, precision="fp32"), [TEXT])
    np.testing.assert_allclose(found[0], reference(halved).states(TEXT), atol=1e-5)


@pytest.mark.spec("M4")
def test_bfloat16_checkpoints_are_read(tmp_path: Path) -> None:
    """bfloat16 is the upper half of a float32 (Intel, BFLOAT16 numerics definition, 2018)."""
    cut = {name: (value.view(np.uint32) & 0xFFFF0000).view(np.float32) for name, value in tensors().items()}
    write_model(tmp_path, cut)
    write_safetensors(
        tmp_path / "model.safetensors", "BF16", {n: (v.view("<u4") >> 16).astype("<u2") for n, v in cut.items()}
    )
    found = outputs(export(tmp_path, precision="fp32"), [TEXT])
    np.testing.assert_allclose(found[0], reference(cut).states(TEXT), atol=1e-5)


def test_tensors_of_a_type_that_numpy_has_not_are_told(tmp_path: Path) -> None:
    write_model(tmp_path, tensors())
    write_safetensors(tmp_path / "model.safetensors", "F8_E4M3", {"x": np.zeros(2, np.uint8)})
    with pytest.raises(RagcliError, match=r"model\.safetensors: tensors of a type that can't be converted: .*float8"):
        export(tmp_path)


def write_safetensors(path: Path, kind: str, words: Mapping[str, NDArray[np.unsignedinteger]]) -> None:
    """The format by hand, for types that numpy can't write: length of the JSON header, the header, the data."""
    header, at = {}, 0
    for name, value in words.items():
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": [at, at + value.nbytes]}
        at += value.nbytes
    encoded = json.dumps(header).encode()
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + b"".join(one.tobytes() for one in words.values()))


@pytest.mark.spec("M4")
@pytest.mark.parametrize("kind", ["relu", "gelu_new"])
def test_other_activations(tmp_path: Path, kind: str) -> None:
    def tanh_gelu(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))

    write_model(tmp_path, tensors(), hidden_act=kind)
    plain = reference(tensors())
    plain.activation = tanh_gelu if kind == "gelu_new" else lambda x: np.maximum(x, 0)
    found = outputs(export(tmp_path, precision="fp32"), [TEXT])
    np.testing.assert_allclose(found[0], plain.states(TEXT), atol=1e-5)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "roberta"}, "model_type 'roberta' can't be converted, only bert"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type 'relative_key' can't be converted"),
        ({"hidden_act": "swish"}, "hidden_act 'swish' can't be converted"),
        ({"hidden_size": "wide"}, "not a model's config: Expected `int`, got `str`"),
    ],
)
def test_what_is_no_bert_is_refused_by_name(tmp_path: Path, config: dict[str, object], message: str) -> None:
    write_model(tmp_path, tensors(), **config)
    with pytest.raises(RagcliError) as caught:
        export(tmp_path)
    assert str(tmp_path / "config.json") in caught.value.message
    assert message in caught.value.message
    assert "model.onnx" in caught.value.hint


def test_a_checkpoint_without_a_tensor_or_no_checkpoint(tmp_path: Path) -> None:
    some = tensors()
    del some["cls.predictions.bias"]
    write_model(tmp_path, some)
    export(tmp_path)
    with pytest.raises(RagcliError, match=r"no tensor cls\.predictions\.bias"):
        export(tmp_path, head="splade")
    (tmp_path / "model.safetensors").write_bytes(b"not a checkpoint")
    with pytest.raises(RagcliError, match=r"model\.safetensors: can't be read"):
        export(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(RagcliError, match=r"model\.safetensors: can't be read"):
        export(tmp_path)


@pytest.mark.spec("M4")
def test_splade_tiny_gives_the_terms_of_the_plain_forward_pass(pulled: Callable[[str], Path]) -> None:
    from tokenizers import Tokenizer

    folder = pulled("splade-tiny")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokens = tokenizer.encode("how long do the batteries of the rain gauge last in winter").ids
    expected = Bert(read_weights(folder), layers=2, heads=2).splade(tokens)
    found = outputs(export(folder, head="splade", precision="fp32"), [tokens])[0]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    rounded = outputs(export(folder, head="splade"), [tokens])[0]
    assert rounded @ expected / np.linalg.norm(rounded) / np.linalg.norm(expected) >= 0.99
