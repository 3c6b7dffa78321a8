"""The one HTTP client: JSON to a remote service and back, with time-outs, retries and a pace. An owner of httpx2.

A request that failed in passing (no connection, no answer in time, 408, 409, 425, 429, 5xx) is sent again. The pause
doubles from try to try up to `LONGEST_PAUSE`, and half of it is random, so that many clients don't come back at once
(Brooker, Exponential Backoff and Jitter, 2015, "equal jitter"). `Retry-After` (RFC 9110, 10.2.3: seconds or a date)
goes first; a service that asks for more than `LONGEST_WAIT` is not waited for: that is an error at once. Redirects are
errors too: a request that is sent on would carry its key and its texts to another host. Proxies (HTTP_PROXY,
HTTPS_PROXY, ALL_PROXY, NO_PROXY) and certificates are as httpx2 has them.

Each part of an answer may take the time-out, and a request as a whole `WHOLE` times that, however steadily a server
drips: then its connection is shut down from another thread, and it is sent again as after any time-out. An answer of
more than `LARGEST` bytes, unpacked, a stream too, is an error that is not tried again. Where time is short (`left`),
time-outs and pauses are no longer than that.

A secret (key, credentials or query of the URL) is in no message, repr or event: what a service says is cleaned of it
before it is quoted. Knows nothing of what the answers mean.
"""

from __future__ import annotations

import json
import random
import socket
import threading
import time
import weakref
from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import cached_property
from http import HTTPStatus
from itertools import chain
from math import inf
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit, urlunsplit

import msgspec

from ragcli.errors import RemoteError, UsageError, shortened
from ragcli.types import Event, Listener, ignore_event

if TYPE_CHECKING:
    import ssl

    import httpx2

FIRST_PAUSE = 0.5  # seconds before the second try
LONGEST_PAUSE = 30.0  # seconds between two tries, where the service names no time itself
LONGEST_WAIT = 120.0  # seconds that a service may ask for; more is a matter of hours or days
LONGEST_CONNECT = 10.0  # seconds to connect: a host that is there answers sooner, however slow its model is
WHOLE = 5  # time-outs that a request may take as a whole
LARGEST = 64 * 2**20  # bytes of an answer
PASSING = frozenset({408, 409, 425, 429})  # and every 5xx
QUOTED = 200  # bytes of an answer that a message quotes
HIDDEN = "(hidden)"
_NO_EVENTS = (b"{", b"[", b"<")  # what JSON and HTML begin with, whatever they are called, and no stream does
_STREAM = {"content-type": "text/event-stream; charset=utf-8-sig"}  # some call it text/plain; it may begin with a BOM
_SHORTEST_QUERY_SECRET = 8  # a shorter value of the query is a version or a switch


Take = Callable[[str, str], bool]  # kind and data of an event -> whether nothing more is wanted


class Clock(msgspec.Struct, frozen=True):
    """Time and chance. `now` is monotonic, `wall` counts from 1970; both in seconds. `random` is in [0, 1).

    `wait(event, seconds)` returns whether the event came before the seconds were over.
    """

    now: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    wait: Callable[[threading.Event, float], bool] = threading.Event.wait
    random: Callable[[], float] = random.random


class Service(msgspec.Struct, frozen=True, kw_only=True):
    """A remote service. `name` is for people; paths are added to the path of `base_url`, before its query.

    `key` is sent as a bearer token (RFC 6750); a base URL with user and password means basic authentication instead.
    `hints`: what to do about a status; 0 stands for no answer at all. `is_final(status, body)`: whether a status that
    may pass elsewhere will not pass here. `is_ours`: it runs in this process, so no proxy has a part in it.
    """

    name: str
    base_url: str
    key: str | None = None
    hints: Mapping[int, str] = {}
    is_final: Callable[[int, str], bool] | None = None
    is_ours: bool = False

    def __repr__(self) -> str:
        return f"Service({self.name!r})"

    __str__ = __repr__


