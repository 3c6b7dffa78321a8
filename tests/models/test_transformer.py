"""The transformer embedder: a toy against the plain forward pass, and minilm against published numbers."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from ragcli.errors import ModelMissing, OptionError, RagcliError, UsageError
from ragcli.models.bert import export, read_weights
from ragcli.models.embedder import open_embedder
from ragcli.models.place import ModelPlace
from ragcli.models.transformer import TransformerEmbedder
from ragcli.models.windows import Windows, load_tokenizer
from ragcli.options import EmbeddingSettings, ModelsSettings, Settings
from ragcli.types import EmbedderCard
from tests.models import toy_bert
from tests.models.toy_bert import reference, tensors, tokens, write_folder
from tests.reference.bert import Bert

Vector = NDArray[np.float64]
TEXTS = ("a b c", "one two three four five", "a", "", "j i h g f e d c b a")


def opened(folder: Path, *, precision: str = "fp32", threads: int = 2, **embedding: Any) -> TransformerEmbedder:
    """The embedder of a folder, its cache beside it."""
    models = ModelsSettings(embedder=str(folder), precision=precision, threads=threads)  # type: ignore[arg-type]
    settings = Settings(models=models, embedding=EmbeddingSettings(**embedding))
    return TransformerEmbedder.open(settings, ModelPlace(folder.parent / "cache"))


def unit(vector: Vector) -> Vector:
    return np.asarray(vector / np.linalg.norm(vector))


def mean_of(model: Bert, windows: Sequence[list[int]]) -> Vector:
    """The mean of the windows' mean vectors at length 1, each weighed by its tokens."""
    return unit(np.sum([len(window) * unit(model.states(window).mean(axis=0)) for window in windows], axis=0))


@pytest.mark.spec("M5")
def test_a_vector_is_the_mean_of_the_token_vectors_at_length_1(tmp_path: Path) -> None:
    embedder = opened(write_folder(tmp_path / "toy"))
    found = embedder.passages(TEXTS)
    assert found.problems == {}
    assert found.vectors.dtype == np.float32
    expected = [mean_of(reference(tensors()), [tokens(text)]) for text in TEXTS]
    np.testing.assert_allclose(found.vectors, expected, atol=1e-5)
    np.testing.assert_array_equal(embedder.query(TEXTS[1]), found.vectors[1])
    assert embedder.passages([]).vectors.shape == (0, toy_bert.HIDDEN)
    embedder.close()


