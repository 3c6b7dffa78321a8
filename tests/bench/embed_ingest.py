"""What ingest costs beside the embedder it feeds: `python -m tests.bench.embed_ingest [PASSAGES]`.

In turn, whole processes: `ragcli ingest` of a collection of different passages of about 110 tokens, and the embedder
alone on the same texts (its start-up included). The ratio of their rates is what an ingest keeps.
"""

from __future__ import annotations

import json
import random
import shutil
import sys
from itertools import islice
from pathlib import Path
from statistics import median

from tests.bench import corpus, measure

ROUNDS = 3
WORDS = 80  # of English in 110 tokens of minilm's
ALONE = """
import json, sys
from ragcli.models.embedder import open_embedder
from ragcli.models.place import model_place
from ragcli.options import Settings
texts = [json.loads(line)["text"] for line in open(sys.argv[1])]
embedder = open_embedder(Settings(), model_place())
for start in range(0, len(texts), 256):
    embedder.passages(texts[start : start + 256])
"""


def english(count: int) -> list[str]:
    """Different passages made of the sample corpus's sentences."""
    texts = [path.read_text() for path in sorted((measure.ROOT / "sample_corpus").rglob("*.md"))]
    sentences = sorted({line.strip() for text in texts for line in text.splitlines() if len(line.split()) > 8})
    chance = random.Random(3)
    found = []
    for number in range(count):
        words = f"{number} " + " ".join(chance.sample(sentences, 8))
        found.append(" ".join(words.split()[:WORDS]))
    return found


def main(count: int) -> None:
    folder = measure.WORK / "embed-ingest"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path = folder / "corpus.jsonl"
    path.write_text("".join(json.dumps({"_id": str(n), "text": t}) + "\n" for n, t in enumerate(english(count))))
    rounds = [
        {
            "embedder alone": [sys.executable, "-c", ALONE, str(path)],
            "ragcli ingest": [str(measure.RAGCLI), "ingest", str(path), "--index", str(folder / f"{round_}.db")],
        }
        for round_ in range(ROUNDS)
    ]
    times = measure.in_turn(rounds)
    rows: list[dict[str, object]] = [
        {
            "process": name,
            "seconds": median(found) / 1000,
            "passages_s": count / (median(found) / 1000),
            "x_alone": 1 / measure.ratio(times, name, "embedder alone"),
        }
        for name, found in times.items()
    ]
    built = measure.build([str(measure.RAGCLI), "ingest", str(path), "--index", str(folder / "memory.db")])
    rows.append({"process": "peak memory, MiB", "seconds": built.seconds, "passages_s": built.peak / measure.MIB})
    measure.table(
        f"Ingest of {count:,} passages, minilm, {ROUNDS} rounds in turn", [{"x_alone": "", **r} for r in rows]
    )
    measure.record("embed_ingest", rows)


def fast(size: int) -> None:
    """Memory of an ingest with the static embedder: flat as the corpus grows."""
    rows = []
    for count in (size // 4, size):
        folder = measure.WORK / f"fast-{count}"
        corpus.write(count, folder)
        index = folder / "index.db"
        Path(index).unlink(missing_ok=True)
        command = [str(measure.RAGCLI), "ingest", str(folder / "corpus.jsonl"), "--embedder", "fast"]
        built = measure.build([*command, "--index", str(index)])
        rows.append({"passages": count, "passages_s": count / built.seconds, "peak_mib": built.peak / measure.MIB})
    measure.table("Ingest with the static embedder", rows)
    measure.record("embed_ingest", rows)


if __name__ == "__main__":
    named = list(islice((int(word) for word in sys.argv[1:]), 2))
    main(named[0] if named else 1_000)
    if len(named) > 1:
        fast(named[1])
