"""Metadata on its way into the index and back: every kind of value comes out as it went in (spec I10).

A document keeps its metadata as JSON in which a value that JSON has no form for is a one-key object: `{"$date": …}`,
`{"$moment": …}`, `{"$number": …}` (an integer beyond 64 bits, nan, inf). For the filters each value, and each member of
a list, is also a row of the table `metadata`, in a form in which equal values are equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from math import isfinite, isnan

import msgspec

from ragcli.filters import kind_of, moment
from ragcli.types import Metadata, MetadataValue, Scalar

Row = tuple[str, str, str | int | float]  # key, kind, value

_LARGEST = 2**63


def encode(metadata: Metadata) -> str | None:
    """The metadata as JSON; None where there is none."""
    if not metadata:
        return None
    return msgspec.json.encode({key: _encoded(value) for key, value in metadata.items()}).decode()


def _encoded(value: MetadataValue) -> object:
    if isinstance(value, tuple | list):
        return [_encoded(member) for member in value]
    if isinstance(value, datetime):
        return {"$moment": value.isoformat()}
    if isinstance(value, date):
        return {"$date": value.isoformat()}
    if isinstance(value, int | float) and not (isfinite(value) and -_LARGEST <= value < _LARGEST):
        return {"$number": repr(value)}
    return value


def decode(text: str | None) -> dict[str, MetadataValue]:
    """What `encode` was given; lists come back as tuples."""
    return {key: _decoded(value) for key, value in msgspec.json.decode(text).items()} if text else {}


def _decoded(value: object) -> MetadataValue:
    if isinstance(value, list):
        return tuple(_scalar(member) for member in value)
    return None if value is None else _scalar(value)


def _scalar(value: object) -> Scalar:
    if not isinstance(value, dict):
        return value  # type: ignore[return-value]  # JSON's own scalars
    ((kind, text),) = value.items()
    if kind == "$date":
        return date.fromisoformat(text)
    if kind == "$moment":
        return datetime.fromisoformat(text)
    return float(text) if "." in text or "n" in text or "e" in text else int(text)


def rows(metadata: Metadata) -> list[Row]:
    """The rows of the table `metadata`, each once. Null, nan and an empty list give none: nothing equals them."""
    return list(dict.fromkeys(_rows(metadata)))


def _rows(metadata: Metadata) -> Iterator[Row]:
    for key, value in metadata.items():
        for member in value if isinstance(value, tuple | list) else (value,):
            if member is not None and not (isinstance(member, float) and isnan(member)):
                yield key, kind_of(member), comparable(member)


def comparable(value: Scalar) -> str | int | float:
    """A form that SQLite holds exactly, equal for equal values of one kind: 3 and 3.0, a date and its midnight."""
    if isinstance(value, date):
        return moment(value).astimezone(UTC).isoformat()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        return int(value) if -_LARGEST <= value < _LARGEST else str(value)
    return value
