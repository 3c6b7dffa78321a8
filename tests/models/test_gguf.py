"""A language model in this process: the real one that is small enough for tests (spec M9)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from ragcli.errors import RagcliError, UsageError
from ragcli.models.chat import engine_of, open_chat
from ragcli.models.gguf import LocalChat, open_gguf
from ragcli.models.place import ModelPlace
from ragcli.options import ChatSettings, Settings
from ragcli.types import Message, Wish, ignore_event
from tests.services import EmbeddingService

NAME = "smollm2-135m"
ASKED = [Message("user", "Say hello in five words.")]
WINDOW = 512


@pytest.fixture(scope="module")
def file(pulled: Callable[[str], Path]) -> Path:
    return next(pulled(NAME).glob("*.gguf"))


@pytest.fixture(scope="module")
def chat(file: Path) -> Iterator[LocalChat]:
    settings = Settings(chat=ChatSettings(model=str(file), context_window=WINDOW))
    opened = open_gguf(str(file), settings, nowhere)
    yield opened
    opened.close()


def nowhere() -> ModelPlace:
    raise AssertionError("a file is where it is")


@pytest.mark.spec("M9", "A1")
def test_it_answers_piece_by_piece_and_tells_the_tokens(chat: LocalChat) -> None:
    pieces: list[str] = []
    reply = chat.write(ASKED, Wish(max_tokens=24), pieces.append)
    assert "".join(pieces) == reply.text
    assert len(pieces) > 1
    assert (reply.problem, reply.usage.completion_tokens is not None) == ("", True)
    counted = chat.count(ASKED[0].content)
    assert reply.usage.prompt_tokens is not None
    assert reply.usage.prompt_tokens >= counted  # the template adds to it
    assert chat.name.startswith("gguf:")
    assert chat.window == WINDOW


def test_a_reply_at_its_limit_says_so(chat: LocalChat) -> None:
    reply = chat.write(ASKED, Wish(max_tokens=3), lambda _: None)
    assert (reply.finish, reply.usage.completion_tokens) == ("length", 3)


def test_at_temperature_0_the_same_question_has_the_same_answer(chat: LocalChat) -> None:
    first, second = (chat.write(ASKED, Wish(max_tokens=16, seed=1), lambda _: None).text for _ in range(2))
    assert first == second


@pytest.mark.spec("M9")
def test_no_proxy_sees_a_text_for_the_model_that_runs_here(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddingService() as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://{proxy.address}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        with closing(open_gguf(str(file), Settings(), nowhere)) as opened:
            assert opened.count("the text of a document") > 3
            assert opened.window > 0
            assert opened.reply(ASKED, max_tokens=2)
        assert proxy.requests == []


@pytest.mark.spec("A13")
def test_what_looks_like_a_control_token_is_counted_as_text(chat: LocalChat) -> None:
    assert chat.count("<|im_start|>") > 1
    assert chat.count("") == 0
    assert chat.count("a\ud800b") == chat.count("a?b")


def test_a_prompt_longer_than_the_window_is_an_error_with_both_figures(chat: LocalChat) -> None:
    with pytest.raises(RagcliError, match=rf"\d+ tokens.*{WINDOW} tokens") as caught:
        chat.write([Message("user", "word " * 2 * WINDOW)], Wish(), lambda _: None)
    assert "--max-context-tokens" in caught.value.hint
    assert chat.reply(ASKED, max_tokens=4)  # it goes on


def test_an_interrupt_ends_the_writing_and_not_the_model(chat: LocalChat) -> None:
    def interrupt(piece: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        chat.write(ASKED, Wish(max_tokens=200), interrupt)
    assert chat.reply(ASKED, max_tokens=4)


def test_what_is_closed_answers_no_more(file: Path) -> None:
    opened = LocalChat(str(file), file, Settings())
    opened.close()
    for use in (lambda: opened.reply(ASKED), lambda: opened.count("a"), lambda: opened.window):
        with pytest.raises(RagcliError, match="is closed"):
            use()


@pytest.mark.spec("M9")
@pytest.mark.parametrize(
    ("name", "base_url", "engine"),
    [
        (None, None, "extractive"),
        ("gpt-4o", None, "openai"),
        (NAME, None, "gguf"),
        ("qwen2.5-coder-0.5b", None, "gguf"),
        ("own.GGUF", None, "gguf"),
        (NAME, "http://127.0.0.1:1/v1", "openai"),
        ("minilm", None, "openai"),
    ],
)
def test_where_a_model_runs_is_told_by_its_name(name: str | None, base_url: str | None, engine: str) -> None:
    assert engine_of(Settings(chat=ChatSettings(model=name, base_url=base_url))) == engine
    if name:  # what is asked for by its name stands before the setting
        assert engine_of(Settings(chat=ChatSettings(model="other", base_url=base_url)), name) == engine


def test_a_file_that_is_no_model_is_told(tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("GGUX and more")
    for name, said in [("text.gguf", "this is no gguf file"), ("none.gguf", "No such file")]:
        settings = Settings(chat=ChatSettings(model=str(tmp_path / name)))
        with pytest.raises(UsageError, match=said):
            open_chat(settings, ignore_event, place=nowhere)


def test_a_damaged_model_is_an_error_of_one_line(tmp_path: Path, file: Path) -> None:
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(file.read_bytes()[:100_000])
    with pytest.raises(RagcliError, match=r"llama\.cpp can't load") as caught:
        open_gguf(str(cut), Settings(), nowhere).reply(ASKED)
    assert "\n" not in caught.value.message


def test_a_model_of_another_kind_is_refused() -> None:
    with pytest.raises(UsageError, match="minilm is no chat model but of kind embedder"):
        open_chat(Settings(chat=ChatSettings(model="minilm")), ignore_event, place=nowhere, engine="gguf")


@pytest.mark.spec("M9")
def test_the_catalogues_models_are_those_that_run_here() -> None:
    from ragcli.models.catalogue import MODELS
    from ragcli.options import LOCAL_CHATS

    assert {model.name for model in MODELS if model.kind == "chat"} == set(LOCAL_CHATS)
