"""The processes of the dense bench: making an index and float32's matrix, searching them warm and cold.

`python -m tests.bench.dense_work WHAT FOLDER [SIZE [VECTORS.npy]]`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as one-shot commands set it; both sides alike

if TYPE_CHECKING:
    import sqlite3

    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

DIMENSION = 384
QUERIES = 100
EXACT_QUERIES = 10
BLOCK = 16_384
TOPICS, SPREAD, COMMON = 2_000, 0.7, 0.3  # neighbours about as near as those of sentences, around a mean that isn't 0
DELETED = 100  # one chunk of so many goes before the update
ADDED = 1_000
ALIKE = 5e-4  # float16 may swap vectors whose cosines differ by less


def blocks(size: int, stored: str | None) -> Iterator[Floats]:
    """`size` vectors of length 1 in blocks, then the queries as one block."""
    import numpy as np

    counts = [min(BLOCK, size - at) for at in range(0, size, BLOCK)]
    if stored:
        rows = np.load(stored, mmap_mode="r")
        yield from (np.array(rows[at : at + count]) for at, count in zip(range(0, size, BLOCK), counts, strict=True))
        yield np.array(rows[-QUERIES:])
        return
    random = np.random.default_rng(7)
    topics = random.standard_normal((TOPICS, DIMENSION), np.float32)
    yield from (_clustered(random, topics, count) for count in chain(counts, [QUERIES]))


def _clustered(random: np.random.Generator, topics: Floats, count: int) -> Floats:
    import numpy as np

    rows = topics[random.integers(0, len(topics), count)] + COMMON
    rows += SPREAD * random.standard_normal(rows.shape, np.float32)
    found: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return found


def make(folder: Path, size: int, stored: str | None = None) -> None:
    """The index without its side file, the matrix, the queries."""
    import numpy as np

    folder.mkdir(parents=True, exist_ok=True)
    dimension = np.load(stored, mmap_mode="r").shape[1] if stored else DIMENSION
    matrix = np.lib.format.open_memmap(str(folder / "f32.npy"), "w+", np.dtype(np.float32), (size, dimension))
    at = 0
    with closing(_created(folder, dimension)) as db:
        for block in blocks(size, stored):
            if at == size:
                np.save(folder / "queries.npy", block)
            else:
                _put(db, at + 1, block)
                matrix[at : at + len(block)] = block
                at += len(block)
    matrix.flush()


def _created(folder: Path, dimension: int) -> sqlite3.Connection:
    from ragcli.store.sqlite import schema, vectors
    from ragcli.types import EmbedderCard

    db = schema.open_writer(folder / "index.db")
    with schema.transaction(db):
        vectors.set_card(db, EmbedderCard(name="bench", fingerprint="0", dimension=dimension))
        schema.set_meta(db, analyzer="{}", created_at="2026-01-01T00:00:00Z")
    return db


def _put(db: sqlite3.Connection, first: int, block: Floats) -> None:
    from ragcli.store.sqlite import schema, vectors

    rows = [(first + at, vectors.digest(str(first + at)), vectors.packed(row)) for at, row in enumerate(block)]
    with schema.transaction(db):
        db.executemany("INSERT INTO vectors VALUES (?, ?, ?)", rows)
        _count(db, len(rows))


def _count(db: sqlite3.Connection, change: int) -> None:
    db.execute("UPDATE meta SET value = value + ? WHERE key = 'vector_count'", (change,))
    db.execute("UPDATE meta SET value = value + 1 WHERE key = 'vectors_state'")


def change(folder: Path, size: int) -> None:
    """A small ingest: some vectors go, some come."""
    import numpy as np

    from ragcli.store.sqlite import schema

    with closing(schema.open_writer(folder / "index.db")) as db:
        with schema.transaction(db):
            _count(db, -db.execute("DELETE FROM vectors WHERE chunk % ? = 0", (DELETED,)).rowcount)
        _put(db, size + 1, np.array(np.load(folder / "f32.npy", mmap_mode="r")[:ADDED]))


def update(folder: Path) -> None:
    """Bring the side file up to date, as the end of an ingest does."""
    from ragcli.store.sqlite import schema, vector_file

    with closing(schema.open_writer(folder / "index.db")) as db:
        vector_file.update(db, folder / "index.db")


def best(matrix: Floats, query: Floats, k: int) -> NDArray[np.int64]:
    """Positions of the best k of a float32 matrix: what ours is measured against."""
    import numpy as np

    scores = matrix @ query
    at = np.argpartition(scores, len(scores) - k)[-k:]
    return at[np.argsort(-scores[at])]


def cold(folder: Path) -> None:
    """One search by ours."""
    import numpy as np

    from ragcli.store.sqlite.dense import DenseIndex
    from ragcli.store.sqlite.schema import open_reader

    query = np.load(folder / "queries.npy")[0]
    with closing(open_reader(folder / "index.db")) as db:
        DenseIndex(db, folder / "index.db", len(query)).search(query, 10)


def cold_numpy(folder: Path) -> None:
    """The same over the mapped matrix."""
    import numpy as np

    best(np.load(folder / "f32.npy", mmap_mode="r"), np.load(folder / "queries.npy")[0], 10)


def cold_import(folder: Path) -> None:
    """What both take before they start."""
    import numpy as np

    np.load(folder / "queries.npy")


Answers = Callable[["Floats"], list[int]]


def warm(folder: Path) -> dict[str, dict[str, list[float]]]:
    """By way of searching: milliseconds and recall of each query, all ways in turn."""
    import numpy as np

    from ragcli.store.sqlite.dense import DenseIndex
    from ragcli.store.sqlite.schema import open_reader

    matrix, queries = np.load(folder / "f32.npy", mmap_mode="r"), np.load(folder / "queries.npy")
    with closing(open_reader(folder / "index.db")) as db:
        index = DenseIndex(db, folder / "index.db", queries.shape[1])

        def ours(k: int, *, exact: bool = False) -> Answers:
            return lambda query: [hit.chunk - 1 for hit in index.search(query, k, exact=exact)]

        ways: dict[str, Answers] = {
            "numpy f32": lambda query: best(matrix, query, 10).tolist(),
            "ragcli": ours(10),
            "ragcli, k = 100": ours(100),
            "ragcli, exact": ours(10, exact=True),
        }
        return _in_turn(ways, matrix, queries)


def _in_turn(ways: dict[str, Answers], matrix: Floats, queries: Floats) -> dict[str, dict[str, list[float]]]:
    found: dict[str, dict[str, list[float]]] = {name: {"ms": [], "recall": []} for name in ways}
    for number, query in enumerate([queries[0], *queries]):
        true = best(matrix, query, 100)
        for name, search in ways.items():
            if name == "ragcli, exact" and number > EXACT_QUERIES:
                continue
            start = time.perf_counter()
            answer = search(query)
            milliseconds = (time.perf_counter() - start) * 1000
            if number:  # the first one warms up
                found[name]["ms"].append(milliseconds)
                found[name]["recall"].append(recall(matrix, query, true[: len(answer)], answer))
    return found


def recall(matrix: Floats, query: Floats, true: NDArray[np.int64], found: list[int]) -> float:
    """The share of the true best that was found, or others as near to the query as the last of them."""
    least = matrix[true[-1]] @ query - ALIKE
    known = set(true.tolist())
    return sum(at in known or bool(matrix[at] @ query >= least) for at in found) / len(true)


def main(what: str, folder: Path, *more: str) -> None:
    if what == "make":
        make(folder, int(more[0]), *more[1:2])
    elif what == "change":
        change(folder, int(more[0]))
    elif what == "warm":
        print(json.dumps(warm(folder)))
    else:
        {"update": update, "cold": cold, "cold_numpy": cold_numpy, "cold_import": cold_import}[what](folder)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
