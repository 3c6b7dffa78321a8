"""One ingest from beginning to end: lock, guard, walk, batches, commits, and what is gone (spec I34, I35, I36, I39).

Everything streams: the walk, the runs of large collections, the prepared batches; memory stays flat as the corpus
grows. What was committed stays whatever happens next, and running again does the rest. Asks nobody anything.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import count
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from ragcli import __version__
from ragcli.errors import (
    IndexMissing,
    IndexUnusable,
    ModelMissing,
    RagcliError,
    ReadError,
    RemoteError,
    UsageError,
    did_you_mean,
)
from ragcli.ingest import parents as back_fill
from ragcli.ingest.commit import Committer, Open
from ragcli.ingest.embed import WINDOW, Encoding
from ragcli.ingest.plan import SKIPS, Comparison, Item, rules_digest
from ragcli.ingest.prepare import Job, Preparation, Prepared, Tools, failure_of, located
from ragcli.ingest.workers import Jobs, prepared
from ragcli.models import guard
from ragcli.options import ParentsSettings, Settings
from ragcli.store.sqlite import documents, lock, merging, parents, schema, vectors
from ragcli.store.sqlite.documents import STDIN
from ragcli.types import (
    Embedder,
    EmbedderCard,
    Event,
    IngestOptions,
    IngestReport,
    Listener,
    Problem,
    ReadRequest,
    Source,
    ignore_event,
)

if TYPE_CHECKING:
    from ragcli.models.place import ModelPlace

BATCH_COST = 4 * 1024 * 1024  # bytes of text: about half a second of work; larger ones only cost memory
BATCH_FILES = 4000
PDF_COST = 50  # a byte of PDF takes as long as so many of text
FILE_COST = 2048  # opening one, in bytes of text
COLLECTION = (".jsonl", ".ndjson")  # read in runs of lines
ONE_RUN = 4 * 1024 * 1024  # a collection up to this size is one job
MAINTAIN_EVERY = 32  # commits
VECTOR_SECONDS = 10.0  # of embedding that a kill may lose
STREAM = "-"  # the path of standard input
BESIDE = (".lock", "-wal", "-shm", "-journal")  # what lies beside an index
LARGEST_LOCK = 4096  # bytes: it holds one name
READER = __version__.encode()

PROBE = "ragcli"  # the first text that an embedder gets
WITHOUT = "or do without vectors, for now: ragcli ingest --no-embed PATH…"

Clock = Callable[[], datetime]


def utc_now() -> datetime:
    """The clock of those who bring none."""
    return datetime.now(UTC)


def ingest_paths(
    paths: Sequence[str],
    settings: Settings,
    index: str | os.PathLike[str],
    options: IngestOptions = IngestOptions(),  # noqa: B008 - frozen
    *,
    explicit: Collection[str] | None = None,
    stdin: BinaryIO | None = None,
    listen: Listener = ignore_event,
    now: Clock = utc_now,
    tokenizer: Callable[[], Path] | None = None,
    models: ModelPlace | None = None,
    wait: float = lock.WAIT_SECONDS,
) -> IngestReport:
    """Bring the index in step with the files behind `paths`; makes it if it is not there.

    `explicit`: dotted names of the settings that the user set (see `schema.guard`). `stdin` is what the path `-` reads.
    `tokenizer` gives the file of cl100k_base, and is called only where the chunking counts tokens. `models`: where
    models are kept, by default as the environment says. `wait`: seconds for another writer. The event "saved" comes
    after the commit of so many bytes.
    Raises: UsageError, IndexUnusable, IndexLocked, RagcliError (disk full); ModelMissing, RemoteError when a new index
    can't have its embedder. A file that can't be read, a chunk that can't be embedded raise nothing: they are in the
    report.
    """
    started = time.perf_counter()
    place = Path(os.path.abspath(index))  # noqa: PTH100 - Path.resolve would follow a link to the file
    call = _Call(paths, settings, place, options, explicit, stdin, listen, now(), tokenizer, models, [])
    sources = _walk(call)
    with schema.translated(place):
        if options.dry_run:
            result = _forecast(call, sources)
        else:
            _check_settings(call)
            _check_place(call)
            embedder = _embedder_of_new(call)
            with lock.writing(
                Path(os.path.realpath(place)), wait=wait, on_wait=lambda who: listen(Event("waiting", detail=who))
            ):
                result = _write(call, sources, embedder)
    seconds = time.perf_counter() - started
    skipped, failed = call.reported()
    return msgspec.structs.replace(
        result, seconds=seconds, index=str(place),
        skipped=(*skipped, *result.skipped), failed=(*failed, *result.failed),
    )  # fmt: skip


class _Call(msgspec.Struct, frozen=True):
    """What `ingest_paths` was called with; `now` is the time of the call, `walked` what the walk reports."""

    paths: Sequence[str]
    settings: Settings
    place: Path
    options: IngestOptions
    explicit: Collection[str] | None
    stdin: BinaryIO | None
    listen: Listener
    now: datetime
    tokenizer: Callable[[], Path] | None
    models: ModelPlace | None
    walked: list[Problem]

    @property
    def below(self) -> list[str]:
        """The paths as the walk spells them."""
        return [os.path.realpath(path) for path in self.paths if path != "-"]

    def reported(self) -> tuple[list[Problem], list[Problem]]:
        """What the walk left out by rule, and what it failed to read."""
        from ragcli.read.walk import UNREAD

        failed = [problem for problem in self.walked if problem.kind in UNREAD]
        return [problem for problem in self.walked if problem.kind not in UNREAD], failed

    def embedder(self, settings: Settings, card: EmbedderCard | None) -> Embedder:
        """The embedder that the settings name; `card`: what it must be."""
        from ragcli.models.embedder import open_embedder
        from ragcli.models.place import model_place

        opened = open_embedder(settings, self.models or model_place(settings), card)
        if card is not None:
            guard.check(card, opened.card)
        return opened

    def gone(self, comparison: Comparison) -> tuple[dict[str, int], int]:
        """As `Comparison.gone`; nothing below a folder that could not be read is."""
        return comparison.gone(self.below, [problem.path for problem in self.reported()[1]])

    def preparation(self, settings: Settings) -> Preparation:
        """What workers need to know."""
        counts_tokens = settings.chunking.unit == "tokens" or settings.chunking.strategy == "token"
        return Preparation(
            index=str(self.place),
            chunking=settings.chunking,
            analyzer=settings.analyzer,
            bm25=settings.bm25,
            max_file_bytes=settings.ingest.max_file_bytes,
            rules=settings.ingest.tags,
            tokenizer=str(self.tokenizer()) if self.tokenizer and counts_tokens else None,
            parents=settings.parents if settings.parents.enabled else None,
        )

    def compared(self, db: schema.Connection | None, report: Callable[[Problem], None]) -> Comparison:
        """The comparison of what the index knows with what the walk finds."""
        return Comparison(
            documents.known(db) if db else {},
            partial(documents.source, db),  # type: ignore[arg-type]  # called for what is known only
            rules=self.settings.ingest.tags,
            run_tags=self.options.tags,
            checksum=self.options.checksum,
            reader=READER,
            report=report,
        )


def _walk(call: _Call) -> Iterator[Source]:
    """The sources, without the files of indexes. A path that is not there raises now, before anything is opened."""
    if call.options.name and STREAM not in call.paths:
        raise UsageError("--name is for standard input, and no path is -", "leave it out, or read -")
    if not call.paths:
        return iter(())
    from ragcli.read.walk import MISSING, walk

    real = os.path.realpath(call.place)
    own = {real, f"{real}-wal", f"{real}-shm", vectors.side_file(real), str(lock.lock_path(real))}
    folder = call.place.parent if call.place.parent.name == ".ragcli" else None
    try:
        found = walk(call.paths, call.settings.ingest, report=call.walked.append, index_folder=folder)
    except UsageError as error:
        if call.options.prune and error.message.endswith(MISSING):
            hint = "nothing was removed: what the index has from a folder stays while that is not there"
            raise UsageError(error.message, hint) from error
        raise
    return (source for source in found if source.location not in own and not _is_beside(source, call.walked.append))


def _is_beside(source: Source, report: Callable[[Problem], None]) -> bool:
    """Whether the file belongs to some other index: its lock, or SQLite's. Reported then."""
    location = source.location
    if not location.endswith(BESIDE):
        return False
    index = next(location.removesuffix(suffix) for suffix in BESIDE if location.endswith(suffix))
    signed = location.endswith(".lock") and source.size < LARGEST_LOCK and lock.holder(index) is not None
    if signed or _is_index(index):
        report(Problem(location, "index", "a file beside another index"))
        return True
    return False


