"""G14: bad YAML and values that can't be meant: the file and the line are said."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragcli.config import load
from ragcli.errors import ConfigError


@pytest.mark.spec("C4")
@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        ("retrieval:\n\ttop_k: 3\n", "ragcli.yaml:2: a tab indents this line"),
        ("retrieval:\n  top_k: 3\n  mode: keyword\n  top_k: 4\n", "ragcli.yaml:4: duplicate key top_k"),
        ('bm25:\n  b: 0.5\n  k1: "half"\n', "ragcli.yaml:3: bm25.k1 must be a number, not 'half'"),
        ("retrieval:\n  top_k: 0\n", "ragcli.yaml:2: retrieval.top_k = 0 is out of range: 1 to 1000000"),
        ("retrieval:\n  top_k: -1\n", "ragcli.yaml:2: retrieval.top_k = -1 is out of range: 1 to 1000000"),
        ("retrieval:\n  top_k: 1e9\n", "ragcli.yaml:2: retrieval.top_k must be a whole number, not 1000000000.0"),
        ("retrieval:\n  top_k: true\n", "ragcli.yaml:2: retrieval.top_k must be a whole number, not true"),
    ],
)
def test_file_and_line_are_said_with_code_2(tmp_path: Path, yaml: str, said: str) -> None:
    (tmp_path / "ragcli.yaml").write_text(yaml)
    with pytest.raises(ConfigError) as caught:
        load(config=None, flags={}, environ={}, cwd=tmp_path, home=None)
    assert caught.value.message == said
    assert caught.value.exit_code == 2
