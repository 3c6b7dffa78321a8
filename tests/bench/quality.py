"""nDCG@10 on the judged collections of ../shared/data/retrieval, through the command line.

`make bench-quality`, or `python -m tests.bench.quality scifact cranfield`. Per collection, with the default chunking
and with whole documents (a chunk size that none reaches): keyword, vector and hybrid search, and the preset `english`;
a document scores as its best chunk, as `--per-document 1` shows it. Beside them bm25s on the terms of the reference
(spec I33), title and text, and the figures of ../shared/design/quality.md.

What was embedded once is kept (`Kept`) and lent to later indexes: an index takes over the vectors of equal text, and
embedding is nearly all of the time.
"""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import ir_measures
import yaml
from ir_measures import nDCG

from ragcli.models.embedder import open_embedder
from ragcli.models.place import model_place
from ragcli.options import Settings
from ragcli.store.sqlite import vectors
from ragcli.types import EmbedderCard
from tests.bench import measure
from tests.reference.terms import terms

COLLECTIONS = measure.ROOT.parent / "shared" / "data" / "retrieval"
TOP = 10
WHOLE = {"chunking": {"size": 2**30, "overlap": 0}}
CHUNKINGS: Mapping[str, Mapping[str, object]] = {"default chunks": {}, "whole documents": WHOLE}
# of whole documents: BM25 with raw terms (CJK as bigrams), dense, min-max of both, min-max with stemmed terms
STATED = {
    "scifact": (0.661, 0.645, 0.707, 0.738), "cranfield": (0.368, 0.400, 0.427, 0.435),
    "medline": (0.673, 0.788, 0.774, 0.786), "hotpotqa-sub": (0.770, 0.770, 0.820, 0.830),
    "nfcorpus-preproc": (0.308, 0.303, 0.347, 0.362), "financebench-pages": (0.206, 0.296, 0.301, 0.296),
    "cmrc2018": (0.984,), "xquad-multi": (0.88,), "covidqa": (0.769,),
}  # fmt: skip
MODES = ("keyword", "vector", "hybrid")
BLANK = dict.fromkeys(("collection", "chunks", *MODES, "hybrid, rrf", "english"), "")
Run = list[ir_measures.ScoredDoc]


class Kept:
    """Vectors of texts that were embedded before, by the embedder's fingerprint and the text's hash."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as db, db:
            db.execute(
                "CREATE TABLE IF NOT EXISTS kept(fingerprint TEXT, hash BLOB, vector BLOB, "
                "PRIMARY KEY(fingerprint, hash)) WITHOUT ROWID"
            )

    def known(self, fingerprint: str) -> dict[bytes, bytes]:
        """All vectors of this embedder."""
        with closing(sqlite3.connect(self.path)) as db:
            return dict(db.execute("SELECT hash, vector FROM kept WHERE fingerprint = ?", (fingerprint,)))

    def add(self, fingerprint: str, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep (hash, vector) pairs."""
        with closing(sqlite3.connect(self.path)) as db, db:
            db.executemany("INSERT OR IGNORE INTO kept VALUES (?, ?, ?)", [(fingerprint, *row) for row in rows])

    def lend(self, index: Path, card: EmbedderCard) -> None:
        """The index, made without vectors, waits for those of `card`, and has these as spare ones."""
        with closing(sqlite3.connect(index)) as db, db:
            vectors.start_over(db, card)
            rows = self.known(card.fingerprint).items()
            db.executemany("INSERT OR IGNORE INTO spare_vectors VALUES (?, ?)", rows)

    def take(self, index: Path, card: EmbedderCard) -> None:
        """Keep what the index has."""
        with closing(sqlite3.connect(index)) as db:
            self.add(card.fingerprint, db.execute("SELECT hash, vector FROM vectors").fetchall())


def kept_of(name: str) -> Kept:
    """What is kept of a collection."""
    return Kept(measure.WORK / "quality" / name / "kept.db")


def records(path: Path) -> Iterator[dict[str, str]]:
    """The objects of a JSONL file."""
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file)


def qrels_of(collection: Path) -> list[ir_measures.Qrel]:
    """The judgements of a collection."""
    with (collection / "qrels" / "test.tsv").open(encoding="utf-8") as file:
        rows = csv.reader(file, delimiter="\t")
        next(rows)
        return [ir_measures.Qrel(query, document, int(score)) for query, document, score in rows]


