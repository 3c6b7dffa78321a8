"""Vectors from an OpenAI-compatible service: POST `base_url`/embeddings (spec M5; OpenAI API reference, embeddings).

Texts go out in order, in batches of at most `embedding.batch_texts` texts and about `embedding.batch_tokens` tokens, at
four bytes of UTF-8 a token. A batch that the service refuses is halved, down to one text, whose refusal is a problem of
that text alone; a batch whose halves it then takes lowers the number of texts for the rest of the run. A service that
still fails for a batch (5xx) after all retries, but takes another text, is treated as one that refuses. What can't be a
fault of a text (key, URL, model, a service that is down, vectors of another length) is an error at once. An answer is
placed by `index` and counted; one that does not fit is asked for once more, then halved like a refusal.

The service has its own window and its own way with longer texts, so `embedding.max_tokens`, `embedding.long` and
`embedding.pooling` don't apply here, and offline work does: it forbids to fetch files. A lone surrogate, which is no
character, is sent as a question mark. What is sent by HTTP and when it is sent again is `http`'s.
"""

from __future__ import annotations

import os
import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec

from ragcli import config
from ragcli.errors import RemoteError
from ragcli.models.http import Clock, HttpClient, Limits, Service, StatusError
from ragcli.models.unit import unit
from ragcli.models.windows import whole
from ragcli.options import SERVICE
from ragcli.types import Embedded, EmbedderCard, Listener, ignore_event

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragcli.models.place import ModelPlace
    from ragcli.options import EmbeddingSettings, Settings

BYTES_A_TOKEN = 4  # English prose in cl100k_base has about 4.2; other text is split where the service refuses it
PROBE = "ragcli"  # a text that no service refuses for its own sake
KEY_HINT = "check embedding.api_key or OPENAI_API_KEY"
URL_HINT = "check embedding.base_url (most services want it to end in /v1) and the name of the model"
SLOW_HINT = (
    "check embedding.base_url; a slow service needs a smaller embedding.batch_texts or more embedding.timeout_seconds"
)
# what a service may find wrong with these texts, rather than with us
_ABOUT_TEXTS = frozenset({400, 413, 422})
_ABOUT_SIZE = re.compile(r"too (large|long|many tokens)|context (length|size|window)|batch size", re.IGNORECASE)


class _Unplaceable(Exception):
    """An answer that can't be matched to the texts; the message says why."""


def about_size(status: int, body: str) -> bool:
    """Whether a server error is about the size of the texts: llama.cpp and Ollama say so with status 500."""
    return status == 500 and bool(_ABOUT_SIZE.search(body))


def four_bytes_a_token(text: str) -> int:
    """About how many tokens `text` has: at least 1."""
    return len(text.encode("utf-8", "replace")) // BYTES_A_TOKEN + 1


