"""CSV and TSV: one line a record, `column: value; column: value`, so that a value is found with its column's name.

The delimiter is the one of ``, ; tab |`` that cuts the first lines into the most even columns. A record that does not
fit the header, or a table without one, is its values joined by ` | `. The first line is the header. Where no field
holds a newline, line numbers of the text are those of the file. Evaluates no formula.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from itertools import islice

from ragcli.read.decode import decode
from ragcli.read.formats import extension_of, name_of
from ragcli.types import Document, ReadRequest

DELIMITERS = (",", ";", "\t", "|")
SNIFFED = 50  # lines
SWALLOWED = 131_072  # characters of a last field from which on a quote that nobody closed is no table


def read(request: ReadRequest) -> Iterator[Document]:
    """One document of one line a record; a file that the parser refuses goes in as text with a warning."""
    decoded = decode(request.data)
    relative = request.source.relative
    warnings = decoded.warnings
    try:
        with _fields_up_to(len(decoded.text)):
            delimiter = delimiter_of(relative, list(islice(StringIO(decoded.text, newline=""), SNIFFED)))
            text = "\n".join(render(_rows(decoded.text, delimiter)))
    except csv.Error as error:
        text, warnings = decoded.text, (*warnings, f"not read as a table ({error}): read as plain text")
    yield Document(id=relative, text=text, name=name_of(relative), format="csv", warnings=warnings)


@contextmanager
def _fields_up_to(characters: int) -> Iterator[None]:
    """The csv module's limit is one of the process: raised here, and put back."""
    before = csv.field_size_limit(max(characters, csv.field_size_limit()))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _rows(text: str, delimiter: str) -> list[list[str]]:
    """Raises: csv.Error where a quote that is never closed swallows much of the file."""
    lines = csv.reader(StringIO(text, newline=""), delimiter=delimiter)
    rows, before, at = [], 0, 0
    for row in lines:
        rows.append(row)
        before, at = at, lines.line_num
    if rows and max(map(len, rows[-1]), default=0) > SWALLOWED:
        rest = islice(StringIO(text, newline=""), before, None)
        for _ in csv.reader(rest, delimiter=delimiter, strict=True):
            pass
    return rows


def delimiter_of(name: str, lines: Sequence[str]) -> str:
    """The delimiter of a table by its first lines; a tab for `.tsv` unless the first lines have none."""
    sample = [line for line in lines if line.strip()]
    if extension_of(name) in {"tsv", "tab"} and any("\t" in line for line in sample):
        return "\t"
    return max(DELIMITERS, key=lambda delimiter: _evenness(sample, delimiter))


def _evenness(sample: Sequence[str], delimiter: str) -> tuple[float, int]:
    """(share of lines with the commonest number of columns, that number); (0, 0) where nothing is cut."""
    widths = Counter(len(row) for row in csv.reader(sample, delimiter=delimiter) if row)
    if not widths:
        return 0.0, 0
    width, lines = widths.most_common(1)[0]
    return (lines / sum(widths.values()), width) if width > 1 else (0.0, 0)


def render(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of the text, one a row; blank rows stay blank lines."""
    first = next((index for index, row in enumerate(rows) if any(row)), len(rows))
    names = [_flat(cell) for cell in rows[first]] if first < len(rows) else []
    named = _is_header(names) and first + 1 < len(rows)
    return [
        _record(names, row) if named and index > first and len(row) == len(names) else _joined(row)
        for index, row in enumerate(rows)
    ]


def _is_header(names: Sequence[str]) -> bool:
    """Names: none empty, none twice, none a number."""
    return len(names) > 1 and all(names) and len(set(names)) == len(names) and not any(map(_is_number, names))


def _is_number(cell: str) -> bool:
    return cell.lstrip("+-").replace(".", "", 1).replace(",", "").isdigit()


def _record(names: Sequence[str], row: Sequence[str]) -> str:
    return "; ".join(f"{name}: {value}" for name, cell in zip(names, row, strict=True) if (value := _flat(cell)))


def _joined(row: Sequence[str]) -> str:
    return " | ".join(_flat(cell) for cell in row)


def _flat(cell: str) -> str:
    return " ".join(cell.split())
