"""Source code: the text unchanged, its language in the metadata. Knows no grammar: the chunker cuts by definition."""

from __future__ import annotations

from collections.abc import Iterator

from ragcli.read.decode import decode
from ragcli.read.formats import language_of, name_of
from ragcli.types import Document, ReadRequest


def read(request: ReadRequest) -> Iterator[Document]:
    """One document of format "code" with `language`; runs and imports nothing of it."""
    decoded = decode(request.data)
    name = name_of(request.source.relative)
    yield Document(
        id=request.source.relative,
        text=decoded.text,
        name=name,
        format="code",
        metadata={"language": language_of(name)},
        warnings=decoded.warnings,
    )
