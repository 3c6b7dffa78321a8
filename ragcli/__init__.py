"""Ingest a folder of documents and query it: retrieval from the shell, and from Python.

The public face. A name is imported when it is first used, so `import ragcli` costs next to nothing::

    from ragcli import Pipeline, RetrievalOptions, ingest_paths

The function is not called `ingest`: that is the package it lives in, and a package hides a name of its parent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ragcli.asking import Hearing
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
        AnswerSettings,
        ChatSettings,
        Condition,
        EmbeddingSettings,
        FusionSettings,
        ModelsSettings,
        ParentsSettings,
        RerankSettings,
        RetrievalOptions,
        Settings,
    )
    from ragcli.pipeline import Pipeline
    from ragcli.stages.budget import token_budget
    from ragcli.stages.mmr import mmr
    from ragcli.stages.redundancy import redundancy_filter
    from ragcli.stages.reorder import lost_in_the_middle
    from ragcli.stages.rerank import rerank
    from ragcli.types import (
        Answer,
        ChatReply,
        Chunk,
        Citation,
        Document,
        Drop,
        Event,
        Hit,
        IngestOptions,
        IngestReport,
        Message,
        Observer,
        Problem,
        Prompt,
        Ranking,
        Relevance,
        Reranker,
        Result,
        Statement,
        Step,
        Trace,
        Usage,
    )

__all__ = [
    "Answer",
    "AnswerSettings",
    "ChatReply",
    "ChatSettings",
    "Chunk",
    "Citation",
    "Condition",
    "ConfigError",
    "Document",
    "Drop",
    "EmbeddingSettings",
    "Event",
    "ExpressionError",
    "FusionSettings",
    "Hearing",
    "Hit",
    "IndexCorrupt",
    "IndexLocked",
    "IndexMismatch",
    "IndexMissing",
    "IndexUnusable",
    "IngestOptions",
    "IngestReport",
    "Message",
    "ModelMissing",
    "ModelsSettings",
    "Observer",
    "OptionError",
    "ParentsSettings",
    "Pipeline",
    "Problem",
    "Prompt",
    "RagcliError",
    "Ranking",
    "ReadError",
    "Relevance",
    "RemoteError",
    "RerankSettings",
    "Reranker",
    "Result",
    "RetrievalOptions",
    "Settings",
    "Statement",
    "Step",
    "Trace",
    "Usage",
    "UsageError",
    "__version__",
    "ingest_paths",
    "lost_in_the_middle",
    "mmr",
    "redundancy_filter",
    "rerank",
    "token_budget",
]

_HOMES = {
    "ragcli.asking": ("Hearing",),
    "ragcli.ingest": ("ingest_paths",),
    "ragcli.options": (
        *("AnswerSettings", "ChatSettings", "Condition", "EmbeddingSettings", "FusionSettings", "ModelsSettings"),
        *("ParentsSettings", "RerankSettings", "RetrievalOptions", "Settings"),
    ),
    "ragcli.pipeline": ("Pipeline",),
    "ragcli.stages.budget": ("token_budget",),
    "ragcli.stages.mmr": ("mmr",),
    "ragcli.stages.redundancy": ("redundancy_filter",),
    "ragcli.stages.reorder": ("lost_in_the_middle",),
    "ragcli.stages.rerank": ("rerank",),
    "ragcli.types": (
        *("Answer", "ChatReply", "Chunk", "Citation", "Document", "Drop", "Event", "Hit", "IngestOptions"),
        *("IngestReport", "Message", "Observer", "Problem", "Prompt", "Ranking", "Relevance", "Reranker", "Result"),
        *("Statement", "Step", "Trace", "Usage"),
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
