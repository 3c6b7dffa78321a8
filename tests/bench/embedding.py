"""Embedding rate: minilm here against the bare session and other runtimes on the same weights: `make bench-embedding`.

Passages of 110 tokens cut from the sample corpus, in this process, in turn. "bare session" is the very network on token
ids that are there already, its output thrown away. "fp32 batches" is how ONNX embedders commonly run it: fp32, padded
batches of 32, all cores on each. sentence-transformers takes part where it is installed. The cold part starts processes
that embed one query, and says what they spent their time on.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import msgspec

from tests.bench import measure
from tests.conftest import own_models

if TYPE_CHECKING:
    from ragcli.models.transformer import TransformerEmbedder

TOKENS, PASSAGES, ROUNDS, COLD_ROUNDS, BATCH = 110, 128, 7, 15, 32
RUN = Callable[[list[str]], object]
# a process of its own: milliseconds of each step, as JSON
COLD = """
import sys, time
marks = [time.perf_counter()]
def mark(): marks.append(time.perf_counter())
import numpy; mark()
import onnxruntime; mark()
import tokenizers; mark()
from pathlib import Path
from ragcli.models.embedder import open_embedder
from ragcli.models.onnx import Network
from ragcli.models.place import ModelPlace
from ragcli.models.windows import Windows, load_tokenizer
from ragcli.options import Settings
embedder = open_embedder(Settings(), ModelPlace(Path(sys.argv[1]), offline=True)); mark()
load_tokenizer(Path(sys.argv[1], "minilm", "tokenizer.json")); mark()
embedder.warm(); mark()
embedder.query("how long do the batteries last"); mark()
names = ["numpy", "onnxruntime", "tokenizers", "card", "tokenizer file", "session and tokenizer", "query"]
steps = dict(zip(names, (1000 * (b - a) for a, b in zip(marks, marks[1:]))))
steps["session alone"] = steps["session and tokenizer"] - steps["tokenizer file"]
print(__import__("json").dumps(steps))
"""


def passages(folder: Path) -> list[str]:
    """Different texts, each of 110 tokens with [CLS] and [SEP]."""
    from ragcli.models.windows import load_tokenizer

    tokenizer = load_tokenizer(folder / "tokenizer.json")
    files = sorted((measure.ROOT / "sample_corpus").rglob("*.md"))
    text = " ".join(path.read_text(encoding="utf-8") for path in files)
    tokens = tokenizer.encode(text * (1 + PASSAGES * TOKENS * 2 // len(text)), add_special_tokens=False)
    found: list[str] = []
    start = 0
    while len(found) < PASSAGES:
        start = (start + TOKENS + 7) % (len(tokens.ids) - TOKENS)
        end = start + TOKENS - 2
        piece = text[tokens.offsets[start][0] : tokens.offsets[end - 1][1]]
        found.append(piece)
    return found


def embedder(precision: str) -> TransformerEmbedder:
    """minilm as ragcli opens it."""
    from ragcli.models.transformer import TransformerEmbedder
    from ragcli.options import ModelsSettings, Settings

    chosen = msgspec.convert({"embedder": "minilm", "precision": precision}, ModelsSettings)
    return TransformerEmbedder.open(Settings(models=chosen), own_models())


def bare(opened: TransformerEmbedder, texts: list[str]) -> RUN:
    """The embedder's own network over token ids."""
    encoder = opened._encoder()
    network, rows = encoder._network, [windows[0] for windows in encoder.windows(texts)]
    output = network.output(dimensions=3)
    return lambda _: sum(1 for _ in network.each(lambda row: network.run(output, row), rows))


def batches(path: Path, tokenizer_file: Path) -> RUN:
    """fp32 in padded batches, masked mean, length 1."""
    import numpy as np
    import onnxruntime as ort
    from tokenizers import Tokenizer

    from ragcli.models.onnx import cores

    options = ort.SessionOptions()
    options.intra_op_num_threads = cores()
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    tokenizer.enable_truncation(256)
    tokenizer.enable_padding()

    def embed(texts: list[str]) -> object:
        found = []
        for start in range(0, len(texts), BATCH):
            encodings = tokenizer.encode_batch(texts[start : start + BATCH])
            ids, mask = (np.array([getattr(e, name) for e in encodings]) for name in ("ids", "attention_mask"))
            feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            states = session.run(None, feed)[0]
            means = (states * mask[:, :, None]).sum(axis=1) / mask.sum(axis=1, keepdims=True)
            found.append(means / np.linalg.norm(means, axis=1, keepdims=True))
        return np.concatenate(found)

    return embed


def sentence_transformers(folder: Path) -> RUN:
    """The same weights in torch."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules

    from ragcli.models.onnx import cores

    torch.set_num_threads(cores())
    transformer = modules.Transformer(str(folder), max_seq_length=256)
    model = SentenceTransformer(modules=[transformer, modules.Pooling(384, pooling_mode="mean"), modules.Normalize()])
    return lambda texts: model.encode(texts, batch_size=BATCH, show_progress_bar=False)


def contenders(texts: list[str]) -> dict[str, RUN]:
    """All that take part, each ready to run."""
    folder = own_models().cache / "minilm"
    int8, fp32 = embedder("int8"), embedder("fp32")
    found: dict[str, RUN] = {
        "ragcli int8": int8.passages,
        "bare session int8": bare(int8, texts),
        "ragcli fp32": fp32.passages,
        "bare session fp32": bare(fp32, texts),
        "fp32 batches": batches(fp32._files.network(), folder / "tokenizer.json"),
    }
    if find_spec("sentence_transformers"):
        found["sentence-transformers"] = sentence_transformers(folder)
    return found


def rates(runs: Mapping[str, RUN], texts: list[str]) -> dict[str, list[float]]:
    """Milliseconds of each, round by round, the order turned around every other round."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(-1, ROUNDS):
        names = list(runs) if number % 2 else list(runs)[::-1]
        for name in names:
            start = time.perf_counter()
            runs[name](texts)
            if number >= 0:
                times[name].append((time.perf_counter() - start) * 1000)
    return times


def cold() -> list[dict[str, object]]:
    """What a process that embeds one query spends its time on."""
    command = [sys.executable, "-c", COLD, str(own_models().cache)]
    env = {**measure.environment(), "OPENBLAS_NUM_THREADS": "1"}
    found: dict[str, list[float]] = {}
    for _ in range(COLD_ROUNDS):
        done = subprocess.run(command, env=env, cwd=measure.ROOT, check=True, capture_output=True)
        for name, value in msgspec.json.decode(done.stdout, type=dict[str, float]).items():
            found.setdefault(name, []).append(value)
    return [{"step": name, "median_ms": median(all_), "fastest_ms": min(all_)} for name, all_ in found.items()]


def main() -> None:
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    from ragcli.models.pull import ensure

    texts = passages(ensure("minilm", own_models()))
    times = rates(contenders(texts), texts)
    peers = [name for name in times if not name.startswith("ragcli")]
    rows = [
        {
            "embedder": name,
            "passages_s": len(texts) * 1000 / median(found),
            **{f"x {peer}": measure.ratio(times, peer, name) for peer in peers},
        }
        for name, found in times.items()
    ]
    measure.table(f"Passages a second, {TOKENS} tokens, {ROUNDS} rounds in turn (x: as fast as that one times …)", rows)
    steps = cold()
    measure.table(f"A cold query, {COLD_ROUNDS} processes, steps in ms", steps)
    measure.record("embedding", [*rows, *steps])


if __name__ == "__main__":
    main()