@pytest.mark.spec("M5")
def test_cls_pooling_takes_the_first_token(tmp_path: Path) -> None:
    found = opened(write_folder(tmp_path / "toy"), pooling="cls").passages(TEXTS).vectors
    expected = [unit(reference(tensors()).states(tokens(text))[0]) for text in TEXTS]
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.spec("M5")
def test_prefixes_stand_before_the_text(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy")
    plain, prefixed = opened(folder), opened(folder, query_prefix="one ", passage_prefix="two ")
    np.testing.assert_array_equal(prefixed.query("a b"), plain.query("one a b"))
    np.testing.assert_array_equal(prefixed.passages(["a b"]).vectors, plain.passages(["two a b"]).vectors)


@pytest.mark.spec("I22")
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_a_long_text_is_the_mean_of_its_windows(tmp_path: Path, pooling: str) -> None:
    found = opened(write_folder(tmp_path / "toy"), max_tokens=6, pooling=pooling).passages([TEXTS[4], "a"]).vectors
    windows = [tokens("j i h g"), tokens("f e d c"), tokens("b a")]
    model = reference(tensors())
    first = unit(np.sum([len(window) * unit(model.states(window)[0]) for window in windows], axis=0))
    np.testing.assert_allclose(found[0], mean_of(model, windows) if pooling == "mean" else first, atol=1e-5)


@pytest.mark.spec("I22")
def test_a_long_text_is_refused_where_the_settings_say_so(tmp_path: Path) -> None:
    embedder = opened(write_folder(tmp_path / "toy"), max_tokens=6, long="refuse")
    found = embedder.passages(["a b c d", "a b c d e", "a"])
    assert found.problems == {1: "7 tokens are more than the model's window of 6"}
    assert not found.vectors[1].any()
    np.testing.assert_allclose(found.vectors[2], mean_of(reference(tensors()), [tokens("a")]), atol=1e-5)
    with pytest.raises(RagcliError, match="7 tokens are more than the model's window of 6"):
        embedder.query("a b c d e")


@pytest.mark.spec("M5")
@pytest.mark.parametrize("precision", ["int8", "fp32"])
def test_a_text_has_the_same_vector_whatever_stands_beside_it(tmp_path: Path, precision: str) -> None:
    folder = write_folder(tmp_path / "toy")
    alone = [opened(folder, precision=precision, threads=1).passages([text]).vectors[0] for text in TEXTS]
    for threads in (1, 3):
        embedder = opened(folder, precision=precision, threads=threads, max_tokens=8)
        together = embedder.passages([*TEXTS, "a one " * 40]).vectors
        for number in range(4):  # the last one is longer than this window
            np.testing.assert_array_equal(together[number], alone[number])


def test_a_model_that_gives_no_number_or_zeros(tmp_path: Path) -> None:
    broken = tensors()
    last = f"encoder.layer.{toy_bert.LAYERS - 1}.output.LayerNorm"
    broken[f"{last}.weight"][:] = 0
    broken[f"{last}.bias"][:] = 0
    zeros = opened(write_folder(tmp_path / "zeros", broken))
    assert zeros.passages(["a"]).problems == {0: "the model gave a vector of zeros"}
    broken[f"{last}.bias"][:] = np.inf
    infinite = opened(write_folder(tmp_path / "infinite", broken))
    reason = "the model gave a vector with NaN or infinity"
    assert infinite.passages(["a", "b"]).problems == {0: reason, 1: reason}
    with pytest.raises(RagcliError, match="this query has no vector: the model gave a vector with NaN"):
        infinite.query("a")


def write_folder_with_a_token_too_many(folder: Path) -> Path:
    """Its tokenizer knows the word "beyond", for which the table of token vectors has no row."""
    write_folder(folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["beyond"] = len(toy_bert.WORDS)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    return folder


@pytest.mark.spec("M5")
@pytest.mark.parametrize("threads", [1, 2])
def test_a_text_on_which_the_network_fails_costs_itself_alone(tmp_path: Path, threads: int) -> None:
    embedder = opened(write_folder_with_a_token_too_many(tmp_path / "toy"), threads=threads, max_tokens=6)
    found = embedder.passages(["a b c", "a b c d one beyond", "one"])
    assert list(found.problems) == [1]
    assert "onnx" in found.problems[1]
    assert not found.vectors[1].any()
    expected = [mean_of(reference(tensors()), [tokens(text)]) for text in ("a b c", "one")]
    np.testing.assert_allclose(found.vectors[[0, 2]], expected, atol=1e-5)
    assert list(embedder.passages(["beyond"]).problems) == [0]


@pytest.mark.spec("M5")
def test_a_network_that_fails_on_every_text_is_an_error(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["post_processor"]["special_tokens"]["[CLS]"]["ids"] = [len(toy_bert.WORDS)]
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    for texts in (["a", "a b"], ["a"]):
        with pytest.raises(RagcliError, match="2 tokens"):  # of the empty text: [CLS] and [SEP]
            opened(folder).passages(texts)
    with pytest.raises(RagcliError, match="2 tokens"):
        opened(folder).query("a")


@pytest.mark.spec("M5", "M11")
def test_texts_that_all_fail_are_no_fault_of_a_network_that_takes_others(tmp_path: Path) -> None:
    embedder = opened(write_folder_with_a_token_too_many(tmp_path / "toy"))
    assert list(embedder.passages(["beyond", "beyond a"]).problems) == [0, 1]
    with pytest.raises(RagcliError, match="this query has no vector"):
        embedder.query("beyond")


def test_it_is_warmed_from_another_thread_and_opens_again_after_close(tmp_path: Path) -> None:
    embedder = opened(write_folder(tmp_path / "toy"))
    threads = [Thread(target=embedder.warm) for _ in range(3)]
    for thread in threads:
        thread.start()
    before = embedder.query("a")
    for thread in threads:
        thread.join()
    embedder.close()
    np.testing.assert_array_equal(embedder.query("a"), before)


# --- folders


def as_onnx(folder: Path, *, without_types: bool = False, named: str = "model.onnx") -> Path:
    """The folder with its network as ONNX in place of the checkpoint."""
    import onnx

    write_folder(folder)
    model = onnx.load_from_string(export(folder, precision="fp32"))
    if without_types:
        kept = [given for given in model.graph.input if given.name != "token_type_ids"]
        del model.graph.input[:]
        model.graph.input.extend(kept)
        zeros = onnx.helper.make_node("Sub", ["input_ids", "input_ids"], ["token_type_ids"])
        model.graph.node.insert(0, zeros)
    (folder / named).parent.mkdir(exist_ok=True)
    onnx.save(model, folder / named)
    for name in ("model.safetensors", "config.json"):
        (folder / name).unlink()
    return folder


@pytest.mark.spec("M5")
@pytest.mark.parametrize("without_types", [True, False])
@pytest.mark.parametrize("named", ["model.onnx", "onnx/model.onnx"])
def test_a_folder_with_a_network_of_its_own(tmp_path: Path, without_types: bool, named: str) -> None:
    embedder = opened(as_onnx(tmp_path / "toy", without_types=without_types, named=named))
    assert (embedder.card.dimension, embedder.card.precision) == (toy_bert.HIDDEN, "")
    expected = mean_of(reference(tensors()), [tokens("a b c")])
    np.testing.assert_allclose(embedder.query("a b c"), expected, atol=1e-5)


@pytest.mark.spec("M5")
def test_a_folder_of_a_checkpoint_is_converted_once_into_the_cache(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy")
    before = sorted(folder.rglob("*"))
    lines: list[str] = []
    settings = Settings(models=ModelsSettings(embedder=str(folder)))
    for _ in range(2):
        embedder = TransformerEmbedder.open(settings, ModelPlace(tmp_path / "cache", notify=lines.append))
        embedder.query("a")
    assert lines == [f"converting {folder} to ONNX (int8), once"]
    assert sorted(folder.rglob("*")) == before
    assert len(list((tmp_path / "cache" / "converted").glob("*.onnx"))) == 1
    assert not list((tmp_path / "cache" / "converted").glob(".*.onnx*"))


@pytest.mark.spec("M5")
def test_what_a_folder_says_about_itself(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy")
    card = opened(folder).card
    assert (card.max_tokens, card.pooling, card.query_prefix) == (toy_bert.POSITIONS, "mean", "")
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 12}))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"pooling_mode_cls_token": True}))
    prompts = {"query": "one ", "document": "two "}
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": prompts}))
    card = opened(folder).card
    assert (card.max_tokens, card.pooling, card.query_prefix, card.passage_prefix) == (12, "cls", "one ", "two ")
    (folder / "ragcli.json").write_text(json.dumps({"pooling": "mean", "max_tokens": 9, "query_prefix": ""}))
    card = opened(folder).card
    assert (card.max_tokens, card.pooling, card.query_prefix, card.passage_prefix) == (9, "mean", "", "two ")
    card = opened(folder, max_tokens=20, pooling="cls", passage_prefix="").card
    assert (card.max_tokens, card.pooling, card.query_prefix, card.passage_prefix) == (20, "cls", "", "")


