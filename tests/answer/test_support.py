"""Whether the sources say what an answer says (spec A9, `--verify`): values worked by hand, and which sentences count.

By words alone support is the share of a sentence's terms, by idf, in three successive sentences of a source, from 0.4
on; with vectors it is 0.6 of that and 0.4 of the best cosine, from 0.5 on.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt

import pytest
from msgspec.structs import replace

from ragcli.answer.citations import citations
from ragcli.answer.support import FLOOR, FLOOR_OF_TERMS, judged_citations, statements
from ragcli.options import AnalyzerSettings
from ragcli.text import Analyzer
from ragcli.types import Hit, Statement
from tests.answer.lens import FakeLens, hashed
from tests.stages.corpus import chunk, hit

OAKS = "Oaks reach thirty metres. They grow slowly."
ELMS = "Elms die early. A fungus kills them. Beetles carry it."
PAIRS = Analyzer(AnalyzerSettings()).terms


def judged(text: str, *sources: str, lens: FakeLens | None = None) -> tuple[Statement, ...]:
    """The statements of the text against sources of these texts."""
    return of_hits(text, [hit(f"{n}.md", text=source) for n, source in enumerate(sources, 1)], lens)


def of_hits(text: str, hits: Sequence[Hit], lens: FakeLens | None = None) -> tuple[Statement, ...]:
    return statements(text, citations(text, len(hits)), hits, lens or FakeLens())


def one(text: str, *sources: str, lens: FakeLens | None = None) -> Statement:
    (found,) = judged(text, *sources, lens=lens)
    return found


# -------------------------------------------------------------------------------------------------------------- values


@pytest.mark.spec("A9")
@pytest.mark.parametrize(
    ("sentence", "support"),
    [
        ("Oaks reach thirty metres.", 1.0),
        ("Oaks reach forty metres.", 3 / 4),
        ("Pines reach forty metres.", 2 / 4),
        ("Oaks and elms and pines.", 1 / 4),  # "and" is one of four distinct terms
        ("Pines are green.", 0.0),
    ],
)
def test_by_words_alone_support_is_the_share_of_terms(sentence: str, support: float) -> None:
    found = one(f"{sentence} [Source 1]", OAKS)
    assert found.support == pytest.approx(support)
    assert found.supported == (support >= 0.4)
    assert found.supporting == ((1,) if support >= 0.4 else ())
    assert found.by == 1
    assert found.text == sentence


@pytest.mark.spec("A9")
def test_a_term_counts_by_its_idf() -> None:
    texts = ["oaks reach far", "oaks grow", "elms grow", "elms reach far"]
    lens = FakeLens(texts=texts)
    # oaks, far: in 2 of 4, ln(1 + 2.5 / 2.5); fungus: in none, ln(1 + 4.5 / 0.5)
    common, unknown = log(2), log(10)
    found = one("Oaks fungus far.", "Oaks far.", lens=lens)
    assert found.support == pytest.approx(2 * common / (2 * common + unknown))
    assert not found.supported


@pytest.mark.spec("A9")
def test_the_terms_of_three_successive_sentences_count_together_and_those_of_four_do_not() -> None:
    source = "Alpha one. Beta two. Gamma three. Delta four."
    assert one("Alpha beta gamma.", source).support == pytest.approx(1)
    assert one("Beta gamma delta.", source).support == pytest.approx(1)
    assert one("Alpha gamma delta.", source).support == pytest.approx(2 / 3)
    assert one("Alpha beta gamma delta.", source).support == pytest.approx(3 / 4)


@pytest.mark.spec("A9")
def test_with_vectors_it_is_six_tenths_terms_and_four_tenths_the_best_cosine() -> None:
    table = {
        "Oaks reach forty feet.": [1.0, 0.0],
        "Oaks reach thirty metres.": [0.6, 0.8],
        "They grow slowly.": [sqrt(0.75), 0.5],
    }
    lens = FakeLens(embed=table.__getitem__)
    found = one("Oaks reach forty feet.", OAKS, lens=lens)
    assert found.support == pytest.approx(0.6 * 2 / 4 + 0.4 * sqrt(0.75), abs=1e-6)
    assert found.supported


@pytest.mark.spec("A9")
@pytest.mark.parametrize(("cosine", "supported"), [(0.51, True), (0.49, False), (-1.0, False)])
def test_with_vectors_the_floor_is_half(cosine: float, supported: bool) -> None:
    table = {"Oaks reach forty feet.": [1.0, 0.0], "Oaks reach thirty metres.": [cosine, sqrt(1 - cosine**2)]}
    found = one("Oaks reach forty feet.", "Oaks reach thirty metres.", lens=FakeLens(embed=table.__getitem__))
    assert found.support == pytest.approx(0.6 * 0.5 + 0.4 * max(cosine, 0), abs=1e-6)
    assert found.supported == supported
    assert (FLOOR, FLOOR_OF_TERMS) == (0.5, 0.4)


@pytest.mark.spec("A9")
def test_sentences_are_embedded_without_their_markers() -> None:
    lens = FakeLens(embed=hashed)
    assert one("Oaks reach thirty metres [Source 1].", OAKS, lens=lens).support == pytest.approx(1, abs=1e-6)
    assert sorted(text for batch in lens.embedded for text in batch) == [
        "Oaks reach thirty metres.", "Oaks reach thirty metres.", "They grow slowly.",
    ]  # fmt: skip


@pytest.mark.spec("A9", "P9")
def test_of_a_compressed_source_only_what_was_sent_counts() -> None:
    whole = hit("1.md", text=f"{OAKS} {ELMS}")
    short = replace(whole, compressed_text="They grow slowly.")
    assert of_hits("Oaks reach thirty metres.", [whole])[0].supported
    assert not of_hits("Oaks reach thirty metres.", [short])[0].supported


@pytest.mark.spec("A9")
def test_without_sources_nothing_is_supported() -> None:
    found = one("Oaks reach thirty metres.")
    assert (found.supported, found.supporting, found.by, found.support) == (False, (), None, 0.0)


# ------------------------------------------------------------------------------------------------------------- numbers


@pytest.mark.spec("A9")
def test_a_source_that_lacks_a_number_does_not_support_whatever_else_it_holds() -> None:
    source = "In 1987 the old bridge over the river was closed."
    assert one("In 1987 the old bridge was closed [1].", source).supported
    wrong = one("In 1988 the old bridge was closed [1].", source)
    assert wrong.support == pytest.approx(6 / 7)
    assert (wrong.supported, wrong.supporting) == (False, ())
    assert wrong.why == "[Source 1] does not hold 1988"
    assert one("In 1988 the old bridge was closed.", source).why == "no source holds 1988"


@pytest.mark.spec("A9")
def test_a_number_may_stand_anywhere_in_the_source_or_in_what_heads_it() -> None:
    far = "Report of 1987. Trees fell. Rain came. The old bridge over the river was closed."
    assert one("In 1987 the old bridge was closed.", far).supported
    headed = Hit(
        chunk=chunk("1.md", text="The old bridge over the river was closed.", context="Report of 1987"),
        score=1.0,
        score_kind="bm25",
    )
    assert of_hits("In 1987 the old bridge was closed.", [headed])[0].supported


@pytest.mark.spec("A9")
def test_the_number_of_an_item_in_a_list_is_none_of_the_statement() -> None:
    found = judged(
        "Trees:\n\n1. oaks reach thirty metres [1].\n2) Elms die early [2].\n- They grow slowly.", OAKS, ELMS
    )
    assert [(each.text, each.supported) for each in found] == [
        ("oaks reach thirty metres.", True),
        ("Elms die early.", True),
        ("They grow slowly.", True),
    ]


# ----------------------------------------------------------------------------------------------------------- citations


@pytest.mark.spec("A9")
def test_a_sentence_that_cites_the_wrong_source_is_unsupported_and_the_right_one_is_named() -> None:
    text = "Beetles carry the fungus [1]."
    found = one(text, OAKS, ELMS)
    assert (found.cited, found.supporting, found.by, found.supported) == ((1,), (2,), 2, False)
    assert found.why == "[Source 1] does not say so; [Source 2] does"
    (cited,) = judged_citations(citations(text, 2), [found])
    assert (cited.source, cited.supported) == (1, False)


@pytest.mark.spec("A9")
def test_one_of_the_cited_sources_is_enough() -> None:
    text = "Beetles carry the fungus [1][2]."
    found = one(text, OAKS, ELMS)
    assert (found.cited, found.supporting, found.supported, found.why) == ((1, 2), (2,), True, "")
    assert [each.supported for each in judged_citations(citations(text, 2), [found])] == [False, True]


@pytest.mark.spec("A9")
def test_a_sentence_that_cites_none_is_held_against_all() -> None:
    assert one("Beetles carry the fungus.", OAKS, ELMS).supporting == (2,)
    assert one("Beetles carry the fungus.", OAKS, ELMS).supported
    lone = one("Pines are evergreen trees.", OAKS, ELMS)
    assert (lone.supported, lone.supporting, lone.why) == (False, (), "none of the 2 sources says so")


@pytest.mark.spec("A9")
def test_where_two_sources_say_so_both_support_and_the_nearer_one_is_named() -> None:
    found = one("Oaks reach thirty metres.", "Oaks reach thirty feet.", OAKS)
    assert found.supporting == (1, 2)
    assert found.by == 2
    assert found.support == pytest.approx(1)


@pytest.mark.spec("A9")
def test_a_citation_that_is_not_valid_or_belongs_to_no_statement_is_not_judged() -> None:
    text = "Trees [1]:\n\nOaks reach thirty metres [9]."
    found = citations(text, 1)
    assert [each.supported for each in judged_citations(found, judged(text, OAKS))] == [None, None]


# -------------------------------------------------------------------------------------------------- where markers stand


@pytest.mark.spec("A9")
@pytest.mark.parametrize(
    "text",
    [
        "Oaks reach thirty metres [1]. Elms die early [2].",
        "Oaks reach thirty metres. [1] Elms die early. [2]",
        "Oaks reach thirty metres.[1] Elms die early.[2]",
        "Oaks reach thirty metres.[Source 1] Elms die early.[Source 2]",
        "Oaks reach thirty metres. [1]\nElms die early. [2]",
        "Oaks reach thirty metres [1].\nElms die early [2].",
        "Oaks reach thirty metres.\n[1]\nElms die early.\n[2]",
        "Oaks reach thirty metres.\n\n[1]\n\nElms die early.\n\n[2]",
        "Oaks reach thirty metres.\r\n[1]\r\nElms die early.\r\n[2]",
        "Oaks reach thirty metres. ([Source 1])\n\nElms die early. ([Source 2])",
        "Oaks reach thirty metres. [1]\n[2] Elms die early.",
        "Oaks reach thirty metres.[1]\n\n[2] Elms die early.",
        "- Oaks reach thirty metres [1]\n- Elms die early [2]",
        "* Oaks reach thirty metres. [1]\n* Elms die early. [2]",
        "# Trees\nOaks reach thirty metres 【1】. Elms die early (Source 2).",
    ],
)
def test_a_marker_belongs_to_the_sentence_that_it_ends(text: str) -> None:
    found = judged(text, OAKS, ELMS)
    assert [each.cited for each in found] == [(1,), (2,)]
    assert [each.supported for each in found] == [True, True]
    assert [each.text.rstrip(" .()") for each in found] == ["Oaks reach thirty metres", "Elms die early"]


@pytest.mark.spec("A9")
def test_spans_are_those_of_the_answer() -> None:
    text = "Oaks reach thirty metres. [1] Elms die early [2]."
    assert [text[each.start : each.end] for each in judged(text, OAKS, ELMS)] == [
        "Oaks reach thirty metres. [1]",
        "Elms die early [2].",
    ]


# ----------------------------------------------------------------------------------------------------- what is no claim


@pytest.mark.spec("A9")
@pytest.mark.parametrize(
    "text",
    [
        "There are three kinds of these trees:",
        "# All about the trees",
        "Shall I go on with elms?",
        "The sources do not say how old they grow.",
        "The provided context doesn’t mention their age.",
        "The documents don't say so.",
        "There is no information on pines in the documents.",
        "None of the passages gives their age.",
        "I do not know how old they grow.",
        "I don't know how old they grow.",
        "I'm sorry, I can’t answer that question.",
        "Sorry, that I cannot tell you.",
        "Yes, indeed.",
        "[Source 1]",
        "",
    ],
)
def test_leads_headings_questions_and_refusals_are_no_statements(text: str) -> None:
    assert judged(text, OAKS) == ()


@pytest.mark.spec("A9")
@pytest.mark.parametrize("text", ["Oaks do not reach thirty metres.", "Iron is heavier than water."])
def test_what_is_said_of_the_world_is_a_statement(text: str) -> None:
    assert len(judged(text, OAKS)) == 1


@pytest.mark.spec("A9")
def test_nothing_is_embedded_where_nothing_is_stated() -> None:
    lens = FakeLens(embed=hashed)
    assert judged("The sources do not say.", OAKS, lens=lens) == ()
    assert lens.embedded == []


# ----------------------------------------------------------------------------------------------------- other languages


@pytest.mark.spec("A9")
def test_german() -> None:
    source = "Eichen werden bis zu dreißig Meter hoch. Sie wachsen langsam."
    found = judged("Eichen werden dreißig Meter hoch [1]. Ulmen sterben früh an einem Pilz [1].", source)
    assert [(each.support, each.supported) for each in found] == [(pytest.approx(1), True), (0.0, False)]
    assert found[1].why == "[Source 1] does not say so"


@pytest.mark.spec("A9")
def test_chinese() -> None:
    source = "橡树可以长到三十米高。它们长得很慢。"
    text = "橡树可以长到三十米[1]。榆树因真菌而早死。[1]它们长得很慢。"
    found = judged(text, source, lens=FakeLens(terms=PAIRS))
    assert [(each.cited, each.supported) for each in found] == [((1,), True), ((1,), False), ((), True)]
    # 橡树 树可 可以 以长 长到 到三 三十 十米, all of them there; 榆树 树因 … none
    assert [each.support for each in found] == [pytest.approx(1), 0.0, pytest.approx(1)]
