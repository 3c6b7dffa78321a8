from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.read.decode import decode, is_binary


@pytest.mark.spec("I3")
@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-be"])
def test_a_byte_order_mark_decides_and_is_no_text(encoding: str) -> None:
    marked = ("\ufeff" if encoding.endswith(("le", "be")) else "") + "Títle 故乡 🌍\r\n"
    decoded = decode(marked.encode(encoding))
    assert decoded.text == "Títle 故乡 🌍\r\n"
    assert decoded.certain


@pytest.mark.spec("I3")
def test_windows_1252_with_too_little_to_go_by_is_a_stated_guess() -> None:
    decoded = decode(b"caf\xe9 \x97 dash\n")
    assert decoded.text == "café — dash\n"
    assert (decoded.encoding, decoded.certain) == ("cp1252", False)
    assert "cp1252" in decoded.note
    assert "guess" in decoded.note


@pytest.mark.spec("I3")
@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Привет мир, как дела? Это текст на русском языке, и он не очень длинный.", "cp1251"),
        ("これはテストです。日本語の文章を正しく読み取ることができるかどうかを確かめます。", "cp932"),
        ("これはテストです。日本語の文章を正しく読み取ることができるかどうかを確かめます。", "euc_jp"),
        ("维基百科是一个自由内容的百科全书，任何人都可以编辑其中的条目，也可以参与讨论。", "gb18030"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy, a všichni ho slyšeli až za řekou. " * 3, "cp1250"),
    ],
)
def test_legacy_encodings_are_detected(text: str, encoding: str) -> None:
    decoded = decode(text.encode(encoding))
    assert decoded.text == text
    assert decoded.encoding in decoded.note


@pytest.mark.spec("I3")
def test_a_declared_charset_beats_a_guess_but_not_valid_utf8() -> None:
    assert decode("ключ".encode("koi8_r"), "koi8-r").text == "ключ"
    assert decode("ключ".encode(), "koi8-r").text == "ключ"
    assert decode("\u30c6\u30b9\u30c8".encode("iso2022_jp"), "iso-2022-jp").text == "\u30c6\u30b9\u30c8"
    assert decode(b"caf\xe9", "no-such-charset").text == "café"
    assert decode(b"\x93x\x94", "iso-8859-1").text == "“x”"  # as browsers read it


@pytest.mark.spec("I3")
def test_one_bad_byte_does_not_turn_utf8_into_another_encoding() -> None:
    decoded = decode("naïve façade œuvre ".encode() * 10 + b"\xff end")
    assert decoded.text == "naïve façade œuvre " * 10 + "\ufffd end"
    assert not decoded.certain
    assert "U+FFFD" in decoded.note


@pytest.mark.spec("I3")
def test_utf16_without_a_mark_is_seen_by_its_nuls() -> None:
    decoded = decode("Plain English, and a wörd.\n".encode("utf-16-le"))
    assert decoded.text == "Plain English, and a wörd.\n"
    assert not decoded.certain


@pytest.mark.spec("I3")
def test_nul_and_lone_surrogates_are_replaced_one_for_one() -> None:
    assert decode(b"a\0b").text == "a\ufffdb"
    assert decode(b"\xff\xfea\0\x00\xd8b\0").text == "a\ufffdb"


@pytest.mark.spec("I3")
@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["", "utf-8", "shift_jis", "utf-16", "x-unknown", "\0"]))
def test_any_bytes_give_text_that_sqlite_can_store(data: bytes, declared: str) -> None:
    text = decode(data, declared).text
    assert "\0" not in text
    text.encode("utf-8")  # raises on a lone surrogate
    is_binary(data)


@pytest.mark.spec("I3")
@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"), max_size=200))
def test_utf8_comes_back_as_it_was(text: str) -> None:
    assert decode(b"\xef\xbb\xbf" + text.encode()).text == text


@pytest.mark.spec("I2")
@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "OLE"),
        (b"PK\x03\x04\x14\x00", "ZIP"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "PNG"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"\x7fELF\x02\x01\x01\x00", "ELF"),
        (b"SQLite format 3\x00\x10\x00", "SQLite"),
        (b"BM\x46\x00\x00\x00\x00\x00\x00\x00\x36\x00\x00\x00\x28\x00\x00\x00", "binary"),
        (b"ID3\x04\x00\x00\x00\x00\x00\x23TSSE\x00\x00\x00\x0f\x00\x00\x03Lavf\x00", "binary"),
        (b"RIFF\x24\x08\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00", "binary"),
        (bytes(range(256)) * 4, "binary"),
    ],
)
def test_binaries_are_known_by_content(data: bytes, kind: str) -> None:
    assert kind in is_binary(data)


@pytest.mark.spec("I2")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"BM25 is a ranking function",
        b"ID3 is an algorithm that grows trees",
        b"GIF89a is a format",
        b"MZ",
        b"PK is a key",
        b"\x1b[31mred\x1b[0m log line\x07",
        b"one stray \x00 in a text",
        "Grüße".encode("utf-16"),
        "故郷".encode("euc_jp"),
        "Müller, Straße".encode("latin-1"),
        ("é" * 8192).encode()[:8193],  # the head ends within a character
    ],
)
def test_text_that_starts_like_a_binary_is_text(data: bytes) -> None:
    assert is_binary(data) == ""


@pytest.mark.spec("I3")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("txt/_ude_1.txt", "コンソール アプリケーション"),
        ("txt/chardet-_ude_1.txt", "羅生門"),
        ("txt/sample-chinese.txt", "維基媒體基金會"),
        ("txt/sample-french-1.txt", "NÉ LE 15 JANVIER 1622"),
        ("txt/fake-text-utf-16-le.txt", "This is a test document to use for unit tests."),
        ("csv/test_mskanji.csv", "髙橋淳,35,名古屋"),
    ],
)
def test_real_files(shared: Path, name: str, words: str) -> None:
    assert words in decode((shared / "data/files" / name).read_bytes()).text
