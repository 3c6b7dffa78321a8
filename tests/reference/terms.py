"""The term rules of spec I33 by plain character loops: what `ragcli.text` is tested against. Clear, not fast.

The rules, in this order:

1. The text is brought to NFC, case-folded, and brought to NFC again (folding can undo it: the Greek iota with
   dialytika and tonos), so composed and decomposed spellings, and upper and lower case, give the same term.
2. A word character is a letter or digit, that is, what `[^\\W_]` of Python's `re` matches; and a combining mark
   (category Mn, Mc, Me) that follows a word character. Everything else splits: space, apostrophe, hyphen,
   underscore, zero-width joiners.
3. A run of word characters is cut where it changes between CJK and other writing. CJK is Han, Hiragana, Katakana and
   Hangul; a combining mark belongs to the side of the character before it.
4. A CJK run gives its overlapping pairs of code points; a run of one gives itself. Any other run is one term.
5. With `fold_accents` a term that is not CJK loses its non-spacing marks (Mn): NFD, drop, NFC. Kana keep their voicing
   marks, which are no accents. A term of nothing but such marks can't occur: rule 2.

Stemming and stop words are not modelled here.
"""

from __future__ import annotations

import unicodedata

CJK_RANGES = (
    (0x1100, 0x11FF),  # Hangul jamo
    (0x3005, 0x3007),  # 々 〆 〇
    (0x3041, 0x309F),  # Hiragana
    (0x30A0, 0x30FF),  # Katakana, with ー
    (0x3131, 0x318E),  # Hangul compatibility jamo
    (0x31F0, 0x31FF),  # Katakana phonetic extensions
    (0x3400, 0x4DBF),  # Han, extension A
    (0x4E00, 0x9FFF),  # Han, unified
    (0xA960, 0xA97F),  # Hangul jamo, extended A
    (0xAC00, 0xD7A3),  # Hangul syllables
    (0xD7B0, 0xD7FF),  # Hangul jamo, extended B
    (0xF900, 0xFAFF),  # Han, compatibility
    (0xFF66, 0xFF9F),  # Katakana, halfwidth
    (0xFFA0, 0xFFDC),  # Hangul, halfwidth
    (0x1AFF0, 0x1B16F),  # Kana: extended B, supplement, extended A, small
    (0x20000, 0x2EE5D),  # Han, extensions B to F and I
    (0x2F800, 0x2FA1F),  # Han, compatibility supplement
    (0x30000, 0x323AF),  # Han, extensions G and H
)


def is_cjk(character: str) -> bool:
    """Whether the character is Han, Hiragana, Katakana or Hangul."""
    return any(low <= ord(character) <= high for low, high in CJK_RANGES)


def is_mark(character: str) -> bool:
    """Whether the character is a combining mark."""
    return unicodedata.category(character) in ("Mn", "Mc", "Me")


def fold(text: str) -> str:
    """The text in the form in which terms are compared (rule 1)."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def runs(text: str) -> list[tuple[str, bool]]:
    """The runs of word characters of a folded text, in order, each with whether it is CJK (rules 2 and 3)."""
    found: list[tuple[str, bool]] = []
    inside = False  # whether the character before this one is a word character
    for character in text:
        mark = is_mark(character) and not character.isalnum()
        if inside and (mark or (character.isalnum() and is_cjk(character) == found[-1][1])):
            run, cjk = found[-1]
            found[-1] = (run + character, cjk)
        elif character.isalnum():
            found.append((character, is_cjk(character)))
            inside = True
        else:
            inside = False
    return found


def pairs(run: str) -> list[str]:
    """The overlapping pairs of a CJK run, or the run itself when it has one character (rule 4)."""
    if len(run) == 1:
        return [run]
    return [run[at] + run[at + 1] for at in range(len(run) - 1)]


def without_accents(term: str) -> str:
    """The term without its non-spacing marks (rule 5)."""
    bare = [character for character in unicodedata.normalize("NFD", term) if unicodedata.category(character) != "Mn"]
    return unicodedata.normalize("NFC", "".join(bare))


def terms(text: str, *, fold_accents: bool = False) -> list[str]:
    """The terms of a text in order, repeats included."""
    found: list[str] = []
    for run, cjk in runs(fold(text)):
        if cjk:
            found.extend(pairs(run))
        else:
            found.append(without_accents(run) if fold_accents else run)
    return found
