"""F11: an answer cited [5], then [2]. Renumbered, it cites 1, then 2; which number was which is kept."""

from __future__ import annotations

import pytest

from ragcli.answer.citations import citations, renumbered

ANSWER = "Oaks reach 30 metres [5]. They live long [2], some for a thousand years [5][2]."


@pytest.mark.spec("A9")
def test_numbers_are_sequential_and_the_mapping_is_kept() -> None:
    found = citations(ANSWER, 6)
    assert [one.source for one in found] == [5, 2, 5, 2]
    text, new = renumbered(ANSWER, found)
    assert text == (
        "Oaks reach 30 metres [Source 1]. They live long [Source 2], some for a thousand years [Source 1][Source 2]."
    )
    assert new == {5: 1, 2: 2}
    assert [one.source for one in citations(text, 6)] == [1, 2, 1, 2]


@pytest.mark.spec("A9")
def test_without_it_the_text_is_as_the_model_wrote_it() -> None:
    assert [ANSWER[one.start : one.end] for one in citations(ANSWER, 6)] == ["[5]", "[2]", "[5]", "[2]"]
