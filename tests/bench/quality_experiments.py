"""Which chunks, which headers, which fusion: nDCG@10 over the judged collections of ../shared/data/retrieval.

`python -m tests.bench.quality_experiments EXPERIMENT [COLLECTION…]`, with an experiment of `EXPERIMENTS`. Documents,
chunks, terms, vectors and queries are ragcli's; scores of all chunks for all queries are then matrices, which makes a
setting a matter of seconds. `python -m tests.bench.quality` shows the same figures through the command line. A
document scores as its best chunk; a candidate is a chunk among the best `depth` of an arm, by its own score. As in
`ragcli.arms`, BM25 candidates hold a term of the query, and dense ones have a cosine of 0 or more.

Texts are embedded once (`quality.Kept`). A difference is tested by flipping the signs of the queries' differences
(Smucker, Allan & Carterette, A Comparison of Statistical Significance Tests for Information Retrieval, 2007).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache, partial
from itertools import product

import msgspec
import numpy as np
from numpy.typing import NDArray

from ragcli.chunk import chunk, chunker
from ragcli.chunk.annotate import headed
from ragcli.models.embedder import open_embedder
from ragcli.models.place import model_place
from ragcli.models.windows import load_tokenizer
from ragcli.options import AnalyzerSettings, Bm25Settings, ChunkingSettings, ModelsSettings, Settings
from ragcli.read.records import document_of
from ragcli.store.sqlite import vectors
from ragcli.text import Analyzer
from ragcli.types import Document
from tests.bench import measure, quality

Matrix = NDArray[np.float32]
Ids = NDArray[np.int64]

WHOLE = 2**30
SIZES = (512, 1000, 1600, 2400, WHOLE)
ENGLISH = (AnalyzerSettings(stemmer="english", stopwords="english"), Bm25Settings(k1=1.2))
RAW = (AnalyzerSettings(), Bm25Settings())
AT_ONCE = 512  # texts
WINDOW = 254  # tokens of text in one window of minilm
SIGNIFICANT = 0.05
TOP = 10


class Chunked(msgspec.Struct, frozen=True):
    """A collection in chunks. `document`: of each chunk the number of its document; those of one are neighbours."""

    name: str
    texts: list[str]
    contexts: list[str]
    document: Ids
    names: list[str]

    @property
    def starts(self) -> Ids:
        """The first chunk of each document."""
        return np.searchsorted(self.document, np.arange(len(self.names)))

    @property
    def counts(self) -> Ids:
        """How many chunks each document has."""
        return np.bincount(self.document, minlength=len(self.names))


@cache
def documents_of(name: str) -> list[Document]:
    """The documents of a collection, in its order."""
    path = quality.COLLECTIONS / name / "corpus.jsonl"
    found = (document_of(row, path.name, at, at, "jsonl") for at, row in enumerate(quality.records(path), 1))
    return [one for one in found if isinstance(one, Document)]


@cache
def chunked(name: str, size: int, *, is_headed: bool) -> Chunked:
    """The collection in chunks of so many characters, a tenth of that shared by neighbours."""
    settings = ChunkingSettings(size=size, overlap=0 if size == WHOLE else size // 10, context_header=is_headed)
    cut = chunker(settings, None)
    texts, contexts, document, names = list[str](), list[str](), list[int](), list[str]()
    for one in documents_of(name):
        chunks = chunk(one, cut, context_header=is_headed)
        texts += [part.text for part in chunks]
        contexts += [part.context for part in chunks]
        document += [len(names)] * len(chunks)
        names += [one.id] if chunks else []
    return Chunked(name, texts, contexts, np.array(document, np.int64), names)


def queries_of(name: str) -> dict[str, str]:
    """The judged queries, by their ids."""
    judged = {one.query_id for one in quality.qrels_of(quality.COLLECTIONS / name)}
    rows = quality.records(quality.COLLECTIONS / name / "queries.jsonl")
    return {row["_id"]: row["text"] for row in rows if row["_id"] in judged}


# -------------------------------------------------------------------------------------------------------- dense scores


def embedded(name: str, texts: Sequence[str], precision: str = "int8") -> Matrix:
    """The vectors of these texts, as an index keeps them.  # (texts, dimension)"""
    settings = Settings(models=ModelsSettings(precision=precision))  # type: ignore[arg-type]
    kept = quality.kept_of(name)
    with closing(open_embedder(settings, model_place())) as embedder:
        card = embedder.card
        hashes = [vectors.digest(text) for text in texts]
        found = kept.known(card.fingerprint)
        new = sorted({hash_: text for hash_, text in zip(hashes, texts, strict=True) if hash_ not in found}.items())
        for start in range(0, len(new), AT_ONCE):
            some = new[start : start + AT_ONCE]
            made = embedder.passages([text for _, text in some]).vectors
            rows = [(hash_, vectors.packed(vector)) for (hash_, _), vector in zip(some, made, strict=True)]
            kept.add(card.fingerprint, rows)
            found.update(rows)
    return np.stack([np.frombuffer(found[one], "<f2") for one in hashes]).astype(np.float32)


