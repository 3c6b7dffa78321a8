"""Prepared batches into the index: transactions in which ids are settled and what they replace goes (I6, I34, I35).

A document keeps its id for ever. Where two sources claim one, the later gets the name of its root in front, then more
parents, then `~2`, `~3`. Analyses nothing but what is deleted; reads no file.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from itertools import count
from types import TracebackType
from typing import NamedTuple

import msgspec

from ragcli.ingest.embed import Encoded
from ragcli.ingest.plan import SKIPS, Item
from ragcli.ingest.prepare import Part, Prepared, duplicate
from ragcli.store.sqlite import documents, tags
from ragcli.store.sqlite.documents import Batch, Existing, NewDocument, Terms
from ragcli.store.sqlite.postings import Segment
from ragcli.store.sqlite.schema import Connection
from ragcli.store.sqlite.segments import allocate
from ragcli.types import Problem, Source

AT_ONCE = 10_000  # documents deleted in one transaction
GROUP_SECONDS = 5.0  # at least so long between two commits …
GROUP_SHARE = 0.2  # … and so much of the time since the beginning
GROUP_CHUNKS = 98_304  # or so many chunks: their postings, some 30 MB, wait in memory for the commit
SETTLED_NS = 20_000_000  # a file written this shortly before may be written again within the same tick of its clock


class Tally:
    """What was done so far; grows with each commit."""

    def __init__(self) -> None:
        self.added = self.changed = self.unchanged = self.removed = self.chunks = self.bytes = 0
        self.embedded = self.reused = 0
        self.parents = 0
        self.skipped: list[Problem] = []
        self.failed: list[Problem] = []
        self.warnings: list[str] = []


class Open(msgspec.Struct):
    """A source on its way in. `existed`: the index knew it before this run; `renamed`: some ids were taken.

    `lost`: its records that could not be read.
    """

    item: Item
    existed: bool
    failure: Problem | None = None
    row: int | None = None
    renamed: bool = False
    lost: int = 0


class Committer:
    """Writes prepared batches. `open` holds the sources of this run that are under way, by number."""

    def __init__(self, db: Connection, terms: Terms, *, now_ns: int, rules: bytes | None, reader: bytes) -> None:
        self.db = db
        self.terms = terms
        self.now_ns = now_ns
        self.rules = rules
        self.reader = reader
        self.tally = Tally()
        self.open: dict[int, Open] = {}
        self.first_new = documents.first_free(db)
        self.settled = bytearray(self.first_new)  # a flag for each older document that this run found again
        self._clock = time.monotonic
        self._start = self._since = self._clock()
        self._group: ExitStack | None = None  # the transaction under way, the batch it writes with, its chunks
        self._batch: Batch | None = None
        self._held = 0
        self.uncommitted = 0  # vectors
        self._names: dict[str, str] = {}  # a term that many batches bring is kept once

    def batch(self) -> AbstractContextManager[Batch]:
        """A transaction."""
        return documents.batch(self.db, self.terms, now=self.now_ns // 1_000_000_000)

    def __enter__(self) -> Committer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Commit what was taken; after an error, leave the index as it was after the last commit."""
        if error is None:
            self.commit()
        elif self._group is not None:
            self._group.__exit__(kind, error, at)

    def take(self, prepared: Prepared) -> bool:
        """Write the batch into the transaction that is under way; True when that was committed with it.

        Batches are committed together, since their postings then become one segment: every few seconds at first, less
        often the longer the ingest has gone on, so that a kill loses at most a fixed share of the work.
        """
        batch = self._begun()
        late: list[tuple[Part, list[int]]] = []
        places = _Places(self.db, prepared.segments)
        ids = _Ids(batch, prepared, self.open)
        for part in prepared.parts:
            gone = self._put(part, _Write(batch, places, ids))
            if len(gone) > AT_ONCE and part.last:
                late.append((part, gone))
            else:
                batch.delete(gone)
                self._settle(part, batch)
        batch.flush(places.segments)
        for segment in prepared.segments:
            self._held += segment.chunks
            segment.terms[:] = map(self._names.setdefault, segment.terms, segment.terms)
        if not (late or self._is_due()):
            return False
        self.commit()
        for part, gone in late:
            self.remove(gone)
            with self.batch() as batch:
                self._settle(part, batch)
        return True

    def take_vectors(self, encoded: Encoded) -> None:
        """Write one window of vectors into the transaction that is under way."""
        batch = self._begun()
        batch.vectors.put(encoded.rows)
        batch.vectors.settle(encoded.settled)
        self.uncommitted += len(encoded.rows)
        self.tally.embedded += encoded.embedded
        self.tally.reused += encoded.reused

    def commit_vectors_after(self, seconds: float) -> None:
        """Commit when vectors alone were taken, the first of them so long ago: these need no company."""
        if not self._held and self._clock() - self._since >= seconds:
            self.commit()

    def _begun(self) -> Batch:
        if self._batch is None:
            self._group = ExitStack()
            self._batch = self._group.enter_context(self.batch())
            self._since = self._clock()
        return self._batch

    def _is_due(self) -> bool:
        now = self._clock()
        return self._held >= GROUP_CHUNKS or now - self._since >= max(GROUP_SECONDS, GROUP_SHARE * (now - self._start))

    def commit(self) -> None:
        """When this returns, all that was taken is in the index for good."""
        if self._group is not None:
            group, self._group, self._batch, self._held = self._group, None, None, 0
            group.close()
            self.uncommitted = 0
            self._names.clear()

    def remove(self, rows: Sequence[int]) -> None:
        """Delete documents, in transactions of a bearable size."""
        for at in range(0, len(rows), AT_ONCE):
            with self.batch() as batch:
                batch.delete(rows[at : at + AT_ONCE])

    def _put(self, part: Part, write: _Write) -> list[int]:
        """Queue the part's documents in place of those that they replace; at the source's end gives what is gone."""
        source = self.open[part.number]
        source.failure = source.failure or part.failure
        self.tally.bytes += part.bytes
        for problem in part.problems:
            self.lose(source, problem)
        self.tally.warnings += part.warnings
        if _has_vanished(source):
            return []
        # Until it is settled the source counts as unfinished: a kill in between makes the next run look again.
        row = source.row = write.batch.put_source(source.item.source, status="partial")
        replaced = [old for one in part.documents if (old := self._add(one, source, row, write)) is not None]
        write.batch.delete(replaced)
        self._keep(part, source, write.batch)
        if not part.last or not source.existed or source.failure:
            return []
        gone = self._unsettled(row)
        self.tally.removed += len(gone)
        return gone

    def _add(self, document: NewDocument, source: Open, row: int, write: _Write) -> int | None:
        """Queue the document; gives the row that it replaces."""
        first = write.places.take(len(document.chunks))
        old = write.ids.existing(row, document.raw)
        if old is not None and self._is_settled(old.id):
            write.batch.refuse(document, first)
            self.lose(source, duplicate(source.item.source, document.raw, document.first_line))
            return None
        document_id = old.document_id if old else write.ids.free(document, source.item.source)
        source.renamed = source.renamed or document_id != document.raw
        number = write.batch.add(document, source=row, document_id=document_id, first_chunk=first)
        write.ids.note(row, document.raw, Existing(number, document.hash, document.first_line, document_id))
        self.tally.chunks += len(document.chunks)
        self.tally.parents += len(document.parents or ())
        if old is None:
            self.tally.added += 1
            return None
        self.tally.changed += 1
        self.settled[old.id] = 1
        return old.id

    def lose(self, source: Open, problem: Problem) -> None:
        """A record of the source does not go in; its row says so until the source is read again."""
        source.lost += 1
        self.tally.failed.append(problem)

    def _is_settled(self, number: int) -> bool:
        return number >= self.first_new or bool(self.settled[number])

    def _keep(self, part: Part, source: Open, batch: Batch) -> None:
        for number, first_line in part.kept:
            if self._is_settled(number):
                self.lose(source, duplicate(source.item.source, "of an earlier record", first_line))
                continue
            self.settled[number] = 1
            self.tally.unchanged += 1
            batch.move(number, first_line)

    def _unsettled(self, row: int) -> list[int]:
        found = documents.of_source(self.db, row, below=self.first_new)
        return [number for number in found if not self.settled[number]]

    def _settle(self, part: Part, batch: Batch) -> None:
        """At a source's end, its row says what became of it."""
        if not part.last:
            return
        source = self.open.pop(part.number)
        if source.failure:
            self._record_failure(source.item.source, source.failure, batch)
        else:
            self._record_success(source, part, batch)

    def _record_success(self, source: Open, part: Part, batch: Batch) -> None:
        item, lost = source.item, source.lost
        reason = f"{lost} record{'s' * (lost > 1)} could not be read" if lost else None
        batch.put_source(
            item.source, status="complete", hash=part.hash, rules=self.rules, tags=tags.encode(item.tags),
            problem="incomplete" if lost else None, reason=reason, **self._facts(item.source),
        )  # fmt: skip

    def _record_failure(self, source: Source, failure: Problem, batch: Batch) -> None:
        """What went in before stays, with the size and time of then: its hits say that the file changed."""
        if failure.kind == "vanished":
            return
        is_skip = failure.kind in SKIPS
        (self.tally.skipped if is_skip else self.tally.failed).append(failure)
        row = batch.put_source(source, problem=failure.kind, reason=failure.reason, status="failed")
        if is_skip and not documents.of_source(self.db, row):
            batch.put_source(source, status="skipped", rules=self.reader, **self._facts(source))

    def _facts(self, source: Source) -> dict[str, object]:
        settled = source.mtime_ns < self.now_ns - SETTLED_NS
        return {"size": source.size, "mtime_ns": source.mtime_ns if settled else -1}

    def touch(self, items: Sequence[Item]) -> None:
        """The contents are what they were: take down the files' new times."""
        if not items:
            return
        with self.batch() as batch:
            for item in items:
                batch.put_source(item.source, **self._facts(item.source))

    def forget(self, sources: Sequence[int]) -> None:
        """Remove sources with all their documents."""
        rows = [number for source in sources for number in documents.of_source(self.db, source)]
        self.tally.removed += len(rows)
        for at in range(0, max(len(rows), 1), AT_ONCE):
            with self.batch() as batch:
                batch.delete(rows[at : at + AT_ONCE])
                if at + AT_ONCE >= len(rows):
                    batch.drop_sources(sources)

    def delete(self, rows: Sequence[int]) -> None:
        """Delete documents on request. The next ingest looks at their sources again."""
        self.tally.removed += len(rows)
        with self.batch() as batch:
            for row in rows:
                batch.reopen(row)
            batch.delete(rows)
            batch.drop_sources()


