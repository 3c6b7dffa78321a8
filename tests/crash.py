"""Kill a real ingest at a random moment and see what is left (spec I35): the harness behind the tests and `kill9.py`.

The ingest runs in a process of its own, with small batches so that a small corpus has many commits. After each commit
it prints how many documents another connection sees: that many must be there after the kill.
"""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from ragcli.errors import IndexMissing
from ragcli.store.sqlite import schema
from tests import indexes

SCRIPT = """
import sys
from contextlib import closing
from ragcli.ingest import commit, ingest_paths, parents, prepare, run, workers
from ragcli.options import IngestSettings, ModelsSettings, ParentsSettings, Settings
from ragcli.store.sqlite import schema
from ragcli.types import IngestOptions
from ragcli.read import load

index, corpus, workers, prune = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "prune"
commit.GROUP_SECONDS = commit.GROUP_SHARE = run.VECTOR_SECONDS = 0.0
run.WINDOW, parents.DOCUMENTS = 16, 20
run.BATCH_COST, run.FILE_COST, run.ONE_RUN, run.MAINTAIN_EVERY, load.RUN = 12_000, 256, 20_000, 3, 8_000

def count(event):
    if event.stage not in ("saved", "embedding", "parents"):
        return
    with closing(schema.open_reader(index)) as db:
        print(db.execute("SELECT count(*) FROM documents").fetchone()[0], flush=True)

print("begin", flush=True)
settings = Settings(
    ingest=IngestSettings(workers=workers), models=ModelsSettings(embedder=sys.argv[5]),
    parents=ParentsSettings(enabled=sys.argv[6] == "parents", size=400, overlap=50),
)
ingest_paths([corpus], settings, index, IngestOptions(prune=prune), listen=count)
print("end", flush=True)
"""

WORDS = [
    "alder",
    "birch",
    "cedar",
    "elm",
    "fir",
    "hazel",
    "larch",
    "maple",
    "oak",
    "pine",
    "rowan",
    "yew",
    "ash",
    "ivy",
]


def make_corpus(folder: Path, seed: int, files: int = 60, records: int = 300) -> None:
    """Files, one of them long, and a collection: what they say is decided by the seed."""
    chance = random.Random(seed)
    texts = {f"notes/{n:03}.md": f"# Note {n}\n\n{_words(chance, 120)}\n" for n in range(files)}
    texts["long.txt"] = "\n\n".join(_words(chance, 80) for _ in range(200))
    lines = [
        f'{{"_id": "r{n}", "title": "{_words(chance, 3)}", "text": "{_words(chance, 40)}"}}' for n in range(records)
    ]
    texts["records.jsonl"] = "\n".join(lines) + "\n"
    indexes.write(folder, texts)


def change_corpus(folder: Path, seed: int) -> None:
    """A later state: some files changed, some gone, some new; of the collection a few records changed or gone."""
    chance = random.Random(seed)
    notes = sorted((folder / "notes").iterdir())
    for path in chance.sample(notes, len(notes) // 3):
        path.write_text(f"# Changed\n\n{_words(chance, 150)}\n")
    for path in chance.sample(notes, len(notes) // 6):
        path.unlink()
    indexes.write(folder, {f"more/{n}.txt": _words(chance, 100) for n in range(15)})
    lines = (folder / "records.jsonl").read_text().splitlines()
    kept = [line for n, line in enumerate(lines) if n % 7]
    kept[::5] = [line.replace("oak", "changed oak") for line in kept[::5]]
    (folder / "records.jsonl").write_text("\n".join(kept) + "\n")
    (folder / "long.txt").write_text("\n\n".join(_words(chance, 80) for _ in range(150)))


def _words(chance: random.Random, number: int) -> str:
    return " ".join(chance.choice(WORDS) + str(chance.randrange(30)) for _ in range(number))


def start(
    index: Path,
    corpus: Path,
    *,
    workers: int = 1,
    prune: bool = True,
    embedder: str = "none",
    parents: bool = False,
) -> subprocess.Popen[str]:
    """The ingest, begun. `embedder`: a folder with a model, or none. `parents`: of 400 characters, overlap 50."""
    how = [str(workers), "prune" if prune else "keep", embedder, "parents" if parents else "none"]
    arguments = [sys.executable, "-c", SCRIPT, str(index), str(corpus), *how]
    root = Path(__file__).resolve().parents[1]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root)


def kill_at(
    index: Path, corpus: Path, chance: random.Random, *, workers: int = 1, embedder: str = "none", parents: bool = False
) -> tuple[int, bool, list[int]]:
    """Run an ingest and kill it at some moment. Gives (documents reported, whether it had ended, its workers)."""
    process = start(index, corpus, workers=workers, embedder=embedder, parents=parents)
    assert process.stdout
    assert process.stderr
    commits = chance.randrange(0, 14 if embedder == "none" else 60)
    reported, ended = 0, False
    for line in process.stdout:
        if line == "end\n":
            ended = True
        elif line != "begin\n":
            reported = int(line)
            commits -= 1
        if commits <= 0:
            break
    time.sleep(chance.random() * 0.03)
    children = _children(process.pid)
    process.send_signal(signal.SIGKILL)
    rest, complaints = process.communicate()
    for line in rest.split():
        ended = ended or line == "end"
        reported = int(line) if line.isdigit() else reported
    assert workers > 1 or not complaints, complaints  # multiprocessing's resource tracker tells of the kill
    assert "Traceback" not in complaints, complaints
    return reported, ended, children


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def wait_for_end(processes: list[int], seconds: float = 10.0) -> list[int]:
    """Those of the processes that are still there after so long."""
    end = time.monotonic() + seconds
    while (left := [pid for pid in processes if _runs(pid)]) and time.monotonic() < end:
        time.sleep(0.02)
    return left


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def inspect(index: Path, reported: int) -> int:
    """Assert that the index opens, is sound, and holds what was reported; gives its documents."""
    try:
        with closing(schema.open_reader(index)) as db:
            (documents,) = db.execute("SELECT count(*) FROM documents").fetchone()
    except IndexMissing:
        assert reported == 0
        return 0
    assert indexes.faults(index) == []
    assert documents >= reported
    return int(documents)
