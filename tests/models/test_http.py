"""The HTTP client against a real server on 127.0.0.1: retries, pauses, pace, and what no message may show."""

from __future__ import annotations

import gzip
import logging
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from email.utils import formatdate
from itertools import pairwise

import pytest

from ragcli.errors import RagcliError, RemoteError, UsageError
from ragcli.models import http
from ragcli.models.http import FIRST_PAUSE, LONGEST_PAUSE, Clock, HttpClient, Limits, Service, StatusError
from ragcli.types import Event
from tests.models.clock import Time
from tests.services import KEY, EmbeddingService, Received, Reply, error

WALL = 1_700_000_000.0
OK = Reply(body={"ok": True})


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def time() -> Time:
    return Time(wall=lambda: WALL)


@pytest.fixture
def service() -> Iterator[EmbeddingService]:
    with EmbeddingService(rule=lambda request: OK) as running:
        yield running


def client(
    url: str, time: Time, *, key: str | None = KEY, events: list[Event] | None = None, **limits: float
) -> HttpClient:
    settings = {"timeout": 5.0, "retries": 3} | limits
    heard = events if events is not None else []
    return HttpClient(
        Service(name="toy", base_url=url, key=key, hints={401: "check the key"}),
        Limits(settings["timeout"], int(settings["retries"]), settings.get("requests_per_minute")),
        clock=time.clock,
        listen=heard.append,
    )


def failure(http: HttpClient, kind: type[RagcliError] = RemoteError) -> RagcliError:
    with pytest.raises(kind) as caught:
        http.post("x", {"a": 1})
    assert "\n" not in caught.value.message
    return caught.value


# --- one request


def test_json_goes_out_and_comes_back(service: EmbeddingService, time: Time) -> None:
    http = client(service.url + "/", time)
    assert http.post("things", {"ä": [1, 2.5]}) == {"ok": True}
    assert http.get("things") == {"ok": True}
    http.close()
    post, get = service.requests
    assert (post.method, post.path, post.body) == ("POST", "/v1/things", {"ä": [1, 2.5]})
    assert (get.method, get.body) == ("GET", None)
    assert post.headers["authorization"] == f"Bearer {KEY}"
    assert post.headers["content-type"] == "application/json"
    assert time.slept == []


def test_a_query_of_the_base_url_stays_behind_the_path(service: EmbeddingService, time: Time) -> None:
    client(f"{service.url}?api-version=2024-02", time, key=None).post("x", {})
    assert service.requests[0].path == "/v1/x?api-version=2024-02"
    assert "authorization" not in service.requests[0].headers


def test_credentials_of_the_url_are_basic_authentication(service: EmbeddingService, time: Time) -> None:
    url = service.url.replace("//", "//me:p%40ss@")
    client(url, time, key=None).post("x", {})
    assert service.requests[0].headers["authorization"] == "Basic bWU6cEBzcw=="  # base64 of me:p@ss


def test_numbers_that_are_no_json_are_read(service: EmbeddingService, time: Time) -> None:
    service.script(Reply(body=b"[NaN, -Infinity, 1]"))
    first, second, third = client(service.url, time).post("x", {})
    assert first != first
    assert (second, third) == (float("-inf"), 1)


@pytest.mark.parametrize("body", [b"<html>\n<h1>Welcome to the hotel</h1>", b"", b"[1", b"\xff\xfe"])
def test_an_answer_that_is_no_json_is_quoted(service: EmbeddingService, time: Time, body: bytes) -> None:
    service.script(Reply(body=body))
    said = failure(client(service.url, time)).message
    assert said.startswith(f"toy: POST {service.url}/x: the answer is not JSON: ")
    assert said.endswith(
        {b"<html>\n<h1>Welcome to the hotel</h1>": "<html> <h1>Welcome to the hotel</h1>", b"": "it is empty"}.get(
            body, ""
        )
    )
    assert len(service.requests) == 1


# --- retries


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 529])
def test_what_may_pass_is_tried_again(service: EmbeddingService, time: Time, status: int) -> None:
    service.script(error(status, "busy"), error(status, "busy"))
    assert client(service.url, time).post("x", {}) == {"ok": True}
    assert time.slept == [0.75 * FIRST_PAUSE, 0.75 * FIRST_PAUSE * 2]


