from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.errors import NotSupported, ReadError
from ragcli.read.formats import EXTENSIONS, UNBUILT, format_of, read
from ragcli.types import Document
from tests.read.sources import one, request


@pytest.mark.spec("I4")
@pytest.mark.parametrize(
    ("name", "data", "expected"),
    [
        ("a.md", b"# x", "markdown"),
        ("A.MDX", b"# x", "markdown"),
        ("d.d/README", b"x", "text"),
        ("a.xyz", b"x", "text"),
        ("notes", b"<!DOCTYPE html><p>x", "html"),
        ("a.tsv", b"a\tb", "csv"),
        ("a.py", b"x = 1", "code"),
        ("Makefile", b"all:\n", "code"),
        ("a.ndjson", b"{}", "jsonl"),
        (".profile", b"x", "text"),
        ("a.md", b"%PDF-1.7 x", "pdf"),
    ],
)
def test_a_format_by_name_and_content(name: str, data: bytes, expected: str) -> None:
    assert format_of(request(name, data)) == expected


@pytest.mark.spec("I4")
@pytest.mark.parametrize("extension", sorted(UNBUILT))
def test_a_format_without_a_reader_is_a_skip_that_names_it(extension: str) -> None:
    with pytest.raises(NotSupported, match=f"{UNBUILT[extension]} is not supported yet") as caught:
        list(read(request(f"d/a.{extension.upper()}", b"{\\rtf1 some text}")))
    assert caught.value.kind == "unsupported"


@pytest.mark.spec("I2")
def test_a_binary_is_a_skip_whatever_its_name() -> None:
    with pytest.raises(NotSupported, match=r"a\.md: PNG image, not text") as caught:
        list(read(request("a.md", b"\x89PNG\r\n\x1a\n\x00")))
    assert caught.value.kind == "binary"


def test_each_format_has_its_reader() -> None:
    for name in {*EXTENSIONS.values(), "code", "text"}:
        assert callable(import_module(f"ragcli.read.{name}").read)


@pytest.mark.spec("I4")
def test_source_code_is_unchanged_and_knows_its_language() -> None:
    document = one("src/a.py", b"def f():\r\n\treturn 1\n")
    assert document.text == "def f():\r\n\treturn 1\n"
    assert (document.format, document.metadata) == ("code", {"language": "python"})


@pytest.mark.spec("I3")
def test_an_uncertain_encoding_is_a_warning_of_the_document() -> None:
    assert "cp1252" in one("a.txt", b"caf\xe9 \x97 dash\n").warnings[0]


@pytest.mark.parametrize("extension", sorted(EXTENSIONS))
def test_an_empty_file_never_breaks_a_reader(extension: str) -> None:
    for data in (b"", b"\n"):
        if extension != "pdf":
            texts = [item.text for item in read(request(f"a.{extension}", data)) if isinstance(item, Document)]
            assert "".join(texts).strip() == ""


@pytest.mark.spec("I5")
@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(EXTENSIONS)),
    st.binary(max_size=200) | st.text('#-<>{}[]":,|\n ab\0é', max_size=120).map(str.encode),
)
def test_any_bytes_give_documents_or_a_read_error(extension: str, data: bytes) -> None:
    try:
        found = list(read(request(f"a.{extension}", data)))
    except ReadError as error:
        assert error.message.startswith(f"a.{extension}: ")
        return
    for item in found:
        if isinstance(item, Document):
            (item.text + item.title + item.id).encode("utf-8")
            assert "\0" not in item.text
            assert all(0 <= heading.start < len(item.text) for heading in item.headings)


def test_real_files_end_in_documents_or_reasons(shared: Path) -> None:
    for path in sorted((shared / "data/files").rglob("*.*")):
        try:
            found = list(read(request(path.name, path.read_bytes())))
        except ReadError as error:
            assert path.name in error.message
        else:
            assert found
