"""Search over posting lists against BM25 by plain loops, after any sequence of adds, deletes and merges."""

from __future__ import annotations

import gc
import itertools
import sqlite3
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.options import Bm25Settings
from ragcli.store.sqlite import maxscore, maxscore_numpy, merging, postings, postings_check, segments
from ragcli.store.sqlite.layout import BLOCK
from ragcli.store.sqlite.scoring import Admission, Lists, Scorer, Search
from ragcli.store.sqlite.search import KeywordIndex
from ragcli.types import ignore_event
from tests.reference import bm25 as reference

WORDS = [f"w{number}" for number in range(12)]
Terms = list[str]


class Corpus:
    """An index and, beside it, what must be in it: chunk id -> terms."""

    def __init__(self, bm25: Bm25Settings | None = None) -> None:
        self.db = sqlite3.connect(":memory:", isolation_level=None)
        for statement in segments.TABLES:
            self.db.execute(statement)
        self.db.execute("CREATE TABLE meta(key TEXT PRIMARY KEY, value)")
        self.db.execute("CREATE TABLE documents(id INTEGER PRIMARY KEY, document_id TEXT)")
        self.db.execute(
            'CREATE TABLE chunks(id INTEGER PRIMARY KEY, document INTEGER, "index" INTEGER, length INTEGER)'
        )
        self.alive: dict[int, Terms] = {}
        self.bm25 = bm25 or Bm25Settings()
        self._count()

    def add(self, *batches: Sequence[Terms]) -> None:
        """One segment of one or several batches."""
        parts = []
        for chunks in batches:
            inverter = postings.Inverter(self.bm25)
            lengths = [inverter.add(terms) for terms in chunks]
            first = segments.allocate(self.db, len(chunks))
            parts.append((first, inverter.segment()))
            for number, terms, length in zip(itertools.count(first), chunks, lengths, strict=False):
                # Names run against the order of ids, so that ties are seen to break by name.
                self.db.execute("INSERT INTO documents VALUES (?, ?)", (number, name_of(number)))
                self.db.execute("INSERT INTO chunks VALUES (?, ?, 0, ?)", (number, number, length))
                self.alive[number] = terms
        postings.write(self.db, parts)
        self._count()

    def delete(self, chunks: Sequence[int]) -> None:
        postings.delete(self.db, {chunk: self.alive.pop(chunk) for chunk in chunks})
        self.db.executemany("DELETE FROM chunks WHERE id = ?", ((chunk,) for chunk in chunks))
        self._count()

    def segments(self) -> list[int]:
        return [row[0] for row in self.db.execute("SELECT id FROM segments ORDER BY first")]

    def _count(self) -> None:
        rows = [("chunk_count", len(self.alive)), ("term_count", sum(map(len, self.alive.values())))]
        self.db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)


def name_of(chunk: int) -> str:
    return f"d{2 * 10**9 - chunk}"


def expected(
    corpus: Corpus, query: Sequence[str], k: int, bm25: Bm25Settings, allowed: Sequence[tuple[int, int]] | None = None
) -> list[tuple[str, float]]:
    """The reference ranking; statistics are of the whole corpus, `allowed` only filters."""
    ranking = reference.ranking(
        {name_of(chunk): terms for chunk, terms in corpus.alive.items()}, query, bm25.k1, bm25.b
    )
    if allowed is not None:
        names = {name_of(chunk) for first, last in allowed for chunk in range(first, last + 1)}
        ranking = [hit for hit in ranking if hit[0] in names]
    return ranking[:k]


def search_with(
    kind: str,
    corpus: Corpus,
    query: Sequence[str],
    k: int,
    bm25: Bm25Settings,
    allowed: Sequence[tuple[int, int]] | None,
) -> list[tuple[str, float]]:
    """One of the two ways, whatever the size of the lists."""
    index = KeywordIndex(corpus.db)
    terms = [term for term in index.look_up(query, bm25) if term.df]
    ordered = sorted(terms, key=lambda term: -term.bound)
    if not ordered:
        return []
    state, lists = index._state(), Lists(corpus.db)
    scorer = Scorer(corpus.db, terms, lists, bm25, state.average)
    search = Search(lists, scorer, k, Admission(state.dead, allowed))
    if kind == "stdlib":
        found = maxscore.candidates(ordered, search, 10**9)
    else:
        found = maxscore_numpy.candidates(ordered, search, index._arena())
        assert not index._arena().bounds.any()
    assert found is not None
    return [(name_of(hit.chunk), hit.score) for hit in index._best(found, scorer, k)]