class EndpointEmbedder:
    """An Embedder. Connects when it first needs the service: for `card` that is when nothing tells the dimension."""

    def __init__(
        self,
        model: str,
        base_url: str,
        key: str | None,
        settings: EmbeddingSettings,
        card: EmbedderCard | None = None,
        *,
        clock: Clock = Clock(),  # noqa: B008 - frozen
        listen: Listener = ignore_event,
        count: Callable[[str], int] = four_bytes_a_token,
    ) -> None:
        """`card`: what an index was built with, if any. Raises: UsageError: the URL or the key can't be used."""
        hints = {0: SLOW_HINT, 401: KEY_HINT, 403: KEY_HINT, 404: URL_HINT, 405: URL_HINT}
        service = Service(name=f"{SERVICE}{model}", base_url=base_url, key=key, hints=hints, is_final=about_size)
        limits = Limits(settings.timeout_seconds, settings.retries, settings.requests_per_minute)
        self._client = HttpClient(service, limits, clock=clock, listen=listen)
        self._model = model
        self._settings = settings
        self._count = count
        self._most_texts = settings.batch_texts
        self._is_served = False  # whether it has taken a text of this batch, or the probe
        self._card = _card(model, settings, card)
        self._may_ask = card is None  # another embedder's index is told apart without asking

    @classmethod
    def open(cls, settings: Settings, place: ModelPlace, card: EmbedderCard | None = None) -> EndpointEmbedder:
        """The one that `models.embedder = openai:MODEL` means. Raises: UsageError: there is no key or no usable URL."""
        model = settings.models.embedder.removeprefix(SERVICE)
        base_url, key = config.openai_service(settings.embedding, environ=os.environ)
        return cls(model, base_url, key, settings.embedding, card, listen=place.listen)

    def __repr__(self) -> str:
        return f"EndpointEmbedder({self._model!r})"

    @property
    def card(self) -> EmbedderCard:
        """The dimension is the index's, else `embedding.dimensions`, else that of a vector that is asked for now.

        With the card of an index that another embedder built it stays 0, not known: there is no use in asking.

        Raises: RemoteError: it had to be asked for and did not come.
        """
        if not self._card.dimension and self._may_ask:
            self._probe()
        return self._card

    def passages(self, texts: Sequence[str]) -> Embedded:
        """Vectors of passages; a text that the service refuses is a problem of its own.

        Raises: RemoteError: the service failed, after all retries.
        """
        import numpy as np

        found: dict[int, NDArray[np.float32]] = {}
        problems: dict[int, str] = {}
        for rows in self._batches(texts):
            self._is_served = False
            self._embed(rows, [_sent(self._card.passage_prefix, texts[row]) for row in rows], found, problems)
        vectors = np.zeros((len(texts), self.card.dimension if texts else self._card.dimension), np.float32)
        for row, vector in found.items():
            vectors[row] = vector
        for row, text in enumerate(texts):
            if not text.strip():
                problems[row] = "no text"
        return Embedded(vectors, dict(sorted(problems.items())))

    def query(self, text: str) -> NDArray[np.float32]:
        """The vector of a query. Raises: RemoteError: the service failed, refused it, or gave no usable vector."""
        vector = unit(self._one(_sent(self._card.query_prefix, text)))
        if isinstance(vector, str):
            raise self._error(f"no vector for this query: the service gave {vector}")
        return vector

    def close(self) -> None:
        """Ends the connections, and a pause of another thread, which gets a RemoteError. For good."""
        self._client.close()

    def _batches(self, texts: Sequence[str]) -> Iterator[list[int]]:
        """Rows of the texts that are not blank. The number of texts may sink from batch to batch."""
        rows: list[int] = []
        tokens = 0
        for row, text in enumerate(texts):
            if not text.strip():
                continue
            more = self._count(self._card.passage_prefix + text)
            if rows and (len(rows) >= self._most_texts or tokens + more > self._settings.batch_tokens):
                yield rows
                rows, tokens = [], 0
            rows.append(row)
            tokens += more
        if rows:
            yield rows

    def _embed(
        self, rows: list[int], texts: list[str], found: dict[int, NDArray[np.float32]], problems: dict[int, str]
    ) -> None:
        """Puts the vectors of `texts` into `found`, under `rows`, and what went wrong into `problems`."""
        refusal = self._placed(rows, texts, found, problems)
        if refusal is None:
            return
        if len(rows) == 1:
            if not self._is_served:
                self._probe()  # a service that takes nothing at all is an error, not the fault of this text
            problems[rows[0]] = refusal
            return
        half, before = (len(rows) + 1) // 2, len(problems)
        self._embed(rows[:half], texts[:half], found, problems)
        self._embed(rows[half:], texts[half:], found, problems)
        if len(problems) == before:  # nothing was wrong with the texts: there were too many
            self._most_texts = min(self._most_texts, half)

    def _placed(
        self, rows: list[int], texts: list[str], found: dict[int, NDArray[np.float32]], problems: dict[int, str]
    ) -> str | None:
        """As `_embed`, of one batch as it is; returns why it was refused as a whole."""
        try:
            vectors = self._asked_twice(texts)
        except StatusError as error:
            if not self._is_about_texts(error):
                raise
            return error.message
        except _Unplaceable as error:
            return str(error)
        self._is_served = True
        for row, vector in zip(rows, map(unit, vectors), strict=True):
            if isinstance(vector, str):
                problems[row] = f"the service gave {vector}"
            else:
                found[row] = vector
        return None

    def _is_about_texts(self, error: StatusError) -> bool:
        """Whether these texts are at fault: a service that fails for them and takes another is not down."""
        if error.status in _ABOUT_TEXTS or about_size(error.status, error.body):
            return True
        return error.status >= 500 and self._is_up()

    def _asked_twice(self, texts: list[str]) -> list[NDArray[np.float64]]:
        try:
            return self._ask(texts)
        except _Unplaceable:
            return self._ask(texts)

    def _one(self, text: str) -> NDArray[np.float64]:
        """The vector of one text as it came. Raises: RemoteError: it does not come."""
        try:
            return self._asked_twice([text])[0]
        except _Unplaceable as error:
            raise self._error(str(error)) from None

    def _probe(self) -> None:
        """Asks for the vector of a harmless text. Raises: RemoteError: even that does not come."""
        self._one(PROBE)
        self._is_served = True

    def _is_up(self) -> bool:
        try:
            self._probe()
        except RemoteError:
            return False
        return True

    def _ask(self, texts: list[str]) -> list[NDArray[np.float64]]:
        """One request: the vectors of `texts` in their order, each of the card's dimension."""
        body: dict[str, object] = {"model": self._model, "input": texts}
        if self._settings.dimensions is not None:
            body["dimensions"] = self._settings.dimensions
        vectors = _in_order(self._client.post("embeddings", body), len(texts))
        for vector in vectors:
            self._check_dimension(len(vector))
        return vectors

    def _check_dimension(self, dimension: int) -> None:
        expected = self._card.dimension
        if not expected:
            self._card = msgspec.structs.replace(self._card, dimension=dimension)
        elif dimension != expected:
            asked = self._settings.dimensions == expected
            source = "as embedding.dimensions asks for" if asked else "as the index and its other vectors have"
            hint = "unset embedding.dimensions: this model can't shorten its vectors" if asked else URL_HINT
            raise self._error(f"a vector of {dimension} numbers, not {expected} {source}", hint)

    def _error(self, what: str, hint: str = "") -> RemoteError:
        return RemoteError(f"{SERVICE}{self._model}: {what}", hint)


