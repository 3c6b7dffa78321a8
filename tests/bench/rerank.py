"""Reranking 20 candidates by a cross-encoder of MiniLM-L6's shape: `make bench-rerank`.

The weights are random (no package index ships a cross-encoder), the tokenizer is minilm's, the passages are of the
sample corpus, 80 words each. Ours, int8 and fp32, beside sentence-transformers' CrossEncoder with the same weights in
torch, where that is installed. Times are medians of rounds in turn, in one process; the fp32 logits are compared.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from ragcli.models.cross_encoder import CrossEncoder
from ragcli.models.onnx import cores
from ragcli.models.place import ModelPlace
from ragcli.options import ModelsSettings, Precision, RerankSettings, Settings
from ragcli.rerankers.onnx import OnnxReranker
from tests.bench import measure
from tests.conftest import own_models

CANDIDATES, WORDS, ROUNDS = 20, 80, 15
QUERY = "is painting covered by the warranty of an instrument"
Run = Callable[[], list[float]]


def passages() -> list[str]:
    """Twenty passages of the sample corpus."""
    words = " ".join(path.read_text("utf-8") for path in sorted((measure.ROOT / "sample_corpus").rglob("*.md"))).split()
    return [" ".join(words[start : start + WORDS]) for start in range(0, CANDIDATES * WORDS, WORDS)]


def write_model(folder: Path) -> None:
    """minilm's weights with a random head: the shape, and the costs, of ms-marco-MiniLM-L-6-v2."""
    from safetensors.numpy import load_file, save_file

    source = own_models().cache / "minilm"
    random = np.random.default_rng(0)
    tensors = {f"bert.{name}": tensor for name, tensor in load_file(source / "model.safetensors").items()}
    tensors["classifier.weight"] = random.normal(0, 0.5, (1, 384)).astype(np.float32)
    tensors["classifier.bias"] = np.zeros(1, np.float32)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((source / "config.json").read_text())
    config |= {"architectures": ["BertForSequenceClassification"], "num_labels": 1, "id2label": {"0": "LABEL_0"}}
    (folder / "config.json").write_text(json.dumps(config))
    shutil.copy(source / "tokenizer.json", folder)
    (folder / "tokenizer_config.json").write_text(
        '{"tokenizer_class": "BertTokenizerFast", "model_max_length": 512, "do_lower_case": true}'
    )


def ours(folder: Path, precision: Precision) -> Run:
    """Our reranker, open and warm."""
    settings = Settings(
        models=ModelsSettings(precision=precision), rerank=RerankSettings(reranker="onnx", model=str(folder))
    )
    reranker = OnnxReranker("bench", CrossEncoder.open(settings, ModelPlace(folder / "cache", offline=True)))
    texts = passages()
    return lambda: [float(score or 0) for score in reranker.judge(QUERY, texts).scores]


def theirs(folder: Path) -> Run:
    """sentence-transformers, in torch."""
    import torch
    from sentence_transformers import CrossEncoder as Peer

    torch.set_num_threads(cores())
    peer = Peer(str(folder), max_length=512, device="cpu", activation_fn=torch.nn.Identity())
    pairs = [(QUERY, text) for text in passages()]
    return lambda: [float(score) for score in peer.predict(pairs, batch_size=32, show_progress_bar=False)]


def timed(run: Run) -> float:
    """Milliseconds of one run."""
    start = perf_counter()
    run()
    return (perf_counter() - start) * 1000


def main() -> None:
    """Print and keep the table."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_model(folder)
        runs = {"ragcli int8": ours(folder, "int8"), "ragcli fp32": ours(folder, "fp32")}
        if find_spec("sentence_transformers"):
            runs["sentence-transformers"] = theirs(folder)
        scores = {name: run() for name, run in runs.items()}
        times: dict[str, list[float]] = {name: [] for name in runs}
        for number in range(ROUNDS):
            for name in list(runs) if number % 2 else list(runs)[::-1]:
                times[name].append(timed(runs[name]))
    exact, base = scores["ragcli fp32"], median(times["ragcli int8"])
    rows: list[dict[str, object]] = [
        {
            "reranker": name,
            "ms": median(times[name]),
            "x int8": median(times[name]) / base,
            "largest difference to fp32": max(abs(a - b) for a, b in zip(scores[name], exact, strict=True)),
        }
        for name in runs
    ]
    measure.table(f"reranking {CANDIDATES} passages of {WORDS} words", rows)
    measure.record("rerank", rows)


if __name__ == "__main__":
    main()