def assert_same(found: list[tuple[str, float]], wanted: list[tuple[str, float]]) -> None:
    """The same scores in the same order. Names may change places where scores differ by a rounding only."""
    assert [score for _, score in found] == pytest.approx([score for _, score in wanted], abs=1e-9, rel=0)
    floor = wanted[-1][1] + 1e-9 if wanted else 0.0
    assert {name for name, score in found if score > floor} == {name for name, score in wanted if score > floor}
    reference_scores = dict(wanted)
    assert all(abs(reference_scores.get(name, score) - score) <= 1e-9 for name, score in found)


CHUNK = st.lists(st.sampled_from(WORDS), max_size=12)
BATCH = st.lists(CHUNK, min_size=1, max_size=8)
STEP = st.one_of(
    st.lists(BATCH, min_size=1, max_size=3).map(lambda batches: ("add", batches)),
    st.sets(st.integers(0, 60), max_size=6).map(lambda picks: ("delete", picks)),
    st.tuples(st.integers(0, 6), st.integers(1, 4)).map(lambda span: ("merge", span)),
)


def replay(corpus: Corpus, steps: Sequence[tuple[str, object]]) -> None:
    for action, what in steps:
        if action == "add":
            corpus.add(*cast("list[list[Terms]]", what))
        elif action == "delete":
            alive = sorted(corpus.alive)
            picks = sorted({alive[pick % len(alive)] for pick in cast("set[int]", what)} if alive else ())
            corpus.delete(picks)
        else:
            start, length = cast("tuple[int, int]", what)
            group = corpus.segments()[slice(start, start + length)]
            if group:
                merging.merge(corpus.db, group)


@pytest.mark.spec("I32", "I31")
@given(
    steps=st.lists(STEP, min_size=1, max_size=10),
    query=st.lists(st.sampled_from([*WORDS, "unknown"]), min_size=1, max_size=6),
    k=st.integers(1, 12),
    bm25=st.sampled_from(
        [Bm25Settings(), Bm25Settings(k1=1.2, b=0.4), Bm25Settings(k1=2.0, b=1.0), Bm25Settings(k1=0.5, b=0.0)]
    ),
    narrow=st.booleans(),
)
@settings(max_examples=300, deadline=None)
def test_scores_equal_the_reference_after_any_history(
    steps: list[tuple[str, object]], query: list[str], k: int, bm25: Bm25Settings, narrow: bool
) -> None:
    corpus = Corpus()
    with closing(corpus.db):
        replay(corpus, steps)
        assert postings_check.check(corpus.db) == []
        allowed = [(2, 5), (9, 30)] if narrow else None
        wanted = expected(corpus, query, k, bm25, allowed)
        for kind in ("stdlib", "numpy"):
            assert_same(search_with(kind, corpus, query, k, bm25, allowed), wanted)
        found = KeywordIndex(corpus.db).search(query, k, bm25, allowed)
        assert_same([(name_of(hit.chunk), hit.score) for hit in found], wanted)
        assert all(sum(hit.parts.values()) == hit.score for hit in found)


@pytest.fixture
def corpus() -> Iterator[Corpus]:
    made = Corpus()
    yield made
    made.db.close()


@pytest.mark.spec("I32")
def test_long_lists_over_many_blocks_prune_without_loss(corpus: Corpus) -> None:
    """Thousands of chunks, so that both ways cut; frequencies above a byte; drifting lengths."""
    import random

    dice = random.Random(5)

    def batch(number: int) -> list[Terms]:
        return [
            ["common"] * dice.randint(1, 3)
            + [f"t{int(dice.paretovariate(0.7)) % 50}" for _ in range(dice.randint(1, 6 + 20 * number))]
            + ["loud"] * (dice.randint(250, 600) if dice.random() < 0.01 else 0)
            for _ in range(5000 if number == 2 else 1500)
        ]

    corpus.add(batch(0))
    corpus.add(batch(1), batch(2))
    corpus.add(batch(3))
    corpus.delete(dice.sample(sorted(corpus.alive), 700))
    merging.merge(corpus.db, corpus.segments()[1:])
    many = [f"t{number}" for number in range(60)] * 2
    for query in (["t1", "common"], ["t3", "t7", "t40", "common", "t1"], ["loud", "t2", "t2"], ["common"], many):
        wanted = expected(corpus, query, 10, Bm25Settings())
        for kind in ("stdlib", "numpy"):
            assert_same(search_with(kind, corpus, query, 10, Bm25Settings(), None), wanted)


