"""Text becomes terms: the analysis that BM25 counts (spec I33).

Runs of letters and digits (with the combining marks that follow them), case-folded; Han, kana and Hangul runs become
overlapping pairs of characters. Nothing specific to a language unless asked for: Snowball stemming, stop words and
accent folding are options. Text without CJK is split exactly as if the CJK rule did not exist.

`str.translate` followed by `str.split` is three times as fast as a regular expression over the same text, and this
is the most expensive step of a keyword ingest. Does not know documents, chunks or the index.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable

from ragcli.errors import OptionError, UsageError
from ragcli.options import AnalyzerSettings
from ragcli.stopwords import STOPWORDS

# Every code point below 128 that is no letter or digit becomes a space.
_ASCII = "".join(chr(code) if chr(code).isalnum() else " " for code in range(128))

# Han, kana, Hangul. U+3099 and U+309A, in the middle of the kana, are combining marks and follow the rule of marks.
_CJK = (
    "\u1100-\u11ff\u3005-\u3007\u3041-\u3098\u309b-\u30ff\u3131-\u318e\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff\uf900-\ufaff\uff66-\uff9f\uffa0-\uffdc"
    "\U0001aff0-\U0001b16f\U00020000-\U0002ee5d\U0002f800-\U0002fa1f\U00030000-\U000323af"
)


@functools.cache
def _cjk() -> re.Pattern[str]:  # compiled at the first text that is not ASCII: start-up counts
    return re.compile(f"[{_CJK}]")


@functools.cache
def _runs() -> re.Pattern[str]:
    # A mark (the only characters of a word that match \W) belongs to the run of the character before it.
    return re.compile(rf"[{_CJK}](?:[{_CJK}]|\W)*|[^{_CJK}]+")


class _WordCharacters(dict[int, int | str]):
    """A table for `str.translate` that fills itself: word characters stay, all else becomes a space."""

    def __missing__(self, code: int) -> int | str:
        character = chr(code)
        word = character.isalnum() or unicodedata.category(character)[0] == "M"
        self[code] = kept = code if word else " "
        return kept


def matching(text: str) -> re.Pattern[str]:
    """Finds a text wherever it stands: white space equals other white space, upper case lower case.

    It does not begin or end inside a word or a number of ASCII characters: 45 is not found in 145.
    Raises: UsageError: the text is blank.
    """
    words = text.split()
    if not words:
        raise UsageError("the text to look for is empty", "give at least one word")
    before = r"(?<![a-z0-9])" if _is_plain(words[0][0]) else ""
    after = r"(?![a-z0-9])" if _is_plain(words[-1][-1]) else ""
    return re.compile(before + r"\s+".join(map(re.escape, words)) + after, re.IGNORECASE)


def _is_plain(character: str) -> bool:
    return character.isascii() and character.isalnum()


class Analyzer:
    """Cuts text into terms as `settings` say. Reusable; not shared between threads.

    Raises: OptionError for a language that has no stemmer or no stop words here.
    """

    def __init__(self, settings: AnalyzerSettings) -> None:
        self.settings = settings
        self._table = _WordCharacters()
        words = _stopwords(settings.stopwords)
        self._stopwords = frozenset(map(_without_accents, words)) if settings.fold_accents else words
        self._stem = _stemmer(settings.stemmer)

    def terms(self, text: str) -> list[str]:
        """The terms of `text` in order, repeats included."""
        words = text.lower().translate(_ASCII).split() if text.isascii() else self._unicode_words(text)
        if self._stopwords:
            words = [word for word in words if word not in self._stopwords]
        return self._stem(words) if self._stem else words

    def _unicode_words(self, text: str) -> list[str]:
        folded = _fold(text)
        words = folded.translate(self._table).split()
        if any(not word[0].isalnum() for word in words):
            words = list(_without_stray_marks(words))
        if _cjk().search(folded):
            return [term for word in words for term in self._split_cjk(word)]
        return [_without_accents(word) for word in words] if self.settings.fold_accents else words

    def _split_cjk(self, word: str) -> Iterable[str]:
        for run in _runs().findall(word):
            if _cjk().match(run):
                yield from _pairs(run)
            else:
                yield _without_accents(run) if self.settings.fold_accents else run


def _fold(text: str) -> str:
    """NFC, case-folded, NFC again, since folding can decompose (ΐ)."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def _without_stray_marks(words: Iterable[str]) -> Iterable[str]:
    """A combining mark that follows no letter or digit belongs to no word."""
    for word in words:
        start = next((at for at, character in enumerate(word) if character.isalnum()), len(word))
        if start < len(word):
            yield word[start:]


def _pairs(run: str) -> list[str]:
    return [run] if len(run) == 1 else [run[at : at + 2] for at in range(len(run) - 1)]


def _without_accents(word: str) -> str:
    if word.isascii():
        return word
    decomposed = unicodedata.normalize("NFD", word)
    return unicodedata.normalize("NFC", "".join(c for c in decomposed if unicodedata.category(c) != "Mn"))


def _stopwords(language: str) -> frozenset[str]:
    if language == "none":
        return frozenset()
    if language not in STOPWORDS:
        raise OptionError("analyzer.stopwords", language, f"none, {', '.join(sorted(STOPWORDS))}")
    return STOPWORDS[language]


def _stemmer(language: str) -> Callable[[list[str]], list[str]] | None:
    if language == "none":
        return None
    import Stemmer

    if language not in Stemmer.algorithms():
        raise OptionError("analyzer.stemmer", language, f"none, {', '.join(sorted(Stemmer.algorithms()))}")
    stem: Callable[[list[str]], list[str]] = Stemmer.Stemmer(language).stemWords
    return stem
