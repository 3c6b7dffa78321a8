"""`--where EXPR`: hits that fail a condition are dropped, with the reason (spec R10). Applied after fusion.

Owns the language, its parser (recursive descent; nothing is ever evaluated as Python) and the stage::

    score >= 0.4 and tag.lang == "de"
    0.2 < score <= 0.9 or heading in ["Setup", "Install"]
    "draft" not in title and not tag.internal
    tag.released >= date("2024-05-01") and tag["odd key"] != null

Fields: score, document_id, path, title, page, heading, chunk_index, tag.KEY (or metadata.KEY). Values: text in single
or double quotes, numbers, true, false, null, date("…"), and lists of them after `in`. Operators: == != < <= > >= in
`not in`, chained as in Python; and, or, not; parentheses. A field alone asks whether it is there and neither false,
0 nor empty.

What a comparison means: both sides are there and of one kind (filters.kind_of), and the values compare as in Python;
anything else is false, `!=` and `not in` too. `x == null` asks whether x is missing, `x != null` whether it is there.
Of a tag that is a list: ==, in and the order hold when they hold for one member; != and `not in` when they hold for
all. `not` turns a whole result round: `not tag.lang == "de"` keeps hits without the tag, `tag.lang != "de"` does not.

From Python: `Where(MinScore(0.4) & (HasTag("lang", "de") | ~DocumentId("a.md")))`.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from datetime import date
from math import isfinite
from typing import Any, NoReturn

import msgspec

from ragcli.errors import ExpressionError, did_you_mean, shortened
from ragcli.filters import iso_date, kind_of, matches, moment, same
from ragcli.options import Condition
from ragcli.types import Corpus, Drop, Hit, MetadataValue, Ranking, Scalar

LONGEST = 10_000  # characters of an expression
DEEPEST = 40  # parentheses and `not` inside one another: parsing and evaluation recurse this far

Value = MetadataValue


class Predicate(msgspec.Struct, frozen=True):
    """A condition on a hit. Compose with `&`, `|`, `~`."""

    def holds(self, hit: Hit) -> bool:
        """Whether the hit meets it."""
        raise NotImplementedError

    def found(self, hit: Hit) -> str:
        """The values that it looks at, in words."""
        raise NotImplementedError

    def why(self, hit: Hit) -> str:
        """Why the hit does not meet it: the part that failed, and the values found. Only asked when it fails."""
        return f"{self}: {self.found(hit)}"

    def __and__(self, other: Predicate) -> Predicate:
        return AllOf((self, other))

    def __or__(self, other: Predicate) -> Predicate:
        return AnyOf((self, other))

    def __invert__(self) -> Predicate:
        return Not(self)


class AllOf(Predicate, frozen=True):
    """`and`: every part holds."""

    parts: tuple[Predicate, ...]

    def holds(self, hit: Hit) -> bool:
        return all(part.holds(hit) for part in self.parts)

    def found(self, hit: Hit) -> str:
        return ", ".join(dict.fromkeys(part.found(hit) for part in self.parts))

    def why(self, hit: Hit) -> str:
        return next(part.why(hit) for part in self.parts if not part.holds(hit))

    def __str__(self) -> str:
        return " and ".join(f"({part})" if isinstance(part, AnyOf) else str(part) for part in self.parts)


class AnyOf(Predicate, frozen=True):
    """`or`: some part holds."""

    parts: tuple[Predicate, ...]

    def holds(self, hit: Hit) -> bool:
        return any(part.holds(hit) for part in self.parts)

    def found(self, hit: Hit) -> str:
        return ", ".join(dict.fromkeys(part.found(hit) for part in self.parts))

    def why(self, hit: Hit) -> str:
        return "; ".join(part.why(hit) for part in self.parts)

    def __str__(self) -> str:
        return " or ".join(str(part) for part in self.parts)


class Not(Predicate, frozen=True):
    """`not`: the part does not hold."""

    part: Predicate

    def holds(self, hit: Hit) -> bool:
        return not self.part.holds(hit)

    def found(self, hit: Hit) -> str:
        return self.part.found(hit)

    def __str__(self) -> str:
        return f"not {f'({self.part})' if isinstance(self.part, AllOf | AnyOf) else self.part}"


class Literal(msgspec.Struct, frozen=True):
    """A value as written; a tuple is a list."""

    value: Value

    def of(self, hit: Hit) -> Value:  # noqa: ARG002 - one signature with Field
        return self.value

    def __str__(self) -> str:
        return _shown(self.value)


class Field(msgspec.Struct, frozen=True):
    """A field of the hit; `tag` is a key of its document's metadata."""

    name: str
    tag: str = ""

    def of(self, hit: Hit) -> Value:
        return hit.chunk.metadata.get(self.tag) if self.tag else FIELDS[self.name](hit)

    def __str__(self) -> str:
        if not self.tag:
            return self.name
        return f"tag.{self.tag}" if _KEY.fullmatch(self.tag) else f"tag[{_shown(self.tag)}]"


