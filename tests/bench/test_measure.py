"""What is measured runs as an installed tool does, whatever the developer's environment says."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.bench import measure


def test_measured_commands_may_use_and_keep_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in measure.NO_BYTECODE:
        monkeypatch.setenv(name, "1")
    measure.environment.cache_clear()
    environment = measure.environment()
    measure.environment.cache_clear()
    assert not set(measure.NO_BYTECODE) & set(environment)
    assert set(os.environ) - set(environment) == set(measure.NO_BYTECODE)
    script = "import sys, importlib.util, pathlib, ragcli.cli as m; assert not sys.dont_write_bytecode\n"
    script += "assert pathlib.Path(importlib.util.cache_from_source(m.__file__)).is_file()"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=measure.ROOT, env=environment)
