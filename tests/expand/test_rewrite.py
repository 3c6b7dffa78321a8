"""A question that follows on others, made one that stands alone (spec R27)."""

from __future__ import annotations

import pytest

from ragcli.errors import RagcliError, RemoteError
from ragcli.expand.rewrite import INSTRUCTION, LONGEST, LONGEST_TURN, TURNS, rewritten
from ragcli.types import Message
from tests.expand.chat import ScriptedChat

TALK = (Message("user", "How long do batteries last?"), Message("assistant", "About ten\nyears [Source 1]."))


@pytest.mark.spec("R27")
def test_what_is_sent_and_what_comes_back() -> None:
    chat = ScriptedChat("How long do batteries last in winter?\n")
    assert rewritten("And in winter?", TALK, chat) == "How long do batteries last in winter?"
    assert chat.asked == [
        [
            Message("system", INSTRUCTION),
            Message(
                "user",
                "Conversation:\nuser: How long do batteries last?\nassistant: About ten years [Source 1].\n\n"
                "Question: And in winter?\n\nThe question, to be understood alone:",
            ),
        ]
    ]
    assert chat.limits == [128]


@pytest.mark.spec("R27")
@pytest.mark.parametrize(
    "reply",
    [
        "<think>They mean batteries.</think>\n\nQuestion: How long do they last?",
        '1. "How long do they last?"\n2. Another one?',
        "Here is the question:\n\n**How long do they last?**",
        "```\nHow long do they last?\n```",
    ],
)
def test_the_question_is_read_whatever_stands_round_it(reply: str) -> None:
    assert rewritten("And in winter?", TALK, ScriptedChat(reply)) == "How long do they last?"


def shown(history: tuple[Message, ...]) -> str:
    chat = ScriptedChat("Why?")
    rewritten("And?", history, chat)
    return chat.asked[0][1].content


@pytest.mark.spec("R27")
def test_the_newest_turns_are_shown_and_neither_instructions_nor_what_tools_said() -> None:
    turns = tuple(Message("user" if n % 2 else "assistant", f"turn {n}") for n in range(1, 10))
    odd = (Message("system", "Be brief."), *turns, Message("tool", "a source"))
    talk = shown(odd).partition("\n\n")[0].splitlines()[1:]
    assert [line.partition(": ")[2] for line in talk] == [f"turn {n}" for n in range(10 - TURNS, 10)]


@pytest.mark.spec("R27")
def test_of_a_long_turn_the_beginning_is_shown() -> None:
    whole, long = "a" * LONGEST_TURN, "b" * (LONGEST_TURN + 1)
    text = shown((Message("user", whole), Message("assistant", long)))
    assert f"user: {whole}\nassistant: {long[:-1]}…\n" in text


@pytest.mark.spec("R27")
@pytest.mark.parametrize("reply", ["", "---\n", "<think>hm", "Here it is:", "x" * (LONGEST + 1)])
def test_what_is_no_question_is_an_error_that_names_the_model(reply: str) -> None:
    with pytest.raises(RagcliError, match="toy wrote no question"):
        rewritten("And in winter?", TALK, ScriptedChat(reply))


@pytest.mark.spec("R27")
def test_a_long_question_may_become_twice_as_long() -> None:
    question = "y" * LONGEST
    assert rewritten(question, TALK, ScriptedChat("x" * LONGEST * 2)) == "x" * LONGEST * 2
    with pytest.raises(RagcliError):
        rewritten(question, TALK, ScriptedChat("x" * (LONGEST * 2 + 1)))


@pytest.mark.spec("R27")
def test_a_failure_of_the_model_is_passed_on() -> None:
    error = RemoteError("127.0.0.1: 503", "try again")
    with pytest.raises(RemoteError) as caught:
        rewritten("And in winter?", TALK, ScriptedChat(error))
    assert caught.value is error
