"""The cross-encoder (spec M8) on a tiny model with fixed weights, against a plain numpy forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from random import Random

import onnx
import pytest
from tokenizers import Tokenizer

from ragcli.errors import ModelMissing, OptionError, RagcliError, UsageError
from ragcli.models.bert import export
from ragcli.models.cross_encoder import CrossEncoder
from ragcli.models.place import ModelPlace
from ragcli.options import ModelsSettings, Precision, RerankSettings, Settings
from tests.models import toy_bert

WORDS = toy_bert.WORDS[4:-1]
TENSORS = toy_bert.tensors()
REFERENCE = toy_bert.reference(TENSORS)
SEPARATOR = toy_bert.WORDS.index("[SEP]")


def settings(model: str, *, precision: Precision = "fp32", threads: int = 1, max_tokens: int | None = None) -> Settings:
    return Settings(
        models=ModelsSettings(precision=precision, threads=threads),
        rerank=RerankSettings(reranker="onnx", model=model, max_tokens=max_tokens),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Weights, config and tokenizer: to be converted."""
    return toy_bert.write_folder(tmp_path / "toy", TENSORS)


@pytest.fixture
def place(tmp_path: Path) -> ModelPlace:
    return ModelPlace(tmp_path / "cache", offline=True)


def texts(count: int, seed: int, longest: int = 9) -> list[str]:
    random = Random(seed)
    return [" ".join(random.choice(WORDS) for _ in range(random.randint(1, longest))) for _ in range(count)]


def expected(query: str, passage: str) -> float:
    """By the reference: [CLS] query [SEP] passage [SEP], the passage with token type 1."""
    left, right = toy_bert.tokens(query), toy_bert.tokens(passage)[1:]
    return float(REFERENCE.logits([*left, *right], [0] * len(left) + [1] * len(right))[0])


def logits(encoder: CrossEncoder, query: str, passages: Sequence[str]) -> list[float]:
    return [encoder.logit(pair) for pair in encoder.pairs(query, passages)]


@pytest.mark.spec("M8", "P4")
def test_converted_weights_against_the_plain_forward_pass(folder: Path, place: ModelPlace) -> None:
    encoder = CrossEncoder.open(settings(str(folder)), place)
    for seed in range(20):
        (query,), passages = texts(1, seed), texts(5, 100 + seed)
        assert logits(encoder, query, passages) == pytest.approx([expected(query, one) for one in passages], abs=1e-5)


@pytest.mark.spec("M8")
def test_a_ready_made_network(tmp_path: Path, folder: Path, place: ModelPlace) -> None:
    made = tmp_path / "made"
    (made / "onnx").mkdir(parents=True)
    (made / "onnx" / "model.onnx").write_bytes(export(folder, head="classifier", precision="fp32"))
    toy_bert.write_tokenizer(made)
    encoder = CrossEncoder.open(settings(str(made)), place)
    assert logits(encoder, "a b", ["one two", "c"]) == pytest.approx(
        [expected("a b", "one two"), expected("a b", "c")], abs=1e-5
    )


@pytest.mark.spec("M8")
def test_a_network_without_token_types_or_with_one_dimension(tmp_path: Path, place: ModelPlace) -> None:
    toy_bert.write_tokenizer(tmp_path)
    (tmp_path / "model.onnx").write_bytes(summing(["input_ids", "attention_mask"], keepdims=0))
    encoder = CrossEncoder.open(settings(str(tmp_path)), place)
    ids = [*toy_bert.tokens("a b"), *toy_bert.tokens("c")[1:]]
    assert logits(encoder, "a b", ["c"]) == [sum(ids)]


def summing(inputs: Sequence[str], *, keepdims: int, width: int = 1) -> bytes:
    """A network that adds up the token ids of each text, `width` times."""
    from onnx import TensorProto, helper

    given = [helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "t"]) for name in inputs]
    shape: list[str | int | None] = ["n", width] if keepdims else ["n"]
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["floats", "axis"], ["sum"], keepdims=keepdims),
        helper.make_node("Concat", ["sum"] * width, ["logits"], axis=-1)
        if keepdims
        else helper.make_node("Identity", ["sum"], ["logits"]),
    ]
    axis = helper.make_tensor("axis", TensorProto.INT64, [1], [1])
    out = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "sum", given, out, [axis])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 9
    data: bytes = onnx.ModelProto.SerializeToString(model)
    return data


@pytest.mark.spec("M8")
def test_more_than_one_number_a_pair_is_no_reranker(tmp_path: Path, place: ModelPlace) -> None:
    toy_bert.write_tokenizer(tmp_path)
    (tmp_path / "model.onnx").write_bytes(summing(["input_ids"], keepdims=1, width=3))
    encoder = CrossEncoder.open(settings(str(tmp_path)), place)
    with pytest.raises(RagcliError, match="3 numbers for a pair"):
        logits(encoder, "a", ["b"])


@pytest.mark.spec("M4", "M8")
def test_eight_bits_stay_near(folder: Path, place: ModelPlace) -> None:
    encoder = CrossEncoder.open(settings(str(folder), precision="int8"), place)
    passages = texts(30, 7)
    found, wanted = logits(encoder, "a b c", passages), [expected("a b c", one) for one in passages]
    assert found == pytest.approx(wanted, abs=0.25)
    assert found != wanted
    assert rank_correlation(found, wanted) > 0.9


def rank_correlation(left: Sequence[float], right: Sequence[float]) -> float:
    """Spearman's: 1 − 6 Σ d² / (n (n² − 1)), d the distance of an item's two ranks."""
    first, second = ([sorted(scores).index(score) for score in scores] for scores in (left, right))
    squares = sum((one - other) ** 2 for one, other in zip(first, second, strict=True))
    return 1 - 6 * squares / (len(left) * (len(left) ** 2 - 1))


