"""The static embedder: on a table of six tokens by hand, and on the real one against what WordLlama gives."""

from __future__ import annotations

import json
from collections.abc import Mapping
from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from ragcli.errors import RagcliError, RemoteError
from ragcli.models.place import ModelPlace
from ragcli.models.static import AT_ONCE, TENSOR, StaticEmbedder
from ragcli.options import EmbeddingSettings, ModelsSettings, Settings
from ragcli.types import EmbedderCard

VOCABULARY = {"[UNK]": 0, "red": 1, "green": 2, "blue": 3, "minus": 4, "passage": 5}
TABLE = [[0, 0, 0], [3, 0, 0], [0, 4, 0], [0, 0, 1], [-3, 0, 0], [0, 0, 2]]
CARD = EmbedderCard(name="toy", fingerprint="f", dimension=3)


def write_table(path: Path, table: object, kind: str = "F16", header: Mapping[str, object] | None = None) -> None:
    """A safetensors file of one tensor."""
    data = np.asarray(table, {"F16": "<f2", "F32": "<f4"}[kind])
    entry = {"dtype": kind, "shape": data.shape, "data_offsets": [0, data.nbytes]}
    text = json.dumps(header if header is not None else {TENSOR: entry}).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data.tobytes())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tokenizer of whole words, with a truncation and a padding that must not be obeyed; and its table."""
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace
    from tokenizers.processors import TemplateProcessing

    tokenizer = Tokenizer(WordLevel(VOCABULARY, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(single="blue $A", special_tokens=[("blue", 3)])
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(pad_id=1, pad_token="red", length=8)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    write_table(tmp_path / "model.safetensors", TABLE)
    return tmp_path


@pytest.mark.spec("M6")
@pytest.mark.parametrize("kind", ["F16", "F32"])
def test_a_vector_is_the_mean_of_its_tokens_at_length_1(folder: Path, kind: str) -> None:
    write_table(folder / "model.safetensors", TABLE, kind)
    embedder = StaticEmbedder(folder, CARD)
    texts = ["red", "red green", "green red", "red red green blue", "red xyz"]
    expected: list[list[float]] = [
        [1, 0, 0],
        [0.6, 0.8, 0],
        [0.6, 0.8, 0],
        [6 / sqrt(53), 4 / sqrt(53), 1 / sqrt(53)],
        [1, 0, 0],
    ]
    embedded = embedder.passages(texts)
    assert embedded.vectors.dtype == np.float32
    assert embedded.problems == {}
    np.testing.assert_allclose(embedded.vectors, expected, atol=1e-6)
    for row, text in enumerate(texts):
        np.testing.assert_array_equal(embedder.query(text), embedded.vectors[row])


@pytest.mark.spec("M6")
def test_the_whole_text_is_seen(folder: Path) -> None:
    embedder = StaticEmbedder(folder, CARD)
    np.testing.assert_allclose(
        embedder.query("red " * 4000 + "green " * 3000), [1 / sqrt(2), 1 / sqrt(2), 0], atol=1e-5
    )


def test_prefixes_are_words_like_others(folder: Path) -> None:
    card = EmbedderCard(name="toy", fingerprint="f", dimension=3, query_prefix="green ", passage_prefix="passage ")
    embedder = StaticEmbedder(folder, card)
    np.testing.assert_allclose(embedder.query("red"), [0.6, 0.8, 0], atol=1e-6)
    np.testing.assert_allclose(embedder.passages(["red"]).vectors, [[3 / sqrt(13), 0, 2 / sqrt(13)]], atol=1e-6)


def test_a_text_without_a_vector_is_a_problem(folder: Path) -> None:
    embedder = StaticEmbedder(folder, CARD)
    embedded = embedder.passages(["", "red", " \n", "red minus", "xyz"])
    assert embedded.problems == {0: "no text", 2: "no text", 3: "a vector of zeros", 4: "a vector of zeros"}
    np.testing.assert_allclose(embedded.vectors, [[0] * 3, [1, 0, 0], [0] * 3, [0] * 3, [0] * 3])
    for text in ("", "xyz"):
        with pytest.raises(RagcliError, match="this query has no vector"):
            embedder.query(text)


@pytest.mark.spec("M6")
def test_a_vector_does_not_depend_on_what_stands_beside_it(folder: Path) -> None:
    texts = ["red green", "blue " * 50, "green minus blue"] * AT_ONCE
    vectors = StaticEmbedder(folder, CARD).passages(texts).vectors
    alone = [StaticEmbedder(folder, CARD).passages([text]).vectors[0] for text in texts[:3]]
    np.testing.assert_array_equal(vectors, np.tile(alone, (AT_ONCE, 1)))


def test_no_texts_and_lone_surrogates(folder: Path) -> None:
    embedder = StaticEmbedder(folder, CARD)
    assert embedder.passages([]).vectors.shape == (0, 3)
    np.testing.assert_allclose(embedder.query("red \udcff"), [1, 0, 0])


def test_the_files_are_opened_when_needed(tmp_path: Path) -> None:
    embedder = StaticEmbedder(tmp_path, CARD)
    assert embedder.card == CARD
    with pytest.raises(RagcliError, match=r"tokenizer\.json"):
        embedder.warm()


@pytest.mark.parametrize(
    "header",
    [
        {},
        {TENSOR: {"dtype": "I8", "shape": [6, 3], "data_offsets": [0, 36]}},
        {TENSOR: {"dtype": "F16", "shape": [18], "data_offsets": [0, 36]}},
        {TENSOR: {"dtype": "F16", "shape": [6000, 3], "data_offsets": [0, 36000]}},
        {TENSOR: {"dtype": "F16", "shape": [3, 3], "data_offsets": [0, 18]}},
        {TENSOR: {"dtype": "F16", "shape": [9, 2], "data_offsets": [0, 36]}},
        {TENSOR: 3},
    ],
)
def test_a_file_that_is_no_table_is_named(folder: Path, header: Mapping[str, object]) -> None:
    write_table(folder / "model.safetensors", TABLE, header=header)
    with pytest.raises(RagcliError, match=r"model\.safetensors: .*table"):
        StaticEmbedder(folder, CARD).passages(["red"])


def test_what_is_no_safetensors_file_is_named(folder: Path) -> None:
    for data in (b"", b"abc", b"\xff" * 100):
        (folder / "model.safetensors").write_bytes(data)
        with pytest.raises(RagcliError, match=r"model\.safetensors: no table"):
            StaticEmbedder(folder, CARD).query("red")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> ModelPlace:
    return ModelPlace(cache=tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def wordllama(place: ModelPlace) -> StaticEmbedder:
    try:
        return StaticEmbedder.open(Settings(models=ModelsSettings(embedder="wordllama-256")), place)
    except RemoteError as error:
        pytest.skip(f"needs wordllama-256: {error.message}")


@pytest.mark.spec("M6")
def test_the_real_table_gives_what_wordllama_gives(wordllama: StaticEmbedder) -> None:
    """The first five of `WordLlamaInference.embed(…, norm=True)` of wordllama 0.4.0.post1 with the same files."""
    known = {
        "This is an example sentence": [-0.0236778, 0.0845086, -0.0681727, 0.0928916, -0.0369112],
        "how do I reset my password": [0.2230341, 0.1223482, 0.1084661, -0.0322586, 0.0817216],
    }
    vectors = wordllama.passages(list(known)).vectors
    np.testing.assert_allclose(vectors[:, :5], list(known.values()), atol=1e-5)
    assert vectors.shape == (2, 256)


@pytest.mark.spec("M6")
def test_near_meanings_are_near(wordllama: StaticEmbedder) -> None:
    car, tax, query = *wordllama.passages(["a car on the road", "income tax law"]).vectors, wordllama.query("vehicle")
    assert query @ car > query @ tax


@pytest.mark.spec("M6")
def test_its_card_is_of_its_bytes_and_prefixes(wordllama: StaticEmbedder, place: ModelPlace) -> None:
    card = wordllama.card
    assert (card.name, card.dimension, card.max_tokens, card.query_prefix) == ("wordllama-256", 256, 0, "")
    chosen = Settings(models=ModelsSettings(embedder="wordllama-256"), embedding=EmbeddingSettings(query_prefix="q: "))
    other = StaticEmbedder.open(chosen, place, card).card
    assert other.query_prefix == "q: "
    assert other.fingerprint != card.fingerprint