def _is_index(location: str) -> bool:
    """Whether a file is an index of ours, by the application id at byte 68 (https://sqlite.org/fileformat2.html)."""
    try:
        with Path(location).open("rb") as file:
            return file.read(72)[68:] == schema.APPLICATION_ID.to_bytes(4, "big")
    except OSError:
        return False


def _check_place(call: _Call) -> None:
    """What is only to be embedded anew, or rid of a document, must be there."""
    if not (call.paths or call.options.reset or call.place.exists()):
        raise IndexMissing(f"there is no index at {call.place}", "make one: ragcli ingest PATH…")


def _check_settings(call: _Call) -> None:
    """Raise what is wrong with chunking and analyzer before an index is made."""
    Tools(call.preparation(call.settings))


# --------------------------------------------------------------------------------------------------------- a dry run


def _forecast(call: _Call, sources: Iterator[Source]) -> IngestReport:
    """What an ingest would do, file by file. Opens the index for reading, if there is one; makes none."""
    if call.options.reset or not call.place.exists():
        return _planned(call, sources, None)
    with closing(schema.open_reader(call.place)) as db:
        schema.guard(db, call.settings, call.explicit)
        if not call.options.re_embed:
            guard.adopted(call.settings, vectors.card(db), call.explicit)
        _numbers(db, call.options.delete)
        return _planned(call, sources, db)