@pytest.mark.parametrize("status", [301, 307, 400, 401, 403, 404, 405, 410, 413, 422])
def test_what_will_not_pass_is_an_error_at_once(service: EmbeddingService, time: Time, status: int) -> None:
    service.script(error(status, "no"))
    caught = failure(client(service.url, time), StatusError)
    assert isinstance(caught, StatusError)
    assert caught.exit_code == 5
    assert caught.status == status
    assert caught.message.startswith(f"toy: POST {service.url}/x: {status} ")
    assert caught.hint == ("check the key" if status == 401 else "")
    assert (len(service.requests), time.slept) == (1, [])


def test_the_last_failure_is_told_with_the_number_of_tries(service: EmbeddingService, time: Time) -> None:
    service.rule = lambda request: error(503, "no worker")
    events: list[Event] = []
    caught = failure(client(service.url, time, events=events), StatusError)
    assert caught.message == (
        f'toy: POST {service.url}/x: 503 Service Unavailable: {{"error": {{"message": "no worker", '
        '"type": "invalid_request_error"}} (tried 4 times)'
    )
    assert len(service.requests) == 4
    assert [event.stage for event in events] == ["waiting for toy"] * 3
    assert events[0].detail.endswith("again in 0.4 s (retry 1 of 3)")


def test_a_pause_doubles_up_to_its_longest_and_half_of_it_is_chance(service: EmbeddingService, time: Time) -> None:
    service.rule = lambda request: error(500, "")
    failure(client(service.url, time, retries=9))
    assert time.slept == [0.75 * min(FIRST_PAUSE * 2**n, LONGEST_PAUSE) for n in range(9)]


@pytest.mark.spec("M5")
@pytest.mark.parametrize(
    ("header", "pause"),
    [("1", 1.0), ("120", 120.0), (formatdate(WALL + 7, usegmt=True), 7.0)],
)
def test_retry_after_is_waited_for(service: EmbeddingService, time: Time, header: str, pause: float) -> None:
    service.script(error(429, "slow down", Retry_After=header), error(503, "", Retry_After=header))
    assert client(service.url, time).post("x", {}) == {"ok": True}
    assert time.slept == [pause, pause]


@pytest.mark.parametrize("header", ["0", "-5", "soon", formatdate(WALL - 60, usegmt=True), "", "1e9"])
def test_a_retry_after_that_says_nothing_leaves_our_own_pause(
    service: EmbeddingService, time: Time, header: str
) -> None:
    service.script(error(429, "", Retry_After=header))
    client(service.url, time).post("x", {})
    assert time.slept == [0.75 * FIRST_PAUSE]


@pytest.mark.parametrize("header", ["3600", formatdate(WALL + 3600, usegmt=True)])
def test_nobody_waits_for_an_hour(service: EmbeddingService, time: Time, header: str) -> None:
    service.script(error(429, "quota", Retry_After=header))
    said = failure(client(service.url, time)).message
    assert said.endswith("it asks to wait 3600 s")
    assert time.slept == []


def test_a_connection_that_ends_without_a_word_is_tried_again(service: EmbeddingService, time: Time) -> None:
    service.script(Reply(status=None))
    assert client(service.url, time).post("x", {}) == {"ok": True}
    assert len(time.slept) == 1


def test_nobody_there_is_named_after_all_tries(time: Time) -> None:
    with EmbeddingService() as gone:
        url = gone.url
    said = failure(client(url, time)).message
    assert said.startswith(f"toy: POST {url}/x: no answer: ")
    assert said.endswith("(tried 4 times)")
    assert len(time.slept) == 3


def test_https_is_spoken_where_the_url_says_so(service: EmbeddingService, time: Time) -> None:
    """The service speaks plain HTTP, so there is no handshake."""
    said = failure(client(service.url.replace("http:", "https:"), time, retries=0)).message
    assert said.startswith(f"toy: POST https://{service.address}/v1/x: no answer: ")
    assert "SSL" in said
    assert service.requests == []


def test_an_answer_that_does_not_come_in_time_is_tried_again(service: EmbeddingService, time: Time) -> None:
    service.script(Reply(delay=30.0), Reply(delay=30.0))
    said = failure(client(service.url, time, timeout=0.05, retries=1)).message
    assert said == f"toy: POST {service.url}/x: no answer within 0.05 s (tried 2 times)"


