"""PDF, page by page, by PDFium: the text layer, and what the file says of itself.

Pages are joined by a blank line; `Document.pages` holds where each starts. A hyphen that only breaks a line is undone
(PDFium marks it U+FFFE). Encrypted, damaged and image-only files are a `NotSupported` that says so; a page without text
among others is a warning. No OCR, no embedded files, no scripts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from ragcli.errors import NotSupported
from ragcli.read.decode import clean
from ragcli.read.formats import name_of
from ragcli.read.metadata import pdf_time
from ragcli.types import Document, ReadRequest

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfTextPage

BETWEEN = "\n\n"  # between pages
SAMPLED = 100  # characters of a page that are looked at
GUESSED = 0.2  # share of them without a map to Unicode above which the page is suspect
_PASSWORD = 4  # FPDF_ERR_PASSWORD
_SOFT_HYPHEN = re.compile("[\ufffe\x02]\n?")
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\uffff]")
# Titles that producers write when nobody gave one.
_NO_TITLE = re.compile(
    r"\(?(?:anonymous|untitled|unspecified|title|none|null)\)?|(?:microsoft (?:word|excel|powerpoint) - )?[^\s]*"
    r"\.(?:docx?|pptx?|xlsx?|exe|dvi|tex|ps|pdf|indd|qxd|rtf|txt|html?|pages)|untitled[ -]?\d*|document\d*",
    re.IGNORECASE,
)


def read(request: ReadRequest) -> Iterator[Document]:
    """One document with its pages.

    Raises:
        NotSupported: `kind` "encrypted", "malformed" or "no text".
    """
    relative = request.source.relative
    document = _open(request)
    try:
        pages, warnings = _pages(document)
        properties = document.get_metadata_dict()
    finally:
        document.close()
    if not any(pages):
        raise NotSupported(f"{relative}: {_count(len(pages))} without a text layer (scanned?)", kind="no text")
    warnings += [f"page {number} has no text" for number, page in enumerate(pages, 1) if not page]
    yield Document(
        id=relative,
        text=BETWEEN.join(pages),
        title=_title(properties, name_of(relative)),
        name=name_of(relative),
        format="pdf",
        metadata=_metadata(properties),
        pages=tuple(_starts(pages)),
        created_at=pdf_time(properties.get("CreationDate", "")),
        updated_at=pdf_time(properties.get("ModDate", "")),
        warnings=tuple(warnings),
    )


def _open(request: ReadRequest) -> PdfDocument:
    import pypdfium2

    try:
        return pypdfium2.PdfDocument(request.data)
    except pypdfium2.PdfiumError as error:
        relative = request.source.relative
        if getattr(error, "err_code", None) == _PASSWORD:
            raise NotSupported(
                f"{relative}: encrypted, it needs a password", "save a copy without the password", kind="encrypted"
            ) from error
        raise NotSupported(
            f"{relative}: not a PDF that can be opened (damaged or cut short)", kind="malformed"
        ) from error


def _pages(document: PdfDocument) -> tuple[list[str], list[str]]:
    """The text of each page, and what to warn of: a damaged page, or one whose letters are not known for sure."""
    import pypdfium2

    pages, warnings = [], []
    for number in range(len(document)):
        try:
            text, guessed = _page(document, number)
        except pypdfium2.PdfiumError:
            text, guessed = "", False
            warnings.append(f"page {number + 1} is damaged")
        pages.append(text)
        if guessed and text:
            warnings.append(f"page {number + 1} may hold wrong letters: a font has no map to Unicode")
    return pages, warnings


def _page(document: PdfDocument, number: int) -> tuple[str, bool]:
    page = document[number]
    try:
        words = page.get_textpage()
        try:
            return tidy(words.get_text_range()), _is_guessed(words)
        finally:
            words.close()
    finally:
        page.close()


def _is_guessed(words: PdfTextPage) -> bool:
    """Whether many characters have no map to Unicode (PDFium then takes the glyph's number for a letter)."""
    from pypdfium2.raw import FPDFText_HasUnicodeMapError

    count = words.count_chars()
    places = range(0, count, max(count // SAMPLED, 1))
    unknown = [place for place in places if FPDFText_HasUnicodeMapError(words, place) == 1]
    return len(unknown) > GUESSED * len(places)


def tidy(text: str) -> str:
    """PDFium's text with plain newlines, line-break hyphens undone, control characters out, no blanks at line ends."""
    text = _SOFT_HYPHEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
    text = clean(_CONTROL.sub("", text))
    return "\n".join(line.rstrip() for line in text.split("\n")).strip()


def _starts(pages: Sequence[str]) -> Iterator[int]:
    return accumulate((len(page) + len(BETWEEN) for page in pages[:-1]), initial=0)


def _title(properties: Mapping[str, str], name: str) -> str:
    title = " ".join(clean(properties.get("Title", "")).split())
    meaningful = len(title) > 2 and not _NO_TITLE.fullmatch(title) and title != name.rpartition(".")[0]
    return title if meaningful else ""


def _metadata(properties: Mapping[str, str]) -> dict[str, str]:
    """Author, subject and keywords, where someone wrote them."""
    kept = {key.lower(): clean(properties.get(key, "")).strip() for key in ("Author", "Subject", "Keywords")}
    return {key: value for key, value in kept.items() if value and not _NO_TITLE.fullmatch(value)}


def _count(pages: int) -> str:
    return "1 page" if pages == 1 else f"{pages} pages"
