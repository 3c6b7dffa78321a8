"""Settings from files, environment and flags, and where each came from. The only reader of settings and environment.

Layers, the later wins key by key (spec C4)::

    built-in defaults (options.py)
    user file       $XDG_CONFIG_HOME/ragcli/config.yaml, by default ~/.config/ragcli/config.yaml
    project file    the nearest ragcli.yaml from the working folder upward;
                    or the file or preset that --config or RAGCLI_CONFIG names
    environment     RAGCLI_RETRIEVAL__TOP_K=3; RAGCLI_INDEX is index.path; an empty variable counts as not set
    flags

YAML is read by the core schema of YAML 1.2 (yaml.org/spec/1.2.2, 10.3): `yes` and `no` are text, a number with a
leading zero is text; ISO dates are dates. Tags (`!!x`), anchors and aliases are refused: a settings file is data.
`${NAME}` is the variable NAME, read by the kind its key wants; `$$` is a dollar sign. A path in a file is meant
from that file's folder.

A found project file may set nothing that runs code, reaches out or leads out of its folder (spec C15). What was read
from files is kept as JSON in $XDG_CACHE_HOME/ragcli/settings, so that the next call imports no YAML (28 ms); that is
only a cache, and no file that names a service or holds a key is kept in it.
Checks no ranges: options.py does.
"""

from __future__ import annotations

import os
import re
import stat
import time
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import date
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from zlib import crc32

import msgspec

from ragcli.errors import ConfigError, ExpressionError, OptionError, UsageError, did_you_mean, shortened
from ragcli.filters import iso_date, parse_filter
from ragcli.options import ARMS, HUB, LOCAL_CHATS, ChatSettings, Condition, EmbeddingSettings, Settings

if TYPE_CHECKING:
    import yaml

PROJECT_FILE = "ragcli.yaml"
INDEX_FOLDER = ".ragcli"
INDEX_FILE = "index.db"
LARGEST_FILE = 1024 * 1024  # bytes; settings are small, and a found file is not trusted
# variables of ours that are no settings
PLAIN_VARIABLES = ("RAGCLI_CONFIG", "RAGCLI_DEBUG", "RAGCLI_INDEX", "RAGCLI_MODELS", "RAGCLI_OFFLINE")
RUNS_CODE = ("chunking.strategy", "rerank.reranker")  # keys whose value may be package.module:Class
# keys that send texts or keys to a service
REACHES_OUT = (
    "embedding.base_url", "embedding.api_key", "rerank.base_url", "rerank.key_variable", "chat.base_url",
    "chat.key_variable",
)  # fmt: skip
SENDS_TEXTS: Mapping[str, tuple[str, ...]] = {  # and values that do, with a key that the environment has anyway
    "rerank.reranker": ("cohere", "jina", "vllm", "llm"),
    "retrieval.compression": ("llm",),
    "answer.engine": ("openai",),
}
PATHS = ("index.path", "models.folder")  # and models.embedder, rerank.model, chat.model, where they are one
SPEAKS = ("answer.system",)  # keys whose text a model gets as an order, values of variables in it included
OPENAI_URL = "https://api.openai.com/v1"

_SECRET = re.compile(r"key$|token$|secret|password|credential", re.IGNORECASE)
_REFERENCE = re.compile(r"\$(?:\$|\{([^}]*)\}|(\{))")
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,18})|0x[0-9a-fA-F]{1,15}|0o[0-7]{1,20}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]")
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_WORDS |= dict.fromkeys(("true", "True", "TRUE"), True) | dict.fromkeys(("false", "False", "FALSE"), False)
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")  # as variables are named; keys have lower case or dashes
_RACY_NS = 2_000_000_000  # a file this young may change again within one tick of its file system's clock
_NAME_FILE = "to accept it, name the file: --config"


class Loaded(msgspec.Struct, frozen=True):
    """Settings, and for each dotted key its origin.

    An origin is "default", "user file PATH:LINE", "PATH:LINE", "environment NAME" or "flag".
    """

    settings: Settings
    origins: Mapping[str, str]


