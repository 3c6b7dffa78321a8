"""Records of JSON: the BEIR form becomes a document, any other value becomes plain lines that can be searched.

BEIR (Thakur et al. 2021): ``{"_id" or "id", "title"?, "text", "metadata"?}``. Other top-level keys are kept as
metadata. A value without that form is shown as one ``path.to.key: value`` line a leaf, lists of scalars joined by
commas: the form in which both a key and its value are found by their words and stand next to each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ragcli.read.decode import clean
from ragcli.read.metadata import flatten, times
from ragcli.types import Document, Metadata, Problem

DEEPEST = 64  # levels of nesting that are shown
_OWN = frozenset({"_id", "id", "title", "text", "metadata"})


def document_of(record: dict[str, Any], path: str, number: int, line: int, kind: str) -> Document | Problem:
    """The document in a record. `number` names it where it has no id (`path#number`); `line` is its source line."""
    identifier = record.get("_id")
    identifier = record.get("id") if identifier is None else identifier
    if identifier == "":
        return Problem(path, "malformed", f"line {line}: its id is empty")
    if identifier is None:
        identifier = f"{path}#{number}"
    elif not isinstance(identifier, str):
        if isinstance(identifier, bool) or not isinstance(identifier, int | float):
            return Problem(path, "malformed", f"line {line}: its id is no string")
        identifier = str(identifier)
    text = record.get("text")
    if text is None:
        return _shown(record, clean(identifier), path, line, kind)
    if not isinstance(text, str):
        return Problem(path, "malformed", f"line {line}: its text is no string")
    return _document(record, clean(identifier), clean(text), _metadata(record), line=line, kind=kind)


def _document(
    record: dict[str, Any], identifier: str, text: str, metadata: Metadata, *, line: int, kind: str
) -> Document:
    created, updated = times(metadata)
    return Document(
        id=identifier,
        text=text,
        title=_title(record),
        format=kind,
        metadata=metadata,
        first_line=line,
        created_at=created,
        updated_at=updated,
    )


def _title(record: dict[str, Any]) -> str:
    title = record.get("title")
    return clean(title) if isinstance(title, str) else ""


def _metadata(record: dict[str, Any]) -> Metadata:
    given = record.get("metadata")
    if record.keys() <= _OWN and (given is None or isinstance(given, dict)):
        return flatten(given) if given else {}
    rest = {key: value for key, value in record.items() if key not in _OWN}
    rest.update(given if isinstance(given, dict) else {"metadata": given} if given is not None else {})
    return flatten(rest)


def _shown(record: dict[str, Any], identifier: str, path: str, line: int, kind: str) -> Document | Problem:
    try:
        text = "\n".join(lines_of(record))
    except RecursionError:
        return Problem(path, "malformed", f"line {line}: nested more than {DEEPEST} levels deep")
    given = record.get("metadata")
    metadata = flatten(given) if isinstance(given, dict) else {}
    return _document(record, identifier, text, metadata, line=line, kind=kind)


def lines_of(value: object, path: str = "", depth: int = 0) -> Iterator[str]:
    """One line for each leaf of a JSON value.

    Raises:
        RecursionError: it is nested more than `DEEPEST` levels deep.
    """
    if depth > DEEPEST:
        raise RecursionError
    if isinstance(value, dict):
        for key, item in value.items():
            yield from lines_of(item, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for index, item in enumerate(value):
            yield from lines_of(item, f"{path}[{index}]", depth + 1)
    else:
        words = ", ".join(_leaf(item) for item in value) if isinstance(value, list) else _leaf(value)
        yield clean(f"{path}: {words}" if path else words)


def _leaf(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return " ".join(value.split()) if isinstance(value, str) else str(value)
