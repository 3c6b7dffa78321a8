"""One file over HTTP into a partial file, taken up where an earlier try ended (owner of the download's httpx2).

A connection that breaks is tried again as long as each try brings at least one byte. Waits are short, since there are
other sources. Checks no hash: `pull` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ragcli.errors import RemoteError

if TYPE_CHECKING:
    import httpx2

CONNECT_SECONDS = 5.0
SILENCE_SECONDS = 10.0  # without a byte
PIECE = 1024 * 1024  # bytes

Report = Callable[[int, int, str], None]  # bytes done, bytes in all, of what


class Remote(msgspec.Struct, frozen=True):
    """A file elsewhere: its address, how many bytes it has, what to send along."""

    address: str
    size: int
    headers: Mapping[str, str] = {}


@contextmanager
def client() -> Iterator[httpx2.Client]:
    """A client for plain addresses, which takes proxies and certificates from the environment, as httpx2 does."""
    import httpx2

    with opened(httpx2.Client) as session, session:
        yield session


@contextmanager
def opened(make: Callable[[], httpx2.Client]) -> Iterator[httpx2.Client]:
    """What `make` gives.

    Raises: RemoteError where the environment names a proxy that can't be used.
    """
    try:
        session = make()
    except (ValueError, ImportError) as error:  # an unknown scheme; SOCKS without its package
        raise RemoteError(_first_line(error)) from error
    yield session


def download(session: httpx2.Client, remote: Remote, partial: Path, report: Report) -> None:
    """Bring what is at `remote` into `partial`, going on from what is there.

    Raises:
        RemoteError: no answer, an answer that is no file, or one that ends early; the message says which, and after
            how many bytes.
        OSError: `partial` can't be written.
    """
    import httpx2

    size = remote.size
    while (had := _size(partial)) < size:
        try:
            _append(session, remote, partial, report)
            reason = "the answer ended early"
        except httpx2.TimeoutException as error:
            reason = _late(error)
        except (httpx2.TransportError, httpx2.InvalidURL, httpx2.TooManyRedirects) as error:
            reason = _first_line(error)
        got = _size(partial)
        if got < size and got <= had:
            raise RemoteError(f"{reason} ({got:,} of {size:,} bytes here)" if got else reason)


def _append(session: httpx2.Client, remote: Remote, partial: Path, report: Report) -> None:
    import httpx2

    start, size = _size(partial), remote.size
    asked = {**remote.headers, "Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
    timeout = httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS)
    with session.stream("GET", remote.address, headers=asked, timeout=timeout, follow_redirects=True) as answer:
        if answer.status_code not in {200, 206}:
            raise RemoteError(f"HTTP {answer.status_code} {answer.reason_phrase}".rstrip())
        resumed = answer.status_code == 206 and _starts_at(answer.headers.get("content-range", ""), start)
        done = start if resumed else 0
        with partial.open("ab" if resumed else "wb") as file:
            for piece in answer.iter_bytes():  # as they come: what a broken connection brought is kept
                done += len(piece)
                if done > size:
                    raise RemoteError(f"it is longer than {size:,} bytes")
                file.write(piece)
                report(done, size, partial.name)


def _starts_at(content_range: str, start: int) -> bool:
    return content_range.startswith(f"bytes {start}-")


def _late(error: httpx2.TimeoutException) -> str:
    import httpx2

    if isinstance(error, httpx2.ConnectTimeout):
        return f"no connection in {CONNECT_SECONDS:.0f} s"
    return f"no byte for {SILENCE_SECONDS:.0f} s"


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
