"""G13: a misspelt key was ignored without a word."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcli.config import load
from ragcli.errors import ConfigError


@pytest.mark.spec("C4")
def test_the_error_names_the_path_and_the_nearest_key(tmp_path: Path) -> None:
    (tmp_path / "ragcli.yaml").write_text("# mine\nretrieval: {topk: 5}\n")
    with pytest.raises(ConfigError) as caught:
        load(config=None, flags={}, environ={}, cwd=tmp_path, home=None)
    assert caught.value.message == "ragcli.yaml:2: unknown key retrieval.topk; did you mean top_k?"
    assert caught.value.exit_code == 2
