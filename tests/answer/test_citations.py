"""Which sources an answer names (spec A9): what is read as a marker, what is not, and the numbers made sequential."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragcli.answer.citations import citations, escaped, leading_markers, renumbered, without_markers

MARKERS = [
    ("[Source 3]", [3]), ("[source 3]", [3]), ("[SOURCE 3]", [3]), ("[ Source 3 ]", [3]), ("[Source #3]", [3]),
    ("[Source3]", [3]), ("[Sources 1, 2]", [1, 2]), ("[Sources 1,2,3]", [1, 2, 3]), ("[Source 1, Source 2]", [1, 2]),
    ("[Source 1 and 2]", [1, 2]), ("[Source 1 und 2]", [1, 2]), ("[Source 1; 2 & 3]", [1, 2, 3]),
    ("[Sources 2-4]", [2, 3, 4]), ("[Sources 2–4]", [2, 3, 4]), ("[Source 1 - Source 3]", [1, 2, 3]),
    ("[Source 123456]", [123456]), ("[Source 2, 2]", [2]),
    ("[1]", [1]), ("[ 1 ]", [1]), ("[12]", [12]), ("[1, 2]", [1, 2]), ("[2,1]", [2, 1]), ("[1-3]", [1, 2, 3]),
    ("[1–3]", [1, 2, 3]), ("[1-20]", list(range(1, 21))), ("[^3]", [3]), ("[^1, ^2]", [1, 2]), ("[3, 1-2]", [3, 1, 2]),
    ("[3-1]", [3, 1]), ("[1-30]", [1, 30]), ("[0]", [0]),
    ("(Source 3)", [3]), ("(source 1, 2)", [1, 2]), ("(Sources 1-3)", [1, 2, 3]),
    ("【3】", [3]), ("【 3 】", [3]), ("【1、2】", [1, 2]), ("【1，2】", [1, 2]), ("【Source 3】", [3]),
    ("【3†source】", [3]), ("【3†L10-L20】", [3]), ("【3:0†a.md】", [3]),
]  # fmt: skip

NONE = [
    "[2024]", "[123]", "[Source]", "[Source N]", "[Source 1234567]", "[sic]", "[x]", "[ ]", "[]", "[1.5]", "[1a]",
    "Source 3", "(3)", "(2024)", "(see Source)", "{1}", "1]", "[1",
    "a[1]", "rows[12]", "f(x)[1]", "`a = [1]`", "```\nx = [1]\n```", "_[1]",
    "[1](https://example.org)", "[Source code]",
    "\\[Source 9]", "\\[1]", "\\(Source 9)", "\\【9】", "【2024】", "【3月】", "【note】",
]  # fmt: skip


@pytest.mark.spec("A9")
@pytest.mark.parametrize(("marker", "numbers"), MARKERS)
@pytest.mark.parametrize(("before", "after"), [("Oaks are tall ", "."), ("", ""), ("Tall.", " Next"), ("高。", "矮")])
def test_a_marker_is_read_with_its_place_and_its_numbers(
    before: str, after: str, marker: str, numbers: list[int]
) -> None:
    found = citations(f"{before}{marker}{after}", 20)
    assert [one.source for one in found] == numbers
    assert {(one.marker, one.start, one.end) for one in found} == {(marker, len(before), len(before) + len(marker))}


@pytest.mark.spec("A9")
@pytest.mark.parametrize("text", NONE)
def test_what_is_no_marker_is_not_read(text: str) -> None:
    assert citations(text, 20) == ()
    assert citations(f"Oaks are tall {text} and old.", 20) == ()


@pytest.mark.spec("A9")
def test_a_footnote_or_link_that_a_line_defines_is_no_marker() -> None:
    text = "Oaks [^1], as in [2]: tall.\n\n[^1]: A Book of Trees\n[2]: https://example.org"
    assert [(one.source, one.start) for one in citations(text, 3)] == [(1, 5), (2, 17)]


@pytest.mark.spec("A9")
@pytest.mark.parametrize("word", ["高", "とても", "높다", "สูง"])
def test_where_words_have_no_space_between_them_a_marker_may_follow_on_one(word: str) -> None:
    assert [one.source for one in citations(f"{word}[1]", 3)] == [1]


@pytest.mark.spec("A9")
def test_markers_come_in_the_order_of_the_text() -> None:
    text = "Oaks [3][1] and elms【2】, so (Source 1).\n```\na[4] = [5]\n```\nAnd `[6]` [7]"
    assert [(one.source, text[one.start : one.end]) for one in citations(text, 9)] == [
        (3, "[3]"), (1, "[1]"), (2, "【2】"), (1, "(Source 1)"), (7, "[7]"),
    ]  # fmt: skip


@pytest.mark.spec("A9")
@pytest.mark.parametrize(("number", "valid"), [(0, False), (1, True), (3, True), (4, False), (99, False)])
def test_a_number_is_valid_when_a_source_of_that_number_was_sent(number: int, valid: bool) -> None:
    (one,) = citations(f"So [Source {number}].", 3)
    assert (one.source, one.valid, one.supported) == (number, valid, None)


@pytest.mark.spec("A9")
def test_without_sources_no_number_is_valid() -> None:
    assert [one.valid for one in citations("So [1][2].", 0)] == [False, False]


# ---------------------------------------------------------------------------------------------------------- renumbered


def renumbering(text: str, sources: int) -> tuple[str, dict[int, int]]:
    new, mapping = renumbered(text, citations(text, sources))
    return new, dict(mapping)


@pytest.mark.spec("A9")
@pytest.mark.parametrize(
    ("text", "new", "mapping"),
    [
        ("A [Source 5]. B [Source 2]. C [Source 5].", "A [Source 1]. B [Source 2]. C [Source 1].", {5: 1, 2: 2}),
        ("A [3, 1]. B (Source 1).", "A [Source 1][Source 2]. B [Source 2].", {3: 1, 1: 2}),
        ("A [2-4].", "A [Source 1][Source 2][Source 3].", {2: 1, 3: 2, 4: 3}),
        ("A 【4】 [^4].", "A [Source 1] [Source 1].", {4: 1}),
        ("No marker.", "No marker.", {}),
        ("`[5]` and a[5] and [Source 5]", "`[5]` and a[5] and [Source 1]", {5: 1}),
    ],
)
def test_numbers_follow_the_order_in_which_they_are_named(text: str, new: str, mapping: dict[int, int]) -> None:
    assert renumbering(text, 5) == (new, mapping)


@pytest.mark.spec("A9")
@pytest.mark.parametrize("marker", ["[Source 9]", "[9]", "(source 9)", "【9】", "[Sources 8, 9]", "[0]"])
def test_an_unknown_marker_is_left_exactly_as_it_stands(marker: str) -> None:
    assert renumbering(f"A {marker}. B [3].", 3) == (f"A {marker}. B [Source 1].", {3: 1})


@pytest.mark.spec("A9")
def test_an_unknown_number_beside_known_ones_keeps_its_number() -> None:
    assert renumbering("A [9, 3, 2].", 3) == ("A [Source 9][Source 1][Source 2].", {3: 1, 2: 2})


ANSWERS = st.lists(
    st.sampled_from(
        [
            "Oaks ",
            "[Source 1]",
            "[2]",
            "[3, 1]",
            "(Source 4) ",
            "【2】",
            "[Source 9]",
            "[1-3]",
            "`[1]`",
            ". ",
            "\n",
            "a[2]",
        ]
    )
).map("".join)


@pytest.mark.spec("A9")
@given(text=ANSWERS, sources=st.integers(0, 5))
def test_renumbering_keeps_what_each_marker_names_and_a_second_one_changes_nothing(text: str, sources: int) -> None:
    before = citations(text, sources)
    new, mapping = renumbered(text, before)
    after = citations(new, sources)
    assert [one.source for one in after] == [mapping.get(one.source, one.source) for one in before]
    assert [one.valid for one in after] == [one.valid for one in before]
    assert list(mapping.values()) == list(range(1, len(mapping) + 1))
    again, same = renumbered(new, after)
    assert again == new
    assert all(old == number for old, number in same.items())


# --------------------------------------------------------------------------------------------------- around the markers


def test_the_text_without_its_markers() -> None:
    assert without_markers("Oaks [1] are【2】 tall[Source 3]; a[1].") == "Oaks  are tall; a[1]."


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("[1] so", 3),
        ("[1][2] so", 6),
        ("[1] [Source 2]  so", 14),
        ("so [1]", 0),
        ("", 0),
        ("  [1]", 5),
        ("[1]\n[2]", 3),
    ],
)
def test_how_much_of_a_text_is_leading_markers(text: str, length: int) -> None:
    assert leading_markers(text) == length


@pytest.mark.spec("A9", "A13")
@given(text=ANSWERS)
def test_an_escaped_text_cites_nothing(text: str) -> None:
    assert citations(escaped(text), 9) == ()
    assert escaped(text).replace("\\", "") == text


@pytest.mark.spec("A9")
def test_named_markers_count_in_code_too_and_numbers_alone_do_not() -> None:
    text = "Run [Source 3]:\n```sh\nfix it  # [Source 2]\nx = [1]\n```\nThen `y[2]`, [Source 1]."
    assert [one.source for one in citations(text, 3)] == [3, 2, 1]
    found, new = renumbered(text, citations(text, 3))
    assert found == text.replace("[Source 3]", "[Source A]").replace("[Source 1]", "[Source 3]").replace("A", "1")
    assert new == {3: 1, 2: 2, 1: 3}


@pytest.mark.spec("A9")
def test_a_fence_that_is_never_closed_hides_nothing() -> None:
    text = "Run [Source 3]:\n```sh\nfix it\n\nThen restart [Source 1], [2]."
    assert [one.source for one in citations(text, 3)] == [3, 1, 2]


def test_what_nearly_is_a_marker_over_and_over_takes_linear_time() -> None:
    """Each of these took from seconds to minutes when it was quadratic."""
    for text in ("[Source" + " " * 50_000 + "x", "[Source 1," * 20_000, "[Source 1, 1" + ", 1" * 50_000, "`" * 50_000):
        assert len(citations(text, 3)) == 0
