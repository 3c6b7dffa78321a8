"""Text that came from a document, made harmless to look at (spec C13).

A terminal obeys control characters; bidirectional controls and zero-width characters make text read as what it is
not. Each is replaced by a visible escape: `\\x1b`, `<U+202E>`. For human formats only: data formats keep the text.
Zero-width (non-)joiners stay between two characters outside ASCII, where Persian, Indic scripts and emoji need them.
"""

from __future__ import annotations

import functools
import re

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
_INVISIBLE = "\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
_SURROGATES = "\ud800-\udfff"
_NAMED = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}


@functools.cache
def _hostile() -> re.Pattern[str]:
    joiners = r"(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
    return re.compile(f"[{_CONTROLS}{_INVISIBLE}{_SURROGATES}]|{joiners}")


def _visible(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    return _NAMED.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"<U+{code:04X}>")


def passage(text: str) -> str:
    """`text` with every hostile character shown as an escape; line ends stay line ends, tabs become spaces."""
    unified = text.replace("\r\n", "\n").expandtabs(4)
    if unified.isascii() and unified.replace("\n", "").isprintable():
        return unified
    return _hostile().sub(_visible, unified)


def line(text: str) -> str:
    """`text` on one line: as `passage`, with line ends and tabs shown as `\\n` and `\\t`."""
    if text.isascii() and text.isprintable():
        return text
    return _hostile().sub(_visible, text).replace("\n", "\\n").replace("\t", "\\t")
