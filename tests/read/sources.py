"""Requests made of a name and bytes, and minimal PDF files written by hand (ISO 32000-1)."""

from __future__ import annotations

from collections.abc import Sequence

from ragcli.read.formats import read
from ragcli.types import Document, ReadRequest, Source


def request(name: str, data: bytes, first_line: int = 1) -> ReadRequest:
    source = Source(root="/r", relative=name, location=f"/r/{name}", size=len(data), mtime_ns=0)
    return ReadRequest(source=source, data=data, first_line=first_line)


def one(name: str, data: bytes) -> Document:
    """The only document of a source."""
    (document,) = read(request(name, data))
    assert isinstance(document, Document)
    return document


def pdf(pages: Sequence[str], *, info: str = "") -> bytes:
    """A PDF with one line of ASCII text a page, in Helvetica; "" makes an empty page."""
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
    contents = [f"BT /F1 12 Tf 72 720 Td ({page}) Tj ET".encode() if page else b"" for page in pages]
    return _file(contents, [font], info)


def identity_h_pdf(text: str) -> bytes:
    """A PDF whose text is glyph numbers of a CID font (Identity-H), readable only by its ToUnicode map."""
    codes = "".join(f"{index:04x}" for index, _ in enumerate(text, 1))
    chars = "\n".join(f"<{index:04x}> <{ord(char):04x}>" for index, char in enumerate(text, 1))
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def\n"
        "1 begincodespacerange <0000> <ffff> endcodespacerange\n"
        f"{len(text)} beginbfchar\n{chars}\nendbfchar endcmap end end"
    ).encode()
    # The page's objects take 3 (page) and 4 (contents); fonts start at 5.
    fonts = [
        b"<< /Type /Font /Subtype /Type0 /BaseFont /Song /Encoding /Identity-H /DescendantFonts [6 0 R]"
        b" /ToUnicode 7 0 R >>",
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Song /DW 1000 /FontDescriptor 8 0 R"
        b" /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(cmap), cmap),
        b"<< /Type /FontDescriptor /FontName /Song /Flags 4 /FontBBox [0 0 1000 1000] /ItalicAngle 0 /Ascent 800"
        b" /Descent -200 /CapHeight 700 /StemV 80 >>",
    ]
    return _file([f"BT /F1 12 Tf 72 720 Td <{codes}> Tj ET".encode()], fonts, "")


def _file(contents: Sequence[bytes], fonts: Sequence[bytes], info: str) -> bytes:
    first_font = 3 + 2 * len(contents)
    kids = " ".join(f"{3 + 2 * index} 0 R" for index in range(len(contents)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(contents)} >>".encode(),
    ]
    for index, content in enumerate(contents):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {4 + 2 * index} 0 R"
            f" /Resources << /Font << /F1 {first_font} 0 R >> >> >>".encode()
        )
        objects.append(b"<< /Length %d >>\nstream\n%b\nendstream" % (len(content), content))
    objects += [*fonts, f"<< {info} >>".encode()]
    return _with_table(objects)


def _with_table(objects: Sequence[bytes]) -> bytes:
    data, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    trailer = b"trailer << /Size %d /Root 1 0 R /Info %d 0 R >>" % (size, len(objects))
    return data + b"xref\n0 %d\n0000000000 65535 f \n%b%b\nstartxref\n%d\n%%%%EOF" % (size, table, trailer, len(data))
