"""HTML: the words of a page in reading order, by lexbor (selectolax). Blocks are set apart by blank lines.

Scripts, styles, templates and the page's furniture (navigation, asides, footers) are left out; a page that is nothing
else keeps its furniture. A table is one line a row, cells joined by ` | `; preformatted text is kept as it is. The
charset is the one of the byte order mark, else UTF-8 if it is valid, else the one that <meta> declares. Runs no script,
loads nothing, guesses no main article. Elements nested too deep are flattened, and told (`nesting`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ragcli.read.decode import decode
from ragcli.read.formats import name_of
from ragcli.read.metadata import iso_utc
from ragcli.read.nesting import DEEPEST, flattened
from ragcli.types import Document, Heading, Metadata, ReadRequest

if TYPE_CHECKING:
    from selectolax.lexbor import LexborHTMLParser, LexborNode

_NEVER = frozenset({
    "script", "style", "noscript", "template", "head", "svg", "math", "iframe", "object", "canvas", "audio", "video",
    "select", "button", "-comment", "!doctype",
})  # fmt: skip
_FURNITURE = frozenset({"nav", "aside", "footer"})
_ROLES = frozenset({"navigation", "search", "contentinfo", "complementary"})
_BLOCKS = frozenset({
    "address", "article", "blockquote", "body", "center", "dd", "details", "div", "dl", "dt", "fieldset", "figcaption",
    "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html", "legend", "li", "main",
    "menu", "nav", "aside", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "caption",
    "tr", "ul",
})  # fmt: skip
_TIGHT = frozenset({"li", "dt", "dd", "tr", "thead", "tbody", "tfoot", "caption", "summary", "legend", "figcaption"})
_LISTS = frozenset({"ul", "ol", "menu", "dl"})
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.IGNORECASE)
_CREATED = ("article:published_time", "date", "dc.date", "dcterms.created")
_UPDATED = ("article:modified_time", "last-modified", "dcterms.modified", "og:updated_time")


def read(request: ReadRequest) -> Iterator[Document]:
    """One document with its headings; `metadata` has author, description and keywords where the page names them."""
    from selectolax.lexbor import LexborHTMLParser

    declared = _CHARSET.search(request.data[:4096])
    decoded = decode(request.data, declared[1].decode("ascii", "ignore") if declared else "")
    html, dropped = flattened(decoded.text)
    page = LexborHTMLParser(html)
    words = extract(page.root, furniture=False)
    if not words.text.strip():
        words = extract(page.root, furniture=True)
    named = _named(page)
    relative = request.source.relative
    yield Document(
        id=relative,
        text=words.text,
        title=_title(page) or next((h.title for h in words.headings if h.level == 1), ""),
        name=name_of(relative),
        format="html",
        metadata=_metadata(named),
        headings=tuple(words.headings),
        created_at=next((time for key in _CREATED if (time := iso_utc(named.get(key)))), None),
        updated_at=next((time for key in _UPDATED if (time := iso_utc(named.get(key)))), None),
        warnings=(*decoded.warnings, *_of_dropped(dropped)),
    )


def _of_dropped(elements: int) -> list[str]:
    return [f"nested more than {DEEPEST} deep: the tags of {elements} elements below that were ignored"][:elements]


def _title(page: LexborHTMLParser) -> str:
    found = page.css_first("head title")
    return " ".join(found.text().split()) if found else ""


def _named(page: LexborHTMLParser) -> dict[str, str]:
    """The page's <meta> properties by lower-case name."""
    named: dict[str, str] = {}
    for node in page.css("head meta[content]"):
        attributes = node.attributes
        name = attributes.get("name") or attributes.get("property") or attributes.get("http-equiv") or ""
        named.setdefault(name.lower(), (attributes.get("content") or "").strip())
    return named


def _metadata(named: dict[str, str]) -> Metadata:
    return {key: named[key] for key in ("author", "description", "keywords") if named.get(key)}


