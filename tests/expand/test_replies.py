"""What a language model wrote, read as lines (spec R27): whatever it puts round them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcli.expand.replies import first_line, lines


@pytest.mark.spec("R27")
@pytest.mark.parametrize(
    "line",
    [
        "guide to oaks", "lex: guide to oaks", "vec: guide to oaks", "hyde: guide to oaks", "1. guide to oaks",
        "12) guide to oaks", "(3) guide to oaks", "a) guide to oaks", "1: guide to oaks", "- guide to oaks",
        "* guide to oaks", "• guide to oaks", "+ guide to oaks", "> guide to oaks", "## guide to oaks",
        "Question: guide to oaks", "Rewritten question: guide to oaks", "Query : guide to oaks", "Q: guide to oaks",
        '"guide to oaks"', "'guide to oaks'", "“guide to oaks”", "„guide to oaks“", "«guide to oaks»",
        "`guide to oaks`", "**guide to oaks**", "_guide to oaks_", "  guide   to\toaks  ", "1. **lex:** guide to oaks",
        '- "lex: guide to oaks"', '"1. guide to oaks"', "**Question:** guide to oaks", "- 2. > guide to oaks",
        "```guide to oaks```",
    ],
)  # fmt: skip
def test_what_stands_round_a_line_is_taken_off(line: str) -> None:
    assert lines(line, 5) == ("guide to oaks",)
    assert first_line(f"\n\n{line}\nanother") == "guide to oaks"


@pytest.mark.spec("R27")
@pytest.mark.parametrize(
    "line",
    [
        "C. S. Lewis wrote what?", "What does “oak” mean?", "-5 degrees or less", "#1 hit of 1984",
        "3.5 metres or more",
        "What is lex: a law?", "How tall is an oak?", "什么是橡树？", "1984", "e = mc^2",
    ],
)  # fmt: skip
def test_what_belongs_to_a_line_stays(line: str) -> None:
    assert lines(line, 5) == (line,)


@pytest.mark.spec("R27")
@pytest.mark.parametrize(
    "reply",
    [
        "<think>Oaks?\nOr elms?</think>\n\nguide to oaks\nage of oaks",
        "<THINK>\nhm\n</THINK>guide to oaks\nage of oaks",
        "Oaks?\nOr elms?\n</think>\nguide to oaks\nage of oaks",
        "<think>a</think>guide to oaks\n<think>b</think>\nage of oaks",
        "guide to oaks\nage of oaks\n<think>and more",
        "```\nguide to oaks\nage of oaks\n```",
        "```text\nguide to oaks\nage of oaks\n```\n",
        "~~~\nguide to oaks\nage of oaks\n~~~",
        "Here are two questions:\n\n1. guide to oaks\n\n\n2. age of oaks\n",
        "guide to oaks\n---\n***\n...\nage of oaks",
        "guide to oaks\r\nage of oaks\r\n",
        "guide to oaks\nGuide to Oaks\n- guide to oaks\nage of oaks\nage  of oaks",
    ],
)
def test_thoughts_fences_leads_rules_and_repeats_are_left_out(reply: str) -> None:
    assert lines(reply, 9) == ("guide to oaks", "age of oaks")


@pytest.mark.spec("R27")
def test_no_more_lines_than_are_wanted() -> None:
    reply = "\n".join(f"{n}. question number {n}" for n in range(1, 31))
    assert lines(reply, 4) == tuple(f"question number {n}" for n in range(1, 5))
    assert len(lines(reply, 50)) == 30
    assert lines(reply, 0) == ()


@pytest.mark.spec("R27")
@pytest.mark.parametrize(
    "reply", ["", " \n\n", "---", "```\n```", "<think>never ends", "?!", "Here it is:", "1. ", "- "]
)
def test_where_nothing_is_written_there_is_no_line(reply: str) -> None:
    assert lines(reply, 5) == ()
    assert first_line(reply) == ""


@pytest.mark.spec("R27")
@given(
    reply=st.lists(st.sampled_from(["1. ", "- ", '"', "lex: ", "oak", " ", "\n", "**", "a) ", ":", "?"])).map("".join)
)
def test_a_cleaned_line_is_clean(reply: str) -> None:
    found = lines(reply, 99)
    assert lines("\n".join(found), 99) == found
    assert len({one.casefold() for one in found}) == len(found)
