"""The documents of the hits, best first, each once: one path a line, for `xargs`, editors and loops.

A path with a control character or line end in it is quoted as git quotes it (`"a\\nb.md"`); with `null` paths are
exact and each ends in NUL. A record of a collection has no path of its own and shows its document id.
"""

from __future__ import annotations

from collections.abc import Iterator

from ragcli.cli.formats import Reply

_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def render(reply: Reply) -> Iterator[bytes]:
    """Each path once, in the order of the hits."""
    chunks = (hit.chunk for hit in reply.result.ranking.hits)
    for path in dict.fromkeys(chunk.path or chunk.document_id for chunk in chunks):
        yield path.encode() + b"\0" if reply.null else (_quoted(path) + "\n").encode()


def _quoted(path: str) -> str:
    if not any(_is_control(character) for character in path):
        return path
    return '"' + "".join(_escaped(character) for character in path) + '"'


def _escaped(character: str) -> str:
    if character in _NAMED:
        return _NAMED[character]
    return "".join(f"\\{byte:03o}" for byte in character.encode()) if _is_control(character) else character


def _is_control(character: str) -> bool:
    return ord(character) < 0x20 or 0x7F <= ord(character) < 0xA0 or character in "\u2028\u2029"
