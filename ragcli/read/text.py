"""Plain text: one document, the text as it is. The format of everything that holds text and nothing else is known of.

Finds no title and no headings in it: a first line is no title until someone says so.
"""

from __future__ import annotations

from collections.abc import Iterator

from ragcli.read.decode import decode
from ragcli.read.formats import name_of
from ragcli.types import Document, ReadRequest


def read(request: ReadRequest) -> Iterator[Document]:
    """One document; a guessed encoding is a warning."""
    decoded = decode(request.data)
    relative = request.source.relative
    yield Document(id=relative, text=decoded.text, name=name_of(relative), warnings=decoded.warnings)
