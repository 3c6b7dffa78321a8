"""A hybrid query as a whole process: `make bench-hybrid`, or `python -m tests.bench.hybrid 10000 100000`.

An index of synthetic passages, made by `ragcli ingest --no-embed`; its vectors are random ones of MiniLM's shape, since
embedding a hundred thousand passages takes ten minutes and a query costs the same whatever they say. The query itself
is embedded by MiniLM. The peer is `llm --version` (Simon Willison's llm), in an environment of its own.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from itertools import islice
from pathlib import Path
from statistics import median

import numpy as np

from ragcli.models import guard
from ragcli.models.embedder import open_embedder
from ragcli.models.place import model_place
from ragcli.options import ModelsSettings, Settings
from ragcli.store.sqlite import documents, schema, vector_file, vectors
from tests.bench import measure
from tests.bench.lexical import corpus_of

ROUNDS = 15
AT_ONCE = 10_000
MINILM = Settings(models=ModelsSettings(embedder="minilm"))


def peer() -> list[str]:
    """`llm --version`, installed when it is not there."""
    place = measure.WORK / "llm"
    llm = place / "bin" / "llm"
    if not llm.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        subprocess.run([str(place / "bin" / "pip"), "install", "--quiet", "llm"], check=True)
        subprocess.run([str(place / "bin" / "python"), "-m", "compileall", "-q", str(place / "lib")], check=False)
    return [str(llm), "--version"]


def index_of(size: int) -> Path:
    """The index of so many passages, with vectors; made when it is not there."""
    folder = measure.WORK / f"hybrid-{size}"
    index = folder / "index.db"
    if (folder / "complete").exists():
        return index
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    corpus = corpus_of(size) / "corpus.jsonl"
    measure.build([str(measure.RAGCLI), "ingest", str(corpus), "--no-embed", "--index", str(index)])
    fill(index)
    (folder / "complete").touch()
    return index


def fill(index: Path) -> None:
    """Random unit vectors for every chunk, under MiniLM's card."""
    rng = np.random.default_rng(5)
    card = open_embedder(MINILM, model_place(MINILM)).card
    with closing(schema.open_writer(index)) as db:
        with schema.transaction(db):
            vectors.start_over(db, card)
        chunks = (row[0] for row in db.execute("SELECT id FROM chunks ORDER BY id").fetchall())
        while some := list(islice(chunks, AT_ONCE)):
            block = rng.standard_normal((len(some), card.dimension), np.float32)
            block /= np.linalg.norm(block, axis=1, keepdims=True)
            with documents.batch(db, str.split, now=0) as batch:
                batch.vectors.put(
                    [
                        (chunk, vectors.digest(str(chunk)), vectors.packed(row))
                        for chunk, row in zip(some, block, strict=True)
                    ]
                )
        db.execute("DELETE FROM unembedded")
        vector_file.update(db, index)
        schema.tidy(db)


def main(sizes: list[int]) -> None:
    assert guard.NONE not in os.environ.get("RAGCLI_MODELS__EMBEDDER", "")
    rows = []
    for size in sizes:
        index = index_of(size)
        short = json.loads((corpus_of(size) / "queries.json").read_text())["short"]
        rounds = [
            {
                "llm --version": peer(),
                "bare typer app": [sys.executable, str(measure.APPS / "bare.py"), query],
                "keyword": [str(measure.RAGCLI), "query", query, "--index", str(index), "--json", "--mode", "keyword"],
                "vector": [str(measure.RAGCLI), "query", query, "--index", str(index), "--json", "--mode", "vector"],
                "hybrid": [str(measure.RAGCLI), "query", query, "--index", str(index), "--json"],
            }
            for query in short[: ROUNDS + 1]
        ]
        measure.in_turn(rounds[:1])
        times = measure.in_turn(rounds[1:])
        rows += [
            {
                "chunks": size,
                "process": name,
                "median_ms": median(found),
                "x_llm": measure.ratio(times, name, "llm --version"),
                "x_bare": measure.ratio(times, name, "bare typer app"),
            }
            for name, found in times.items()
        ]
    measure.table(f"Hybrid query, whole process, {ROUNDS} rounds in turn", rows)
    measure.record("hybrid", rows)


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [100_000])
