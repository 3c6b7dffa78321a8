"""Ingest a folder of documents and query it: retrieval from the shell, and from Python.

The public face. A name is imported when it is first used, so `import ragcli` costs next to nothing::

    from ragcli import Pipeline, RetrievalOptions, ingest_paths

The function is not called `ingest`: that is the package it lives in, and a package hides a name of its parent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ragcli.errors import (
        ConfigError,
        ExpressionError,
        IndexCorrupt,
        IndexLocked,
        IndexMismatch,
        IndexMissing,
        IndexUnusable,
        ModelMissing,
        OptionError,
        RagcliError,
        ReadError,
        RemoteError,
        UsageError,
    )
    from ragcli.ingest import ingest_paths
    from ragcli.options import (
        Condition,
        EmbeddingSettings,
        FusionSettings,
        ModelsSettings,
        RetrievalOptions,
        Settings,
    )
    from ragcli.pipeline import Pipeline
    from ragcli.types import (
        Chunk,
        Document,
        Drop,
        Event,
        Hit,
        IngestOptions,
        IngestReport,
        Problem,
        Ranking,
        Result,
        Step,
        Trace,
    )

__all__ = [
    "Chunk",
    "Condition",
    "ConfigError",
    "Document",
    "Drop",
    "EmbeddingSettings",
    "Event",
    "ExpressionError",
    "FusionSettings",
    "Hit",
    "IndexCorrupt",
    "IndexLocked",
    "IndexMismatch",
    "IndexMissing",
    "IndexUnusable",
    "IngestOptions",
    "IngestReport",
    "ModelMissing",
    "ModelsSettings",
    "OptionError",
    "Pipeline",
    "Problem",
    "RagcliError",
    "Ranking",
    "ReadError",
    "RemoteError",
    "Result",
    "RetrievalOptions",
    "Settings",
    "Step",
    "Trace",
    "UsageError",
    "__version__",
    "ingest_paths",
]

_HOMES = {
    "ragcli.ingest": ("ingest_paths",),
    "ragcli.options": (
        *("Condition", "EmbeddingSettings", "FusionSettings", "ModelsSettings", "RetrievalOptions", "Settings"),
    ),
    "ragcli.pipeline": ("Pipeline",),
    "ragcli.types": (
        *("Chunk", "Document", "Drop", "Event", "Hit", "IngestOptions", "IngestReport"),
        *("Problem", "Ranking", "Result", "Step", "Trace"),
    ),
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'ragcli' has no attribute {name!r}")
    from importlib import import_module

    home = next((home for home, names in _HOMES.items() if name in names), "ragcli.errors")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
