"""Where models are kept, whether more may be fetched, and who is told: one value that goes to whatever opens a model.

Fetches nothing (`pull` does). The environment is `config`'s to read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from ragcli import config
from ragcli.options import Settings
from ragcli.types import Listener, ignore_event


def ignore_line(line: str) -> None:
    """The `notify` of those who want to hear nothing."""


class ModelPlace(msgspec.Struct, frozen=True):
    """The models of one user.

    `folder` is looked into before anything is fetched, for NAME/FILE and FILE. `notify` gets a line before something
    is fetched; `listen` gets Events of stage "fetching" in bytes. `endpoint`: the model hub's address; None = as
    huggingface_hub has it ($HF_ENDPOINT).
    """

    cache: Path
    offline: bool = False
    folder: Path | None = None
    notify: Callable[[str], None] = ignore_line
    listen: Listener = ignore_event
    endpoint: str | None = None


def model_place(
    settings: Settings | None = None,
    *,
    offline: bool | None = None,
    notify: Callable[[str], None] = ignore_line,
    listen: Listener = ignore_event,
) -> ModelPlace:
    """The place that settings and environment name; `offline` None: as the environment says.

    Raises: ConfigError where there is neither $RAGCLI_MODELS nor a home folder.
    """
    models = (settings or Settings()).models
    return ModelPlace(
        cache=config.models_folder(environ=os.environ, home=config.home_folder()),
        offline=config.offline(environ=os.environ) if offline is None else offline,
        folder=Path(models.folder) if models.folder else None,
        notify=notify,
        listen=listen,
    )
