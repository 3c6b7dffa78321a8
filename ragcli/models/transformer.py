"""Vectors by a transformer encoder, run here as an ONNX network (spec M5, I22).

The vector of a text is the mean of the network's token vectors, special tokens included, or its [CLS] vector, at length
1 (Reimers & Gurevych 2019). A text longer than the window is run window by window; its vector is the mean of those of
the windows, each at length 1 and weighed by its tokens: a short rest counts for little. Which files, prefixes and
window: the catalogue says, or the folder (`folder`); settings win over both.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from ragcli.errors import OptionError, RagcliError, UsageError
from ragcli.models.catalogue import CONFIG, TOKENIZER, model
from ragcli.models.folder import CARD, FolderCard, ModelFolder, hashes, positions_of, read_folder
from ragcli.models.onnx import CONVERTED, EXPORTER, Network, converted, cores, discard
from ragcli.models.pull import ensure
from ragcli.models.unit import unit
from ragcli.models.windows import Windows, load_tokenizer
from ragcli.options import HUB
from ragcli.types import Embedded, EmbedderCard

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragcli.models.catalogue import Model
    from ragcli.models.place import ModelPlace
    from ragcli.options import Settings

METHOD = "2"  # grows whenever pooling or windows change: part of every fingerprint
WINDOW = 512  # tokens, where nothing tells


class Files(msgspec.Struct, frozen=True):
    """What an embedder opens. `network` gives the ONNX file, made first if need be.

    `is_final`: it was converted by us: nothing is left to optimise in it (see `onnx.Network`), and it can be made anew.
    """

    network: Callable[[], Path]
    tokenizer: Path
    is_final: bool


class TransformerEmbedder:
    """An Embedder over an ONNX network and a tokenizer; both are opened when first needed. For several threads.

    `threads`: as many texts are run at once; 0 = one a core that this process may use.
    """

    def __init__(self, files: Files, card: EmbedderCard, *, threads: int = 0) -> None:
        self._files = files
        self._card = card
        self._threads = threads or cores()
        self._lock = threading.Lock()
        self._opened: _Encoder | None = None

    @classmethod
    def open(
        cls,
        settings: Settings,
        place: ModelPlace,
        card: EmbedderCard | None = None,
    ) -> TransformerEmbedder:
        """What `models.embedder` names: a model of the catalogue, a folder, or "hub:ORG/NAME".

        Raises:
            ModelMissing, RemoteError: its files are not here and can't be fetched.
            OptionError: `embedding.max_tokens` is more than the model's positions.
            UsageError: the folder is none of a model; the message says what it lacks. RagcliError where it is the one
                that an index was built with (`card`): then nobody chose it now.
            RagcliError: a file of the folder is wrong.
        """
        folder, digests, made = _found(settings, place, card)
        files = Files(
            lambda: (
                folder.network or converted(folder.path, digests, made, settings.models.precision, notify=place.notify)
            ),
            folder.path / TOKENIZER,
            is_final=folder.network is None,
        )
        embedder = cls(files, _card(settings, folder, digests), threads=settings.models.threads)
        return embedder if embedder.card.dimension else embedder._measured()

    def __repr__(self) -> str:
        return f"TransformerEmbedder({self._card.name!r})"

    @property
    def card(self) -> EmbedderCard:
        """What it is."""
        return self._card

    def passages(self, texts: Sequence[str]) -> Embedded:
        """Vectors of passages, each the same whatever stands beside it.

        A text longer than the window is a problem where `embedding.long` is "refuse"; so is one on which the network
        fails. Raises: RagcliError: it fails on an empty text too.
        """
        return self._embedded([self._card.passage_prefix + text for text in texts])

    def query(self, text: str) -> NDArray[np.float32]:
        """The vector of a query, (dimension,), of length 1.

        Raises: RagcliError: it has none, or is longer than the window where `embedding.long` is "refuse".
        """
        found = self._embedded([self._card.query_prefix + text])
        if found.problems:
            reason = found.problems[0]
            raise RagcliError(f"{self._card.name}: this query has no vector: {reason}", "ask with --mode keyword")
        vector: NDArray[np.float32] = found.vectors[0]
        return vector

    def warm(self) -> None:
        """Opens network and tokenizer now; from any thread."""
        self._encoder()

    def close(self) -> None:
        """Lets them go."""
        with self._lock:
            if self._opened is not None:
                self._opened.close()
            self._opened = None

    def _encoder(self) -> _Encoder:
        with self._lock:
            if self._opened is None:
                self._opened = _Encoder(self._files, self._card, self._threads)
            return self._opened

    def _measured(self) -> TransformerEmbedder:
        """Itself, its dimension taken from a vector: where the folder doesn't tell."""
        self._card = replace(self._card, dimension=self._encoder().probe())
        return self

    def _embedded(self, texts: list[str]) -> Embedded:
        import numpy as np

        encoder = self._encoder()
        vectors = np.zeros((len(texts), self._card.dimension), np.float32)
        windows = encoder.windows(texts)
        problems = {row: fault for row, parts in enumerate(windows) if (fault := self._refusal(parts))}
        rows = [row for row in range(len(texts)) if row not in problems]
        found = encoder.vectors([windows[row] for row in rows])
        if found and all(isinstance(vector, RagcliError) for vector in found):
            encoder.probe()  # a network that takes no text at all is no fault of these
        for row, raw in zip(rows, found, strict=True):
            vector = raw.message if isinstance(raw, RagcliError) else _unit(raw)
            if isinstance(vector, str):
                problems[row] = vector
            else:
                vectors[row] = vector
        return Embedded(vectors, dict(sorted(problems.items())))

    def _refusal(self, windows: list[list[int]]) -> str:
        """Why a text of these windows is not taken; "" where it is."""
        if len(windows) == 1 or self._card.long != "refuse":
            return ""
        tokens = self._encoder().length(windows)
        return f"{tokens} tokens are more than the model's window of {self._card.max_tokens}"