@pytest.mark.spec("P4")
def test_a_pair_is_cut_at_the_window_longest_side_first(folder: Path, place: ModelPlace) -> None:
    encoder = CrossEncoder.open(settings(str(folder), max_tokens=10), place)
    long = "a b c d e f g h i j"
    fits, cut = encoder.pairs("one two", ["a b c d e", long])
    assert (len(fits.ids), fits.lost) == (10, 0)  # [CLS] 2 [SEP] 5 [SEP]
    assert (len(cut.ids), cut.lost) == (10, 5)
    assert cut.ids == fits.ids
    (both,) = encoder.pairs(long, [long])
    words = 10 - 3
    assert len(both.ids) == 10
    assert both.types.count(1) in {words // 2 + 1, words // 2 + 2}  # about half, and a [SEP]
    assert both.lost == 2 * 10 + 3 - 10


@pytest.mark.spec("P4")
def test_what_is_kept_of_a_pair_of_any_lengths(folder: Path, place: ModelPlace) -> None:
    """[CLS] query [SEP] passage [SEP], each a beginning: the shorter whole, else both alike, and no token to spare."""
    window = 9
    room = window - 3
    encoder = CrossEncoder.open(settings(str(folder), max_tokens=window), place)
    peer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    peer.no_padding()
    peer.enable_truncation(window, strategy="longest_first")
    for left, right in product(range(1, 13), repeat=2):
        query, passage = " ".join(WORDS[:left]), " ".join(WORDS[-right:])
        (pair,) = encoder.pairs(query, [passage])
        second = pair.types.count(1) - 1
        first = len(pair.ids) - second - 3
        assert pair.ids == [
            *toy_bert.tokens(query)[: first + 1], SEPARATOR, *toy_bert.tokens(passage)[1 : second + 1], SEPARATOR
        ]  # fmt: skip
        assert pair.types == [0] * (first + 2) + [1] * (second + 1)
        assert first + second == min(left + right, room)
        assert pair.lost == left + right - first - second
        assert abs(first - second) <= 1 or (first if left < right else second) == min(left, right)
        same = peer.encode(query, passage)
        assert (pair.ids, pair.types) == (same.ids, same.type_ids)


@pytest.mark.spec("P4")
def test_the_window_is_the_models_own_and_no_more(folder: Path, place: ModelPlace) -> None:
    assert CrossEncoder.open(settings(str(folder)), place).window == toy_bert.POSITIONS
    for wrong in (toy_bert.POSITIONS + 1, 7):
        with pytest.raises(OptionError, match="max_tokens"):
            CrossEncoder.open(settings(str(folder), max_tokens=wrong), place)


@pytest.mark.spec("P4")
def test_more_threads_give_the_same(folder: Path, place: ModelPlace) -> None:
    one, two = (CrossEncoder.open(settings(str(folder), threads=number), place) for number in (1, 2))
    passages = texts(12, 5)
    pairs = two.pairs("a b", passages)
    assert list(two.each(two.logit, pairs)) == logits(one, "a b", passages)
    two.close()


@pytest.mark.spec("M8", "C9")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "wants a model"),
        ("no-such-one", "there is no such reranker$"),
        ("ms-marco-minlm", "did you mean ms-marco-minilm"),
        ("./no/such", "there is no such folder"),
    ],
)
def test_without_a_model_it_says_how_to_get_one(place: ModelPlace, name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        CrossEncoder.open(settings(name), place)
    assert "hub:cross-encoder/ms-marco-MiniLM-L-6-v2" in raised.value.hint
    assert "ms-marco-minilm" in raised.value.hint


@pytest.mark.spec("M3", "M8")
@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("ms-marco-minilm", "hub:cross-encoder/ms-marco-MiniLM-L-6-v2"),
        ("hub:BAAI/bge-reranker-base", "hub:BAAI/bge-reranker-base"),
    ],
)
def test_a_model_of_the_hub_that_is_not_here_and_may_not_be_fetched(place: ModelPlace, name: str, model: str) -> None:
    with pytest.raises(ModelMissing, match="offline") as raised:
        CrossEncoder.open(settings(name), place)
    assert f"ragcli models pull {model} " in raised.value.hint


@pytest.mark.spec("M8", "C9")
@pytest.mark.parametrize("name", ["model.onnx", "model.safetensors", "tokenizer.json", "config.json"])
@pytest.mark.parametrize("data", [b"", b"no such thing"])
def test_a_damaged_file_is_named_in_one_line(folder: Path, place: ModelPlace, name: str, data: bytes) -> None:
    (folder / name).write_bytes(data)
    with pytest.raises(RagcliError) as raised:
        logits(CrossEncoder.open(settings(str(folder)), place), "a", ["b"])
    assert raised.value.message.startswith(f"{folder / name}: ")
    assert "\n" not in raised.value.message


@pytest.mark.spec("M8")
def test_an_encoder_is_no_reranker(folder: Path, place: ModelPlace) -> None:
    toy_bert.write_model(folder, {name: value for name, value in TENSORS.items() if "classifier" not in name})
    with pytest.raises(RagcliError, match="no tensor classifier") as raised:
        logits(CrossEncoder.open(settings(str(folder)), place), "a", ["b"])
    assert "classifier" in raised.value.hint


@pytest.mark.spec("M8")
def test_a_network_that_wants_something_else(folder: Path, place: ModelPlace) -> None:
    (folder / "model.onnx").write_bytes(summing(["input_ids", "position_ids"], keepdims=1))
    with pytest.raises(RagcliError, match="its inputs can't be served: position_ids"):
        logits(CrossEncoder.open(settings(str(folder)), place), "a", ["b"])
