"""Bytes become text: which encoding, how sure, and what is no text at all (spec I3).

Order: byte order mark; strict UTF-8; a declared charset (HTML); UTF-16 without a mark, by where its NULs lie; a guess
by charset-normalizer, corrected where it has too little to go by. A guess is always stated. Newlines are kept as they
are. NUL characters and lone surrogates, which SQLite can't store, become U+FFFD one for one, so that spans hold.

A file is binary by its content, never by its name alone: ``BM25 is…`` and ``ID3 is…`` start like a bitmap and an MP3
and are text. Which formats can be read is not known here (`formats`).
"""

from __future__ import annotations

import codecs
import re

import msgspec

REPLACEMENT = "\ufffd"
BYTE_ORDER_MARK = codecs.BOM_UTF8
HEAD = 8192  # bytes that tell text from binary
SAMPLE = 1 << 17  # bytes that a guess may look at: its cost must not grow with the file
FEW = 32  # characters beyond ASCII below which statistics say nothing

# UTF-32 first: its little-endian mark starts with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf_8"),
    (codecs.BOM_UTF32_LE, "utf_32_le"),
    (codecs.BOM_UTF32_BE, "utf_32_be"),
    (codecs.BOM_UTF16_LE, "utf_16_le"),
    (codecs.BOM_UTF16_BE, "utf_16_be"),
)

# Only signatures that hold a byte no text starts with; the others (BM, ID3, MZ, GIF8…) show by their control bytes.
_SIGNATURES = (
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "OLE file (legacy Office)"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"PK\x05\x06", "ZIP archive"),
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"\x1f\x8b\x08", "gzip archive"),
    (b"\x28\xb5\x2f\xfd", "Zstandard archive"),
    (b"\xfd7zXZ\x00", "XZ archive"),
    (b"7z\xbc\xaf\x27\x1c", "7z archive"),
    (b"\x7fELF", "ELF program"),
    (b"\xcf\xfa\xed\xfe", "Mach-O program"),
    (b"SQLite format 3\x00", "SQLite database"),
    (b"\x00asm", "WebAssembly module"),
    (b"\x1aE\xdf\xa3", "Matroska video"),
)

# Control characters that text has uses for: tab, newline, vertical tab, form feed, return, backspace, escape, ^Z.
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\v\f\r\b\x1b\x1a")
_NOT_SQLITE = re.compile("[\x00\ud800-\udfff]")

# Labels as browsers read them (WHATWG Encoding): the wider superset, because pages mislabel.
_WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "tis-620": "cp874",
}
_MULTIBYTE = frozenset({
    "big5", "big5hkscs", "cp932", "cp949", "cp950", "euc_jis_2004", "euc_jisx0213", "euc_jp", "euc_kr", "gb18030",
    "gb2312", "gbk", "johab", "shift_jis", "shift_jis_2004", "shift_jisx0213",
})  # fmt: skip
# Of encodings that give the same text, the one that people know.
_COMMON = ("cp1252", "euc_jp", "cp932", "gb18030", "big5", "cp949", "cp1251", "koi8_r", "cp1250", "latin_1")
_LATIN = re.compile("[\\x00-\u024f\u02c0-\u02df\u2000-\u20bf\u2122]*")
# UTF-8 and the wide encodings are settled before; EBCDIC turns any bytes into letters.
_UNASKED = [
    "cp037",
    "cp273",
    "cp424",
    "cp500",
    "cp875",
    "cp1026",
    "cp1140",
    "utf_7",
    "utf_8",
    "utf_16",
    "utf_16_le",
    "utf_16_be",
    "utf_32",
    "utf_32_le",
    "utf_32_be",
]


class Decoded(msgspec.Struct, frozen=True):
    """Text, the encoding it was read in, whether that is certain, and what to tell about it ("" = nothing)."""

    text: str
    encoding: str
    certain: bool = True
    note: str = ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """The note where the reading is a guess: what `Document.warnings` says."""
        return () if self.certain else (self.note,)


def clean(text: str) -> str:
    """The text with NULs and lone surrogates replaced one for one by U+FFFD."""
    if text.isascii():
        return text.replace("\0", REPLACEMENT) if "\0" in text else text
    return _NOT_SQLITE.sub(REPLACEMENT, text)


def is_wide(data: bytes) -> bool:
    """Whether the bytes start with the byte order mark of UTF-16 or UTF-32: no byte of them is a line feed then."""
    return any(data.startswith(mark) for mark, _ in _MARKS[1:])


def decode(data: bytes, declared: str = "") -> Decoded:
    """The text of `data`, without its byte order mark. Never raises; `declared` is a charset the document names."""
    if data[:1] in {b"\xef", b"\xff", b"\xfe", b"\x00"} and (marked := _by_mark(data)):
        return marked
    named = _codec(declared) if declared else ""
    if named.startswith("iso2022"):  # seven-bit: it would pass for ASCII
        return Decoded(clean(data.decode(named, "replace")), named)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return _legacy(data, named)
    return (_wide_without_mark(data) if "\0" in text else None) or Decoded(clean(text), "utf_8")


