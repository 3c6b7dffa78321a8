"""`models.embedder` in a setting → the embedder of that name, its files fetched where they are not here (spec M3, M5).

Only the module of the kind that is asked for is imported. Weights load at the first text.
"""

from __future__ import annotations

import os

from msgspec.structs import replace

from ragcli.errors import UsageError, did_you_mean
from ragcli.models.catalogue import Model
from ragcli.models.place import ModelPlace
from ragcli.options import HUB, SERVICE, Settings
from ragcli.types import Embedder, EmbedderCard


def open_embedder(settings: Settings, place: ModelPlace, card: EmbedderCard | None = None) -> Embedder:
    """The embedder that the settings name; `card`: what the index was built with, if there is one.

    Raises: UsageError for an unknown name; ModelMissing, RemoteError where its files, or the service, can't be had.
    """
    name = settings.models.embedder
    if name.startswith(SERVICE):
        from ragcli.models.endpoint import EndpointEmbedder

        return EndpointEmbedder.open(settings, place, card)
    if _is_static(name):
        from ragcli.models.static import StaticEmbedder

        return StaticEmbedder.open(settings, place, card)
    from ragcli.models.transformer import TransformerEmbedder

    return TransformerEmbedder.open(_with_absolute_path(settings), place, card)


def _with_absolute_path(settings: Settings) -> Settings:
    """A folder by its whole path: that is how the index will remember it, wherever the next command is run."""
    from ragcli import config

    name = settings.models.embedder
    if not config.names_folder(name):
        return settings
    path = os.path.abspath(os.path.expanduser(name))  # noqa: PTH100, PTH111 - a link stays a link
    return replace(settings, models=replace(settings.models, embedder=path))


def _is_static(name: str) -> bool:
    from ragcli import config

    if name.startswith(HUB) or config.names_folder(name):
        return False
    entry = _entry(name)
    return entry.card is not None and entry.card.runtime == "static"


def _entry(name: str) -> Model:
    """The catalogue's embedder of this name.

    Raises: UsageError.
    """
    from ragcli.models.catalogue import ALIASES, MODELS, canonical

    known = {entry.name: entry for entry in MODELS if entry.kind == "embedder"}
    if (entry := known.get(canonical(name))) is not None:
        return entry
    names = (*known, *ALIASES, "none")
    raise UsageError(
        f"models.embedder = {name!r}: there is no such embedder{did_you_mean(name, names)}",
        f"known: {', '.join(names)}; a folder such as ./my-model; hub:ORG/NAME; openai:MODEL",
    )