class _Encoder:
    """The open network and tokenizer of an embedder."""

    def __init__(self, files: Files, card: EmbedderCard, threads: int) -> None:
        self._windows = Windows(load_tokenizer(files.tokenizer), card.max_tokens)
        self._network = _network(files, threads)
        self._output = self._network.output(dimensions=3)
        self._is_mean = card.pooling == "mean"
        self._check_dimension(card.dimension, files)

    def windows(self, texts: Sequence[str]) -> list[list[list[int]]]:
        """For each text the token ids of its windows."""
        return self._windows.of(texts)

    def length(self, windows: list[list[int]]) -> int:
        """How many tokens the text of these windows has, special tokens counted once."""
        return self._windows.length(windows)

    def vectors(self, texts: Sequence[list[list[int]]]) -> list[NDArray[np.float32] | RagcliError]:
        """The vector of each of these texts, given as windows, before it is brought to length 1; or what failed."""
        tasks = [(row, part) for row, windows in enumerate(texts) for part in range(len(windows))]
        # long ones first: else one thread works on when the others are done
        tasks.sort(key=lambda task: -len(texts[task[0]][task[1]]))
        found = self._network.each(self._tried, [texts[row][part] for row, part in tasks])
        parts = dict(zip(tasks, found, strict=True))
        return [_sum([parts[row, part] for part in range(len(windows))]) for row, windows in enumerate(texts)]

    def probe(self) -> int:
        """How many numbers a vector has, from that of an empty text. Raises: RagcliError: it has none."""
        (vector,) = self.vectors(self.windows([""]))
        if isinstance(vector, RagcliError):
            raise vector
        return len(vector)

    def close(self) -> None:
        """Ends its threads."""
        self._network.close()

    def _check_dimension(self, dimension: int, files: Files) -> None:
        """Raises: RagcliError: the card (0: it doesn't tell) has another dimension than the network."""
        if not dimension:
            return
        width = self._network.width(self._output) or self.probe()
        if width != dimension:
            raise RagcliError(
                f"{files.network()}: its vectors have {width} dimensions, but the model's card says {dimension}",
                f"correct dimension in {files.tokenizer.with_name(CARD)}, or hidden_size in {CONFIG} beside it",
            )

    def _tried(self, tokens: list[int]) -> NDArray[np.float32] | RagcliError:
        try:
            return self._weighed(tokens)
        except RagcliError as error:
            return error

    def _weighed(self, tokens: list[int]) -> NDArray[np.float32]:
        """The vector of a window at length 1, times its tokens; what has no length stays as it is."""
        import numpy as np

        states = self._network.run(self._output, tokens)[0]
        vector = states.mean(axis=0, dtype=np.float32) if self._is_mean else states[0].astype(np.float32)
        with np.errstate(all="ignore"):  # what is not finite is found later
            length = float(np.linalg.norm(vector))
            weighed: NDArray[np.float32] = vector * np.float32(len(tokens) / length if length else 1)
        return weighed


