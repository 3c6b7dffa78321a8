"""One question from its words to a checked answer: rewrite, retrieval, prompt, model, citations (spec 4).

What it needs of an open index comes as `Means`: the retrieval is the pipeline's own, so that `query` and `ask` of the
same words see the same hits (A14). Every step is timed; what fails beside the answer itself is a warning.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from time import perf_counter
from typing import Protocol

import msgspec
from msgspec.structs import replace

from ragcli import prompt as prompts
from ragcli.answer import citations as citing
from ragcli.answer.confidence import Confidence, confidence
from ragcli.answer.extractive import NAME as EXTRACTIVE
from ragcli.answer.extractive import extracts, written
from ragcli.answer.reading import alarm
from ragcli.answer.support import judged_citations, statements
from ragcli.errors import RagcliError, shortened
from ragcli.options import ARMS, AnswerSettings, Engine, RetrievalOptions
from ragcli.types import (
    Answer,
    ChatModel,
    Event,
    Hit,
    Lens,
    Listener,
    Message,
    Observer,
    Prompt,
    Result,
    Wish,
    ignore_event,
)

LONGEST_QUOTE = 200  # characters of a sentence in a warning
MOST_CHECKED = 100_000  # characters of an answer; what is longer is none that anybody asked for
ANSWERED, INCOMPLETE, NO_ANSWER = "answered", "incomplete", "no-answer"


class Means(Protocol):
    """What an open index lends to a question."""

    def retrieve(self, query: str, options: RetrievalOptions) -> Result: ...

    def lens(self) -> Lens: ...

    def chat(self) -> ChatModel:
        """Raises: UsageError, ModelMissing, RemoteError."""

    def window(self) -> prompts.Window:
        """Of the chat model."""


class Hearing(msgspec.Struct, frozen=True, kw_only=True):
    """Who is told of what, and when. `on_text`: pieces of the answer as they come; `on_prompt`: before it is sent.

    `on_sources`: what was retrieved, and the engine's name, before the answer's first piece.
    """

    listen: Listener = ignore_event
    on_text: Callable[[str], None] = lambda _: None
    on_sources: Callable[[Sequence[Hit], str], None] = lambda _, __: None
    observer: Observer | None = None


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked, on which conversation it follows, and how the answer is wanted."""

    text: str
    engine: Engine
    settings: AnswerSettings
    options: RetrievalOptions
    history: tuple[Message, ...] = ()


def ask(question: Question, means: Means, hearing: Hearing) -> Answer:
    """The answer.

    Raises: as `Means.retrieve` and `Means.chat`; RemoteError, RagcliError: the model gives no answer at all.
    """
    return _Asking(question, means, hearing).answer()


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """What would be sent: what was searched for, what was found, the prompt of it, and what there is to say."""

    search: str
    result: Result
    prompt: Prompt
    confidence: Confidence
    warnings: tuple[str, ...] = ()


def draft(question: Question, means: Means, hearing: Hearing) -> Draft:
    """The prompt that `ask` would send, without sending it (spec A11). Raises: as `ask`."""
    return _Asking(question, means, hearing).draft()


