"""Token ids for words at nodes, with one id for everything not seen in training.

A vocabulary also says what is read. Of a function: its mnemonics, as in the paper, or its
operations and beside them what it says, as hashed words (:mod:`graphkin.graphs.words`). Of any
other graph: the labels that its nodes and edges have as text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from graphkin.errors import FormatError, GraphError
from graphkin.graphs.graph import Graph, IntArray, TokenBags
from graphkin.graphs.words import KIND_SHIFT, KINDS

UNKNOWN = "<unknown>"
Reads = Literal["mnemonics", "evidence", "labels"]
"""Mnemonics of the processor; or operations, the same on all processors, and hashed words; or the
labels that nodes of any graph have as text."""
HASHED = {"kinds": list(KINDS), "bits": KIND_SHIFT}
"""How words of an open vocabulary are hashed; a graph that was made otherwise does not fit."""


LABELS = frozenset({"labels", "edge_labels"})


@dataclass(frozen=True)
class Vocabulary:
    """Token ``i + 1`` is ``words[i]``; token 0 stands for any other word."""

    words: tuple[str, ...]
    reads: Reads = "mnemonics"
    edge_words: tuple[str, ...] | None = None
    """Type ``i + 1`` of edges is ``edge_words[i]``; None where edges have no labels as text."""
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)
    _edge_ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_ids", _numbered(self.words))
        object.__setattr__(self, "_edge_ids", _numbered(self.edge_words or ()))
        if self.edge_words is not None and self.reads != "labels":
            raise FormatError("a vocabulary of functions has no labels of edges")

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[str, int],
        *,
        min_count: int = 1,
        size: int | None = None,
        reads: Reads = "mnemonics",
    ) -> Vocabulary:
        """The words seen at least ``min_count`` times, most frequent first, at most ``size``."""
        return cls(_most_frequent(counts, min_count)[:size], reads)

    @classmethod
    def of_labels(cls, graphs: Iterable[Graph]) -> Vocabulary:
        """The labels at the nodes and edges of graphs, most frequent first."""
        nodes, edges, has_edges = Counter[str](), Counter[str](), False
        for graph in graphs:
            nodes.update(graph.node_labels or ())
            edges.update(graph.edge_labels or ())
            has_edges |= graph.edge_labels is not None
        edge_words = _most_frequent(edges) if has_edges else None
        return cls(_most_frequent(nodes), "labels", edge_words)

    @classmethod
    def from_json(cls, words: object) -> Vocabulary:
        """Reads what :meth:`to_json` wrote."""
        reads: Reads = "mnemonics"
        edge_words = None
        if isinstance(words, dict) and "labels" in words and words.keys() <= LABELS:
            edge_words = words.get("edge_labels")
            reads, words = "labels", words["labels"]
        elif isinstance(words, dict):
            if words.keys() != {"operations", "hashed"} or words["hashed"] != HASHED:
                raise FormatError(
                    f"a vocabulary of operations and hashed words has {HASHED}; this one is of "
                    "another graphkin"
                )
            reads, words = "evidence", words["operations"]
        return cls(_checked(words), reads, None if edge_words is None else _checked(edge_words))

    def to_json(self) -> list[str] | dict[str, Any]:
        if self.reads == "mnemonics":
            return list(self.words)
        if self.reads == "labels":
            edges = {} if self.edge_words is None else {"edge_labels": list(self.edge_words)}
            return {"labels": list(self.words), **edges}
        return {"operations": list(self.words), "hashed": HASHED}

    def encode(self, words: Iterable[str]) -> IntArray:
        """(M,) int32, the token of each word."""
        get = self._ids.get
        return np.array([get(word, 0) for word in words], dtype=np.int32)

    def read(self, graph: Graph) -> Graph:
        """The graph with its labels as tokens; beside features, as one-hot columns behind them.

        Labels of edges become types.
        """
        if not graph.has_text:
            return graph
        bags, features, types = graph.node_tokens, graph.node_features, graph.edge_types
        if graph.edge_labels is not None:
            if self.edge_words is None:
                raise GraphError(
                    "the graph has labels as text at its edges, and those of the training had none"
                )
            get = self._edge_ids.get
            types = np.array([get(label, 0) for label in graph.edge_labels], dtype=np.int32)
        if graph.node_labels is not None:
            tokens = self.encode(graph.node_labels)
            bags = TokenBags.from_sizes(tokens, np.ones(graph.num_nodes, dtype=np.int64))
            if features is not None:
                one_hot = np.zeros((graph.num_nodes, len(self)), dtype=np.float32)
                one_hot[np.arange(graph.num_nodes), tokens] = 1
                bags, features = None, np.concatenate([features, one_hot], axis=1)
        return Graph(
            graph.num_nodes,
            graph.edges,
            directed=graph.directed,
            node_features=features,
            node_tokens=bags,
            edge_features=graph.edge_features,
            edge_types=types,
            node_words=graph.node_words,
        )

    def mistakes(self, graph: Graph) -> bool:
        """Whether numbers at a graph's nodes, not read by it, would pass for labels of training."""
        return self.reads == "labels" and bool(self.words) and graph.node_tokens is not None

    def node_texts(self, graph: Graph) -> list[str]:
        """The label of each node of a graph that :meth:`read` made; empty where it has none."""
        if graph.node_tokens is not None:
            bags = (graph.node_tokens.bag(node) for node in range(graph.num_nodes))
            return [" ".join(map(self.decode, bag)) for bag in bags]
        if graph.node_features is None or not self.words:
            return [""] * graph.num_nodes
        return [self.decode(token) for token in graph.node_features[:, -len(self) :].argmax(axis=1)]

    def edge_texts(self, graph: Graph) -> list[str]:
        """The label of each edge of a graph that :meth:`read` made; empty where it has none."""
        if self.edge_words is None or graph.edge_types is None:
            return [""] * graph.num_edges
        words = (UNKNOWN, *self.edge_words)
        return [words[number] for number in graph.edge_types.tolist()]

    def decode(self, token: int) -> str:
        """The word of a token."""
        return UNKNOWN if token == 0 else self.words[token - 1]

    def __len__(self) -> int:
        """Number of tokens, the unknown one included."""
        return len(self.words) + 1

    @property
    def edge_types(self) -> int:
        """Number of types of edges, that of unknown labels included; 0 without labels of edges."""
        return 0 if self.edge_words is None else len(self.edge_words) + 1


def _numbered(words: tuple[str, ...]) -> dict[str, int]:
    ids = {word: token for token, word in enumerate(words, start=1)}
    if len(ids) != len(words):
        raise FormatError("a vocabulary lists a word twice")
    if UNKNOWN in ids:
        raise FormatError(f"{UNKNOWN} is token 0 of every vocabulary; leave it out of words")
    return ids


def _most_frequent(counts: Mapping[str, int], min_count: int = 1) -> tuple[str, ...]:
    kept = [word for word, count in counts.items() if count >= min_count and word != UNKNOWN]
    return tuple(sorted(kept, key=lambda word: (-counts[word], word)))


def _checked(words: object) -> tuple[str, ...]:
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise FormatError(f"a vocabulary is a JSON list of strings, got {str(words)[:60]!r}")
    return tuple(words)