def inputs(chunks: Chunked) -> list[str]:
    """What of each chunk is embedded: a record has no file name."""
    pairs = zip(chunks.contexts, chunks.texts, strict=True)
    return [headed(context, "", text) for context, text in pairs]


def cosines(chunks: Chunked, precision: str = "int8", texts: Sequence[str] | None = None) -> Matrix:
    """The cosine of every judged query with every chunk (with `texts` in place of the chunks' own)."""
    asked = list(queries_of(chunks.name).values())
    passages = inputs(chunks) if texts is None else texts
    units = _units(embedded(chunks.name, [*asked, *passages], precision))
    scores: Matrix = units[: len(asked)] @ units[len(asked) :].T
    return scores


def truncated(texts: Sequence[str]) -> list[str]:
    """What a model that reads one window of 256 tokens sees of these texts."""
    tokenizer = load_tokenizer(model_place().cache / "minilm" / "tokenizer.json")
    encodings = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    ends = [one.offsets[WINDOW - 1][1] if len(one.offsets) >= WINDOW else None for one in encodings]
    return [text[:end] for text, end in zip(texts, ends, strict=True)]


def _units(rows: Matrix) -> Matrix:
    units: Matrix = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return units


# -------------------------------------------------------------------------------------------------------- BM25 scores


class Keyword(msgspec.Struct, frozen=True):
    """BM25 of every judged query and every chunk, and three of its document, said of each of its chunks.

    `own`: as an index has it. `whole`: of the document as one text among documents. `best`: each term's best part in
    any chunk of the document. `summed`: the terms of the document's chunks taken together, under the idf of chunks.
    """

    own: Matrix
    whole: Matrix
    best: Matrix
    summed: Matrix


class _Postings:
    """Terms to (texts, times), and lengths."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        lists: dict[str, dict[int, int]] = {}
        for number, terms in enumerate(texts):
            for term in terms:
                times = lists.setdefault(term, {})
                times[number] = times.get(number, 0) + 1
        self.lengths = np.array([len(terms) for terms in texts], np.float64)
        self._lists = lists

    def idf(self, term: str) -> float:
        df = len(self._lists.get(term, ()))
        return float(np.log1p((len(self.lengths) - df + 0.5) / (df + 0.5)))

    def times(self, term: str) -> Matrix:
        """How often each text has the term."""
        dense = np.zeros(len(self.lengths), np.float32)
        found = self._lists.get(term, {})
        dense[list(found)] = list(found.values())
        return dense

    def saturated(self, times: Matrix, lengths: NDArray[np.float64], bm25: Bm25Settings) -> Matrix:
        norm = bm25.k1 * (1 - bm25.b + bm25.b * lengths / lengths.mean())
        shares: Matrix = (times / (times + norm)).astype(np.float32)
        return shares


def keyword(chunks: Chunked, *, is_english: bool = False) -> Keyword:
    """BM25 over headers and texts, the first repeated in each chunk."""
    analyzer, bm25 = ENGLISH if is_english else RAW
    analyse = Analyzer(analyzer).terms
    parts = _Postings([analyse(one) for one in inputs(chunks)])
    wholes = _Postings([analyse(one) for one in inputs(chunked(chunks.name, WHOLE, is_headed=any(chunks.contexts)))])
    sums = np.add.reduceat(parts.lengths, chunks.starts)
    shape = (len(queries_of(chunks.name)), len(chunks.document))
    found = Keyword(*(np.zeros(shape, np.float32) for _ in range(4)))
    for row, text in enumerate(queries_of(chunks.name).values()):
        for term in analyse(text):
            times, idf = parts.times(term), parts.idf(term)
            own = parts.saturated(times, parts.lengths, bm25) * idf
            found.own[row] += own
            found.best[row] += np.maximum.reduceat(own, chunks.starts)[chunks.document]
            together = np.add.reduceat(times, chunks.starts)
            found.summed[row] += (parts.saturated(together, sums, bm25) * idf)[chunks.document]
            of_whole = wholes.saturated(wholes.times(term), wholes.lengths, bm25) * wholes.idf(term)
            found.whole[row] += of_whole[chunks.document]
    return found


# -------------------------------------------------------------------------------- a chunk's document in its score


def document_cosines(chunks: Chunked, own: Matrix) -> dict[str, Matrix]:
    """What a document's cosine may be, said of each of its chunks: the best, the best two's mean, the mean."""
    best = np.maximum.reduceat(own, chunks.starts, axis=1)
    mean = np.add.reduceat(own, chunks.starts, axis=1) / chunks.counts
    second = np.maximum.reduceat(np.where(_is_first_best(own, best, chunks), -1, own), chunks.starts, axis=1)
    two = np.where(chunks.counts > 1, (best + second) / 2, best)
    return {"max": best[:, chunks.document], "top 2": two[:, chunks.document], "mean": mean[:, chunks.document]}


def _is_first_best(own: Matrix, best: Matrix, chunks: Chunked) -> NDArray[np.bool_]:
    is_best = own == best[:, chunks.document]
    counted = np.cumsum(is_best, axis=1)
    before = counted[:, chunks.starts] - is_best[:, chunks.starts]
    first: NDArray[np.bool_] = is_best & (counted - before[:, chunks.document] == 1)
    return first


def centroid_cosines(chunks: Chunked, own: Matrix) -> Matrix:
    """The cosine with the mean of the document's vectors, said of each of its chunks."""
    units = _units(embedded(chunks.name, inputs(chunks)))
    centroids = np.add.reduceat(units, chunks.starts, axis=0) / chunks.counts[:, None]
    mean = np.add.reduceat(own, chunks.starts, axis=1) / chunks.counts
    found: Matrix = (mean / np.linalg.norm(centroids, axis=1))[:, chunks.document]
    return found


