"""Every setting with a range: what lies outside is refused, from Python and from the shell, in the same words (R1)."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf, nan
from typing import Any

import msgspec
import pytest

from ragcli.cli import main
from ragcli.errors import OptionError
from ragcli.options import RetrievalOptions, Settings

MILLION = "1 to 1000000"
RANGES: dict[str, tuple[str, list[float]]] = {
    "ingest.max_file_bytes": ("1 byte to 1 TiB", [0, -1, 2**40 + 1]),
    "ingest.workers": ("0 (one a core) to 256", [-1, 257]),
    "chunking.size": ("1 or more", [0, -5]),
    "chunking.overlap": ("0 or more", [-1]),
    "parents.size": ("1 or more", [0, -5]),
    "parents.overlap": ("0 or more", [-1]),
    "bm25.k1": ("0 to 1000", [-0.1, 1000.5, nan, inf]),
    "bm25.b": ("0 to 1", [-0.1, 1.1, nan, -inf]),
    "models.threads": ("0 (one a core) to 256", [-1, 257]),
    "embedding.max_tokens": ("1 to 1048576", [0, 2**20 + 1]),
    "embedding.dimensions": ("1 to 1048576", [0, 2**20 + 1]),
    "embedding.batch_texts": ("1 to 100000", [0, 100_001]),
    "embedding.batch_tokens": ("1 to 100000000", [0, 100_000_001]),
    "embedding.requests_per_minute": ("0.001 to 1e9", [0.0, -1.0, 1e10, nan, inf]),
    "embedding.timeout_seconds": ("0.001 to 86400", [0.0, 86401.0, nan, inf]),
    "embedding.retries": ("0 to 100", [-1, 101]),
    "fusion.rrf_k": (MILLION, [0, 1_000_001]),
    "fusion.depth": (MILLION, [0, 1_000_001]),
    "retrieval.top_k": (MILLION, [0, -3, 1_000_001]),
    "retrieval.min_score": ("-1 to 1", [-1.1, 1.1, nan, inf]),
    "retrieval.per_document": (MILLION, [0, 1_000_001]),
    "retrieval.candidate_multiplier": ("1 to 1000", [0, 1001]),
    "retrieval.candidate_count": (MILLION, [0, 1_000_001]),
    "retrieval.redundancy_threshold": ("-1 to 1", [-1.01, 1.01, nan, inf]),
    "retrieval.mmr_lambda": ("0 to 1", [-0.01, 1.01, nan, -inf]),
    "retrieval.mmr_candidate_count": (MILLION, [0, 1_000_001]),
    "retrieval.mmr_keep": (MILLION, [0, 1_000_001]),
    "retrieval.max_context_tokens": ("1 or more", [0, -1]),
    "retrieval.compression_sentences": ("1 to 1000", [0, 1001]),
    "rerank.max_tokens": ("1 to 1048576", [0, 2**20 + 1]),
    "rerank.min_score": ("-1000000 to 1000000", [-1e7, 1e7, nan, inf]),
    "rerank.retrieval_weight": ("0 to 1", [-0.1, 1.1, nan, inf]),
    "rerank.time_budget_seconds": ("0.001 to 86400", [0.0, 86401.0, nan, inf]),
    "rerank.requests_per_minute": ("0.001 to 1e9", [0.0, -1.0, 1e10, nan, inf]),
    "rerank.timeout_seconds": ("0.001 to 86400", [0.0, 86401.0, nan, inf]),
    "rerank.retries": ("0 to 100", [-1, 101]),
    "chat.temperature": ("0 to 2", [-0.1, 2.1, nan, inf]),
    "chat.requests_per_minute": ("0.001 to 1e9", [0.0, -1.0, 1e10, nan, inf]),
    "chat.timeout_seconds": ("0.001 to 86400", [0.0, 86401.0, nan, inf]),
    "chat.retries": ("0 to 100", [-1, 101]),
    "chat.context_window": ("128 or more", [0, 127, -1]),
    "answer.max_tokens": ("1 or more", [0, -1]),
    "answer.seed": ("0 to 4294967295", [-1, 2**32]),
    "answer.min_cosine": ("-1 to 1", [-1.1, 1.1, nan, inf]),
    "answer.min_coverage": ("0 to 1", [-0.1, 1.1, nan, inf]),
    "answer.sentences": ("1 to 1000", [0, 1001]),
}
CASES = [(key, value, allowed) for key, (allowed, values) in RANGES.items() for value in values]
FLAGS = {
    "ingest.workers": ("ingest", ".", "--workers"),
    "chunking.size": ("ingest", ".", "--chunk-size"),
    "chunking.overlap": ("ingest", ".", "--chunk-overlap"),
    "retrieval.top_k": ("query", "x", "--top-k"),
    "retrieval.min_score": ("query", "x", "--min-score"),
    "retrieval.candidate_count": ("query", "x", "--candidates"),
    "retrieval.per_document": ("query", "x", "--per-document"),
    "retrieval.redundancy_threshold": ("query", "x", "--redundancy-threshold"),
    "retrieval.mmr_lambda": ("query", "x", "--lambda"),
    "retrieval.mmr_candidate_count": ("query", "x", "--mmr-candidates"),
    "retrieval.max_context_tokens": ("query", "x", "--max-context-tokens"),
    "answer.max_tokens": ("ask", "x", "--max-tokens"),
    "answer.seed": ("ask", "x", "--seed"),
    "chat.temperature": ("ask", "x", "--temperature"),
}


def sections() -> Iterator[tuple[str, Any]]:
    for field in msgspec.structs.fields(Settings):
        yield field.name, type(field.default)


def made_with(key: str, value: object) -> Any:
    section, _, name = key.partition(".")
    return dict(sections())[section](**{name: value})


def test_every_number_has_its_range_here() -> None:
    numbers = {
        f"{section}.{field.name}"
        for section, struct in sections()
        for field in msgspec.structs.fields(struct)
        if field.type in {int, float, int | None, float | None}
    }
    assert numbers == set(RANGES)


@pytest.mark.spec("R1")
@pytest.mark.parametrize(("key", "value", "allowed"), CASES)
def test_from_python_it_is_a_value_error_with_option_value_and_range(key: str, value: float, allowed: str) -> None:
    with pytest.raises(ValueError, match="is out of range") as caught:
        made_with(key, value)
    error = caught.value
    assert isinstance(error, OptionError)
    assert (error.option, repr(error.value), error.allowed) == (key, repr(value), allowed)
    assert error.message == f"{key} = {value!r} is out of range: {allowed}"


@pytest.mark.spec("R1", "C9")
@pytest.mark.parametrize(("key", "value", "allowed"), [case for case in CASES if case[0] in FLAGS])
def test_from_a_flag_it_is_exit_code_2(
    key: str, value: float, allowed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    *command, flag = FLAGS[key]
    assert main([*command, f"{flag}={value}"]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"error: {key} = {value!r} is out of range: {allowed}\n")


@pytest.mark.spec("R1", "C9")
@pytest.mark.parametrize(("key", "value", "allowed"), CASES)
def test_from_the_environment_it_is_exit_code_2(
    key: str, value: float, allowed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    variable = f"RAGCLI_{key.upper().replace('.', '__')}"
    monkeypatch.setenv(variable, str(value))
    assert main(["query", "x"]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"error: {variable}: {key} = {value!r} is out of range: {allowed}\n")


@pytest.mark.spec("R1")
@pytest.mark.parametrize("key", RANGES)
def test_the_default_is_within_its_range(key: str) -> None:
    section, _, name = key.partition(".")
    default = getattr(getattr(Settings(), section), name)
    if default is not None:
        made = made_with(key, default)
        assert getattr(made, name) == default


@pytest.mark.spec("R1")
@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, 5 * 3), ({"candidate_count": 2}, 5), ({"candidate_count": 40}, 40), ({"top_k": 7}, 7 * 3)],
)
def test_an_arm_gives_the_stages_enough_for_a_page(options: dict[str, int], expected: int) -> None:
    assert RetrievalOptions(**options).candidates == expected  # type: ignore[arg-type]
