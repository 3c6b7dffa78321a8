"""An answer as it is shown: text for people, one JSON object for programs (spec C11, version 1). Decides nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ragcli.answer.extractive import NAME as EXTRACTIVE
from ragcli.cli import inert
from ragcli.cli.formats import Reply, location
from ragcli.cli.formats.json import result_object
from ragcli.cli.wording import counted
from ragcli.explain import key_of
from ragcli.types import Answer, Citation, Hit, Message, Statement

SCHEMA = 1
EXTRACTS = "Extracts from the sources, word for word:"


def answer_object(answer: Answer) -> dict[str, Any]:
    """The answer as plain values."""
    found = result_object(Reply(result=answer.result, explain=True))
    hits = {key_of(hit): one for hit, one in zip(answer.result.ranking.hits, found["hits"], strict=True)}
    return {
        "schema": SCHEMA,
        "question": answer.question,
        "search": answer.search,
        "answer": answer.text,
        "outcome": answer.outcome,
        "engine": answer.engine,
        "sources": [{"number": number, **hits[key_of(hit)]} for number, hit in enumerate(answer.sources, 1)],
        "citations": [_citation_object(one) for one in answer.citations],
        **({"statements": [_statement_object(one) for one in answer.statements]} if answer.statements else {}),
        **({"renumbered": {str(old): new for old, new in answer.renumbered.items()}} if answer.renumbered else {}),
        "usage": {
            "prompt_tokens": answer.usage.prompt_tokens,
            "completion_tokens": answer.usage.completion_tokens,
            **({} if answer.prompt is None else {"sent_tokens": answer.prompt.tokens}),
        },
        "finish": answer.finish,
        **({"problem": answer.problem} if answer.problem else {}),
        **({"reasoning": answer.reasoning} if answer.reasoning else {}),
        "timings": {f"{name}_ms": round(seconds * 1000, 3) for name, seconds in answer.timings.items()},
        "retrieval": {"mode": found["mode"], "stages": found["stages"], "dropped": found["dropped"] + _unsent(answer)},
        "warnings": list(answer.warnings),
        "notes": list(answer.notes),
    }


def error_object(question: str, message: str) -> dict[str, Any]:
    """What stands in the place of an answer that failed, in a chat."""
    return {"schema": SCHEMA, "question": question, "error": message}


def _unsent(answer: Answer) -> list[dict[str, Any]]:
    """What was found and did not fit the model's window."""
    drops = answer.prompt.dropped if answer.prompt else ()
    return [
        {
            "document_id": drop.hit.chunk.document_id,
            "chunk_index": drop.hit.chunk.index,
            "stage": drop.stage,
            "reason": drop.reason,
        }
        for drop in drops
    ]


def _citation_object(one: Citation) -> dict[str, Any]:
    found = {"marker": one.marker, "source": one.source, "start": one.start, "end": one.end, "valid": one.valid}
    return found if one.supported is None else {**found, "supported": one.supported}


def _statement_object(one: Statement) -> dict[str, Any]:
    return {
        "text": one.text,
        "start": one.start,
        "end": one.end,
        "cited": list(one.cited),
        "supported": one.supported,
        "supporting": list(one.supporting),
        "support": round(one.support, 4),
        "why": one.why,
    }


def heading(answer_engine: str) -> str:
    """What stands above an answer: that it is made of extracts; "" above one that was written."""
    return f"{EXTRACTS}\n\n" if answer_engine == EXTRACTIVE else ""


def body(answer: Answer) -> str:
    """The answer's text."""
    return f"{inert.passage(answer.text)}\n"


def sources(answer: Answer, folder: str = "") -> str:
    """The sources that it cites, a line each; those that were sent and are not cited, by number. "" of no answer."""
    if answer.outcome == "no-answer":
        return ""
    return "\n" + "".join(f"{line}\n" for line in _source_lines(answer, folder)) if answer.sources else ""


def _source_lines(answer: Answer, folder: str) -> Iterator[str]:
    cited = {one.source for one in answer.citations if one.valid}
    numbered = list(enumerate(answer.sources, 1))
    if cited:
        yield "Sources:"
    yield from (_source_line(number, hit, folder) for number, hit in numbered if number in cited)
    others = [(number, hit) for number, hit in numbered if number not in cited]
    if others and not cited:
        yield "Sources, none of them cited:"
        yield from (_source_line(number, hit, folder) for number, hit in others)
    elif others:
        yield "not cited: " + " ".join(f"[{number}]" for number, _ in others)


def _source_line(number: int, hit: Hit, folder: str) -> str:
    stale = f"[{hit.stale} since ingest]" if hit.stale else ""
    parts = (inert.line(location(hit, folder)), inert.line(hit.chunk.heading), stale)
    return f"  [{number}] " + "  ".join(part for part in parts if part)


def summary(answer: Answer) -> str:
    """One line: who answered, from what, in which time, and how much of it is supported."""
    sent = counted(len(answer.sources), "source")
    seconds = answer.timings.get("total", 0.0)
    first = answer.timings.get("first_token")
    took = f"{seconds:.1f} s" + (f", the first word after {seconds_until_word(answer):.1f} s" if first else "")
    usage = answer.usage
    known = usage.prompt_tokens is not None and usage.completion_tokens is not None
    tokens = f"; {usage.prompt_tokens:,} tokens read, {usage.completion_tokens:,} written" if known else ""
    supported = sum(one.supported for one in answer.statements)
    verified = f"; {supported} of {counted(len(answer.statements), 'statement')} supported" if answer.statements else ""
    return f"{answer.engine}, {sent}, {took}{tokens}{verified}"


def seconds_until_word(answer: Answer) -> float:
    """From the question to the first word of the answer."""
    return sum(answer.timings.get(name, 0.0) for name in ("rewrite", "retrieval", "first_token"))


def prompt_text(messages: Sequence[Message]) -> str:
    """Messages as they are sent, each under a line with its role."""
    return "\n".join(f"--- {message.role} ---\n{_content(message)}\n" for message in messages)


def _content(message: Message) -> str:
    calls = (f"{call.function}({call.arguments})" for call in message.tool_calls)
    return inert.passage("\n".join(part for part in (message.content, *calls) if part))