# -------------------------------------------------------------------------------------------------- fusion and figures


class Arm(msgspec.Struct, frozen=True):
    """An arm over all queries: of each the chunks that are its candidates, and its scores of all chunks."""

    tops: list[Ids]
    scores: Matrix
    weight: float = 0.5


def arm(scores: Matrix, depth: int = 100, weight: float = 0.5) -> Arm:
    """An arm whose candidates are the `depth` chunks with the highest scores above 0."""
    return Arm([_top(row, depth) for row in scores], scores, weight)


def _top(scores: Matrix, depth: int) -> Ids:
    found = np.argpartition(-scores, depth)[:depth] if depth < len(scores) else np.arange(len(scores))
    above: Ids = found[scores[found] > 0]
    return above


def searched(chunks: Chunked, arms: Sequence[Arm], method: str = "relative") -> list[Ids]:
    """For each query its documents, best first, by their best chunk."""
    queries = range(len(arms[0].tops))
    return [_ranked(chunks, [(one.tops[at], one.scores[at], one.weight) for one in arms], method) for at in queries]


def _ranked(chunks: Chunked, arms: Sequence[tuple[Ids, Matrix, float]], method: str) -> Ids:
    union = np.unique(np.concatenate([top for top, _, _ in arms]))
    fused = np.zeros(len(union))
    for top, scores, weight in arms:
        fused += weight * _scaled(top, union, scores, method)
    found = np.full(len(chunks.names), -np.inf)
    np.maximum.at(found, chunks.document[union], fused)
    order = np.argsort(-found, kind="stable")[:TOP]
    kept: Ids = order[np.isfinite(found[order])]
    return kept


def _scaled(top: Ids, union: Ids, scores: Matrix, method: str) -> NDArray[np.float64]:
    if not len(top):
        return np.zeros(len(union))
    if method == "rrf":
        ranks = np.full(len(union), np.inf)
        ranks[np.searchsorted(union, top[np.argsort(-scores[top], kind="stable")])] = np.arange(1, len(top) + 1)
        return 1 / (60 + ranks)
    wide = scores[union].astype(np.float64)
    low, spread = (wide.min(), wide.max() - wide.min()) if method == "relative" else (wide.mean(), wide.std())
    return (wide - low) / spread if spread else np.ones(len(union))


class Judged:
    """The judgements of a collection over the documents of its chunks."""

    def __init__(self, name: str) -> None:
        self._grades: dict[str, dict[str, int]] = {query: {} for query in queries_of(name)}
        for one in quality.qrels_of(quality.COLLECTIONS / name):
            self._grades[one.query_id][one.doc_id] = one.relevance

    def ndcg(self, chunks: Chunked, rankings: Sequence[Ids]) -> NDArray[np.float64]:
        """nDCG@10 of each query (Järvelin & Kekäläinen 2002, gains as they are, as trec_eval counts)."""
        pairs = zip(self._grades.values(), rankings, strict=True)
        return np.array([_ndcg(grades, [chunks.names[one] for one in ranking]) for grades, ranking in pairs])