def ndcg(qrels: list[ir_measures.Qrel], run: Run) -> float:
    """The mean of nDCG@10 over all judged queries; one without hits counts as 0."""
    found = {value.query_id: value.value for value in ir_measures.iter_calc([nDCG @ 10], qrels, run)}
    judged = {qrel.query_id for qrel in qrels}
    return sum(found.get(query, 0.0) for query in judged) / len(judged)


def taken_in(collection: Path, folder: Path, settings: Mapping[str, object], preset: str = "") -> list[str]:
    """The collection in a fresh index, under these settings; gives the flags that name both.

    Raises: CalledProcessError.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config, index, kept = folder / "ragcli.yaml", folder / "index.db", kept_of(collection.name)
    known = yaml.safe_load((measure.ROOT / "configs" / f"{preset}.yaml").read_text()) if preset else {}
    config.write_text(json.dumps({**known, **settings}))  # JSON is YAML
    where = ["--index", str(index), "--config", str(config)]
    ingest = [str(measure.RAGCLI), "ingest", str(collection / "corpus.jsonl"), *where]
    subprocess.run([*ingest, "--no-embed"], check=True, capture_output=True)
    with closing(open_embedder(Settings(), model_place())) as embedder:
        card = embedder.card
    kept.lend(index, card)
    subprocess.run(ingest, check=True, capture_output=True)  # embeds what is not kept
    kept.take(index, card)
    return where


def asked(collection: Path, where: list[str], *flags: str) -> Run:
    """All queries of the collection. Raises: CalledProcessError."""
    ask = [str(measure.RAGCLI), "query", "--batch", str(collection / "queries.jsonl"), "--format", "trec"]
    each_once = ["--top-k", str(TOP), "--per-document", "1"]
    done = subprocess.run([*ask, *each_once, *where, *flags], check=True, stdout=subprocess.PIPE, text=True)
    columns = (line.split() for line in done.stdout.splitlines())
    # by rank: trec_eval has an order of its own for equal scores
    return [ir_measures.ScoredDoc(query, document, -float(rank)) for query, _, document, rank, _, _ in columns]


def bm25s_run(collection: Path) -> Run:
    """The same by bm25s over the terms of the reference: an index of ours that is right scores the same."""
    import bm25s

    corpus = {
        row["_id"]: terms(f"{row.get('title', '')}\n{row['text']}") for row in records(collection / "corpus.jsonl")
    }
    names = list(corpus)
    retriever = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    retriever.index(list(corpus.values()), show_progress=False)
    run: Run = []
    for row in records(collection / "queries.jsonl"):
        numbers, scores = retriever.retrieve([terms(row["text"])], k=min(TOP, len(names)), show_progress=False)
        hits = zip(numbers[0].tolist(), scores[0].tolist(), strict=True)
        run += [ir_measures.ScoredDoc(row["_id"], names[number], score) for number, score in hits if score > 0]
    return run


def measured(name: str) -> Iterator[dict[str, object]]:
    """The rows of one collection."""
    collection, folder = COLLECTIONS / name, measure.WORK / "quality" / name
    qrels = qrels_of(collection)
    for chunking, settings in CHUNKINGS.items():
        where = taken_in(collection, folder / "plain", settings)
        modes = {mode: ndcg(qrels, asked(collection, where, "--mode", mode)) for mode in MODES}
        rrf = ndcg(qrels, asked(collection, where, "--fusion", "rrf"))
        where = taken_in(collection, folder / "english", settings, "english")
        english = ndcg(qrels, asked(collection, where))
        yield {"collection": name, "chunks": chunking, **modes, "hybrid, rrf": rrf, "english": english}
    yield {"collection": name, "chunks": "bm25s, whole", "keyword": ndcg(qrels, bm25s_run(collection))}
    stated = dict(zip(("keyword", "vector", "hybrid", "english"), STATED.get(name, ()), strict=False))
    yield {"collection": name, "chunks": "stated, whole", **stated}


def main(names: list[str]) -> int:
    if not COLLECTIONS.is_dir():
        print(f"bench-quality: needs the judged collections in {COLLECTIONS}", file=sys.stderr)
        return 1
    chosen = names or sorted(path.name for path in COLLECTIONS.iterdir())
    rows = [{**BLANK, **row} for name in chosen for row in measured(name)]
    measure.table("nDCG@10", rows)
    measure.record("quality", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
