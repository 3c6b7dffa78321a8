"""Parents of documents that are in the index already: cut from the stored text, no file read, nothing embedded (I23).

A document of version 3 has its outline in the index, so its parents are those of a fresh ingest, row for row. Of an
older one pages and headings are known by its chunks alone. Spans and lines are exact there too, and so are
- pages and headings of what has none, which its chunks tell;
- headings of Markdown, which are read from the text once more, and pages of a PDF where each blank line between two
  chunks of different pages must be a page's end: both are taken only if all chunks then come out as they are stored.
Else a parent has the heading of the chunk that holds its start, which may be one too early; and its pages are a range
that is certain to hold them: from the page of what is known before its start to that of what is known behind its end.
Ingesting such a file anew makes all of it exact.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from ragcli import chunk as chunking
from ragcli.chunk import annotate
from ragcli.options import ParentsSettings
from ragcli.store.sqlite import documents, parents, schema
from ragcli.store.sqlite.documents import Stored
from ragcli.types import Chunk, Document, Event, Heading, Listener, Span

if TYPE_CHECKING:
    from ragcli.store.sqlite.schema import Connection

DOCUMENTS = 512  # in one transaction …
CHARACTERS = 8 * 1024 * 1024  # … or so many characters: less than a second of work
BETWEEN = re.compile("\n{2,}")  # what stands between two pages, or more


# ------------------------------------------------------------------------------------------------------- what is kept


def adopted(
    own: ParentsSettings | None, asked: ParentsSettings, explicit: Collection[str] | None
) -> ParentsSettings | None:
    """How the index is to keep parents, `own` being how it does; None = not at all.

    `explicit`: the dotted names that the user set; None: those that differ from the defaults. Without a word about
    `parents.enabled` the index keeps what it has.
    """
    chosen = {name for name in asked.__struct_fields__ if _is_chosen(name, asked, explicit)}
    if "enabled" not in chosen:
        return own
    if not asked.enabled:
        return None
    if own is None:
        return asked
    return replace(own, **{name: value for name, value in asdict(asked).items() if name in chosen})


def _is_chosen(name: str, asked: ParentsSettings, explicit: Collection[str] | None) -> bool:
    if explicit is None:
        return bool(getattr(asked, name) != getattr(ParentsSettings(), name))
    return f"parents.{name}" in explicit or "parents" in explicit


def adopt(
    db: Connection, asked: ParentsSettings, explicit: Collection[str] | None
) -> tuple[ParentsSettings | None, int]:
    """How the index keeps parents from now on, and how many went with that."""
    own = parents.kept(db)
    wanted = adopted(own, asked, explicit)
    if wanted == own:
        return own, 0
    with schema.transaction(db):
        return wanted, parents.start_over(db, wanted)


# ------------------------------------------------------------------------------------------------------------ back-fill


def cut(db: Connection, settings: ParentsSettings, listen: Listener) -> int:
    """Give every document that waits its parents, in transactions of a bearable size; how many parents that made."""
    total, done, made = parents.missing(db), 0, 0
    while numbers := parents.waiting(db, DOCUMENTS, CHARACTERS):
        with schema.transaction(db):
            rows = [(number, *row) for number in numbers for row in rows_of(documents.stored(db, number), settings)]
            parents.put(db, rows)
            parents.settle(db, numbers)
        made, done = made + len(rows), done + len(numbers)
        listen(Event(stage="parents", done=done, total=total, unit="documents"))
    return made


def rows_of(stored: Stored, settings: ParentsSettings) -> list[parents.Row]:
    """A stored document's parents, in order."""
    document = stored.document if stored.is_known else _restored(stored)
    if document is not None:
        found = chunking.parents(document, settings)
    else:
        labels = _Labels(stored.chunks)
        found = [labels.on(one) for one in chunking.parents(stored.document, settings)]
    return [parents.row_of(one, stored.document.first_line) for one in found]


def _restored(stored: Stored) -> Document | None:
    """The document with pages and headings as its reader gave them; None where that is not certain."""
    document, chunks = stored.document, stored.chunks
    if not any(chunk.heading or chunk.page for chunk in chunks):
        return document
    pages = _page_starts(document.text, chunks)
    if pages is None:
        return None
    likely = replace(document, pages=pages, headings=_headings(document))
    return likely if _labelled_alike(likely, chunks) else None


def _headings(document: Document) -> tuple[Heading, ...]:
    if document.format != "markdown":
        return ()
    from ragcli.read.markdown import headings_of

    return headings_of(document.text)


def _labelled_alike(document: Document, chunks: Sequence[Chunk]) -> bool:
    """Whether the document's chunks would get the lines, pages and headings that they have."""

    def as_stored(document: Document) -> list[Span]:  # noqa: ARG001 - a Chunker
        return [(chunk.start, chunk.end) for chunk in chunks]

    made = annotate.chunk(document, as_stored, context_header=False)
    return [replace(chunk, text="") for chunk in made] == list(chunks)


# ------------------------------------------------------------------------------------------- what chunks tell of pages


def _known_pages(chunks: Sequence[Chunk]) -> list[tuple[int, int]]:
    """(offset, page) of the first and the last character of each chunk, ascending."""
    paged = [chunk for chunk in chunks if chunk.page is not None]
    firsts = [(chunk.start, chunk.page) for chunk in paged]
    lasts = [(chunk.end - 1, chunk.page_end or chunk.page) for chunk in paged]
    return sorted(firsts + lasts)  # type: ignore[arg-type]  # no page is None


def _page_starts(text: str, chunks: Sequence[Chunk]) -> tuple[int, ...] | None:
    """Where pages start, () where there are none; None where it is not certain.

    Pages are joined by a blank line (`read.pdf`). Between two known characters there are as many page ends as their
    pages differ by; if there are just as many blank lines, each single, they are those.
    """
    known = _known_pages(chunks)
    if not known:
        return ()
    starts = [0]
    for (before, page), (after, later) in pairwise([(0, 1), *known]):
        gaps = list(BETWEEN.finditer(text, before, after)) if later > page else []
        if len(gaps) != later - page or any(len(gap.group()) > 2 for gap in gaps):
            return None
        starts += [gap.end() for gap in gaps]
    return tuple(starts)


class _Labels:
    """Headings and pages for parents of a document that only its chunks tell of."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self._starts = [chunk.start for chunk in chunks]
        known = _known_pages(chunks)
        self._places, self._pages = [place for place, _ in known], [page for _, page in known]

    def on(self, parent: Chunk) -> Chunk:
        """The parent with the heading of the chunk that holds its start, and with pages that are certain to hold it."""
        holder = self._chunks[max(bisect_right(self._starts, parent.start) - 1, 0)]
        first, last = self._range(parent.start, parent.end)
        return replace(
            parent, heading=holder.heading, heading_level=holder.heading_level,
            heading_breadcrumb=holder.heading_breadcrumb, page=first, page_end=last,
        )  # fmt: skip

    def _range(self, start: int, end: int) -> tuple[int | None, int | None]:
        before, behind = bisect_right(self._places, start) - 1, bisect_left(self._places, end - 1)
        if before < 0 or behind == len(self._places):
            return None, None
        first, last = self._pages[before], self._pages[behind]
        return first, last if last > first else None
