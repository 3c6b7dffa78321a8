"""The embedder of an OpenAI-compatible service, against a scripted one on 127.0.0.1."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragcli.errors import RemoteError, UsageError
from ragcli.models.endpoint import PROBE, EndpointEmbedder, about_size, four_bytes_a_token
from ragcli.models.place import ModelPlace
from ragcli.options import EmbeddingSettings, ModelsSettings, Settings
from ragcli.types import EmbedderCard
from tests.models.clock import Time
from tests.services import (
    DIMENSION,
    KEY,
    EmbeddingService,
    Received,
    Reply,
    answer,
    as_base64,
    embeddings,
    error,
    items,
    limited_to,
    refusing,
    unit,
    vector_of,
)

TEXTS = [f"text number {number} of ten" for number in range(10)]


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def service(time: Time) -> Iterator[EmbeddingService]:
    with EmbeddingService(now=lambda: time.at) as running:
        yield running


Make = Callable[..., EndpointEmbedder]


@pytest.fixture
def make(service: EmbeddingService, time: Time) -> Iterator[Make]:
    """An embedder of the service; `card=None` is no index, without it the index has vectors of `DIMENSION` numbers."""
    made: list[EndpointEmbedder] = []

    def call(*, known: bool = True, **more: Any) -> EndpointEmbedder:
        chosen = EmbeddingSettings(**({"retries": 2, "timeout_seconds": 5.0} | more))
        first = EndpointEmbedder("toy", service.url, KEY, chosen, clock=time.clock)
        made.append(first)
        if not known:
            return first
        card = first._card if first._card.dimension else first.card
        service.requests.clear()
        made.append(EndpointEmbedder("toy", service.url, KEY, chosen, card, clock=time.clock))
        return made[-1]

    yield call
    for embedder in made:
        embedder.close()


def expected(texts: list[str]) -> np.ndarray[Any, Any]:
    return np.array([unit(vector_of(text)) for text in texts])


def sizes(service: EmbeddingService) -> list[int]:
    return [len(request.texts) for request in service.requests]


# --- the request and its answer


@pytest.mark.spec("M5")
def test_vectors_come_in_the_order_of_the_texts_at_length_1(service: EmbeddingService, make: Make) -> None:
    embedded = make(batch_texts=4).passages(TEXTS)
    assert embedded.vectors.dtype == np.float32
    np.testing.assert_allclose(embedded.vectors, expected(TEXTS), atol=1e-6)
    np.testing.assert_allclose((embedded.vectors**2).sum(1), 1, atol=1e-6)
    assert embedded.problems == {}
    assert sizes(service) == [4, 4, 2]
    assert service.texts == TEXTS
    assert service.requests[0].path == "/v1/embeddings"
    assert service.requests[0].body == {"model": "toy", "input": TEXTS[:4]}
    assert service.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.spec("M5")
def test_prefixes_and_dimensions_are_sent(service: EmbeddingService, make: Make) -> None:
    embedder = make(query_prefix="query: ", passage_prefix="passage: ", dimensions=8)
    assert embedder.passages(["a"]).vectors.shape == (1, 8)
    np.testing.assert_allclose(embedder.query("b"), unit(vector_of("query: b", 8)), atol=1e-6)
    assert [request.body for request in service.requests] == [
        {"model": "toy", "input": ["passage: a"], "dimensions": 8},
        {"model": "toy", "input": ["query: b"], "dimensions": 8},
    ]


def test_no_texts_ask_for_nothing(service: EmbeddingService, make: Make) -> None:
    embedded = make().passages([])
    assert embedded.vectors.shape == (0, DIMENSION)
    assert service.requests == []


def test_a_blank_text_is_a_problem_and_is_not_sent(service: EmbeddingService, make: Make) -> None:
    embedded = make().passages(["a", " \n", "b"])
    assert embedded.problems == {1: "no text"}
    assert not embedded.vectors[1].any()
    assert service.texts == ["a", "b"]
    assert make().passages(["", " "]).problems == {0: "no text", 1: "no text"}


def test_a_lone_surrogate_is_sent_as_a_question_mark(service: EmbeddingService, make: Make) -> None:
    make().query("a\udcffb")
    assert service.texts == ["a?b"]


@pytest.mark.spec("M5")
@pytest.mark.parametrize(
    ("texts", "limits", "batches"),
    [
        (["x" * 40] * 5, {"batch_tokens": 22}, [2, 2, 1]),  # 40 bytes are 11 tokens by this count
        (["x" * 40] * 5, {"batch_tokens": 21}, [1, 1, 1, 1, 1]),
        (["x" * 4000, "y", "y"], {"batch_tokens": 10}, [1, 2]),  # a text that is too large goes alone
        (["ä" * 20] * 3, {"batch_tokens": 22}, [2, 1]),  # bytes, not characters
        (["x"] * 5, {"batch_texts": 2}, [2, 2, 1]),
    ],
)
def test_batches_are_split_by_count_and_tokens(
    service: EmbeddingService, make: Make, texts: list[str], limits: Mapping[str, int], batches: list[int]
) -> None:
    make(**limits).passages(texts)
    assert sizes(service) == batches


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(alphabet="aé漢 \n", max_size=40), max_size=30), st.integers(1, 9), st.integers(1, 60))
def test_batches_hold_every_text_once_and_keep_their_limits(texts: list[str], most: int, tokens: int) -> None:
    embedder = EndpointEmbedder(
        "toy", "http://127.0.0.1:9/v1", None, EmbeddingSettings(batch_texts=most, batch_tokens=tokens)
    )
    batches = list(embedder._batches(texts))
    assert [row for batch in batches for row in batch] == [row for row, text in enumerate(texts) if text.strip()]
    for batch in batches:
        assert len(batch) <= most
        assert len(batch) == 1 or sum(four_bytes_a_token(texts[row]) for row in batch) <= tokens
    for one, other in pairwise(batches):  # no batch could have held the first text of the next one
        together = sum(four_bytes_a_token(texts[row]) for row in [*one, other[0]])
        assert len(one) == most or together > tokens


# --- E04: answers that don't fit


@pytest.mark.spec("M5")
def test_E04_vectors_are_placed_by_index(service: EmbeddingService, make: Make) -> None:
    def shuffled(request: Received) -> Reply:
        data = items([vector_of(text) for text in request.texts])
        return Reply(body={"data": data[::2][::-1] + data[1::2]})

    service.rule = shuffled
    np.testing.assert_allclose(make().passages(TEXTS).vectors, expected(TEXTS), atol=1e-6)


@pytest.mark.spec("M5")
def test_E04_base64_is_read(service: EmbeddingService, make: Make) -> None:
    service.rule = lambda request: answer([as_base64(vector_of(text)) for text in request.texts])
    np.testing.assert_allclose(make().passages(TEXTS).vectors, expected(TEXTS), atol=1e-6)


@pytest.mark.spec("M5")
def test_E04_fewer_vectors_than_texts_are_asked_for_again(service: EmbeddingService, make: Make) -> None:
    embedder = make()
    service.script(answer([vector_of(text) for text in TEXTS[:5]]))
    embedded = embedder.passages(TEXTS)
    assert embedded.problems == {}
    np.testing.assert_allclose(embedded.vectors, expected(TEXTS), atol=1e-6)
    assert sizes(service) == [10, 10]


def _wrong(change: Callable[[list[dict[str, Any]]], object]) -> Callable[[Received], Reply]:
    """Answers of more than one text are changed."""

    def rule(request: Received) -> Reply:
        data = items([vector_of(text) for text in request.texts])
        return Reply(body={"data": change(data) if len(data) > 1 else data})

    return rule


@pytest.mark.spec("M5")
@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[: len(data) // 2],
        lambda data: [*data, data[0]],
        lambda data: [dict(item, index=0) for item in data],
        lambda data: [{"embedding": item["embedding"]} for item in data],
        lambda data: [dict(item, index=item["index"] + 1) for item in data],
        lambda data: [dict(item, index=str(item["index"])) for item in data],
        lambda data: [dict(item, index=float(item["index"])) for item in data],
        lambda data: [dict(data[0], embedding=None), *data[1:]],
        lambda data: [dict(data[0], embedding="no base64"), *data[1:]],
        lambda data: [dict(data[0], embedding=[["a"]]), *data[1:]],
        lambda data: [dict(data[0], embedding=[]), *data[1:]],
        lambda data: None,
        lambda data: ["a"] * len(data),
    ],
)
def test_E04_a_service_that_answers_single_texts_only_is_asked_for_single_texts(
    service: EmbeddingService, make: Make, change: Callable[[list[dict[str, Any]]], object]
) -> None:
    service.rule = _wrong(change)
    embedded = make(batch_texts=4).passages(TEXTS)
    assert embedded.problems == {}
    np.testing.assert_allclose(embedded.vectors, expected(TEXTS), atol=1e-6)
    assert sizes(service) == [4, 4, 2, 2, 1, 1, 2, 2, 1, 1, *[1] * 6]  # each wrong answer is asked for once more


@pytest.mark.spec("M5")
def test_E04_a_service_that_never_fits_is_an_error_that_says_so(service: EmbeddingService, make: Make) -> None:
    embedder = make()
    service.rule = lambda request: Reply(body={"data": []})
    with pytest.raises(RemoteError, match=r"^openai:toy: 0 vectors for 1 text$"):
        embedder.passages(TEXTS)
    with pytest.raises(RemoteError, match="0 vectors for 1 text"):
        embedder.query("a")


@pytest.mark.spec("M5")
def test_E04_another_dimension_names_both(service: EmbeddingService, make: Make) -> None:
    embedder = make()
    service.rule = lambda request: answer([vector_of(text, 7) for text in request.texts])
    with pytest.raises(RemoteError, match=rf"a vector of 7 numbers, not {DIMENSION} as the index"):
        embedder.passages(TEXTS)
    with pytest.raises(RemoteError, match=rf"a vector of 7 numbers, not {DIMENSION} as the index"):
        embedder.query("a")


@pytest.mark.spec("M5")
def test_a_service_that_does_not_shorten_vectors_is_named(service: EmbeddingService, make: Make) -> None:
    embedder = make(dimensions=8)
    service.rule = lambda request: answer([vector_of(text, 16) for text in request.texts])
    with pytest.raises(RemoteError, match=r"a vector of 16 numbers, not 8 as embedding\.dimensions asks for") as caught:
        embedder.passages(TEXTS)
    assert "unset embedding.dimensions" in caught.value.hint


# --- E05: vectors that are none


@pytest.mark.spec("M5")
@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ([0.0] * DIMENSION, "zeros"),
        ([float("nan")] + [1.0] * (DIMENSION - 1), "NaN or infinity"),
        ([float("inf")] + [1.0] * (DIMENSION - 1), "NaN or infinity"),
        ([None] + [1.0] * (DIMENSION - 1), "NaN or infinity"),
        (as_base64([float("nan")] * DIMENSION), "NaN or infinity"),
    ],
)
def test_E05_one_vector_that_is_none_is_a_problem_of_its_text(
    service: EmbeddingService, make: Make, bad: object, said: str
) -> None:
    embedder = make()
    service.rule = lambda request: answer(
        [bad if "number 3" in text or text == "q" else vector_of(text) for text in request.texts]
    )
    embedded = embedder.passages(TEXTS)
    assert list(embedded.problems) == [3]
    assert said in embedded.problems[3]
    others = [row for row in range(10) if row != 3]
    np.testing.assert_allclose(embedded.vectors[others], expected(TEXTS)[others], atol=1e-6)
    assert not embedded.vectors[3].any()
    assert np.isfinite(embedded.vectors @ embedded.vectors.T).all()
    with pytest.raises(RemoteError, match=f"no vector for this query: .*{said}"):
        embedder.query("q")


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_numbers_of_any_size_become_length_1(service: EmbeddingService, make: Make, scale: float) -> None:
    embedder = make()
    service.rule = lambda request: answer([[scale * number for number in vector_of(t)] for t in request.texts])
    np.testing.assert_allclose(embedder.passages(TEXTS).vectors, expected(TEXTS), atol=1e-6)


# --- A31, A32, A34, A35: refusals, limits, pace


@pytest.mark.spec("M5")
@pytest.mark.parametrize("status", [400, 413, 422])
def test_A31_a_batch_over_the_limit_of_the_service_is_halved(
    service: EmbeddingService, make: Make, status: int
) -> None:
    """A limit of 16,000 words against 64 texts of 300: 19,200, then 9,600; from then on it sends half as many."""
    texts = [f"{number} " + "word " * 299 for number in range(160)]
    service.rule = limited_to(words=16_000, status=status)
    embedded = make(batch_tokens=100_000).passages(texts)
    assert embedded.problems == {}
    np.testing.assert_allclose(embedded.vectors, expected(texts), atol=1e-6)
    assert sizes(service) == [64, 32, 32, 32, 32, 32]


@pytest.mark.spec("M5")
def test_A31_the_limit_can_be_set(service: EmbeddingService, make: Make) -> None:
    texts = ["word " * 300] * 64  # 1,500 bytes each: 376 tokens by our count
    service.rule = limited_to(words=16_000)
    make(batch_tokens=16_000).passages(texts)
    assert sizes(service) == [42, 22]


@pytest.mark.spec("M5")
def test_A32_it_waits_as_long_as_the_service_asks(service: EmbeddingService, make: Make, time: Time) -> None:
    embedder = make()
    service.script(error(429, "rate", Retry_After="1"), error(429, "rate", Retry_After="1"))
    embedded = embedder.passages(TEXTS)
    assert embedded.problems == {}
    assert time.slept == [1.0, 1.0]
    assert [request.at for request in service.requests] == [0.0, 1.0, 2.0]
    np.testing.assert_allclose(embedded.vectors, expected(TEXTS), atol=1e-6)


@pytest.mark.spec("M5", "M11")
@pytest.mark.parametrize("status", [400, 413, 422])
def test_A34_a_text_that_is_refused_costs_itself_alone(service: EmbeddingService, make: Make, status: int) -> None:
    service.rule = refusing("number 3", status)
    embedded = make().passages(TEXTS)
    assert list(embedded.problems) == [3]
    assert f"{status} " in embedded.problems[3]
    assert "can't embed number 3" in embedded.problems[3]
    others = [row for row in range(10) if row != 3]
    np.testing.assert_allclose(embedded.vectors[others], expected(TEXTS)[others], atol=1e-6)
    assert not embedded.vectors[3].any()


@pytest.mark.spec("M11")
def test_A34_a_text_on_which_the_service_fails_costs_itself_alone(service: EmbeddingService, make: Make) -> None:
    service.rule = refusing("number 3", 500)
    embedded = make(retries=1).passages(TEXTS)
    assert list(embedded.problems) == [3]
    assert "500 Internal Server Error" in embedded.problems[3]


@pytest.mark.spec("M5")
def test_a_server_error_about_the_size_is_not_tried_again(service: EmbeddingService, make: Make, time: Time) -> None:
    said = "input is too large to process. increase the physical batch size"  # llama.cpp
    service.rule = lambda request: error(500, said) if len(request.texts) > 5 else embeddings(request)
    assert make().passages(TEXTS).problems == {}
    assert (sizes(service), time.slept) == ([10, 5, 5], [])
    assert about_size(500, "the input length exceeds the context length")  # Ollama
    assert not about_size(500, "internal error")
    assert not about_size(503, "too many tokens")


def test_a_service_that_refuses_the_first_text_is_probed(service: EmbeddingService, make: Make) -> None:
    service.rule = refusing("number 0")
    assert list(make(batch_texts=1).passages(TEXTS).problems) == [0]
    assert service.texts[:3] == [TEXTS[0], PROBE, TEXTS[1]]


def test_a_service_that_refuses_everything_is_an_error_soon(service: EmbeddingService, make: Make) -> None:
    embedder = make(batch_texts=8)
    service.rule = lambda request: error(400, "no model toy")
    with pytest.raises(RemoteError, match=r"400 Bad Request: .*no model toy"):
        embedder.passages(TEXTS)
    assert sizes(service) == [8, 4, 2, 1, 1]


def test_a_service_that_begins_to_refuse_everything_is_an_error_soon(service: EmbeddingService, make: Make) -> None:
    embedder = make(batch_texts=4)
    service.rule = lambda request: error(400, "no credit") if len(service.requests) > 1 else embeddings(request)
    with pytest.raises(RemoteError, match="no credit"):
        embedder.passages(TEXTS)
    assert sizes(service) == [4, 4, 2, 1, 1]


@pytest.mark.spec("M5")
@pytest.mark.parametrize(
    ("status", "hint"), [(401, "OPENAI_API_KEY"), (403, "OPENAI_API_KEY"), (404, "embedding.base_url")]
)
def test_key_and_url_are_errors_at_once(service: EmbeddingService, make: Make, status: int, hint: str) -> None:
    embedder = make()
    service.rule = lambda request: error(status, "no")
    for call in (lambda: embedder.passages(TEXTS), lambda: embedder.query("a")):
        with pytest.raises(RemoteError, match=f"^openai:toy: POST {service.url}/embeddings: {status} ") as caught:
            call()
        assert hint in caught.value.hint
        assert caught.value.exit_code == 5
    assert len(service.requests) == 2


@pytest.mark.spec("M11")
def test_a_service_that_is_down_is_an_error_after_all_tries(service: EmbeddingService, make: Make) -> None:
    embedder = make()
    service.rule = lambda request: error(503, "down")
    with pytest.raises(RemoteError, match=r"503 Service Unavailable.*\(tried 3 times\)"):
        embedder.passages(TEXTS)
    assert sizes(service) == [10, 10, 10, 1, 1, 1]  # and the probe


@pytest.mark.spec("M5")
def test_A35_requests_keep_their_pace(service: EmbeddingService, make: Make) -> None:
    make(requests_per_minute=12, batch_texts=1).passages(TEXTS[:4])
    assert [request.at for request in service.requests][1:] == [5.0, 10.0, 15.0]


def test_thousands_of_texts_go_batch_by_batch(service: EmbeddingService, make: Make) -> None:
    texts = [f"text {number}" for number in range(2500)]
    embedded = make(batch_texts=500).passages(texts)
    np.testing.assert_allclose(embedded.vectors, expected(texts), atol=1e-6)
    assert sizes(service) == [500] * 5


# --- the card


@pytest.mark.spec("M5")
def test_the_dimension_is_asked_for_once_where_nothing_tells_it(service: EmbeddingService, make: Make) -> None:
    embedder = make(known=False, query_prefix="q: ")
    assert service.requests == []
    assert embedder.card == embedder.card
    assert (embedder.card.name, embedder.card.dimension, embedder.card.query_prefix) == ("openai:toy", DIMENSION, "q: ")
    assert service.texts == [PROBE]


def test_a_card_or_the_settings_tell_it_without_asking(service: EmbeddingService, make: Make) -> None:
    assert make().card.dimension == DIMENSION
    assert make(known=False, dimensions=8).card.dimension == 8
    assert service.requests == []


@pytest.mark.spec("M5")
def test_a_wrong_key_fails_when_the_card_is_asked_for(service: EmbeddingService, make: Make) -> None:
    service.rule = lambda request: error(401, "wrong key")
    with pytest.raises(RemoteError, match="401 Unauthorized"):
        _ = make(known=False).card


def test_the_fingerprint_is_of_what_changes_vectors_and_not_of_the_place() -> None:
    def card(model: str = "m", url: str = "http://127.0.0.1:9", stored: EmbedderCard | None = None, **more: Any) -> Any:
        chosen = EmbeddingSettings(**({"dimensions": 8} | more))
        return EndpointEmbedder(model, url, None, chosen, stored).card

    first = card()
    assert first.fingerprint == sha256(b'["openai","m",8,"",""]').hexdigest()
    assert card(url="https://other.example/v1", batch_texts=3).fingerprint == first.fingerprint
    others = [card("n"), card(dimensions=9), card(query_prefix="q"), card(passage_prefix="q")]
    assert len({first.fingerprint, *(other.fingerprint for other in others)}) == 5
    assert card(dimensions=9, stored=first).dimension == 9  # the card of another embedder tells nothing
    assert card(dimensions=None, stored=first).dimension == 0  # and nobody is asked: there is no service here


# --- secrets, and where the settings come from


@pytest.mark.spec("M5")
def test_the_key_is_shown_nowhere(
    service: EmbeddingService, make: Make, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    embedder = make(batch_texts=2)
    service.rule = lambda request: (
        error(401 if "number 4" in request.texts[0] else 400, f"bad key {request.headers['authorization']}")
        if "number 0" in request.texts[0] or "number 4" in request.texts[0]
        else embeddings(request)
    )
    problems = embedder.passages(TEXTS[:2]).problems
    with pytest.raises(RemoteError) as caught:
        embedder.passages(TEXTS)
    shown = json.dumps(
        [repr(embedder), repr(caught.value), str(caught.value), caught.value.hint, problems, caplog.text]
    )
    assert "(hidden)" in shown
    assert KEY not in shown
    assert KEY not in "".join(capfd.readouterr())


@pytest.mark.spec("M5")
def test_it_is_opened_from_settings_and_environment(
    service: EmbeddingService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chosen = Settings(models=ModelsSettings(embedder="openai:some/model:latest"))
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match="wants a key"):
        EndpointEmbedder.open(chosen, ModelPlace(cache=tmp_path, offline=True))
    monkeypatch.setenv("OPENAI_BASE_URL", service.url)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    embedder = EndpointEmbedder.open(chosen, ModelPlace(cache=tmp_path, offline=True))
    assert embedder.card.name == "openai:some/model:latest"
    embedder.close()
    assert service.requests[0].body["model"] == "some/model:latest"
    assert service.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_nothing_is_sent_before_it_is_needed() -> None:
    EndpointEmbedder("toy", "http://127.0.0.1:9/v1", None, EmbeddingSettings())
