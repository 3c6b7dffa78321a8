"""What `inspect` shows, as text for people: names and values in two columns, then lists. No colour, no boxes.

Everything that came from a document is drawn inert (spec C13).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any

from ragcli.cli import inert
from ragcli.cli.wording import counted
from ragcli.types import Chunk, ChunkView, DocumentLine, DocumentView, Problem, Stats, TermStat, TermView

if TYPE_CHECKING:
    from ragcli.cli.common import Session

PREVIEW = 60  # characters of a chunk in a list
LONGEST_ID = 60  # columns; a longer id moves the rest of its line
SECRET = "(hidden)"  # noqa: S105 - what is shown in place of one


def stats(view: Stats) -> str:
    """An index in figures, and the settings that it was built with."""
    figures = {
        "index": view.path,
        "collection": view.collection,
        "documents": f"{view.documents:,}{_kinds(view.formats)}",
        "chunks": f"{view.chunks:,} ({view.deleted_chunks:,} deleted, not yet merged away)",
        "terms": f"{view.terms:,} different, {view.total_terms:,} in all, {view.average_length:.1f} a chunk",
        "postings": f"{view.postings:,} in {counted(view.segments, 'segment')}",
        "vectors": _vectors(view),
        "parents": _parents(view),
        "size": f"{_bytes(view.bytes)} ({_bytes(view.free)} free)",
        "schema": f"version {view.schema}, generation {view.generation}",
        "roots": ", ".join(view.roots),
    }
    settings = {key: _value(value) for key, value in _flat(view.settings)}
    return _columns(figures) + _section("built with", settings) + _problems(view.failed)


def _vectors(view: Stats) -> str:
    """How many chunks dense search can find, and what made their vectors."""
    card = view.embedder
    if card is None:
        return "none: keywords only"
    facts = [f"{card.dimension} dimensions", card.precision]
    made = f"{inert.line(card.name)} ({', '.join(fact for fact in facts if fact)})"
    return f"{view.vectors:,} of {counted(view.chunks, 'chunk')}, by {made}"


def _parents(view: Stats) -> str:
    """How many there are, and of how many documents there are none yet; "" of an index that keeps none."""
    if "parents" not in view.settings:
        return ""
    waiting = f", {counted(view.unparented, 'document')} without: ingest cuts them" if view.unparented else ""
    return f"{view.parents:,}{waiting}"


def documents(lines: Sequence[DocumentLine]) -> str:
    """Documents in columns: id, format, chunks, title."""
    if not lines:
        return "no documents\n"
    shown = [(inert.line(one.id), one.format, counted(one.chunks, "chunk"), inert.line(one.title)) for one in lines]
    widths = [min(max(map(len, column)), LONGEST_ID) for column in list(zip(*shown, strict=True))[:-1]]
    return "".join(_aligned(row, widths) for row in shown)


def _aligned(row: tuple[str, ...], widths: Sequence[int]) -> str:
    padded = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=False))
    return "  ".join([*padded, row[-1]]).rstrip() + "\n"


def document(view: DocumentView) -> str:
    """A document: what is known of it, its chunks, its text."""
    known = {
        "document": view.id,
        "path": view.path,
        "title": view.title,
        "format": view.format,
        "size": "unknown: it came from standard input" if view.size is None else _bytes(view.size),
        "text": f"{counted(view.characters, 'character')} from line {view.first_line}",
        "created": view.created_at or "",
        "updated": view.updated_at or "",
        "ingested": view.ingested_at or "",
        "stale": view.stale or "",
    }
    metadata = {key: _value(value) for key, value in view.metadata.items()}
    chunks = [_chunk_line(one) for one in view.chunks]
    return (
        _columns(known)
        + _section("metadata", metadata)
        + f"\nchunks: {len(chunks)}\n"
        + "".join(f"  {line}\n" for line in chunks)
        + f"\n{inert.passage(view.text).rstrip()}\n"
    )


def chunk(view: ChunkView) -> str:
    """A chunk as the keyword index sees it."""
    one = view.chunk
    known = {
        "chunk": _reference(one),
        "path": one.path,
        "lines": _lines(one),
        "characters": f"{one.start}-{one.end} of the document's text",
        "page": _page(one),
        "heading": one.heading_breadcrumb or one.heading,
        "context": one.context,
        "parent": _parent(view.parent),
        "stale": view.stale or "",
        "previous": view.previous or "",
        "next": view.next or "",
        "length": f"{counted(view.length, 'term')}, {len(view.terms):,} different",
    }
    by_count = sorted(view.terms.items(), key=lambda pair: (-pair[1], pair[0]))
    terms = " ".join(f"{term}:{count}" for term, count in by_count)
    metadata = {key: _value(value) for key, value in one.metadata.items()}
    text = inert.passage(one.text).strip("\n")
    return f"{_columns(known)}{_section('metadata', metadata)}\nterms: {inert.line(terms)}\n\n{text}\n"


def terms(view: TermView) -> str:
    """What the analyzer makes of a word, and each term's statistics."""
    if not view.terms:
        return f"{inert.line(view.word)}: no term is left of it: punctuation, or a stop word\n"
    return "\n".join(_term(stat) for stat in view.terms)


