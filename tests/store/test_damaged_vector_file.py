"""A side file whose body is damaged: no search shows what it says, no update keeps it, and the check names it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from ragcli.errors import IndexCorrupt
from ragcli.store.sqlite import bit_planes, dense, vector_file, vectors
from ragcli.store.sqlite.check import check
from ragcli.store.sqlite.dense import DenseIndex
from ragcli.store.sqlite.vector_file import Updated
from tests.reference import dense as reference
from tests.store.vectored import Vectored, clustered

COUNT, DIMENSION = 700, 100
FAULT = "index.vec does not show the index's vectors: delete it, it is made again"

Section = tuple[int, int]  # first byte, and how many


def up(size: int) -> int:
    return -(-size // 64) * 64


def sections(count: int = COUNT) -> dict[str, Section]:
    """Where each lies, as the module's text lays them out."""
    planes = 8 * bit_planes.words(DIMENSION) * count
    sizes = {"ids": 8 * count, "tags": 8 * count, "norms": 4 * count, "mean": 4 * DIMENSION, "planes": planes}
    found, at = {}, 128
    for name, size in {**sizes, "rows": 2 * count * DIMENSION}.items():
        found[name] = (at, size)
        at += up(size)
    return found


def rotated(data: bytes) -> bytes:
    return data[800:] + data[:800] if len(data) > 800 else data[40:] + data[:40]


def random(data: bytes) -> bytes:
    return np.random.default_rng(7).bytes(len(data))


def eighth(change: Callable[[bytes], bytes]) -> Callable[[bytes], bytes]:
    """The damage of a stretch in the middle."""

    def changed(data: bytes) -> bytes:
        first, last = len(data) // 2, len(data) // 2 + len(data) // 8
        return data[:first] + change(data[first:last]) + data[last:]

    return changed