def _has_vanished(source: Open) -> bool:
    return source.failure is not None and source.failure.kind == "vanished"


class _Write(NamedTuple):
    """What one transaction writes with."""

    batch: Batch
    places: _Places
    ids: _Ids


class _Places:
    """Chunk ids for the documents of a batch, in their order: each document's are consecutive."""

    def __init__(self, db: Connection, segments: Sequence[Segment]) -> None:
        self.segments = [(allocate(db, segment.chunks), segment) for segment in segments]
        self._at = 0
        self._used = 0

    def take(self, chunks: int) -> int:
        """The id of the first of so many chunks."""
        if not chunks:
            return 0
        if self._used == self.segments[self._at][1].chunks:
            self._at, self._used = self._at + 1, 0
        first = self.segments[self._at][0] + self._used
        self._used += chunks
        while self._used > self.segments[self._at][1].chunks:  # a document of several segments, whose ids join on
            self._used -= self.segments[self._at][1].chunks
            self._at += 1
        return first


class _Ids:
    """Which ids are taken, by what, while one batch is written."""

    def __init__(self, batch: Batch, prepared: Prepared, open_: dict[int, Open]) -> None:
        self._db = batch.db
        raws = [document.raw for part in prepared.parts for document in part.documents]
        self._taken = documents.claims(batch.db, raws)
        self._own: dict[tuple[int, str], Existing] = {}
        for part in prepared.parts:
            source = open_[part.number]
            row = source.item.row.id if source.item.row else source.row
            if row is not None and part.documents and (source.existed or source.renamed):
                own = documents.existing(batch.db, row, [document.raw for document in part.documents])
                self._own.update({(row, raw): old for raw, old in own.items()})
        for raw, (owner, old) in self._taken.items():
            self._own.setdefault((owner, raw), old)

    def existing(self, row: int, raw: str) -> Existing | None:
        """The document that the source's reader called `raw`, as it is now."""
        return self._own.get((row, raw))

    def note(self, row: int, raw: str, document: Existing) -> None:
        """The source has this document from now on."""
        self._own[row, raw] = document
        self._taken[document.document_id] = (row, document)

    def free(self, document: NewDocument, source: Source) -> str:
        """The id for a new document: its own if nothing has it."""
        if document.raw not in self._taken:
            return document.raw
        return next(name for name in _names(document, source) if not self._is_taken(name, document.raw))

    def _is_taken(self, name: str, raw: str) -> bool:
        if name in self._taken:
            return True
        return name != raw and bool(documents.numbers(self._db, [name]))


def _names(document: NewDocument, source: Source) -> Iterator[str]:
    """Ids that a document may have, the best first."""
    raw = document.raw
    yield raw
    if not document.name and source.relative:
        yield f"{source.relative}/{raw}"  # a record: the collection's name tells it apart
    parents = [part for part in source.root.split("/") if part]
    for depth in range(1, len(parents) + 1):
        yield f"{'/'.join(parents[-depth:])}/{raw}"
    yield from (f"{raw}~{number}" for number in count(2))
