"""How deep HTML may nest before it is parsed (spec I38): browsers stop at 512 elements (Blink), and so does this.

For each block that begins, an HTML parser looks through all the elements that are open (HTML Standard, 13.2.6.4.7), so
a hundred thousand `<div>` take a minute. Here one pass over the tags drops those below the limit; their text stays.
Which elements are open is followed as the Standard has it, but for what no page of that size does: it may count too
many, seldom too few. Parses nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

DEEPEST = 512  # elements within each other
SMALL = 4096  # tags that are parsed in no time however they nest

_START = re.compile(r"<(?:!--|(/?)([a-zA-Z][^\s/>]*))")
_RAW = frozenset({"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes"})
# Void elements, and those whose end may be left out because the next one of the kind ends them.
_UNCOUNTED = frozenset({
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen", "link",
    "meta", "param", "source", "track", "wbr", "html", "head", "body", "p", "li", "dt", "dd", "tr", "td", "th", "tbody",
    "thead", "tfoot", "caption", "colgroup", "option", "optgroup",
})  # fmt: skip
_FORMATTING = frozenset({
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u"
})  # fmt: skip
_SPECIAL = frozenset({
    "address", "article", "aside", "blockquote", "button", "center", "details", "dialog", "dir", "div", "dl",
    "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup",
    "listing", "main", "menu", "nav", "ol", "pre", "search", "section", "select", "summary", "ul", "table", "object",
    "marquee", "applet", "template",
})  # fmt: skip
_WALLS = frozenset({"table", "object", "marquee", "applet", "template", "svg", "math"})  # an end tag stops at these


def flattened(html: str) -> tuple[str, int]:
    """The page without the tags of elements deeper than `DEEPEST`, each a blank now; and how many elements those were.

    Linear in the length of `html`.
    """
    if html.count("<") <= SMALL:
        return html, 0
    opened = _Open()
    parts: list[str] = []
    kept = dropped = 0
    for start, end, name, closing in _tags(html):
        if opened.end(name) if closing else opened.start(name, ends_itself=html[end - 2] == "/"):
            continue
        parts += (html[kept:start], " ")
        kept = end
        dropped += not closing
    return "".join((*parts, html[kept:])) if dropped else html, dropped


def _tags(html: str) -> Iterator[tuple[int, int, str, bool]]:
    """(start, end, lower-case name, whether it is an end tag) of each tag; none of comments and scripts."""
    at = 0
    while found := _START.search(html, at):
        name = (found[2] or "").lower()
        at = html.find(">", found.end()) + 1 if name else html.find("-->", found.end()) + 3
        if at <= found.start():
            return  # to the end of the file it is one tag, or one comment
        if not name:
            continue
        yield found.start(), at, name, bool(found[1])
        if name in _RAW and not found[1]:
            end = re.compile(f"</{name}", re.IGNORECASE).search(html, at)
            if end is None:
                return
            at = end.start()


class _Open:
    """The elements that are open, and how many of each name were dropped and wait for their end tags."""

    def __init__(self) -> None:
        self.stack: list[str] = []
        self.dropped: Counter[str] = Counter()
        self.foreign = 0  # open svg and math: only within them does `/>` end an element

    def start(self, name: str, *, ends_itself: bool) -> bool:
        """Whether the start tag may stay."""
        if name in _UNCOUNTED or (ends_itself and self.foreign):
            return True
        if len(self.stack) >= DEEPEST:
            self.dropped[name] += 1
            return False
        self.stack.append(name)
        self.foreign += name in {"svg", "math"}
        return True

    def end(self, name: str) -> bool:
        """Whether the end tag may stay: that of a dropped element goes too."""
        if name in _UNCOUNTED:
            return True
        if self.dropped[name]:
            self.dropped[name] -= 1
            return False
        at = self._reached(name)
        if at is not None:
            closed = self.stack[at:]
            self.stack[at:] = closed[1:] if name in _FORMATTING else ()
            self.foreign -= sum(one in {"svg", "math"} for one in closed) if name not in _FORMATTING else 0
        return True

    def _reached(self, name: str) -> int | None:
        """Where in the stack the element is that the end tag ends; None where something stands between them."""
        for at in range(len(self.stack) - 1, -1, -1):
            one = self.stack[at]
            if one == name:
                return at
            if one in _WALLS or (one in _SPECIAL and name not in _SPECIAL and name not in _FORMATTING):
                return None
        return None