def _ndcg(grades: Mapping[str, int], ranking: Sequence[str]) -> float:
    discounts = 1 / np.log2(np.arange(2, TOP + 2))
    ideal = sorted(grades.values(), reverse=True)[:TOP]
    gains = [grades.get(one, 0) for one in ranking[:TOP]]
    best = float(np.dot(ideal, discounts[: len(ideal)]))
    return float(np.dot(gains, discounts[: len(gains)])) / best if best else 0.0


def p_value(ours: NDArray[np.float64], theirs: NDArray[np.float64], draws: int = 10_000) -> float:
    """How often queries' differences with random signs differ as much on the mean, two-sided."""
    difference = ours - theirs
    difference = difference[difference != 0]
    if not len(difference):
        return 1.0
    signs = np.random.default_rng(1).choice(np.array([-1.0, 1.0], np.float32), (draws, len(difference)))
    found = np.abs(signs @ difference.astype(np.float32)) >= abs(difference.sum()) - 1e-6
    return float((found.sum() + 1) / (draws + 1))


# --------------------------------------------------------------------------------------------------------- experiments

Figures = Iterator[tuple[str, NDArray[np.float64]]]  # a setting, and what each query has under it
SHARES = (0.1, 0.2, 0.3, 0.5, 0.7)


def sizes(name: str) -> Figures:
    """Chunk sizes, each with its header: keyword, vector, hybrid, RRF, and hybrid with English terms."""
    for size in (1600, *(one for one in SIZES if one != 1600)):
        chunks, judged = chunked(name, size, is_headed=True), Judged(name)
        own, cosine = arm(keyword(chunks).own), arm(cosines(chunks))
        english = arm(keyword(chunks, is_english=True).own)
        for label, arms in {
            "hybrid": [own, cosine], "keyword": [own], "vector": [cosine], "english keyword": [english],
            "english": [english, cosine],
        }.items():  # fmt: skip
            yield f"{_shown(size)} {label}", judged.ndcg(chunks, searched(chunks, arms))
        yield f"{_shown(size)} rrf", judged.ndcg(chunks, searched(chunks, [own, cosine], "rrf"))


def headers(name: str) -> Figures:
    """With and without a header in what is embedded, and in what BM25 counts."""
    judged = Judged(name)
    for size in (1600, 512, 1000, 2400):
        pair = [chunked(name, size, is_headed=is_headed) for is_headed in (True, False)]
        chunks = pair[0]
        terms = dict(zip(("with", "without"), (arm(keyword(one).own) for one in pair), strict=True))
        dense = dict(zip(("with", "without"), (arm(cosines(one)) for one in pair), strict=True))
        for one, other in (("with", "with"), ("without", "without"), ("with", "without"), ("without", "with")):
            figures = judged.ndcg(chunks, searched(chunks, [terms[one], dense[other]]))
            yield f"{size} hybrid, BM25 {one}, dense {other}", figures
        for kind, arms in (("keyword", terms), ("vector", dense)):
            for label, own in arms.items():
                yield f"{size} {kind} {label}", judged.ndcg(chunks, searched(chunks, [own]))


def weighing(size: int, *, is_english: bool = False) -> Callable[[str], Figures]:
    """A chunk's score with a share of its document's, of either arm and of both; candidates as without."""
    return partial(_weighed, size=size, is_english=is_english)


def _weighed(name: str, *, size: int, is_english: bool) -> Figures:
    chunks, judged = chunked(name, size, is_headed=True), Judged(name)
    bm25, cosine = keyword(chunks, is_english=is_english), cosines(chunks)
    plain = {"bm25": arm(bm25.own), "dense": arm(cosine)}
    terms = {"whole": bm25.whole, "best": bm25.best, "summed": bm25.summed}
    dense = {**document_cosines(chunks, cosine), "centroid": centroid_cosines(chunks, cosine)}

    def figures(*arms: Arm) -> NDArray[np.float64]:
        return judged.ndcg(chunks, searched(chunks, arms))

    def mixed(own: Arm, others: Mapping[str, Matrix], share: float) -> dict[str, Arm]:
        return {kind: Arm(own.tops, (1 - share) * own.scores + share * score) for kind, score in others.items()}

    yield "hybrid", figures(plain["bm25"], plain["dense"])
    yield "keyword", figures(plain["bm25"])
    yield "vector", figures(plain["dense"])
    for share in SHARES:
        of_terms, of_dense = mixed(plain["bm25"], terms, share), mixed(plain["dense"], dense, share)
        for kind, one in of_terms.items():
            yield f"keyword {kind} {share}", figures(one)
            yield f"hybrid {kind} - {share}", figures(one, plain["dense"])
        for kind, one in of_dense.items():
            yield f"vector {kind} {share}", figures(one)
            yield f"hybrid - {kind} {share}", figures(plain["bm25"], one)
        for kind, other in product(("whole", "summed"), ("top 2", "centroid")):
            yield f"hybrid {kind} {other} {share}", figures(of_terms[kind], of_dense[other])