class Words:
    """The text as it grows. `text` and `headings` are complete when the walk is."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.length = 0
        self.gap = 0  # newlines owed before the next word
        self.space = False  # a blank owed before the next word
        self.bars = 0  # cell borders owed before the next word; those of empty cells at a row's end are never paid
        self.headings: list[Heading] = []
        self.cells = 0  # of the row at hand
        self.fresh_cell = False  # nothing was put into the cell at hand
        self.row_empty = True

    @property
    def text(self) -> str:
        return "".join(self.parts)

    def owe(self, newlines: int) -> None:
        """The next word starts after at least this many newlines, unless it is the first of a cell."""
        if not self.fresh_cell:
            self.gap = max(self.gap, newlines)

    def put(self, words: str) -> None:
        """Words behind what is owed; no white space is owed at the very start."""
        owed = ("\n" * self.gap or " " * (self.space or self.bars > 0)) if self.parts else ""
        owed += "| " * self.bars
        self.parts += (owed, words)
        self.length += len(owed) + len(words)
        self.gap, self.space, self.bars, self.fresh_cell, self.row_empty = 0, False, 0, False, False

    def flow(self, raw: str) -> None:
        """Running text: white space collapses (CSS `white-space: normal`)."""
        words = " ".join(raw.split())
        if not words:
            self.space = True
            return
        self.space |= raw[0].isspace()
        self.put(words)
        self.space = raw[-1].isspace()

    def keep(self, raw: str) -> None:
        """Preformatted text, without the blank lines around it."""
        plain = raw.replace("\r\n", "\n")
        if plain.strip():
            self.put(plain.strip("\n") if self.gap or not self.parts else plain.rstrip("\n"))
            self.gap = len(plain) - len(plain.rstrip("\n"))

    def row(self, *, entering: bool) -> None:
        """A table row begins or ends."""
        self.cells, self.bars, self.fresh_cell, self.row_empty = 0, 0, False, True
        self.owe(1)
        self.space &= entering

    def cell(self) -> None:
        """A table cell begins."""
        if self.cells:
            self.bars += 1
            self.gap *= self.row_empty
        self.cells += 1
        self.fresh_cell = True


def extract(root: LexborNode | None, *, furniture: bool) -> Words:
    """The words below `root`. Walks without recursion: pages nest deeper than Python's stack."""
    words = Words()
    open_headings: list[tuple[int, int]] = []  # (parts, level) at which each began
    preformatted = 0
    todo: list[tuple[LexborNode, bool]] = [(root, True)] if root else []
    while todo:
        node, entering = todo.pop()
        tag = node.tag or ""
        if tag == "-text":
            (words.keep if preformatted else words.flow)(node.text_content or "")
            continue
        if entering and _is_left_out(node, tag, furniture=furniture):
            continue
        preformatted += (tag in {"pre", "textarea"}) * (1 if entering else -1)
        _edge(words, node, tag, entering=entering)
        if tag in _HEADINGS:
            _heading(words, open_headings, _HEADINGS[tag], entering=entering)
        if entering:
            todo.append((node, False))
            todo.extend((child, True) for child in _children_backwards(node))
    return words


def _children_backwards(node: LexborNode) -> Iterator[LexborNode]:
    child = node.last_child
    while child is not None:
        yield child
        child = child.prev


def _is_left_out(node: LexborNode, tag: str, *, furniture: bool) -> bool:
    if tag in _NEVER:
        return True
    attributes = node.attributes
    if not attributes:
        return not furniture and tag in _FURNITURE
    if "hidden" in attributes:
        return True
    return not furniture and (tag in _FURNITURE or attributes.get("role") in _ROLES)


def _edge(words: Words, node: LexborNode, tag: str, *, entering: bool) -> None:
    """What the start or the end of an element does to the lines."""
    if tag == "br":
        if entering:
            words.owe(min(words.gap + 1, 2))
    elif tag in {"td", "th"}:
        if entering:
            words.cell()
        else:
            words.space = True
    elif tag == "tr":
        words.row(entering=entering)
    elif tag in _BLOCKS:
        words.owe(1 if tag in _TIGHT or (tag in _LISTS and _is_item(node.parent)) else 2)


def _is_item(node: LexborNode | None) -> bool:
    return node is not None and node.tag in _TIGHT


def _heading(words: Words, opened: list[tuple[int, int]], level: int, *, entering: bool) -> None:
    if entering:
        opened.append((len(words.parts), level))
        return
    begun, level = opened.pop()
    written = words.parts[begun:]
    title = " ".join("".join(written).split())
    if title:
        start = words.length - sum(map(len, written)) + len(written[0])
        words.headings.append(Heading(start, level, title))
