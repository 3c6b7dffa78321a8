"""A name in a setting → the class or function in the file of that name, imported only then.

Owns the table of built-in chunkers, readers, rerankers and stages. `package.module:Class` names code from elsewhere,
which is imported (and so run) when it is resolved; whether a settings file may ask for that is `config`'s business.
Makes no instances and checks no options.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Literal

from ragcli.errors import ConfigError, did_you_mean

Kind = Literal["chunker", "reader", "reranker", "stage"]

_BUILT_IN: Mapping[Kind, Mapping[str, str]] = {
    "chunker": {
        "code": "ragcli.chunk.code:Code",
        "fixed": "ragcli.chunk.fixed:Fixed",
        "markdown": "ragcli.chunk.markdown:Markdown",
        "recursive": "ragcli.chunk.recursive:Recursive",
        "sentence": "ragcli.chunk.sentence:Sentence",
        "token": "ragcli.chunk.token:Token",
    },
    "reader": {
        "code": "ragcli.read.code:read",
        "csv": "ragcli.read.csv:read",
        "html": "ragcli.read.html:read",
        "json": "ragcli.read.json:read",
        "jsonl": "ragcli.read.jsonl:read",
        "markdown": "ragcli.read.markdown:read",
        "pdf": "ragcli.read.pdf:read",
        "text": "ragcli.read.text:read",
    },
    "reranker": {
        "cohere": "ragcli.rerankers.cohere:CohereReranker",
        "jina": "ragcli.rerankers.jina:JinaReranker",
        "llm": "ragcli.rerankers.llm:LlmReranker",
        "onnx": "ragcli.rerankers.onnx:OnnxReranker",
        "vllm": "ragcli.rerankers.vllm:VllmReranker",
    },
    "stage": {
        "budget": "ragcli.stages.budget:Budget",
        "compress": "ragcli.stages.compress:Compress",
        "cut": "ragcli.stages.cut:Cut",
        "mmr": "ragcli.stages.mmr:Mmr",
        "parents": "ragcli.stages.parents:Parents",
        "per_document": "ragcli.stages.per_document:PerDocument",
        "redundancy": "ragcli.stages.redundancy:Redundancy",
        "reorder": "ragcli.stages.reorder:Reorder",
        "rerank": "ragcli.stages.rerank:Rerank",
        "where": "ragcli.stages.where:Where",
    },
}


def names(kind: Kind) -> tuple[str, ...]:
    """The built-in names of a kind, in order."""
    return tuple(sorted(_BUILT_IN[kind]))


def resolve(kind: Kind, name: str) -> Callable[..., Any]:
    """The class or function that `name` means.

    Raises:
        ConfigError: an unknown name; or foreign code that can't be imported, lacks the name, or is no callable.
    """
    if ":" in name:
        return _foreign(kind, name)
    if name not in _BUILT_IN[kind]:
        known = ", ".join(names(kind))
        raise ConfigError(
            f"unknown {kind} {name}{did_you_mean(name, names(kind))}", f"known: {known}, or package.module:Class"
        )
    module, _, attribute = _BUILT_IN[kind][name].partition(":")
    built_in: Callable[..., Any] = getattr(import_module(module), attribute)
    return built_in


def _foreign(kind: Kind, name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    if not (attribute.isidentifier() and all(part.isidentifier() for part in module.split("."))):
        raise ConfigError(f"{kind} {name}: not of the form package.module:Class")
    found = getattr(_imported(kind, name, module), attribute, None)
    if found is None:
        raise ConfigError(f"{kind} {name}: {module} has no {attribute}")
    if not (callable(found) or (kind == "reranker" and hasattr(found, "judge"))):  # that may be an object
        raise ConfigError(f"{kind} {name}: {attribute} is neither a class nor a function")
    return found  # type: ignore[no-any-return]  # callable() of an Any


def _imported(kind: Kind, name: str, module: str) -> object:
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name and f"{module}.".startswith(f"{error.name}."):
            raise ConfigError(
                f"{kind} {name}: there is no module {error.name}", "install it, or put its folder on PYTHONPATH"
            ) from error
        raise ConfigError(f"{kind} {name}: {module} needs the module {error.name}", "install it") from error
    except (ImportError, SyntaxError) as error:
        raise ConfigError(f"{kind} {name}: {module} can't be imported: {error}") from error
