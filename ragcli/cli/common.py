"""What every command shares: the global options, wherever they stand, and the settings that come of them.

A global option may stand before or after the command; what stands after wins. Reads no file itself: `config` does.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ragcli.cli import streams

if TYPE_CHECKING:
    from ragcli.models.place import ModelPlace
    from ragcli.options import Settings
    from ragcli.pipeline import Pipeline
    from ragcli.types import Listener

Index = Annotated[
    str | None,
    typer.Option(
        "--index",
        metavar="PATH",
        help="The index: a .db file, or the folder it is in.",
        show_default="$RAGCLI_INDEX, else the nearest .ragcli/ upward",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="A settings file, or the name of a preset.",
        show_default="the nearest ragcli.yaml upward",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="On standard error, only errors.")]
Verbose = Annotated[
    int, typer.Option("--verbose", "-v", count=True, help="Say more on standard error.", show_default=False)
]
Offline = Annotated[bool, typer.Option("--offline", help="Fetch no model: use what is here.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


class Common(NamedTuple):  # --help makes one, and msgspec takes 8 ms to import
    """The global options of one command line."""

    index_file: str | None = None
    settings_file: Path | None = None
    quiet: bool = False
    verbose: int = 0
    debug: bool = False
    offline: bool = False

    def then(self, later: Common) -> Common:
        """These options with `later` ones, which stood after the command, on top."""
        return Common(
            index_file=self.index_file if later.index_file is None else later.index_file,
            settings_file=self.settings_file if later.settings_file is None else later.settings_file,
            quiet=later.quiet or self.quiet,
            verbose=later.verbose + self.verbose,
            debug=later.debug or self.debug,
            offline=later.offline or self.offline,
        )

    def warn(self, message: str) -> None:
        """A `warning:` line, unless quiet."""
        self._say("warning", message)

    def note(self, message: str) -> None:
        """A `note:` line, unless quiet."""
        self._say("note", message)

    def tell(self, message: str) -> None:
        """A line of summary, unless quiet."""
        self._say("", message)

    def _say(self, kind: str, message: str) -> None:
        if not self.quiet:
            streams.say(kind, message)


class Session(NamedTuple):
    """The settings in force, where each came from, and the index they name."""

    common: Common
    settings: Settings
    origins: Mapping[str, str]
    index_file: Path

    @property
    def explicit(self) -> tuple[str, ...]:
        """The dotted settings that somebody chose: an index built with others can't serve them."""
        return tuple(key for key, origin in self.origins.items() if origin != "default")

    def open(self, listen: Listener | None = None) -> Pipeline:
        """The index, ready for queries: a context manager. `listen` hears of stages, and of models that are fetched.

        Raises: IndexMissing, IndexMismatch, IndexCorrupt, IndexLocked.
        """
        from ragcli.pipeline import Pipeline
        from ragcli.types import ignore_event

        heard = listen or ignore_event
        return Pipeline.open(
            self.index_file,
            self.settings,
            explicit=self.explicit,
            listen=heard,
            models=lambda: self.model_place(heard),
        )

    def model_place(self, listen: Listener | None = None) -> ModelPlace:
        """Where models are, and what becomes of a line about fetching one (a note) and of its progress.

        Raises: ConfigError.
        """
        from ragcli.models.place import model_place
        from ragcli.types import ignore_event

        offline = True if self.common.offline else None  # None: as the environment says
        return model_place(self.settings, offline=offline, notify=self.common.note, listen=listen or ignore_event)

    def tokenizer(self) -> Path:
        """The file of the tokenizer, fetched when it is not here yet.

        Raises: ModelMissing, RemoteError, ConfigError.
        """
        from ragcli.models import pull
        from ragcli.models.catalogue import model

        file = model("cl100k_base").files[0]
        return pull.ensure("cl100k_base", self.model_place()) / file.name


def begin(context: typer.Context, common: Common, flags: Mapping[str, object]) -> Session:
    """Read the settings of one command; `flags` are dotted keys, those that are None were not given.

    Raises:
        ConfigError, OptionError: as `config.load`.
    """
    from ragcli import config

    before = context.obj if isinstance(context.obj, Common) else Common()
    joined = before.then(common)
    cwd = Path.cwd()
    loaded = config.load(
        config=joined.settings_file,
        flags={"index.path": joined.index_file, **flags},
        environ=os.environ,
        cwd=cwd,
        home=_home(),
    )
    return Session(joined, loaded.settings, loaded.origins, config.index_path(loaded.settings, cwd=cwd))


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # no HOME and no entry in the password file
        return None


def as_text(argument: str) -> str:
    """An argument that is no path, with what the locale could not read (as under LC_ALL=C) read as UTF-8.

    As it is where that is no UTF-8 either: lone surrogates stand for its bytes (PEP 383).
    """
    try:
        return argument if argument.isascii() else os.fsencode(argument).decode()
    except UnicodeError:
        return argument


def given(values: list[Any] | None) -> tuple[Any, ...] | None:
    """A repeatable option's values; None when it was not given, so that the settings below it hold."""
    return tuple(values) if values else None