def _planned(call: _Call, sources: Iterator[Source], db: schema.Connection | None) -> IngestReport:
    skipped: list[Problem] = []
    comparison = call.compared(db, skipped.append)
    failed: list[Problem] = []
    items = (item for item in comparison.items(sources) if _is_readable(item, skipped, failed))
    plan = [(_state(item), _name(call, item.source)) for item in items]
    plan += [("unchanged", location) for location in comparison.unchanged]
    plan = sorted(set(plan), key=itemgetter(1))
    failed += comparison.still_incomplete(documents.incomplete(db)) if db else []
    gone, _ = call.gone(comparison)
    plan += [("removed", location) for location in gone if call.options.prune]
    plan += [("removed", name) for name in call.options.delete]
    states = [state for state, _ in plan]
    return IngestReport(
        added=states.count("new"), changed=states.count("changed"), unchanged=states.count("unchanged"),
        removed=states.count("removed"), plan=tuple(plan), skipped=tuple(skipped),
        failed=tuple(failed), warnings=() if call.options.prune else tuple(_of_gone(len(gone))),
        unembedded=_to_embed(call, db) if db else 0, unparented=_to_cut(call, db) if db else 0,
    )  # fmt: skip


def _to_cut(call: _Call, db: schema.Connection) -> int:
    """How many stored documents would get parents."""
    own = parents.kept(db)
    wanted = back_fill.adopted(own, call.settings.parents, call.explicit)
    if wanted is None:
        return 0
    return parents.missing(db) if wanted == own else documents.total(db, blank=False)


def _to_embed(call: _Call, db: schema.Connection) -> int:
    """How many stored chunks would be embedded, those of new and changed files apart."""
    if call.settings.models.embedder == guard.NONE:
        return 0
    if call.options.re_embed:
        return vectors.total_chunks(db)
    return vectors.missing(db) if vectors.card(db) else 0


def _is_readable(item: Item, skipped: list[Problem], failed: list[Problem]) -> bool:
    """Whether an ingest would take the source in, as far as its first bytes tell; else why not, among the problems."""
    if item.state == "touched" or item.source.location == "-":
        return True
    from ragcli.read.formats import format_of
    from ragcli.read.load import head

    try:
        format_of(head(item.source))
    except ReadError as error:
        (skipped if error.kind in SKIPS else failed).append(failure_of(item.source, error))
        return False
    return True


def _name(call: _Call, source: Source) -> str:
    return source.location if source.location != "-" else call.options.name or "stdin"


def _state(item: Item) -> str:
    return "unchanged" if item.state == "touched" else item.state


def _of_gone(gone: int) -> list[str]:
    if not gone:
        return []
    files, are = ("file is", "is") if gone == 1 else ("files are", "are")
    return [f"{gone} {files} gone, and {are} kept in the index: --prune removes what is gone"]


def _of_left_out(count: int) -> str:
    files, are = ("file is", "is") if count == 1 else ("files are", "are")
    return f"{count} indexed {files} left out by the rules now, and {are} kept: --delete ID removes"


def _numbers(db: schema.Connection, names: Sequence[str]) -> list[int]:
    """The rows of these documents. Raises: UsageError for one that is not there."""
    found = documents.numbers(db, names)
    for name in names:
        if name not in found:
            near = did_you_mean(name, documents.some_names(db))
            raise UsageError(f"no document {name!r} in the index{near}", "nothing was removed")
    return list(found.values())


