from __future__ import annotations

import datetime as dt
from datetime import UTC

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.read.markdown import headings_of, plain
from ragcli.types import Heading
from tests.read.sources import one

PAGE = b"""---
title: The tide gauge
tags: [water, level]
draft: false
version: 3
weight: 1.5
release: 2024-05-01
edited: 2024-05-02T10:30:00+02:00
author:
  name: Ada
  age: 36
nothing: null
---

# Set-up

Text.
"""


@pytest.mark.spec("I10", "I11")
def test_front_matter_keeps_the_kind_of_each_value() -> None:
    document = one("a.md", PAGE)
    assert document.metadata == {
        "title": "The tide gauge",
        "tags": ("water", "level"),
        "draft": False,
        "version": 3,
        "weight": 1.5,
        "release": dt.date(2024, 5, 1),
        "edited": dt.datetime(2024, 5, 2, 10, 30, tzinfo=dt.timezone(dt.timedelta(hours=2))),
        "author.name": "Ada",
        "author.age": 36,
        "nothing": None,
    }
    assert document.metadata["draft"] is False
    assert type(document.metadata["version"]) is int


@pytest.mark.spec("I4", "I15")
def test_the_text_starts_below_the_front_matter_on_its_source_line() -> None:
    document = one("notes/a.md", PAGE)
    assert (document.id, document.name, document.format) == ("notes/a.md", "a.md", "markdown")
    assert document.title == "The tide gauge"
    assert document.text == "\n# Set-up\n\nText.\n"
    assert document.first_line == 14
    assert PAGE.decode().split("\n")[document.first_line - 1 :] == document.text.split("\n")


@pytest.mark.spec("I14")
def test_times_come_from_the_front_matter_and_nowhere_else() -> None:
    document = one("a.md", b"---\nDate: 2024-05-01\nlastmod: 2024-05-02T10:30:00+02:00\n---\nx\n")
    assert document.created_at == "2024-05-01T00:00:00Z"
    assert document.updated_at == dt.datetime(2024, 5, 2, 8, 30, tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    plain_page = one("a.md", b"---\ndate: some day\n---\n2024-05-01\n")
    assert (plain_page.created_at, plain_page.updated_at) == (None, None)


@pytest.mark.parametrize(
    "text",
    [
        "---\ntitle: [unclosed\n---\n# Body\n",
        "---\na: &a [x]\nb: [*a, *a]\n---\n# Body\n",
        "---\n" + "- " * 40 + "x\n---\n# Body\n",
        "---\n" + "[" * 40 + "]" * 40 + "\n---\n# Body\n",
        "---\ntitle: t\nx: " + "y" * 65_536 + "\n---\n# Body\n",
        "---\nd: 2024-99-99\n---\n# Body\n",
    ],
)
@pytest.mark.spec("I5", "I38")
def test_front_matter_that_cannot_be_used_stays_in_the_text_with_a_warning(text: str) -> None:
    document = one("a.md", text.encode())
    assert document.text == text
    assert document.first_line == 1
    assert document.metadata == {}
    assert len(document.warnings) == 1
    assert "front matter not used" in document.warnings[0]


@pytest.mark.parametrize("text", ["---\nprose between two rules\n---\nx\n", "---\n\nno second rule\n", "--- a\n---\nx"])
def test_rules_around_prose_are_no_front_matter(text: str) -> None:
    document = one("a.md", text.encode())
    assert (document.text, document.warnings) == (text, ())


@pytest.mark.spec("I12")
def test_headings_of_commonmark() -> None:
    text = (
        "# One #\n\nTwo\nlines\n===\n\n- item\n---\n\n```sh\n# no heading\n```\n~~~~\n# no\n~~~\n# no\n~~~~\n"
        "## [b *c*](d) `e`\r\n   ### snake_case __q__ {#id}\n\n    # code\n#nospace\n#\nfoo\n---\n"
        "> quote\n---\n# C# and F#\n"
    )
    expected = [
        (1, "One", "# One"),
        (1, "Two lines", "Two\nlines"),
        (2, "b c e", "## [b"),
        (3, "snake_case q", "   ### snake"),
        (2, "foo", "foo\n---"),
        (1, "C# and F#", "# C#"),
    ]
    headings = headings_of(text)
    assert [(heading.level, heading.title) for heading in headings] == [(level, title) for level, title, _ in expected]
    for heading, (_, _, at) in zip(headings, expected, strict=True):
        assert text.startswith(at, heading.start)


WORDS = st.text("abc XYZ 123 é故", min_size=1, max_size=20).map(str.strip).filter(bool)
BLOCKS = st.one_of(
    st.tuples(st.just("atx"), st.integers(1, 6), WORDS),
    st.tuples(st.just("setext"), st.integers(1, 2), WORDS),
    st.tuples(st.just("fence"), st.just(0), WORDS),
    st.tuples(st.just("prose"), st.just(0), WORDS),
)


@pytest.mark.spec("I12")
@settings(max_examples=100, deadline=None)
@given(st.lists(BLOCKS, max_size=8), st.sampled_from(["\n", "\r\n"]))
def test_headings_point_at_their_words(blocks: list[tuple[str, int, str]], newline: str) -> None:
    text, expected = "", []
    for kind, level, words in blocks:
        if kind in {"atx", "setext"}:
            expected.append(Heading(len(text), level, " ".join(words.split()) if kind == "setext" else words))
        forms = {"atx": f"{'#' * level} {words}", "fence": f"```\n# {words}\n```", "prose": words}
        text += (forms.get(kind) or f"{words}\n{'=-'[level - 1] * 3}").replace("\n", newline) + newline * 2
    assert list(headings_of(text)) == expected


def test_a_long_line_costs_linear_time() -> None:
    for hostile in ("[" * 60_000, "*a " * 20_000, "{#" * 30_000, "<" * 60_000):
        assert plain(hostile) == hostile.strip()
