"""What `ask` is worth, on the collections of ../shared that have answers: `make bench-answers`.

`python -m tests.bench.answers [PART…]`, parts `extracts`, `confidence`, `verify`, `model`, `overhead`; QUESTIONS=N
takes N questions of each collection, drawn by a fixed seed (0: all of them).

- extracts: the share of questions whose answer stands, word for word, in what extracts and in the sources that they are
  taken from (five, hybrid, default settings); white space and case aside.
- confidence: the share of questions that get "no confident answer": a collection's own, and those of other ones.
- verify: precision and recall of `supported` over statements made of a question and its answer, or of a long answer
  alone, each held against the source that it is from, another source found for the same question, and one found for
  another question; neither of the latter holds the answer. Weights and floors were chosen on the questions drawn by
  seed 7 (240 of each collection); SEED=1 draws others, and those that were among them are left out.
- model: Qwen 2.5 Coder 0.5B by the extra llm: answers that hold the answer, that cite, and whose statements are
  supported.
- overhead: time to the first token and to the last of `ask`, beside the same messages sent to the same server directly.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import mean, median
from time import perf_counter
from typing import Any

from msgspec.structs import replace

from ragcli import Pipeline
from ragcli.answer.confidence import confidence
from ragcli.answer.support import statements
from ragcli.asking import Hearing
from ragcli.models.http import HttpClient, Service
from ragcli.options import AnswerSettings, ChatSettings, RetrievalOptions, Settings
from ragcli.text import matching
from ragcli.types import Answer, Hit, Statement
from tests.bench import measure
from tests.bench.quality import COLLECTIONS, records
from tests.conftest import own_models
from tests.llama import serving

SETS = ("covidqa", "cmrc2018", "xquad-multi")
FOREIGN = {
    "covidqa": ("xquad-multi:en", "financebench-pages", "hotpotqa-sub", "cmrc2018"),
    "cmrc2018": ("xquad-multi:en", "financebench-pages", "xquad-multi:zh"),
    "xquad-multi": ("covidqa", "financebench-pages", "scifact", "medline"),
}
QUESTIONS, SEED = int(os.environ.get("QUESTIONS", "300")), int(os.environ.get("SEED", "1"))
TUNED, TUNED_SEED = 240, 7
LOCAL, TINY = "qwen2.5-coder-0.5b", "smollm2-135m"
TWO = RetrievalOptions(top_k=2)  # the server's window is small
LONG = 6  # terms from which on an answer is a statement by itself
Row = dict[str, object]


class Item:
    """A question with its answers."""

    def __init__(self, record: Mapping[str, Any], text: str) -> None:
        self.id, self.text, self.answers = str(record["_id"]), text, [str(one) for one in record["answers"]]

    def stands_in(self, text: str) -> bool:
        """Whether an answer stands in the text."""
        return any(matching(answer).search(text) for answer in self.answers if answer.strip())


def items(name: str, count: int, *, unseen: bool = False) -> list[Item]:
    """Questions of a collection, drawn by the seed. `unseen`: without those on which anything was tuned."""
    texts = {row["_id"]: row["text"] for row in records(COLLECTIONS / name / "queries.jsonl")}
    every = {row["_id"]: row for row in records(COLLECTIONS / name / "answers.jsonl")}
    tuned = set(drawn(sorted(every), TUNED, TUNED_SEED)) if unseen else set()
    chosen = [one for one in drawn(sorted(every), len(every), SEED) if one not in tuned]
    return [Item(every[one], texts[one]) for one in chosen[: count or len(chosen)]]


def drawn(ids: list[str], count: int, seed: int) -> list[str]:
    random.Random(seed).shuffle(ids)
    return ids[:count]


def index_of(name: str) -> Path:
    """The collection's index, made where it is not there yet."""
    index = measure.WORK / "answers" / name / "index.db"
    if not index.exists():
        corpus = COLLECTIONS / name / "corpus.jsonl"
        subprocess.run([str(measure.RAGCLI), "ingest", str(corpus), "--index", str(index), "--quiet"], check=True)
    return index


def opened(name: str, settings: Settings | None = None) -> Pipeline:
    return Pipeline.open(index_of(name), settings or Settings(), explicit=())


def text_of(hits: Sequence[Hit]) -> str:
    return "\n".join(hit.chunk.text for hit in hits)


# ------------------------------------------------------------------------------------------------------------ extracts