class _Given(msgspec.Struct, frozen=True):
    """One value of one layer, before conversion; `place` starts an error, `shown` is the value in it."""

    value: Any
    origin: str
    place: str
    shown: str
    loose: bool = False  # text that is read by the kind the key wants


class _File(msgspec.Struct, frozen=True):
    """A settings file. `found`: nobody named it, so it is not trusted."""

    path: Path
    name: str  # for people
    kind: Literal["user", "found", "named"]
    stamp: tuple[int, ...] = ()  # () = no regular file: can't be cached

    def origin(self, line: int) -> str:
        return f"{'user file ' if self.kind == 'user' else ''}{self.name}:{line}"


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    """A value of a file and its line; `raw` is what was written, where a variable stood in it."""

    value: Any
    line: int
    raw: str | None = None


class _Cached(msgspec.Struct, frozen=True):
    """What the cache holds: the entries of each file, good while `state` is the same."""

    state: str
    layers: list[dict[str, _Entry]]


def load(
    *,
    config: Path | None,
    flags: Mapping[str, object],
    environ: Mapping[str, str],
    cwd: Path,
    home: Path | None,
    now_ns: Callable[[], int] = time.time_ns,
) -> Loaded:
    """The settings in force. `flags` are dotted keys; a None among them was not given.

    Raises:
        ConfigError: a file or variable that can't be used; the message starts with its file and line, or its name.
        OptionError: a flag's value is out of range.
    """
    files = _settings_files(config, environ, cwd, home)
    keys = setting_keys()
    state, cache = _state(files, keys), _cache_path(files, environ, home)
    cached = _recall(cache, state) if files else []
    layers = [_entries_of(file, environ, keys) for file in files] if cached is None else cached
    given: dict[str, _Given] = {}
    for layer in (
        *(_given_in(file, entries, home) for file, entries in zip(files, layers, strict=True)),
        _given_by_environment(environ, keys),
        _given_by_flags(flags, keys),
    ):
        given |= {key: _convert(key, value) for key, value in layer.items()}
    loaded = Loaded(_build(given), {key: given[key].origin if key in given else "default" for key in keys})
    if cached is None:
        _remember(cache, _Cached(state, layers), files, now_ns())
    return loaded


def setting_keys() -> tuple[str, ...]:
    """Every dotted key there is, in the order of options.py."""
    defaults = Settings()
    return tuple(f"{part}.{key}" for part in defaults.__struct_fields__ for key in _fields(defaults, part))


def _fields(defaults: Settings, section: str) -> tuple[str, ...]:
    fields: tuple[str, ...] = getattr(defaults, section).__struct_fields__
    return fields


def looks_secret(key: str) -> bool:
    """Whether the value of a key or variable of this name is not to be shown."""
    return bool(_SECRET.search(key))


# --- which files


def _settings_files(config: Path | None, environ: Mapping[str, str], cwd: Path, home: Path | None) -> list[_File]:
    named = str(config) if config is not None else environ.get("RAGCLI_CONFIG")
    folder = _xdg(environ, "XDG_CONFIG_HOME", home, ".config")
    user = folder / "ragcli" / "config.yaml" if folder else None
    files = [_file(user, cwd, "user")] if user and _is_file(user) else []
    if named:
        return [*files, _named_file(named, cwd)]
    found = _nearest(cwd, PROJECT_FILE, _is_file)
    return [*files, _file(found, cwd, "found")] if found else files


def _xdg(environ: Mapping[str, str], variable: str, home: Path | None, default: str) -> Path | None:
    """XDG Base Directory Specification 0.8: a relative path in the variable is to be ignored."""
    named = environ.get(variable, "")
    if named and Path(named).is_absolute():
        return Path(named)
    return home / default if home else None


def _nearest(cwd: Path, name: str, is_it: Callable[[Path], bool]) -> Path | None:
    return next((folder / name for folder in (cwd, *cwd.parents) if is_it(folder / name)), None)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a parent that may not be searched
        return False


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False