# -------------------------------------------------------------------------------------------------------- a real one


def _write(call: _Call, sources: Iterator[Source], early: Embedder | None) -> IngestReport:
    if call.options.reset:
        schema.wipe(call.place)
    with _rare_collections(), closing(schema.open_writer(call.place)) as db:
        settings, embedder = _adopt(db, call, early)
        run = _Run(db, settings, call, embedder)
        with run.encoding:
            run.read(sources)
            run.remove_gone()
            run.recall()
            run.cut_parents()
            run.maintain()
            run.embed()
        run.tidy()
        return run.report()


def _embedder_of_new(call: _Call) -> Embedder | None:
    """Of an index that is to be made: without its embedder it is not begun."""
    is_new = call.options.reset or not call.place.exists()
    return _proven(call, call.settings) if is_new else None


def _proven(call: _Call, settings: Settings) -> Embedder | None:
    """The embedder, once it has given a vector; None where there is to be none.

    No index is begun, and no vectors are dropped, for one that gives none. Raises: RagcliError.
    """
    if settings.models.embedder == guard.NONE:
        return None
    try:
        embedder = call.embedder(settings, None)
        found = embedder.passages([PROBE])
    except (ModelMissing, RemoteError) as error:
        error.hint = "; ".join(part for part in (error.hint, WITHOUT) if part)
        raise
    if found.problems:
        raise RagcliError(f"models.embedder = {settings.models.embedder!r} gives no vectors: {found.problems[0]}")
    return embedder