def extracts() -> Iterator[Row]:
    """One row a collection, and one for each language of xquad-multi."""
    settings = Settings(answer=AnswerSettings(always=True))
    for name in SETS:
        asked = items(name, QUESTIONS)
        with opened(name, settings) as pipeline:
            answers = [pipeline.ask(one.text) for one in asked]
        rows = [
            (one.id, one.stands_in(text_of(answer.sources)), one.stands_in(answer.text), answer.timings["answer"])
            for one, answer in zip(asked, answers, strict=True)
        ]
        groups = {name: rows}
        if name == "xquad-multi":
            languages = sorted({one.partition("-")[0] for one, *_ in rows})
            groups |= {f"  {code}": [row for row in rows if row[0].startswith(f"{code}-")] for code in languages}
        for label, group in groups.items():
            yield {
                "collection": label,
                "questions": len(group),
                "in the sources": mean(row[1] for row in group),
                "in the extracts": mean(row[2] for row in group),
                "extracting, ms": 1000 * median(row[3] for row in group),
            }


# ---------------------------------------------------------------------------------------------------------- confidence


def confidences() -> Iterator[Row]:
    """How many questions are refused."""
    for name in SETS:
        with opened(name) as pipeline:
            for asked in (name, *FOREIGN[name]):
                texts = questions_of(asked)
                refused = [not is_confident(pipeline, text) for text in texts]
                whose = "own" if asked == name else "others'"
                yield {
                    "index": name,
                    "questions of": asked,
                    "whose": whose,
                    "count": len(texts),
                    "refused": mean(refused),
                }


def questions_of(name: str) -> list[str]:
    """Questions of a collection; `name:language` of one of its languages."""
    collection, _, language = name.partition(":")
    rows = records(COLLECTIONS / collection / "queries.jsonl")
    texts = [row["text"] for row in rows if not language or row["_id"].startswith(f"{language}-")]
    return drawn(texts, QUESTIONS or len(texts), SEED)


def is_confident(pipeline: Pipeline, text: str) -> bool:
    hits = pipeline.retrieve(text).ranking.hits
    return confidence(text, hits, pipeline.lens(), pipeline.settings.answer).is_enough


# -------------------------------------------------------------------------------------------------------------- verify


def verify() -> Iterator[Row]:
    """Precision and recall, in all and by kind of statement and of wrong source."""
    judged: list[tuple[str, str, bool, bool]] = []  # kind of statement, of source, supported?, should it be?
    for name in SETS:
        judged += list(_judged(name))
    for kind in ("question and answer", "long answer", "all"):
        rows = [row for row in judged if kind in {row[0], "all"}]
        yield {"statements": kind, **figures(rows, "all")}
        for source in ("for the same question", "for another"):
            yield {"statements": f"  against one found {source}", **figures(rows, source)}


def _judged(name: str) -> Iterator[tuple[str, str, bool, bool]]:
    asked = items(name, QUESTIONS, unseen=True)
    with opened(name) as pipeline:
        lens = pipeline.lens()
        hits = {one.id: pipeline.retrieve(one.text).ranking.hits for one in asked}
        pool = [hit for found in hits.values() for hit in found]
        for one in asked:
            own = next((hit for hit in hits[one.id] if one.stands_in(hit.chunk.text)), None)
            if own is None:
                continue
            wrong = next((hit for hit in hits[one.id] if not one.stands_in(hit.chunk.text)), None)
            other = random.Random(f"{SEED} {one.id}").choice(pool)
            sources = {"own": own, "for the same question": wrong}
            sources |= {"for another": None if one.stands_in(other.chunk.text) else other}
            longest = max(one.answers, key=len)
            texts = {"question and answer": f"{one.text.rstrip('?？ ')} {longest}"}
            if len(lens.terms(longest)) >= LONG:
                texts["long answer"] = longest
            for kind, text in texts.items():
                for label, hit in sources.items():
                    if hit is not None and (said := supported(statements(text, (), [hit], lens))) is not None:
                        yield kind, label, said, label == "own"


def supported(found: Sequence[Statement]) -> bool | None:
    """Whether all of a text is; None where it states nothing."""
    return all(one.supported for one in found) if found else None


def figures(rows: Sequence[tuple[str, str, bool, bool]], wrong: str) -> Row:
    """Precision and recall, with the wrong sources of one kind, or of all."""
    chosen = [(said, right) for _, label, said, right in rows if right or wrong in {label, "all"}]
    hits = sum(said and right for said, right in chosen)
    return {
        "right": sum(right for _, right in chosen),
        "wrong": sum(not right for _, right in chosen),
        "precision": hits / max(sum(said for said, _ in chosen), 1),
        "recall": hits / max(sum(right for _, right in chosen), 1),
    }


