"""JSON: an array of records in BEIR's form is a collection, anything else one document of plain lines (`records`).

What is no JSON, or is nested too deep, goes in as the plain text that it is, with a warning. Its lines and spans are
those of the extracted text.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ragcli.read.decode import Decoded, decode
from ragcli.read.formats import name_of
from ragcli.read.records import document_of, lines_of
from ragcli.types import Document, Problem, ReadRequest


def read(request: ReadRequest) -> Iterator[Document | Problem]:
    """The records of a collection, each on the line 1 (JSON has no lines of its own), or one document."""
    decoded = decode(request.data)
    path = request.source.relative
    try:
        value = msgspec.json.decode(decoded.text)
        text = "" if _is_collection(value) else "\n".join(lines_of(value))
    except (msgspec.DecodeError, RecursionError) as error:
        yield _as_text(decoded, path, error)
        return
    if _is_collection(value):
        for number, record in enumerate(value, 1):
            yield document_of(record, path, number, 1, "json")
        return
    title = value.get("title") if isinstance(value, dict) else None
    yield Document(
        id=path,
        text=text,
        title=title if isinstance(title, str) else "",
        name=name_of(path),
        format="json",
        warnings=decoded.warnings,
    )


def _is_collection(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, dict) and "text" in item and ("_id" in item or "id" in item) for item in value)
    )


def _as_text(decoded: Decoded, path: str, error: Exception) -> Document:
    why = "nested too deep to be shown as lines" if isinstance(error, RecursionError) else f"not valid JSON ({error})"
    warning = f"{why}: read as plain text"
    return Document(
        id=path, text=decoded.text, name=name_of(path), format="json", warnings=(*decoded.warnings, warning)
    )
