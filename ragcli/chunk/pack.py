"""The one loop behind every strategy: take as much as fits, cut at the best place, take up again within the overlap.

Keeps the invariants (spec I21) whatever the strategy says: only white space is left out; no chunk is over the size;
starts and ends ascend; neighbours share at most the overlap; no grapheme cluster is cut, unless one alone is over the
size, and then it is cut between code points (a single code point of more tokens than the size stays whole). A chunk
covers at least half of what it could add to the chunk before, unless the strategy wants shorter ones, so the work is
linear in the text for a given size and overlap.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from ragcli.chunk import graphemes
from ragcli.chunk.measure import Measure
from ragcli.types import Span

# (text, done, limit) -> a place in (done, limit], 0 = none. `done`: where what no chunk holds yet starts.
Cut = Callable[[str, int, int], int]
# (text, low, end) -> where in [low, end) the next chunk may start again; `end` = no overlap.
Resume = Callable[[str, int, int], int]

INK = re.compile(r"\S")
LARGEST_INDENT = 80  # characters; more is layout, not structure


def ink_start(text: str, start: int, stop: int) -> int:
    """Where the first character that is no white space starts, with the cluster that it belongs to; `stop` if none."""
    found = INK.search(text, start, stop)
    return graphemes.floor(text, start, found.start()) if found else stop


def ink_end(text: str, start: int, stop: int) -> int:
    """Where the last character that is no white space ends, with the cluster that it belongs to; `start` if none."""
    end = start + len(text[start:stop].rstrip())
    return end if end in (start, stop) else graphemes.ceiling(text, start, end, stop)


def middle(done: int, limit: int) -> int:
    """The low end of the window in which a strategy looks for a cut."""
    return (done + limit) // 2


class Packer(msgspec.Struct, frozen=True, kw_only=True):
    """Cuts a span of text into chunks of at most `size`, in units of `measure`."""

    size: int
    overlap: int
    measure: Measure
    cut: Cut
    resume: Resume
    keep_indent: bool = False  # a chunk that starts with a line starts with its indentation

    def document(self, text: str) -> list[Span]:
        """The chunks of a whole text: one when it fits, none when it is blank."""
        if not self.measure.fits(text, self.size):
            return self.spans(text, 0, len(text))
        if text and not (text[0].isspace() or text[-1].isspace()):
            return [(0, len(text))]  # most documents
        start = self._start(text, 0, len(text))
        end = ink_end(text, start, len(text))
        return [(start, end)] if start < end else []

    def spans(self, text: str, start: int, stop: int) -> list[Span]:
        """The chunks of `text[start:stop]`, ascending; both ends are grapheme boundaries."""
        stop = ink_end(text, start, stop)
        begin = fresh = self._start(text, start, stop)
        done = ink_start(text, begin, stop)
        spans: list[Span] = []
        while begin < stop:
            cut = self._cut(text, begin, done, stop)
            if cut <= done:  # what comes next doesn't fit behind the overlap, or behind its own indentation
                begin = fresh if begin < fresh else done
                continue
            end = ink_end(text, begin, cut)
            if end > begin:  # a cluster over the size may begin with white space
                spans.append((begin, end))
            fresh = self._start(text, cut, stop)
            done = ink_start(text, fresh, stop)
            begin = self._next(text, begin, end, fresh) if done < stop else stop
        return spans

    def _start(self, text: str, start: int, stop: int) -> int:
        ink = ink_start(text, start, stop)
        if not self.keep_indent or ink == stop:
            return ink
        line = text.rfind("\n", start, ink) + 1 or start
        at_line = line == 0 or text[line - 1] == "\n"
        return line if at_line and ink - line <= min(LARGEST_INDENT, self.size // 2) else ink

    def _cut(self, text: str, begin: int, done: int, stop: int) -> int:
        """The end of the chunk that starts at `begin`, past `done`; `done` itself when only less overlap can help."""
        limit = self.measure.reach(text, begin, stop, self.size)
        while limit > done:
            cut = stop if limit >= stop else self._place(text, begin, done, limit)
            if cut <= done:
                break
            length = self.measure.of(text, begin, ink_end(text, begin, cut))
            if length <= self.size:
                return cut
            limit = begin + min(cut - begin - 1, (cut - begin) * self.size // length)
        return done if begin < done else self._inside(text, begin, limit)

    def _place(self, text: str, begin: int, done: int, limit: int) -> int:
        place = graphemes.floor(text, begin, self.cut(text, done, limit) or limit)
        return place if place > done else graphemes.floor(text, begin, limit)

    def _inside(self, text: str, begin: int, limit: int) -> int:
        """A cut inside a cluster that is over the size by itself."""
        while limit > begin + 1 and self.measure.of(text, begin, limit) > self.size:
            limit -= 1
        return max(limit, begin + 1)

    def _next(self, text: str, begin: int, end: int, fresh: int) -> int:
        """Where the chunk after `begin, end` starts: inside it by at most the overlap, else at `fresh`."""
        low = self.measure.back(text, begin + 1, end, self.overlap) if self.overlap else end
        while low < end:
            place = graphemes.ceiling(text, begin, self.resume(text, low, end), end)
            start = self._start(text, place, end)
            if start >= end:
                break
            length = self.measure.of(text, start, end)
            if length <= self.overlap:
                return start
            low = max(start + 1, end - (end - start) * self.overlap // length)
        return fresh


def everywhere(text: str, done: int, limit: int) -> int:  # noqa: ARG001 - a Cut
    """The cut of those who care for no place: as far as it goes."""
    return limit


def exactly(text: str, low: int, end: int) -> int:  # noqa: ARG001 - a Resume
    """The whole overlap, wherever it starts."""
    return low
