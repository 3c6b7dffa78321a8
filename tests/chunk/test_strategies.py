"""What each strategy prefers (spec I20), on texts whose chunks are worked out by hand."""

from __future__ import annotations

from typing import Any

import pytest

from ragcli.chunk.code import Code
from ragcli.chunk.fixed import Fixed
from ragcli.chunk.markdown import Markdown
from ragcli.chunk.measure import TokenizerSource
from ragcli.chunk.recursive import Recursive
from ragcli.chunk.sentence import Sentence
from ragcli.chunk.token import Token
from ragcli.errors import UsageError
from ragcli.types import Document
from tests.chunk.strategies import CHARACTER_STRATEGIES, document

pytestmark = pytest.mark.spec("I20")


def cut(strategy: Any, text: str, *, name: str = "") -> list[str]:
    return [text[a:b] for a, b in strategy(document(text, name=name))]


def test_fixed_is_windows() -> None:
    assert cut(Fixed(4, 1), "abcdefghij") == ["abcd", "defg", "ghij"]
    assert cut(Fixed(4, 0), "abcdefghij") == ["abcd", "efgh", "ij"]
    assert cut(Fixed(4, 3), "abcdef") == ["abcd", "bcde", "cdef"]


def test_recursive_prefers_the_paragraph_then_the_line_then_the_sentence_then_the_word() -> None:
    assert cut(Recursive(20, 0), "aaa bbb.\nccc\n\nddd eee fff ggg") == ["aaa bbb.\nccc", "ddd eee fff ggg"]
    assert cut(Recursive(20, 0), "aaa bbb. Ccc\nddd eee fff ggg") == ["aaa bbb. Ccc", "ddd eee fff ggg"]
    assert cut(Recursive(20, 0), "aaa bbb cccc. Ddd eee fff") == ["aaa bbb cccc.", "Ddd eee fff"]
    assert cut(Recursive(20, 0), "aaa bbb ccc ddd eee fff") == ["aaa bbb ccc ddd eee", "fff"]
    assert cut(Recursive(10, 0), "abcdefghijklmno") == ["abcdefghij", "klmno"]


def test_a_word_that_ends_where_the_chunk_is_full_stays_whole() -> None:
    assert cut(Recursive(7, 0), "aaa bbb ccc ddd") == ["aaa bbb", "ccc ddd"]


def test_overlap_starts_with_a_word_and_with_a_sentence_where_there_is_one() -> None:
    # 12 characters back from the end of "dddd" lies inside "bbbb": the first whole word after it is "cccc"
    assert cut(Recursive(20, 12), "aaaa bbbb cccc dddd eeee ffff")[:2] == ["aaaa bbbb cccc dddd", "cccc dddd eeee ffff"]
    text = "Aaaaaaaaaaaaaaaaaa b. Ccc dd ee ff. Gggg hhhh iiii jjjj."
    first, second = cut(Recursive(36, 16), text)
    assert first == "Aaaaaaaaaaaaaaaaaa b. Ccc dd ee ff."
    assert second == "Ccc dd ee ff. Gggg hhhh iiii jjjj."


def test_ideographs_overlap_by_characters() -> None:
    assert cut(Recursive(6, 2), "人工智能是未来的技术") == ["人工智能是未", "是未来的技术"]


def test_sentence_packs_whole_sentences() -> None:
    text = "One is here. Two follows it! Is three next? Yes."
    assert cut(Sentence(30, 0), text) == ["One is here. Two follows it!", "Is three next? Yes."]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("我们走。你呢？好！", ["我们走。", "你呢？", "好！"]),
        ("वह घर गया। मैं आया।", ["वह घर गया।", "मैं आया।"]),
        ("He met J. Smith today. They spoke.", ["He met J. Smith today.", "They spoke."]),
        ("It is e.g. this one. Then that.", ["It is e.g. this one.", "Then that."]),
        ("Pi is 3.14 or so. Good.", ["Pi is 3.14 or so.", "Good."]),
        ("“Stop!” he said. “Why?” She left.", ["“Stop!” he said.", "“Why?”", "She left."]),
        ("A title\n\nThe text.", ["A title", "The text."]),
    ],
)
def test_where_a_sentence_ends(text: str, sentences: list[str]) -> None:
    """A size that no two sentences share shows each by itself."""
    size = max(len(sentence) for sentence in sentences)
    found = cut(Sentence(size, 0), text)
    assert [piece for piece in found if piece not in " ".join(sentences)] == []
    assert found[0] == sentences[0]
    assert all(piece[-1] in "。？！।.”!?e" for piece in found)