@contextmanager
def _rare_collections() -> Iterator[None]:
    """The cycle collector looks rarely: batches hold a million small objects and no cycles (a tenth of the time)."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _adopt(db: schema.Connection, call: _Call, early: Embedder | None) -> tuple[Settings, Embedder | None]:
    """The settings in force: of an index that was built before its own, else these, which it remembers from now on.

    And the embedder, where it is open already.
    """
    if schema.is_new(db):
        return call.settings, _remember(db, call, early)
    settings, card = schema.guard(db, call.settings, call.explicit), vectors.card(db)
    if not call.options.re_embed:
        return guard.adopted(settings, card, call.explicit), None
    settings = guard.chosen_anew(settings, card, call.explicit)
    embedder = _proven(call, settings)
    with schema.transaction(db):
        vectors.start_over(db, embedder.card if embedder else None)
    return settings, embedder


def _remember(db: schema.Connection, call: _Call, early: Embedder | None) -> Embedder | None:
    """Write into the new index what it is built with; gives its embedder."""
    embedder = early or _proven(call, call.settings)
    with schema.transaction(db):
        made = documents.iso(int(call.now.timestamp()))
        schema.remember(db, call.settings, now=made, by=f"ragcli {__version__}")
        vectors.set_card(db, embedder.card if embedder else None)
    return embedder


class _Run:
    """The state of one ingest: what it writes with, and what it found."""

    def __init__(self, db: schema.Connection, settings: Settings, call: _Call, embedder: Embedder | None) -> None:
        from ragcli.text import Analyzer

        self.db = db
        self.call = call
        self.changes = db.total_changes
        kept, self.parents_removed = back_fill.adopt(db, call.settings.parents, call.explicit)
        self.settings = settings = msgspec.structs.replace(settings, parents=kept or ParentsSettings())
        rows = _numbers(db, call.options.delete)
        terms = Analyzer(settings.analyzer).terms
        rules = rules_digest(call.settings.ingest.tags)
        now_ns = int(call.now.timestamp() * 1e9)
        self.committer = Committer(db, terms, now_ns=now_ns, rules=rules, reader=READER)
        if rows:
            self.committer.delete(rows)
        self.comparison = call.compared(db, self.committer.tally.skipped.append)
        self.touched: list[Item] = []
        self.numbers = count()
        self.card = vectors.card(db)
        self.embeds = self.card is not None and settings.models.embedder != guard.NONE
        window = max(WINDOW, settings.embedding.batch_texts)
        self.encoding = Encoding(call.place, lambda: embedder or call.embedder(settings, self.card), window=window)

    def read(self, sources: Iterator[Source]) -> None:
        """Take in what is new or changed."""
        batches = _batches(self._jobs(sources))
        workers = self.settings.ingest.workers or _cores()
        preparation = self.call.preparation(self.settings)
        results = prepared(batches, preparation, workers=workers, waiting=self._wait_for)
        commits = 0
        self._wake()
        with closing(results), self.committer:  # type: ignore[type-var]  # a generator, whichever way it works
            for result in results:
                commits += self._take(result)
                if commits == MAINTAIN_EVERY:  # just committed: no transaction is open
                    merging.maintain(self.db, self.call.listen)
                    commits = 0
                self._take_vectors()
        self.committer.touch(self.touched)

    def _wait_for(self, source: Source) -> None:
        self._take_vectors()
        done = self.committer.tally.bytes
        self.call.listen(Event(stage="reading", done=done, unit="bytes", detail=source.relative))

    def _take(self, result: Prepared) -> bool:
        path = self.committer.open[result.parts[-1].number].item.source.relative
        committed = self.committer.take(result)
        done = self.committer.tally.bytes
        self.call.listen(Event(stage="reading", done=done, unit="bytes", detail=path))
        if committed:
            self.call.listen(Event(stage="saved", done=done, unit="bytes"))
            self._wake()
        return committed

    def _wake(self) -> None:
        """Let documents be embedded that wait for it."""
        if self.embeds and vectors.waiting(self.db, 0, 1):
            self.encoding.wake()

    def _take_vectors(self) -> None:
        for encoded in self.encoding.ready():
            self.committer.take_vectors(encoded)
            self._tell_vectors()
        self.committer.commit_vectors_after(VECTOR_SECONDS)

    def _tell_vectors(self) -> None:
        tally = self.committer.tally
        done = tally.embedded + tally.reused
        total = done + self._unembedded() - self.committer.uncommitted
        self.call.listen(Event(stage="embedding", done=done, total=total, unit="chunks"))

    def _unembedded(self) -> int:
        return vectors.missing(self.db) if self.card else 0

    def embed(self) -> None:
        """Wait for the vectors of all that came in; what fails waits for the next run, and is told."""
        self._wake()
        with self.committer:
            try:
                self._take_rest()
            except BaseException as error:
                if not isinstance(error, Exception):  # interrupted: what was embedded is whole, and is kept
                    self.committer.commit()
                raise
        self._judge_embedding()

    def _take_rest(self) -> None:
        for encoded in self.encoding.rest():
            if encoded is not None:
                self.committer.take_vectors(encoded)
            self.committer.commit_vectors_after(VECTOR_SECONDS)
            self._tell_vectors()

    def _judge_embedding(self) -> None:
        """Whether all have vectors now. Raises: what was no failure of an embedder."""
        failure, tally = self.encoding.failure, self.committer.tally
        if failure is not None and (not isinstance(failure, RagcliError) or isinstance(failure, IndexUnusable)):
            raise failure
        left = self._unembedded()
        if not left:
            vectors.drop_spare(self.db)
        elif failure is not None:
            what = f"{_without_vector(left)}: {failure.message}"
            tally.failed.append(
                Problem(str(self.call.place), "embedding", f"{what}; the next ingest goes on from there")
            )
        elif not self.embeds:
            tally.warnings.append(f"{_without_vector(left)}: ingest without --no-embed goes on from there")
        tally.failed += [Problem(name, "embedding", reason) for name, reason in vectors.reasons(self.db)]

    def _jobs(self, sources: Iterator[Source]) -> Iterator[Job]:
        named = (self._named(source) for source in sources)
        for item in self.comparison.items(named):
            if item.state == "touched":
                self.touched.append(item)
                continue
            number = next(self.numbers)
            self.committer.open[number] = Open(item, item.row is not None)
            job = Job(number=number, source=item.source, known=item.row.id if item.row else None, tags=item.tags)
            yield from self._runs(job)

    def _named(self, source: Source) -> Source:
        """Standard input is called what --name says."""
        if source.location != "-":
            return source
        name = self.call.options.name or "stdin"
        return msgspec.structs.replace(source, relative=name, location=STDIN + name, size=-1)

    def _runs(self, job: Job) -> Iterator[Job]:
        """A file is one job, read where it is worked on; a large collection, and standard input, come in runs."""
        piped = job.source.location.startswith(STDIN)
        if not piped and (job.source.size <= ONE_RUN or not job.source.relative.lower().endswith(COLLECTION)):
            yield job
            return
        from ragcli.read.load import requests

        opened = msgspec.structs.replace(job.source, location="-") if piped else job.source
        if piped and self.call.stdin is None:
            raise UsageError("there is no standard input to read", "name a file, or pipe something in")
        found = requests(opened, max_bytes=self.settings.ingest.max_file_bytes, stdin=self.call.stdin)
        yield from self._numbered(job, self._checked(job, found))

    def _checked(self, job: Job, found: Iterator[ReadRequest | Problem]) -> Iterator[ReadRequest]:
        """The runs; a failure on the way ends the collection and is told at its end."""
        try:
            for one in found:
                if isinstance(one, Problem):
                    self.committer.lose(self.committer.open[job.number], located(one, job.source))
                else:
                    yield msgspec.structs.replace(one, source=job.source)
        except ReadError as error:
            self.committer.open[job.number].failure = failure_of(job.source, error)

    def _numbered(self, job: Job, found: Iterator[ReadRequest]) -> Iterator[Job]:
        """One job a run. The last one carries the digest of the whole; so it must be known to be the last."""
        digest = documents.new_digest()
        request = next(found, ReadRequest(source=job.source, data=b""))
        while True:
            digest.update(request.data)
            following = next(found, None)
            last = following is None
            yield msgspec.structs.replace(job, request=request, last=last, hash=digest.digest() if last else None)
            if following is None:
                return
            request = following

    def remove_gone(self) -> None:
        """Sources below the paths of this run whose files are not there any more: removed, or told."""
        gone, left_out = self.call.gone(self.comparison)
        warnings = self.committer.tally.warnings
        if not self.call.options.prune:
            warnings += _of_gone(len(gone))
        elif gone:
            self.committer.forget(list(gone.values()))
        if self.call.options.prune and left_out:
            warnings.append(_of_left_out(left_out))

    def recall(self) -> None:
        """Tell again what an earlier run could not read of sources that this one did not touch."""
        self.committer.tally.failed += self.comparison.still_incomplete(documents.incomplete(self.db))

    def cut_parents(self) -> None:
        """Of the documents that were there before; those that came in now have theirs."""
        if self.settings.parents.enabled:
            self.committer.tally.parents += back_fill.cut(self.db, self.settings.parents, self.call.listen)

    def maintain(self) -> None:
        """Join posting lists, if anything changed."""
        if self.db.total_changes != self.changes:
            merging.maintain(self.db, self.call.listen)

    def tidy(self) -> None:
        """Leave a compact file: statistics fresh, the log written back. Nothing if unchanged."""
        if self.db.total_changes == self.changes:
            return
        schema.tidy(self.db)
        if vectors.needs_side_file(self.db, self.call.place):
            self._copy_vectors()

    def _copy_vectors(self) -> None:
        """Bring the side file in step. Without it the index is as good, only slower to search."""
        from ragcli.store.sqlite import vector_file

        try:
            vector_file.update(self.db, self.call.place)
        except OSError as error:
            place = vectors.side_file(self.call.place)
            self.committer.tally.warnings.append(f"{place} can't be written ({error.strerror}): searches are slower")

    def report(self) -> IngestReport:
        """The sum of it."""
        tally = self.committer.tally
        return IngestReport(
            added=tally.added, changed=tally.changed, unchanged=tally.unchanged + self._untouched(),
            removed=tally.removed, chunks=tally.chunks, embedded=tally.embedded, reused=tally.reused,
            unembedded=self._unembedded(), parents=tally.parents, parents_removed=self.parents_removed,
            bytes=tally.bytes, skipped=tuple(tally.skipped),
            failed=tuple(tally.failed), warnings=tuple(tally.warnings),
        )  # fmt: skip

    def _untouched(self) -> int:
        """Documents of the files that were not read."""
        unchanged = self.comparison.unchanged
        if self.db.total_changes == self.changes and len(unchanged) == len(self.comparison.known):
            return documents.total(self.db)
        counts = documents.totals(self.db)
        return sum([counts.get(number, 0) for number in unchanged.values()])


def _without_vector(count: int) -> str:
    return "1 chunk has no vector yet" if count == 1 else f"{count:,} chunks have no vector yet"


def _cores() -> int:
    """The cores that this process may use: fewer than there are, in a container."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _batches(jobs: Iterator[Job]) -> Iterator[Jobs]:
    """Jobs in their order, in batches of about the same work."""
    batch: list[Job] = []
    cost = 0
    for job in jobs:
        batch.append(job)
        cost += _cost(job)
        if cost >= BATCH_COST or len(batch) == BATCH_FILES:
            yield tuple(batch)
            batch, cost = [], 0
    if batch:
        yield tuple(batch)


def _cost(job: Job) -> int:
    if job.request is not None:
        return len(job.request.data)
    return FILE_COST + job.source.size * (PDF_COST if job.source.relative.lower().endswith(".pdf") else 1)
