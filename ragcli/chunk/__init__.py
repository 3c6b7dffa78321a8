"""From a document to its chunks: a strategy says where to cut, `chunk` makes of its spans what is indexed.

One strategy a file. Adding one is a file and its name in the registry, or `package.module:Class` in the settings.
"""

from __future__ import annotations

from typing import cast

from ragcli.chunk.annotate import chunk, header
from ragcli.chunk.measure import TokenizerSource
from ragcli.errors import ConfigError
from ragcli.options import ChunkingSettings, ParentsSettings
from ragcli.registry import resolve
from ragcli.types import Chunk, Chunker, Document

__all__ = ["chunk", "chunker", "header", "parents"]


def chunker(settings: ChunkingSettings, tokenizer: TokenizerSource | None = None) -> Chunker:
    """The strategy that the settings name, with their size, overlap and unit.

    `tokenizer` is called when a document is cut, and only by what counts in tokens: the `token` strategy, and every
    other one with `unit: tokens`. A class that has a field `tokenizer` gets it.

    Raises:
        ConfigError: no strategy has this name, or it doesn't take these options.
    """
    strategy = resolve("chunker", settings.strategy)
    options: dict[str, object] = {"size": settings.size, "overlap": settings.overlap, "unit": settings.unit}
    if "tokenizer" in getattr(strategy, "__struct_fields__", ()):
        options["tokenizer"] = tokenizer
    try:
        return cast("Chunker", strategy(**options))
    except TypeError as error:
        raise ConfigError(
            f"chunking.strategy {settings.strategy}: {error}", "it must take size, overlap and unit"
        ) from error


def parents(document: Document, settings: ParentsSettings) -> list[Chunk]:
    """The document's parents, in order: the second pass of spec I23, by the default strategy, in characters."""
    whole = chunker(ChunkingSettings(size=settings.size, overlap=settings.overlap))
    return chunk(document, whole, context_header=False)
