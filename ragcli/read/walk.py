"""What to read: the files behind the paths of a command, in a fixed order, and why the others are left out (spec I2).

Files, folders (all that is in them), globs that no shell expanded, `-` for standard input. Left out, each with its
reason: hidden files, what `.gitignore` and `.ragignore` ignore (also those of the enclosing git repository), the folder
of the index, files over the size limit, sockets, devices, pipes, links that lead in circles. A file named outright is
taken even when hidden or ignored; `include` and `exclude` hold for all.

One `scandir` entry and one `stat` a file: ten thousand unchanged files must cost no more than a few `git status`.
Opens no file but ignore files; whether a file is text is found when it is read.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from urllib.parse import unquote

import msgspec

from ragcli.errors import UsageError
from ragcli.options import IngestSettings
from ragcli.read.ignore import Level, Levels, Rules, compile_rules, is_ignored
from ragcli.types import Problem, Source

STREAMED = (".jsonl", ".ndjson")  # read in runs of lines: the size limit is one of a record there
INDEX_FOLDER = ".ragcli"
STDIN = "-"
BAD_NAME = ("unreadable name", "its name is not UTF-8: rename it")
MISSING = "no such file or folder"
UNREAD = frozenset({"unreadable", BAD_NAME[0]})  # what the walk reports that no rule leaves out: a failure

_IGNORE_FILES = (".ragignore", ".gitignore")  # ours first: it may take back what git's leaves out
_DRIVE = re.compile(r"/[A-Za-z]:(?:/|$)")
_GLOB = re.compile(r"[*?\[]")
_SPECIAL = (
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISFIFO, "named pipe"),
    (stat.S_ISBLK, "block device"),
    (stat.S_ISCHR, "character device"),
)
_by_name = attrgetter("name")

Report = Callable[[Problem], None]


class _Target(msgspec.Struct, frozen=True):
    """A place to start: `relative` is "" for the root itself, ends with `/` for a folder below it."""

    root: str
    relative: str
    named: bool = True  # outright, not by a glob


class _Folder(msgspec.Struct, frozen=True):
    root: str
    relative: str  # "" or ending with `/`
    levels: Levels

    @property
    def location(self) -> str:
        return _join(self.root, self.relative).rstrip("/") or "/"


def local_path(argument: str) -> str:
    """The path that a file URL names; any other argument as it is.

    `file:///C:/d/a%20b.md` gives `C:/d/a b.md`, `file://server/share/a.md` gives `//server/share/a.md`. A drive letter
    (`C:\\docs`) is no URL scheme, and `%` in a plain path is a percent sign.
    """
    if argument[:7].lower() != "file://":
        return argument
    host, slash, path = argument[7:].partition("/")
    path = unquote(slash + path)
    if host and host.lower() != "localhost":
        return f"//{host}{path}"
    return path[1:] if _DRIVE.match(path) else path


def walk(
    paths: Sequence[str], settings: IngestSettings, *, report: Report, index_folder: Path | None = None
) -> Iterator[Source]:
    """The sources behind `paths`, each file once; each thing left out goes to `report`.

    The root of a folder is the folder, of a file the folder that it lies in, of a glob the part without wildcards.

    Raises:
        UsageError: a path is not there, a glob matches nothing, or an include or exclude is no pattern; raised before
            anything is read.
    """
    targets = [target for path in paths for target in _targets(path)]
    walker = _Walker(settings, report, os.path.realpath(index_folder) if index_folder else "")
    return walker.sources(targets)


def _targets(argument: str) -> Iterator[_Target]:
    if argument == STDIN:
        yield _Target("", STDIN)
        return
    path = local_path(argument)
    if not os.path.lexists(path) and os.path.lexists(unquote(path)):
        path = unquote(path)
    if os.path.lexists(path):
        yield _target(path)
    elif _GLOB.search(path):
        yield from _matches(path)
    else:
        raise UsageError(f"{argument}: {MISSING}", "check the spelling; relative paths start here")


def _target(path: str) -> _Target:
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises where it may not look
        return _Target(_slashed(os.path.realpath(path)), "")
    folder, name = os.path.split(path)
    return _Target(_slashed(os.path.realpath(folder or ".")), name)


def _slashed(path: str) -> str:
    return path.replace(os.sep, "/")


def _matches(pattern: str) -> Iterator[_Target]:
    import glob

    fixed = _slashed(pattern[: _GLOB.search(pattern).start()]).rpartition("/")  # type: ignore[union-attr]
    folder = "".join(fixed[:2])
    root = _slashed(os.path.realpath(folder or "."))
    matched = sorted(glob.glob(pattern, recursive=True))  # noqa: PTH207 - Path.glob matches hidden files too
    if not matched:
        raise UsageError(f"{pattern}: matches no file or folder", "quote a glob only when it should be expanded here")
    for path in matched:
        relative = _slashed(path)[len(folder) :].rstrip("/")
        if relative:
            yield _Target(root, relative + "/" * Path(path).is_dir(), named=False)


class _Walker:
    """One walk: its settings, and which folders and files it has been to."""

    def __init__(self, settings: IngestSettings, report: Report, index_folder: str) -> None:
        self.hidden = settings.hidden
        self.largest = settings.max_file_bytes
        self.ignore_files = _IGNORE_FILES if settings.gitignore else _IGNORE_FILES[:1]
        self.include = _patterns("include", settings.include)
        self.exclude = _patterns("exclude", settings.exclude)
        self.report = report
        self.index_folder = _slashed(index_folder)
        self.folders: set[tuple[int, int]] = set()
        self.files: set[str] = set()
        self.links: list[_Folder] = []

    def sources(self, targets: Sequence[_Target]) -> Iterator[Source]:
        """All sources of all targets. A file that several targets reach is read once, below the first."""
        for target in targets:
            for source in self._of(target):
                if len(targets) > 1 and source.location in self.files:
                    continue
                if len(targets) > 1:
                    self.files.add(source.location)
                yield source

    def _of(self, target: _Target) -> Iterator[Source]:
        if target.relative == STDIN and not target.root:
            yield Source(root="", relative=STDIN, location=STDIN, size=0, mtime_ns=0)
        elif not target.named:
            yield from self._matched(target)
        elif target.relative:
            yield from self._named(target)
        elif not _is_utf8(target.root):
            self._skip(target.root, *BAD_NAME)
        else:
            yield from self._tree(_Folder(target.root, "", self._levels_above(target.root)))

    def _matched(self, target: _Target) -> Iterator[Source]:
        """What a glob matched: the rules on the way to it hold."""
        folder = _Folder(target.root, "", self._levels_above(target.root))
        *parents, name = target.relative.rstrip("/").split("/")
        for parent in [*parents, name] if target.relative.endswith("/") else parents:
            folder = self._with_rules_of(folder)
            if objection := self._objection(folder, parent, is_folder=True):
                return self._skip(_join(folder.root, folder.relative + parent), *objection)
            folder = _Folder(folder.root, f"{folder.relative}{parent}/", folder.levels)
        if target.relative.endswith("/"):
            yield from self._tree(folder)
        elif objection := self._objection(self._with_rules_of(folder), name, is_folder=False):
            self._skip(_join(target.root, target.relative), *objection)
        else:
            yield from self._named(target)

    def _with_rules_of(self, folder: _Folder) -> _Folder:
        levels = self._levels_in(folder.location, "", len(folder.relative))
        return _Folder(folder.root, folder.relative, levels + folder.levels)

    def _levels_above(self, root: str) -> Levels:
        """The rules of the enclosing git repository above the root, innermost first."""
        folders = [Path(root), *Path(root).parents]
        top = next((index for index, folder in enumerate(folders) if os.path.lexists(folder / ".git")), None)
        if top is None:
            return ()
        levels: Levels = ()
        for folder in folders[1 : top + 1]:
            lead = Path(root).relative_to(folder).as_posix() + "/"
            levels += self._levels_in(str(folder), lead, 0)
        lead = "" if top == 0 else Path(root).relative_to(folders[top]).as_posix() + "/"
        excluded = self._rules_of(folders[top] / ".git" / "info" / "exclude") if len(self.ignore_files) > 1 else None
        return (*levels, Level(excluded, lead)) if excluded else levels

    def _levels_in(self, folder: str, lead: str, cut: int) -> Levels:
        found = (self._rules_of(Path(folder, name)) for name in self.ignore_files)
        return tuple(Level(rules, lead, cut) for rules in found if rules)

    def _rules_of(self, path: Path) -> Rules | None:
        try:
            text = path.read_text("utf-8-sig", errors="surrogateescape")
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return None
        except OSError as error:
            self._skip(str(path), "unreadable", _why(error))
            return None
        return compile_rules(text.split("\n"))

    def _tree(self, top: _Folder) -> Iterator[Source]:
        """Everything below a folder: files first, then its folders, each sorted by name; links to folders last."""
        todo = [top]
        self.links = []
        while todo or self.links:
            folder = todo.pop() if todo else self.links.pop(0)
            if not self._is_new(folder):
                continue
            below: list[_Folder] = []
            yield from self._entries(folder, below)
            todo.extend(reversed(below))

    def _is_new(self, folder: _Folder) -> bool:
        """Whether the folder, by its identity on the disk, was not read yet: a link may lead back."""
        try:
            status = os.stat(folder.location)  # noqa: PTH116 - a Path for each folder costs more than the call
        except OSError as error:
            self._skip(folder.location, "unreadable", _why(error))
            return False
        identity = (status.st_dev, status.st_ino)
        if identity in self.folders:
            if os.path.islink(folder.location):  # noqa: PTH114
                self._skip(folder.location, "symlink loop", "a link to a folder that is read already")
            return False
        self.folders.add(identity)
        return True

    def _entries(self, folder: _Folder, below: list[_Folder]) -> Iterator[Source]:
        try:
            with os.scandir(folder.location) as found:
                entries = sorted(found, key=_by_name)
        except OSError as error:
            self._skip(folder.location, "unreadable", _why(error))
            return
        if any(entry.name in self.ignore_files for entry in entries):
            folder = self._with_rules_of(folder)
        for entry in entries:
            name = entry.name
            is_folder = entry.is_dir(follow_symlinks=False)
            if objection := self._objection(folder, name, is_folder=is_folder):
                self._skip(_join(folder.root, folder.relative + name), *objection)
            elif is_folder:
                below.append(_Folder(folder.root, f"{folder.relative}{name}/", folder.levels))
            elif entry.is_symlink() and os.path.isdir(entry.path):  # noqa: PTH112
                self.links.append(_Folder(folder.root, f"{folder.relative}{name}/", folder.levels))
            elif source := self._file(folder.root, folder.relative + name, name, entry):
                yield source

    def _objection(self, inside: _Folder, name: str, *, is_folder: bool) -> tuple[str, str] | None:
        """(kind, reason) why the rules leave an entry out; None where they don't."""
        if name[0] == "." and (not self.hidden or name in {".git", INDEX_FOLDER}):
            return ("index", "the index's own folder") if name == INDEX_FOLDER else ("hidden", "hidden")
        if inside.levels or is_folder:
            relative = f"{inside.relative}{name}/" if is_folder else inside.relative + name
            if inside.levels and is_ignored(inside.levels, name, relative):
                return "ignored", "an ignore file leaves it out"
            if is_folder and self._is_excluded(name, relative):
                return "excluded", "matches exclude"
            if is_folder and self.index_folder and _join(inside.root, relative[:-1]) == self.index_folder:
                return "index", "the index's own folder"
        if name.isascii() or _is_utf8(name):
            return None
        return (None if is_folder else self._filtered(name, inside.relative + name)) or BAD_NAME

    def _is_excluded(self, name: str, relative: str) -> bool:
        return self.exclude is not None and self.exclude.decide(name, relative) is True

    def _file(self, root: str, relative: str, name: str, entry: os.DirEntry[str] | None) -> Source | None:
        """The source, or None after a report."""
        found = self._look(root, relative, name, entry)
        if isinstance(found, Source):
            return found
        self._skip(_join(root, relative), *found)
        return None

    def _look(self, root: str, relative: str, name: str, entry: os.DirEntry[str] | None) -> Source | tuple[str, str]:
        """The source, or (kind, reason) why it is none."""
        if (self.include or self.exclude) and (objection := self._filtered(name, relative)):
            return objection
        location = _join(root, relative)
        try:
            status = entry.stat() if entry else os.stat(location)  # noqa: PTH116
        except OSError as error:
            return _failure(error)
        size = status.st_size
        if not stat.S_ISREG(status.st_mode):
            return "special", f"a {_kind_of(status.st_mode)}, not a file"
        if size > self.largest and not name.lower().endswith(STREAMED):
            return "too-large", f"{size} bytes, over ingest.max_file_bytes = {self.largest}"
        return Source(root=root, relative=relative, location=location, size=size, mtime_ns=status.st_mtime_ns)

    def _named(self, target: _Target) -> Iterator[Source]:
        """One file that was named: by the user, or by a glob."""
        if not _is_utf8(location := _join(target.root, target.relative)):
            self._skip(location, *BAD_NAME)
        elif source := self._file(target.root, target.relative, target.relative.rpartition("/")[2], None):
            yield source

    def _filtered(self, name: str, relative: str) -> tuple[str, str] | None:
        """(kind, reason) why include and exclude leave a file out; None where they don't."""
        if self.include and self.include.decide(name, relative) is not True and not self._include_above(relative):
            return "not included", "matches no include"
        return ("excluded", "matches exclude") if self._is_excluded(name, relative) else None

    def _include_above(self, relative: str) -> bool:
        """Whether an include matches a folder above the file: `--include docs/` takes all that is in it."""
        *parents, _ = relative.split("/")
        reached = ""
        for parent in parents:
            reached += parent + "/"
            if self.include and self.include.decide(parent, reached):
                return True
        return False

    def _skip(self, path: str, kind: str, reason: str) -> None:
        self.report(Problem(path.encode("utf-8", "backslashreplace").decode(), kind, reason))


