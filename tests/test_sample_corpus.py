"""The sample corpus and its relevance judgements belong together."""

from __future__ import annotations

import fnmatch
import json
from pathlib import Path
from typing import Any

import pytest

CORPUS = Path(__file__).resolve().parent.parent / "sample_corpus"
BENCH = CORPUS / ".bench"
NOT_PLAIN_TEXT = {".pdf", ".html"}

Qrels = dict[str, dict[str, int]]


def ignore_patterns() -> list[str]:
    lines = (CORPUS / ".ragignore").read_text(encoding="utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def document_files() -> dict[str, Path]:
    """Files the tool would ingest, by their path inside the corpus."""
    found: dict[str, Path] = {}
    for path in sorted(CORPUS.rglob("*")):
        relative = path.relative_to(CORPUS)
        hidden = any(part.startswith(".") for part in relative.parts)
        ignored = any(fnmatch.fnmatch(path.name, pattern) for pattern in ignore_patterns())
        if path.is_file() and not hidden and not ignored:
            found[relative.as_posix()] = path
    return found


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    # Split at line feeds only: splitlines() also breaks at U+2028 inside strings.
    lines = path.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line.strip()]


def records() -> dict[str, str]:
    """Text of each record of the JSONL files, by its id."""
    found: dict[str, str] = {}
    for name, path in document_files().items():
        for record in read_jsonl(path) if name.endswith(".jsonl") else []:
            assert record["_id"] not in found
            found[record["_id"]] = f"{record['title']}\n{record['text']}"
    return found


def read_text(path: Path) -> str:
    data = path.read_bytes()
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("cp1252")


def queries() -> dict[str, dict[str, Any]]:
    rows = read_jsonl(BENCH / "queries.jsonl")
    assert len({row["_id"] for row in rows}) == len(rows)
    return {row["_id"]: row for row in rows}


def qrels() -> Qrels:
    lines = (BENCH / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0] == "query-id\tcorpus-id\tscore"
    judged: Qrels = {}
    for line in lines[1:]:
        query, document, score = line.split("\t")
        assert document not in judged.setdefault(query, {}), line
        judged[query][document] = int(score)
    return judged


def answers() -> dict[str, list[str]]:
    return {row["_id"]: row["answers"] for row in read_jsonl(BENCH / "answers.jsonl")}


def test_number_of_documents() -> None:
    assert 30 <= len(document_files()) <= 50


def test_ragignore_excludes_a_file() -> None:
    kept = set(document_files().values())
    drafts = list((CORPUS / "drafts").glob("*"))
    assert drafts
    assert not kept & set(drafts)


def test_only_one_text_is_not_utf8() -> None:
    odd = []
    for name, path in document_files().items():
        if path.suffix == ".pdf":
            continue
        try:
            path.read_bytes().decode("utf-8")
        except UnicodeDecodeError:
            odd.append(name)
    assert odd == ["support/otter-3-legacy-notes.txt"]


def test_qrels_refer_to_documents_and_queries() -> None:
    known = set(document_files()) | set(records())
    wanted = set(queries())
    for query, judged in qrels().items():
        assert query in wanted
        assert judged.keys() <= known, query
        assert set(judged.values()) <= {1, 2}
        assert 2 in judged.values(), query


def test_every_query_is_judged_unless_unanswerable() -> None:
    unanswerable = {key for key, row in queries().items() if row["metadata"]["kind"] == "unanswerable"}
    assert len(unanswerable) >= 4
    assert not unanswerable & qrels().keys()
    assert not unanswerable & answers().keys()
    assert unanswerable | qrels().keys() == queries().keys()


@pytest.mark.parametrize("query", sorted(answers()))
def test_answer_stands_in_a_judged_document(query: str) -> None:
    files, tickets, judged = document_files(), records(), qrels()[query]
    texts = [tickets[document] for document in judged if document in tickets]
    texts += [
        read_text(files[document])
        for document in judged
        if document in files and files[document].suffix not in NOT_PLAIN_TEXT
    ]
    assert texts
    for answer in answers()[query]:
        assert any(answer in text for text in texts), answer