def _network(files: Files, threads: int) -> Network:
    """The open network. A converted one that can't be opened is damaged: it is made anew, once."""
    path = files.network()
    try:
        return Network(path, threads=threads, is_final=files.is_final)
    except RagcliError:
        if not files.is_final:
            raise
    discard(path)
    return Network(files.network(), threads=threads, is_final=True)


def _sum(vectors: list[NDArray[np.float32] | RagcliError]) -> NDArray[np.float32] | RagcliError:
    """The sum; of what failed, the first failure."""
    total: NDArray[np.float32] | None = None
    for vector in vectors:
        if isinstance(vector, RagcliError):
            return vector
        total = vector if total is None else total + vector
    assert total is not None
    return total


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32] | str:
    found = unit(vector)
    return f"the model gave {found}" if isinstance(found, str) else found


# --- from settings to files and card


def _found(settings: Settings, place: ModelPlace, card: EmbedderCard | None) -> tuple[ModelFolder, list[str], Path]:
    """What `models.embedder` names, the hashes of its files, and where to keep what is made of them."""
    from ragcli import config

    name = settings.models.embedder
    if name.startswith(HUB):
        from ragcli.models.snapshot import snapshot

        folder = read_folder(snapshot(name.removeprefix(HUB), place))
    elif config.names_folder(name):
        try:
            folder = read_folder(Path(name).expanduser())
        except UsageError as error:
            if card is None or card.name != name:
                raise
            raise RagcliError(error.message, f"the index was built with it; {error.hint}") from error
    else:
        entry = model(name)
        folder = _of_catalogue(entry, place)
        return folder, [file.sha256 for file in entry.files], folder.path
    made = place.cache / CONVERTED
    return folder, hashes(folder, made), made


def _of_catalogue(entry: Model, place: ModelPlace) -> ModelFolder:
    own = entry.card
    if entry.kind != "embedder" or own is None or own.pooling == "max":
        raise UsageError(f"{entry.name} is no embedder: its kind is {entry.kind}", "ragcli models list")
    card = FolderCard(own.dimension, own.pooling, own.max_tokens, own.query_prefix, own.passage_prefix)
    path = ensure(entry.name, place)
    return ModelFolder(path, None, card, positions_of(path))


def _card(settings: Settings, folder: ModelFolder, digests: Sequence[str]) -> EmbedderCard:
    """The model's own card under the settings; its dimension is 0 where no file tells."""
    chosen, own = settings.embedding, folder.card
    is_converted = folder.network is None
    card = EmbedderCard(
        name=settings.models.embedder,
        fingerprint="",
        dimension=own.dimension or 0,
        precision=settings.models.precision if is_converted else "",
        pooling=chosen.pooling or own.pooling or "mean",
        query_prefix=_either(chosen.query_prefix, own.query_prefix),
        passage_prefix=_either(chosen.passage_prefix, own.passage_prefix),
        max_tokens=_window(chosen.max_tokens, folder),
        long=chosen.long,
    )
    # what a model is called, and where it lies, changes no vector
    identity = [METHOD, EXPORTER if is_converted else "", *sorted(digests), replace(card, name="", dimension=0)]
    return replace(card, fingerprint=sha256(msgspec.json.encode(identity)).hexdigest())


def _either(chosen: str | None, own: str | None) -> str:
    return (own if chosen is None else chosen) or ""


def _window(chosen: int | None, folder: ModelFolder) -> int:
    most = folder.positions
    if chosen and most and chosen > most:
        raise OptionError("embedding.max_tokens", chosen, f"this model has {most} positions")
    return chosen or folder.card.max_tokens or most or WINDOW