def _card(model: str, settings: EmbeddingSettings, stored: EmbedderCard | None) -> EmbedderCard:
    """What this embedder is. The URL is no part of it: the same model may move to another host."""
    query, passage = settings.query_prefix or "", settings.passage_prefix or ""
    identity = msgspec.json.encode(["openai", model, settings.dimensions, query, passage])
    fingerprint = sha256(identity).hexdigest()
    known = stored.dimension if stored and stored.fingerprint == fingerprint else 0
    return EmbedderCard(
        name=f"{SERVICE}{model}",
        fingerprint=fingerprint,
        dimension=known or settings.dimensions or 0,
        asked_dimension=settings.dimensions or 0,
        query_prefix=query,
        passage_prefix=passage,
        long="",  # the service's own way
    )


def _sent(prefix: str, text: str) -> str:
    return whole(prefix + text)


def _in_order(answer: Any, expected: int) -> list[NDArray[np.float64]]:
    """The vectors of an answer, by `index`. Raises: _Unplaceable."""
    items = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise _Unplaceable("the answer has no list `data` of vectors")
    if len(items) != expected:
        raise _Unplaceable(f"{len(items)} vectors for {expected} {'text' if expected == 1 else 'texts'}")
    indexes = [item.get("index") for item in items] if expected > 1 else [0]
    placed = {index: item for index, item in zip(indexes, items, strict=True) if type(index) is int}
    if sorted(placed) != list(range(expected)):
        raise _Unplaceable(f"the `index` of the {expected} vectors is not each of 0 to {expected - 1} once")
    return [_numbers(placed[index].get("embedding")) for index in range(expected)]


def _numbers(embedding: object) -> NDArray[np.float64]:
    """A vector as it came: numbers, or base64 of float32, little-endian. null is NaN."""
    import numpy as np

    try:
        if isinstance(embedding, str):
            embedding = np.frombuffer(b64decode(embedding, validate=True), "<f4")
        vector = np.asarray(embedding, dtype=np.float64)
    except (Base64Error, ValueError, TypeError, OverflowError):
        raise _Unplaceable("an `embedding` is no list of numbers") from None
    if vector.ndim != 1 or not len(vector):
        raise _Unplaceable("an `embedding` is no list of numbers")
    return vector
