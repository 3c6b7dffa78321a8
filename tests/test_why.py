"""Why an answer fails: the cause is the right one of three on a hundred questions whose cause is known by the way they
were made, and what is told to help does help (spec A10)."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from ragcli.errors import UsageError
from ragcli.options import (
    AnswerSettings,
    ChatSettings,
    ChunkingSettings,
    Condition,
    EmbeddingSettings,
    Mode,
    ModelsSettings,
    ParentsSettings,
    RerankSettings,
    RetrievalOptions,
    Settings,
)
from ragcli.pipeline import Pipeline
from ragcli.text import matching
from ragcli.why import Why, why
from tests import indexes
from tests.reference import dense
from tests.services import DIMENSION, EmbeddingService, unit, vector_of
from tests.streams import CUT, ChatServer, Script, delta, event, spoken
from tests.why_corpus import NAMES, SMALL, answer, files, lock, note, question, staged_files, warden

OPTIONS = RetrievalOptions(mode="keyword")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = indexes.write(tmp_path_factory.mktemp("why"), files())
    indexes.take_in(indexes.index_of(folder), folder / "notes", folder / "filler")
    return indexes.index_of(folder)


def asked(
    index: Path, text: str, expect: str = "", options: RetrievalOptions = OPTIONS, settings: Settings | None = None
) -> Why:
    with Pipeline.open(index, settings or indexes.keywords(), explicit=()) as pipeline:
        return why(pipeline, text, expect, options)


def served(server: ChatServer, **sections: Any) -> Settings:
    """Settings by which the scripted service answers."""
    return indexes.keywords(chat=ChatSettings(model="toy", base_url=server.url, retries=0), **sections)


NOT_WANTED: dict[str, dict[str, Any]] = {  # what is told, and what it means
    "no --filter": {"metadata_filter": ()},
    "no --where": {"where": ""},
    "no --per-document": {"per_document": None},
    "no --max-context-tokens": {"max_context_tokens": None},
    "--no-redundancy-filter": {"redundancy_filter": False},
    "--no-mmr": {"mmr": False},
    "--no-rerank": {"rerank": False},
    "--no-parents": {"parent_document": False},
    "--parents": {"parent_document": True},
    "--compress none": {"compression": "none"},
}
ALL_OF_THEM = "no filters, no floors, no stages, "


def applied(options: RetrievalOptions, told: str) -> RetrievalOptions:
    """The options with a change as somebody reads it who was told."""
    if told in NOT_WANTED:
        return replace(options, **NOT_WANTED[told])
    if told.startswith(ALL_OF_THEM):
        bare = RetrievalOptions(mode=options.mode, min_score=-1.0, rerank=False, parent_document=False)
        return applied(bare, told.removeprefix(ALL_OF_THEM))
    flag, value = told.split()
    name, read = {
        "--top-k": ("top_k", int), "--candidates": ("candidate_count", int), "--min-score": ("min_score", float),
        "--mode": ("mode", str),
    }[flag]  # fmt: skip
    return replace(options, **{name: read(value)})


def assert_each_helps(index: Path, found: Why, options: RetrievalOptions, settings: Settings | None = None) -> None:
    """Each change that is told, tried here, puts the text at the number that was told."""
    with Pipeline.open(index, settings or indexes.keywords(), explicit=()) as pipeline:
        for change in found.changes:
            sources = pipeline.draft(found.question, applied(options, change.options)).prompt.sources
            held = [bool(matching(found.expect).search(hit.chunk.text)) for hit in sources]
            assert held.index(True) + 1 == change.source


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


# --------------------------------------------------------------------------------------------- 1. nothing was retrieved

NOTHING: list[tuple[str, str, RetrievalOptions]] = [
    *(("zebra unicorn", "Aldby", replace(OPTIONS, top_k=k)) for k in (1, 3, 5, 20)),
    *(("qwertz", name, OPTIONS) for name in NAMES[:4]),
    *((question(name), name, replace(OPTIONS, metadata_filter=(Condition("path", "none/*"),))) for name in NAMES[:5]),
    *((question(name), name, replace(OPTIONS, where='document_id == "none"')) for name in NAMES[5:9]),
    *((question(name), name, replace(OPTIONS, where="score > 1000")) for name in NAMES[9:12]),
    *((question(name), name, replace(OPTIONS, max_context_tokens=5)) for name in NAMES[12:16]),
    *((question(name), name, replace(OPTIONS, metadata_filter=(Condition("year", 2024),))) for name in NAMES[16:]),
]


@pytest.mark.spec("A10")
@pytest.mark.parametrize(("text", "name", "options"), NOTHING)
def test_nothing_was_retrieved(index: Path, text: str, name: str, options: RetrievalOptions) -> None:
    found = asked(index, text, answer(name), options)
    assert found.cause == "nothing-retrieved"
    assert found.answer is None
    assert found.because.startswith("nothing was retrieved")
    assert_each_helps(index, found, options)
    assert bool(found.changes) is ("gauge" in text)  # none helps where no word is in the index


@pytest.mark.spec("A10")
def test_what_kept_everything_out_is_named_where_leaving_it_out_helps(index: Path) -> None:
    for options, told in (
        (replace(OPTIONS, metadata_filter=(Condition("path", "none/*"),)), "no --filter"),
        (replace(OPTIONS, where='document_id == "none"'), "no --where"),
        (replace(OPTIONS, max_context_tokens=5), "no --max-context-tokens"),
    ):
        found = asked(index, question(NAMES[0]), answer(NAMES[0]), options)
        assert [change.options for change in found.changes] == [told]
        assert found.advice == ()
    both = replace(OPTIONS, metadata_filter=(Condition("path", "none/*"),), where='document_id == "none"')
    found = asked(index, question(NAMES[0]), answer(NAMES[0]), both)
    assert [change.options for change in found.changes] == [f"{ALL_OF_THEM}--top-k 5"]
    assert_each_helps(index, found, both)


def test_in_an_empty_index_too(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("x")
    index = indexes.index_of(tmp_path)
    indexes.take_in(index, tmp_path / "a.md")
    indexes.take_in(index, delete=("a.md",))
    assert asked(index, "anything", "some text").cause == "nothing-retrieved"


# ---------------------------------------------------------------------------------------------- 2. it is the wrong text

FILLER = (Condition("path", "filler/*"),)


def river(name: str) -> str:
    """What the filler answers better than the note."""
    return f"the {name} gauge stands by the river which key"


WRONG: list[tuple[str, str, RetrievalOptions]] = [
    # another gauge's note ranks first: the cut drops the one that answers
    *((question(other), answer(name), replace(OPTIONS, top_k=2)) for other, name in pairwise(NAMES[:6])),
    # nobody wrote it down
    *((question(name), "the golden key number 7", OPTIONS) for name in NAMES[:4]),
    # a filter leaves the fillers alone
    *((question(name), answer(name), replace(OPTIONS, metadata_filter=FILLER)) for name in NAMES[4:8]),
    # a short budget keeps the filler, which is shorter and ranks first
    *((river(name), answer(name), replace(OPTIONS, top_k=1)) for name in NAMES[8:14]),
    *((river(name), answer(name), replace(OPTIONS, max_context_tokens=45)) for name in NAMES[14:18]),
    # the question uses other words
    *((f"river by the stands which {name}", answer(name), replace(OPTIONS, top_k=1)) for name in NAMES[18:]),
]  # fmt: skip


@pytest.mark.spec("A10")
@pytest.mark.parametrize(("text", "expect", "options"), WRONG)
def test_the_wrong_text_was_retrieved(index: Path, text: str, expect: str, options: RetrievalOptions) -> None:
    found = asked(index, text, expect, options)
    assert found.cause == "wrong-text"
    assert found.answer is None
    assert not any(matching(expect).search(hit.chunk.text) for hit in found.result.ranking.hits)
    assert_each_helps(index, found, options)


@pytest.mark.spec("A10")
def test_the_arms_and_the_stages_are_those_of_the_retrieval(index: Path) -> None:
    name, other = NAMES[1], NAMES[0]
    options = replace(OPTIONS, top_k=2)
    found = asked(index, question(other), answer(name), options)
    (one,) = found.expected
    with Pipeline.open(index, indexes.keywords(), explicit=()) as pipeline:
        deep = pipeline.retrieve(question(other), replace(OPTIONS, top_k=1000)).ranking.hits
    at, hit = next((at, hit) for at, hit in enumerate(deep, 1) if answer(name) in hit.chunk.text)
    assert (one.document_id, one.chunk_index) == (hit.chunk.document_id, 0)
    assert one.arms["bm25"].score == hit.score
    assert one.arms["bm25"].rank == at
    assert one.reason == f"is not among the candidates: by itself it has rank {at}"
    assert f"--top-k {at}" in [change.options for change in found.changes]


@pytest.mark.spec("A10")
def test_a_stage_that_dropped_it_is_named_with_its_reason_and_the_way_there(index: Path) -> None:
    name = NAMES[3]
    options = replace(OPTIONS, where=f'document_id != "{name.lower()}.md"')
    plain = asked(index, question(name), answer(name), OPTIONS)
    assert plain.cause in {"answered", "not-used"}  # it is there
    found = asked(index, question(name), answer(name), options)
    assert found.cause == "wrong-text"
    (one,) = found.expected
    rank = next(number.source for number in plain.expected)
    assert one.reason.startswith("was dropped by where: ")
    assert one.ranks == (("where", rank, None),)
    assert found.changes[0].options == "no --where"


@pytest.mark.spec("A10")
def test_a_text_that_chunks_cut_apart_is_told(tmp_path: Path) -> None:
    text = " ".join(f"word{n}" for n in range(400))
    (tmp_path / "long.md").write_text(text)
    index = indexes.index_of(tmp_path)
    settings = indexes.keywords()
    indexes.take_in(index, tmp_path / "long.md")
    with Pipeline.open(index, settings, explicit=()) as pipeline:
        first = pipeline.inspector.chunk("long.md#0").chunk
        second = pipeline.inspector.chunk("long.md#1").chunk
        cut = text[text.rfind(" ", 0, second.start - 30) + 1 : text.find(" ", first.end + 30)]
        found = why(pipeline, "word5", cut, OPTIONS)
    assert found.cause == "wrong-text"
    assert "cut apart by the ends of chunks" in found.because
    assert found.places[0].parts == (0, 1)
    assert "--chunk-overlap" in found.advice[0]


# ------------------------------------------------------------------------------ 2b. lost on the way, with vectors about


class Wide(NamedTuple):
    """An index with vectors, in which stages have something to do."""

    at: Path
    settings: Settings

    def asked(self, text: str, expect: str, options: RetrievalOptions, **sections: Any) -> Why:
        return asked(self.at, text, expect, options, replace(self.settings, **sections))


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wide]:
    folder = indexes.write(tmp_path_factory.mktemp("wide"), staged_files())
    with EmbeddingService() as service, pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        patch.setenv("no_proxy", "127.0.0.1")
        settings = Settings(
            models=ModelsSettings(embedder="openai:toy"),
            embedding=EmbeddingSettings(base_url=service.url, api_key="k", retries=0),
            chunking=ChunkingSettings(size=SMALL, overlap=0),
        )
        folders = [folder / name for name in ("notes", "filler", "copies", "books")]
        indexes.take_in(indexes.index_of(folder), *folders, settings=settings)
        yield Wide(indexes.index_of(folder), settings)


def of_gauge(name: str) -> str:
    """Leaves the note, its copy and the book."""
    low = name.lower()
    return f'document_id in ["{low}.md", "copies/{low}.md", "books/{low}.md"]'


def words_of_note(name: str) -> str:
    """A query that the note is nearest to, before its copy, which is longer."""
    return note(name).split(" It was")[0]


SIX = replace(OPTIONS, top_k=6)
LOST: list[tuple[str, str, str, RetrievalOptions, str]] = [
    # the copy says the same as the note before it
    *(("redundancy", words_of_note(name), warden(name),
       replace(SIX, redundancy_filter=True, redundancy_threshold=0.9), "--no-redundancy-filter") for name in NAMES[:5]),
    # the first chunk of the book stands for it
    *(("per_document", question(name), lock(name), replace(SIX, per_document=1), "no --per-document")
      for name in NAMES[5:10]),
    # the book is less like the note than the copy is
    *(("mmr", words_of_note(name), warden(name),
       replace(OPTIONS, top_k=2, where=of_gauge(name), mmr=True, mmr_lambda=0.1), "--no-mmr") for name in NAMES[10:15]),
    # filler, note and copy have 27, 40 and 48 tokens
    *(("budget", question(name), warden(name), replace(SIX, max_context_tokens=110), "no --max-context-tokens")
      for name in NAMES[15:]),
    # four are better than the second chunk of the book
    *(("cut", question(name), lock(name), replace(OPTIONS, top_k=3, per_document=9), "--top-k 5")
      for name in NAMES[:5]),
]  # fmt: skip


@pytest.mark.spec("A10")
@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize(("stage", "text", "expect", "options", "told"), LOST)
def test_the_stage_that_dropped_it_and_what_would_have_kept_it(
    wide: Wide, stage: str, text: str, expect: str, options: RetrievalOptions, told: str
) -> None:
    found = wide.asked(text, expect, options)
    assert found.cause == "wrong-text"
    (one,) = found.expected
    dropped = {(drop.hit.chunk.document_id, drop.hit.chunk.index): drop for drop in found.result.ranking.dropped}
    drop = dropped[one.document_id, one.chunk_index]
    assert drop.stage == stage
    assert one.reason == f"was dropped by {stage}: {drop.reason}"
    assert one.reason in found.because
    assert (one.ranks[-1][0], one.ranks[-1][2]) == (stage, None)
    assert one.source is None
    assert told in [change.options for change in found.changes]
    assert_each_helps(wide.at, found, options, wide.settings)


@pytest.mark.spec("A10")
@pytest.mark.usefixtures("no_proxy")
def test_the_way_goes_through_every_stage_that_saw_it(wide: Wide) -> None:
    name = NAMES[0]
    options = replace(SIX, where="score > 0", redundancy_filter=True, redundancy_threshold=0.9, per_document=1)
    (one,) = wide.asked(question(name), lock(name), options).expected
    # book, filler, note, copy, and it: the copy goes, being the note's twin
    assert one.ranks == (("where", 5, 5), ("redundancy", 5, 4), ("per_document", 4, None))


ARMS: tuple[tuple[str, Mode], ...] = (("bm25", "keyword"), ("dense", "vector"))


@pytest.mark.spec("A10")
@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize("mode", ["keyword", "vector", "hybrid"])
@pytest.mark.parametrize("name", NAMES[::5])
def test_the_scores_of_every_arm_are_told_in_each_mode(wide: Wide, mode: Mode, name: str) -> None:
    (one,) = wide.asked(question(name), lock(name), RetrievalOptions(mode=mode, top_k=1)).expected
    with Pipeline.open(wide.at, wide.settings, explicit=()) as pipeline:
        alone = {}
        for arm, other in ARMS:
            deep = RetrievalOptions(mode=other, top_k=1000, min_score=-1.0)
            hits = pipeline.retrieve(question(name), deep).ranking.hits
            rank, hit = next((rank, hit) for rank, hit in enumerate(hits, 1) if lock(name) in hit.chunk.text)
            alone[arm] = (rank, hit.score)
    assert {arm: (told.rank, told.score) for arm, told in one.arms.items()} == alone
    _, stored = indexes.vectors_of(wide.at)[f"books/{name.lower()}.md", 1]
    cosine = dense.cosine(unit(vector_of(question(name))), struct.unpack(f"<{DIMENSION}e", stored))
    assert one.arms["dense"].score == pytest.approx(cosine, abs=1e-6)


@pytest.mark.spec("A10")
@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize("name", NAMES[:5])
def test_a_floor_that_kept_it_out_is_told_with_its_cosine(wide: Wide, name: str) -> None:
    options = RetrievalOptions(mode="vector", top_k=3, min_score=0.995)
    nothing = wide.asked(note(name), warden(name), options)
    (one,) = nothing.expected
    assert one.arms["dense"].score is not None
    assert one.arms["dense"].score < 0.995
    floor = f"{int(one.arms['dense'].score * 100) / 100:.2f}"
    assert f"(cosine {one.arms['dense'].score:.4f}, retrieval.min_score = 0.995)" in one.reason
    assert nothing.changes[0].options == f"--min-score {floor}"
    assert_each_helps(wide.at, nothing, options, wide.settings)


@pytest.mark.spec("A10")
@pytest.mark.usefixtures("no_proxy")
def test_words_that_no_document_has_are_found_by_meaning(wide: Wide) -> None:
    options = replace(OPTIONS, top_k=200)
    found = wide.asked("qwertz", answer(NAMES[0]), options)
    assert found.cause == "nothing-retrieved"
    assert found.expected[0].reason == "is not found by keyword search"
    assert set(found.expected[0].arms) >= {"dense"}
    assert [change.options for change in found.changes] == ["--mode hybrid"]
    assert_each_helps(wide.at, found, options, wide.settings)


@pytest.mark.spec("A10")
@pytest.mark.usefixtures("no_proxy")
def test_what_keywords_alone_would_have_found(wide: Wide) -> None:
    options = RetrievalOptions(mode="vector", min_score=0.99)
    found = wide.asked(question(NAMES[0]), answer(NAMES[0]), options)
    assert found.cause == "nothing-retrieved"
    assert [change.options for change in found.changes] == ["--mode hybrid"]
    assert_each_helps(wide.at, found, options, wide.settings)


@pytest.mark.spec("A10")
@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize("name", NAMES[:5])
def test_what_a_filter_keeps_out_is_told(wide: Wide, name: str) -> None:
    options = replace(OPTIONS, metadata_filter=(Condition("path", "books/*"),))
    found = wide.asked(question(name), warden(name), options)
    assert found.cause == "wrong-text"
    assert found.expected[0].reason == "does not meet the filter: by itself it has rank 4"
    assert found.changes[0].options == "no --filter"
    assert_each_helps(wide.at, found, options, wide.settings)


@pytest.mark.spec("A10")
@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize("name", NAMES[:5])
def test_what_is_lost_to_the_candidates_comes_up_with_more_of_them(wide: Wide, name: str) -> None:
    judged = {"rerank": RerankSettings(reranker="python:tests.why_corpus:wardens")}
    options = replace(OPTIONS, top_k=1, candidate_count=2)
    found = wide.asked(question(name), warden(name), options, **judged)
    assert found.cause == "wrong-text"
    assert found.expected[0].reason == "is not among the candidates: by itself it has rank 4"
    assert ("--candidates 4", 1) in [(change.options, change.source) for change in found.changes]
    assert_each_helps(wide.at, found, options, replace(wide.settings, **judged))
    enough = wide.asked(question(name), warden(name), replace(options, candidate_count=4), **judged)
    assert enough.expected[0].source == 1


@pytest.mark.spec("A10")
@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize("name", NAMES[5:10])
def test_what_a_compression_left_out_is_told(wide: Wide, name: str) -> None:
    options = replace(SIX, compression="extractive", compression_sentences=1)
    whole = f"It opens with {answer(name)}. It was last seen in week"  # two sentences: an extract has one
    found = wide.asked(question(name), whole, options)
    assert found.cause == "wrong-text"
    reasons = {one.reason for one in found.expected if one.source is not None}
    assert reasons == {f"was shortened by compress: what is left (source {n}) does not hold it" for n in (3, 4)}
    assert [change.options for change in found.changes] == ["--compress none"]
    with Pipeline.open(wide.at, wide.settings, explicit=()) as pipeline:
        sources = pipeline.draft(question(name), replace(options, compression="none")).prompt.sources
    assert matching(whole).search(sources[found.changes[0].source - 1].chunk.text)


@pytest.mark.spec("A10", "P8")
@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize("name", NAMES[:5])
def test_what_does_not_fit_the_window_is_told(wide: Wide, name: str) -> None:
    options = replace(OPTIONS, top_k=5)
    with Pipeline.open(wide.at, wide.settings, explicit=()) as pipeline:
        tokens = pipeline.draft(question(name), options).prompt.tokens
    # one token too few, with the margin of a tokenizer that is not the model's own
    narrow = {
        "answer": AnswerSettings(max_tokens=64), "chat": ChatSettings(context_window=int((tokens - 1) * 1.1) + 64),
    }  # fmt: skip
    found = wide.asked(question(name), lock(name), options, **narrow)
    (one,) = found.expected
    assert (found.cause, one.source, found.changes) == ("wrong-text", None, ())
    assert one.reason.startswith("was dropped by window: the prompt had ")
    assert "--max-tokens" in found.advice[0]
    assert any("sources are sent" in warning for warning in found.warnings)
    wider = {**narrow, "chat": ChatSettings(context_window=int((tokens + 1) * 1.1) + 65)}
    assert wide.asked(question(name), lock(name), options, **wider).expected[0].source == 5


@pytest.mark.spec("A10")
def test_a_parent_holds_what_chunks_cut_apart(tmp_path: Path) -> None:
    text = " ".join(f"word{n}" for n in range(400))
    (tmp_path / "long.md").write_text(text)
    index = indexes.index_of(tmp_path)
    settings = indexes.keywords(parents=ParentsSettings(enabled=True, size=4000, overlap=0))
    indexes.take_in(index, tmp_path / "long.md", settings=settings)
    with Pipeline.open(index, settings, explicit=()) as pipeline:
        second = pipeline.inspector.chunk("long.md#1").chunk
        first = pipeline.inspector.chunk("long.md#0").chunk
    cut = text[text.rfind(" ", 0, second.start - 30) + 1 : text.find(" ", first.end + 30)]
    found = asked(index, "word5", cut, OPTIONS, settings)
    assert found.cause == "answered"  # it is there: the parent holds it
    assert [(one.chunk_index, one.source) for one in found.expected] == [(0, 1), (1, None)]
    without = replace(OPTIONS, parent_document=False)
    found = asked(index, "word5", cut, without, settings)
    assert found.cause == "wrong-text"
    assert [change.options for change in found.changes] == ["--parents"]
    assert_each_helps(index, found, without, settings)


# -------------------------------------------------------------------------------------------- 3. it was there, not used

EVASIVE = (
    "The sources do not say.", "I don't know.", "A key opens it [Source 1].", "Which key? That is unknown [Source 2].",
    "The gauge stands by the river [Source 1].",
)  # fmt: skip
NOT_USED: list[tuple[str, Script]] = [
    *((name, spoken(EVASIVE[at % 5])) for at, name in enumerate(NAMES)),
    (NAMES[0], spoken("It opens with the brass", reason="length")),
    (NAMES[1], Script((event(delta("It opens with the bra")), CUT))),
    (NAMES[2], spoken("It opens with the brass key number 999 [Source 1].")),
]


@pytest.mark.spec("A10")
@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize(("name", "script"), NOT_USED)
def test_the_right_text_was_there_and_not_used(index: Path, name: str, script: Script) -> None:
    with ChatServer(script) as server:
        found = asked(index, question(name), answer(name), OPTIONS, served(server))
        assert len(server.requests) == 1
        assert answer(name) in server.messages[-1]["content"]
    assert found.cause == "not-used"
    assert found.answer is not None
    assert found.advice
    (one,) = found.expected
    assert one.source is not None
    assert found.answer.sources[one.source - 1].chunk.document_id == one.document_id == f"{name.lower()}.md"


@pytest.mark.spec("A10")
@pytest.mark.parametrize("name", NAMES)
def test_extracts_that_take_other_sentences_did_not_use_it(index: Path, name: str) -> None:
    settings = indexes.keywords(answer=AnswerSettings(sentences=1))
    found = asked(index, river(name), answer(name), OPTIONS, settings)  # the filler's own words
    assert found.cause == "not-used"
    assert found.answer is not None
    assert found.answer.text == f"“The {name} gauge stands by the river.” [Source 1]"
    assert found.expected[0].source == 2
    assert "--model" in found.advice[-1]


@pytest.mark.spec("A10")
@pytest.mark.parametrize("name", NAMES[:5])
def test_extracts_of_which_one_holds_the_text_are_an_answer(index: Path, name: str) -> None:
    found = asked(index, words_of_note(name), answer(name).upper())
    assert (found.cause, found.changes, found.advice) == ("answered", (), ())
    assert found.because == "the answer holds the expected text, from source 1"


@pytest.mark.spec("A10")
def test_a_text_over_a_line_end_is_one_text(tmp_path: Path) -> None:
    folder = indexes.write(
        tmp_path / "d", {"a.txt": "The mill is old.\nIt opens with the brass\n  Key number 9 at noon.\n"}
    )
    indexes.take_in(indexes.index_of(tmp_path), folder)
    found = asked(indexes.index_of(tmp_path), "what opens the mill at noon", "the BRASS key\nnumber   9")
    assert [(one.document_id, one.source) for one in found.expected] == [("a.txt", 1)]
    assert found.cause == "answered"  # extracts stand on one line


@pytest.mark.spec("A10")
def test_a_source_that_says_nothing_is_no_reason_to_ask_always(tmp_path: Path) -> None:
    folder = indexes.write(tmp_path / "d", {"a.txt": "brass key\n"})
    indexes.take_in(indexes.index_of(tmp_path), folder)
    found = asked(indexes.index_of(tmp_path), "brass key", "brass key")
    assert found.cause == "not-used"
    assert found.answer is not None
    assert found.answer.outcome == "no-answer"  # a sentence has three terms
    assert not any("--always" in advice for advice in found.advice)


@pytest.mark.spec("A10")
@pytest.mark.usefixtures("no_proxy")
def test_where_nobody_was_asked_that_is_the_reason(index: Path) -> None:
    sure = AnswerSettings(min_coverage=1.0)
    with ChatServer(spoken("x")) as server:
        text = f"{question(NAMES[0])} zebra unicorn qwertz"
        found = asked(index, text, answer(NAMES[0]), OPTIONS, served(server, answer=sure))
        assert server.requests == []
    assert (found.cause, found.advice) == ("not-used", ("ask even so: --always",))
    assert "nobody was asked" in found.because


@pytest.mark.spec("A10")
@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize("name", NAMES)
def test_an_answer_that_holds_the_text_is_one(index: Path, name: str) -> None:
    with ChatServer(spoken(f"It opens with The  Brass key\nnumber {answer(name)[-3:]} [Source 1].")) as server:
        found = asked(index, question(name), answer(name), OPTIONS, served(server))
    assert (found.cause, found.changes, found.advice) == ("answered", (), ())


# ------------------------------------------------------------------------------------------- without an expected text


@pytest.fixture
def verified(index: Path) -> Iterator[Callable[[str], Why]]:
    def call(text: str) -> Why:
        with ChatServer(spoken(text)) as server:
            return asked(index, question(NAMES[0]), "", OPTIONS, served(server, answer=AnswerSettings(verify=True)))

    yield call


@pytest.mark.spec("A10")
@pytest.mark.usefixtures("no_proxy")
def test_without_an_expectation_it_says_what_can_be_said(index: Path, verified: Callable[[str], Why]) -> None:
    supported = verified(f"The Aldby gauge opens with {answer(NAMES[0])} [Source 1][Source 2].")
    assert (supported.cause, supported.because) == ("answered", "each statement is supported by the sources")
    unknown = verified("The moon is made of green cheese [Source 1].")
    assert unknown.cause == "unknown"
    assert "--expect" in unknown.advice[0]
    nothing = asked(index, "what does a suspension bridge in Lisbon cost per year", "", OPTIONS)
    assert nothing.cause == "nothing-retrieved"


@pytest.mark.spec("A10")
@pytest.mark.usefixtures("no_proxy")
def test_an_answer_that_broke_off_was_not_used_whatever_was_expected(index: Path) -> None:
    with ChatServer(Script((event(delta("It opens with")), CUT))) as server:
        found = asked(index, question(NAMES[0]), "", OPTIONS, served(server))
    assert found.cause == "not-used"
    assert found.because.startswith("the answer broke off: ")
    assert found.answer is not None
    assert found.answer.text == "It opens with"


def test_a_blank_expectation_is_a_mistake(index: Path) -> None:
    with pytest.raises(UsageError, match="empty"):
        asked(index, question(NAMES[0]), "  ")


@pytest.mark.parametrize(
    ("text", "inside", "is_found"),
    [
        ("two words", "a two\n  WORDS b", True), ("45 euros", "145 euros", False), ("45 euros", "45 eurosport", False),
        ("45 euros", "(45 euros)", True), ("光荣", "由光荣和", True), ("a+b", "x a+b y", True), ("a+b", "aab", False),
    ],
)  # fmt: skip
def test_what_counts_as_the_same_text(text: str, inside: str, is_found: bool) -> None:
    assert bool(matching(text).search(inside)) is is_found
