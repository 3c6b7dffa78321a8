"""A BERT of 2 layers with fixed random weights and a tokenizer of a few words: a model to have where there is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.reference.bert import Bert

HIDDEN, INNER, LAYERS, HEADS, POSITIONS, EPSILON = 16, 32, 2, 4, 24, 1e-6
WORDS = (
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j",
    "one", "two", "three", "four", "five", "##s",
)  # fmt: skip
CONFIG = {
    "model_type": "bert", "hidden_size": HIDDEN, "intermediate_size": INNER, "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS, "vocab_size": len(WORDS), "max_position_embeddings": POSITIONS, "type_vocab_size": 2,
    "layer_norm_eps": EPSILON, "hidden_act": "gelu",
}  # fmt: skip
Tensors = dict[str, NDArray[np.float32]]


def tensors(seed: int = 0, labels: int = 1) -> Tensors:
    """All the tensors that an encoder and the two heads have."""
    random = np.random.default_rng(seed)
    found: Tensors = {}

    def put(name: str, *shape: int, around: float = 0.0, by: float = 0.3) -> None:
        found[name] = (around + by * random.standard_normal(shape)).astype(np.float32)

    def linear(name: str, inputs: int, outputs: int) -> None:
        put(f"{name}.weight", outputs, inputs)
        put(f"{name}.bias", outputs)

    def norm(name: str) -> None:
        put(f"{name}.weight", HIDDEN, around=1.0)
        put(f"{name}.bias", HIDDEN)

    for kind, count in (("word", len(WORDS)), ("position", POSITIONS), ("token_type", 2)):
        put(f"embeddings.{kind}_embeddings.weight", count, HIDDEN, by=1.0)
    norm("embeddings.LayerNorm")
    for number in range(LAYERS):
        name = f"encoder.layer.{number}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            linear(f"{name}.attention.{part}", HIDDEN, HIDDEN)
        norm(f"{name}.attention.output.LayerNorm")
        linear(f"{name}.intermediate.dense", HIDDEN, INNER)
        linear(f"{name}.output.dense", INNER, HIDDEN)
        norm(f"{name}.output.LayerNorm")
    linear("pooler.dense", HIDDEN, HIDDEN)
    linear("classifier", HIDDEN, labels)
    linear("cls.predictions.transform.dense", HIDDEN, HIDDEN)
    norm("cls.predictions.transform.LayerNorm")
    put("cls.predictions.bias", len(WORDS))
    return found


def reference(found: Mapping[str, NDArray[Any]]) -> Bert:
    """The plain forward pass over these tensors."""
    return Bert(found, layers=LAYERS, heads=HEADS, epsilon=EPSILON)


def write_model(folder: Path, found: Mapping[str, NDArray[Any]], **config: object) -> None:
    """`config.json` and `model.safetensors`."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | config))
    save_file(dict(found), folder / "model.safetensors")


def write_tokenizer(folder: Path) -> None:
    """`tokenizer.json`: words in lower case, [CLS] and [SEP] around; with a truncation and a padding, both a trap."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordPiece
    from tokenizers.normalizers import Lowercase
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    tokenizer = Tokenizer(WordPiece({word: number for number, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_truncation(4)
    tokenizer.enable_padding(length=6)
    tokenizer.save(str(folder / "tokenizer.json"))


def tokens(text: str) -> list[int]:
    """The ids of words of the vocabulary, special tokens around."""
    return [2, *(WORDS.index(word) for word in text.split()), 3]


def write_folder(folder: Path, found: Mapping[str, NDArray[Any]] | None = None) -> Path:
    """A whole model: weights, config, tokenizer."""
    write_model(folder, found or tensors())
    write_tokenizer(folder)
    return folder
