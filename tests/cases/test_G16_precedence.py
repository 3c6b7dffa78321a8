"""G16: the same setting in a flag, the environment, the project file and the user file."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcli.config import load


@pytest.mark.spec("C4")
def test_flag_over_environment_over_project_over_user_over_default(tmp_path: Path) -> None:
    project, home = tmp_path / "project", tmp_path / "home"
    user_file, project_file = home / ".config/ragcli/config.yaml", project / "ragcli.yaml"
    project.mkdir()
    user_file.parent.mkdir(parents=True)
    user_file.write_text("retrieval:\n  top_k: 2\n")
    project_file.write_text("# mine\nretrieval:\n  top_k: 3\n")
    environ = {"RAGCLI_RETRIEVAL__TOP_K": "4"}
    flags: dict[str, object] = {"retrieval.top_k": 6}

    def now() -> tuple[int, str]:
        loaded = load(config=None, flags=flags, environ=environ, cwd=project, home=home)
        return loaded.settings.retrieval.top_k, loaded.origins["retrieval.top_k"]

    assert now() == (6, "flag")
    flags.clear()
    assert now() == (4, "environment RAGCLI_RETRIEVAL__TOP_K")
    environ.clear()
    assert now() == (3, "ragcli.yaml:3")
    project_file.unlink()
    assert now() == (2, f"user file {user_file}:2")
    user_file.unlink()
    assert now() == (5, "default")
