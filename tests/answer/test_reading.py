"""Whether the model read the whole prompt, by the tokens that its server says it read (spec A9)."""

from __future__ import annotations

import pytest

from ragcli.answer.reading import alarm
from ragcli.types import Message, Prompt, Usage


def letters(text: str) -> int:
    """A token a character."""
    return len(text)


def prompt(*texts: str, tokens: int | None = None) -> Prompt:
    """A prompt of these messages; its tokens are its characters."""
    return Prompt(
        messages=tuple(Message("user", text) for text in texts), sources=(), parts=(), counted_by="cl100k_base",
        tokens=sum(map(len, texts)) if tokens is None else tokens,
    )  # fmt: skip


def rings(sent: Prompt, read: int | None, *, is_own: bool = False) -> bool:
    return alarm(sent, Usage(prompt_tokens=read), letters, is_own=is_own) != ""


@pytest.mark.spec("A9")
def test_a_prompt_that_lost_nine_tenths_is_told_with_both_counts() -> None:
    said = alarm(prompt("word " * 8, tokens=160_689), Usage(prompt_tokens=16_387), letters, is_own=False)
    assert said.startswith("the server read 16,387 of the prompt's 160,689 tokens (cl100k_base)")
    assert "num_ctx" in said
    assert "--max-context-tokens" in said


@pytest.mark.spec("A9")
@pytest.mark.parametrize("is_own", [False, True])
def test_where_the_server_does_not_say_nothing_is_said(is_own: bool) -> None:
    assert not rings(prompt("word " * 1000), None, is_own=is_own)


@pytest.mark.spec("A9")
@pytest.mark.parametrize(
    ("text", "ratio", "expected"),
    [
        ("a", 1.08, False), ("a", 1.04, False), ("a", 1.0, False), ("a", 0.8, False), ("a", 0.799, True),
        ("a", 0.5, True), ("a", 0.0, True),
        ("故", 1.0, False), ("故", 0.58, False), ("故", 0.34, False), ("故", 0.25, False), ("故", 0.249, True),
        ("a故", 0.525, False), ("a故", 0.524, True),  # half and half: (0.8 + 0.25) / 2
    ],
)  # fmt: skip
def test_it_rings_below_what_another_tokenizer_could_need(text: str, ratio: float, expected: bool) -> None:
    sent = prompt(text * (100_000 // len(text)))
    assert rings(sent, round(ratio * 100_000)) == expected


@pytest.mark.spec("A9")
@pytest.mark.parametrize(("read", "expected"), [(1000, False), (1003, False), (950, False), (949, True), (800, True)])
@pytest.mark.parametrize("text", ["a", "故"])
def test_by_the_models_own_tokenizer_a_twentieth_less_is_too_little(text: str, read: int, expected: bool) -> None:
    assert rings(prompt(text * 1000), read, is_own=True) == expected


@pytest.mark.spec("A9")
def test_scripts_count_over_all_messages() -> None:
    sent = prompt("a" * 60_000, "故" * 40_000)
    least = round(100_000 * (0.8 * 0.6 + 0.25 * 0.4))
    # the messages are joined by a line end each, which moves the share by a hundred-thousandth
    assert not rings(sent, least + 2)
    assert rings(sent, least - 2)


@pytest.mark.spec("A9")
def test_an_empty_prompt_read_as_nothing_is_no_alarm() -> None:
    assert not rings(prompt(), 0)