def test_sentence_overlap_is_whole_sentences_or_none() -> None:
    text = "Aaa bb. Ccc dd. Eee ff. Ggg hh."
    assert cut(Sentence(15, 7), text) == ["Aaa bb. Ccc dd.", "Ccc dd. Eee ff.", "Eee ff. Ggg hh."]
    assert cut(Sentence(15, 6), text) == ["Aaa bb. Ccc dd.", "Eee ff. Ggg hh."]


def test_markdown_never_crosses_a_heading() -> None:
    text = "# One\n\n" + "alpha " * 10 + "\n\n# Two\n\n" + "beta " * 12
    found = cut(Markdown(100, 0), text)
    assert [piece.split("\n")[0] for piece in found] == ["# One", "# Two"]


def test_markdown_merges_a_section_under_a_quarter_with_the_next_while_the_sum_fits() -> None:
    small, large = "# A\n\nsmall", "# B\n\n" + "x" * 60
    assert cut(Markdown(100, 0), f"{small}\n\n{large}") == [f"{small}\n\n{large}"]
    assert cut(Markdown(66, 0), f"{small}\n\n{large}") == [small, large]  # together 10 + 2 + 65 characters
    assert cut(Markdown(36, 0), f"{small}\n\n# B\n\nmiddle one") == [small, "# B\n\nmiddle one"]  # 10 > 36 / 4


def test_markdown_keeps_the_text_before_the_first_heading() -> None:
    text = "y" * 50 + "\n\n# A\n\n" + "x" * 50
    assert cut(Markdown(60, 0), text) == ["y" * 50, "# A\n\n" + "x" * 50]


PYTHON = '''"""Doc."""

import os


# says what f is
@decorated
def f():
    return """
def not_a_definition(): pass
"""


class C:
    def one(self):
        return 1

    def two(self):
        return 2
'''


def test_code_cuts_python_between_definitions() -> None:
    found = cut(Code(100, 20), PYTHON, name="m.py")
    assert [piece.split("\n")[0] for piece in found] == ['"""Doc."""', "# says what f is", "class C:"]
    assert found[1].endswith('pass\n"""')


def test_code_cuts_a_large_definition_at_its_least_indented_line() -> None:
    found = cut(Code(60, 0), PYTHON, name="m.py")
    assert found[-2:] == ["class C:\n    def one(self):\n        return 1", "    def two(self):\n        return 2"]


@pytest.mark.parametrize(
    ("name", "text", "starts"),
    [
        (
            "a.c",
            "#include <a.h>\n\n// adds\nint add(int a, int b)\n{\n    return a + b;\n}\n\n"
            "int sub(int a)\n{\n    return a;\n}\n",
            ["#include", "// adds", "int sub"],
        ),
        (
            "a.go",
            "func A() {\n\tx()\n}\n\nfunc B() {\n\ty()\n\tz()\n\tw()\n\tv()\n\tu()\n\tt()\n}\n",
            ["func A", "func B"],
        ),
        ("a.rb", "def a\n  1\nend\n\ndef b\n  2222222222\n  333333333333\n  4444\nend\n", ["def a", "def b"]),
        ("broken.py", "def a(:\n    1\n\ndef b():\n    2222222222\n    333333333333\n    4\n", ["def a", "def b"]),
    ],
)
def test_code_of_other_languages_is_cut_at_the_first_column(name: str, text: str, starts: list[str]) -> None:
    found = cut(Code(54, 10), text, name=name)
    assert len(found) == len(starts)
    assert all(piece.startswith(start) for piece, start in zip(found, starts, strict=True))


def test_code_falls_back_to_lines() -> None:
    text = "\n".join(f"    value_{i}" for i in range(8))
    assert cut(Code(36, 0), text) == [f"    value_{i}\n    value_{i + 1}" for i in (0, 2, 4, 6)]


def test_token_windows_are_full(tokenizer: TokenizerSource) -> None:
    text = "one two three four five six seven eight nine ten"  # a token a word
    found = cut(Token(4, 1, "tokens", tokenizer), text)
    assert found == ["one two three four", "four five six seven", "seven eight nine ten"]
    assert cut(Token(4, 1, "characters", tokenizer), text) == found


@pytest.mark.parametrize("strategy", CHARACTER_STRATEGIES)
def test_unit_tokens_measures_in_tokens(strategy: Any, tokenizer: TokenizerSource) -> None:
    text = "one two three four five six seven eight nine ten"
    found = cut(strategy(5, 0, "tokens", tokenizer), text)
    assert found == ["one two three four five", "six seven eight nine ten"]


def test_counting_tokens_without_a_tokenizer_is_an_error() -> None:
    with pytest.raises(UsageError, match="needs a tokenizer"):
        Recursive(10, 0, "tokens")(Document(id="d", text="x"))


def test_characters_never_ask_for_the_tokenizer() -> None:
    def none() -> Any:
        raise AssertionError

    assert Recursive(10, 0, "characters", none)(Document(id="d", text="x")) == [(0, 1)]
