"""Metadata conditions as written in a shell, and what they mean (spec R9, I10): the reference for the store's SQL.

Owns the grammar of `--filter` and `--tag`::

    key=value         text, taken as it stands:    lang=de      year=2024 is the text "2024"
    key:=json         typed:                       year:=2024   draft:=true   name:="Ann"
    key:=2024-05-01   a date (unquoted ISO 8601; 2024-05-01T10:00:00Z is a moment); in quotes it is text
    path=GLOB         of --filter: the document id; `*` and `?` match `/` too, `[abc]` one of these characters

and the comparison of values: kinds first, then values. The text "3" never equals the number 3, true never equals 1,
1 equals 1.0. A date equals the moment of its midnight; a moment without a zone is UTC. A value that is a list matches
when one of its members does. Does not search: every arm of a store applies conditions itself, before its cut to k.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime
from typing import Literal

import msgspec

from ragcli.errors import ExpressionError, did_you_mean, shortened
from ragcli.options import Condition
from ragcli.types import Metadata, MetadataValue, Scalar

Kind = Literal["text", "number", "boolean", "date"]

PATH_KEY = "path"  # the one key that is no tag: the document id, matched as a glob
LARGEST_INTEGER = 2**63 - 1  # what SQLite, and most readers of JSON, hold exactly as an integer

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_ISO_MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?([Zz]|[+-]\d{2}:?\d{2})?")
_PLURALS: Mapping[str, str] = {"text": "text", "number": "numbers", "boolean": "true or false", "date": "dates"}
_EXAMPLE = "write key=value for text, key:=3, key:=true or key:=2024-05-01 for other kinds"


def parse_filter(text: str) -> Condition:
    """The condition that `--filter TEXT` states.

    Raises:
        ExpressionError: no `=`, no key, no such JSON or date, or a value that can't be compared (a list, null).
    """
    key, value, typed = _pair(text, "--filter")
    if key == PATH_KEY and typed:
        raise ExpressionError(f"--filter {shortened(text)}: path takes a glob", "write path=docs/*.md")
    if value is None or isinstance(value, tuple):
        raise ExpressionError(f"--filter {shortened(text)}: compare with one value", "several --filter must all match")
    return Condition(key, value)


def parse_tag(text: str) -> tuple[str, MetadataValue]:
    """Key and value that `--tag TEXT` gives to a document; of `key:=` also null, and a list (as a tuple).

    Raises:
        ExpressionError: as for `parse_filter`, and for a JSON object.
    """
    key, value, _ = _pair(text, "--tag")
    return key, value


def _pair(text: str, flag: str) -> tuple[str, MetadataValue, bool]:
    place = f"{flag} {shortened(text)}"
    key, equals, value = text.partition("=")
    typed = key.endswith(":")
    key = key.removesuffix(":").strip()
    if not (equals and key):
        raise ExpressionError(f"{place}: no {'key before' if equals else ''} `=`".replace("  ", " "), _EXAMPLE)
    _check_unicode(text, flag)
    return key, _typed(value.strip(), place) if typed else value, typed


def _check_unicode(text: str, flag: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ExpressionError(f"{flag} {shortened(ascii(text))}: not valid UTF-8") from None


def _typed(text: str, place: str) -> MetadataValue:
    try:
        moment = iso_date(text)
    except ValueError:
        raise ExpressionError(f"{place}: there is no such date or time", "dates are written 2024-05-01") from None
    return moment if moment is not None else _from_json(text, place)


def iso_date(text: str) -> date | datetime | None:
    """The date or moment that `text` is in ISO 8601's extended form; None when it has another form.

    Raises:
        ValueError: the form is right, but there is no such day or time.
    """
    if _ISO_DATE.fullmatch(text):
        return date.fromisoformat(text)
    return datetime.fromisoformat(text.upper()) if _ISO_MOMENT.fullmatch(text) else None


def _from_json(text: str, place: str) -> MetadataValue:
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        if "out of range" in str(error):
            raise _too_large(place) from None
        raise ExpressionError(f"{place}: not JSON", f"for text write key=value; {_EXAMPLE}") from None
    except RecursionError:
        raise ExpressionError(f"{place}: lists inside lists are no value", _EXAMPLE) from None
    members = value if isinstance(value, list) else [value]
    for member in members:
        _check_member(member, place, nested=isinstance(value, list))
    return tuple(members) if isinstance(value, list) else value


def _check_member(value: object, place: str, *, nested: bool) -> None:
    if isinstance(value, dict | list) or (nested and value is None):
        raise ExpressionError(f"{place}: a value is text, a number, true, false or a date, or a list of these")
    if isinstance(value, int) and abs(value) > LARGEST_INTEGER:
        raise _too_large(place)


def _too_large(place: str) -> ExpressionError:
    return ExpressionError(f"{place}: the number is too large", f"the largest integer is {LARGEST_INTEGER}")


def kind_of(value: Scalar) -> Kind:
    """Which kind of value: kinds are compared before values are."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "text"
    return "number" if isinstance(value, int | float) else "date"