@pytest.mark.spec("I36")
def test_a_fingerprint_changes_with_whatever_changes_vectors(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy")
    fingerprints = [
        opened(folder, **changed).card.fingerprint
        for changed in (
            {}, {"precision": "int8"}, {"pooling": "cls"}, {"query_prefix": "a "}, {"passage_prefix": "a "},
            {"max_tokens": 8}, {"long": "refuse"},
        )
    ]  # fmt: skip
    assert len(set(fingerprints)) == len(fingerprints)
    assert opened(folder, threads=1).card.fingerprint == fingerprints[0]
    same = write_folder(tmp_path / "copy")
    assert opened(same).card.fingerprint == fingerprints[0]
    other = write_folder(tmp_path / "other", tensors(seed=1))
    assert opened(other).card.fingerprint not in fingerprints


@pytest.mark.spec("I36")
@pytest.mark.parametrize("one_file", [True, False])
def test_tensors_beside_the_network_are_part_of_the_fingerprint(tmp_path: Path, one_file: bool) -> None:
    import onnx

    folder = as_onnx(tmp_path / "toy", named="onnx/model.onnx")
    network = folder / "onnx" / "model.onnx"
    model = onnx.load(network)
    onnx.save(
        model, network, save_as_external_data=True, all_tensors_to_one_file=one_file, location="w" * 200,
        size_threshold=0,
    )  # fmt: skip
    (folder / "ragcli.json").write_text(json.dumps({"dimension": toy_bert.HIDDEN}))  # else a vector is asked for
    beside = sorted(path for path in network.parent.iterdir() if path != network)
    assert (len(beside) == 1) is one_file
    fingerprint = opened(folder).card.fingerprint
    expected = mean_of(reference(tensors()), [tokens("a b c")])
    np.testing.assert_allclose(opened(folder).query("a b c"), expected, atol=1e-5)
    (network.parent / "model_fp16.onnx").write_bytes(b"of no matter")
    assert opened(folder).card.fingerprint == fingerprint
    for path in (beside[0], beside[-1]):
        data = path.read_bytes()
        path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        assert opened(folder).card.fingerprint != fingerprint
        path.write_bytes(data)
        assert opened(folder).card.fingerprint == fingerprint


@pytest.mark.spec("I36")
def test_a_changed_file_is_hashed_anew_and_one_that_stayed_is_not_read(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy")
    weights = folder / "model.safetensors"
    for path in folder.iterdir():
        os.utime(path, (1e9, 1e9))
    first = opened(folder).card.fingerprint
    data = weights.read_bytes()
    with weights.open("r+b") as file:  # as if it had stayed: what is remembered is believed
        file.seek(-1, os.SEEK_END)
        file.write(bytes([data[-1] ^ 1]))
    os.utime(weights, (1e9, 1e9))
    assert opened(folder).card.fingerprint == first
    os.utime(weights, (1e9 + 1, 1e9 + 1))
    assert opened(folder).card.fingerprint != first


@pytest.mark.spec("M5")
@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("tokenizer.json", "no tokenizer.json in it"),
        ("model.safetensors", "no network in it"),
        ("config.json", "no network in it"),
    ],
)
def test_what_a_folder_lacks_is_named(tmp_path: Path, missing: str, message: str) -> None:
    folder = write_folder(tmp_path / "toy")
    (folder / missing).unlink()
    with pytest.raises(UsageError, match=message) as caught:
        opened(folder)
    assert str(folder) in caught.value.message
    assert caught.value.hint
    with pytest.raises(UsageError, match="no such folder"):
        opened(tmp_path / "nowhere")


