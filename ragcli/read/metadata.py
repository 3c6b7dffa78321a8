"""What a document says of itself becomes typed metadata (spec I10) and times (spec I14).

Nested maps flatten to dotted keys, lists become tuples, dates stay dates; a string that looks like a date stays a
string. Times are read from the keys that authors use for them and given in ISO 8601 UTC; one without a zone counts as
UTC, a day as its midnight. Nothing is invented: what can't be read as a time gives none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

from ragcli.read.decode import clean
from ragcli.types import Metadata, MetadataValue, Scalar

DEEPEST = 16  # levels of nested maps; below them a value is kept as its text
CREATED = ("created_at", "created", "date", "published", "publishdate", "published_at")
UPDATED = ("updated_at", "updated", "modified", "last_modified", "lastmod", "modified_at")
_TIMES = frozenset(CREATED + UPDATED)

_PDF_TIME = re.compile(
    r"D:(\d{4})(\d\d)?(\d\d)?(\d\d)?(\d\d)?(\d\d)?(?:(Z)|([+-])(\d\d)'?(?:(\d\d)'?)?)?"
)  # ISO 32000-1, 7.9.4


def flatten(values: Mapping[Any, object], prefix: str = "", depth: int = 0) -> dict[str, MetadataValue]:
    """Typed metadata under dotted keys: `{"a": {"b": [1]}}` gives `{"a.b": (1,)}`."""
    flat: dict[str, MetadataValue] = {}
    for key, value in values.items():
        name = clean(f"{prefix}{key}")
        if isinstance(value, str):
            flat[name] = clean(value)
        elif isinstance(value, dict) and depth < DEEPEST:
            flat.update(flatten(value, f"{name}.", depth + 1))
        elif isinstance(value, list | tuple):
            flat[name] = tuple(_scalar(item) for item in value if item is not None)
        else:
            flat[name] = None if value is None else _scalar(value)
    return flat


def _scalar(value: object) -> Scalar:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, int | float | date):  # a bool is an int, a datetime a date: each stays what it is
        return value
    return clean(_as_json(value))


def _as_json(value: object) -> str:
    import msgspec

    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError):
        return str(type(value).__name__)


def times(metadata: Metadata) -> tuple[str | None, str | None]:
    """(created, updated) in ISO 8601 UTC, from the keys in `CREATED` and `UPDATED`; case of keys is ignored."""
    folded = {name: value for key, value in metadata.items() if (name := key.lower()) in _TIMES}
    if not folded:
        return None, None
    return _first_time(folded, CREATED), _first_time(folded, UPDATED)


def _first_time(metadata: Metadata, keys: tuple[str, ...]) -> str | None:
    return next((found for key in keys if (found := iso_utc(metadata.get(key)))), None)


def iso_utc(value: object) -> str | None:
    """`2024-05-01T00:00:00Z` for a date, a datetime, or a string in ISO 8601; None for anything else."""
    if isinstance(value, str):
        value = _parsed(value.strip())
    if not isinstance(value, datetime):
        return f"{value.isoformat()}T00:00:00Z" if isinstance(value, date) else None
    try:
        moment = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        return None
    return moment.replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def _parsed(text: str) -> date | None:
    if not text[:4].isdigit() or len(text) < 10:  # "2024" alone is no day
        return None
    try:
        return datetime.fromisoformat(text) if len(text) > 10 else date.fromisoformat(text)
    except ValueError:
        return None


def pdf_time(text: str) -> str | None:
    """ISO 8601 UTC from a PDF date string, `D:20161006163404-04'00'`; None where it is none."""
    found = _PDF_TIME.match(text.strip())
    if not found:
        return None
    year, month, day, hour, minute, second = (int(part) if part else None for part in found.groups()[:6])
    offset = timedelta(hours=int(found[9] or 0), minutes=int(found[10] or 0))
    try:
        zone = timezone(-offset if found[8] == "-" else offset)
        return iso_utc(datetime(year or 0, month or 1, day or 1, hour or 0, minute or 0, second or 0, tzinfo=zone))
    except ValueError:
        return None