def _patterns(option: str, patterns: Sequence[str]) -> Rules | None:
    """Raises: UsageError for one that git would pass over: it would leave out everything, or nothing."""
    for pattern in patterns:
        if compile_rules([pattern]) is None:
            wrong = "an unclosed [" if "[" in pattern else "empty" if not pattern.strip() else "no pattern"
            raise UsageError(
                f"{option} {pattern!r}: {wrong}", "a pattern is as in .gitignore: *.md, drafts/, [ab]*.txt"
            )
    return compile_rules(patterns) if patterns else None


def _join(root: str, relative: str) -> str:
    return f"{root}{relative}" if root.endswith("/") else f"{root}/{relative}"


def _is_utf8(name: str) -> bool:
    if name.isascii():
        return True
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _why(error: OSError) -> str:
    return f"{error.strerror} (errno {error.errno})"


def _failure(error: OSError) -> tuple[str, str]:
    """(kind, reason) of a file that can't be looked at."""
    if isinstance(error, FileNotFoundError):
        return "vanished", "not there any more, or a link to nothing"
    if error.strerror and "symbolic links" in error.strerror:
        return "symlink loop", _why(error)
    return "unreadable", _why(error)


def _kind_of(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "folder"
    return next((name for is_kind, name in _SPECIAL if is_kind(mode)), "special file")
