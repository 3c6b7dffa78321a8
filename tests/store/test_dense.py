"""Dense search against plain loops: after any sequence of changes, with and without a side file, filters and floors."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from ragcli.errors import IndexCorrupt
from ragcli.store.sqlite import dense, schema, vector_file, vectors
from ragcli.store.sqlite.dense import DenseIndex
from tests.reference import dense as reference
from tests.store.vectored import Vectored, clustered

Floats = NDArray[np.float32]
Hits = list[tuple[int, float]]


@pytest.fixture
def no_few() -> Iterator[None]:
    """Even a handful of vectors gets a side file."""
    with mock.patch.object(vectors, "FEW", 0):
        yield


def search(index: DenseIndex, query: Floats, k: int, **options: object) -> Hits:
    return [(hit.chunk, hit.score) for hit in index.search(query, k, **options)]  # type: ignore[arg-type]


def expected(made: Vectored, query: Floats, k: int, **options: object) -> Hits:
    return reference.ranking(made.alive, made.names, query.tolist(), k, **options)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------ against plain loops

SMALL = st.integers(-2, 2)


@st.composite
def vector_lists(draw: st.DrawFn, dimension: int) -> list[list[int]]:
    """Vectors of few different numbers, so that many are equal, or equally far from a query."""
    rows = st.lists(SMALL, min_size=dimension, max_size=dimension).filter(any)
    return draw(st.lists(rows, min_size=1, max_size=12))


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, list[tuple[str, object]]]:
    dimension = draw(st.sampled_from([1, 2, 3, 8]))
    kinds = draw(st.lists(st.sampled_from(["add", "delete", "update", "replace"]), min_size=1, max_size=6))
    details = [draw(vector_lists(dimension)) if kind == "add" else draw(st.integers(0, 2**20)) for kind in kinds]
    return dimension, list(zip(kinds, details, strict=True))


def play(made: Vectored, steps: list[tuple[str, object]]) -> None:
    for kind, detail in steps:
        ids = sorted(made.alive)
        if kind == "add":
            made.add(np.array(detail, np.float32))
        elif kind == "update":
            vector_file.update(made.db, made.path, few=0)
        elif kind == "delete":
            assert isinstance(detail, int)
            made.delete([chunk for at, chunk in enumerate(ids) if detail >> (at % 20) & 1])
        elif ids:
            rows = np.random.default_rng(detail if isinstance(detail, int) else 0).integers(
                1, 4, (len(ids), made.dimension)
            )
            made.replace(dict(zip(ids, rows.astype(np.float32), strict=True)))


@pytest.mark.spec("R3", "R4", "R9", "R41", "I31")
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=histories(), data=st.data())
def test_search_equals_plain_loops_after_any_history(
    history: tuple[int, list[tuple[str, object]]], data: st.DataObject, no_few: None
) -> None:
    dimension, steps = history
    with tempfile.TemporaryDirectory() as folder, Vectored(Path(folder), dimension) as made:
        index = DenseIndex(made.db, made.path, dimension)  # stays open over the changes
        for at in range(len(steps)):
            play(made, steps[at : at + 1])
            query = np.array(data.draw(st.lists(SMALL, min_size=dimension, max_size=dimension).filter(any)), np.float32)
            k = data.draw(st.integers(1, 40))
            floor = data.draw(st.sampled_from([None, -1.0, 0.0, 0.5, 1.0]))
            allowed = data.draw(st.none() | ranges(made.next))
            ids = None if allowed is None else {one for first, last in allowed for one in range(first, last + 1)}
            wanted = expected(made, query, k, allowed=ids, floor=-2.0 if floor is None else floor)
            exact = data.draw(st.booleans())
            assert search(index, query, k, allowed=allowed, exact=exact, floor=floor) == wanted
            with closing(made.reader()) as db:
                fresh = DenseIndex(db, made.path, dimension)
                assert search(fresh, query, k, allowed=allowed, floor=floor) == wanted
                assert fresh.scores(query, sorted(made.alive)) == {
                    chunk: reference.cosine(query.tolist(), vector) for chunk, vector in made.alive.items()
                }


def ranges(end: int) -> st.SearchStrategy[list[tuple[int, int]]]:
    """Sorted, disjoint ranges of ids up to a little beyond the last."""
    cuts = st.lists(st.integers(0, end + 2), max_size=8, unique=True).map(sorted)
    return cuts.map(lambda found: list(zip(found[::2], found[1::2], strict=False)))


@pytest.mark.parametrize("dimension", [8, 100, 256, 384, 3072])
@pytest.mark.parametrize("filed", [True, False])
def test_every_dimension(tmp_path: Path, dimension: int, filed: bool, no_few: None) -> None:
    rows = clustered(300, dimension)
    with Vectored(tmp_path, dimension) as made, closing(made.reader()) as db:
        made.add(rows)
        if filed:
            assert vector_file.update(made.db, made.path, few=0).added == 300
        index = DenseIndex(db, made.path, dimension)
        for query in clustered(3, dimension, seed=1):
            assert search(index, query, 10) == expected(made, query, 10)


@pytest.mark.parametrize("large", ["many", "bits"])
def test_the_best_of_the_eligible_come_back_however_many_there_are(tmp_path: Path, large: str) -> None:
    """Above and below what is compared in full, through masks and through few ranges (R9)."""
    rows = clustered(6000, 32)
    with Vectored(tmp_path, 32) as made:
        made.add(rows)
        vector_file.update(made.db, made.path)
        index = DenseIndex(made.db, made.path, 32)
        plain = 500 * 32 if large == "bits" else dense.PLAIN
        with mock.patch.object(dense, "PLAIN", plain), mock.patch.object(dense, "CANDIDATES", 2500 * 32):
            for query in clustered(4, 32, seed=5):
                for allowed in ([(10, 40)], [(1, 5500)], [(at, at + 3) for at in range(1, 6000, 7)]):
                    ids = {one for first, last in allowed for one in range(first, last + 1)}
                    assert search(index, query, 10, allowed=allowed) == expected(made, query, 10, allowed=ids)


@pytest.mark.parametrize("large", ["many", "bits"])
def test_a_file_of_an_earlier_state_is_searched_without_what_is_gone(tmp_path: Path, large: str) -> None:
    rows = clustered(6000, 32)
    with Vectored(tmp_path, 32) as made, closing(made.reader()) as db:
        made.add(rows[:5900])
        vector_file.update(made.db, made.path)
        made.delete({*range(1, 5900, 9), *range(40, 60)})
        made.add(rows[5900:])
        before = made.side.read_bytes()
        index = DenseIndex(db, made.path, 32)
        plain = 500 * 32 if large == "bits" else dense.PLAIN
        with mock.patch.object(dense, "PLAIN", plain), mock.patch.object(dense, "CANDIDATES", 2500 * 32):
            for query in [rows[0], rows[45], *clustered(3, 32, seed=5)]:
                assert search(index, query, 10) == expected(made, query, 10)
                for allowed in ([(10, 80)], [(30, 5950)]):
                    ids = {one for first, last in allowed for one in range(first, last + 1)}
                    assert search(index, query, 10, allowed=allowed) == expected(made, query, 10, allowed=ids)
        assert made.side.read_bytes() == before


def test_equal_vectors_have_equal_scores_wherever_they_stand(tmp_path: Path) -> None:
    rows = clustered(5000, 384)
    rows[[3, 700, 4999]] = rows[1234]
    with Vectored(tmp_path, 384) as made:
        made.add(rows)
        vector_file.update(made.db, made.path)
        more = made.add(rows[1234:1235])[0]  # this one is not in the file
        index = DenseIndex(made.db, made.path, 384)
        hits = search(index, rows[1234], 5)
        assert [chunk for chunk, _ in hits] == [more, 5000, 1235, 701, 4]  # documents' names run against ids
        assert len({score for _, score in hits}) == 1
        assert index.scores(rows[1234], [4, more]) == dict(hits[:1] + hits[-1:])
        assert search(index, rows[1234], 2) == hits[:2]


# ---------------------------------------------------------------------------------------------------- candidates


def test_bits_find_nearly_all_and_exact_finds_all(tmp_path: Path) -> None:
    rows = clustered(8000, 384, topics=400)
    queries = clustered(20, 384, seed=2, topics=400) * 0.2 + rows[:20]
    with Vectored(tmp_path, 384) as made:
        made.add(rows)
        vector_file.update(made.db, made.path)
        index = DenseIndex(made.db, made.path, 384)
        with mock.patch.object(dense, "PLAIN", 1000), mock.patch.object(dense, "LEAST", 100), no_more_candidates():
            by_bits = [search(index, query, 10) for query in queries]
            in_full = [search(index, query, 10, exact=True) for query in queries]
    assert in_full[0] == expected(made, queries[0], 10)
    found = [len(set(one) & set(other)) for one, other in zip(by_bits, in_full, strict=True)]
    assert sum(found) >= 0.99 * 10 * len(queries)


def no_more_candidates() -> AbstractContextManager[object]:
    return mock.patch.multiple(dense, CANDIDATES=0, PER_HIT=0)


def test_vectors_with_equal_bits_are_candidates_together(tmp_path: Path) -> None:
    """However many share the best score, the names decide which of them come back."""
    rows = clustered(6000, 64)
    rows[np.random.default_rng(0).permutation(6000)[:2500]] = rows[17]
    with Vectored(tmp_path, 64) as made:
        made.add(rows)
        vector_file.update(made.db, made.path)
        index = DenseIndex(made.db, made.path, 64)
        with mock.patch.object(dense, "PLAIN", 1000), mock.patch.object(dense, "LEAST", 50), no_more_candidates():
            assert search(index, rows[17], 20) == expected(made, rows[17], 20)


# ---------------------------------------------------------------------------------------------------- edges


def test_an_index_without_vectors(tmp_path: Path) -> None:
    with Vectored(tmp_path, 4) as made:
        index = DenseIndex(made.db, made.path, 4)
        query = np.ones(4, np.float32)
        assert search(index, query, 5) == []
        assert index.scores(query, [1, 2]) == {}
        assert index.vectors([1])[1].shape == (0, 4)
        vector_file.update(made.db, made.path, few=0)
        assert search(index, query, 5) == []


def test_a_query_of_zeros_is_near_to_nothing(tmp_path: Path) -> None:
    with Vectored(tmp_path, 4) as made:
        made.add(np.eye(4, dtype=np.float32))
        index = DenseIndex(made.db, made.path, 4)
        assert search(index, np.zeros(4, np.float32), 5) == []
        assert search(index, np.array([1, np.nan, 0, 0], np.float32), 5) == []
        assert index.scores(np.zeros(4, np.float32), [1]) == {1: 0.0}


def test_a_query_of_another_dimension_is_refused(tmp_path: Path) -> None:
    with Vectored(tmp_path, 4) as made, pytest.raises(ValueError, match="4 numbers"):
        DenseIndex(made.db, made.path, 4).search(np.ones(5, np.float32), 1)


def test_a_vector_cut_short_is_damage(tmp_path: Path) -> None:
    with Vectored(tmp_path, 4) as made:
        made.add(np.eye(4, dtype=np.float32))
        made.db.execute("UPDATE vectors SET vector = x'0000' WHERE chunk = 3")
        with pytest.raises(IndexCorrupt, match="chunk 3"):
            DenseIndex(made.db, made.path, 4).search(np.ones(4, np.float32), 1)


def test_vectors_come_in_the_order_asked_for_and_of_length_one(tmp_path: Path) -> None:
    rows = clustered(50, 100)
    with Vectored(tmp_path, 100) as made:
        made.add(rows)
        index = DenseIndex(made.db, made.path, 100)
        named, found = index.vectors([9, 4, 77, 30])
        assert named == [9, 4, 30]
        assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
        stored = np.array([made.alive[chunk] for chunk in named])
        assert np.allclose(found, stored / np.linalg.norm(stored, axis=1, keepdims=True), atol=1e-7)
        scores = index.scores(rows[0], named)
        unit = np.array(reference.unit(rows[0].tolist()))
        assert np.allclose(found @ unit, [scores[chunk] for chunk in named], atol=1e-6)


@pytest.mark.spec("R4")
def test_the_floor_is_the_lowest_cosine_that_counts(tmp_path: Path) -> None:
    with Vectored(tmp_path, 2) as made:
        made.add(np.array([[1, 0], [3, 4], [0, 1], [-1, 0]], np.float32))
        index = DenseIndex(made.db, made.path, 2)
        query = np.array([2, 0], np.float32)
        cosine = reference.cosine([2.0, 0.0], made.alive[2])  # of 3:4, about 0.6
        assert cosine == pytest.approx(0.6, abs=5e-4)
        assert search(index, query, 9) == [(1, 1.0), (2, cosine), (3, 0.0), (4, -1.0)]
        assert search(index, query, 9, floor=0.0) == [(1, 1.0), (2, cosine), (3, 0.0)]
        assert search(index, query, 9, floor=cosine) == [(1, 1.0), (2, cosine)]
        assert search(index, query, 9, floor=1.0) == [(1, 1.0)]
        assert search(index, query, 1, floor=-1.0) == [(1, 1.0)]


# --------------------------------------------------------------------------------------- readers beside a writer


def test_two_readers_and_a_writer(tmp_path: Path, no_few: None) -> None:
    """Each reader sees the state of its transaction, whichever file is in place."""
    rows, query = clustered(200, 16), clustered(1, 16, seed=9)[0]
    with Vectored(tmp_path, 16) as made, closing(made.reader()) as one, closing(made.reader()) as other:
        made.add(rows[:100])
        vector_file.update(made.db, made.path, few=0)
        first, second = DenseIndex(one, made.path, 16), DenseIndex(other, made.path, 16)
        one.execute("BEGIN")
        before = expected(made, query, 10)
        assert search(first, query, 10) == before
        made.delete([chunk for chunk, _ in before[:5]])
        made.add(rows[100:])
        after = expected(made, query, 10)
        assert search(first, query, 10) == before
        assert search(second, query, 10) == after
        vector_file.update(made.db, made.path, few=0)
        assert search(first, query, 10) == before
        assert search(DenseIndex(one, made.path, 16), query, 10) == before  # opens the newer file in the older state
        assert search(second, query, 10) == after
        one.execute("ROLLBACK")
        assert search(first, query, 10) == after


def test_a_copied_index_makes_its_own_file(tmp_path: Path, no_few: None) -> None:
    rows, query = clustered(50, 16), clustered(1, 16, seed=9)[0]
    with Vectored(tmp_path / "here", 16) as made:
        made.add(rows)
        vector_file.update(made.db, made.path, few=0)
        made.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        there = tmp_path / "there.db"
        shutil.copy(made.path, there)
        with closing(schema.open_reader(there)) as db:
            assert search(DenseIndex(db, there, 16), query, 5) == expected(made, query, 5)
        assert (tmp_path / "there.vec").read_bytes() == made.side.read_bytes()
        assert not (tmp_path / "there.vec.new").exists()


def test_a_folder_that_cannot_be_written_is_searched_in_memory(tmp_path: Path, no_few: None) -> None:
    rows, query = clustered(50, 16), clustered(1, 16, seed=9)[0]
    with Vectored(tmp_path, 16) as made:
        made.add(rows)
        made.side.with_name("index.vec.new").mkdir()  # also root can't write here
        assert search(DenseIndex(made.db, made.path, 16), query, 5) == expected(made, query, 5)
        assert not made.side.exists()


def test_a_read_only_medium(tmp_path: Path, no_few: None) -> None:
    rows, query = clustered(50, 16), clustered(1, 16, seed=9)[0]
    with Vectored(tmp_path, 16) as made:
        made.add(rows)
        made.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        folder = made.path.parent
        folder.chmod(0o555)
        try:
            with closing(sqlite3.connect(f"file:{made.path}?mode=ro&immutable=1", uri=True)) as db:
                assert search(DenseIndex(db, made.path, 16), query, 5) == expected(made, query, 5)
        finally:
            folder.chmod(0o755)


def test_a_reader_makes_no_file_for_few_vectors_or_few_changes(tmp_path: Path) -> None:
    rows, query = clustered(vectors.FEW + 60, 8), clustered(1, 8, seed=9)[0]
    with Vectored(tmp_path, 8) as made:
        made.add(rows[: vectors.FEW])
        index = DenseIndex(made.db, made.path, 8)
        assert search(index, query, 5) == expected(made, query, 5)
        assert not made.side.exists()
        made.add(rows[vectors.FEW :])
        assert search(index, query, 5) == expected(made, query, 5)
        before = made.side.read_bytes()
        made.add(rows[:20])
        assert search(index, query, 5) == expected(made, query, 5)
        assert made.side.read_bytes() == before