def test_a_folder_that_an_index_was_built_with_and_that_is_gone_is_no_slip_of_now(tmp_path: Path) -> None:
    name = str(tmp_path / "gone")
    card = EmbedderCard(name=name, fingerprint="f", dimension=8)
    with pytest.raises(RagcliError, match="no such folder") as caught:
        TransformerEmbedder.open(Settings(models=ModelsSettings(embedder=name)), ModelPlace(tmp_path / "cache"), card)
    assert not isinstance(caught.value, UsageError)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("ragcli.json", '{"pools": "mean"}', "unknown field `pools`"),
        ("ragcli.json", '{"pooling": "max"}', "Invalid enum value 'max'"),
        ("ragcli.json", '{"dimension": -5}', r"ragcli\.json: dimension = -5 is out of range: 1 to 1048576"),
        ("ragcli.json", '{"dimension": 0}', r"ragcli\.json: dimension = 0 is out of range: 1 to 1048576"),
        ("ragcli.json", '{"max_tokens": 25}', r"ragcli\.json: max_tokens = 25 is out of range: 3 to 24"),
        ("ragcli.json", '{"max_tokens": 2}', r"ragcli\.json: max_tokens = 2 is out of range: 3 to 24"),
        ("modules.json", '[{"type": "sentence_transformers.models.Dense"}]', "its vectors go through Dense"),
        ("1_Pooling/config.json", '{"pooling_mode_max_tokens": true}', "pooling max_tokens is not supported"),
        ("1_Pooling/config.json", '{"pooling_mode": "lasttoken"}', "pooling lasttoken is not supported"),
        ("modules.json", "{", "not the JSON that is expected"),
    ],
)
def test_what_can_t_be_honoured_is_refused(tmp_path: Path, name: str, content: str, message: str) -> None:
    folder = write_folder(tmp_path / "toy")
    (folder / "1_Pooling").mkdir()
    (folder / name).write_text(content)
    with pytest.raises(RagcliError, match=message):
        opened(folder)


