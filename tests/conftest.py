"""Fixtures that every test may use."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of judged collections and messy files beside the project; a test that needs it is skipped without."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("needs ../shared (judged collections and messy files), which is not part of the project")
    return folder
