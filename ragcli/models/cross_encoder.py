"""A cross-encoder: a network that reads query and passage together and gives one number, the logit (spec M8).

Nogueira & Cho, Passage Re-ranking with BERT, 2019. A pair is run alone, as `onnx` says why; a pair that is longer than
the window loses the end of its longer side, token by token ("longest first", as sentence-transformers has it), and the
loss is counted. Which files: a folder, a model of the hub, or one of the names that `catalogue.RERANKERS` gives those.
Orders nothing and squashes nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ragcli.errors import OptionError, RagcliError, UsageError, did_you_mean
from ragcli.models.catalogue import RERANKERS, TOKENIZER
from ragcli.models.folder import ModelFolder, hashes, read_folder
from ragcli.models.onnx import CONVERTED, Network, converted, cores
from ragcli.models.windows import load_tokenizer, whole
from ragcli.options import HUB

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

    from ragcli.models.place import ModelPlace
    from ragcli.options import Settings

LARGEST_WINDOW = 512  # tokens of query and passage together (spec P4)
LEAST_WINDOW = 8  # tokens: three special ones, and something of both sides
EXAMPLES = f"a folder with model.onnx and tokenizer.json, hub:{RERANKERS['ms-marco-minilm']}, or {', '.join(RERANKERS)}"


class Pair(msgspec.Struct, frozen=True):
    """Query and passage as token ids and token types; `lost`: tokens that did not fit."""

    ids: list[int]
    types: list[int]
    lost: int


class CrossEncoder:
    """Opens its files at the first pair. For several threads."""

    def __init__(self, network: Callable[[], Path], tokenizer: Path, window: int, threads: int, *, final: bool) -> None:
        self._network_file, self._tokenizer_file = network, tokenizer
        self._threads, self._is_final = threads or cores(), final
        self._lock = threading.Lock()
        self._opened: tuple[Network, str] | None = None
        self._tokenizers: tuple[Tokenizer, Tokenizer] | None = None
        self.window = window

    @classmethod
    def open(cls, settings: Settings, place: ModelPlace) -> CrossEncoder:
        """What `rerank.model` names.

        Raises: UsageError: it names none, or no folder of a model. ModelMissing, RemoteError: it is not here and can't
        be fetched. OptionError: `rerank.max_tokens` is no window of it. RagcliError: a file is wrong.
        """
        folder = read_folder(_folder(settings.rerank.model or "", place))
        made = place.cache / CONVERTED
        precision = settings.models.precision
        return cls(
            lambda: (
                folder.network
                or converted(folder.path, hashes(folder, made), made, precision, notify=place.notify, head="classifier")
            ),
            folder.path / TOKENIZER,
            _window(settings.rerank.max_tokens, folder),
            settings.models.threads,
            final=folder.network is None,
        )

    def pairs(self, query: str, passages: Sequence[str]) -> list[Pair]:
        """The query with each of the passages."""
        plain, cutting = self._both_tokenizers()
        given = [(whole(query), whole(passage)) for passage in passages]
        return [
            self._cut(cutting, one, encoding)
            for one, encoding in zip(given, plain.encode_batch(given), strict=True)
        ]  # fmt: skip

    def logit(self, pair: Pair) -> float:
        """What the network says of the pair. Raises: RagcliError: it fails, or says more than one number."""
        network, output = self._both_network()
        found = network.run(output, pair.ids, pair.types).reshape(-1)
        if found.size != 1:
            raise RagcliError(f"{self._network_file()}: {found.size} numbers for a pair: a reranker gives one")
        return float(found[0])

    def each(self, work: Callable[[Pair], float], pairs: Sequence[Pair]) -> Iterator[float]:
        """`work` on each of the pairs, by all threads; results in the order of the pairs."""
        return self._both_network()[0].each(work, pairs)

    def close(self) -> None:
        """Ends its threads."""
        with self._lock:
            if self._opened is not None:
                self._opened[0].close()
            self._opened = None

    def _cut(self, cutting: Tokenizer, given: tuple[str, str], encoding: Encoding) -> Pair:
        lost = len(encoding.ids) - self.window
        if lost > 0:
            encoding = cutting.encode(*given)
        return Pair(encoding.ids, encoding.type_ids, max(lost, 0))

    def _both_tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        """One that cuts nothing, and one that cuts at the window."""
        if self._tokenizers is None:
            cutting = load_tokenizer(self._tokenizer_file)
            cutting.enable_truncation(self.window, strategy="longest_first")
            self._tokenizers = load_tokenizer(self._tokenizer_file), cutting
        return self._tokenizers

    def _both_network(self) -> tuple[Network, str]:
        """The network and the name of its logits."""
        with self._lock:
            if self._opened is None:
                network = Network(self._network_file(), threads=self._threads, is_final=self._is_final)
                self._opened = network, _logits(network)
            return self._opened


def _logits(network: Network) -> str:
    """Its output of the shape (n, 1), else of the shape (n,). Raises: RagcliError: there is none."""
    try:
        return network.output(dimensions=2)
    except RagcliError as error:
        try:
            return network.output(dimensions=1)
        except RagcliError:
            raise error from None


def _folder(name: str, place: ModelPlace) -> Path:
    """Where the files are, fetched if need be."""
    from ragcli import config

    if not name.strip():
        raise UsageError("rerank.reranker = onnx wants a model", f"set rerank.model (--rerank-model): {EXAMPLES}")
    hub = RERANKERS.get(name) or (name.removeprefix(HUB) if name.startswith(HUB) else "")
    if hub:
        from ragcli.models.snapshot import snapshot

        return snapshot(hub, place)
    path = Path(name).expanduser()
    if path.is_dir():
        return path
    what = "folder" if config.names_folder(name) else f"reranker{did_you_mean(name, RERANKERS)}"
    raise UsageError(f"rerank.model = {name!r}: there is no such {what}", f"it is {EXAMPLES}")


def _window(chosen: int | None, folder: ModelFolder) -> int:
    most = min(folder.positions or LARGEST_WINDOW, folder.card.max_tokens or LARGEST_WINDOW, LARGEST_WINDOW)
    if chosen is not None and not LEAST_WINDOW <= chosen <= most:
        raise OptionError("rerank.max_tokens", chosen, f"{LEAST_WINDOW} to {most}, the window of this model")
    return chosen or most
