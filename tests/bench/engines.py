"""The engines that are compared: each builds an index of `passages.txt`, opens it, and gives the ten best passages.

One process does one thing: `python -m tests.bench.engines build|warm ENGINE FOLDER`. All rank by BM25 over any of the
query's words. tantivy, FTS5 and ragcli store the passages; bm25s keeps postings only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from statistics import median, quantiles

K = 10
ENGINES = ("tantivy", "fts5", "bm25s")
Search = Callable[[str], list[str]]  # query → ids, best first


def lines_of(folder: Path) -> Iterator[str]:
    """The passages, streamed."""
    with (folder / "passages.txt").open() as file:
        yield from (line.rstrip("\n") for line in file)


def place_of(engine: str, folder: Path) -> Path:
    """Where the engine keeps its index of the folder's passages: a folder, or a file of the two that use SQLite."""
    return folder / {"tantivy": "tantivy", "bm25s": "bm25s"}.get(engine, f"{engine}.db")


def build_tantivy(folder: Path) -> None:
    import tantivy

    schema = tantivy.SchemaBuilder().add_integer_field("id", stored=True).add_text_field("text", stored=True).build()
    place = place_of("tantivy", folder)
    place.mkdir()
    index = tantivy.Index(schema, path=str(place))
    writer = index.writer()
    for number, line in enumerate(lines_of(folder)):
        writer.add_document(tantivy.Document(id=number, text=line))
    writer.commit()
    writer.wait_merging_threads()


def open_tantivy(folder: Path) -> Search:
    import tantivy

    index = tantivy.Index.open(str(place_of("tantivy", folder)))
    searcher = index.searcher()

    def search(query: str) -> list[str]:
        hits = searcher.search(index.parse_query(query, ["text"]), K).hits
        return [str(searcher.doc(address)["id"][0]) for _, address in hits]

    return search


def build_fts5(folder: Path) -> None:
    import sqlite3

    with sqlite3.connect(place_of("fts5", folder)) as connection:
        connection.execute("CREATE VIRTUAL TABLE passages USING fts5(text)")
        rows = enumerate(lines_of(folder))
        while batch := list(islice(rows, 10_000)):
            connection.executemany("INSERT INTO passages(rowid, text) VALUES (?, ?)", batch)


def open_fts5(folder: Path) -> Search:
    import sqlite3

    connection = sqlite3.connect(place_of("fts5", folder))

    def search(query: str) -> list[str]:
        any_word = " OR ".join(f'"{word}"' for word in query.split())
        found = connection.execute(
            "SELECT rowid FROM passages WHERE passages MATCH ? ORDER BY rank LIMIT ?", (any_word, K)
        )
        return [str(row) for (row,) in found]

    return search


def build_bm25s(folder: Path) -> None:
    import bm25s

    tokens = bm25s.tokenize(list(lines_of(folder)), stopwords=None, show_progress=False)
    retriever = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    retriever.index(tokens, show_progress=False)
    retriever.save(str(place_of("bm25s", folder)))


def open_bm25s(folder: Path) -> Search:
    import bm25s

    retriever = bm25s.BM25.load(str(place_of("bm25s", folder)), mmap=True)

    def search(query: str) -> list[str]:
        tokens = bm25s.tokenize([query], stopwords=None, show_progress=False, return_ids=False)
        found, _ = retriever.retrieve(tokens, k=K, show_progress=False, n_threads=0)
        return [str(number) for number in found[0]]

    return search


def open_ragcli(folder: Path) -> Search:
    from ragcli.options import AnalyzerSettings
    from ragcli.store.sqlite.search import KeywordIndex
    from ragcli.text import Analyzer

    index = KeywordIndex.open(place_of("ragcli", folder))
    analyzer = Analyzer(AnalyzerSettings())

    def search(query: str) -> list[str]:
        return [str(hit.chunk) for hit in index.search(analyzer.terms(query), K)]

    return search


BUILD = {"tantivy": build_tantivy, "fts5": build_fts5, "bm25s": build_bm25s}
OPEN = {"tantivy": open_tantivy, "fts5": open_fts5, "bm25s": open_bm25s, "ragcli": open_ragcli}


def milliseconds(search: Search, query: str) -> float:
    """Wall time of one search."""
    start = time.perf_counter()
    search(query)
    return (time.perf_counter() - start) * 1000


def warm(engine: str, folder: Path) -> dict[str, dict[str, float]]:
    """Median and 95th percentile in ms, in this process, by kind of query; each query is the median of three turns."""
    search = OPEN[engine](folder)
    found = {}
    for kind, queries in json.loads((folder / "queries.json").read_text()).items():
        for query in queries:
            search(query)
        turns = [[milliseconds(search, query) for query in queries] for _ in range(3)]
        times = [median(of_query) for of_query in zip(*turns, strict=True)]
        found[kind] = {"median": median(times), "p95": quantiles(times, n=20)[-1]}
    return found


if __name__ == "__main__":
    what, engine, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if what == "build":
        BUILD[engine](folder)
    else:
        print(json.dumps(warm(engine, folder)))
