"""BERT, one text at a time, in plain numpy and float64: Devlin et al. 2019, from a checkpoint's own tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import erf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Tensors = Mapping[str, NDArray[Any]]


def gelu(x: Array) -> Array:
    """x · Φ(x), Φ the normal distribution (Hendrycks & Gimpel 2016)."""
    phi = np.array([0.5 * (1 + erf(value / sqrt(2))) for value in x.ravel()]).reshape(x.shape)
    return np.asarray(x * phi)


def softmax(x: Array) -> Array:
    """Along the last axis."""
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True))


class Bert:
    """`tensors`: names without `bert.`, of layer norms `weight` and `bias`."""

    def __init__(
        self,
        tensors: Tensors,
        *,
        layers: int,
        heads: int,
        epsilon: float = 1e-12,
        activation: Callable[[Array], Array] = gelu,
    ) -> None:
        self.tensors = {name: np.asarray(value, np.float64) for name, value in tensors.items()}
        self.layers, self.heads, self.epsilon, self.activation = layers, heads, epsilon, activation

    def linear(self, x: Array, name: str) -> Array:
        return np.asarray(x @ self.tensors[f"{name}.weight"].T + self.tensors[f"{name}.bias"])

    def norm(self, x: Array, name: str) -> Array:
        mean = x.mean(axis=-1, keepdims=True)
        variance = ((x - mean) ** 2).mean(axis=-1, keepdims=True)
        scaled = (x - mean) / np.sqrt(variance + self.epsilon)
        return np.asarray(scaled * self.tensors[f"{name}.weight"] + self.tensors[f"{name}.bias"])

    def attention(self, x: Array, name: str) -> Array:
        size = x.shape[1] // self.heads
        query, key, value = (self.linear(x, f"{name}.self.{part}") for part in ("query", "key", "value"))
        outputs = []
        for head in range(self.heads):
            own = slice(head * size, (head + 1) * size)
            weights = softmax(query[:, own] @ key[:, own].T / sqrt(size))
            outputs.append(weights @ value[:, own])
        return self.linear(np.concatenate(outputs, axis=1), f"{name}.output.dense")

    def states(self, tokens: Sequence[int], types: Sequence[int] | None = None) -> Array:
        """The last layer's states, (tokens, hidden)."""
        x = self.tensors["embeddings.word_embeddings.weight"][list(tokens)]
        x = x + self.tensors["embeddings.position_embeddings.weight"][: len(tokens)]
        x = x + self.tensors["embeddings.token_type_embeddings.weight"][list(types or [0] * len(tokens))]
        x = self.norm(x, "embeddings.LayerNorm")
        for number in range(self.layers):
            name = f"encoder.layer.{number}"
            x = self.norm(x + self.attention(x, f"{name}.attention"), f"{name}.attention.output.LayerNorm")
            inner = self.activation(self.linear(x, f"{name}.intermediate.dense"))
            x = self.norm(x + self.linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
        return x

    def splade(self, tokens: Sequence[int]) -> Array:
        """max over tokens of log(1 + relu(logits)), (vocabulary,) (Formal et al. 2021)."""
        x = self.activation(self.linear(self.states(tokens), "cls.predictions.transform.dense"))
        x = self.norm(x, "cls.predictions.transform.LayerNorm")
        logits = x @ self.tensors["embeddings.word_embeddings.weight"].T + self.tensors["cls.predictions.bias"]
        return np.asarray(np.log1p(np.maximum(logits, 0)).max(axis=0))

    def logits(self, tokens: Sequence[int], types: Sequence[int]) -> Array:
        """Of a sequence classifier, (labels,): a linear layer over the tanh of one over the first state."""
        pooled = np.tanh(self.linear(self.states(tokens, types)[:1], "pooler.dense"))
        return np.asarray(self.linear(pooled, "classifier")[0])