class Limits(msgspec.Struct, frozen=True):
    """`timeout`: seconds to wait for each part of an answer; for a whole request `WHOLE` times as many.

    `retries`: tries after the first one.
    """

    timeout: float = 60.0
    retries: int = 5
    requests_per_minute: float | None = None


class StatusError(RemoteError):
    """The service answered with an error. `status` is the HTTP status, `body` its answer, without secrets."""

    def __init__(self, message: str, hint: str, *, status: int, body: str) -> None:
        super().__init__(message, hint)
        self.status = status
        self.body = body


class BrokenStream(RemoteError):
    """A stream of events broke off after it had begun."""


class _Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why one try failed. `asked`: seconds that the service wants us to wait."""

    reason: str
    passing: bool
    asked: float | None = None
    status: int = 0  # 0 = no answer at all
    body: str = ""


class Pace:
    """At most so many starts a minute: evenly spaced, so the limit holds in every window. For several threads."""

    def __init__(self, per_minute: float | None, clock: Clock) -> None:
        self._gap = 60.0 / per_minute if per_minute else 0.0
        self._clock = clock
        self._next = 0.0
        self._lock = threading.Lock()

    def turn(self) -> float:
        """The seconds until it is this caller's turn, who now has it."""
        if not self._gap:
            return 0.0
        with self._lock:
            now = self._clock.now()
            start = max(now, self._next)
            self._next = start + self._gap
        return start - now