def test_a_window_beyond_the_model_s_positions_is_refused(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "toy")
    assert opened(folder, max_tokens=toy_bert.POSITIONS).card.max_tokens == toy_bert.POSITIONS
    with pytest.raises(OptionError, match=r"embedding\.max_tokens = 25 is out of range: this model has 24 positions"):
        opened(folder, max_tokens=toy_bert.POSITIONS + 1)


@pytest.mark.parametrize("open_shape", [False, True])
def test_a_dimension_that_the_network_does_not_have_is_refused(tmp_path: Path, open_shape: bool) -> None:
    import onnx

    folder = as_onnx(tmp_path / "toy") if open_shape else write_folder(tmp_path / "toy")
    if open_shape:
        model = onnx.load(folder / "model.onnx")
        for output in model.graph.output:
            output.type.tensor_type.shape.dim[-1].dim_param = "width"
        onnx.save(model, folder / "model.onnx")
    (folder / "ragcli.json").write_text(json.dumps({"dimension": toy_bert.HIDDEN}))
    assert opened(folder).query("a").shape == (toy_bert.HIDDEN,)
    (folder / "ragcli.json").write_text(json.dumps({"dimension": 99}))
    with pytest.raises(RagcliError, match=f"{toy_bert.HIDDEN} dimensions, but the model's card says 99") as caught:
        opened(folder).passages(["a", "b"])
    assert str(folder / "ragcli.json") in caught.value.hint


@pytest.mark.parametrize("kept", [0, 100, None])
def test_a_damaged_conversion_is_made_anew(tmp_path: Path, kept: int | None) -> None:
    """Of another size, or (None) of the right size and no network."""
    folder = write_folder(tmp_path / "toy")
    expected = opened(folder).query("a b")
    (path,) = (tmp_path / "cache" / "converted").glob("*.onnx")
    data = path.read_bytes()
    path.write_bytes(b"\xff" * len(data) if kept is None else data[:kept])
    np.testing.assert_array_equal(opened(folder).query("a b"), expected)
    assert path.stat().st_size == len(data)


