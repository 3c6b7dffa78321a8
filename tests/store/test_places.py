"""Where a text stands in the index, against a search in plain loops."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragcli.options import ChunkingSettings
from ragcli.pipeline import Pipeline
from ragcli.types import Place
from tests import indexes

WORDS = ("oak", "Elm", "ash", "yew", "fir")
SMALL = indexes.keywords(chunking=ChunkingSettings(size=60, overlap=10))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Documents of words in a fixed disorder, cut into chunks of some ten words."""
    folder = tmp_path_factory.mktemp("places")
    texts = {}
    for number in range(6):
        words = [WORDS[(at * at + number * at + number) % 5] for at in range(60)]
        texts[f"{number}.txt"] = "\n".join(" ".join(words[at : at + 7]) for at in range(0, 60, 7))
    indexes.take_in(indexes.index_of(folder), indexes.write(folder / "d", texts), settings=SMALL)
    return indexes.index_of(folder)


def reference(index: Path, wanted: list[str]) -> tuple[Place, ...]:
    """Documents whose words, in order, hold the wanted ones; chunks by the spans of those words."""
    found = []
    for name, (_, _, text, chunks) in sorted(indexes.content(index).items()):
        words, at = [], 0
        for word in text.split():
            start = text.index(word, at)
            words.append((word.lower(), start, start + len(word)))
            at = start + len(word)
        spans, first = [], 0
        while first + len(wanted) <= len(words):  # matches don't overlap
            run = words[first : first + len(wanted)]
            if [word for word, _, _ in run] == [word.lower() for word in wanted]:
                spans.append((run[0][1], run[-1][2]))
                first += len(wanted)
            else:
                first += 1
        whole = {c.index for c in chunks for a, b in spans if c.start <= a and b <= c.end}
        parts = {c.index for c in chunks for a, b in spans if c.start < b and a < c.end}
        if spans:
            found.append(Place(name, tuple(sorted(whole)), () if whole else tuple(sorted(parts))))
    return tuple(found)


@pytest.mark.spec("A10")
@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wanted=st.lists(st.sampled_from(WORDS), min_size=1, max_size=12))
def test_as_plain_loops_find_them(index: Path, wanted: list[str]) -> None:
    with Pipeline.open(index, SMALL, explicit=()) as pipeline:
        assert pipeline.inspector.places(" ".join(wanted)) == reference(index, wanted)


def test_no_more_documents_than_asked_for(index: Path) -> None:
    with Pipeline.open(index, SMALL, explicit=()) as pipeline:
        every = pipeline.inspector.places("oak")
        assert len(every) > 2
        assert pipeline.inspector.places("oak", most=2) == every[:2]