def test_a_service_that_breaks_off_is_tried_again(service: EmbeddingService, time: Time) -> None:
    service.script(Reply(body=b"not gzip", headers={"Content-Encoding": "gzip"}))
    assert client(service.url, time).post("x", {}) == {"ok": True}


def test_an_interruption_passes_through_a_pause(service: EmbeddingService, time: Time) -> None:
    def interrupted(event: threading.Event, seconds: float) -> bool:
        raise KeyboardInterrupt

    service.rule = lambda request: error(500, "")
    http = HttpClient(Service(name="toy", base_url=service.url), clock=Clock(wait=interrupted))
    with pytest.raises(KeyboardInterrupt):
        http.post("x", {})
    assert len(service.requests) == 1


def test_an_interruption_passes_through_a_request(service: EmbeddingService, time: Time) -> None:
    def rule(request: Received) -> Reply:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        return Reply(delay=30.0)

    service.rule = rule
    with pytest.raises(KeyboardInterrupt):
        client(service.url, time, timeout=30.0).post("x", {})
    assert len(service.requests) == 1


def test_closing_ends_a_pause_of_another_thread(service: EmbeddingService) -> None:
    service.rule = lambda request: error(429, "later", Retry_After="100")
    paused = threading.Event()
    http = HttpClient(Service(name="toy", base_url=service.url), listen=lambda event: paused.set())
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(failure(http).message))
    thread.start()
    paused.wait(30)
    http.close()
    thread.join(30)
    assert said == ["toy: closed before the answer came"]
    assert failure(http).message == said[0]
    assert len(service.requests) == 1


# --- limits of a whole request


@pytest.fixture
def dripping() -> Iterator[Callable[[bytes], str]]:
    """Starts a server that sends `start` and then a byte every 20 ms, until the test is over; its URL."""
    ended = threading.Event()
    threads: list[threading.Thread] = []

    def serve(listener: socket.socket, start: bytes) -> None:
        with listener:
            while not ended.is_set():
                with suppress(OSError):
                    connection, _ = listener.accept()
                    with connection:
                        connection.sendall(start)
                        while not ended.wait(0.02):
                            connection.sendall(b"x")

    def started(start: bytes) -> str:
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(0.1)
        threads.append(threading.Thread(target=serve, args=(listener, start)))
        threads[-1].start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}/v1"

    yield started
    ended.set()
    for thread in threads:
        thread.join(30)


@pytest.mark.parametrize(
    "start",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",  # its end is the end of the connection
        b"HTTP/1.1 200 OK\r\nx: ",
    ],
)
def test_an_answer_that_drips_ends_and_is_tried_again(
    dripping: Callable[[bytes], str], time: Time, start: bytes
) -> None:
    said = failure(client(dripping(start), time, timeout=0.1, retries=1)).message
    assert said.endswith("/v1/x: no whole answer within 0.5 s (tried 2 times)")
    assert time.slept == [0.75 * FIRST_PAUSE]


