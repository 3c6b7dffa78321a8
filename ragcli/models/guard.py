"""Whether the embedder that is asked for is the one that an index was built with (spec I36).

Vectors of two embedders can't be compared, so everything that changes them is held against the index's card: never a
wrong result. Settings that nobody chose give way to the index's own. Opens no model and no index.
"""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from ragcli.config import names_folder
from ragcli.errors import IndexMismatch
from ragcli.models.catalogue import canonical
from ragcli.options import Settings
from ragcli.types import EmbedderCard

NONE = "none"  # models.embedder of a keyword index
RE_EMBED = "keep the index's embedder, or embed its text anew: ragcli ingest --re-embed"
# setting -> the card's field that it decides
DECIDES = {
    "models.embedder": "name",
    "models.precision": "precision",
    "embedding.pooling": "pooling",
    "embedding.query_prefix": "query_prefix",
    "embedding.passage_prefix": "passage_prefix",
    "embedding.max_tokens": "max_tokens",
    "embedding.long": "long",
    "embedding.dimensions": "asked_dimension",
}

# what some embedders leave nobody to choose: nothing then stands in their cards
NOT_EVERYONES = ("models.precision", "embedding.pooling", "embedding.max_tokens", "embedding.long")
PREFIXES = ("embedding.query_prefix", "embedding.passage_prefix")  # "" is one: that there is none


def adopted(settings: Settings, card: EmbedderCard | None, explicit: Collection[str] | None = None) -> Settings:
    """`settings` with the index's own embedder in place of what nobody asked for.

    `explicit`: the dotted names that the user set; None: those that differ from the defaults. An index of `card` None
    is one without vectors. `models.embedder: none` goes with every index: nothing is embedded then.
    Raises: IndexMismatch when a setting of these is not what the index was built with; names both and the command.
    """
    chosen = [name for name in DECIDES if _is_chosen(name, settings, explicit)]
    if "models.embedder" in chosen and settings.models.embedder == NONE:
        return settings
    if card is None:
        return _without(settings, chosen)
    found = [difference for name in chosen if (difference := _difference(name, settings, card))]
    if found:
        raise IndexMismatch("; ".join(found), RE_EMBED)
    return _with(settings, card, {"models.embedder"} if "models.embedder" in chosen else ())


def chosen_anew(settings: Settings, card: EmbedderCard | None, explicit: Collection[str] | None = None) -> Settings:
    """`settings` to embed an index anew with: as it was built, but for what was asked for.

    Another embedder has other prefixes, window and so on: then nothing of the card is kept.
    """
    chosen = [name for name in DECIDES if _is_chosen(name, settings, explicit)]
    if card is None or ("models.embedder" in chosen and canonical(settings.models.embedder) != card.name):
        return settings
    return _with(settings, card, chosen)


def check(card: EmbedderCard, opened: EmbedderCard) -> None:
    """The embedder that was opened is the one of the index's card.

    Raises: IndexMismatch when it gives other vectors, whatever it is called.
    """
    if opened.fingerprint == card.fingerprint and opened.dimension in {0, card.dimension}:
        return
    raise IndexMismatch(f"the index was built with {_shown(card)}, but there is {_shown(opened)} now", RE_EMBED)


def _is_chosen(name: str, settings: Settings, explicit: Collection[str] | None) -> bool:
    if explicit is None:
        return _value(name, settings) != _value(name, Settings())
    return name in explicit or name.partition(".")[0] in explicit


def _value(name: str, settings: Settings) -> object:
    section, _, key = name.partition(".")
    return getattr(getattr(settings, section), key)


def _without(settings: Settings, chosen: Collection[str]) -> Settings:
    if "models.embedder" in chosen:
        raise IndexMismatch(
            f"models.embedder = {settings.models.embedder!r}, but the index has no vectors",
            "leave it without (--mode keyword), or embed its text: ragcli ingest --re-embed",
        )
    return replace(settings, models=replace(settings.models, embedder=NONE))


def _difference(name: str, settings: Settings, card: EmbedderCard) -> str:
    wanted, built = _value(name, settings), getattr(card, DECIDES[name])
    if wanted is None or wanted == built or (not built and name in NOT_EVERYONES):
        return ""
    if name != "models.embedder":
        return f"{name} = {wanted!r}, but the index was built with {built!r}"
    if canonical(str(wanted)) == card.name or names_folder(str(wanted)):
        return ""  # a folder may have moved: its fingerprint tells
    return f"models.embedder = {wanted!r}, but the index was built with {_shown(card)}"


def _with(settings: Settings, card: EmbedderCard, chosen: Collection[str]) -> Settings:
    """`settings` with the card's values, but for the `chosen` ones; what the card leaves open is as if nobody chose."""
    own: dict[str, dict[str, object]] = {"models": {}, "embedding": {}}
    for name in DECIDES.keys() - set(chosen):
        section, _, key = name.partition(".")
        value = getattr(card, DECIDES[name])
        own[section][key] = value if value or name in PREFIXES else _value(name, Settings())
    models = replace(settings.models, **own["models"])
    return replace(settings, models=models, embedding=replace(settings.embedding, **own["embedding"]))


def _shown(card: EmbedderCard) -> str:
    facts = [f"{card.dimension} dimensions" if card.dimension else "", card.precision, f"#{card.fingerprint[:12]}"]
    return f"{card.name!r} ({', '.join(fact for fact in facts if fact)})"