class _Asking:
    def __init__(self, question: Question, means: Means, hearing: Hearing) -> None:
        self._question, self._means, self._hearing = question, means, hearing
        self._settings = question.settings
        self._warnings: list[str] = []
        self._notes: list[str] = []
        self._seconds: dict[str, float] = {}
        self._started = perf_counter()

    def answer(self) -> Answer:
        search = self.search()
        result = self.retrieved(search)
        hits = result.ranking.hits
        lens = self._means.lens()
        sure = confidence(search, hits, lens, self._settings)
        if not sure.is_enough and not self._settings.always:
            return self._finished(self._nothing(search, result, sure.words))
        if not sure.is_enough:
            self._notes.append(f"answered although nothing relevant was found: {sure.words if hits else 'no hits'}")
        self._hearing.on_sources(hits, self._name())
        found = self._extracted(search, result, lens) if self._is_extractive else self._written(search, result)
        return self._finished(self._checked(found, lens))

    def draft(self) -> Draft:
        search = self.search()
        result = self.retrieved(search)
        sent = self.prompt(search, result.ranking.hits)
        sure = confidence(search, result.ranking.hits, self._means.lens(), self._settings)
        said = (*result.warnings, *self._warnings, *sent.warnings, *_of_forgeries(sent))
        return Draft(search=search, result=result, prompt=sent, confidence=sure, warnings=said)

    @property
    def _is_extractive(self) -> bool:
        return self._question.engine == EXTRACTIVE

    # ---------------------------------------------------------------------------------------------------- the sources

    def search(self) -> str:
        """What is searched for: the question, or one that stands alone in place of one that follows on others."""
        asked = any(message.role == "user" for message in self._question.history)
        if not (asked and self._settings.rewrite) or self._is_extractive:
            return self._question.text
        from ragcli.expand.rewrite import rewritten

        self._hearing.listen(Event(stage="rewriting"))
        started = perf_counter()
        try:
            return rewritten(self._question.text, self._question.history, self._means.chat(), self._show)
        except RagcliError as error:
            self._warnings.append(f"searched for the question as it stands, it was not rewritten: {error.message}")
            return self._question.text
        finally:
            self._seconds["rewrite"] = perf_counter() - started

    def retrieved(self, search: str) -> Result:
        """The hits."""
        started = perf_counter()
        result = self._means.retrieve(search, self._question.options)
        self._seconds["retrieval"] = perf_counter() - started
        return result

    def prompt(self, search: str, hits: Sequence[Hit]) -> Prompt:
        """What the model is sent."""
        asked = prompts.asked(self._question.text, self._settings, search=search, history=self._question.history)
        return prompts.assemble(asked, hits, self._means.window())

    # ----------------------------------------------------------------------------------------------------- the answer

    def _nothing(self, search: str, result: Result, signs: str) -> Answer:
        """No model is asked: what it would write would not rest on the documents."""
        hits = result.ranking.hits
        looked = max((step.taken for step in result.trace.steps if step.stage in ARMS), default=0)
        why = f"nothing relevant was found: {signs}" if hits else f"0 of {looked:,} chunks passed"
        asked = (
            "--always shows the nearest sentences" if self._is_extractive else "no model was asked; --always asks it"
        )
        self._notes.append(f"{asked} even so")
        return Answer(
            question=self._question.text, search=search, text=f"No confident answer: {why}.", outcome=NO_ANSWER,
            engine=self._name(), sources=hits, result=result,
        )  # fmt: skip

    def _name(self) -> str:
        return EXTRACTIVE if self._is_extractive else self._means.chat().name

    def _extracted(self, search: str, result: Result, lens: Lens) -> Answer:
        self._hearing.listen(Event(stage="extracting"))
        started = perf_counter()
        hits = result.ranking.hits
        found = extracts(search, hits, lens, self._settings.sentences)
        text = written(found)
        self._seconds["answer"] = perf_counter() - started
        if not found:
            return self._nothing(search, result, "no sentence in the sources says something")
        self._hearing.on_text(text)
        if self._question.history:
            self._notes.append("the turns before were not looked at: extracts need no language model (--model NAME)")
        if problem := lens.problem():
            self._warnings.append(f"the extracts were chosen by words alone: {problem}")
        return Answer(
            question=self._question.text, search=search, text=text, outcome=ANSWERED, engine=EXTRACTIVE, sources=hits,
            result=result, finish="stop",
        )  # fmt: skip

    def _written(self, search: str, result: Result) -> Answer:
        chat = self._means.chat()
        sent = self.prompt(search, result.ranking.hits)
        self._warnings += [*sent.warnings, *_of_forgeries(sent)]
        self._show(sent.messages)
        self._hearing.listen(Event(stage=f"asking {chat.name}"))
        started = perf_counter()

        def on_text(piece: str) -> None:
            self._seconds.setdefault("first_token", perf_counter() - started)
            self._hearing.on_text(piece)

        wish = Wish(max_tokens=self._settings.max_tokens, seed=self._settings.seed, stream=self._settings.stream)
        reply = chat.write(sent.messages, wish, on_text)
        self._seconds["answer"] = perf_counter() - started
        window = self._means.window()
        if said := alarm(sent, reply.usage, window.count, is_own=window.is_own):
            self._warnings.append(said)
        self._warnings += _of_ending(reply.finish, reply.problem, self._settings.max_tokens)
        self._notes += reply.notes
        return Answer(
            question=self._question.text, search=search, text=reply.text.strip(),
            outcome=INCOMPLETE if reply.problem else ANSWERED, engine=chat.name, sources=sent.sources, result=result,
            prompt=sent, usage=reply.usage, finish=reply.finish, reasoning=reply.reasoning, problem=reply.problem,
        )  # fmt: skip

    def _show(self, messages: Sequence[Message]) -> None:
        """The observer sees what goes out; its faults are told and harm nothing (spec A6)."""
        if self._hearing.observer is None:
            return
        try:
            self._hearing.observer(messages)
        except Exception as error:
            self._warnings.append(f"the observer of the prompt failed: {type(error).__name__}: {error}")

    # ----------------------------------------------------------------------------------------------------- the checks

    def _checked(self, answer: Answer, lens: Lens) -> Answer:
        """With its citations, verified and renumbered where that is wished."""
        if answer.outcome == NO_ANSWER:
            return answer
        if len(answer.text) > MOST_CHECKED:
            self._warnings.append(f"an answer of {len(answer.text):,} characters: its citations were not checked")
            return answer
        found = citing.citations(answer.text, len(answer.sources))
        answer = replace(answer, citations=found)
        if self._settings.renumber:
            answer = _renumbered(answer)
        if self._settings.verify:
            answer = self._verified(answer, lens)
        self._warnings += _of_citations(answer)
        return answer

    def _verified(self, answer: Answer, lens: Lens) -> Answer:
        self._hearing.listen(Event(stage="verifying"))
        started = perf_counter()
        said = statements(answer.text, answer.citations, answer.sources, lens)
        self._seconds["verify"] = perf_counter() - started
        if problem := lens.problem():
            self._warnings.append(f"verified by words alone: {problem}")
        return replace(answer, statements=said, citations=judged_citations(answer.citations, said))

    def _finished(self, answer: Answer) -> Answer:
        timings: Mapping[str, float] = {**self._seconds, "total": perf_counter() - self._started}
        return replace(
            answer,
            timings=timings,
            warnings=(*answer.result.warnings, *self._warnings),
            notes=(*answer.result.notes, *self._notes),
        )


