"""An embedder that only answers: vectors and codes of graphs, without torch."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin._support.progress import Progress
from graphkin._support.threads import one_thread
from graphkin.errors import ModelError
from graphkin.graphs.graph import Graph
from graphkin.graphs.packing import PackedWords, size_batches
from graphkin.graphs.words import KINDS, OFFSETS
from graphkin.models.codes import CODE_SCALE, pack_codes
from graphkin.models.config import ModelConfig
from graphkin.models.light.model import LightModel
from graphkin.models.light.network import (
    PackedGraphs,
    PooledReadout,
    ResidualNetwork,
    fits,
    softmax,
    unit_rows,
)
from graphkin.models.light.weights import Floats, Weights
from graphkin.models.light.words import LightWordBag
from graphkin.models.node_matching import AttentionMaps, PartnerMaps
from graphkin.models.saving import Description

NODES_AT_ONCE = 5_000
"""Nodes that are encoded together: their states stay in the processor's cache."""


class LightEmbedder(LightModel):
    """Computes what a :class:`~graphkin.GraphEmbedder` of the same files does."""

    def __init__(self, description: Description, weights: Weights) -> None:
        super().__init__(description)
        config = self.config
        assert self.can_be(config), "models of other kinds answer by torch"
        self._network = ResidualNetwork(config, weights)
        self._readout = PooledReadout(config, weights)
        known = config.words_known
        said = [kind for kind in KINDS if kind != OFFSETS or not config.offset_dim]
        self.words = LightWordBag(
            weights, "words", config.word_dim, known, config.words_learned, said
        )
        self._bags = [self.words]
        if config.offset_dim:
            bag = LightWordBag(weights, "offsets", config.offset_dim, known, 0, [OFFSETS])
            self._bags.append(bag)
        widths = [config.graph_dim, config.word_dim, config.offset_dim]
        names = ["graph", "words", "offsets"][: 1 + len(self._bags)]
        ends = accumulate(widths)
        self._parts = {
            name: slice(end - width, end)
            for name, width, end in zip(names, widths, ends, strict=False)
        }
        self._part_factors = np.sqrt(weights.floats("part_weights", len(names)))
        width = config.vector_dim - (0 if config.code_offsets else config.offset_dim)
        self._code = CODE_SCALE * weights.floats("code", config.code_bits, width).T
        weights.finish()

    @staticmethod
    def can_be(config: ModelConfig) -> bool:
        """Whether models of these options are of a kind that is known here."""
        return fits(config) and config.word_dim > 0 and config.code_bits > 0

    @one_thread()
    def encode(
        self, graphs: Iterable[Graph], *, progress: Progress | None = None
    ) -> NDArray[np.float32]:
        """(N, V) float32: graph, words and offsets side by side, each of its weight's length."""
        graphs = self.read(graphs)
        vectors = np.zeros((len(graphs), self.config.vector_dim), dtype=np.float32)
        done = 0
        sizes = [graph.num_nodes for graph in graphs]
        for members in size_batches(sizes, 1, NODES_AT_ONCE):
            vectors[members] = self._vectors([graphs[index] for index in members])
            done += len(members)
            if progress is not None:
                progress(done, len(graphs))
        return vectors

    def _vectors(self, graphs: list[Graph]) -> Floats:
        batch = PackedGraphs.pack(graphs)
        words = PackedWords.of_graphs(batch.word_bags)
        parts = [self._readout(self._network.states(batch), batch)]
        parts += [bag.totals(words) for bag in self._bags]
        factors = zip(self._part_factors, parts, strict=True)
        return np.concatenate([factor * unit_rows(part) for factor, part in factors], axis=1)

    def part(self, vectors: NDArray[np.float32], name: str) -> NDArray[np.float32]:
        """The columns of one part of vectors: ``graph``, ``words`` or ``offsets``."""
        if name not in self._parts:
            raise ModelError(f"there is no part {name!r}; vectors have {', '.join(self._parts)}")
        return vectors[:, self._parts[name]]

    def codes(self, graphs: Iterable[Graph]) -> NDArray[np.uint8]:
        """Codes as bits, (N, B / 8) uint8."""
        return self.codes_of(self.encode(graphs))

    def codes_of(self, vectors: NDArray[Any]) -> NDArray[np.uint8]:
        """The codes of vectors that :meth:`encode` gave."""
        return pack_codes(self.unrounded_codes(vectors))

    def unrounded_codes(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """(N, bits) numbers whose signs are the codes of vectors: the larger, the surer the bit."""
        numbers: NDArray[np.float32] = vectors[:, : len(self._code)] @ self._code
        return numbers

    @one_thread()
    def explain(self, left: Graph, right: Graph) -> AttentionMaps:
        """Where the nodes of each graph would look in the other, as ``GraphEmbedder`` says it."""
        ours, theirs, score = self._states_and_score(left, right)
        distances = np.square(ours[:, None] - theirs[None]).sum(axis=2)
        return AttentionMaps([softmax(-distances)], [softmax(-distances.T)], score)

    @one_thread()
    def partners(self, left: Graph, right: Graph) -> PartnerMaps:
        """Where each node of either graph would look most: memory grows with nodes."""
        return PartnerMaps.by_distance(*self._states_and_score(left, right))

    def _states_and_score(self, left: Graph, right: Graph) -> tuple[Floats, Floats, float]:
        graphs = self.read([left, right])
        batch = PackedGraphs.pack(graphs)
        ours, theirs = batch.split(self._network.states(batch))
        first, second = unit_rows(self._vectors(graphs))
        return ours, theirs, float(first @ second)
