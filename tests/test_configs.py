"""The presets in configs/."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ragcli.config import load, preset_names, setting_keys
from ragcli.options import Settings

FOLDER = Path(__file__).parents[1] / "configs"


@pytest.mark.spec("C4")
def test_default_holds_every_key_with_its_default(tmp_path: Path) -> None:
    result = load(config=Path("default"), flags={}, environ={}, cwd=tmp_path, home=None)
    assert result.settings == Settings()
    assert [key for key in setting_keys() if result.origins[key] == "default"] == []


@pytest.mark.spec("C4")
def test_every_key_of_default_has_a_comment() -> None:
    lines = (FOLDER / "default.yaml").read_text(encoding="utf-8").splitlines()
    keys = [line for line in lines if re.match(r"  \w", line)]
    assert len(keys) == len(setting_keys())
    assert [line for line in keys if "#" not in line] == []


@pytest.mark.spec("C4")
@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.yaml")))
def test_every_preset_loads_and_says_what_it_is_for(name: str, tmp_path: Path) -> None:
    assert name in preset_names()
    assert (FOLDER / f"{name}.yaml").read_text(encoding="utf-8").startswith("# ")
    load(config=Path(name), flags={}, environ={}, cwd=tmp_path, home=None)


def test_english_is_stemmed_with_stop_words(tmp_path: Path) -> None:
    settings = load(config=Path("english"), flags={}, environ={}, cwd=tmp_path, home=None).settings
    assert (settings.analyzer.stemmer, settings.analyzer.stopwords) == ("english", "english")
    assert (settings.bm25.k1, settings.bm25.b) == (1.2, 0.75)