def _of_forgeries(sent: Prompt) -> list[str]:
    """That a source holds what looks like a part of a prompt."""
    return [
        f"[Source {number}] {sent.sources[number - 1].chunk.document_id} holds what looks like a part of a prompt: "
        f"{'1 place was' if places == 1 else f'{places} places were'} escaped"
        for number, places in sent.forged
    ]


def _of_ending(finish: str, problem: str, most: int) -> list[str]:
    """That the answer may not be all that the model had to say."""
    if problem:
        return [f"the answer is incomplete: {problem}"]
    if finish == "length":
        return [
            f"the answer ended at a limit (finish_reason length): answer.max_tokens = {most}, or the model's window"
        ]
    return [f"the answer ended with finish_reason {finish}"] if finish not in {"", "stop", "eos", "end_turn"} else []


def _of_citations(answer: Answer) -> list[str]:
    """What there is to say of an answer's citations."""
    unknown = sorted({one.source for one in answer.citations if not one.valid})
    said = []
    if unknown:
        numbers = ", ".join(map(str, unknown))
        sent = f"the sources are 1 to {len(answer.sources)}" if answer.sources else "no source was sent"
        said.append(f"the answer cites {numbers}, but {sent}")
    if not any(one.valid for one in answer.citations):
        said.append("the answer cites no source")
    if answer.citations and not citing.without_markers(answer.text).strip(" .\n"):
        said.append("the answer holds nothing but citations")
    unsupported = (one for one in answer.statements if not one.supported)
    return said + [f"not supported: “{shortened(one.text, LONGEST_QUOTE)}”: {one.why}" for one in unsupported]


def _renumbered(answer: Answer) -> Answer:
    """With the sources numbered as they are cited; those that are not cited come after them."""
    text, new = citing.renumbered(answer.text, answer.citations)
    others = [number for number in range(1, len(answer.sources) + 1) if number not in new]
    numbers = {**new, **{number: len(new) + at for at, number in enumerate(others, 1)}}
    order = sorted(numbers, key=lambda number: numbers[number])
    return replace(
        answer, text=text, renumbered=numbers, sources=tuple(answer.sources[number - 1] for number in order),
        citations=citing.citations(text, len(answer.sources)),
    )  # fmt: skip
