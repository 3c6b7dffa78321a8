"""Ignore rules: which paths the `.gitignore` and `.ragignore` files above them leave out (spec I2).

Patterns are compiled by pathspec (gitignore's own rules). The walk asks for a folder before it enters it, so a pattern
has to match the path itself, not a folder above it: then a folder named on the command line is read even where a rule
outside ignores it, as ripgrep does. The last rule of the innermost file that matches decides.

Most rules are a name (`node_modules/`) or a suffix (`*.pyc`): two cheap looks say that none of them can match, and only
the paths that pass are matched rule by rule. Ten thousand files against forty rules then take hundredths of a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

_NAME = re.compile(r"!?([\w.+@-]+)/?")
_SUFFIX = re.compile(r"!?\*([\w.+@-]+)/?")


class Rule(msgspec.Struct, frozen=True):
    """One pattern: a path that it matches is left out (`ignores`), or taken back in."""

    pattern: re.Pattern[str]
    ignores: bool


class Rules(msgspec.Struct, frozen=True):
    """The rules of one file, and what tells quickly that none of them can match."""

    rules: tuple[Rule, ...]  # last first
    names: frozenset[str] = frozenset()
    suffixes: tuple[str, ...] = ()
    others: re.Pattern[str] | None = None

    def decide(self, name: str, path: str) -> bool | None:
        """True: left out; False: taken back in; None: no rule is about it. `path` of a folder ends with `/`."""
        if (
            name not in self.names
            and not name.endswith(self.suffixes)
            and not (self.others and self.others.match(path))
        ):
            return None
        for rule in self.rules:
            found = rule.pattern.match(path)
            if found and _is_itself(found, path):
                return rule.ignores
        return None


def _is_itself(found: re.Match[str], path: str) -> bool:
    """Whether the path matched, rather than a folder above it (pathspec marks the slash behind that folder `ps_d`)."""
    return found.re.groupindex.get("ps_d") is None or found["ps_d"] is None or found.end("ps_d") == len(path)


def compile_rules(lines: Iterable[str]) -> Rules | None:
    """The rules in the lines of an ignore file; None where there are none. A line that is no pattern is passed over."""
    from pathspec.patterns.gitignore.base import GitIgnorePatternError
    from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

    rules: list[Rule] = []
    names, suffixes, others = set(), [], []
    for line in lines:
        stripped = line.rstrip("\r\n")
        try:
            pattern = GitIgnoreSpecPattern(stripped)
        except GitIgnorePatternError:
            continue
        if pattern.include is None or pattern.regex is None:
            continue
        rules.append(Rule(pattern.regex, pattern.include))
        if found := _NAME.fullmatch(stripped.rstrip()):
            names.add(found[1])
        elif found := _SUFFIX.fullmatch(stripped.rstrip()):
            suffixes.append(found[1])
        else:
            others.append(pattern.regex.pattern.replace("(?P<ps_d>", "(?:"))
    if not rules:
        return None
    either = re.compile("|".join(f"(?:{other})" for other in others)) if others else None
    return Rules(tuple(reversed(rules)), frozenset(names), tuple(suffixes), either)


class Level(msgspec.Struct, frozen=True):
    """Rules and how a path below the root is named from the folder that they stand in: `lead + relative[cut:]`."""

    rules: Rules
    lead: str = ""
    cut: int = 0


Levels = tuple[Level, ...]  # innermost first


def is_ignored(levels: Levels, name: str, relative: str) -> bool:
    """Whether the rules leave a path out. `relative` is the path below the root; that of a folder ends with `/`."""
    for level in levels:
        decision = level.rules.decide(name, level.lead + relative[level.cut :])
        if decision is not None:
            return decision
    return False