class Truth(Predicate, frozen=True):
    """A field or value alone."""

    operand: Literal | Field

    def holds(self, hit: Hit) -> bool:
        return bool(self.operand.of(hit))

    def found(self, hit: Hit) -> str:
        return _found(self.operand, hit)

    def __str__(self) -> str:
        return str(self.operand)


class Comparison(Predicate, frozen=True):
    """`left operator right`."""

    left: Literal | Field
    operator: str
    right: Literal | Field

    def holds(self, hit: Hit) -> bool:
        left, right = self.left.of(hit), self.right.of(hit)
        if NULL in (self.left, self.right) and self.operator in {"==", "!="}:
            return (left is right) == (self.operator == "==")
        return _TESTS[self.operator](left, right)

    def why(self, hit: Hit) -> str:
        instead = _of_one_kind(self, hit)
        return super().why(hit) + (f"; write {instead}" if instead else "")

    def found(self, hit: Hit) -> str:
        fields = [side for side in (self.left, self.right) if isinstance(side, Field)]
        return ", ".join(_found(field, hit) for field in fields) or "it is never so"

    def __str__(self) -> str:
        return f"{self.left} {self.operator} {self.right}"


class MinScore(Predicate, frozen=True):
    """The hit's score is `threshold` or more."""

    threshold: float

    def holds(self, hit: Hit) -> bool:
        return hit.score >= self.threshold

    def found(self, hit: Hit) -> str:
        return _found(Field("score"), hit)

    def __str__(self) -> str:
        return f"score >= {self.threshold!r}"


class HasTag(Predicate, frozen=True):
    """The document has the tag `key` with exactly this value, kind included; of a list, as one member."""

    key: str
    value: Scalar

    def holds(self, hit: Hit) -> bool:
        return matches({"": hit.chunk.metadata.get(self.key)}, Condition("", self.value))

    def found(self, hit: Hit) -> str:
        return _found(Field("tag", self.key), hit)

    def __str__(self) -> str:
        return f"{Field('tag', self.key)} == {_shown(self.value)}"


class DocumentId(Predicate, frozen=True):
    """The hit is of this document."""

    document_id: str

    def holds(self, hit: Hit) -> bool:
        return hit.chunk.document_id == self.document_id

    def found(self, hit: Hit) -> str:
        return _found(Field("document_id"), hit)

    def __str__(self) -> str:
        return f"document_id == {_shown(self.document_id)}"


class Where(msgspec.Struct, frozen=True):
    """The stage. `condition`: an expression, or a composed predicate; "" keeps every hit.

    Raises:
        ExpressionError: when made, with an expression that can't be parsed.
    """

    condition: str | Predicate = ""

    def __post_init__(self) -> None:
        self.predicate()

    def predicate(self) -> Predicate:
        """The condition, parsed."""
        if isinstance(self.condition, Predicate):
            return self.condition
        return parse(self.condition) if self.condition.strip() else AllOf(())

    def __call__(self, query: str, ranking: Ranking, corpus: Corpus) -> Ranking:  # noqa: ARG002 - a types.Stage
        """The hits that meet the condition, in their order; the others are dropped."""
        predicate = self.predicate()
        kept = tuple(hit for hit in ranking.hits if predicate.holds(hit))
        failed = tuple(Drop(hit, "where", predicate.why(hit)) for hit in ranking.hits if not predicate.holds(hit))
        return Ranking(kept, ranking.dropped + failed, ranking.warnings)


