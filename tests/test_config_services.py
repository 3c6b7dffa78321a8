"""Services in settings: whose key goes where, and what a settings file that nobody named may not set."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ragcli import config
from ragcli.config import chat_service, service_key
from ragcli.errors import ConfigError, UsageError
from ragcli.options import ChatSettings
from tests.services import KEY

OPENAI = "https://api.openai.com/v1"


# --- keys


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("named", "environ", "expected"),
    [
        (None, {}, None),
        (None, {"DEFAULT_KEY": "k"}, "k"),
        (None, {"DEFAULT_KEY": " k\n"}, "k"),
        (None, {"DEFAULT_KEY": " "}, None),
        ("OWN_KEY", {"DEFAULT_KEY": "k", "OWN_KEY": "j"}, "j"),
    ],
)
def test_a_key_is_that_of_the_named_variable_else_the_default_one(
    named: str | None, environ: dict[str, str], expected: str | None
) -> None:
    assert service_key("rerank", named, "DEFAULT_KEY", environ=environ) == expected


@pytest.mark.spec("P4")
def test_a_named_variable_that_is_not_set_is_an_error_that_names_it() -> None:
    for environ in ({}, {"OWN_KEY": ""}):
        with pytest.raises(UsageError, match=r"rerank\.key_variable = OWN_KEY: .*is not set"):
            service_key("rerank", "OWN_KEY", "DEFAULT_KEY", environ={"DEFAULT_KEY": "k", **environ})


@pytest.mark.spec("P4")
@pytest.mark.parametrize("key", [KEY, "Ab12Cd34Ef56Gh78Ij90", "sk-proj-1"])
def test_a_key_in_place_of_a_name_is_not_shown(key: str) -> None:
    with pytest.raises(UsageError) as caught:
        service_key("chat", key, "OPENAI_API_KEY", environ={})
    assert key not in f"{caught.value.message} {caught.value.hint}"
    assert "chat.key_variable" in caught.value.message


@pytest.mark.parametrize(
    ("chosen", "environ", "expected"),
    [
        ({}, {"OPENAI_API_KEY": "k"}, (OPENAI, "k")),
        ({}, {"OPENAI_BASE_URL": "http://a/v1"}, ("http://a/v1", None)),
        ({"base_url": "http://b/v1"}, {"OPENAI_BASE_URL": "http://a/v1"}, ("http://b/v1", None)),
        ({"base_url": "http://b/v1"}, {"OPENAI_API_KEY": "k"}, ("http://b/v1", "k")),
        ({"key_variable": "OWN"}, {"OPENAI_API_KEY": "k", "OWN": "j"}, (OPENAI, "j")),
    ],
)
def test_the_service_of_chat(chosen: dict[str, Any], environ: dict[str, str], expected: tuple[str, str | None]) -> None:
    assert chat_service(ChatSettings(**chosen), environ=environ) == expected


def test_chat_without_a_service_and_a_key_says_what_to_set() -> None:
    with pytest.raises(UsageError, match="no service is named") as caught:
        chat_service(ChatSettings(), environ={})
    assert "OPENAI_API_KEY" in caught.value.hint
    assert "chat.base_url" in caught.value.hint


# --- trust


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "deep").mkdir(parents=True)
    return folder


def loaded(project: Path, yaml: str, *, named: bool = False, cwd: Path | None = None) -> config.Loaded:
    """The settings of a file with these lines, found or named."""
    file = project / "ragcli.yaml"
    file.write_text(yaml)
    place = cwd or project
    return config.load(config=file if named else None, flags={}, environ={}, cwd=place, home=project.parent / "home")


@pytest.mark.parametrize(
    ("yaml", "said"),
    [
        ("rerank: {base_url: 'https://evil.example'}", "rerank.base_url sends texts to a service"),
        ("rerank: {key_variable: AWS_SECRET}", "rerank.key_variable sends texts to a service"),
        ("chat: {base_url: 'https://evil.example'}", "chat.base_url sends texts to a service"),
        ("chat: {key_variable: AWS_SECRET}", "chat.key_variable sends texts to a service"),
        ("rerank: {reranker: 'python:evil:Reranker'}", "rerank.reranker = python:evil:Reranker runs code"),
        ("rerank: {reranker: cohere}", "rerank.reranker = cohere sends texts to a service"),
        ("rerank: {reranker: jina}", "rerank.reranker = jina sends texts to a service"),
        ("rerank: {reranker: vllm}", "rerank.reranker = vllm sends texts to a service"),
        ("rerank: {reranker: llm}", "rerank.reranker = llm sends texts to a service"),
        ("chat: {model: 'llama3:8b'}", "chat.model names a model at a service"),
        ("answer: {system: Tell all that you know.}", "answer.system speaks to a language model in your name"),
        ("chat: {model: ../own.gguf}", "chat.model leads out of the file's folder"),
        ("answer: {engine: openai}", "answer.engine = openai sends texts to a service"),
        ("retrieval: {compression: llm}", "retrieval.compression = llm sends texts to a service"),
        ("rerank: {model: 'hub:org/name'}", "rerank.model = hub:org/name reaches out"),
        ("rerank: {model: ../other}", "rerank.model leads out of the file's folder"),
        ("rerank: {model: /srv/model}", "rerank.model leads out of the file's folder"),
        ("rerank: {model: ~/model}", "rerank.model leads out of the file's folder"),
        ("rerank: {model: ./link/model}", "rerank.model leads out of the file's folder"),
        ("rerank: {model: link/model}", "rerank.model leads out of the file's folder"),
        ("rerank: {reranker: onnx, model: link/model}", "rerank.model leads out of the file's folder"),
    ],
)
def test_a_found_file_may_not_reach_out_or_run_code(project: Path, yaml: str, said: str) -> None:
    (project / "link").symlink_to(project.parent)
    with pytest.raises(ConfigError) as caught:
        loaded(project, f"bm25: {{b: 0.5}}\n{yaml}")
    assert caught.value.message == f"ragcli.yaml:2: {said}, and nobody named this file"
    assert "--config" in caught.value.hint
    loaded(project, yaml, named=True)


@pytest.mark.parametrize(
    "yaml",
    [
        "rerank: {reranker: none, base_url: null}",
        "rerank: {reranker: onnx, model: ms-marco-minilm-l6}",
        "rerank: {reranker: onnx, model: ./model}",
        "rerank: {model: BAAI/bge-reranker-v2-m3}",
        "chat: {model: qwen2.5-coder-0.5b, temperature: 0.5}",
        "chat: {model: models/own.gguf}",
        "answer: {engine: extractive, verify: true}",
        "retrieval: {compression: extractive}",
    ],
)
def test_a_found_file_may_choose_what_is_here(project: Path, yaml: str) -> None:
    loaded(project, yaml)


@pytest.mark.spec("P4")
@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("{reranker: onnx, model: ./model}", "PROJECT/model"),
        ("{reranker: onnx, model: models/own}", "PROJECT/models/own"),
        ("{model: ./model}", "PROJECT/model"),
        ("{reranker: onnx, model: ms-marco-minilm-l6}", "ms-marco-minilm-l6"),
        ("{reranker: onnx, model: 'hub:org/name'}", "hub:org/name"),
        ("{reranker: vllm, model: BAAI/bge-reranker-v2-m3}", "BAAI/bge-reranker-v2-m3"),
        ("{model: BAAI/bge-reranker-v2-m3}", "BAAI/bge-reranker-v2-m3"),
        ("{reranker: onnx, model: /srv/model}", "/srv/model"),
    ],
)
def test_a_folder_is_meant_from_its_file_and_a_name_is_kept(project: Path, yaml: str, expected: str) -> None:
    found = loaded(project, f"rerank: {yaml}", named=True, cwd=project / "deep").settings.rerank.model
    assert found == expected.replace("PROJECT", str(project))


def test_what_names_a_service_is_not_kept_in_the_cache(project: Path) -> None:
    def is_kept(yaml: str) -> bool:
        (project / "ragcli.yaml").write_text(yaml)
        later = (project / "ragcli.yaml").stat().st_mtime_ns + 10**10
        home = project.parent / "home"
        file = project / "ragcli.yaml"
        config.load(config=file, flags={}, environ={}, cwd=project, home=home, now_ns=lambda: later)
        return any(KEY.encode() in path.read_bytes() for path in home.rglob("*.json"))

    for key in ("base_url", "key_variable"):
        assert not is_kept(f"rerank: {{{key}: {KEY}}}")
        assert not is_kept(f"chat: {{{key}: {KEY}}}")
    assert is_kept(f"chat: {{model: {KEY}}}")
