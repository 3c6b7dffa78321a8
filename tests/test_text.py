"""Terms against the rules of I33 by plain loops (tests/reference/terms.py), and by hand."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragcli.errors import OptionError
from ragcli.options import AnalyzerSettings
from ragcli.text import Analyzer
from tests.reference import terms as reference

PLAIN = Analyzer(AnalyzerSettings())
FOLDING = Analyzer(AnalyzerSettings(fold_accents=True))
# Characters at which the rules meet: letters, marks, CJK of each script, voicing marks, separators.
TRICKY = st.text(alphabet="aZé9ßİΐ_-' .\u0301\u0308\u3099\ufe00中文ひカﾞー한々〇½²\u200d🎉ก็\n", max_size=40)


@pytest.mark.spec("I33")
@given(st.one_of(st.text(max_size=60), TRICKY))
@settings(max_examples=400, deadline=None)
def test_terms_equal_the_reference(text: str) -> None:
    assert PLAIN.terms(text) == reference.terms(text)
    assert FOLDING.terms(text) == reference.terms(text, fold_accents=True)


@pytest.mark.spec("I33")
def test_a_cjk_run_becomes_overlapping_pairs() -> None:
    assert PLAIN.terms("人工智能是未来") == ["人工", "工智", "智能", "能是", "是未", "未来"]
    assert PLAIN.terms("人") == ["人"]
    assert PLAIN.terms("GPT模型v2") == ["gpt", "模型", "v2"]


@pytest.mark.spec("I33")
def test_words_are_case_folded_runs_of_letters_and_digits() -> None:
    assert PLAIN.terms("The STRASSE, the Straße: real-time my_var_name 3.14") == (
        ["the", "strasse", "the", "strasse", "real", "time", "my", "var", "name", "3", "14"]
    )
    assert PLAIN.terms("cafe\u0301") == PLAIN.terms("CAFÉ") == ["café"]
    assert PLAIN.terms("🎉🦀✨") == PLAIN.terms("") == []


@pytest.mark.spec("I33")
def test_stemming_and_stop_words_are_opt_in() -> None:
    english = Analyzer(AnalyzerSettings(stemmer="english", stopwords="english"))
    assert PLAIN.terms("the cars are running") == ["the", "cars", "are", "running"]
    # Porter 2 (snowballstem.org): cars -> car, running -> run
    assert english.terms("The cars are running") == ["car", "run"]


@pytest.mark.parametrize("settings_", [AnalyzerSettings(stemmer="klingon"), AnalyzerSettings(stopwords="klingon")])
def test_an_unknown_language_names_those_there_are(settings_: AnalyzerSettings) -> None:
    with pytest.raises(OptionError, match=r"analyzer\.(stemmer|stopwords) = 'klingon'.*english"):
        Analyzer(settings_)


@pytest.mark.spec("I33")
def test_stop_words_are_folded_as_the_text_is() -> None:
    german = Analyzer(AnalyzerSettings(stopwords="german", fold_accents=True))
    assert german.terms("für die Brücke über den Fluss") == ["brucke", "fluss"]
