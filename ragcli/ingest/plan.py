"""What is new, changed, unchanged or gone: the walk held against what the index remembers (spec I34).

Size and time decide on the fast path, so ten thousand unchanged files cost a `stat` and a look into a dict each. Where
only the time differs the content's hash decides. Reads no document and writes nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from hashlib import blake2b
from operator import itemgetter
from typing import Literal

import msgspec

from ragcli.store.sqlite import tags
from ragcli.store.sqlite.documents import STDIN, Known, SourceRow, digest_of
from ragcli.types import MetadataValue, Problem, Source

State = Literal["new", "changed", "touched"]

SKIPS = frozenset({"binary", "unsupported", "too-large"})  # left out by a rule: looked at again when they change


class Item(msgspec.Struct, frozen=True):
    """A source with something to do: `touched`: only its time differs. `tags`: those of --tag, old and new."""

    state: State
    source: Source
    row: SourceRow | None
    tags: Mapping[str, MetadataValue]


def rules_digest(rules: Mapping[str, Mapping[str, object]]) -> bytes | None:
    """Tells whether `ingest.tags` changed since a source was ingested; None = there are none."""
    if not rules:
        return None
    facts = sorted((glob, sorted(found.items(), key=itemgetter(0))) for glob, found in rules.items())
    return blake2b(repr(facts).encode(), digest_size=8).digest()


class Comparison:
    """The sources of one run against those that the index knows.

    `unchanged` holds the ids of the sources that need nothing; what was skipped before is reported again.
    """

    def __init__(
        self,
        known: Mapping[str, Known],
        look_up: Callable[[int], SourceRow],
        *,
        rules: Mapping[str, Mapping[str, object]],
        run_tags: Mapping[str, MetadataValue],
        checksum: bool,
        reader: bytes,
        report: Callable[[Problem], None],
    ) -> None:
        self.known = known
        self.look_up = look_up
        self.rules = rules_digest(rules)
        self.run_tags = run_tags
        self.checksum = checksum
        self.reader = reader
        self.report = report
        self.seen: set[str] = set()
        self.unchanged: dict[str, int] = {}

    def items(self, sources: Iterable[Source]) -> Iterator[Item]:
        """The sources that need work, in the walk's order."""
        get, trusted, current = self.known.get, not (self.checksum or self.run_tags), self.rules
        for source in sources:
            found = get(source.location)
            if found is None:
                yield Item("new", source, None, self.run_tags)
                continue
            location, size, mtime_ns, status, rules, number = found
            self.seen.add(location)
            same = mtime_ns == source.mtime_ns and size == source.size and not location.startswith(STDIN)
            if same and trusted and status == "complete" and rules == current:
                self.unchanged[location] = number
            elif item := self._judged(source, self.look_up(number), same=same):
                yield item

    def _judged(self, source: Source, row: SourceRow, *, same: bool) -> Item | None:
        own = msgspec.structs.replace(source, root=row.root, relative=row.relative)
        old_tags = tags.decode(row.tags)
        wanted = {**old_tags, **self.run_tags}
        if row.status == "skipped" and same and row.rules == self.reader and row.reason and not self.checksum:
            self.report(Problem(row.location, row.problem or "", row.reason))
            return None
        is_current = row.status == "complete" and row.rules == self.rules and wanted == old_tags
        piped = source.location.startswith(STDIN)  # has no size and no time: what it says is compared when it is read
        if piped or not is_current or row.size != source.size or row.hash is None:
            return Item("changed" if row.hash else "new", own, row, wanted)
        if same and not self.checksum:
            self.unchanged[row.location] = row.id
            return None
        if digest_of(source.location) != row.hash:
            return Item("changed", own, row, wanted)
        self.unchanged[row.location] = row.id
        return None if same else Item("touched", own, row, wanted)

    def still_incomplete(self, incomplete: Mapping[str, Problem]) -> list[Problem]:
        """What is told again of unchanged sources some of whose records could not be read."""
        return [
            Problem(location, problem.kind, f"{problem.reason}, and it is unchanged since")
            for location, problem in incomplete.items()
            if location in self.unchanged
        ]

    def gone(self, paths: Sequence[str], unread: Collection[str] = ()) -> tuple[dict[str, int], int]:
        """Known sources below `paths` whose files are not there any more; and how many are there but left out.

        Of what is below `unread`, the folders that could not be listed, nothing is known.
        """
        if len(self.seen) == len(self.known):
            return {}, 0
        unseen = self.known.keys() - self.seen
        below = sorted(location for location in unseen if _is_below(location, paths) and not _is_in(location, unread))
        there = {location: _is_there(location) for location in below}
        gone = {location: self.known[location][-1] for location in below if there[location] is False}
        return gone, sum(found is True for found in there.values())


def _is_there(location: str) -> bool | None:
    """Whether a file is there still; a folder of its name is not it. None where the system doesn't tell."""
    try:
        status = os.lstat(location)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return None
    return not (stat.S_ISDIR(status.st_mode) or os.path.isdir(location))  # noqa: PTH112


def _is_in(location: str, folders: Collection[str]) -> bool:
    return any(location == folder or location.startswith(folder.rstrip("/") + "/") for folder in folders)


def _is_below(location: str, paths: Sequence[str]) -> bool:
    if location.startswith(STDIN):
        return False
    return _is_in(location, paths) or any(fnmatchcase(location, path) for path in paths)