def check(path: str, faults: Iterable[str]) -> str:
    """The faults found in an index, one a line, or that there is none."""
    lines = [f"fault: {inert.line(fault)}\n" for fault in faults]
    return "".join(lines) or f"{inert.line(path)}: whole\n"


def setting_rows(session: Session) -> list[dict[str, Any]]:
    """Every setting with its effective value and its origin; secrets are not shown."""
    from msgspec import to_builtins

    from ragcli.config import looks_secret

    sections = to_builtins(session.settings)
    rows = []
    for key, origin in session.origins.items():
        section, _, name = key.partition(".")
        value = sections[section][name]
        if value and looks_secret(name):
            value = SECRET
        elif value and name.endswith("url"):
            value = _bare_url(value)
        rows.append({"key": key, "value": value, "origin": origin})
    rows.append({"key": "(index file)", "value": str(session.index_file), "origin": session.origins["index.path"]})
    return rows


def _bare_url(url: str) -> str:
    """The URL without user, password, query and fragment; none of it where it can't be taken apart safely."""
    from urllib.parse import urlsplit, urlunsplit

    try:
        parts = urlsplit(url)
        is_known = bool(parts.netloc) and parts.port != 0 and "@" not in parts.path
    except ValueError:
        is_known = False
    if not is_known:
        return SECRET if set("@?#") & set(url) else url
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def settings(rows: list[dict[str, Any]]) -> str:
    """Settings in three columns: key, value, origin."""
    shown = [(row["key"], inert.line(_value(row["value"])), inert.line(row["origin"])) for row in rows]
    key_width = max(len(key) for key, _, _ in shown)
    value_width = min(max(len(value) for _, value, _ in shown), 40)
    return "".join(f"{key:<{key_width}}  {value:<{value_width}}  {origin}\n" for key, value, origin in shown)


def _term(stat: TermStat) -> str:
    known = {
        "term": stat.term,
        "document frequency": counted(stat.document_frequency, "chunk"),
        "occurrences": f"{stat.total:,}",
        "idf": f"{stat.idf:.4f}",
    }
    shown = "".join(f"  {inert.line(reference)}  {count}\n" for reference, count in stat.postings)
    hidden = stat.document_frequency - len(stat.postings)
    more = f"  and {hidden:,} more\n" if hidden > 0 else ""
    return _columns(known) + ("postings (chunk, frequency):\n" if shown else "") + shown + more


def _columns(rows: Mapping[str, str]) -> str:
    width = max(map(len, rows), default=0)
    return "".join(f"{key:<{width}}  {inert.line(value)}\n" for key, value in rows.items() if value)


def _section(title: str, rows: Mapping[str, str]) -> str:
    return f"\n{title}:\n" + _columns({f"  {inert.line(key)}": value for key, value in rows.items()}) if rows else ""


def _flat(settings: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _problems(problems: tuple[Problem, ...]) -> str:
    lines = "".join(f"  {inert.line(one.path)}: {inert.line(one.reason)}\n" for one in problems)
    return f"\nfailed: {len(problems)}\n{lines}" if problems else ""


def _kinds(formats: Mapping[str, int]) -> str:
    kinds = ", ".join(
        f"{count:,} {name}" for name, count in sorted(formats.items(), key=lambda pair: (-pair[1], pair[0]))
    )
    return f" ({kinds})" if kinds else ""


def _chunk_line(one: Chunk) -> str:
    words = " ".join(one.text[: 4 * PREVIEW].split())
    lines = f"lines {_lines(one)}" if one.end_line > one.start_line else f"line {_lines(one)}"
    preview = words if len(words) <= PREVIEW else words[: PREVIEW - 1] + "…"
    return f"{inert.line(_reference(one))}  {lines}  {inert.line(preview)}"


def _lines(one: Chunk) -> str:
    return f"{one.start_line}-{one.end_line}" if one.end_line > one.start_line else f"{one.start_line}"


def _parent(one: Chunk | None) -> str:
    """Which of the document's parents, where it stands; "" where there is none."""
    return f"{one.index}: lines {_lines(one)}, characters {one.start}-{one.end}" if one else ""


def _reference(one: Chunk) -> str:
    return f"{one.document_id}#{one.index}"


def _page(one: Chunk) -> str:
    if one.page is None:
        return ""
    return f"{one.page}-{one.page_end}" if one.page_end not in {None, one.page} else f"{one.page}"


def _value(value: object) -> str:
    """A value with its kind visible: text in quotes, as in JSON."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, tuple | list):
        return "[" + ", ".join(_value(member) for member in value) + "]"
    return json.dumps(value, ensure_ascii=False, default=str)


def _bytes(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return counted(count, "byte")
