"""By definition: source code is cut between top-level functions and classes, and inside a large one between its parts.

Python is parsed (`ast`, nothing is run); of other languages, and of Python that doesn't parse, a definition is what
starts in the first column and goes on until the next such line: with its comments and decorators above, its closing
brace or `end` below. Inside a definition that is over the size, the cut is at the least indented line in reach.
Does not know any grammar but Python's.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import TYPE_CHECKING

import msgspec

from ragcli.chunk import recursive
from ragcli.chunk.breaks import last_line
from ragcli.chunk.measure import TokenizerSource, measure
from ragcli.chunk.pack import Packer, ink_start, middle
from ragcli.options import Unit
from ragcli.types import Document, Span

if TYPE_CHECKING:
    import ast

LARGEST_PARSED = 1_000_000  # characters; Python's syntax tree takes some hundred bytes for each
HEAD = re.compile(
    r"^(?![\s})\]{]|(?:end|else|elif|elsif|except|rescue|ensure|finally|catch|then|do|done|fi|esac)\b)(@|#|//|/\*|--)?",
    re.MULTILINE,
)
INDENT = re.compile(r"\n([ \t]*)(?=[^\s})\]])")


class Code(msgspec.Struct, frozen=True):
    """Definitions, whole ones as many as fit; falls back to lines (spec I20). No overlap between definitions."""

    size: int = 1600
    overlap: int = 160
    unit: Unit = "characters"
    tokenizer: TokenizerSource | None = None

    def __call__(self, document: Document) -> list[Span]:
        packer = Packer(
            size=self.size,
            overlap=self.overlap,
            measure=measure(self.unit, self.tokenizer),
            cut=recursive.cut,
            resume=recursive.resume,
            keep_indent=True,
        )
        if packer.measure.fits(document.text, self.size):
            return packer.document(document.text)
        places = _Definitions(definitions(document))
        packer = msgspec.structs.replace(packer, cut=places.cut, resume=places.resume)
        return packer.document(document.text)


class _Definitions(msgspec.Struct, frozen=True):
    starts: list[int]

    def cut(self, text: str, done: int, limit: int) -> int:
        """Before the last definition that starts in reach, else before the least indented line in the second half."""
        start = self._last(ink_start(text, limit, min(limit + 8, len(text))))
        return start if start > done else _shallowest(text, middle(done, limit), limit)

    def resume(self, text: str, low: int, end: int) -> int:
        """No overlap between definitions; inside one the first line's start."""
        ink = ink_start(text, end, len(text))
        if self._last(ink) == ink:
            return end
        line = text.find("\n", low - 1, end)
        return recursive.resume(text, low, end) if line < 0 else line + 1

    def _last(self, place: int) -> int:
        return self.starts[bisect_right(self.starts, place) - 1] if self.starts and self.starts[0] <= place else 0


def _shallowest(text: str, low: int, high: int) -> int:
    best, depth = 0, high
    for match in INDENT.finditer(text, low, high):
        if match.start() > low and match.end(1) - match.start(1) <= depth:
            best, depth = match.start(), match.end(1) - match.start(1)
    return best or last_line(text, low, high) or recursive.cut(text, low, high)


def definitions(document: Document) -> list[int]:
    """Where each top-level definition starts, ascending, in characters of the text."""
    if document.metadata.get("language") == "python" or document.name.endswith((".py", ".pyi")):
        starts = _python(document.text)
        if starts:
            return starts
    return _first_column(document.text)


def _first_column(text: str) -> list[int]:
    starts: list[int] = []
    after_lead = -1  # where the line after a comment or decorator starts: it belongs to that line
    for match in HEAD.finditer(text):
        if match.start() != after_lead:
            starts.append(match.start())
        after_lead = text.find("\n", match.start()) + 1 if match[1] else -1
    return starts


def _python(text: str) -> list[int]:
    import ast
    import warnings

    if len(text) > LARGEST_PARSED:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the document's own invalid escapes
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    lines = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text))]
    return sorted({_with_comments(text, lines, _first_line(node)) for node in tree.body})


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _with_comments(text: str, lines: list[int], line: int) -> int:
    while line > 1 and text.startswith("#", lines[line - 2]):
        line -= 1
    return lines[line - 1]