def _by_mark(data: bytes) -> Decoded | None:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _replacing(data[len(mark) :], encoding, "by its byte order mark")
    return None


def _replacing(data: bytes, encoding: str, why: str) -> Decoded:
    """Decoded in an encoding that is known; bytes that break it are replaced, and told."""
    try:
        return Decoded(clean(data.decode(encoding)), encoding)
    except UnicodeDecodeError as error:
        text = clean(data.decode(encoding, "replace"))
        note = f"read as {encoding} {why}; bytes that are no {encoding}, the first at {error.start}, became U+FFFD"
        return Decoded(text, encoding, certain=False, note=note)


def _codec(label: str) -> str:
    try:
        name = codecs.lookup(label.strip().strip("\"'")).name
    except (LookupError, ValueError, UnicodeError):
        return ""
    name = _WIDER.get(name, name)
    # A document that declares UTF-16 in bytes that could be read up to there is not UTF-16.
    return "" if name.replace("-", "_").startswith(("utf_", "base64", "hex", "rot13", "zlib", "bz2", "uu")) else name


def _legacy(data: bytes, named: str) -> Decoded:
    """Bytes that are no UTF-8: as declared, else broken UTF-8, UTF-16 without a mark, else the best guess."""
    if named:
        try:
            return Decoded(clean(data.decode(named)), named)
        except (UnicodeDecodeError, LookupError):
            pass
    return _broken_utf8(data) or _wide_without_mark(data) or _guess(data)


def _broken_utf8(data: bytes) -> Decoded | None:
    """UTF-8 with a few bad bytes: where good sequences outnumber them ten to one, no other encoding is likely."""
    text = data.decode("utf-8", "replace")
    bad = text.count(REPLACEMENT)
    good = len(text) - len(re.sub(r"[^\x00-\x7f]", "", text)) - bad
    return _replacing(data, "utf_8", "(nearly all of it is valid)") if good >= 10 * bad else None


def _wide_without_mark(data: bytes) -> Decoded | None:
    """UTF-16 without a mark, where every other byte of Latin text is NUL."""
    head = data[:HEAD]
    half = len(head) // 2
    low, high = head[0::2].count(0), head[1::2].count(0)
    if half < 4 or max(low, high) < 0.6 * half or min(low, high) > 0.02 * half:
        return None
    encoding = "utf_16_le" if high > low else "utf_16_be"
    note = f"read as {encoding}: a guess, it has no byte order mark"
    return Decoded(clean(data.decode(encoding, "replace")), encoding, certain=False, note=note)


def _guess(data: bytes) -> Decoded:
    """The most likely legacy encoding. Certain only with enough characters to go by and text that looks like one."""
    sample = data[: data.rfind(b"\n", 0, SAMPLE) + 1 or SAMPLE] if len(data) > SAMPLE else data
    encoding, sure = _best(sample)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        text, sure = data.decode(encoding, "replace"), False
    doubt = "detected" if sure else "an uncertain guess, too little to go by"
    return Decoded(clean(text), encoding, certain=sure, note=f"not UTF-8; read as {encoding}: {doubt}")


def _best(sample: bytes) -> tuple[str, bool]:
    beyond_ascii = len(sample.translate(None, bytes(range(128))))
    runs = sum(1 for _ in re.finditer(rb"[\x80-\xff]+", sample))
    isolated = beyond_ascii < 1.5 * runs  # single letters among ASCII: a Western text, not Cyrillic or Chinese
    if beyond_ascii < FEW and isolated:
        return _western(sample), False
    from charset_normalizer import from_bytes

    best = from_bytes(sample, cp_exclusion=_UNASKED).best()
    if best is None:
        return _western(sample), False
    alike = set(best.could_be_from_charset)
    encoding = next((name for name in _COMMON if name in alike), best.encoding)
    typical = best.coherence > 0.1 or (encoding in _MULTIBYTE and best.chaos < 0.02)
    if isolated and not typical and not _LATIN.fullmatch(str(best)):
        return _western(sample), False
    return encoding, typical and beyond_ascii >= FEW


def _western(sample: bytes) -> str:
    """Windows-1252, or Latin-1 where five bytes that Windows-1252 leaves undefined occur."""
    try:
        sample.decode("cp1252")
    except UnicodeDecodeError:
        return "latin_1"
    return "cp1252"


def is_binary(data: bytes) -> str:
    """What kind of binary file starts like this ("PNG image", "binary data"); "" for text. Looks at 8 KiB."""
    head = data[:HEAD]
    for signature, name in _SIGNATURES:
        if head.startswith(signature):
            return name
    if any(head.startswith(mark) for mark, _ in _MARKS) or not (controls := _count_controls(head)):
        return ""
    if _wide_without_mark(head):
        return ""
    return "binary data" if controls > _tolerated(head) else ""


def _count_controls(head: bytes) -> int:
    return len(head) - len(head.translate(None, _CONTROLS))


def _tolerated(head: bytes) -> float:
    """How many control bytes a text of this length may have: random bytes have a tenth, and are no UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        decoder.decode(head)  # not final: the head may end within a character
    except UnicodeDecodeError:
        return 0.02 * len(head)
    return max(0.1 * len(head), 1.0)
