"""The rerankers of remote services: what is asked, in how many requests, how long, and what is said when it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from ragcli.errors import ConfigError, RagcliError, RemoteError, UsageError
from ragcli.models.place import ModelPlace
from ragcli.options import RerankSettings, Settings
from ragcli.rerankers import cohere, jina, open_reranker, vllm
from ragcli.rerankers.cohere import CohereReranker
from ragcli.rerankers.jina import JinaReranker
from ragcli.rerankers.service import split_url
from ragcli.rerankers.vllm import VllmReranker
from ragcli.types import Event, Relevance, Reranker, ignore_event
from tests.models.clock import Time
from tests.rerankers.scoring import PASSAGES, SCORES, at, items, passages_of, results, taking
from tests.services import KEY, EmbeddingService, Received, Reply, error

CLASSES: dict[str, Any] = {"cohere": CohereReranker, "jina": JinaReranker, "vllm": VllmReranker}
MODULES: dict[str, Any] = {"cohere": cohere, "jina": jina, "vllm": vllm}
EACH = pytest.mark.parametrize("kind", sorted(CLASSES))


class Make(Protocol):
    def __call__(self, kind: str, *, listen: Callable[[Event], None] = ..., **more: Any) -> Reranker: ...


@pytest.fixture
def make(service: EmbeddingService, time: Time) -> Iterator[Make]:
    """A reranker of the service, on the clock that stands still."""
    made: list[Reranker] = []

    def call(kind: str, *, listen: Callable[[Event], None] = ignore_event, **more: Any) -> Reranker:
        chosen: dict[str, Any] = {"base_url": f"http://{service.address}", "timeout_seconds": 5.0}
        settings = RerankSettings(**(chosen | more))
        made.append(CLASSES[kind](settings, KEY, clock=time.clock, listen=listen))
        return made[-1]

    yield call
    for reranker in made:
        reranker.close()


# --- the request and its answer


@pytest.mark.spec("P4")
def test_cohere_is_asked_in_its_own_words(service: EmbeddingService, make: Make) -> None:
    service.rule = at("/v2/rerank")
    reranker = make("cohere")
    assert reranker.name == "cohere:rerank-v3.5"
    assert reranker.judge("trees", PASSAGES) == Relevance(SCORES)
    (request,) = service.requests
    assert request.body == {"model": "rerank-v3.5", "query": "trees", "documents": PASSAGES, "top_n": 3}
    assert request.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.spec("P4")
def test_jina_is_asked_in_its_own_words(service: EmbeddingService, make: Make) -> None:
    service.rule = at("/v1/rerank")
    reranker = make("jina", model="jina-m")
    assert reranker.name == "jina:jina-m"
    assert reranker.judge("trees", PASSAGES) == Relevance(SCORES)
    (request,) = service.requests
    expected = {"model": "jina-m", "query": "trees", "documents": PASSAGES, "top_n": 3, "return_documents": False}
    assert request.body == expected


@pytest.mark.spec("P4")
def test_scores_between_0_and_1_stay_as_they_are(service: EmbeddingService, make: Make) -> None:
    service.rule = results
    assert make("cohere").judge("q", ["0.007 a", "0.9 b"]) == Relevance((0.007, 0.9), logits=False)
    assert make("vllm").judge("q", ["-4.5 a", "0.9 b"]) == Relevance((-4.5, 0.9), logits=True)


@pytest.mark.spec("P4")
@EACH
def test_no_passages_ask_for_nothing(service: EmbeddingService, make: Make, kind: str) -> None:
    told: list[Event] = []
    assert make(kind, listen=told.append).judge("q", []) == Relevance(())
    assert (service.requests, told) == ([], [])


@EACH
def test_a_lone_surrogate_is_sent_as_a_question_mark(service: EmbeddingService, make: Make, kind: str) -> None:
    service.rule = results
    make(kind).judge("q\udcff", ["0.5 \udcff"])
    assert service.requests[0].body["query"] == "q?"
    assert passages_of(service.requests[0]) == ["0.5 ?"]


@pytest.mark.spec("P4")
@EACH
def test_more_passages_than_a_service_takes_go_in_several_requests(
    service: EmbeddingService, make: Make, kind: str
) -> None:
    """A logit in the last request makes all of them logits."""
    service.rule = results
    most = MODULES[kind].MOST
    told: list[Event] = []
    passages = [f"{number / 10000} x" for number in range(most + 1)] + ["3.5 y"]
    found = make(kind, listen=told.append).judge("q", passages)
    assert [len(passages_of(request)) for request in service.requests] == [most, 2]
    assert found == Relevance((*(number / 10000 for number in range(most + 1)), 3.5), logits=True)
    assert [(event.stage, event.done, event.total, event.unit) for event in told] == [
        ("reranking", done, most + 2, "passages") for done in (0, most, most + 2)
    ]


@pytest.mark.spec("P4")
@EACH
@pytest.mark.parametrize(
    ("base", "path"),
    [("", None), ("/", None), ("/v1", "/v1/rerank"), ("/v2", "/v2/rerank"), ("/v2/", "/v2/rerank"),
     ("/v1/rerank", "/v1/rerank"), ("/proxy/v2", "/proxy/v2/rerank"), ("/v1?tenant=a", "/v1/rerank?tenant=a")],
)  # fmt: skip
def test_the_version_in_a_base_url_is_not_doubled(
    service: EmbeddingService, make: Make, kind: str, base: str, path: str | None
) -> None:
    service.rule = results
    make(kind, base_url=f"http://{service.address}{base}").judge("q", PASSAGES)
    own = {"cohere": "/v2/rerank", "jina": "/v1/rerank", "vllm": "/v1/rerank"}[kind]
    assert [request.path for request in service.requests] == [path or own]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://rerank", ("http://rerank", "")),
        ("http://v1", ("http://v1", "")),
        ("http://h/rerank/", ("http://h", "")),
        ("http://h/v10", ("http://h/v10", "")),
        ("http://h/av1", ("http://h/av1", "")),
    ],
)
def test_only_a_version_of_its_own_is_taken_off(url: str, expected: tuple[str, str]) -> None:
    assert split_url(url) == expected


# --- the ways of servers of one's own


def scores_of_pairs(request: Received) -> Reply:
    return Reply(body={"data": items(request.body["text_2"], "score")})


def bare_list(request: Received) -> Reply:
    if "texts" not in request.body:
        return Reply(422, b"Failed to deserialize the JSON body into the target type: missing field `texts` at line 1")
    return Reply(body=items(request.body["texts"], "score"))


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("path", "rule", "asked"),
    [
        ("/v1/rerank", results, ["/v1/rerank"]),
        ("/rerank", results, ["/v1/rerank", "/rerank"]),
        ("/v2/rerank", results, ["/v1/rerank", "/rerank", "/v2/rerank"]),
        ("/score", scores_of_pairs, ["/v1/rerank", "/rerank", "/v2/rerank", "/score"]),
        ("/rerank", bare_list, ["/v1/rerank", "/rerank", "/rerank"]),
    ],
)
def test_the_way_that_a_server_knows_is_found_and_remembered(
    service: EmbeddingService, make: Make, path: str, rule: Callable[[Received], Reply], asked: list[str]
) -> None:
    service.rule = at(path, rule)
    reranker = make("vllm", model="bge")
    assert reranker.judge("trees", PASSAGES) == Relevance(SCORES)
    assert reranker.judge("trees", PASSAGES[:1]) == Relevance(SCORES[:1])
    assert [request.path for request in service.requests] == [*asked, path]


@pytest.mark.spec("P4")
def test_a_server_is_asked_in_the_words_of_its_way(service: EmbeddingService, make: Make) -> None:
    asked = [
        ("/rerank", results, {"model": "bge", "query": "q", "documents": PASSAGES, "top_n": 3}),
        ("/score", scores_of_pairs, {"model": "bge", "text_1": "q", "text_2": PASSAGES}),
        ("/rerank", bare_list, {"query": "q", "texts": PASSAGES, "truncate": True}),
    ]
    for path, rule, body in asked:
        service.rule = at(path, rule)
        make("vllm", model="bge").judge("q", PASSAGES)
        assert service.requests[-1].body == body
    service.rule = results
    nameless = make("vllm")
    nameless.judge("q", PASSAGES)
    assert (nameless.name, "model" in service.requests[-1].body) == ("vllm", False)


@pytest.mark.spec("P4")
def test_a_server_of_texts_gets_no_more_than_it_takes(service: EmbeddingService, make: Make) -> None:
    service.rule = at("/rerank", bare_list)
    passages = [f"{number / 100} x" for number in range(70)]
    found = make("vllm").judge("q", passages)
    assert found.scores == tuple(number / 100 for number in range(70))
    sizes = [len(request.body["texts"]) for request in service.requests if "texts" in request.body]
    assert sizes == [32, 32, 6]


@pytest.mark.spec("P4")
def test_a_refusal_that_only_quotes_a_passage_is_no_wish_for_texts(service: EmbeddingService, make: Make) -> None:
    service.rule = lambda request: error(400, f"too long: {request.body['documents'][0]}")
    with pytest.raises(RemoteError, match=r"400 Bad Request.*too long"):
        make("vllm").judge("q", ['the "texts" of a poet'])
    assert len(service.requests) == 1


@pytest.mark.spec("P4")
def test_a_server_that_knows_no_way_is_an_error_that_says_what_was_tried(service: EmbeddingService, make: Make) -> None:
    service.rule = lambda request: error(404, f"no model of that name at {request.path}")
    with pytest.raises(RemoteError, match="no model of that name at /v1/rerank") as caught:
        make("vllm").judge("q", PASSAGES)
    assert "tried /v1/rerank, /rerank, /v2/rerank, /score" in caught.value.hint


# --- what fails


@pytest.mark.spec("P4")
@EACH
def test_an_unknown_form_is_quoted(service: EmbeddingService, make: Make, kind: str) -> None:
    answer = {"ranking": ["x" * 500], "key": KEY}
    service.rule = lambda request: Reply(body=answer)
    with pytest.raises(RemoteError) as caught:
        make(kind).judge("q", PASSAGES)
    assert f'an answer of no known form: {{"ranking": ["{"x" * 186}…' in caught.value.message
    service.rule = lambda request: Reply(body={"said": KEY})
    with pytest.raises(RemoteError) as caught:
        make(kind).judge("q", PASSAGES)
    assert KEY not in caught.value.message
    assert '{"said": "(hidden)"}' in caught.value.message


@pytest.mark.spec("P4")
@EACH
def test_a_passing_failure_is_tried_again_and_a_lasting_one_is_an_error(
    service: EmbeddingService, make: Make, kind: str
) -> None:
    service.rule = results
    service.script(error(503, "busy"))
    assert make(kind).judge("q", PASSAGES).scores == SCORES
    service.rule = lambda request: error(401, f"no such key: {KEY}")
    with pytest.raises(RemoteError, match=r"401 Unauthorized: .*no such key: \(hidden\)") as caught:
        make(kind).judge("q", PASSAGES)
    assert "rerank.key_variable" in caught.value.hint


# --- time


@pytest.mark.spec("P3")
def test_the_time_budget_holds_over_all_requests(service: EmbeddingService, make: Make, time: Time) -> None:
    """The one that is refused for its words, and two of 32 passages: two seconds each."""
    service.rule = at("/rerank", taking(2, lambda seconds: setattr(time, "at", time.at + seconds), bare_list))
    told: list[Event] = []
    reranker = make("vllm", time_budget_seconds=6.0, listen=told.append)
    with pytest.raises(RagcliError) as caught:
        reranker.judge("q", [f"{number / 100} x" for number in range(70)])
    assert caught.value.message == "rerank took longer than rerank.time_budget_seconds = 6 (64 of 70 passages judged)"
    assert told[-1].done == 64
    service.rule = at("/rerank", bare_list)
    assert reranker.judge("q", PASSAGES).scores == SCORES  # each judgement has a budget of its own


@pytest.mark.spec("P3")
def test_pauses_count_too(service: EmbeddingService, make: Make, time: Time) -> None:
    """Pauses are 0.375, 0.75 and 1.5 s: the third does not fit into what is left of 2 s."""
    service.rule = lambda request: error(503, "busy")
    with pytest.raises(RemoteError, match=r"busy.*\(tried 3 times\)"):
        make("cohere", time_budget_seconds=2.0, retries=9).judge("q", PASSAGES)
    assert time.slept == [0.375, 0.75]


@pytest.mark.spec("P3")
def test_so_does_the_pace(service: EmbeddingService, make: Make, monkeypatch: pytest.MonkeyPatch, time: Time) -> None:
    """One request a minute: the second one has no time left."""
    monkeypatch.setattr(cohere, "MOST", 2)
    service.rule = results
    with pytest.raises(RagcliError, match=r"= 5 \(2 of 3 passages judged\)"):
        make("cohere", time_budget_seconds=5.0, requests_per_minute=1.0).judge("q", PASSAGES)
    assert time.slept == [5.0]


@pytest.mark.spec("P3")
@EACH
def test_a_request_may_take_no_longer_than_what_is_left(service: EmbeddingService, kind: str) -> None:
    service.rule = lambda request: Reply(body={}, delay=60)
    settings = RerankSettings(base_url=f"http://{service.address}", time_budget_seconds=0.1)
    reranker = CLASSES[kind](settings, KEY)
    with pytest.raises(RagcliError, match=r"rerank.time_budget_seconds = 0.1 \(0 of 3 passages judged\)"):
        reranker.judge("q", PASSAGES)
    reranker.close()


# --- from settings


def opened(kind: str, **more: Any) -> Reranker:
    settings = Settings(rerank=RerankSettings(reranker=kind, **more))
    return open_reranker(settings, ModelPlace(Path("nowhere")), ignore_event)


@pytest.mark.spec("P4")
@pytest.mark.parametrize(("kind", "variable"), [("cohere", "COHERE_API_KEY"), ("jina", "JINA_API_KEY")])
def test_a_missing_key_is_named_by_its_variable(kind: str, variable: str) -> None:
    with pytest.raises(UsageError, match=f"{kind} wants a key, and {variable} is not set"):
        opened(kind)


@pytest.mark.spec("P4")
@EACH
def test_the_key_comes_from_the_environment_and_is_shown_nowhere(
    service: EmbeddingService, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    service.rule = results
    url = f"http://{service.address}"
    monkeypatch.setenv(f"{kind.upper()}_API_KEY", KEY)
    monkeypatch.setenv("OWN_KEY", "own-key")
    for more, sent in (({}, KEY), ({"key_variable": "OWN_KEY"}, "own-key")):
        reranker = opened(kind, base_url=url, **more)
        reranker.judge("q", PASSAGES)
        assert service.requests[-1].headers["authorization"] == f"Bearer {sent}"
        assert sent not in f"{reranker!r} {reranker.name}"
        reranker.close()


@pytest.mark.spec("P4")
def test_a_server_of_ones_own_needs_its_url_but_no_key(service: EmbeddingService) -> None:
    with pytest.raises(UsageError, match=r"vllm wants rerank\.base_url"):
        opened("vllm")
    service.rule = results
    opened("vllm", base_url=service.url).judge("q", PASSAGES)
    assert "authorization" not in service.requests[0].headers


@pytest.mark.spec("P4")
def test_an_unknown_reranker_is_told_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"unknown reranker coherre; did you mean cohere\?"):
        opened("coherre")
