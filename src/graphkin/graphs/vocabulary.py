"""Token ids for words at nodes, with one id for everything not seen in training.

A vocabulary also says what is read. Of a function: its mnemonics, as in the paper, or its
operations and beside them what it says, as hashed words (:mod:`graphkin.graphs.words`). Of any
other graph: the labels that its nodes have as text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from graphkin.errors import FormatError
from graphkin.graphs.graph import Graph, IntArray, TokenBags
from graphkin.graphs.words import KIND_SHIFT, KINDS

UNKNOWN = "<unknown>"
Reads = Literal["mnemonics", "evidence", "labels"]
"""Mnemonics of the processor; or operations, the same on all processors, and hashed words; or the
labels that nodes of any graph have as text."""
HASHED = {"kinds": list(KINDS), "bits": KIND_SHIFT}
"""How words of an open vocabulary are hashed; a graph that was made otherwise does not fit."""


@dataclass(frozen=True)
class Vocabulary:
    """Token ``i + 1`` is ``words[i]``; token 0 stands for any other word."""

    words: tuple[str, ...]
    reads: Reads = "mnemonics"
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = {word: token for token, word in enumerate(self.words, start=1)}
        if len(ids) != len(self.words):
            raise FormatError("a vocabulary lists a word twice")
        if UNKNOWN in ids:
            raise FormatError(f"{UNKNOWN} is token 0 of every vocabulary; leave it out of words")
        object.__setattr__(self, "_ids", ids)

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
        kept = [word for word, count in counts.items() if count >= min_count and word != UNKNOWN]
        kept.sort(key=lambda word: (-counts[word], word))
        return cls(tuple(kept if size is None else kept[:size]), reads)

    @classmethod
    def of_labels(cls, graphs: Iterable[Graph]) -> Vocabulary:
        """The labels at the nodes of graphs, most frequent first."""
        counts = Counter(label for graph in graphs for label in graph.node_labels or ())
        return cls.from_counts(counts, reads="labels")

    @classmethod
    def from_json(cls, words: object) -> Vocabulary:
        """Reads what :meth:`to_json` wrote."""
        reads: Reads = "mnemonics"
        if isinstance(words, dict) and words.keys() == {"labels"}:
            reads, words = "labels", words["labels"]
        elif isinstance(words, dict):
            if words.keys() != {"operations", "hashed"} or words["hashed"] != HASHED:
                raise FormatError(
                    f"a vocabulary of operations and hashed words has {HASHED}; this one is of "
                    "another graphkin"
                )
            reads, words = "evidence", words["operations"]
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise FormatError(f"a vocabulary is a JSON list of strings, got {str(words)[:60]!r}")
        return cls(tuple(words), reads)

    def to_json(self) -> list[str] | dict[str, Any]:
        if self.reads == "mnemonics":
            return list(self.words)
        if self.reads == "labels":
            return {"labels": list(self.words)}
        return {"operations": list(self.words), "hashed": HASHED}

    def encode(self, words: Iterable[str]) -> IntArray:
        """(M,) int32, the token of each word."""
        get = self._ids.get
        return np.array([get(word, 0) for word in words], dtype=np.int32)

    def read(self, graph: Graph) -> Graph:
        """The graph with its labels as tokens; beside features, as one-hot columns behind them."""
        if graph.node_labels is None:
            return graph
        tokens, features = self.encode(graph.node_labels), graph.node_features
        bags = TokenBags.from_sizes(tokens, np.ones(graph.num_nodes, dtype=np.int64))
        if features is not None:
            one_hot = np.zeros((graph.num_nodes, len(self)), dtype=np.float32)
            one_hot[np.arange(graph.num_nodes), tokens] = 1
            features = np.concatenate([features, one_hot], axis=1)
        return Graph(
            graph.num_nodes,
            graph.edges,
            directed=graph.directed,
            node_features=features,
            node_tokens=bags if features is None else None,
            edge_features=graph.edge_features,
            edge_types=graph.edge_types,
            node_words=graph.node_words,
        )

    def decode(self, token: int) -> str:
        """The word of a token."""
        return UNKNOWN if token == 0 else self.words[token - 1]

    def __len__(self) -> int:
        """Number of tokens, the unknown one included."""
        return len(self.words) + 1