@pytest.mark.spec("I32")
def test_equal_scores_break_by_document_id(corpus: Corpus) -> None:
    corpus.add([["same", "words"] for _ in range(50)])
    found = KeywordIndex(corpus.db).search(["same"], 3)
    assert [hit.chunk for hit in found] == [49, 48, 47]  # names descend as ids ascend


@pytest.mark.spec("I31")
def test_maintenance_joins_small_segments_and_forgets_the_dead(corpus: Corpus) -> None:
    for number in range(20):
        corpus.add([["a", f"x{number}"], ["b"]])
    corpus.delete([chunk for chunk in corpus.alive if chunk % 2])
    merging.maintain(corpus.db, ignore_event)
    assert len(corpus.segments()) < 8
    assert corpus.db.execute("SELECT count(*) FROM terms WHERE term = 'b'").fetchone() == (0,)
    assert_same(
        [(name_of(hit.chunk), hit.score) for hit in KeywordIndex(corpus.db).search(["a", "x3"], 40)],
        expected(corpus, ["a", "x3"], 40, Bm25Settings()),
    )


@pytest.mark.spec("I32")
def test_terms_that_are_not_what_was_indexed_are_found_out(corpus: Corpus) -> None:
    """A delete under another analysis (another version of Unicode) still leaves exact counts."""
    corpus.add([["a", "b"], ["a", "c"]])
    corpus.alive[0] = ["a", "other"]
    corpus.delete([0])
    assert_same(
        [(name_of(hit.chunk), hit.score) for hit in KeywordIndex(corpus.db).search(["a", "b"], 5)],
        expected(corpus, ["a", "b"], 5, Bm25Settings()),
    )


@pytest.mark.spec("I32")
def test_under_another_unicode_no_term_of_a_delete_is_trusted(corpus: Corpus) -> None:
    """Wrong terms that other chunks do have: nothing but the version could give them away."""
    corpus.add([["a", "b"], ["a", "c"], ["c"]])
    corpus.db.execute("UPDATE meta SET value = '1.0' WHERE key = 'unicode'")
    corpus.alive[0] = ["c", "c"]
    corpus.delete([0])
    assert postings_check.check(corpus.db) == []
    for query in (["a"], ["b"], ["c"]):
        found = [(name_of(hit.chunk), hit.score) for hit in KeywordIndex(corpus.db).search(query, 5)]
        assert_same(found, expected(corpus, query, 5, Bm25Settings()))
    corpus.add([["d"]])
    assert corpus.db.execute("SELECT value FROM meta WHERE key = 'unicode'").fetchone() == ("several",)


def test_a_chunk_that_no_segment_has_can_not_be_deleted(corpus: Corpus) -> None:
    with pytest.raises(ValueError, match="chunk 7 is in no segment"):
        postings.delete(corpus.db, {7: ["a"]})


def test_a_segment_is_bounded() -> None:
    inverter = postings.Inverter(Bm25Settings())
    for _ in range(BLOCK):
        inverter.add([])
    with pytest.raises(ValueError, match="65536"):
        inverter.add([])


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        ("UPDATE terms SET df = df + 1 WHERE term = 'b'", "df is 2, but 1 chunks have it"),
        ("UPDATE chunks SET length = 9 WHERE id = 1", "length that their postings don't add up to, the first is 1"),
        ("DELETE FROM chunks WHERE id = 0", "segment 1 counts 2 chunks; 1 are there"),
        ("UPDATE posting_lists SET tfs = x'01'", "columns of different lengths"),
    ],
)
def test_the_check_finds_damage(corpus: Corpus, damage: str, fault: str) -> None:
    corpus.add([["a", "b"], ["a"] * 300])
    assert postings_check.check(corpus.db) == []
    corpus.db.execute(damage)
    assert any(fault in found for found in postings_check.check(corpus.db))


def test_an_inverter_is_freed_without_the_cycle_collector() -> None:
    """Batches come by the thousand; what each leaves behind until a collection would add up."""
    inverter = postings.Inverter(Bm25Settings())
    inverter.add(["a", "b", "a"])
    inverter.segment()
    gone = weakref.ref(inverter._numbers)
    vocabulary = inverter._vocabulary
    assert not any(held is vocabulary for held in gc.get_referents(vocabulary.default_factory))
    gc.disable()
    try:
        del inverter
        assert gone() is None
    finally:
        gc.enable()
