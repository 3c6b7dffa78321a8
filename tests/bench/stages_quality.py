"""What redundancy filter, MMR and parents cost or gain on the judged collections of ../shared/data/retrieval.

`make bench-quality-stages`, or `python -m tests.bench.stages_quality scifact cranfield`. Hybrid search with the default
chunks, ten hits a query: nDCG@10 of the documents in the order in which they first appear, distinct documents among the
ten hits, and how many of the ten places are filled.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean

import ir_measures

from tests.bench import measure
from tests.bench.quality import COLLECTIONS, TOP, ndcg, qrels_of, taken_in

SETS = ("scifact", "cranfield", "medline", "hotpotqa-sub")
RUNS: Mapping[str, Sequence[str]] = {
    "plain": ("--no-parents",),
    "redundancy .95": ("--no-parents", "--redundancy-filter"),
    "redundancy .85": ("--no-parents", "--redundancy-filter", "--redundancy-threshold", "0.85"),
    **{f"mmr {value}": ("--no-parents", "--mmr", "--lambda", value) for value in ("1", "0.7", "0.5", "0.3", "0")},
    "mmr 0.5, cosine": ("--no-parents", "--mmr", "--mmr-relevance", "cosine"),
    "mmr 1, cosine": ("--no-parents", "--mmr", "--lambda", "1", "--mmr-relevance", "cosine"),
    "parents": ("--parents",),
}
Found = dict[str, list[str]]  # query id -> document ids of the hits, best first


def asked(collection: Path, where: Sequence[str], flags: Sequence[str]) -> Found:
    """All queries of the collection. Raises: CalledProcessError."""
    ask = [str(measure.RAGCLI), "query", "--batch", str(collection / "queries.jsonl"), "--format", "jsonl"]
    done = subprocess.run(
        [*ask, "--top-k", str(TOP), *where, *flags], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    rows = (json.loads(line) for line in done.stdout.splitlines())
    return {row["_id"]: [hit["document_id"] for hit in row["hits"]] for row in rows}


def run_of(found: Found) -> list[ir_measures.ScoredDoc]:
    """The documents, each where it first appears."""
    return [
        ir_measures.ScoredDoc(query, document, -float(rank))
        for query, documents in found.items()
        for rank, document in enumerate(dict.fromkeys(documents))
    ]


def row_of(collection: Path, name: str, found: Found, plain: float) -> dict[str, object]:
    """A line of the table."""
    score = ndcg(qrels_of(collection), run_of(found))
    return {
        "collection": collection.name,
        "run": name,
        "nDCG@10": round(score, 4),
        "- plain": round(score - (plain if name != "plain" else score), 4),
        "documents": round(mean(len(set(documents)) for documents in found.values()), 2),
        "hits": round(mean(map(len, found.values())), 2),
    }


def main(names: Sequence[str]) -> None:
    """Measure these collections."""
    rows: list[dict[str, object]] = []
    for name in names or SETS:
        collection = COLLECTIONS / name
        where = taken_in(collection, measure.WORK / "stages" / name, {"parents": {"enabled": True}})
        plain = 0.0
        for run, flags in RUNS.items():
            rows.append(row_of(collection, run, asked(collection, where, flags), plain))
            plain = float(str(rows[-1]["nDCG@10"])) if run == "plain" else plain
            print(rows[-1], file=sys.stderr)
    measure.table("stages on judged collections", rows)
    measure.record("stages-quality", rows)


if __name__ == "__main__":
    main(sys.argv[1:])