@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_that_is_too_large_is_not_asked_for_again(
    service: EmbeddingService, time: Time, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(http, "LARGEST", 2**20)
    service.script(Reply(body=b'"' + b"x" * (2**20 - 2) + b'"'))
    assert len(client(service.url, time).post("x", {})) == 2**20 - 2
    packed = gzip.compress(b" " * (2**20 + 1))
    for reply in (Reply(status, b" " * (2**20 + 1)), Reply(status, packed, {"Content-Encoding": "gzip"})):
        service.script(reply)
        assert failure(client(service.url, time)).message.endswith("/x: the answer is larger than 1 MiB")
    assert len(service.requests) == 3


# --- pace


def test_requests_are_evenly_spaced_and_a_retry_is_one(time: Time) -> None:
    with EmbeddingService(rule=lambda request: OK, now=lambda: time.at) as service:
        http = client(service.url, time, requests_per_minute=30)
        http.post("x", {})
        time.at += 0.5
        http.post("x", {})
        service.script(error(500, ""))
        http.post("x", {})
        time.at += 100
        http.post("x", {})
        at = [request.at for request in service.requests]
    assert at == [0.0, 2.0, 4.0, 6.0, 106.0]
    assert all(later - earlier >= 60 / 30 for earlier, later in pairwise(at))


# --- proxies


def test_a_proxy_is_used_and_no_proxy_goes_past_it(
    service: EmbeddingService, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    with EmbeddingService(rule=lambda request: Reply(body={"by": "proxy"})) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://{proxy.address}")
        assert client("http://nowhere.invalid/v1", time).post("x", {}) == {"by": "proxy"}
        assert proxy.requests[0].path == "http://nowhere.invalid/v1/x"
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert client(service.url, time).post("x", {}) == {"ok": True}


def test_a_proxy_that_can_not_be_used_is_named(time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "gopher://me:hunter2@proxy")
    caught = failure(client("http://nowhere.invalid/v1", time), UsageError)
    assert "hunter2" not in str(caught)
    assert "HTTP_PROXY" in caught.hint


# --- what no message shows


def test_what_a_service_says_is_cut_and_made_inert(service: EmbeddingService, time: Time) -> None:
    service.script(Reply(400, "\x1b[31mred\u202e\r\n".encode() + "ä".encode() * 500))
    said = failure(client(service.url, time)).message
    start = said.removeprefix(f"toy: POST {service.url}/x: 400 Bad Request: ")
    assert start == "\\x1b[31mred\\u202e " + "ä" * ((200 - 12) // 2) + "…"  # 12 bytes stand before the first ä


@pytest.mark.parametrize("status", [200, 401, 500])
def test_a_key_that_is_sent_back_is_hidden(
    service: EmbeddingService, time: Time, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    echo = f"{'.' * 190}{KEY} {KEY.replace('/', chr(92) + '/')} sk-test-3f9%2FaB%2Bc".encode()
    service.rule = lambda request: Reply(status, echo)
    events: list[Event] = []
    http = client(service.url, time, events=events)
    caught = failure(http)
    told = [caught, caught.hint, vars(caught), http, Service(name="toy", base_url=service.url, key=KEY), events]
    shown = f"{told!r} {caught} {caplog.text}"
    assert "(hidden" in shown
    assert "sk-test" not in shown
    assert caught.__cause__ is None


def test_credentials_and_query_of_the_url_are_hidden(service: EmbeddingService, time: Time) -> None:
    url = service.url.replace("//", "//me:hunter22@") + "?token=secret-of-mine"
    service.rule = lambda request: Reply(500, f"{request.path} {request.headers['authorization']}".encode())
    http = client(url, time, key=None)
    shown = f"{failure(http)} {http!r} {Service(name='toy', base_url=url)!r}"
    assert f"{service.url}/x" in shown
    assert not any(secret in shown for secret in ("hunter22", "bWU6aHVudGVyMjI=", "secret-of-mine", "me:"))


def test_a_redirect_is_not_followed_and_told(service: EmbeddingService, time: Time) -> None:
    service.script(Reply(307, b"", {"Location": "https://other.example/v1/x?token=1"}))
    assert failure(client(service.url, time)).message.endswith("it redirects to https://other.example/v1/x")


@pytest.mark.parametrize(
    "url", ["localhost:11434/v1", "ftp://host/v1", "http://", "http://[::1/v1", "http://a b/", "http://h:99999/"]
)
def test_a_base_url_that_can_not_be_used_is_refused(url: str, time: Time) -> None:
    with pytest.raises(UsageError, match="the base URL must be http://HOST/PATH or https://HOST/PATH, not"):
        client(url, time)


@pytest.mark.parametrize("key", ["sk-secret\n", "sk secret", "sk-sécret"])
def test_a_key_that_can_not_be_one_is_refused_unseen(key: str, time: Time) -> None:
    with pytest.raises(UsageError, match="the key holds a space") as caught:
        client("http://127.0.0.1:9/v1", time, key=key)
    assert "secret" not in str(caught.value)


def test_a_key_and_credentials_are_one_too_many(time: Time) -> None:
    with pytest.raises(UsageError, match="a key, and credentials in the base URL") as caught:
        client("http://me:hunter22@127.0.0.1:9/v1", time)
    assert "hunter22" not in str(caught.value)
