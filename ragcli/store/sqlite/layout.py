"""How posting lists lie in their rows: what writing and searching have to agree on."""

from __future__ import annotations

from array import array
from collections import Counter
from struct import Struct, pack

BLOCK = 1 << 16  # chunk ids of one block share their upper bits
INLINE = 8  # the longest list that stands in its term's row: most terms are rare
SATURATED = 255  # a term frequency that says: look in the overflow
INLINE_ENTRY = Struct("<IHBB")  # block, low 16 bits, impact, term frequency


def from_inline(data: bytes) -> tuple[bytes, bytes, bytes, bytes]:
    """`heads`, `ids`, `impacts`, `tfs` of a list that stood inline."""
    blocks, lows, impact, tfs = zip(*INLINE_ENTRY.iter_unpack(data), strict=True)
    heads = b"".join(pack("<II", block, count) for block, count in Counter(blocks).items())
    return heads, array("H", lows).tobytes(), bytes(impact), bytes(tfs)
