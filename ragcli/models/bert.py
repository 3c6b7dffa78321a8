"""BERT encoders as ONNX graphs, from `config.json` and `model.safetensors` alone (spec M4). The owner of `onnx`.

The encoder is that of Devlin et al. 2019 (post-layer-norm, absolute positions), optionally with one of two heads: the
masked language model's, read as SPLADE does (`max over tokens of log(1 + relu(logits))`, Formal et al. 2021), or a
sequence classifier (pooler and one linear layer). Nodes are written in the fused form that onnxruntime computes
fastest (its `com.microsoft` domain); a session then has nothing left to optimise, which is most of its loading time.

Does not quantise weights (`quantize` does), keep files or make sessions (`onnx` does).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ragcli.errors import RagcliError
from ragcli.models import quantize
from ragcli.models.catalogue import CONFIG, WEIGHTS

if TYPE_CHECKING:
    import numpy as np
    import onnx
    from numpy.typing import NDArray

    from ragcli.options import Precision

    Tensor = NDArray[np.float32]
    Weights = Mapping[str, Tensor]

Head = Literal["encoder", "splade", "classifier"]
CONTRIB = "com.microsoft"
ACTIVATIONS = {"gelu": "Gelu", "gelu_new": "FastGelu", "gelu_pytorch_tanh": "FastGelu", "relu": "Relu"}
OPSET, IR = 17, 8
FLOOR = 0.2  # more than the -0.17 that GELU goes down to


class BertConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What of `config.json` shapes the graph; the defaults are BERT's own."""

    hidden_size: int
    num_hidden_layers: int
    num_attention_heads: int
    vocab_size: int
    max_position_embeddings: int = 512
    layer_norm_eps: float = 1e-12
    hidden_act: str = "gelu"
    model_type: str = "bert"
    position_embedding_type: str = "absolute"


def read_config(folder: Path) -> BertConfig:
    """The shape of the model in `folder`.

    Raises:
        RagcliError: no config, not a BERT encoder, or one of a kind that is not converted.
    """
    path = folder / CONFIG
    try:
        config = msgspec.json.decode(path.read_bytes(), type=BertConfig)
    except (OSError, msgspec.DecodeError) as error:
        raise RagcliError(f"{path}: not a model's config: {_reason(error)}", _by_hand()) from error
    for key, known in (
        ("model_type", ("bert",)),
        ("position_embedding_type", ("absolute",)),
        ("hidden_act", ACTIVATIONS),
    ):
        value = getattr(config, key)
        if value not in known:
            raise RagcliError(f"{path}: {key} {value!r} can't be converted, only {', '.join(known)}", _by_hand())
    return config


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _by_hand() -> str:
    return "give a folder that has the model as model.onnx"


def read_weights(folder: Path) -> Weights:
    """The tensors by their names in BERT's own checkpoints: no `bert.` before them, LayerNorm weight and bias.

    Raises:
        RagcliError: the file is missing or is not in the safetensors format.
    """
    import numpy as np
    import onnx  # noqa: F401 - teaches numpy bfloat16, by the package ml_dtypes
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = folder / WEIGHTS
    try:
        tensors = load_file(path)
    except (OSError, SafetensorError) as error:
        raise RagcliError(f"{path}: can't be read: {_reason(error)}", _by_hand()) from error
    except (TypeError, AttributeError) as error:  # numpy has no such type
        raise RagcliError(f"{path}: tensors of a type that can't be converted: {error}", _by_hand()) from error
    return {
        _plain(name): tensor.astype(np.float32) for name, tensor in tensors.items() if tensor.dtype.kind not in "iub"
    }


def _plain(name: str) -> str:
    return name.removeprefix("bert.").replace(".gamma", ".weight").replace(".beta", ".bias")