class HttpClient:
    """JSON in, JSON out. Connects at the first request; keeps its connections until `close` or its own end.

    Ctrl-C passes through it at once. Where it runs in another thread, `close` is what ends its pauses.
    """

    def __init__(
        self,
        service: Service,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        *,
        clock: Clock = Clock(),  # noqa: B008 - frozen
        listen: Listener = ignore_event,
        left: Callable[[], float] = lambda: inf,
    ) -> None:
        """`left`: the seconds that are left for all requests. Raises: UsageError: base URL or key can't be used."""
        self._service = service
        self._limits = limits
        self._clock = clock
        self._listen = listen
        self._left = left
        self._pace = Pace(limits.requests_per_minute, clock)
        self._closed = threading.Event()
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()
        self._url = _checked_url(service)
        self._headers = {"Content-Type": "application/json"} | _authorization(service)
        self._secrets = _secrets(service, self._url)

    def __repr__(self) -> str:
        return f"HttpClient({self._service!r})"

    def post(self, path: str, body: object) -> Any:
        """The decoded answer to POST `base_url`/`path` with `body` as JSON.

        Raises:
            StatusError: the service answered with an error (after all retries, where it may pass).
            RemoteError: it can't be reached, or its answer is not JSON.
        """
        return self._exchange("POST", path, msgspec.json.encode(body))

    def get(self, path: str) -> Any:
        """The decoded answer to GET `base_url`/`path`. Raises: as `post`."""
        return self._exchange("GET", path, b"")

    def stream(self, path: str, body: object, take: Take) -> Any:
        """POST as `post`; each server-sent event of the answer goes to `take` as it comes. Returns None.

        Where the service answers with JSON instead, that is returned, decoded, as by `post`. It is sent again only
        until the first event came; from then on a part of an answer may take `WHOLE` time-outs, not all of it.

        Raises: BrokenStream: it breaks off after an event; else as `post`. What `take` raises.
        """
        events = _Events(take)
        found = self._exchange("POST", path, msgspec.json.encode(body), events)
        return None if events.is_stream else found

    def close(self) -> None:
        """Ends the connections, and a pause of another thread, which gets a RemoteError. For good."""
        self._closed.set()
        client = self.__dict__.pop("_client", None)
        if client is not None:
            client.close()

    def quoted(self, text: str) -> str:
        """What a service said as a message may quote it: without secrets, one line, short, nothing a terminal obeys."""
        return _inert(self._cleaned(text))

    @cached_property
    def _client(self) -> httpx2.Client:
        import httpx2

        verify = _verification(self._url.scheme)
        try:
            client = httpx2.Client(headers={"User-Agent": "ragcli"}, verify=verify, trust_env=not self._service.is_ours)
        except (ImportError, ValueError, httpx2.InvalidURL) as error:  # SOCKS without socksio, or no URL
            hint = "see HTTP_PROXY, HTTPS_PROXY and ALL_PROXY"
            raise UsageError(f"{self._service.name}: the proxy can't be used ({type(error).__name__})", hint) from None
        weakref.finalize(self, client.close)
        return client

    def _exchange(self, method: str, path: str, content: bytes, reading: _Reading | None = None) -> Any:
        url = self._url._replace(path=f"{self._url.path.rstrip('/')}/{path}")
        reading = reading or _Whole()
        failure, tries = self._try(method, urlunsplit(url), content, reading), 1
        while isinstance(failure, _Failure):
            if reading.progress:
                raise BrokenStream(f"{self._service.name}: {failure.reason}")
            pause = self._pause(failure, tries)
            if pause is None:
                raise self._error(f"{method} {_shown(url)}", failure, tries)
            self._tell(failure, pause, tries)
            self._wait(pause)
            failure, tries = self._try(method, urlunsplit(url), content, reading), tries + 1
        return None if reading.is_stream else self._decoded(f"{method} {_shown(url)}", failure)

    def _try(self, method: str, url: str, content: bytes, reading: _Reading) -> bytes | _Failure:
        self._wait(min(self._pace.turn(), self._left()))
        left = self._left()
        if left <= 0:
            return _Failure(reason="no time is left for it", passing=False)
        timeout, seconds = min(self._limits.timeout, left), min(WHOLE * self._limits.timeout, left)
        ended, rang = threading.Event(), threading.Event()
        alarm = threading.Thread(target=self._watch, args=(reading, seconds, ended, rang), daemon=True)
        alarm.start()
        try:
            found = self._answer(method, url, content, timeout, reading)
        finally:
            ended.set()
        if rang.is_set():  # whatever came: an answer of no stated length looks whole where it was cut
            return _Failure(reason=f"no whole answer within {seconds:g} s", passing=True)
        return found

    def _watch(self, reading: _Reading, seconds: float, ended: threading.Event, rang: threading.Event) -> None:
        """Shuts the connections down when `seconds` have brought nothing new."""
        seen = reading.progress
        while not ended.wait(None if seconds == inf else seconds):
            if reading.progress == seen:
                self._shut_down(rang)
                return
            seen = reading.progress

    def _answer(self, method: str, url: str, content: bytes, timeout: float, reading: _Reading) -> bytes | _Failure:
        import httpx2

        wait = httpx2.Timeout(timeout, connect=min(timeout, LONGEST_CONNECT))
        headers = {**self._headers, "Accept": reading.accept}
        try:
            sent = self._client.stream(
                method, url, content=content, headers=headers, timeout=wait, extensions={"trace": self._trace}
            )
            with sent as response:
                body = reading.read(response)
        except httpx2.ConnectTimeout:
            return _Failure(reason="no connection in time", passing=True)
        except httpx2.TimeoutException:
            return _Failure(reason=f"no answer within {timeout:g} s", passing=True)
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            return self._unreachable(error)
        if body is None:
            return _Failure(reason=f"the answer is larger than {LARGEST / 2**20:g} MiB", passing=False)
        return body if response.is_success else self._refused(response, body)

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Remembers the sockets of connections that are made."""
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):
            self._sockets.add(info["return_value"].get_extra_info("socket"))

    def _shut_down(self, rang: threading.Event) -> None:
        """Ends all that is under way, without closing a file that another thread reads from."""
        rang.set()
        for connected in list(self._sockets):
            with suppress(OSError):
                socket.socket.shutdown(connected, socket.SHUT_RDWR)  # that of TLS would let plain text out meanwhile

    def _wait(self, seconds: float) -> None:
        if self._closed.is_set() or (seconds > 0 and self._clock.wait(self._closed, seconds)):
            raise RemoteError(f"{self._service.name}: closed before the answer came")

    def _unreachable(self, error: Exception) -> _Failure:
        import httpx2

        lasting = (httpx2.LocalProtocolError, httpx2.UnsupportedProtocol, httpx2.InvalidURL)
        passing = not isinstance(error, lasting) and "CERTIFICATE_VERIFY_FAILED" not in str(error)
        return _Failure(reason=f"no answer: {self.quoted(str(error)) or type(error).__name__}", passing=passing)

    def _refused(self, response: httpx2.Response, content: bytes) -> _Failure:
        status, body = response.status_code, self._cleaned(content.decode("utf-8", "replace"))
        said, is_final = _inert(body), self._service.is_final
        if response.is_redirect:
            said = f"it redirects to {self.quoted(response.headers.get('location', '').partition('?')[0])}"
        return _Failure(
            reason=f"{status} {_phrase(status)}{': ' if said else ''}{said}",
            passing=(status in PASSING or status >= 500) and not (is_final and is_final(status, body)),
            asked=_asked(response.headers.get("retry-after"), self._clock.wall()),
            status=status,
            body=body,
        )

    def _pause(self, failure: _Failure, tries: int) -> float | None:
        """Seconds until the next try; None = there is none."""
        if not failure.passing or tries > self._limits.retries or (failure.asked or 0.0) > LONGEST_WAIT:
            return None
        longest = min(FIRST_PAUSE * 2.0 ** min(tries - 1, 30), LONGEST_PAUSE)
        pause = failure.asked or longest / 2 + self._clock.random() * longest / 2
        return pause if pause < self._left() else None

    def _tell(self, failure: _Failure, pause: float, tries: int) -> None:
        detail = f"{failure.reason}; again in {pause:.1f} s (retry {tries} of {self._limits.retries})"
        self._listen(Event(stage=f"waiting for {self._service.name}", detail=detail))

    def _error(self, where: str, failure: _Failure, tries: int) -> RemoteError:
        asked = f"; it asks to wait {failure.asked:.0f} s" if (failure.asked or 0.0) > LONGEST_WAIT else ""
        tried = f" (tried {tries} times)" if tries > 1 else ""
        message = f"{self._service.name}: {where}: {failure.reason}{asked}{tried}"
        hint = self._service.hints.get(failure.status, "")
        if not failure.status:
            return RemoteError(message, hint)
        return StatusError(message, hint, status=failure.status, body=failure.body)

    def _decoded(self, where: str, content: bytes) -> Any:
        try:
            return msgspec.json.decode(content)
        except (msgspec.DecodeError, RecursionError):
            pass
        try:
            return json.loads(content)  # reads NaN and Infinity, which are no JSON but are sent as such
        except (ValueError, RecursionError):
            said = self.quoted(content.decode("utf-8", "replace"))
        raise RemoteError(f"{self._service.name}: {where}: the answer is not JSON: {said or 'it is empty'}")

    def _cleaned(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, HIDDEN)
        return text


class _Whole:
    """Reads an answer that comes as one."""

    accept = "application/json"
    is_stream = False
    progress = 0  # a part of it is worth nothing

    def read(self, response: httpx2.Response) -> bytes | None:
        """The body, unpacked; None where it is larger than `LARGEST`."""
        return _read(response.iter_bytes())


class _Events:
    """Reads an answer event by event (`progress` counts them), where it is a stream of events."""

    accept = "text/event-stream, application/json"

    def __init__(self, take: Take) -> None:
        self._take = take
        self.is_stream = False
        self.progress = 0

    def read(self, response: httpx2.Response) -> bytes | None:
        """b"" after the last event, the body of an answer that is no stream; None where it is larger than `LARGEST`."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        pieces = response.iter_bytes()
        first = next(pieces, b"")
        self.is_stream = response.is_success and not kind.endswith("json") and not first.startswith(_NO_EVENTS)
        if not self.is_stream:
            return _read(chain([first], pieces))
        import httpx2

        limited = _Limited(chain([first], pieces))
        source = httpx2.Response(200, headers=_STREAM, content=iter(limited), request=response.request)
        for event in httpx2.EventSource(source):
            self.progress += 1
            if self._take(event.event, event.data):
                break
        return None if limited.is_large else b""


