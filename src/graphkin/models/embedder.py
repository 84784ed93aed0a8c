"""The embedding model (GNN, GCN, Deep Set, Siamese): a graph becomes a vector or a code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from graphkin._support.progress import Progress
from graphkin.errors import ModelError
from graphkin.graphs import Graph, GraphBatch, PairBatch
from graphkin.graphs.batch import check_uniform
from graphkin.graphs.pair_groups import distinct_graphs
from graphkin.models.config import ModelConfig
from graphkin.models.model import GraphModel, PairOutput, checked_pairs, size_batches
from graphkin.models.similarity import pack_codes

if TYPE_CHECKING:
    from graphkin._support.progress import Progress


class GraphEmbedder(GraphModel):
    """Maps every graph to a vector by itself, so that vectors can be stored and searched.

    Example:
        >>> from graphkin import Graph, GraphEmbedder, ModelConfig
        >>> embedder = GraphEmbedder(ModelConfig.named("gnn"))
        >>> embedder.encode([Graph(3, [(0, 1), (1, 2)])]).shape
        (1, 128)
    """

    def __init__(self, config: ModelConfig) -> None:
        if isinstance(config, ModelConfig) and config.matching:
            raise ModelError("a config with matching=True makes a GraphMatcher")
        super().__init__(config)

    def forward(self, batch: PairBatch, steps: int | None = None) -> PairOutput:
        vectors = self.network(batch.graphs, steps=steps)
        left, right = batch.split(vectors)
        return PairOutput(self.compare(left, right), left, right)

    @torch.no_grad()
    def encode(
        self,
        graphs: Sequence[Graph],
        *,
        steps: int | None = None,
        progress: Progress | None = None,
    ) -> NDArray[np.float32]:
        """Graph vectors, (N, G) float32."""
        if isinstance(graphs, Graph) or len(graphs):
            check_uniform(graphs)
        vectors = np.zeros((len(graphs), self.config.graph_dim), dtype=np.float32)
        done = 0
        for members in size_batches([graph.num_nodes for graph in graphs], 1):
            batch = GraphBatch.pack([graphs[index] for index in members]).to(self.device)
            vectors[members] = self.network(batch, steps=steps).float().cpu().numpy()
            done += len(members)
            if progress is not None:
                progress(done, len(graphs))
        return vectors

    def codes(self, graphs: Sequence[Graph], *, steps: int | None = None) -> NDArray[np.uint8]:
        """The signs of the graph vectors as bits, (N, G / 8) uint8; Hamming models only."""
        if self.config.similarity != "hamming":
            raise ModelError(
                f"codes need a model of Hamming similarity; this one is {self.config.similarity}"
            )
        return pack_codes(self.encode(graphs, steps=steps))

    @torch.no_grad()
    def similarity(
        self, left: NDArray[np.float32], right: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Similarity of every vector on the left with every one on the right, (A, B) float32."""
        width = self.config.graph_dim
        left, right = np.asarray(left), np.asarray(right)
        for side in (left, right):
            if side.ndim != 2 or side.shape[1] != width:
                raise ModelError(f"vectors must have shape (N, {width}), got {side.shape}")
        ours, theirs = self.as_tensor(left), self.as_tensor(right)
        scores = np.empty((len(ours), len(theirs)), dtype=np.float32)
        for row, vector in enumerate(ours):
            scores[row] = self.compare(vector.expand_as(theirs), theirs).float().cpu().numpy()
        return scores

    @torch.no_grad()
    def predict(
        self,
        pairs: Sequence[tuple[Graph, Graph]],
        *,
        steps: int | None = None,
        progress: Progress | None = None,
        probability: bool = False,
    ) -> NDArray[np.float32]:
        """Similarity of each pair, (P,) float32, or the ``probability`` that it is similar.

        A graph in several pairs is encoded once.
        """
        if probability:
            return self._probabilities(pairs, steps, progress)
        pairs = checked_pairs(pairs)
        if not pairs:
            return np.zeros(0, dtype=np.float32)
        graphs, left, right = distinct_graphs(pairs)
        vectors = self.encode(graphs, steps=steps, progress=progress)
        similarities = self.compare(self.as_tensor(vectors[left]), self.as_tensor(vectors[right]))
        return similarities.float().cpu().numpy()
