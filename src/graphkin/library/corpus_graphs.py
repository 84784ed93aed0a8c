"""Functions of a corpus where graphs of one's own are read: with names that tell them apart."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from graphkin._support.files import PathLike
from graphkin.binaries.corpus import DOCUMENT, CorpusFunction, FunctionCorpus
from graphkin.errors import ConfigError, FormatError
from graphkin.graphs import Graph
from graphkin.graphs.converters.named import NamedGraph
from graphkin.models.answering import Answering


def corpus_target(target: PathLike) -> tuple[Path, str] | None:
    """The corpus of ``CORPUS`` or ``CORPUS:NAME``, and the name; None for what is not a corpus."""
    text = str(target)
    ends = [len(text), *(place for place, letter in enumerate(text) if letter == ":")]
    for end in ends:
        if (Path(text[:end]) / DOCUMENT).is_file():
            return Path(text[:end]), text[end + 1 :]
    return None


def corpus_graphs(model: Answering, folder: Path, name: str = "") -> list[NamedGraph]:
    """Functions of a corpus in the words of a model.

    They are called ``BINARY:FUNCTION``, and ``BINARY:0x1234`` where a binary has two of that name:
    builds of one function have its name in common.

    Args:
        model: what reads them.
        folder: the corpus.
        name: of the only functions to read, with the binary or without; empty for all.

    Raises:
        ConfigError: where the corpus and the model read different things of functions.
        FormatError: no function has that name.
    """
    corpus = FunctionCorpus.open(folder)
    counts = Counter(map(_name, corpus.entries))
    graphs = []
    for number, entry in enumerate(corpus.entries):
        full = _name(entry)
        if counts[full] > 1:
            full = f"{_binary(entry)}:{entry.address:#x}"
        if name in ("", entry.name, full):
            graph = _graph(model, corpus, number)
            graphs.append(NamedGraph(full, graph, source=str(folder)))
    if name and not graphs:
        raise FormatError(f"{folder} has no function {name!r}; name one as BINARY:FUNCTION")
    return graphs


def _binary(entry: CorpusFunction) -> str:
    return entry.binary.path + entry.binary.part


def _name(entry: CorpusFunction) -> str:
    return f"{_binary(entry)}:{entry.name}"


def _graph(model: Answering, corpus: FunctionCorpus, number: int) -> Graph:
    if model.config.node_input == "constant":
        stored = corpus.store[number]
        return Graph(stored.num_nodes, stored.edges, directed=True)
    if model.vocabulary is None:
        raise ConfigError(
            "the model has no vocabulary, so what its tokens mean is unknown; take one that was "
            "trained on functions"
        )
    return corpus.graph(number, model.vocabulary)
