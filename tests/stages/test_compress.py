"""Compression (spec P9): extracts by hand-made vectors, and a scripted language model."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ragcli.chunk.breaks import sentences
from ragcli.errors import OptionError, RagcliError, RemoteError
from ragcli.stages.compress import Compress, cleaned
from ragcli.types import Message, Ranking
from tests.stages.corpus import FakeCorpus, hit

TEXT = "The gauge is red. It rains. A cat sleeps. The gauge is read by hand. Nobody knows why. It rains again."


def near(text: str) -> Sequence[float]:
    """What mentions the gauge points to the query; rain is across; all else is away from it."""
    return (1.0, 0.0) if "gauge" in text else (0.5, 0.5) if "rain" in text else (-1.0, 0.0)


def corpus() -> FakeCorpus:
    return FakeCorpus(query=(1, 0), embed=near)


class Scripted:
    """A language model with prepared replies."""

    name = "scripted"

    def __init__(self, *replies: str | RagcliError) -> None:
        self._replies = list(replies)
        self.asked: list[list[Message]] = []

    def reply(self, messages: Sequence[Message], *, max_tokens: int | None = None) -> str:
        self.asked.append(list(messages))
        reply = self._replies.pop(0)
        if isinstance(reply, RagcliError):
            raise reply
        return reply

    def close(self) -> None:
        """Holds nothing."""


def of(*texts: str) -> Ranking:
    return Ranking(tuple(hit(f"{number}.md", text=text) for number, text in enumerate(texts)))


@pytest.mark.spec("P9")
def test_the_nearest_sentences_in_the_order_of_the_text() -> None:
    (found,) = Compress(sentences=2)("q", of(TEXT), corpus()).hits
    assert found.compressed_text == "The gauge is red. … The gauge is read by hand."
    assert found.chunk.text == TEXT
    assert found.marks[-1].note == "2 of 6 sentences, 11 of 21 tokens"
    assert (found.score, found.score_kind) == (1.0, "relative")


@pytest.mark.spec("P9")
def test_neighbours_stand_as_they_stood_and_of_equals_the_first_is_taken() -> None:
    (found,) = Compress(sentences=3)("q", of(TEXT), corpus()).hits
    assert found.compressed_text == "The gauge is red. It rains. … The gauge is read by hand."


@pytest.mark.spec("P9")
def test_all_sentences_go_in_one_batch_and_short_texts_do_not_go_at_all() -> None:
    used = corpus()
    found = Compress(sentences=2)("q", of(TEXT, "One. Two.", TEXT), used).hits
    assert [len(batch) for batch in used.batches] == [12]
    assert found[1].compressed_text is None
    assert found[1].marks[-1].note == "whole: it has no more than 2 sentences"
    assert found[0].compressed_text == found[2].compressed_text


def test_when_no_text_is_long_nothing_is_embedded() -> None:
    used = corpus()
    Compress()("q", of("One. Two."), used)
    assert used.batches == []


@pytest.mark.spec("P9", "R8")
def test_an_embedder_that_fails_is_the_stages_error() -> None:
    with pytest.raises(RagcliError, match="the embedder is down"):
        Compress()("q", of(TEXT), FakeCorpus(query=(1, 0)))


@pytest.mark.spec("R1")
def test_fewer_than_one_sentence() -> None:
    with pytest.raises(OptionError, match="compression_sentences"):
        Compress(sentences=0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("  \n ", []),
        ("One. Two!  Three?", ["One.", "Two!", "Three?"]),
        ("Version 1.5 is out. J. Smith wrote it.", ["Version 1.5 is out.", "J. Smith wrote it."]),
        ("今日は雨。明日は雪。", ["今日は雨。", "明日は雪。"]),
        ("# Title\nText of it. More\nof it.", ["# Title", "Text of it.", "More\nof it."]),
        ("- one\n- two\n\nthree", ["- one", "- two", "three"]),
        ("| a | b |\n| 1 | 2 |", ["| a | b |", "| 1 | 2 |"]),
        ("no end", ["no end"]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text)] == expected


# ---------------------------------------------------------------------------------------------------- language models


@pytest.mark.spec("P9")
def test_a_language_model_is_asked_once_a_hit_and_by_itself() -> None:
    chat = Scripted("The gauge is red.", "<think>hm</think>```\nIt rains.\n```")
    found = Compress("llm", chat=chat)("which colour", of(TEXT, TEXT), corpus()).hits
    assert [one.compressed_text for one in found] == ["The gauge is red.", "It rains."]
    assert found[0].marks[-1].note == "word for word, 4 of 21 tokens"
    for messages in chat.asked:
        assert [message.role for message in messages] == ["system", "user"]
        assert "which colour" in messages[1].content
        assert TEXT in messages[1].content


@pytest.mark.spec("P9", "R8")
@pytest.mark.parametrize(
    ("reply", "note"),
    [
        ("NONE", "whole: the language model found nothing in it that bears on the query"),
        ('"None."', None),
        (TEXT + " And more.", "whole: the language model's text is no shorter"),
    ],
)
def test_a_reply_that_shortens_nothing_leaves_the_hit_whole(reply: str, note: str | None) -> None:
    (found,) = Compress("llm", chat=Scripted(reply))("q", of(TEXT), corpus()).hits
    if note is None:
        assert found.marks[-1].note.startswith("by the language model, 1 of its sentences not word for word")
    else:
        assert (found.compressed_text, found.marks[-1].note) == (None, note)


@pytest.mark.spec("P9")
def test_what_the_model_adds_of_its_own_is_told() -> None:
    (found,) = Compress("llm", chat=Scripted("The gauge  is\nred. It is blue."))("q", of(TEXT), corpus()).hits
    assert found.marks[-1].note == "by the language model, 1 of its sentences not word for word, 7 of 21 tokens"


@pytest.mark.spec("P9", "R8")
def test_a_failed_request_costs_one_hit_its_compression() -> None:
    chat = Scripted(RemoteError("scripted: 500"), "It rains.", "  ")
    after = Compress("llm", chat=chat)("q", of(TEXT, TEXT, TEXT), corpus())
    assert [one.compressed_text for one in after.hits] == [None, "It rains.", None]
    assert after.warnings == ("2 of 3 hits are not compressed: scripted: 500",)


@pytest.mark.spec("P9")
def test_without_a_language_model_the_error_says_what_to_set() -> None:
    with pytest.raises(RagcliError) as raised:
        Compress("llm")("q", of(TEXT), corpus())
    assert "chat.model" in raised.value.hint


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ("<think>no end", ""),
        ("<THINK>a</THINK>\n b ", "b"),
        ("```text\na\nb\n```", "a\nb"),
        ("a ``` b", "a ``` b"),
    ],
)
def test_thoughts_and_fences_are_taken_off(reply: str, expected: str) -> None:
    assert cleaned(reply) == expected