class _Limited:
    """The bytes of a stream up to `LARGEST`; what ends properly also ends its last event, blank line or not."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = pieces
        self.is_large = False

    def __iter__(self) -> Iterator[bytes]:
        size = 0
        for piece in self._pieces:
            size += len(piece)
            if size > LARGEST:
                self.is_large = True
                return
            yield piece
        yield b"\n\n"


_Reading = _Whole | _Events


def _read(pieces: Iterable[bytes]) -> bytes | None:
    """The body, unpacked; None where it is larger than `LARGEST`."""
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > LARGEST:
            return None
    return bytes(body)


def _verification(scheme: str) -> ssl.SSLContext | bool:
    """How certificates are checked. Loading them takes 40 ms, and plain HTTP to a local service needs none."""
    from urllib.request import getproxies

    if scheme == "https" or any(proxy.startswith("https:") for proxy in getproxies().values()):
        return True
    import ssl

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # trusts nobody: were TLS to be used, it would fail


def _checked_url(service: Service) -> SplitResult:
    """The base URL in parts, without credentials."""
    url = service.base_url
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0 and url.isprintable()
    except ValueError:
        usable = False
    if not usable or " " in url:
        shown = shortened(repr(url.rpartition("@")[2].partition("?")[0]))
        raise UsageError(f"{service.name}: the base URL must be http://HOST/PATH or https://HOST/PATH, not {shown}")
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="")


def _shown(url: SplitResult) -> str:
    """The URL without credentials and query."""
    return urlunsplit((url.scheme, url.netloc.rpartition("@")[2], url.path, "", ""))


def _credentials(base_url: str) -> str:
    """`user:password` of the URL, or ""."""
    parts = urlsplit(base_url)
    return f"{unquote(parts.username or '')}:{unquote(parts.password or '')}" if "@" in parts.netloc else ""


def _authorization(service: Service) -> dict[str, str]:
    credentials, key = _credentials(service.base_url), service.key
    if credentials and key:
        raise UsageError(f"{service.name}: there is a key, and credentials in the base URL", "give one of them")
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise UsageError(f"{service.name}: the key holds a space, a line end or another character that no key has")
    if credentials:
        return {"Authorization": f"Basic {_base64(credentials)}"}
    return {"Authorization": f"Bearer {key}"} if key else {}


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()


def _secrets(service: Service, url: SplitResult) -> tuple[str, ...]:
    """All that must not be shown, in the forms in which a service might send it back; the longest first."""
    credentials = _credentials(service.base_url)
    plain = {service.key or "", credentials.partition(":")[2]}
    plain |= {value for _, value in parse_qsl(url.query) if len(value) >= _SHORTEST_QUERY_SECRET}
    forms = {form for text in plain for form in (text, quote(text, safe=""), text.replace("/", "\\/"), _json(text))}
    forms |= {_base64(text) for text in (credentials, *plain) if text}
    return tuple(sorted(forms - {""}, key=lambda form: (-len(form), form)))


def _json(text: str) -> str:
    return json.dumps(text)[1:-1]


def _inert(text: str) -> str:
    """The first `QUOTED` bytes of `text`, on one line, each character that is not to be seen as an escape."""
    line = " ".join(text[: 8 * QUOTED].split())
    start = line.encode("utf-8", "replace")[:QUOTED].decode("utf-8", "ignore")
    visible = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in start)
    return visible + ("…" if len(start) < len(line) or len(text) > 8 * QUOTED else "")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "(no known status)"


def _asked(header: str | None, wall: float) -> float | None:
    """The seconds that `Retry-After` asks for, None where it asks for nothing that can be understood."""
    if header is None:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        return max(parsedate_to_datetime(text).timestamp() - wall, 0.0)
    except (ValueError, TypeError, OverflowError):
        return None
