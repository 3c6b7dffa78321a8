"""The user's own reranker: classes, objects and functions, and what becomes of their errors."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcli.errors import ConfigError, RagcliError
from ragcli.models.place import ModelPlace
from ragcli.options import RerankSettings, Settings
from ragcli.rerankers import open_reranker
from ragcli.types import Relevance, Reranker, ignore_event

MODULE = """
from ragcli.types import Relevance

closed = []

class Longest:
    def judge(self, query, passages):
        return [len(passage) / 10 for passage in passages]
    def close(self):
        closed.append(self)

class Broken:
    def __init__(self):
        raise OSError("no\\nmodel")

class Nothing:
    pass

class Called:
    def __call__(self, query, passages):
        return [1.0 for _ in passages]

class Whole:
    def judge(self, query, passages):
        return Relevance(tuple(0.5 for _ in passages), True, ("as it is",))

class Judge:
    def judge(self, query, passages):
        return [0.25 for _ in passages]

judge = Judge()

def words(query, passages):
    return (len(passage.split()) for passage in passages)

def some(query, passages):
    return [None, 0.5]

def few(query, passages):
    return [0.5]

def nan(query, passages):
    return [float("nan"), 1]

def none(query, passages):
    return None

def text(query, passages):
    return ["high", "low"]

def fails(query, passages):
    raise ZeroDivisionError("by\\n0")

number = 3
"""
PASSAGES = ["oak", "oak and elm"]


@pytest.fixture(autouse=True)
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rerankers_of_ours.py").write_text(MODULE)
    (tmp_path / "breaks_of_ours.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(str(tmp_path))


def opened(attribute: str, module: str = "rerankers_of_ours") -> Reranker:
    settings = Settings(rerank=RerankSettings(reranker=f"python:{module}:{attribute}"))
    return open_reranker(settings, ModelPlace(Path("nowhere")), ignore_event)


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("attribute", "expected"),
    [
        ("Longest", Relevance((0.3, 1.1), logits=True)),
        ("Called", Relevance((1.0, 1.0))),
        ("Whole", Relevance((0.5, 0.5), True, ("as it is",))),
        ("judge", Relevance((0.25, 0.25))),
        ("words", Relevance((1.0, 3.0), logits=True)),
        ("some", Relevance((None, 0.5))),
    ],
)
def test_classes_objects_and_functions_judge(attribute: str, expected: Relevance) -> None:
    reranker = opened(attribute)
    assert reranker.judge("q", PASSAGES) == expected
    assert reranker.name == f"python:rerankers_of_ours:{attribute}"
    assert reranker.judge("q", []) == Relevance(())
    reranker.close()


def test_it_is_closed_where_it_can_be() -> None:
    import rerankers_of_ours  # type: ignore[import-not-found]

    before = len(rerankers_of_ours.closed)
    opened("Longest").close()
    assert len(rerankers_of_ours.closed) == before + 1


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("attribute", "said"),
    [
        ("fails", "fails raised ZeroDivisionError: by 0"),
        ("few", "1 scores for 2 passages"),
        ("nan", "a score of nan is none"),
        ("none", "TypeError"),
        ("text", "ValueError"),
    ],
)
def test_its_errors_are_ours_and_name_it(attribute: str, said: str) -> None:
    with pytest.raises(RagcliError, match=f"reranker rerankers_of_ours:{attribute}: .*{said}"):
        opened(attribute).judge("q", PASSAGES)


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("attribute", "module", "said"),
    [
        ("Broken", "rerankers_of_ours", "Broken raised OSError: no model"),
        ("Nothing", "rerankers_of_ours", "it has no judge, and is no function"),
        ("number", "rerankers_of_ours", "number is neither a class nor a function"),
        ("Missing", "rerankers_of_ours", "rerankers_of_ours has no Missing"),
        ("x", "no_such_module_of_ours", "there is no module no_such_module_of_ours"),
        ("x", "breaks_of_ours", "importing it raised ZeroDivisionError"),
    ],
)
def test_what_can_not_be_opened_is_told(attribute: str, module: str, said: str) -> None:
    with pytest.raises(RagcliError, match=f"reranker {module}:{attribute}: .*{said}"):
        opened(attribute, module)


def test_a_name_without_an_attribute_is_told_the_form() -> None:
    settings = Settings(rerank=RerankSettings(reranker="python:module"))
    with pytest.raises(ConfigError, match="not of the form python:module:attribute"):
        open_reranker(settings, ModelPlace(Path("nowhere")), ignore_event)
