"""The side file: what it holds, what is made of the one before, and that nothing damaged or foreign is ever used."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

import numpy as np
import pytest

from ragcli.store.sqlite import bit_planes, cosine, schema, vector_file, vectors
from ragcli.store.sqlite.vector_file import Snapshot, Updated
from tests.store.vectored import Vectored, clustered

DIMENSION = 100


def loaded(made: Vectored) -> vector_file.VectorFile:
    file = vector_file.load(str(made.side), made.dimension)
    assert file is not None
    return file


def check(made: Vectored) -> None:
    """The file shows the index as it is now."""
    file = loaded(made)
    assert file.shows == Snapshot.read(made.db)
    assert file.ids.tolist() == sorted(made.alive)
    stored = np.array([made.alive[chunk] for chunk in sorted(made.alive)])
    assert np.array_equal(file.rows, stored)
    assert np.allclose(file.norms, np.linalg.norm(stored, axis=1), atol=1e-6)
    assert np.allclose(file.mean, stored.mean(axis=0), atol=1e-6)
    for row, above in zip(file.planes.T.tolist(), stored > file.mean.astype(np.float64), strict=True):
        packed = int.from_bytes(np.packbits(above).tobytes().ljust(8 * len(row), b"\0"), "little")
        assert packed == sum(word << 64 * at for at, word in enumerate(row))


def test_update_copies_what_stays_and_drops_what_is_gone(tmp_path: Path) -> None:
    rows = clustered(300, DIMENSION)
    with Vectored(tmp_path, DIMENSION) as made:
        made.add(rows[:200])
        assert vector_file.update(made.db, made.path, few=0) == Updated(added=200)
        check(made)
        made.delete(range(50, 80))
        made.add(rows[200:])
        assert vector_file.update(made.db, made.path, few=0) == Updated(kept=170, added=100, dropped=30)
        check(made)
        written = made.side.stat().st_mtime_ns
        assert vector_file.update(made.db, made.path, few=0) == Updated(kept=270)
        assert made.side.stat().st_mtime_ns == written


def test_what_stays_is_not_read_from_sqlite_again(tmp_path: Path) -> None:
    with Vectored(tmp_path, DIMENSION) as made:
        made.add(clustered(100, DIMENSION))
        vector_file.update(made.db, made.path, few=0)
        made.db.execute("UPDATE vectors SET vector = x'00' WHERE chunk <= 100")
        made.add(clustered(5, DIMENSION, seed=1))
        assert vector_file.update(made.db, made.path, few=0) == Updated(kept=100, added=5)
        check(made)


def test_an_id_that_comes_back_with_another_text_is_read_anew(tmp_path: Path) -> None:
    """After a power cut the last transactions may be missing, and others take their ids and their count."""
    rows = clustered(40, DIMENSION)
    with Vectored(tmp_path, DIMENSION) as made:
        made.add(rows[:20])
        vector_file.update(made.db, made.path, few=0)
        made.delete([18, 19, 20])
        made.add(rows[20:23], [18, 19, 20])
        assert vector_file.update(made.db, made.path, few=0) == Updated(kept=17, added=3, dropped=3)
        check(made)


def test_another_epoch_uses_nothing_of_the_file(tmp_path: Path) -> None:
    with Vectored(tmp_path, DIMENSION) as made:
        made.add(clustered(20, DIMENSION))
        vector_file.update(made.db, made.path, few=0)
        made.replace(dict(enumerate(clustered(20, DIMENSION, seed=3), start=1)))
        assert vector_file.update(made.db, made.path, few=0) == Updated(added=20)
        check(made)


@pytest.mark.parametrize("reason", ["few", "none"])
def test_no_file_is_kept_where_none_is_needed(tmp_path: Path, reason: str) -> None:
    with Vectored(tmp_path, DIMENSION) as made:
        made.add(clustered(20, DIMENSION))
        vector_file.update(made.db, made.path, few=0)
        if reason == "none":
            with schema.transaction(made.db):
                vectors.set_card(made.db, None)
        assert vector_file.update(made.db, made.path, few=20 if reason == "few" else 0) == Updated()
        assert not made.side.exists()


def test_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_file, "BLOCK", 7)
    with Vectored(tmp_path, DIMENSION) as made:
        made.add(clustered(100, DIMENSION))
        vector_file.update(made.db, made.path, few=0)
        check(made)
        made.delete(range(3, 40))
        made.add(clustered(10, DIMENSION, seed=1))
        vector_file.update(made.db, made.path, few=0)
        check(made)


# ---------------------------------------------------------------------------------------------------- damage

Damage = Callable[[bytes], bytes]


def flipped(at: int) -> Damage:
    return lambda data: data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :]


def cut(length: float) -> Damage:
    return lambda data: data[: int(length * len(data))]


DAMAGES = {
    "empty": lambda data: b"",
    "longer": lambda data: data + b"\0",
    "another file": lambda data: b"SQLite format 3\0" * 100,
    "the last byte is missing": lambda data: data[:-1],
    **{f"cut to {length}": cut(length) for length in (0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 0.9)},
    **{f"byte {at} of the header": flipped(at) for at in range(0, 72, 3)},
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_file_is_made_anew(tmp_path: Path, name: str) -> None:
    with Vectored(tmp_path, DIMENSION) as made:
        made.add(clustered(30, DIMENSION))
        vector_file.update(made.db, made.path, few=0)
        made.side.write_bytes(DAMAGES[name](made.side.read_bytes()))
        assert vector_file.load(str(made.side), DIMENSION) is None
        assert vector_file.update(made.db, made.path, few=0) == Updated(added=30)
        check(made)


def test_a_file_of_another_dimension_or_format_is_not_used(tmp_path: Path) -> None:
    with Vectored(tmp_path, DIMENSION) as made:
        made.add(clustered(30, DIMENSION))
        vector_file.update(made.db, made.path, few=0)
        assert vector_file.load(str(made.side), DIMENSION + 1) is None
        data = bytearray(made.side.read_bytes())
        struct.pack_into("<I", data, 8, 99)  # the format's number
        size = struct.calcsize("<8sIIQqq16s")
        data[size : size + 16] = blake2b(bytes(data[:size]), digest_size=16).digest()
        made.side.write_bytes(data)
        assert vector_file.load(str(made.side), DIMENSION) is None


def test_the_file_of_another_index_is_not_used(tmp_path: Path) -> None:
    rows = clustered(60, DIMENSION)
    with (
        Vectored(tmp_path / "a", DIMENSION) as one,
        Vectored(tmp_path / "b", DIMENSION, "2026-02-02T00:00:00Z") as other,
    ):
        one.add(rows[:30])
        other.add(rows[30:])
        vector_file.update(one.db, one.path, few=0)
        other.side.write_bytes(one.side.read_bytes())
        assert vector_file.update(other.db, other.path, few=0) == Updated(added=30)
        check(other)


def test_a_folder_at_its_place_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "index.vec").mkdir()
    assert vector_file.load(str(tmp_path / "index.vec"), 4) is None
    assert vector_file.load(str(tmp_path / "nothing.vec"), 4) is None


# --------------------------------------------------------------------------------------------- several at a time


def test_a_reader_does_not_overwrite_what_was_made_meanwhile(tmp_path: Path) -> None:
    with Vectored(tmp_path, DIMENSION) as made, closing(made.reader()) as db:
        made.add(clustered(30, DIMENSION))
        db.execute("BEGIN")
        assert Snapshot.read(db).count == 30
        made.add(clustered(5, DIMENSION, seed=1))
        vector_file.update(made.db, made.path, few=0)
        assert not vector_file.write_beside(db, str(made.side), None, DIMENSION)
        db.execute("ROLLBACK")
        check(made)
        assert not Path(vector_file.temporary(str(made.side))).exists()


def test_only_one_makes_the_file_at_a_time(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    with Vectored(tmp_path, DIMENSION) as made:
        made.add(clustered(30, DIMENSION))
        name = vector_file.temporary(str(made.side))
        with open(name, "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            assert not vector_file.write_beside(made.db, str(made.side), None, DIMENSION)
        assert os.path.exists(name)  # it is the other one's
        assert vector_file.write_beside(made.db, str(made.side), None, DIMENSION)
        check(made)


def test_a_file_that_is_being_made_is_not_taken_away(tmp_path: Path) -> None:
    fcntl = pytest.importorskip("fcntl")
    with Vectored(tmp_path, DIMENSION) as made:
        name = vector_file.temporary(str(made.side))
        with open(name, "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            remover = threading.Thread(target=vector_file.remove, args=(str(made.side),))
            remover.start()
            remover.join(0.2)  # if it does not wait for us, it is done by then
            os.replace(name, made.side)
        remover.join(20)
        assert not made.side.exists()
        assert not os.path.exists(name)


def test_only_the_file_that_was_written_gets_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Vectored(tmp_path, DIMENSION) as made:
        made.add(clustered(30, DIMENSION))
        name = Path(vector_file.temporary(str(made.side)))
        live = vector_file.live

        def disturbed(db: sqlite3.Connection) -> object:
            name.unlink()
            name.write_bytes(b"half of somebody else's")
            return live(db)

        monkeypatch.setattr(vector_file, "live", disturbed)
        with pytest.raises(FileNotFoundError, match="took the unfinished file away"):
            vector_file.write_beside(made.db, str(made.side), None, DIMENSION)
        assert not made.side.exists()
        assert name.read_bytes() == b"half of somebody else's"


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Vectored(tmp_path, DIMENSION) as made:
        made.add(clustered(30, DIMENSION))
        vector_file.update(made.db, made.path, few=0)
        before = made.side.read_bytes()
        made.add(clustered(900, DIMENSION, seed=1))
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
        try:
            with pytest.raises(OSError, match="File too large"):
                vector_file.update(made.db, made.path, few=0)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            signal.signal(signal.SIGXFSZ, handler)
        assert made.side.read_bytes() == before
        assert not Path(vector_file.temporary(str(made.side))).exists()
        vector_file.update(made.db, made.path, few=0)
        check(made)


KILLED = """
import sys
from ragcli.store.sqlite import schema, vector_file
vector_file.BLOCK = 16
print("start", flush=True)
vector_file.update(schema.open_writer(sys.argv[1]), sys.argv[1], few=0)
"""


@pytest.mark.parametrize("delay", [0.0, 0.004, 0.01, 0.02, 0.04])
def test_a_killed_update_is_harmless(tmp_path: Path, delay: float) -> None:
    with Vectored(tmp_path, DIMENSION) as made:
        made.add(clustered(20, DIMENSION))
        vector_file.update(made.db, made.path, few=0)
        before = made.side.read_bytes()
        made.add(clustered(2000, DIMENSION, seed=1))
        with subprocess.Popen([sys.executable, "-c", KILLED, str(made.path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(delay)  # somewhere in the middle, or after it: both must do
            process.kill()
        file = loaded(made)
        assert made.side.read_bytes() == before or file.shows == Snapshot.read(made.db)
        vector_file.update(made.db, made.path, few=0)
        check(made)
        assert not Path(vector_file.temporary(str(made.side))).exists()


# ---------------------------------------------------------------------------------------------- the parts of a search


@pytest.mark.parametrize("dimension", [1, 63, 64, 65, 384, 1000])
def test_hamming_counts_the_numbers_on_different_sides_of_the_mean(dimension: int) -> None:
    rows = clustered(200, dimension)
    mean = rows.mean(axis=0)
    planes, query = bit_planes.signs(rows, mean), clustered(1, dimension, seed=4)
    found = bit_planes.hamming(planes, bit_planes.signs(query, mean)[:, 0])
    assert found.tolist() == [sum(map(bool, (row > mean) ^ (query[0] > mean))) for row in rows]


@pytest.mark.parametrize("wanted", [1, 10, 100, 199, 200, 500])
@pytest.mark.parametrize("chosen", [None, range(0, 200, 3)])
def test_nearest_are_the_lowest_distances_and_all_equal_to_the_last(wanted: int, chosen: range | None) -> None:
    rows = clustered(200, 64)
    planes, mean = bit_planes.signs(rows, rows.mean(axis=0)), rows.mean(axis=0)
    bits = bit_planes.signs(clustered(1, 64, seed=4), mean)[:, 0]
    distances = bit_planes.hamming(planes, bits).tolist()
    places = chosen or range(200)
    last = sorted(distances[at] for at in places)[min(wanted, len(places)) - 1]
    found = bit_planes.nearest(planes, bits, wanted, None if chosen is None else np.array(chosen))
    assert found.tolist() == [at for at in places if distances[at] <= last]


def test_nearest_does_not_rely_on_what_a_sample_tells() -> None:
    """Every third row is looked at first; only these are near."""
    count = 3 * bit_planes.SAMPLE + 5
    distances = [at // 3 % 64 if at % 3 == 0 else 64 for at in range(count)]
    planes = np.array([[(1 << distance) - 1 for distance in distances]], np.uint64)
    found = bit_planes.nearest(planes, np.zeros(1, np.uint64), 1000)
    last = sorted(distances)[999]
    assert found.tolist() == [at for at, distance in enumerate(distances) if distance <= last]


@pytest.mark.parametrize("dimension", [1, 63, 64, 65, 384, 1000])
def test_agreement_is_the_sum_of_the_querys_numbers_where_bits_are_set(dimension: int) -> None:
    rows, query = clustered(700, dimension), clustered(1, dimension, seed=4)[0]
    planes, places = bit_planes.signs(rows, rows.mean(axis=0)), np.arange(1, 700, 2)
    above = rows[places] > rows.mean(axis=0)
    true = [sum(float(one) for one, is_set in zip(query, row, strict=True) if is_set) for row in above]
    assert np.allclose(bit_planes.agreement(planes, query, places), true, atol=1e-4 * dimension)


def test_approximate_cosines_stay_within_their_error() -> None:
    for dimension in (1, 8, 384, 3072):
        rows = clustered(500, dimension)
        halves = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype("<f2")
        query = cosine.Query(clustered(1, dimension, seed=2)[0])
        assert query.unit is not None
        wide = halves.astype(np.float64)
        true = wide @ query.unit / np.linalg.norm(wide, axis=1)
        assert np.abs(cosine.exact(halves, query) - true).max() < 1e-9
        for at in (None, np.arange(0, 500, 3)):
            found = cosine.approximate(halves, cosine.norms(cosine.widened(halves)), query, at)
            assert np.abs(found - (true if at is None else true[at])).max() <= cosine.error(dimension)


def test_all_float16_numbers_are_widened_rightly() -> None:
    """Those below the normal range too."""
    halves = np.arange(0x7C00, dtype=np.uint16).view(np.float16)[1:, None]
    found = cosine.approximate(halves, np.ones(len(halves), np.float32), cosine.Query(np.array([2], np.float32)))
    assert np.array_equal(found, halves[:, 0].astype(np.float32))
    for sign in (1, -1):
        assert np.array_equal(cosine.widened(sign * halves), sign * halves.astype(np.float32))
