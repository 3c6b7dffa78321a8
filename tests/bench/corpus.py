"""A synthetic corpus of any size, the same on every machine: passages of about 100 words, and queries for them.

Words are drawn from a Zipf-Mandelbrot law (exponent 1.05, offset 2.7) over 300,000 pronounceable words; three tokens
in ten come from the passage's topic, one of 2,000, so that the words of a query stand together in some passages.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

VOCABULARY = 300_000
TOPICS = 2_000
TOPIC_WORDS = 120
BATCH = 20_000
Words = np.ndarray[Any, np.dtype[Any]]


def vocabulary() -> Words:
    """The words, the most frequent first; those are the shortest."""
    rng = np.random.default_rng(1)
    consonants, vowels = "bcdfghklmnprstvwz", "aeiou"
    open_syllables = [first + second for first in consonants for second in vowels]
    syllables = open_syllables + [syllable + last for syllable in open_syllables for last in "nrst"]
    words: dict[str, None] = {}
    while len(words) < VOCABULARY:
        lengths = rng.integers(2, 5, BATCH) if len(words) > 200 else rng.integers(1, 3, 300)
        parts = rng.integers(0, len(syllables), (len(lengths), 4))
        for length, row in zip(lengths.tolist(), parts.tolist(), strict=True):
            words["".join(syllables[part] for part in row[:length])] = None
    return np.array(list(words)[:VOCABULARY], dtype=object)


def zipf_mandelbrot() -> Words:
    """The cumulative distribution over the vocabulary."""
    weights = 1.0 / (np.arange(VOCABULARY) + 2.7) ** 1.05
    return np.cumsum(weights / weights.sum())


def topics() -> Words:
    """(TOPICS, TOPIC_WORDS) indices into the vocabulary: words that are neither the commonest nor the rarest."""
    return np.random.default_rng(3).integers(200, 60_000, (TOPICS, TOPIC_WORDS))


def passages(count: int) -> Iterator[str]:
    """`count` passages; those of a smaller count are the first of a larger one, in whole batches of 20,000."""
    words, law, topic_words = vocabulary(), zipf_mandelbrot(), topics()
    rng = np.random.default_rng(7)
    for start in range(0, count, BATCH):
        lengths = np.clip(rng.normal(100, 25, BATCH).astype(int), 20, 250)
        total = int(lengths.sum())
        drawn = np.minimum(np.searchsorted(law, rng.random(total)), VOCABULARY - 1)
        topic = np.repeat(rng.integers(0, TOPICS, BATCH), lengths)
        of_topic = np.minimum(rng.exponential(25, total).astype(int), TOPIC_WORDS - 1)
        tokens = words[np.where(rng.random(total) < 0.3, topic_words[topic, of_topic], drawn)]
        ends = np.cumsum(lengths).tolist()
        bounds = zip([0, *ends], ends, strict=False)
        yield from (" ".join(tokens[low:high]) for low, high in list(bounds)[: count - start])


def short_queries() -> list[str]:
    """200 queries of 2 to 7 words: words of one topic, and up to two of any frequency."""
    words, law, topic_words = vocabulary(), zipf_mandelbrot(), topics()
    rng = np.random.default_rng(11)
    queries = []
    for _ in range(200):
        of_topic = np.minimum(rng.exponential(25, rng.integers(2, 6)).astype(int), TOPIC_WORDS - 1)
        chosen = list(words[topic_words[rng.integers(0, TOPICS), of_topic]])
        chosen += list(words[np.minimum(np.searchsorted(law, rng.random(rng.integers(0, 3))), VOCABULARY - 1)])
        queries.append(" ".join(dict.fromkeys(chosen)))
    return queries


def hard_queries() -> list[str]:
    """60 queries of 4 to 8 frequent words (of the 300 most frequent): long lists of postings, little to tell apart."""
    words, rng = vocabulary(), np.random.default_rng(13)
    return [" ".join(words[rng.choice(300, rng.integers(4, 9), replace=False)]) for _ in range(60)]


def write(count: int, folder: Path) -> None:
    """Write `passages.txt` (one a line), `corpus.jsonl` ({"_id", "text"}; the ids count from 0) and `queries.json`."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "passages.txt").open("w") as lines, (folder / "corpus.jsonl").open("w") as records:
        for number, passage in enumerate(passages(count)):
            lines.write(passage + "\n")
            records.write(json.dumps({"_id": str(number), "text": passage}) + "\n")
    queries = {"short": short_queries(), "hard": hard_queries()}
    (folder / "queries.json").write_text(json.dumps(queries))  # last: its presence says that all is there


if __name__ == "__main__":
    write(int(sys.argv[1]), Path(sys.argv[2]))
