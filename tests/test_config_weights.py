"""`fusion.weights` from a file, a variable and a flag: read alike, and every mistake named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from ragcli.config import Loaded, load
from ragcli.errors import ConfigError, OptionError, UsageError

Load = Callable[..., Loaded]
VARIABLE = "RAGCLI_FUSION__WEIGHTS"


@pytest.fixture
def load_here(tmp_path: Path) -> Load:
    """`load` in a folder of its own; `yaml` becomes its ragcli.yaml."""

    def call(yaml: str | None = None, *, environ: Mapping[str, str] | None = None, flag: str | None = None) -> Loaded:
        if yaml is not None:
            (tmp_path / "ragcli.yaml").write_text(yaml, encoding="utf-8")
        flags = {"fusion.weights": flag}
        return load(config=None, flags=flags, environ=environ or {}, cwd=tmp_path, home=tmp_path / "home")

    return call


@pytest.mark.spec("R5", "C4")
@pytest.mark.parametrize(
    "written",
    [
        {"yaml": "fusion: {weights: {bm25: 0.3, dense: 7}}"},
        {"yaml": "fusion:\n  weights: bm25=0.3,dense=7"},
        {"yaml": "fusion: {weights: '${W}'}", "environ": {"W": "bm25=0.3,dense=7"}},
        {"environ": {VARIABLE: "bm25=0.3,dense=7"}},
        {"environ": {VARIABLE: '{"bm25": 0.3, "dense": 7}'}},
        {"flag": "bm25=0.3,dense=7"},
        {"flag": " dense = 7 , bm25 = .3 "},
    ],
)
def test_weights_are_read_alike_wherever_they_stand(load_here: Load, written: dict[str, object]) -> None:
    found = load_here(**written).settings.fusion
    assert found.weights == {"bm25": 0.3, "dense": 7.0}
    assert {type(weight) for weight in found.weights.values()} == {float}


@pytest.mark.spec("R5")
def test_an_arm_that_is_not_named_has_the_weight_of_the_method(load_here: Load) -> None:
    fusion = load_here(flag="dense=0.7").settings.fusion
    assert (fusion.weight("bm25"), fusion.weight("dense")) == (0.5, 0.7)


@pytest.mark.spec("C4")
def test_a_flag_takes_the_place_of_all_weights_of_a_file(load_here: Load) -> None:
    loaded = load_here("fusion: {weights: {bm25: 3, dense: 1}}", flag="dense=0.7")
    assert loaded.settings.fusion.weights == {"dense": 0.7}
    assert loaded.origins["fusion.weights"] == "flag"


MISTAKES = [
    ("dens=1", "unknown arm 'dens'; did you mean dense?"),
    ("BM25=1", "unknown arm 'BM25'"),
    ("bm25=much", "the weight of bm25 must be a number, not 'much'"),
    ("bm25=nan", "the weight of bm25 must be a number, not 'nan'"),
    ("bm25=", "the weight of bm25 must be a number, not null"),
    ("bm25=true", "the weight of bm25 must be a number, not true"),
    ("bm25=1,bm25=2", "bm25 is given twice"),
]


@pytest.mark.spec("C7")
@pytest.mark.parametrize(("text", "said"), MISTAKES)
def test_a_mistake_is_one_line_that_names_it(load_here: Load, text: str, said: str) -> None:
    places: dict[str, dict[str, Any]] = {
        "fusion.weights: ": {"flag": text},
        f"{VARIABLE}: fusion.weights: ": {"environ": {VARIABLE: text}},
        "ragcli.yaml:2: fusion.weights: ": {"yaml": f"fusion:\n  weights: {text}"},
    }
    for place, written in places.items():
        with pytest.raises(ConfigError) as caught:
            load_here(**written)
        assert caught.value.message.startswith(place + said)
        assert "\n" not in caught.value.message


@pytest.mark.spec("C7")
@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        ("weights: [1, 2]", "fusion.weights must be weights of arms, such as bm25=0.3,dense=0.7, not a list"),
        ("weights: 1", "fusion.weights must be weights of arms, such as bm25=0.3,dense=0.7, not 1"),
        ("weights: bm25", "fusion.weights must be weights of arms, such as bm25=0.3,dense=0.7, not 'bm25'"),
        ("weights: '{'", "fusion.weights must be weights of arms"),
        ("weights: {sparse: 1}", "fusion.weights: unknown arm 'sparse'"),
        ("weights: {bm25: {a: 1}}", "fusion.weights: the weight of bm25 must be a number, not a map"),
        ("weights: {bm25: -1}", "fusion.weights.bm25 = -1.0 is out of range: 0 to 1000000"),
        ("weights: {bm25: 0, dense: 0}", "fusion.weights = {'bm25': 0.0, 'dense': 0.0} is out of range: at "),
        ("method: rff", "fusion.method must be one of relative, zscore, rrf, not 'rff'"),
        ("rrf_k: 0", "fusion.rrf_k = 0 is out of range"),
    ],
)
def test_a_file_names_line_and_reason(load_here: Load, yaml: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_here(f"fusion:\n  {yaml}")
    assert caught.value.message.startswith(f"ragcli.yaml:2: {said}")


@pytest.mark.spec("C7", "R1")
def test_a_weight_out_of_range_in_a_flag_is_an_error_of_the_option(load_here: Load) -> None:
    with pytest.raises(OptionError) as caught:
        load_here(flag="bm25=-1")
    assert (caught.value.option, caught.value.value) == ("fusion.weights.bm25", -1.0)
    for empty in ("", " ", ","):
        with pytest.raises(UsageError, match="must be weights of arms"):
            load_here(flag=empty)