FIELDS: Mapping[str, Callable[[Hit], Value]] = {
    "score": lambda hit: hit.score,
    "document_id": lambda hit: hit.chunk.document_id,
    "path": lambda hit: hit.chunk.path,
    "title": lambda hit: hit.chunk.title,
    "page": lambda hit: hit.chunk.page,
    "heading": lambda hit: hit.chunk.heading,
    "chunk_index": lambda hit: hit.chunk.index,
}
NULL = Literal(None)


# --- comparing


def _members(value: Value) -> tuple[Scalar, ...]:
    return value if isinstance(value, tuple) else () if value is None else (value,)


def _comparable(left: Value, right: Value) -> list[tuple[Scalar, Scalar]]:
    """Pairs of one kind; of lists, of their members."""
    return [(a, b) for a in _members(left) for b in _members(right) if kind_of(a) == kind_of(b)]


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Value, Value], bool]:
    def test(left: Value, right: Value) -> bool:
        return any(compare(_order(a), _order(b)) for a, b in _comparable(left, right))

    return test


def _order(value: Scalar) -> object:
    return moment(value) if isinstance(value, date) else value


def _equal(left: Value, right: Value) -> bool:
    return any(same(a, b) for a, b in _comparable(left, right))


def _unequal(left: Value, right: Value) -> bool:
    return bool(_comparable(left, right)) and not _equal(left, right)


def _within(left: Value, right: Value) -> bool:
    """Text inside a text; else a value among those of a list."""
    if isinstance(right, str):
        return any(isinstance(part, str) and part in right for part in _members(left))
    return isinstance(right, tuple) and _equal(left, right)


def _without(left: Value, right: Value) -> bool:
    """Not inside; of a list nothing needs be of one kind: 3 is not in ["a"]."""
    if isinstance(right, str):
        return any(isinstance(part, str) for part in _members(left)) and not _within(left, right)
    return isinstance(right, tuple) and left is not None and not _equal(left, right)


_TESTS: Mapping[str, Callable[[Value, Value], bool]] = {
    "==": _equal, "!=": _unequal, "in": _within, "not in": _without,
    "<": _ordered(operator.lt), "<=": _ordered(operator.le), ">": _ordered(operator.gt), ">=": _ordered(operator.ge),
}  # fmt: skip


# --- speaking


def _shown(value: Value) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(_shown(member) for member in value)}]"
    if isinstance(value, date):
        return f'date("{value.isoformat()}")'
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else repr(value)


def _found(operand: Literal | Field, hit: Hit) -> str:
    value = operand.of(hit)
    if value is None and isinstance(operand, Field):
        return f"there is no {operand}"
    kind = "a list" if isinstance(value, tuple) or value is None else kind_of(value)
    return f"{operand} is {_shown(value)} ({kind})"


_EXAMPLES: Mapping[str, Scalar] = {"number": 3, "boolean": True, "date": date(2024, 5, 1)}


def _of_one_kind(comparison: Comparison, hit: Hit) -> str:
    """What to write instead, where a tag and a value can't be compared as they are of two kinds; else ""."""
    left, right = comparison.left, comparison.right
    field, value = (left, right) if isinstance(left, Field) else (right, left)
    if not (isinstance(field, Field) and field.tag and isinstance(value, Literal)):
        return ""
    if comparison.operator in {"in", "not in"} and not (field is left and _is_list(value)):
        return ""
    held, written = _members(field.of(hit)), _members(value.value)
    if not held or not written or _comparable(held, written):
        return ""
    kind = kind_of(held[0])
    meant = tuple(_as_kind(member, kind) for member in written)
    instead = Literal(meant if isinstance(value.value, tuple) else meant[0])
    ends = (field, instead) if field is left else (instead, field)
    return shortened(f"{ends[0]} {comparison.operator} {ends[1]}")


def _as_kind(value: Scalar, kind: str) -> Scalar:
    """The value in another kind, where it can be read as one; else an example of that kind."""
    text = value.isoformat() if isinstance(value, date) else value if isinstance(value, str) else _shown(value)
    if kind == "text":
        return text
    read = _CONSTANTS.get(text) if kind == "boolean" else _as_date(text) if kind == "date" else None
    if kind == "number" and _NUMBER.fullmatch(text):
        read = _number(text)
    return _EXAMPLES[kind] if read is None or isinstance(read, tuple) else read


