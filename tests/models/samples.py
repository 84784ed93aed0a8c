"""Random graphs, batches of awkward shapes and models with weights in general position."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn

from graphkin.graphs import Graph, WordBags
from graphkin.graphs.words import KINDS, word_hash
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig
from graphkin.models.words import WordStatistics

SMALL = {"node_dim": 4, "message_dim": 6, "graph_dim": 8, "steps": 2}
"""Sizes at which plain loops stay quick."""


WORDS = [word_hash(kind, text) for kind in KINDS for text in ("a", "b", "c")]
KNOWN = WordStatistics(
    np.array(WORDS[::2], dtype=np.uint64), np.linspace(1, 3, 9).astype(np.float32), 5.0
)
"""How rare half of the words are."""


def random_graph(
    rng: np.random.Generator, config: ModelConfig, nodes: int, edges: int, *, directed: bool
) -> Graph:
    """A graph of the input kinds that ``config`` takes.

    Of three edges or more one is a duplicate and one a self loop; the others are random.
    """
    ends = rng.integers(0, nodes, (edges, 2))
    if edges >= 3:
        ends[1], ends[2, 1] = ends[0], ends[2, 0]
    inputs: dict[str, Any] = {}
    if config.node_input == "dense":
        inputs["node_features"] = rng.normal(size=(nodes, config.node_input_size))
    if config.node_input == "tokens":
        bags = rng.integers(0, 4, nodes)
        inputs["node_tokens"] = [rng.integers(0, config.node_input_size, n).tolist() for n in bags]
    if config.edge_input == "dense":
        inputs["edge_features"] = rng.normal(size=(edges, config.edge_input_size))
    if config.edge_input == "types":
        inputs["edge_types"] = rng.integers(0, config.edge_input_size, edges)
    if config.word_dim:
        counts = rng.integers(0, 4, nodes)
        words = np.array(WORDS, dtype=np.uint64)[rng.integers(0, len(WORDS), counts.sum())]
        inputs["node_words"] = WordBags(words, np.cumsum([0, *counts]))
    return Graph(nodes, ends, directed=directed, **inputs)


SHAPES: dict[str, list[tuple[tuple[int, int], tuple[int, int]]]] = {
    # One node, no edges, sizes far apart, first graph larger and smaller.
    "uneven": [((1, 0), (1, 1)), ((1, 2), (6, 8)), ((8, 12), (2, 3)), ((3, 0), (4, 5))],
    "even": [((4, 5), (4, 0)), ((4, 7), (4, 4))],
    "lone": [((2, 2), (5, 8))],
    "bare": [((3, 0), (2, 0))],
}
"""(nodes, edges) of both graphs of every pair."""


def random_pairs(
    config: ModelConfig, shape: str = "uneven", *, directed: bool = False, seed: int = 0
) -> list[tuple[Graph, Graph]]:
    """Random graphs of the sizes in ``SHAPES[shape]``."""
    rng = np.random.default_rng(seed)
    return [
        (
            random_graph(rng, config, *left, directed=directed),
            random_graph(rng, config, *right, directed=directed),
        )
        for left, right in SHAPES[shape]
    ]


def make_model(
    config: ModelConfig, *, seed: int = 0, scale: float = 0.4, double: bool = True
) -> GraphEmbedder | GraphMatcher:
    """A model whose parameters, biases included, are all random: none is zero or small."""
    model = GraphMatcher(config) if config.matching else GraphEmbedder(config)
    if config.words_known:
        model.fit_words(KNOWN)
    model = model.double() if double else model
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=scale, generator=generator)
    return model