def _file(path: Path, cwd: Path, kind: Literal["user", "found", "named"]) -> _File:
    name = str(path.relative_to(cwd) if path.is_relative_to(cwd) else path)
    try:
        status = path.stat()
    except OSError as error:
        raise ConfigError(f"{name}: can't be read: {error.strerror}") from error
    if stat.S_ISDIR(status.st_mode):
        raise ConfigError(f"{name} is a folder, not a settings file")
    regular = stat.S_ISREG(status.st_mode)
    stamp = (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
    return _File(path, name, kind, stamp if regular else ())


def _named_file(name: str, cwd: Path) -> _File:
    """A file by that path; else, of a bare name, our preset."""
    path = cwd / name
    if path.is_file() or not re.fullmatch(r"[\w-]+", name):
        return _file(path, cwd, "named")
    preset = _presets_folder() / f"{name}.yaml"
    if not preset.is_file():
        known = preset_names()
        raise ConfigError(
            f"{name}: there is no such settings file or preset{did_you_mean(name, known)}",
            f"presets: {', '.join(known)}",
        )
    return _file(preset, cwd, "named")


def preset_names() -> tuple[str, ...]:
    """The names that `--config` takes besides files."""
    return tuple(sorted(path.stem for path in _presets_folder().glob("*.yaml")))


def _presets_folder() -> Path:
    """A wheel carries configs/ inside the package; in a checkout it stands beside it."""
    package = Path(__file__).parent
    inside = package / "configs"
    return (
        inside if inside.is_dir() or not (package.parent / "pyproject.toml").is_file() else package.parent / "configs"
    )


# --- YAML


def _entries_of(file: _File, environ: Mapping[str, str], keys: Iterable[str]) -> dict[str, _Entry]:
    document = _Document(file.name, environ, set())
    root = document.compose(_text(file))
    return dict(document.entries(root, keys)) if root is not None else {}


def _text(file: _File) -> str:
    try:
        with file.path.open("rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError(f"{file.name}: can't be read: {error.strerror}") from error
    if len(data) > LARGEST_FILE:
        raise ConfigError(f"{file.name}: larger than {LARGEST_FILE} bytes: no settings file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{file.name}:{line}: not UTF-8", "save the file as UTF-8") from error


class _Document(msgspec.Struct, frozen=True):
    """One YAML document on its way from nodes to values."""

    name: str
    environ: Mapping[str, str]
    seen: set[int]  # ids of the nodes visited: a second visit is an alias

    def error(self, line: int, message: str, hint: str = "") -> ConfigError:
        return ConfigError(f"{self.name}:{line}: {message}", hint)

    def compose(self, text: str) -> yaml.Node | None:
        """The root node, every scalar still text; None of an empty document."""
        import yaml

        for number, written in enumerate(text.splitlines(), 1):
            content = written.lstrip()
            if "\t" in written[: len(written) - len(content)] and content and not content.startswith("#"):
                raise self.error(number, "a tab indents this line", "YAML is indented with spaces")
        try:
            root: yaml.Node | None = yaml.compose(text, Loader=getattr(yaml, "CBaseLoader", yaml.BaseLoader))
            return root
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            words = f"{error.context}: {error.problem}" if error.context else str(error.problem)
            raise self.error(mark.line + 1 if mark else 1, f"not YAML: {words}") from error
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position) + 1
            raise self.error(line, f"not YAML: {error.reason}") from error

    def entries(self, root: yaml.Node, keys: Iterable[str]) -> Iterator[tuple[str, _Entry]]:
        """Dotted keys and what they are given."""
        sections: dict[str, list[str]] = {}
        for dotted in keys:
            sections.setdefault(dotted.partition(".")[0], []).append(dotted.partition(".")[2])
        for section, line, body in self.pairs(root, "the file"):
            if section not in sections:
                raise self.unknown(line, section, "", sections, keys)
            for key, key_line, node in self.pairs(body, section):
                if key not in sections[section]:
                    raise self.unknown(key_line, key, f"{section}.", sections[section], keys)
                value = self.value(node)
                yield f"{section}.{key}", _Entry(value, key_line, self.written(node))

    def unknown(self, line: int, key: str, prefix: str, known: Iterable[str], keys: Iterable[str]) -> ConfigError:
        elsewhere = [dotted for dotted in keys if dotted.rpartition(".")[2] == key]
        nearest = did_you_mean(key, known) or (f"; did you mean {elsewhere[0]}?" if elsewhere else "")
        return self.error(line, f"unknown key {prefix}{key}{nearest}", f"known here: {', '.join(known)}")

    def pairs(self, node: yaml.Node, what: str) -> Iterator[tuple[str, int, yaml.Node]]:
        """Key, its line and its value, of a mapping; nothing of an empty section."""
        line = node.start_mark.line + 1
        self.visit(node)
        if node.id == "scalar" and plain_value(node.value) is None and not node.style:
            return
        if node.id != "mapping":
            shown = repr(node.value) if node.id == "scalar" else "a list"
            raise self.error(line, f"{what} must hold `key: value` lines, not {shown}")
        first: dict[object, int] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if key_node.id != "scalar":
                raise self.error(line, "a key must be plain text")
            if key_node.value in first:
                raise self.error(line, f"duplicate key {key_node.value}", f"it stands on line {first[key_node.value]}")
            self.visit(key_node)
            first[key_node.value] = line
            yield str(key_node.value), line, value_node

    def visit(self, node: yaml.Node) -> None:
        line = node.start_mark.line + 1
        if id(node) in self.seen:
            raise self.error(line, "anchors and aliases are not supported in settings")
        if not re.fullmatch(r"tag:yaml\.org,2002:(str|seq|map)", node.tag):
            raise self.error(line, f"tags ({node.tag}) are not supported in settings")
        self.seen.add(id(node))

    def value(self, node: yaml.Node) -> Any:
        """The node as a value, its variables put in."""
        if node.id == "mapping":
            return {key: self.value(child) for key, _, child in self.pairs(node, "this")}
        self.visit(node)
        if node.id == "sequence":
            return [self.value(child) for child in node.value]
        if not _REFERENCE.search(node.value):
            return node.value if node.style else plain_value(node.value)
        return _REFERENCE.sub(lambda match: self.variable(match, node.start_mark.line + 1), node.value)

    def variable(self, match: re.Match[str], line: int) -> str:
        if match[0] == "$$":
            return "$"
        name = match[1] or ""
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise self.error(line, f"{match[0]} names no variable", "write ${NAME}, or $$ for a dollar sign")
        if name not in self.environ:
            raise self.error(line, f"the environment variable {name} is not set")
        return self.environ[name]

    def written(self, node: yaml.Node) -> str | None:
        """What stands in the file, where a variable is in it: this, not its value, may be shown."""
        if node.id == "scalar":
            return node.value if _REFERENCE.search(node.value) else None
        inside = [child for pair in node.value for child in (pair if isinstance(pair, tuple) else (pair,))]
        return next((text for child in inside if (text := self.written(child)) is not None), None)


def plain_value(text: str) -> Any:
    """What an unquoted YAML scalar means: null, boolean, number, date or text (the module says by which rules)."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text) and not _LEADING_ZERO.match(text):
        return float(text) if isfinite(float(text)) else text
    try:
        day = iso_date(text)
    except ValueError:
        return text
    return text if day is None else day


# --- layers


def _given_in(file: _File, entries: Mapping[str, _Entry], home: Path | None) -> dict[str, _Given]:
    given = {}
    for key, entry in entries.items():
        place = f"{file.name}:{entry.line}: "
        is_path = _is_path(key, entry.value, entries)
        value = _anchored(entry.value, file.path.parent, home) if is_path else entry.value
        if file.kind == "found":
            _check_trust(key, value, file, place)
        shown = _shown(entry.value) if entry.raw is None else repr(entry.raw)
        loose = entry.raw is not None and isinstance(value, str)
        given[key] = _Given(value, file.origin(entry.line), place, "(hidden)" if looks_secret(key) else shown, loose)
    return given


def _anchored(value: object, folder: Path, home: Path | None) -> object:
    if not (isinstance(value, str) and value):
        return value
    if home and (value == "~" or value.startswith("~/")):
        return str(home / value[2:])
    return str(folder / value)


def _is_path(key: str, value: object, entries: Mapping[str, _Entry]) -> bool:
    if key == "rerank.model":
        return isinstance(value, str) and _is_folder_of_reranker(value, entries)
    if key == "chat.model":
        return isinstance(value, str) and names_gguf(value)
    return key in PATHS or (key == "models.embedder" and isinstance(value, str) and names_folder(value))


def _is_folder_of_reranker(value: str, entries: Mapping[str, _Entry]) -> bool:
    """Whether it is a path: services call models organisation/name, so a slash alone says so of "onnx" only."""
    is_local = "rerank.reranker" in entries and entries["rerank.reranker"].value == "onnx"
    return names_folder(value) and (is_local or value.startswith((".", "~", "/", os.sep)))


def names_folder(model: str) -> bool:
    """Whether this value of `models.embedder` is a path, not a name: it has a slash, or starts with `.` or `~`."""
    return ":" not in model and ("/" in model or os.sep in model or model.startswith((".", "~")))


def names_gguf(model: str) -> bool:
    """Whether this value of `chat.model` is a file here."""
    return model.lower().endswith(".gguf")


def _check_trust(key: str, value: object, file: _File, place: str) -> None:
    """Refuses what a file that nobody named may not set (spec C15)."""
    if not isinstance(value, str):
        return
    harm = ""
    if key in RUNS_CODE and ":" in value:
        harm = f"{key} = {value} runs code"
    elif key in REACHES_OUT:
        harm = f"{key} sends texts to a service"
    elif value in SENDS_TEXTS.get(key, ()):
        harm = f"{key} = {value} sends texts to a service"
    elif _names_remote_chat(key, value):
        harm = f"{key} names a model at a service"  # without the value: it may be that of a variable
    elif key in SPEAKS:
        harm = f"{key} speaks to a language model in your name"
    elif _is_fetched(key, value):
        harm = f"{key} = {shortened(value)} reaches out"
    elif _may_be_path(key, value) and not _is_inside(file.path.parent / value, file.path.parent):
        harm = f"{key} leads out of the file's folder"
    if harm:
        raise ConfigError(f"{place}{harm}, and nobody named this file", f"{_NAME_FILE} {file.name}")


def _names_remote_chat(key: str, value: str) -> bool:
    """A model at a service: `ask`, which asks none by itself, would then send it what it retrieves."""
    return key == "chat.model" and not names_gguf(value) and value not in LOCAL_CHATS


def _is_fetched(key: str, value: str) -> bool:
    return (key == "models.embedder" and ":" in value) or (key == "rerank.model" and value.startswith(HUB))


def _may_be_path(key: str, value: str) -> bool:
    return (
        key in (*PATHS, "models.embedder")
        or (key == "rerank.model" and names_folder(value))
        or (key == "chat.model" and names_gguf(value))
    )


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _given_by_environment(environ: Mapping[str, str], keys: Iterable[str]) -> dict[str, _Given]:
    given: dict[str, _Given] = {}
    for name in sorted(name for name in environ if name.startswith("RAGCLI_") and environ[name]):
        key = "index.path" if name == "RAGCLI_INDEX" else name.removeprefix("RAGCLI_").replace("__", ".").lower()
        if key not in keys:
            if name in PLAIN_VARIABLES:
                continue
            raise _unknown_variable(name, keys)
        if key in given:
            raise ConfigError(f"{name}: {given[key].origin} sets {key} too", "unset one of them")
        value = environ[name]
        given[key] = _Given(
            value,
            f"environment {name}",
            f"{name}: ",
            "(hidden)" if looks_secret(key) else shortened(repr(value)),
            loose=True,
        )
    return given


def _unknown_variable(name: str, keys: Iterable[str]) -> ConfigError:
    known = {f"RAGCLI_{key.replace('.', '__').upper()}": key for key in keys}
    ending = [variable for variable, key in known.items() if name.lower().endswith("_" + key.rpartition(".")[2])]
    nearest = f"; did you mean {ending[0]}?" if ending else did_you_mean(name, [*PLAIN_VARIABLES, *known])
    return ConfigError(f"{name}: no such setting{nearest}", "RAGCLI_SECTION__KEY sets section.key")


def _given_by_flags(flags: Mapping[str, object], keys: Iterable[str]) -> dict[str, _Given]:
    for key in flags:
        if key not in keys:
            raise ConfigError(f"unknown key {key}{did_you_mean(key, keys)}")
    return {
        key: _Given(value, "flag", "", _shown(value), loose=isinstance(value, str))
        for key, value in flags.items()
        if value is not None
    }


# --- kinds


def _convert(key: str, given: _Given) -> _Given:
    """`given` with its value in the kind that `key` wants."""
    section, _, field = key.partition(".")
    kind = typing.get_type_hints(type(getattr(Settings(), section)))[field]
    try:
        value = msgspec.convert(_shaped(given, kind), kind, strict=not given.loose)
    except ExpressionError as error:
        raise ConfigError(f"{given.place}{key}: {error.message}", error.hint) from error
    except (msgspec.ValidationError, msgspec.DecodeError, RecursionError) as error:
        hint = "put the value in quotes" if kind is str and not given.loose else ""
        raise ConfigError(f"{given.place}{key} must be {_words(kind)}, not {given.shown}", hint) from error
    return msgspec.structs.replace(given, value=value)


def _shaped(given: _Given, kind: Any) -> Any:
    """The value in the form that its kind is converted from: text split at commas, conditions parsed, tags checked."""
    value, container = given.value, typing.get_origin(kind)
    if container is tuple:
        if given.loose:
            value = [part.strip() for part in value.split(",") if part.strip()]
        if kind == tuple[Condition, ...] and isinstance(value, list):
            return [parse_filter(part) if isinstance(part, str) else part for part in value]
    if kind == Mapping[str, float]:
        return _weights(value)
    if container is Mapping:
        value = msgspec.json.decode(value) if given.loose else value
        return {glob: _tags(tags) for glob, tags in value.items()} if isinstance(value, dict) else value
    return value


def _weights(value: object) -> object:
    """Numbers of known arms, from a map, or from text: `bm25=0.3,dense=0.7` or JSON."""
    if isinstance(value, str):
        value = msgspec.json.decode(value) if value.lstrip().startswith("{") else _pairs(value)
    for arm, weight in value.items() if isinstance(value, dict) else ():
        if arm not in ARMS:
            message = f"unknown arm {shortened(repr(arm))}{did_you_mean(arm, ARMS)}"
            raise ExpressionError(message, f"arms: {', '.join(ARMS)}")
        if isinstance(weight, bool) or not isinstance(weight, int | float):
            raise ExpressionError(f"the weight of {arm} must be a number, not {_shown(weight)}")
    return value


def _pairs(text: str) -> dict[str, Any]:
    """`a=1,b=2` as a map."""
    pairs: dict[str, Any] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise msgspec.ValidationError("no pair")
        if name in pairs:
            raise ExpressionError(f"{shortened(name)} is given twice", "give it once")
        pairs[name] = plain_value(value)
    return pairs


def _tags(tags: object) -> object:
    """Metadata values as `types.Metadata` has them: a list is a tuple, and nothing is nested deeper."""
    if not isinstance(tags, dict):
        return tags
    for value in tags.values():
        members = value if isinstance(value, list) else [value]
        if any(isinstance(member, dict | list) for member in members):
            raise msgspec.ValidationError("nested")
    return {key: tuple(value) if isinstance(value, list) else value for key, value in tags.items()}


def _words(kind: Any) -> str:
    simple = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    if kind in simple:
        return simple[kind]
    container, inner = typing.get_origin(kind), typing.get_args(kind)
    if container is Literal:
        return f"one of {', '.join(inner)}" if len(inner) > 1 else inner[0]
    if type(None) in inner:
        return f"{_words(next(one for one in inner if one is not type(None)))} or null"
    if container is tuple:
        return "a list of texts" if inner[0] is str else "a list of filters such as lang=de"
    if kind == Mapping[str, float]:
        return "weights of arms, such as bm25=0.3,dense=0.7"
    return "a map of globs, each with its own map of tags"


def _shown(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict | Mapping):
        return "a map"
    if isinstance(value, list | tuple):
        return "a list"
    return value.isoformat() if isinstance(value, date) else shortened(repr(value))


def _build(given: Mapping[str, _Given]) -> Settings:
    """The settings with `given` in place of defaults, ranges checked."""
    settings = Settings()
    changed: dict[str, dict[str, Any]] = {}
    for dotted, one in given.items():
        section, _, key = dotted.partition(".")
        changed.setdefault(section, {})[key] = one.value
    try:
        sections = {name: msgspec.structs.replace(getattr(settings, name), **new) for name, new in changed.items()}
    except OptionError as error:
        raise _placed(error, given) from error
    return msgspec.structs.replace(settings, **sections)


def _placed(error: OptionError, given: Mapping[str, _Given]) -> ConfigError | OptionError:
    """The error with the place that caused it; one that only defaults and flags cause is the option's own."""
    causes = [given[key] for key in given if f"{error.option}.".startswith(f"{key}.") or key in error.allowed]
    place = next((cause.place for cause in causes if cause.place), "")
    shown = "(hidden)" if looks_secret(error.option) else shortened(repr(error.value))
    if not place or given.get(error.option, causes[0]).origin == "flag":
        return error
    return ConfigError(f"{place}{error.option} = {shown} is out of range: {error.allowed}")


# --- the cache of what files say


def _cache_path(files: list[_File], environ: Mapping[str, str], home: Path | None) -> Path | None:
    """One file for each set of settings files: it is overwritten when they change."""
    folder = _xdg(environ, "XDG_CACHE_HOME", home, ".cache")
    if folder is None or not files or not all(file.stamp for file in files):
        return None
    names = "\n".join(f"{file.kind} {file.path}" for file in files).encode("utf-8", "surrogateescape")
    return folder / "ragcli" / "settings" / f"{crc32(names):08x}{crc32(names[::-1]):08x}.json"


def _state(files: list[_File], keys: Iterable[str]) -> str:
    """All that a cached reading depends on. The date of this file stands for our version: it follows a checkout too."""
    code = Path(__file__).stat().st_mtime_ns
    return ascii((code, tuple(keys), [(str(file.path), file.name, file.kind, file.stamp) for file in files]))


def _recall(path: Path | None, state: str) -> list[dict[str, _Entry]] | None:
    if path is None:
        return None
    try:
        cached = msgspec.json.decode(path.read_bytes(), type=_Cached)
    except (OSError, msgspec.MsgspecError):
        return None
    return cached.layers if cached.state == state else None


def _remember(path: Path | None, cached: _Cached, files: list[_File], now_ns: int) -> None:
    """Writes the cache; does without it where that fails, or where JSON or a later call would read it otherwise."""
    entries = [entry for layer in cached.layers for entry in layer.values()]
    young = any(now_ns - file.stamp[1] < _RACY_NS for file in files if file.stamp)
    # a key stays in its one file; a URL may have one in it
    secret = any(looks_secret(key) or key in REACHES_OUT for layer in cached.layers for key in layer)
    if path is None or young or secret or any(entry.raw is not None or _holds_date(entry.value) for entry in entries):
        return
    partial = path.with_suffix(f".{os.getpid()}")
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial.touch(mode=0o600)
        partial.write_bytes(msgspec.json.encode(cached))
        partial.replace(path)
    with suppress(OSError):
        partial.unlink(missing_ok=True)


def _holds_date(value: object) -> bool:
    if isinstance(value, dict):
        return any(_holds_date(member) for member in value.values())
    return any(_holds_date(member) for member in value) if isinstance(value, list) else isinstance(value, date)


# --- places


def index_path(settings: Settings, *, cwd: Path) -> Path:
    """The index file that is meant (spec I30); it may not exist yet.

    `settings.index.path` (--index, RAGCLI_INDEX, a settings file), else the nearest `.ragcli/` from `cwd` upward, else
    `.ragcli/` in `cwd`. A path that ends in .db or is a file is the index itself, any other is the folder it lies in.
    """
    if settings.index.path:
        path = cwd / settings.index.path
        itself = path.is_file() or (path.suffix == ".db" and not path.is_dir())
        return path if itself else path / INDEX_FILE
    folder = _nearest(cwd, INDEX_FOLDER, _is_folder) or cwd / INDEX_FOLDER
    return folder / INDEX_FILE


def home_folder() -> Path | None:
    """The user's home folder; None where there is no HOME and no entry in the password file."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def models_folder(environ: Mapping[str, str], home: Path | None) -> Path:
    """Where model files are kept: $RAGCLI_MODELS, else $XDG_CACHE_HOME/ragcli/models, by default in ~/.cache.

    Raises:
        ConfigError: there is neither variable nor home folder.
    """
    if named := environ.get("RAGCLI_MODELS"):
        return Path(named)
    cache = _xdg(environ, "XDG_CACHE_HOME", home, ".cache")
    if cache is None:
        raise ConfigError("no home folder to keep models in", "set RAGCLI_MODELS to a folder")
    return cache / "ragcli" / "models"


def state_folder(environ: Mapping[str, str], home: Path | None) -> Path | None:
    """Where what was done last is kept: $XDG_STATE_HOME/ragcli, by default in ~/.local/state; None without a home."""
    state = _xdg(environ, "XDG_STATE_HOME", home, ".local/state")
    return state / "ragcli" if state else None


def openai_service(settings: EmbeddingSettings, *, environ: Mapping[str, str]) -> tuple[str, str | None]:
    """Base URL and key of the OpenAI-compatible service; no key where a service of one's own needs none.

    `embedding.base_url`, else $OPENAI_BASE_URL, else OpenAI's own; `embedding.api_key`, else $OPENAI_API_KEY.

    Raises:
        UsageError: nothing names a service, and there is no key for OpenAI's.
    """
    key = (settings.api_key or environ.get("OPENAI_API_KEY") or "").strip()
    return _openai_url("embedding", settings.base_url, key, environ), key or None


def chat_service(settings: ChatSettings, *, environ: Mapping[str, str]) -> tuple[str, str | None]:
    """As `openai_service`, of `chat.base_url` and the variable that `chat.key_variable` names, else OPENAI_API_KEY.

    Raises:
        UsageError: nothing names a service, and there is no key for OpenAI's; or the named variable is not set.
    """
    key = service_key("chat", settings.key_variable, "OPENAI_API_KEY", environ=environ)
    return _openai_url("chat", settings.base_url, key, environ), key


def _openai_url(section: str, base_url: str | None, key: str | None, environ: Mapping[str, str]) -> str:
    named = base_url or environ.get("OPENAI_BASE_URL")
    if not named and not key:
        raise UsageError(
            f"no service is named, and {OPENAI_URL} wants a key",
            f"set OPENAI_API_KEY, or {section}.base_url (OPENAI_BASE_URL) to a service of your own",
        )
    return (named or OPENAI_URL).strip()


def service_key(section: str, named: str | None, default: str, *, environ: Mapping[str, str]) -> str | None:
    """The key that a variable holds: `named`, which is SECTION.key_variable, else `default`. None: there is none.

    Raises:
        UsageError: the variable that is named is not set. It is quoted only where it can't be a key put there by
            mistake.
    """
    key = environ.get(named or default, "").strip()
    if named and not key:
        variable = f"{section}.key_variable"
        shown = f"{variable} = {shortened(named)}: this" if _VARIABLE.fullmatch(named) else f"{variable}: the named"
        raise UsageError(f"{shown} environment variable is not set", "it names a variable; the key itself stands there")
    return key or None


def offline(environ: Mapping[str, str]) -> bool:
    """Whether nothing may be fetched: RAGCLI_OFFLINE or HF_HUB_OFFLINE is 1, true, yes or on."""
    return _is_on("RAGCLI_OFFLINE", environ) or _is_on("HF_HUB_OFFLINE", environ)


def debug(environ: Mapping[str, str]) -> bool:
    """Whether tracebacks are wanted, as by --debug: RAGCLI_DEBUG is 1, true, yes or on."""
    return _is_on("RAGCLI_DEBUG", environ)


def _is_on(name: str, environ: Mapping[str, str]) -> bool:
    return environ.get(name, "").lower() in {"1", "true", "yes", "on"}
