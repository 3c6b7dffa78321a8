"""Vectors by looking up and averaging: a table of one vector a token, no network behind it (spec M6).

A text's vector is the mean of the vectors of its tokens, at length 1. Special tokens are not added, nothing is cut
off, and every token weighs the same: as WordLlama (Miller 2024) computes it from the same two files. So there is no
window, and `embedding.max_tokens`, `embedding.long`, `models.precision` and `models.threads` don't apply; prefixes do.
`embedding.pooling: cls` is refused: there is no such token. A lone surrogate, which is no character, counts as a
question mark.

The table is mapped, not read: a query touches the rows of its own tokens. Passages convert it to float32 once (15 ms
for 32,000 x 256), since converting every row that is looked up takes longer than adding them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ragcli.errors import RagcliError, UsageError
from ragcli.models.catalogue import TOKENIZER, WEIGHTS, model
from ragcli.models.pull import ensure
from ragcli.models.unit import unit
from ragcli.models.windows import load_tokenizer, whole
from ragcli.types import Embedded, EmbedderCard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from tokenizers import Tokenizer

    from ragcli.models.catalogue import Model
    from ragcli.models.place import ModelPlace
    from ragcli.options import EmbeddingSettings, Settings

TENSOR = "embedding.weight"  # (n_tokens, dimension), in the safetensors file
AT_ONCE = 512  # texts that are split into tokens together, on all cores
_TYPES = {"F16": "<f2", "F32": "<f4"}


class StaticEmbedder:
    """An Embedder over a folder with `model.safetensors` and `tokenizer.json`; both are opened when first needed."""

    def __init__(self, folder: Path, card: EmbedderCard) -> None:
        self._folder = folder
        self._card = card

    @classmethod
    def open(
        cls,
        settings: Settings,
        place: ModelPlace,
        card: EmbedderCard | None = None,  # noqa: ARG003 - as the other embedders; bytes tell all there is to know
    ) -> StaticEmbedder:
        """The catalogue's model that `models.embedder` names.

        Raises:
            ModelMissing, RemoteError: its files are not here and can't be fetched.
            UsageError: `embedding.pooling` is not the mean.
        """
        entry = model(settings.models.embedder)
        if settings.embedding.pooling not in {None, "mean"}:
            raise UsageError(
                f"embedding.pooling = {settings.embedding.pooling!r}, but {entry.name} has the mean alone: "
                "it is a table of token vectors",
                "leave embedding.pooling out, or take a transformer such as minilm",
            )
        return cls(ensure(entry.name, place), _card(entry, settings.embedding))

    def __repr__(self) -> str:
        return f"StaticEmbedder({self._card.name!r})"

    @property
    def card(self) -> EmbedderCard:
        """What it is; opens no file."""
        return self._card

    def passages(self, texts: Sequence[str]) -> Embedded:
        """Vectors of passages, whole, however long. A text without tokens is a problem of its own."""
        import numpy as np

        vectors = np.zeros((len(texts), self._card.dimension), np.float32)
        problems: dict[int, str] = {}
        for row, tokens in enumerate(self._tokens([self._card.passage_prefix + text for text in texts])):
            vector = _mean(self._whole_table, tokens) if texts[row].strip() else "no text"
            if isinstance(vector, str):
                problems[row] = vector
            else:
                vectors[row] = vector
        return Embedded(vectors, problems)

    def query(self, text: str) -> NDArray[np.float32]:
        """The vector of a query. Raises: RagcliError: it has none."""
        (tokens,) = self._tokens([self._card.query_prefix + text])
        vector = _mean(self._table, tokens)
        if isinstance(vector, str):
            raise RagcliError(f"{self._card.name}: this query has no vector", "ask with words, or with --mode keyword")
        return vector

    def warm(self) -> None:
        """Opens the files now."""
        _ = self._tokenizer, self._table

    def close(self) -> None:
        """Lets the files go."""
        for name in ("_tokenizer", "_table", "_whole_table"):
            self.__dict__.pop(name, None)

    def _tokens(self, texts: Sequence[str]) -> Iterator[list[int]]:
        for start in range(0, len(texts), AT_ONCE):
            some = [whole(text) for text in texts[start : start + AT_ONCE]]
            for encoding in self._tokenizer.encode_batch_fast(some, add_special_tokens=False):
                yield encoding.ids

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return load_tokenizer(self._folder / TOKENIZER)

    @cached_property
    def _table(self) -> NDArray[np.floating[Any]]:
        """(n_tokens, dimension), as it lies in the file."""
        table = _mapped(self._folder / WEIGHTS)
        expected = (self._tokenizer.get_vocab_size(), self._card.dimension)
        if table.shape[0] < expected[0] or table.shape[1] != expected[1]:
            raise RagcliError(f"{self._folder / WEIGHTS}: a table of {table.shape}, not of {expected}")
        return table

    @cached_property
    def _whole_table(self) -> NDArray[np.float32]:
        import numpy as np

        return self._table.astype(np.float32)


def _mean(table: NDArray[np.floating[Any]], tokens: list[int]) -> NDArray[np.float32] | str:
    """The mean of the rows `tokens` at length 1, or why there is none. The sum has the same direction as the mean."""
    import numpy as np

    return unit(table[tokens].astype(np.float32, copy=False).sum(axis=0))


def _card(entry: Model, settings: EmbeddingSettings) -> EmbedderCard:
    if entry.card is None or entry.card.runtime != "static":
        raise RagcliError(f"{entry.name} is no table of token vectors")
    given = (settings.query_prefix, settings.passage_prefix)
    query, passage = (
        own if set_one is None else set_one
        for set_one, own in zip(given, (entry.card.query_prefix, entry.card.passage_prefix), strict=True)
    )
    hashes = [file.sha256 for file in entry.files]
    return EmbedderCard(
        name=entry.name,
        fingerprint=sha256(msgspec.json.encode(["static", hashes, query, passage])).hexdigest(),
        dimension=entry.card.dimension,
        pooling="mean",
        query_prefix=query,
        passage_prefix=passage,
        long="",  # there is no window
    )


def _mapped(path: Path) -> NDArray[np.floating[Any]]:
    """The tensor of the file, mapped (safetensors: 8 bytes length of the JSON header, the header, the data)."""
    import numpy as np

    try:
        with path.open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            entry = msgspec.json.decode(file.read(size))[TENSOR]
        rows, columns = entry["shape"]
        start = 8 + size + entry["data_offsets"][0]
        return np.memmap(path, _TYPES[entry["dtype"]], mode="r", offset=start, shape=(rows, columns))
    except OSError as error:
        raise RagcliError(f"{path}: {error.strerror}", "check the models folder") from error
    except (KeyError, ValueError, TypeError, MemoryError, OverflowError) as error:
        raise RagcliError(f"{path}: no table of token vectors ({TENSOR})", "ragcli models verify") from error
