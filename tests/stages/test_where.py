"""The language of `--where`, and the stage."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.errors import ExpressionError
from ragcli.stages.where import DocumentId, HasTag, MinScore, Predicate, Where, parse
from ragcli.types import Chunk, Drop, Hit, Metadata, Ranking
from tests.stages.corpus import FakeCorpus


def hit(score: float = 0.5, document_id: str = "docs/a.md", metadata: Metadata | None = None, **more: Any) -> Hit:
    chunk = Chunk(
        document_id=document_id, index=0, start=0, end=1, text="x", start_line=1, end_line=1, metadata=metadata or {}
    )
    return Hit(chunk=msgspec.structs.replace(chunk, **more), score=score, score_kind="bm25")


TAGS: Metadata = {
    "lang": "de", "year": 2024, "ratio": 1.0, "draft": False, "done": True, "since": date(2024, 5, 1),
    "at": datetime(2024, 5, 1, 10, tzinfo=UTC), "authors": ("Ann", "Bob"), "none": None, "odd key": "x",
    "x-y": 1, "class": "A",
}  # fmt: skip
HIT = hit(0.5, metadata=TAGS, path="/home/d/a.md", title="A draft", heading="Setup", page=3, index=7)


@pytest.mark.spec("R10")
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("score >= 0.5", True), ("score > 0.5", False), ("0.2 < score <= 0.5", True), ("0.2 < score < 0.5", False),
        ("score > .4 and score < 1e0", True), ("score == 0.5", True), ("score != 0.5", False), ("score > -1", True),
        ('document_id == "docs/a.md"', True), ("path == '/home/d/a.md'", True), ("page == 3", True),
        ("chunk_index == 7", True), ('heading in ["Setup", "Install"]', True), ('heading not in ["Install",]', True),
        ('"draft" in title', True), ('"draft" not in title', False), ('title in "A draft of"', True),
        ('tag.lang == "de"', True), ('metadata.lang == "de"', True), ('tag["odd key"] == "x"', True),
        ("tag.x-y == 1", True), ('tag.class == "A"', True), ("tag.year in [2023, 2024]", True),
        ("tag.year == 2024.0", True), ("tag.ratio == 1", True), ("tag.done == true", True),
        ("tag.draft == false", True),
        ('tag.since == date("2024-05-01")', True), ('tag.since < date("2024-05-01T10:00:00Z")', True),
        ('tag.at >= date("2024-05-01")', True), ('tag.at == date("2024-05-01T12:00:00+02:00")', True),
        ("tag.done", True), ("tag.draft", False), ("tag.nope", False), ("not tag.nope", True), ("title", True),
        ("true or nope_is_never_read", None),
        ("false or true and false", False), ("true or true and false", True), ("(true or true) and false", False),
        ("not false and false", False), ("not (false and false)", True), ("not not true", True),
        ("(score) > 0.4", True), ("1 < 2 < 3", True), ('"it\\"s" == "it\\"s"', True),
    ],
)  # fmt: skip
def test_what_expressions_mean(expression: str, expected: bool | None) -> None:
    if expected is None:
        with pytest.raises(ExpressionError):
            parse(expression)
    else:
        assert parse(expression).holds(HIT) is expected


@pytest.mark.spec("R10", "I10")
@pytest.mark.parametrize("sign", ["==", "!=", "<", "<=", ">", ">="])
@pytest.mark.parametrize(
    "pair",
    ['tag.year {} "2024"', "tag.lang {} 3", "tag.done {} 1", 'tag.since {} "2024-05-01"', "tag.nope {} 1",
     "page {} tag.nope", "tag.none {} 0", "null {} tag.lang < 3"],
)  # fmt: skip
def test_another_kind_or_nothing_compares_to_false(pair: str, sign: str) -> None:
    assert parse(pair.format(sign)).holds(HIT) is False


@pytest.mark.spec("R10")
@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("tag.nope == null", True), ("tag.nope != null", False), ("tag.none == null", True), ("null != tag.lang", True),
        ("tag.lang == null", False), ("null == null", True), ("tag.nope in [1]", False), ("tag.nope not in [1]", False),
        ('tag.nope in "text"', False), ('tag.nope not in "text"', False), ('"x" in tag.nope', False),
        ('"x" not in tag.nope', False), ("not tag.nope == 1", True), ('tag.year in ["2024"]', False),
        ('tag.year not in ["2024"]', True), ('tag.year in "2024"', False), ('tag.year not in "2024"', False),
        ('tag.authors == "Ann"', True), ('tag.authors == "Cyd"', False), ('tag.authors != "Ann"', False),
        ('tag.authors != "Cyd"', True), ('"Bob" in tag.authors', True), ('"Bo" in tag.authors', False),
        ('"Cyd" not in tag.authors', True), ('tag.authors in ["Ann"]', True), ('tag.authors not in ["Ann"]', False),
        ("tag.authors == 3", False), ('tag.authors > "Az"', True),
    ],
)  # fmt: skip
def test_missing_tags_and_lists(expression: str, expected: bool) -> None:
    assert parse(expression).holds(HIT) is expected


@pytest.mark.spec("R10")
@pytest.mark.parametrize(
    ("expression", "column", "words"),
    [
        ("", 1, "a field or a value is expected, not the end"),
        ("score >", 8, "a field or a value is expected, not the end"),
        ("score = 3", 7, "'=' means nothing here"),
        ("scor > 1", 1, "no field scor; did you mean score?"),
        ('lang == "de"', 1, "no field lang; a tag is written tag.lang"),
        ("score > 1 page", 11, "'page' is not expected here"),
        ("(score > 1", 11, "')' is missing before the end"),
        ('title == "abc', 10, "this quote is never closed"),
        ("tag.", 5, "the tag's key is expected"),
        ('tag[""] == 1', 5, "a tag's key can't be empty"),
        ("[1] == page", 1, "a list stands only after in"),
        ("page == [1]", 9, "a list stands only after in"),
        ("page in 5", 9, "nothing is in 5"),
        ("page in [1, null]", 13, "null can't be in a list"),
        ("page in [score]", 10, "a field or a value is expected, not 'score'"),
        ('tag.x == date("2024-13-01")', 15, "no such date"),
        ("tag.x == date(3)", 15, "no such date"),
        ("(score > 1) > 2", 1, "a condition can't be compared"),
        ("1 < (score > 1)", 5, "a condition can't be compared"),
        ("score > 1 and", 14, "a field or a value is expected"),
        ("not", 4, "a field or a value is expected"),
        ("__import__('os')", 1, "no field __import__"),
        ("score.real > 1", 6, "'.' is not expected here"),
        ("(" * 60 + "1", 42, "nested deeper than 40"),
        ("not " * 60 + "true", 165, "nested deeper than 40"),
    ],
)
def test_errors_point_at_the_column(expression: str, column: int, words: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        parse(expression)
    assert caught.value.message.startswith(f"where, column {column}: {words}")
    assert caught.value.exit_code == 2
    with pytest.raises(ExpressionError):
        Where(expression or "(")


def test_an_endless_expression_is_refused() -> None:
    with pytest.raises(ExpressionError, match="longer than"):
        parse("true or " * 2000 + "true")
    assert parse("false or " * 1000 + "true").holds(HIT)


@pytest.mark.spec("R10")
@settings(max_examples=150)
@given(
    st.one_of(
        st.text(max_size=40),
        st.lists(
            st.sampled_from(
                ["score", "tag", ".", "lang", "[", "]", "(", ")", "and", "or", "not", "in", "==", "<", "1", '"a"', ",",
                 "date", "null", "true", "'", "-", "\\"]
            ),
            max_size=12,
        ).map(" ".join),
    )
)  # fmt: skip
def test_any_text_is_a_condition_or_a_clear_error(text: str) -> None:
    try:
        predicate = parse(text)
    except ExpressionError:
        return
    if not predicate.holds(HIT):
        assert predicate.why(HIT)
    assert parse(str(predicate)).holds(HIT) == predicate.holds(HIT)


NUMBERS = st.one_of(st.sampled_from(["score", "page", "chunk_index", "year"]), st.integers(0, 4).map(str))
TEXTS = st.one_of(st.sampled_from(["title", "heading", "document_id"]), st.sampled_from(["''", "'a'", "'ab'", "'b'"]))
SIGNS = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])


def joined(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*parts).map(" ".join)


LISTS = st.lists(st.sampled_from(["'a'", "'ab'", "1", "2"]), max_size=3).map(lambda parts: f"[{', '.join(parts)}]")
COMPARISONS = st.one_of(
    joined(NUMBERS, SIGNS, NUMBERS),
    joined(NUMBERS, SIGNS, NUMBERS, SIGNS, NUMBERS),
    joined(TEXTS, SIGNS, TEXTS),
    joined(TEXTS, st.sampled_from(["in", "not in"]), TEXTS),
    joined(st.one_of(TEXTS, NUMBERS), st.sampled_from(["in", "not in"]), LISTS),
    st.sampled_from(["title", "page", "year"]),
)
EXPRESSIONS = st.recursive(
    COMPARISONS,
    lambda inner: st.one_of(
        joined(inner, st.sampled_from(["and", "or"]), inner),
        inner.map(lambda part: f"not {part}"),
        inner.map(lambda part: f"({part})"),
    ),
    max_leaves=6,
)
VALUES = st.fixed_dictionaries(
    {
        "score": st.sampled_from([0.0, 0.5, 1.0, 2.5]),
        "page": st.integers(0, 4),
        "chunk_index": st.integers(0, 4),
        "year": st.integers(0, 4),
        "title": st.sampled_from(["", "a", "ab"]),
        "heading": st.sampled_from(["", "b", "ab"]),
        "document_id": st.sampled_from(["a", "abc"]),
    }
)


@pytest.mark.spec("R10")
@settings(max_examples=150)
@given(EXPRESSIONS, VALUES)
def test_of_one_kind_it_means_what_python_means(expression: str, values: dict[str, Any]) -> None:
    chunk = {key: values[key] for key in ("page", "title", "heading")}
    one = hit(values["score"], values["document_id"], {"year": values["year"]}, index=values["chunk_index"], **chunk)
    predicate = parse(expression.replace("year", "tag.year"))
    assert predicate.holds(one) is bool(eval(expression, {"__builtins__": {}}, values))
    assert parse(str(predicate)) == predicate or parse(str(predicate)).holds(one) == predicate.holds(one)


# --- from Python


@pytest.mark.spec("R10")
def test_predicates_compose() -> None:
    german, high = HasTag("lang", "de"), MinScore(0.5)
    assert (high & german).holds(HIT)
    assert not (high & ~german).holds(HIT)
    assert (~high | german).holds(HIT)
    assert not (~(high | german)).holds(HIT)
    assert DocumentId("docs/a.md").holds(HIT)
    assert not DocumentId("a.md").holds(HIT)
    assert HasTag("authors", "Bob").holds(HIT)
    assert not HasTag("year", "2024").holds(HIT)
    assert not HasTag("path", "*").holds(HIT)


@pytest.mark.spec("R10")
@pytest.mark.parametrize(
    "predicate",
    [
        MinScore(0.25),
        HasTag("odd key", "x"),
        HasTag("since", date(2024, 5, 1)),
        DocumentId('a "quoted" \\ name'),
        ~(MinScore(0.9) & HasTag("lang", "de")) | DocumentId("b"),
        (MinScore(0.9) | HasTag("done", True)) & ~HasTag("year", 2024),
    ],
)
def test_a_predicate_reads_as_the_expression_that_means_it(predicate: Predicate) -> None:
    assert parse(str(predicate)).holds(HIT) == predicate.holds(HIT)


# --- the stage


def run(stage: Where, ranking: Ranking) -> Ranking:
    return stage("query", ranking, FakeCorpus())


@pytest.mark.spec("R10")
@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ('score > 0.1 and tag.lang == "en"', 'tag.lang == "en": tag.lang is "de" (text)'),
        ('tag.year == "2024"', 'tag.year == "2024": tag.year is 2024 (number); write tag.year == 2024'),
        ("tag.nope > 3", "tag.nope > 3: there is no tag.nope"),
        ("not page == 3", "not page == 3: page is 3 (number)"),
        ("score > 0.9 or page > 9", "score > 0.9: score is 0.5 (number); page > 9: page is 3 (number)"),
        (MinScore(0.9), "score >= 0.9: score is 0.5 (number)"),
        ('tag.authors == "Cyd"', 'tag.authors == "Cyd": tag.authors is ["Ann", "Bob"] (a list)'),
        ("1 > 2", "1 > 2: it is never so"),
    ],
)
def test_a_drop_names_the_part_that_failed_and_the_value(condition: str | Predicate, reason: str) -> None:
    assert run(Where(condition), Ranking((HIT,))) == Ranking((), (Drop(HIT, "where", reason),))


def test_no_condition_keeps_all() -> None:
    assert run(Where(), Ranking((HIT, HIT))) == Ranking((HIT, HIT))
    assert run(Where("  "), Ranking((HIT,))) == Ranking((HIT,))


TAG_VALUES = st.one_of(st.none(), st.text(max_size=2), st.dates(), st.integers())
HITS = st.lists(
    st.builds(
        hit,
        st.floats(allow_nan=False, allow_infinity=False),
        st.uuids().map(str),
        st.dictionaries(st.sampled_from(["lang", "year"]), TAG_VALUES),
    ),
    max_size=6,
).map(tuple)  # fmt: skip


@pytest.mark.spec("R10")
@settings(max_examples=60)
@given(
    HITS, st.sampled_from(["score > 0", "not tag.lang", 'tag.year >= 3 or tag.lang == "a"', "tag.year == null", "true"])
)
def test_every_hit_is_kept_in_order_or_dropped_once(hits: tuple[Hit, ...], condition: str) -> None:
    earlier = Drop(hit(document_id="earlier"), "other", "earlier")
    ranking = Ranking(hits, (earlier,))
    before = msgspec.structs.asdict(ranking)
    stage = Where(condition)
    result = run(stage, ranking)
    assert result.dropped[0] == earlier
    dropped = [drop.hit for drop in result.dropped[1:]]
    assert [one for one in hits if one in result.hits] == list(result.hits)
    assert [one for one in hits if one in dropped] == dropped
    assert len(result.hits) + len(dropped) == len(hits)
    assert all(drop.reason and drop.stage == "where" for drop in result.dropped[1:])
    assert msgspec.structs.asdict(ranking) == before
    assert run(stage, ranking) == result
    assert run(stage, Ranking()) == Ranking()


@pytest.mark.spec("R10")
@pytest.mark.parametrize(
    ("condition", "instead"),
    [
        ("2024 < tag.lang", '"2024" < tag.lang'),
        ("tag.lang == true", 'tag.lang == "true"'),
        ('tag.year in ["2024", "x"]', "tag.year in [2024, 3]"),
        ('tag.year != "2023"', "tag.year != 2023"),
        ("tag.authors == 3", 'tag.authors == "3"'),
    ],
)
def test_where_kinds_differ_the_reason_says_what_to_write(condition: str, instead: str) -> None:
    (drop,) = run(Where(condition), Ranking((HIT,))).dropped
    assert drop.reason.endswith(f"; write {instead}")
    parse(instead)


@pytest.mark.spec("R10")
@pytest.mark.parametrize("condition", ["2024 in tag.nope", 'tag.year in "2024"', "tag.year == 2023", "title == 3"])
def test_where_nothing_else_can_be_written_nothing_is_said(condition: str) -> None:
    (drop,) = run(Where(condition), Ranking((HIT,))).dropped
    assert "write" not in drop.reason


@pytest.mark.spec("R10")
@pytest.mark.parametrize(
    "condition", ["score > 1e999", "score > " + "9" * 5000, "x" * 5000, "score " + "x" * 5000, "1 in " + "9" * 300]
)
def test_a_huge_part_of_an_expression_is_a_short_error(condition: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        Where(condition)
    assert len(caught.value.message) < 300