# --------------------------------------------------------------------------------------------------------------- model


def model() -> Iterator[Row]:
    """Fifty questions, English and Chinese, beside the extracts of the same questions."""
    chosen = Settings(chat=ChatSettings(model=LOCAL), answer=AnswerSettings(verify=True, always=True, max_tokens=160))
    rows: dict[str, list[tuple[Item, Answer]]] = {LOCAL: [], "extractive": []}
    for name, count in (("covidqa", 20), ("cmrc2018", 10), ("xquad-multi", 20)):
        asked = [one for one in items(name, 0) if name != "xquad-multi" or one.id.startswith("en-")][:count]
        for engine, settings in ((LOCAL, chosen), ("extractive", Settings(answer=AnswerSettings(always=True)))):
            with opened(name, settings) as pipeline:
                rows[engine] += [(one, pipeline.ask(one.text)) for one in asked]
    for engine, found in rows.items():
        said = [one for _, answer in found for one in answer.statements]
        yield {
            "engine": engine,
            "questions": len(found),
            "in the sources": mean(item.stands_in(text_of(answer.sources)) for item, answer in found),
            "in the answer": mean(item.stands_in(answer.text) for item, answer in found),
            "cites a source": mean(any(one.valid for one in answer.citations) for _, answer in found),
            "statements supported": mean(one.supported for one in said) if said else "",
            "median s": median(answer.timings["total"] for _, answer in found),
        }


# ------------------------------------------------------------------------------------------------------------ overhead


def overhead() -> Iterator[Row]:
    """`ask` and the bare request in turn, on one server; each prompt is another one, so that none is cached."""
    file = next((own_models().cache / TINY).glob("*.gguf"))
    with serving(file, TINY, measure.WORK / "llama.log") as llama:
        chosen = Settings(
            chat=ChatSettings(model=TINY, base_url=llama.url), answer=AnswerSettings(always=True, max_tokens=24)
        )
        times: dict[str, list[float]] = {
            "ask: first token": [],
            "ask: whole": [],
            "direct: first token": [],
            "direct: whole": [],
        }
        with opened("covidqa", chosen) as pipeline:
            for one in items("covidqa", 20):
                first = None

                def on_text(piece: str) -> None:
                    nonlocal first
                    first = first or perf_counter()

                started = perf_counter()
                answer = pipeline.ask(one.text, TWO, hearing=Hearing(on_text=on_text))
                whole = perf_counter() - started
                assert answer.prompt is not None and first is not None
                times["ask: first token"].append(answer.timings["first_token"])
                times["ask: whole"].append(whole)
                fresh = [
                    *answer.prompt.messages[:-1],
                    replace(answer.prompt.messages[-1], content="x" + answer.prompt.messages[-1].content),
                ]
                direct = directly(llama.url, fresh)
                times["direct: first token"].append(direct[0])
                times["direct: whole"].append(direct[1])
        for name, found in times.items():
            yield {"what": name, "median ms": 1000 * median(found)}
        ratio = median(a / b for a, b in zip(times["ask: first token"], times["direct: first token"], strict=True))
        yield {"what": "first token, ratio", "median ms": ratio}
        ratio = median(a / b for a, b in zip(times["ask: whole"], times["direct: whole"], strict=True))
        yield {"what": "whole, ratio (retrieval included)", "median ms": ratio}


def directly(url: str, messages: Sequence[Any]) -> tuple[float, float]:
    """Seconds to the first token and to the last, of the bare request."""
    client = HttpClient(Service(name="direct", base_url=url))
    started = perf_counter()
    first: list[float] = []

    def take(kind: str, data: str) -> bool:
        if '"content":"' in data.replace(" ", "") and not first:
            first.append(perf_counter() - started)
        return data.strip() == "[DONE]"

    sent = [{"role": one.role, "content": one.content} for one in messages]
    client.stream("chat/completions", {"messages": sent, "temperature": 0, "max_tokens": 24, "stream": True}, take)
    whole = perf_counter() - started
    client.close()
    return first[0], whole


PARTS: Mapping[str, Callable[[], Iterator[Row]]] = {
    "extracts": extracts, "confidence": confidences, "verify": verify, "model": model, "overhead": overhead,
}  # fmt: skip


def main(names: list[str]) -> int:
    if not COLLECTIONS.is_dir():
        print(f"bench-answers: needs the collections in {COLLECTIONS}", file=sys.stderr)
        return 1
    for name in names or PARTS:
        rows = list(PARTS[name]())
        measure.table(name, rows)
        measure.record(f"answers-{name}", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
