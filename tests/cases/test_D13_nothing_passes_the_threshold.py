"""D13: a threshold cuts all of the context, and the model answers as if no file had been given."""

from __future__ import annotations

import pytest

from tests.cases.answering import answering
from tests.commands import Shell
from tests.services import KEY, EmbeddingService
from tests.streams import spoken


@pytest.mark.spec("A10", "R4")
@pytest.mark.usefixtures("oaks")
def test_no_model_is_asked_and_it_is_said_how_many_passed(
    shell: Shell, service: EmbeddingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(monkeypatch, spoken("Oaks are tall.")) as model:
        monkeypatch.setenv("RAGCLI_EMBEDDING__BASE_URL", service.url)
        monkeypatch.setenv("RAGCLI_EMBEDDING__API_KEY", KEY)
        done = shell("ask", "tall oak trees", "--mode", "vector", "--min-score", "0.99")
        assert (done.code, done.out) == (1, "No confident answer: 0 of 3 chunks passed.\n")
        assert "retrieval.min_score = 0.99" in done.err
        assert model.requests == []
        value = shell("ask", "tall oak trees", "--mode", "vector", "--min-score", "0.99", "--json")
        assert (value.code, value.json()["outcome"], value.json()["sources"]) == (1, "no-answer", [])
        # unless it is told to: then the prompt says that there is no source
        assert shell("ask", "tall oak trees", "--mode", "vector", "--min-score", "0.99", "--always").code == 0
        assert model.messages[-1]["content"] == "Context:\n\n(no source was found)\n\nQuestion: tall oak trees"