KINDS: dict[str, Callable[[bytes], bytes]] = {
    "zeros": lambda data: bytes(len(data)),
    "ones": lambda data: b"\xff" * len(data),
    "rotated": rotated,
    "random": random,
    "ids of 10^15": lambda data: (np.arange(len(data) // 8) + 10**15).astype("<i8").tobytes().ljust(len(data), b"\0"),
}
DAMAGES = {**KINDS, **{f"{name} in an eighth": eighth(change) for name, change in KINDS.items()}}


def damage(made: Vectored, section: str, change: Callable[[bytes], bytes]) -> None:
    data = made.side.read_bytes()
    start, size = sections()[section]
    changed = change(data[start : start + size])
    assert len(changed) == size
    made.side.write_bytes(data[:start] + changed + data[start + size :])


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Vectored]:
    with mock.patch.object(vectors, "FEW", 0), Vectored(tmp_path, DIMENSION) as index:
        index.add(clustered(COUNT, DIMENSION))
        assert vector_file.update(index.db, index.path, few=0) == Updated(added=COUNT)
        assert index.side.stat().st_size == up(sum(sections()["rows"]))
        yield index


def equals_reference(made: Vectored, index: DenseIndex) -> None:
    """In full, exact, within ranges, and among candidates by bits (there are enough of them to hold every vector)."""
    for query in clustered(2, DIMENSION, seed=3):
        for allowed in (None, [(40, 300), (500, 650)]):
            ids = None if allowed is None else {one for first, last in allowed for one in range(first, last + 1)}
            wanted = reference.ranking(made.alive, made.names, query.tolist(), 10, allowed=ids)
            for exact in (False, True):
                hits = index.search(query, 10, allowed=allowed, exact=exact)
                assert [(hit.chunk, hit.score) for hit in hits] == wanted


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("section", sections())
def test_results_are_right_whatever_is_damaged(made: Vectored, section: str, how: str) -> None:
    damage(made, section, DAMAGES[how])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        equals_reference(made, DenseIndex(made.db, made.path, DIMENSION))
        made.add(clustered(5, DIMENSION, seed=9))  # the file shows an earlier state, and serves in part
        equals_reference(made, DenseIndex(made.db, made.path, DIMENSION))


@pytest.mark.parametrize("how", ["zeros", "random", "another vector"])
def test_the_one_row_that_is_damaged_wins_nothing_and_loses_nothing(made: Vectored, how: str) -> None:
    """Few rows are compared when the file is opened: this one is not among them."""
    query = np.array(made.alive[24], np.float32)
    other = (-query).astype("<f2").tobytes()
    start, size = sections()["rows"][0] + 23 * 2 * DIMENSION, 2 * DIMENSION
    new = {"zeros": bytes(size), "random": random(bytes(size)), "another vector": other}[how]
    data = made.side.read_bytes()
    made.side.write_bytes(data[:start] + new + data[start + size :])
    probe = query if how != "another vector" else -query  # what lies there would win
    hits = DenseIndex(made.db, made.path, DIMENSION).search(probe, 5)
    assert [(hit.chunk, hit.score) for hit in hits] == reference.ranking(made.alive, made.names, probe.tolist(), 5)


@pytest.mark.parametrize("section", ["ids", "norms", "planes", "rows"])
def test_a_query_puts_a_sound_file_in_the_place_of_a_damaged_one(made: Vectored, section: str) -> None:
    before = made.side.read_bytes()
    damage(made, section, KINDS["zeros"])
    index = DenseIndex(made.db, made.path, DIMENSION)
    index.search(clustered(1, DIMENSION)[0], 5)
    assert made.side.read_bytes() == before
    with mock.patch.object(vector_file, "every_row", side_effect=AssertionError("the file is used again")):
        index.search(clustered(1, DIMENSION)[0], 5)


def test_where_no_file_can_be_written_memory_serves(made: Vectored) -> None:
    damage(made, "rows", KINDS["zeros"])
    with mock.patch.object(vector_file, "write_beside", side_effect=PermissionError) as tried:
        index = DenseIndex(made.db, made.path, DIMENSION)
        equals_reference(made, index)
        assert tried.call_count == 1


def test_candidates_by_bits_of_a_damaged_file_are_not_believed(made: Vectored) -> None:
    query = clustered(1, DIMENSION, seed=4)[0]
    wanted = reference.ranking(made.alive, made.names, query.tolist(), 10)
    with mock.patch.object(dense, "PLAIN", 0), mock.patch.object(dense, "CANDIDATES", 0):
        for section in ("planes", "rows", "ids"):
            damage(made, section, rotated)
            hits = DenseIndex(made.db, made.path, DIMENSION).search(query, 10)
            assert [(hit.chunk, hit.score) for hit in hits] == wanted


# ------------------------------------------------------------------------------------------------ update and check


@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("section", sections())
@pytest.mark.parametrize("grown", [False, True])
def test_an_update_makes_a_damaged_file_anew(made: Vectored, section: str, how: str, grown: bool) -> None:
    before = made.side.read_bytes()
    damage(made, section, DAMAGES[how])
    if made.side.read_bytes() == before:
        pytest.skip("nothing is changed by that")
    if grown:
        made.add(clustered(5, DIMENSION, seed=9))
    done = vector_file.update(made.db, made.path, few=0)
    assert done.kept < COUNT
    file = vector_file.load(str(made.side), DIMENSION)
    assert file is not None
    assert file.ids.tolist() == sorted(made.alive)
    assert np.array_equal(file.rows, np.array([made.alive[chunk] for chunk in sorted(made.alive)]))
    assert not vector_file.differs(made.db, str(made.side), DIMENSION)


def side_faults(made: Vectored) -> list[str]:
    with closing(made.reader()) as db:
        return [fault for fault in check(db) if ".vec" in fault]


@pytest.mark.spec("I35")
@pytest.mark.parametrize("how", DAMAGES)
@pytest.mark.parametrize("section", sections())
def test_the_check_names_a_damaged_file(made: Vectored, section: str, how: str) -> None:
    before = made.side.read_bytes()
    assert side_faults(made) == []
    damage(made, section, DAMAGES[how])
    assert side_faults(made) == ([FAULT] if made.side.read_bytes() != before else [])


@pytest.mark.spec("I35")
def test_the_check_compares_every_number(made: Vectored) -> None:
    """One that neither its norm nor its bits tell: two rows of equal norm and signs would do; here, the last bit."""
    data = bytearray(made.side.read_bytes())
    data[sections()["rows"][0] + 100 * 2 * DIMENSION] ^= 1
    made.side.write_bytes(data)
    assert side_faults(made) == [FAULT]


@pytest.mark.spec("I35")
def test_a_file_of_another_state_is_no_fault(made: Vectored) -> None:
    damage(made, "rows", KINDS["zeros"])
    made.add(clustered(1, DIMENSION, seed=2))
    assert side_faults(made) == []
    made.side.write_bytes(b"not one at all")
    assert side_faults(made) == []
    made.side.unlink()
    assert side_faults(made) == []


def test_a_vector_cut_short_in_sqlite_is_still_named(made: Vectored) -> None:
    made.db.execute("UPDATE vectors SET vector = x'0000' WHERE chunk = 1")
    made.db.commit()
    with pytest.raises(IndexCorrupt, match="chunk 1 has a wrong length"):
        DenseIndex(made.db, made.path, DIMENSION).search(clustered(1, DIMENSION)[0], 5)