def moment(day: date | datetime) -> datetime:
    """A date as the start of its day; without a zone it is UTC. So dates and moments have one order."""
    if not isinstance(day, datetime):
        return datetime(day.year, day.month, day.day, tzinfo=UTC)
    return day if day.tzinfo else day.replace(tzinfo=UTC)


def same(one: Scalar, other: Scalar) -> bool:
    """Whether two values are equal: same kind, same value."""
    if isinstance(one, date) and isinstance(other, date):
        return moment(one) == moment(other)
    return kind_of(one) == kind_of(other) and one == other


def matches(metadata: Metadata, condition: Condition, document_id: str = "") -> bool:
    """Whether a document meets `condition`; a tag that it has not, or that is null, meets none."""
    if condition.key == PATH_KEY:
        from fnmatch import fnmatchcase

        return fnmatchcase(document_id, str(condition.value))
    value = metadata.get(condition.key)
    members = value if isinstance(value, tuple | list) else (value,)
    return any(member is not None and same(member, condition.value) for member in members)


def explain_mismatch(condition: Condition, kinds_in_index: Mapping[str, Collection[str]]) -> str | None:
    """Why `condition` can match nothing in an index whose tags hold `kinds_in_index` (key -> kinds); None if it can.

    For the note of an empty result: an unknown key with the nearest one, or another kind with how to write it.
    """
    key = condition.key
    if key == PATH_KEY:
        return None
    if key not in kinds_in_index:
        return f"no document in this index has the tag {shortened(key)}{did_you_mean(key, kinds_in_index)}"
    kinds = kinds_in_index[key]
    if not kinds or kind_of(condition.value) in kinds:
        return None
    held = " and ".join(_PLURALS.get(kind, kind) for kind in sorted(kinds))
    return f"{key} holds {held} in this index; for {_rewritten(condition, sorted(kinds)[0])}"


def _rewritten(condition: Condition, kind: str) -> str:
    text = shortened(_plain(condition.value))
    forms = {
        "text": f"text write {condition.key}={text}",
        "number": f"a number write {condition.key}:={text if _is_number(text) else 3}",
        "boolean": f"true or false write {condition.key}:={text if text in {'true', 'false'} else 'true'}",
        "date": f"a date write {condition.key}:={text if _is_date(text) else '2024-05-01'}",
    }
    return forms[kind]


def _plain(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date) else str(value)


def _is_number(text: str) -> bool:
    try:
        return isinstance(msgspec.json.decode(text), int | float) and text not in {"true", "false"}
    except (msgspec.DecodeError, RecursionError):
        return False


def _is_date(text: str) -> bool:
    try:
        return iso_date(text) is not None
    except ValueError:
        return False