def fusions(name: str) -> Figures:
    """Methods, depths and weights, with raw and with English terms."""
    chunks, judged = chunked(name, 1600, is_headed=True), Judged(name)
    cosine = cosines(chunks)
    for label, is_english in (("raw", False), ("english", True)):
        own = keyword(chunks, is_english=is_english).own
        for depth in (100, 30, 300, 1000):
            pair = [arm(own, depth), arm(cosine, depth)]
            for method in ("relative", "zscore", "rrf"):
                yield f"{label} {method} depth {depth}", judged.ndcg(chunks, searched(chunks, pair, method))
        for weight in (0.3, 0.4, 0.55, 0.6, 0.7):
            pair = [arm(own, weight=1 - weight), arm(cosine, weight=weight)]
            for method in ("relative", "zscore", "rrf"):
                yield f"{label} {method} dense {weight}", judged.ndcg(chunks, searched(chunks, pair, method))


def precisions(name: str) -> Figures:
    """int8 or fp32 weights, all windows or the first."""
    judged = Judged(name)
    for size in (WHOLE, 1600):
        chunks = chunked(name, size, is_headed=True)
        own, texts = keyword(chunks).own, inputs(chunks)
        kinds = {
            "int8": cosines(chunks), "int8 truncated": cosines(chunks, texts=truncated(texts)),
            "fp32": cosines(chunks, "fp32"), "fp32 truncated": cosines(chunks, "fp32", truncated(texts)),
        }  # fmt: skip
        for label, cosine in kinds.items():
            yield f"{_shown(size)} vector {label}", judged.ndcg(chunks, searched(chunks, [arm(cosine)]))
            yield f"{_shown(size)} hybrid {label}", judged.ndcg(chunks, searched(chunks, [arm(own), arm(cosine)]))


EXPERIMENTS: Mapping[str, Callable[[str], Figures]] = {
    "sizes": sizes,
    "headers": headers,
    "weighing-512": weighing(512),
    "weighing-1600": weighing(1600),
    "weighing-1600-english": weighing(1600, is_english=True),
    "weighing-512-english": weighing(512, is_english=True),
    "fusions": fusions,
    "precisions": precisions,
}


def _shown(size: int) -> str:
    return "whole" if size == WHOLE else str(size)


def row_of(label: str, found: Mapping[str, Mapping[str, NDArray[np.float64]]]) -> dict[str, object]:
    """A setting over all collections: nDCG@10, + or - where it differs from the first one at p < .05; the mean."""
    row: dict[str, object] = {"setting": label}
    for name, settings in found.items():
        first = next(iter(settings.values()))
        p = p_value(settings[label], first)
        sign = "" if p >= SIGNIFICANT else "+" if settings[label].mean() > first.mean() else "-"
        row[name] = f"{settings[label].mean():.4f}{sign}"
    return {**row, "mean": f"{np.mean([settings[label].mean() for settings in found.values()]):.4f}"}


def main(arguments: list[str]) -> int:
    experiment, names = (arguments[0], arguments[1:]) if arguments else ("", [])
    if experiment not in EXPERIMENTS or not quality.COLLECTIONS.is_dir():
        print(f"quality_experiments: {' | '.join(EXPERIMENTS)}, over {quality.COLLECTIONS}", file=sys.stderr)
        return 2
    found: dict[str, dict[str, NDArray[np.float64]]] = {}
    for name in names or sorted(path.name for path in quality.COLLECTIONS.iterdir()):
        found[name] = dict(EXPERIMENTS[experiment](name))
        chunked.cache_clear()
    rows = [row_of(label, found) for label in next(iter(found.values()))]
    measure.table(f"nDCG@10, {experiment}", rows)
    measure.record(f"quality-{experiment}", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
