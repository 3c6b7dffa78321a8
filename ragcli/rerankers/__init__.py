"""Rerankers: models that judge how relevant each passage is to a query, one file each (spec P4).

Owns the way from `rerank.reranker` in a setting to the reranker of that name; what becomes of its scores is
`stages/rerank.py`'s.
"""

from __future__ import annotations

from ragcli import registry
from ragcli.models.place import ModelPlace
from ragcli.options import Settings
from ragcli.types import Listener, Reranker


def open_reranker(settings: Settings, place: ModelPlace, listen: Listener) -> Reranker:
    """The reranker that the settings name. `listen` gets Events of stage "reranking" in passages.

    Raises: ConfigError: there is none of this name. UsageError: it lacks a key, a URL or a model. ModelMissing,
    RemoteError where its files can't be had. RagcliError: foreign code fails.
    """
    name = settings.rerank.reranker
    if ":" in name:
        from ragcli.rerankers.python import PythonReranker

        return PythonReranker.open(settings, place, listen)
    opened: Reranker = registry.resolve("reranker", name).open(settings, place, listen)  # type: ignore[attr-defined]
    return opened