def _as_date(text: str) -> date | None:
    try:
        return iso_date(text)
    except ValueError:
        return None


# --- parsing

_NUMBER = re.compile(r"-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_KEY = re.compile(r"[^\W\d][\w-]*")
_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<number>NUMBER)
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<name>[^\W\d][\w-]*)
      | (?P<sign>==|!=|<=|>=|[<>()\[\],.])
    """.replace("NUMBER", _NUMBER.pattern),
    re.VERBOSE | re.DOTALL,
)
_CONSTANTS: Mapping[str, Value] = {
    "true": True, "True": True, "false": False, "False": False, "null": None, "None": None,
}  # fmt: skip
_KEYWORDS = {"and", "or", "not", "in"}


class _Token(msgspec.Struct, frozen=True):
    kind: str  # number, text, name, sign, end
    text: str
    at: int

    @property
    def shown(self) -> str:
        return shortened(repr(self.text)) if self.kind != "end" else "the end"


def parse(expression: str) -> Predicate:
    """The condition that an expression states.

    Raises:
        ExpressionError: the message points at the column, from 1.
    """
    if len(expression) > LONGEST:
        raise ExpressionError(f"where: longer than {LONGEST} characters")
    return _Parser(expression).whole()


def _fail(expression: str, at: int, message: str, hint: str = "") -> NoReturn:
    near = expression[max(0, at - 15) : at + 25].strip()
    raise ExpressionError(f"where, column {at + 1}: {message} (near {near!r})", hint)


def _tokens(expression: str) -> list[_Token]:
    tokens, at = [], 0
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None:
            _fail(expression, at, *_no_token(expression[at]))
        if match.lastgroup != "space":
            tokens.append(_Token(str(match.lastgroup), match[0], at))
        at = match.end()
    return [*tokens, _Token("end", "", at)]


def _no_token(character: str) -> tuple[str, str]:
    if character in "\"'":
        return "this quote is never closed", ""
    hints = {"=": "equality is ==", "!": "write not", "&": "write and", "|": "write or", "{": "a list is [1, 2]"}
    return f"{character!r} means nothing here", hints.get(character, "")


class _Parser:
    """Recursive descent, one method a rule; `position` is the token that comes next."""

    def __init__(self, expression: str) -> None:
        self.expression = expression
        self.tokens = _tokens(expression)
        self.position = 0
        self.depth = 0

    def whole(self) -> Predicate:
        predicate = _as_predicate(self.either())
        if self.next.kind != "end":
            self.fail(f"{self.next.shown} is not expected here", "join conditions with and, or")
        return predicate

    @property
    def next(self) -> _Token:
        return self.tokens[self.position]

    def fail(self, message: str, hint: str = "", at: int | None = None) -> NoReturn:
        _fail(self.expression, self.next.at if at is None else at, message, hint)

    def take(self, *texts: str) -> str:
        """The next token, if it is one of these words or signs; else ""."""
        token = self.next
        if token.kind in {"name", "sign"} and token.text in texts:
            self.position += 1
            return token.text
        return ""

    def need(self, sign: str) -> None:
        if not self.take(sign):
            self.fail(f"{sign!r} is missing before {self.next.shown}")

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            self.fail(f"nested deeper than {DEEPEST}")

    def either(self) -> Predicate | Literal | Field:
        parts = [self.both()]
        while self.take("or"):
            parts.append(self.both())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(_as_predicate(part) for part in parts))

    def both(self) -> Predicate | Literal | Field:
        parts = [self.negation()]
        while self.take("and"):
            parts.append(self.negation())
        return parts[0] if len(parts) == 1 else AllOf(tuple(_as_predicate(part) for part in parts))

    def negation(self) -> Predicate | Literal | Field:
        if not self.take("not"):
            return self.chain()
        self.deeper()
        part = _as_predicate(self.negation())
        self.depth -= 1
        return Not(part)

    def chain(self) -> Predicate | Literal | Field:
        """One operand, or a chain: `a < b < c` is `a < b and b < c`."""
        at, left = self.next.at, self.operand()
        parts: list[Predicate] = []
        while sign := self.comparison_sign():
            right_at, right = self.next.at, self.operand()
            parts.append(self.comparison(at, left, sign, right_at, right))
            at, left = right_at, right
        return left if not parts else parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def comparison_sign(self) -> str:
        if self.next.text == "not" and self.next.kind == "name" and self.tokens[self.position + 1].text == "in":
            self.position += 2
            return "not in"
        return self.take("==", "!=", "<", "<=", ">", ">=", "in")

    def comparison(
        self, left_at: int, left: Predicate | Literal | Field, sign: str, at: int, right: Predicate | Literal | Field
    ) -> Comparison:
        inside = sign in {"in", "not in"}
        if isinstance(left, Predicate) or isinstance(right, Predicate):
            at = left_at if isinstance(left, Predicate) else at
            self.fail("a condition can't be compared", "compare fields and values; join with and, or", at)
        if _is_list(left) or (_is_list(right) and not inside):
            at = left_at if _is_list(left) else at
            self.fail("a list stands only after in", 'write tag.lang in ["de", "en"]', at)
        if inside and isinstance(right, Literal) and not isinstance(right.value, str | tuple):
            self.fail(f"nothing is in {shortened(str(right))}", "after in comes a list or text", at)
        return Comparison(left, sign, right)

    def operand(self) -> Predicate | Literal | Field:
        token = self.next
        if self.take("("):
            self.deeper()
            inside = self.either()
            self.need(")")
            self.depth -= 1
            return inside
        if self.take("["):
            return self.list_()
        if token.kind == "name" and token.text not in _KEYWORDS | set(_CONSTANTS) | {"date"}:
            return self.field()
        return Literal(self.scalar())

    def list_(self) -> Literal:
        members: list[Scalar] = []
        while not self.take("]"):
            at, value = self.next.at, self.scalar()
            if value is None:
                self.fail("null can't be in a list", "write tag.x == null", at)
            members.append(value)
            if not self.take(","):
                self.need("]")
                break
        return Literal(tuple(members))

    def scalar(self) -> Scalar | None:
        token = self.next
        self.position += token.kind != "end"
        if token.kind == "number":
            number = _number(token.text)
            return number if isfinite(number) else self.fail("the number is too large", at=token.at)
        if token.kind == "text":
            return _unquoted(token.text)
        if token.kind == "name" and token.text in _CONSTANTS:
            value = _CONSTANTS[token.text]
            return value if not isinstance(value, tuple) else None
        if token.kind == "name" and token.text == "date":
            return self.date_()
        return self.fail(f"a field or a value is expected, not {token.shown}", at=token.at)

    def date_(self) -> date:
        self.need("(")
        token = self.next
        self.position += token.kind == "text"
        try:
            day = iso_date(_unquoted(token.text)) if token.kind == "text" else None
        except ValueError:
            day = None
        if day is None:
            self.fail("no such date", 'write date("2024-05-01") or date("2024-05-01T10:00:00Z")', token.at)
        self.need(")")
        return day

    def field(self) -> Field:
        token = self.next
        self.position += 1
        if token.text in {"tag", "metadata"}:
            return Field("tag", self.tag_key())
        if token.text not in FIELDS:
            known = [*FIELDS, "tag"]
            nearest = did_you_mean(token.text, known) or f"; a tag is written tag.{shortened(token.text)}"
            self.fail(f"no field {shortened(token.text)}{nearest}", f"fields: {', '.join(FIELDS)}, tag.KEY", token.at)
        return Field(token.text)

    def tag_key(self) -> str:
        bracket = self.take("[")
        if not bracket:
            self.need(".")
        token = self.next
        if token.kind != ("text" if bracket else "name"):
            self.fail("the tag's key is expected", 'write tag.lang or tag["odd key"]')
        self.position += 1
        if bracket:
            self.need("]")
        key = _unquoted(token.text) if bracket else token.text
        return key or self.fail("a tag's key can't be empty", at=token.at)


def _as_predicate(part: Predicate | Literal | Field) -> Predicate:
    return part if isinstance(part, Predicate) else Truth(part)


def _is_list(operand: Literal | Field) -> bool:
    return isinstance(operand, Literal) and isinstance(operand.value, tuple)


def _number(text: str) -> int | float:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else float(text)


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)