def test_networks_that_can_t_be_served(tmp_path: Path) -> None:
    import onnx

    folder = as_onnx(tmp_path / "toy")
    (folder / "ragcli.json").write_text(json.dumps({"dimension": toy_bert.HIDDEN}))
    model = onnx.load(folder / "model.onnx")
    model.graph.input[0].name = "pixels"
    model.graph.node.insert(0, onnx.helper.make_node("Identity", ["pixels"], ["input_ids"]))
    onnx.save(model, folder / "model.onnx")
    with pytest.raises(RagcliError, match="its inputs can't be served: pixels"):
        opened(folder).query("a")
    (folder / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(RagcliError, match=r"model\.onnx: no network that onnxruntime can open"):
        opened(folder).query("a")
    write_folder(folder)
    (folder / "model.onnx").write_bytes(export(folder, head="classifier"))
    with pytest.raises(RagcliError, match="no output has 3 dimensions, only logits"):
        opened(folder).query("a")


# --- the catalogue's model


def minilm(models: ModelPlace, *, precision: str = "fp32", **embedding: Any) -> TransformerEmbedder:
    chosen = ModelsSettings(embedder="minilm", precision=precision)  # type: ignore[arg-type]
    found = open_embedder(Settings(models=chosen, embedding=EmbeddingSettings(**embedding)), models)
    assert isinstance(found, TransformerEmbedder)
    return found


@pytest.mark.spec("M4", "M5")
def test_minilm_gives_the_published_numbers(models: ModelPlace) -> None:
    embedder = minilm(models)
    vector = embedder.query("This is an example sentence")
    # of sentence-transformers/all-MiniLM-L6-v2, as its model card's example prints them
    np.testing.assert_allclose(vector[:5], [0.0677, 0.0635, 0.0487, 0.0793, 0.0374], atol=5e-5)
    assert (embedder.card.dimension, embedder.card.max_tokens, embedder.card.pooling) == (384, 256, "mean")


@pytest.mark.spec("M4")
def test_minilm_in_fp32_is_the_plain_forward_pass_and_int8_is_near(models: ModelPlace) -> None:
    folder = models.cache / "minilm"
    plain = Bert(read_weights(folder), layers=6, heads=12)
    text = (
        "How long do the batteries of the rain gauge last in winter? At ten degrees below zero the lithium cells of the"
        " transmitter keep working for 14 months; alkaline ones fail after six weeks (E-43), and have to be replaced."
    )
    (windows,) = Windows(load_tokenizer(folder / "tokenizer.json"), 256).of([text])
    expected = mean_of(plain, windows)
    np.testing.assert_allclose(minilm(models).query(text), expected, atol=1e-4)
    assert minilm(models, precision="int8").query(text) @ expected >= 0.99


@pytest.mark.spec("M4")
def test_int8_stays_near_fp32_on_real_passages(models: ModelPlace, shared: Path) -> None:
    lines = (shared / "data" / "retrieval" / "scifact" / "corpus.jsonl").read_text().splitlines()[::200]
    texts = [f"{row['title']}\n{row['text']}" for row in map(json.loads, lines)]
    exact, rounded = (minilm(models, precision=precision).passages(texts).vectors for precision in ("fp32", "int8"))
    assert np.sum(exact * rounded, axis=1).min() >= 0.99


@pytest.mark.spec("I22")
def test_the_end_of_a_long_text_counts(models: ModelPlace) -> None:
    embedder = minilm(models, precision="int8")
    start = "The annual report lists the members of the board and the dates of their meetings. " * 20
    question = embedder.query("How do penguins keep their eggs warm?")
    with_end, without = embedder.passages([start + "Penguins keep eggs warm on their feet. " * 4, start]).vectors
    assert question @ with_end > question @ without + 0.05


def test_a_model_of_another_kind_and_one_that_is_not_here(models: ModelPlace, tmp_path: Path) -> None:
    nowhere = ModelPlace(tmp_path, offline=True)
    with pytest.raises(UsageError, match="'splade-tiny': there is no such embedder"):
        open_embedder(Settings(models=ModelsSettings(embedder="splade-tiny")), nowhere)
    with pytest.raises(ModelMissing, match="minilm"):
        open_embedder(Settings(models=ModelsSettings(embedder="minilm")), nowhere)


def test_the_same_model_has_the_same_fingerprint_by_name_and_as_a_folder(models: ModelPlace) -> None:
    by_name = minilm(models).card
    by_path = opened(models.cache / "minilm", max_tokens=256).card
    assert by_path == replace(by_name, name=by_path.name)
    assert isinstance(by_path, EmbedderCard)