def export(folder: Path, *, head: Head = "encoder", precision: Precision = "int8") -> bytes:
    """The model in `folder` as the bytes of an ONNX file.

    Inputs: `input_ids`, `attention_mask` and `token_type_ids`, int64 (batch, sequence); a row's mask is ones, then
    zeros. Output: `last_hidden_state` (batch, sequence, hidden), `splade` (batch, vocabulary) or `logits` (batch,
    labels), all float32.

    Raises:
        RagcliError: the folder has no such model.
    """
    import onnx

    config = read_config(folder)
    builder = _Builder(config, read_weights(folder), precision)
    try:
        model = builder.model(head)
    except KeyError as error:
        raise RagcliError(f"{folder / WEIGHTS}: no tensor {error.args[0]}", f"is it a BERT {head}?") from error
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


class _Builder:
    """Collects the nodes and tensors of one graph. Names of nodes' outputs are those of the checkpoint's layers."""

    def __init__(self, config: BertConfig, weights: Weights, precision: Precision) -> None:
        self._config = config
        self._weights = weights
        self._is_int8 = precision == "int8"
        self._nodes: list[onnx.NodeProto] = []
        self._tensors: dict[str, onnx.TensorProto] = {}

    def model(self, head: Head) -> onnx.ModelProto:
        """The whole graph. Raises: KeyError with the name of a tensor that the checkpoint lacks."""
        from onnx import TensorProto, helper

        hidden = self._encoder()
        output, shape = {"encoder": self._states, "splade": self._splade, "classifier": self._classifier}[head](hidden)
        inputs = [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
            for name in ("input_ids", "attention_mask", "token_type_ids")
        ]
        outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)]
        graph = helper.make_graph(self._nodes, "bert", inputs, outputs, list(self._tensors.values()))
        domains = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        return helper.make_model(graph, opset_imports=domains, ir_version=IR, producer_name="ragcli")

    # --- the encoder

    def _encoder(self) -> str:
        mask = self._add("Cast", ["attention_mask"], "mask", to=_type("INT32"))
        norm = "embeddings.LayerNorm"
        hidden = self._norm(self._embeddings(), norm)
        for number in range(self._config.num_hidden_layers):
            hidden, norm = self._layer(hidden, mask, f"encoder.layer.{number}", norm)
        return hidden

    def _embeddings(self) -> str:
        name = "embeddings.token_type_embeddings"
        types = self._add("Gather", [self._own(f"{name}.weight"), "token_type_ids"], name)
        length = self._add("Shape", ["input_ids"], "length", start=1, end=2)
        name = "embeddings.position_embeddings"
        zero = self._constant("zero", [0])
        positions = self._add("Slice", [self._own(f"{name}.weight"), zero, length, zero], name)
        words = self._add("Add", [self._words(), types], "embeddings.words_and_types")
        return self._add("Add", [words, positions], "embeddings.sum")

    def _words(self) -> str:
        name = "embeddings.word_embeddings"
        if not self._is_int8:
            return self._add("Gather", [self._own(f"{name}.weight"), "input_ids"], name)
        table, scales = quantize.rows(self._weights[f"{name}.weight"])
        found = self._add("Gather", [self._tensor(f"{name}.int8", table), "input_ids"], f"{name}.found")
        scale = self._add("Gather", [self._tensor(f"{name}.scales", scales), "input_ids"], f"{name}.scale")
        return self._add("Mul", [self._add("Cast", [found], f"{name}.float", to=_type("FLOAT")), scale], name)

    def _layer(self, hidden: str, mask: str, name: str, norm: str) -> tuple[str, str]:
        """One layer over `hidden`, which `norm` gave: the new states and the norm that gave those."""
        attended = self._attention(hidden, mask, f"{name}.attention", norm)
        mixed = self._linear(attended, f"{name}.attention.output.dense")
        norm = f"{name}.attention.output.LayerNorm"
        hidden = self._norm(self._add("Add", [mixed, hidden], f"{name}.attention.sum"), norm)
        inner = self._activated(hidden, f"{name}.intermediate.dense", norm)
        outer = self._row_by_row(inner, f"{name}.output.dense")
        norm = f"{name}.output.LayerNorm"
        return self._norm(self._add("Add", [outer, hidden], f"{name}.sum"), norm), norm

    def _attention(self, hidden: str, mask: str, name: str, norm: str) -> str:
        weight, own_bias = self._query_key_value(f"{name}.self")
        bias = self._tensor(f"{name}.bias", own_bias)
        heads = self._config.num_attention_heads
        if not self._is_int8:
            inputs = [hidden, self._tensor(f"{name}.weight", weight), bias, mask]
            return self._add("Attention", inputs, name, CONTRIB, num_heads=heads)
        hidden, weight = self._evened(hidden, weight, name, norm)
        integers, scales = quantize.columns(weight)
        value, scale, zero = self._dynamic(hidden, f"{name}.input")
        inputs = [value, self._tensor(f"{name}.int8", integers), bias, scale, self._tensor(f"{name}.scales", scales)]
        return self._add("QAttention", [*inputs, mask, zero], name, CONTRIB, num_heads=heads)

    def _query_key_value(self, name: str) -> tuple[Tensor, Tensor]:
        import numpy as np

        parts = [f"{name}.{part}" for part in ("query", "key", "value")]
        weight = np.concatenate([self._weights[f"{part}.weight"].T for part in parts], axis=1)
        return weight, np.concatenate([self._weights[f"{part}.bias"] for part in parts])

    # --- the heads: each gives the name of its output and its shape

    def _states(self, hidden: str) -> tuple[str, list[str | int]]:
        name = self._add("Identity", [hidden], "last_hidden_state")
        return name, ["batch", "sequence", self._config.hidden_size]

    def _splade(self, hidden: str) -> tuple[str, list[str | int]]:
        name = "cls.predictions"
        inner = self._activated(hidden, f"{name}.transform.dense")
        inner = self._norm(inner, f"{name}.transform.LayerNorm")
        table = self._weights.get(f"{name}.decoder.weight", self._weights["embeddings.word_embeddings.weight"])
        logits = self._product(inner, table.T, f"{name}.decoder", self._weights[f"{name}.bias"])
        mask = self._add("Cast", ["attention_mask"], "mask.float", to=_type("FLOAT"))
        mask = self._add("Unsqueeze", [mask, self._constant("last", [2])], "mask.column")
        kept = self._add("Mul", [self._add("Relu", [logits], f"{name}.relu"), mask], f"{name}.kept")
        # log(1 + x) rises with x: the largest first, then its logarithm
        largest = self._add("ReduceMax", [kept], f"{name}.largest", axes=[1], keepdims=0)
        one = self._add("Add", [largest, self._constant("one", 1.0)], f"{name}.plus_one")
        return self._add("Log", [one], "splade"), ["batch", self._config.vocab_size]

    def _classifier(self, hidden: str) -> tuple[str, list[str | int]]:
        first = self._add("Gather", [hidden, self._constant("first", 0)], "first_state", axis=1)
        pooled = self._add("Tanh", [self._exact(first, "pooler.dense")], "pooler")
        logits = self._add("Identity", [self._exact(pooled, "classifier")], "logits")
        return logits, ["batch", self._weights["classifier.weight"].shape[0]]

    # --- layers

    def _linear(self, value: str, name: str) -> str:
        return self._product(value, self._weights[f"{name}.weight"].T, name, self._weights[f"{name}.bias"])

    def _row_by_row(self, value: str, name: str) -> str:
        """A linear layer over what an activation gave: each row is brought to a largest value of 1 and back again.

        Rows differ a lot there ([CLS] and [SEP] most of all), and one scale for all of them was most of the loss.
        """
        if not self._is_int8:
            return self._linear(value, name)
        largest = self._add("ReduceMax", [value], f"{name}.largest", axes=[-1], keepdims=1)
        size = self._add("Max", [largest, self._constant("floor", FLOOR)], f"{name}.size")
        scaled = self._add("Div", [value, size], f"{name}.scaled")
        product = self._quantised(scaled, self._weights[f"{name}.weight"].T, name, "")
        bias = self._tensor(f"{name}.bias", self._weights[f"{name}.bias"])
        return self._add("Add", [self._add("Mul", [product, size], f"{name}.unscaled"), bias], name)

    def _activated(self, value: str, name: str, norm: str | None = None) -> str:
        """A linear layer and the activation; `norm` gave `value`."""
        weight = self._weights[f"{name}.weight"].T
        if self._is_int8 and norm:
            value, weight = self._evened(value, weight, name, norm)
        kind = ACTIVATIONS[self._config.hidden_act]
        inner = self._product(value, weight, name, self._weights[f"{name}.bias"])
        domain = "" if kind == "Relu" else CONTRIB
        return self._add(kind, [inner], f"{name}.activated", domain)

    def _product(self, value: str, weight: Tensor, name: str, bias: Tensor) -> str:
        """value · weight + bias."""
        given = self._tensor(f"{name}.bias", bias)
        if not self._is_int8:
            product = self._add("MatMul", [value, self._tensor(f"{name}.weight", weight)], f"{name}.product")
            return self._add("Add", [product, given], name)
        return self._quantised(value, weight, name, given)

    def _quantised(self, value: str, weight: Tensor, name: str, bias: str) -> str:
        integers, scales = quantize.columns(weight)
        inputs = [value, self._tensor(f"{name}.int8", integers), self._tensor(f"{name}.scales", scales), "", bias]
        output = name if bias else f"{name}.product"
        return self._add("DynamicQuantizeMatMul", inputs, output, CONTRIB)

    def _exact(self, value: str, name: str) -> str:
        """A linear layer in float32: the last ones are small, and what they lose is lost."""
        inputs = [value, self._own(f"{name}.weight"), self._own(f"{name}.bias")]
        return self._add("Gemm", inputs, name, transB=1)

    def _evened(self, value: str, weight: Tensor, name: str, norm: str) -> tuple[str, Tensor]:
        factor = quantize.evening(weight, self._weights[f"{norm}.weight"], self._weights[f"{norm}.bias"])
        inverse = self._tensor(f"{name}.evening", 1 / factor)
        return self._add("Mul", [value, inverse], f"{name}.evened"), weight * factor[:, None]

    def _norm(self, value: str, name: str) -> str:
        # onnxruntime 1.32 computes Add and LayerNormalization five times as fast as its own SkipLayerNormalization
        inputs = [value, self._own(f"{name}.weight"), self._own(f"{name}.bias")]
        return self._add("LayerNormalization", inputs, name, axis=-1, epsilon=self._config.layer_norm_eps)

    # --- nodes and tensors

    def _dynamic(self, value: str, name: str) -> tuple[str, str, str]:
        outputs = (f"{name}.int8", f"{name}.scale", f"{name}.zero")
        self._node("DynamicQuantizeLinear", [value], outputs)
        return outputs

    def _add(self, kind: str, inputs: list[str], name: str, domain: str = "", **attributes: Any) -> str:
        self._node(kind, inputs, (name,), domain, **attributes)
        return name

    def _node(
        self, kind: str, inputs: list[str], outputs: tuple[str, ...], domain: str = "", **attributes: Any
    ) -> None:
        from onnx import helper

        self._nodes.append(helper.make_node(kind, inputs, outputs, outputs[0], domain=domain, **attributes))

    def _own(self, name: str) -> str:
        return self._tensor(name, self._weights[name])

    def _constant(self, name: str, value: list[int] | float) -> str:
        import numpy as np

        return self._tensor(name, np.array(value, np.float32 if isinstance(value, float) else np.int64))

    def _tensor(self, name: str, value: NDArray[Any]) -> str:
        import numpy as np
        from onnx import numpy_helper

        if name not in self._tensors:
            self._tensors[name] = numpy_helper.from_array(np.array(value, order="C"), name)
        return name


def _type(name: str) -> int:
    from onnx import TensorProto

    return int(TensorProto.DataType.Value(name))
