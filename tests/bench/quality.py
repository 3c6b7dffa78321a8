"""nDCG@10 of keyword search on the judged collections of ../shared/data/retrieval, through the command line.

`make bench-quality`, or `python -m tests.bench.quality scifact cranfield`. Per collection: whole documents (a chunk
size that none reaches) and the default chunking, a document scoring as its best chunk; beside them bm25s on the terms
of the reference (spec I33), title and text, and the figure of ../shared/design/quality.md.
"""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import ir_measures
from ir_measures import nDCG

from tests.bench import measure
from tests.reference.terms import terms

COLLECTIONS = measure.ROOT.parent / "shared" / "data" / "retrieval"
DEPTH = 100
WHOLE = {"chunking": {"size": 2**30, "overlap": 0}}
# BM25 with raw terms, whole documents; cmrc2018 and xquad-multi with CJK bigrams
STATED = {
    "scifact": 0.661, "cranfield": 0.368, "medline": 0.673, "hotpotqa-sub": 0.770, "nfcorpus-preproc": 0.308,
    "financebench-pages": 0.206, "cmrc2018": 0.984, "xquad-multi": 0.88, "covidqa": 0.769,
}  # fmt: skip
Run = list[ir_measures.ScoredDoc]


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


def ragcli_run(collection: Path, folder: Path, settings: Mapping[str, object]) -> Run:
    """Ingest the collection under these settings and ask all its queries. Raises: CalledProcessError."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    config = folder / "ragcli.yaml"
    config.write_text(json.dumps(settings))  # JSON is YAML
    where = ["--index", str(folder / "index"), "--config", str(config)]
    ragcli = str(measure.RAGCLI)
    subprocess.run([ragcli, "ingest", str(collection / "corpus.jsonl"), *where], check=True, capture_output=True)
    ask = [ragcli, "query", "--batch", str(collection / "queries.jsonl"), "--mode", "keyword", "--format", "trec"]
    done = subprocess.run([*ask, "--top-k", str(DEPTH), *where], check=True, stdout=subprocess.PIPE, text=True)
    columns = (line.split() for line in done.stdout.splitlines())
    return [ir_measures.ScoredDoc(query, document, float(score)) for query, _, document, _, score, _ in columns]


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
        numbers, scores = retriever.retrieve([terms(row["text"])], k=min(DEPTH, len(names)), show_progress=False)
        hits = zip(numbers[0].tolist(), scores[0].tolist(), strict=True)
        run += [ir_measures.ScoredDoc(row["_id"], names[number], score) for number, score in hits if score > 0]
    return run


def measured(name: str) -> dict[str, object]:
    """The row of one collection."""
    collection, folder = COLLECTIONS / name, measure.WORK / "quality" / name
    qrels = qrels_of(collection)
    return {
        "collection": name,
        "whole": ndcg(qrels, ragcli_run(collection, folder / "whole", WHOLE)),
        "default chunks": ndcg(qrels, ragcli_run(collection, folder / "chunks", {})),
        "bm25s, whole": ndcg(qrels, bm25s_run(collection)),
        "stated": STATED.get(name, ""),
    }


def main(names: list[str]) -> int:
    if not COLLECTIONS.is_dir():
        print(f"bench-quality: needs the judged collections in {COLLECTIONS}", file=sys.stderr)
        return 1
    rows = [measured(name) for name in names or sorted(path.name for path in COLLECTIONS.iterdir())]
    measure.table("Keyword search, nDCG@10", rows)
    measure.record("quality", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
