"""Stop words by language, for those who ask for them: the function words that carry no topic.

English is the list of 33 that Lucene's StandardAnalyzer made customary; the others are of the same kind and size.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_ENGLISH = (
    "a an and are as at be but by for if in into is it no not of on or such that the their then there these they "
    "this to was will with"
)
_GERMAN = (
    "aber als am an auch auf aus bei bin bis das dass dem den der des die ein eine einem einen einer eines er es für "
    "hat im in ist mit nach nicht noch nur oder sich sie sind so und von vor war wie wird zu zum zur über"
)
_FRENCH = (
    "a au aux avec ce ces dans de des du elle en est et il ils je la le les leur lui mais me ne nous on ou par pas "
    "pour qu que qui sa se ses son sur un une vous"
)
_SPANISH = (
    "a al como con de del el ella en entre era es esta este la las le lo los más me no o para pero por que se ser si "
    "sin sobre su sus un una y ya"
)

STOPWORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "english": frozenset(_ENGLISH.split()),
        "german": frozenset(_GERMAN.split()),
        "french": frozenset(_FRENCH.split()),
        "spanish": frozenset(_SPANISH.split()),
    }
)
