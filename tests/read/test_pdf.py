from __future__ import annotations

from pathlib import Path

import pytest

from ragcli.errors import NotSupported
from ragcli.read.formats import read
from ragcli.read.pdf import tidy
from tests.read.sources import one, pdf, request


@pytest.mark.spec("I4", "I13")
def test_pages_start_where_they_say() -> None:
    document = one("d/a.pdf", pdf(["First page", "", "Third page", "Fourth"]))
    assert document.text == "First page\n\n\n\nThird page\n\nFourth"
    assert len(document.pages) == 4
    assert [document.text[start:].split("\n")[0] for start in document.pages] == [
        "First page",
        "",
        "Third page",
        "Fourth",
    ]
    assert document.warnings == ("page 2 has no text",)
    assert (document.id, document.name, document.format) == ("d/a.pdf", "a.pdf", "pdf")


@pytest.mark.spec("I14")
def test_properties_become_title_metadata_and_times() -> None:
    info = "/Title (The tide gauge) /Author (Ada) /CreationDate (D:20061006163404-04'00') /ModDate (D:20070109)"
    document = one("a.pdf", pdf(["x"], info=info))
    assert (document.title, document.metadata) == ("The tide gauge", {"author": "Ada"})
    assert (document.created_at, document.updated_at) == ("2006-10-06T20:34:04Z", "2007-01-09T00:00:00Z")


@pytest.mark.parametrize(
    "title", ["untitled", "(anonymous)", "report.docx", "Microsoft Word - minutes.doc", "a", "Document1"]
)
def test_a_title_that_a_program_made_up_is_none(title: str) -> None:
    escaped = title.replace("(", "\\(").replace(")", "\\)")
    assert one("a.pdf", pdf(["x"], info=f"/Title ({escaped})")).title == ""


@pytest.mark.spec("I4", "I5")
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "malformed"),
        (b"%PDF-1.4 cut", "malformed"),
        (b"no PDF at all", "malformed"),
        (pdf(["x"] * 3)[:300], "malformed"),
        (pdf(["", ""]), "no text"),
    ],
)
def test_what_cannot_be_read_says_why(data: bytes, kind: str) -> None:
    with pytest.raises(NotSupported) as caught:
        list(read(request("d/a.pdf", data)))
    assert caught.value.kind == kind
    assert caught.value.message.startswith("d/a.pdf: ")


def test_a_pdf_is_known_by_content() -> None:
    assert one("report", pdf(["Found"])).format == "pdf"


def test_text_is_tidied() -> None:
    assert tidy("exam\ufffe\r\nple of a re\x02\nsult \r\n\x0bnext\x00\ufffd  \r\n") == "example of a result\nnext\ufffd"


# PDFium gives one character for the Arabic ligatures that the figure counts as two.
LIGATURES = {"right_to_left_03.pdf": 0.2}


@pytest.mark.spec("I4")
def test_real_files_have_the_pages_and_characters_that_others_count(shared: Path) -> None:
    folder = shared / "data/files/pdf"
    rows = [line.split("\t") for line in (folder.parent / "PDF_EXPECT.tsv").read_text().splitlines()[1:]]
    read_files = 0
    for name, pages, characters, *_ in rows:
        # It needs the password that its own text tells; the figure was counted with it.
        if int(characters) == 0 or name == "r6-user-password.pdf":
            continue
        document = one(name, (folder / name).read_bytes())
        printed = sum(not character.isspace() for character in document.text)
        assert len(document.pages) == int(pages), name
        assert printed == pytest.approx(int(characters), rel=LIGATURES.get(name, 0.03), abs=3), name
        read_files += 1
    assert read_files == 11


@pytest.mark.spec("I4", "I5")
@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("password.pdf", "encrypted"),
        ("r6-user-password.pdf", "encrypted"),
        ("MEDRPT-2024-PAT-3847_medical_report_scan.pdf", "no text"),
    ],
)
def test_real_files_that_cannot_be_read(shared: Path, name: str, kind: str) -> None:
    with pytest.raises(NotSupported) as caught:
        list(read(request(name, (shared / "data/files/pdf" / name).read_bytes())))
    assert caught.value.kind == kind


@pytest.mark.spec("I3")
def test_glyph_numbers_taken_for_letters_are_warned_of(shared: Path) -> None:
    document = one("a.pdf", (shared / "data/files/pdf/issue-791-non-unicode-cmap.pdf").read_bytes())
    assert document.warnings == ("page 1 may hold wrong letters: a font has no map to Unicode",)
    prose = one("b.pdf", (shared / "data/files/pdf/multi_page.pdf").read_bytes())
    assert prose.warnings == ()


def test_a_real_file_with_empty_pages(shared: Path) -> None:
    document = one("a.pdf", (shared / "data/files/pdf/layout-parser-paper-with-empty-pages.pdf").read_bytes())
    assert document.warnings == ("page 2 has no text", "page 3 has no text")
    assert "reuse of important innovations" in " ".join(document.text.split())  # a hyphen broke "important"
