"""How an open index judges texts: its terms, idf by the formula, each text embedded once."""

from __future__ import annotations

from math import log
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ragcli.corpus import Promise
from ragcli.errors import RemoteError
from ragcli.lens import IndexLens
from ragcli.pipeline import Pipeline
from ragcli.types import Embedded, Embedder, EmbedderCard
from tests import indexes
from tests.services import unit, vector_of


class Counting:
    """An embedder that notes what it embeds."""

    card = EmbedderCard(name="toy", fingerprint="0", dimension=32)

    def __init__(self, *, fails: bool = False) -> None:
        self.texts: list[str] = []
        self.fails = fails

    def passages(self, texts: list[str]) -> Embedded:
        if self.fails:
            raise RemoteError("the service is away")
        self.texts += texts
        return Embedded(np.asarray([unit(vector_of(text)) for text in texts], np.float32))

    def query(self, text: str) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.passages([text]).vectors[0]
        return vector

    def close(self) -> None:
        """Nothing to give back."""


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    indexes.write(tmp_path / "d", {"a.txt": "oak elm", "b.txt": "oak", "c.txt": "ash"})
    indexes.take_in(indexes.index_of(tmp_path), tmp_path / "d")
    return Pipeline.open(indexes.index_of(tmp_path), indexes.keywords())


def test_terms_and_idf_are_those_of_the_index(pipeline: Pipeline) -> None:
    with pipeline:
        lens = pipeline.lens()
        assert lens.terms("Oak, ELM-tree") == ["oak", "elm", "tree"]
        found = lens.idf(["oak", "yew", "oak"])
    assert found == pytest.approx({"oak": log(1 + (3 - 2 + 0.5) / 2.5), "yew": log(1 + 3.5 / 0.5)})


def test_without_vectors_there_are_none(pipeline: Pipeline) -> None:
    with pipeline:
        lens = pipeline.lens()
        assert lens.vectors(["oak"]) is None
        assert lens.query_vector("oak") is None
        assert lens.problem() == ""


def lens_of(pipeline: Pipeline, embedder: Counting) -> IndexLens:
    opened: Embedder = embedder  # type: ignore[assignment]
    return IndexLens(pipeline._store, Promise(lambda: opened))


def test_a_text_is_embedded_once(pipeline: Pipeline) -> None:
    embedder = Counting()
    with pipeline:
        lens = lens_of(pipeline, embedder)
        first = lens.vectors(["oak", "elm", "oak"])
        second = lens.vectors(["elm", "ash"])
        assert lens.vectors([]) is None
    assert embedder.texts == ["oak", "elm", "ash"]
    assert first is not None
    assert second is not None
    assert (first[0] == first[2]).all()
    assert (first[1] == second[0]).all()


def test_a_text_that_can_t_be_embedded_is_told(pipeline: Pipeline) -> None:
    class Refusing(Counting):
        def passages(self, texts: list[str]) -> Embedded:
            return Embedded(np.zeros((len(texts), 32), np.float32), {0: "the service refuses it"})

    with pipeline:
        lens = lens_of(pipeline, Refusing())
        rows = lens.vectors(["oak", "elm"])
        assert rows is not None
        assert not rows.any()
        assert lens.problem() == "1 of 2 sentences have no vector: the service refuses it"


def test_an_embedder_that_is_away_is_a_problem_and_no_error(pipeline: Pipeline) -> None:
    with pipeline:
        lens = lens_of(pipeline, Counting(fails=True))
        assert lens.vectors(["oak"]) is None
        assert lens.query_vector("oak") is None
        assert lens.problem() == "the service is away"
