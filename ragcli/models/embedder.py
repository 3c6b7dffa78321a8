"""`models.embedder` in a setting → the embedder of that name, its files fetched where they are not here (spec M3, M5).

Only the module of the kind that is asked for is imported. Weights load at the first text.
"""

from __future__ import annotations

from ragcli.models.place import ModelPlace
from ragcli.options import Settings
from ragcli.types import Embedder, EmbedderCard

SERVICE = "openai:"
HUB = "hub:"


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

    return TransformerEmbedder.open(settings, place, card)


def _is_static(name: str) -> bool:
    from ragcli import config
    from ragcli.models.catalogue import model

    if name.startswith(HUB) or config.names_folder(name):
        return False
    entry = model(name)
    return entry.card is not None and entry.card.runtime == "static"
