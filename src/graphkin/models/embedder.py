"""The embedding model (GNN, GCN, Deep Set, Siamese): a graph becomes a vector or a code."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from torch import Tensor, nn
from torch.nn import functional

from graphkin._support.progress import Progress
from graphkin.errors import ModelError
from graphkin.graphs import Graph, GraphBatch, PairBatch
from graphkin.graphs.packing import check_uniform, distinct_graphs, size_batches
from graphkin.graphs.words import KINDS, OFFSETS
from graphkin.models.codes import CODE_SCALE, pack_codes
from graphkin.models.config import ModelConfig, Similarity
from graphkin.models.model import GraphModel, PairOutput, as_config
from graphkin.models.node_matching import AttentionMaps, PartnerMaps
from graphkin.models.words import WordBag, WordStatistics, checked_words

if TYPE_CHECKING:
    from graphkin._support.progress import Progress


Vectors = TypeVar("Vectors", Tensor, NDArray[np.float32])


def _orthogonal(rows: int, columns: int) -> Tensor:
    """(rows, columns) of directions at right angles, as far as there are enough of them."""
    weight = torch.empty(rows, columns)
    nn.init.orthogonal_(weight)
    return weight


class GraphEmbedder(GraphModel):
    """Maps every graph to a vector by itself, so that vectors can be stored and searched.

    Example:
        >>> from graphkin import Graph, GraphEmbedder
        >>> embedder = GraphEmbedder("gnn")
        >>> embedder.encode([Graph(3, [(0, 1), (1, 2)])]).shape
        (1, 128)
    """

    def __init__(self, config: ModelConfig | str) -> None:
        options = as_config(config, matching=False)
        super().__init__(options)
        self.name = config if isinstance(config, str) else None
        config = options
        if config.word_dim:
            said = [kind for kind in KINDS if kind != OFFSETS or not config.offset_dim]
            self.words = WordBag(config.word_dim, config.words_known, config.words_learned, said)
            self.part_weights: Tensor
            self.register_buffer("part_weights", torch.ones(len(self._parts)))
        if config.offset_dim:
            self.offsets = WordBag(config.offset_dim, config.words_known, 0, [OFFSETS])
        if config.code_bits:
            width = config.vector_dim - (0 if config.code_offsets else config.offset_dim)
            self.code = nn.Parameter(_orthogonal(config.code_bits, width))

    def fit_words(self, statistics: WordStatistics) -> None:
        """Takes over how rare words are; what is learned of them begins anew."""
        self.words.fit(statistics)
        if self.config.offset_dim:
            self.offsets.fit(statistics)

    def forward(self, batch: PairBatch, steps: int | None = None) -> PairOutput:
        left, right = batch.split(self.vectors(batch.graphs, steps=steps))
        return PairOutput(self.compare(left, right), left, right)

    def vectors(self, batch: GraphBatch, steps: int | None = None) -> Tensor:
        """(graphs, V): the graph's vector; with words, the parts of :meth:`part` side by side.

        Each part has length 1, or 0 where a graph says nothing, times the root of its weight, so
        that the product of two vectors is the weighted sum of the cosines of their parts.
        """
        graph: Tensor = self.network(batch, steps=steps)
        if not self.config.word_dim:
            return graph
        words = checked_words(batch.words)
        parts = [functional.normalize(graph, dim=1), self.words(words)]
        parts += [self.offsets(words)] if self.config.offset_dim else []
        weights = self.part_weights.sqrt()
        return torch.cat([weight * part for weight, part in zip(weights, parts, strict=True)], 1)

    @property
    def _parts(self) -> dict[str, slice]:
        config = self.config
        widths = {"graph": config.graph_dim, "words": config.word_dim, "offsets": config.offset_dim}
        ends = accumulate(widths.values())
        return {
            name: slice(end - width, end)
            for (name, width), end in zip(widths.items(), ends, strict=True)
            if width
        }

    def part(self, vectors: Vectors, name: str) -> Vectors:
        """The columns of one part of vectors: ``graph``, ``words`` or ``offsets``."""
        if name not in self._parts:
            raise ModelError(f"there is no part {name!r}; vectors have {', '.join(self._parts)}")
        return vectors[:, self._parts[name]]

    def lessons(self, vectors: Tensor) -> list[tuple[Tensor, Similarity]]:
        """What a contrastive loss compares, and how: each part by itself, and the code.

        Parts that learn together would lean on the one that learns first. Offsets learn nothing,
        because they mean nothing between builds of different widths.
        """
        lessons: list[tuple[Tensor, Similarity]] = [(vectors, self.config.similarity)]
        if self.config.word_dim:
            lessons = [(self.part(vectors, name), "cosine") for name in ("graph", "words")]
        if self.config.code_bits:
            lessons.append((self.code_values(vectors.detach()), "hamming"))
        return lessons

    def code_values(self, vectors: Tensor) -> Tensor:
        """(graphs, V) -> (graphs, B) whose signs are the code."""
        return CODE_SCALE * functional.linear(vectors[:, : self.code.shape[1]], self.code)

    @torch.no_grad()
    def encode(
        self,
        graphs: Iterable[Graph],
        *,
        steps: int | None = None,
        progress: Progress | None = None,
    ) -> NDArray[np.float32]:
        """Graph vectors, (N, G) float32."""
        graphs = self.read(graphs)
        if graphs:
            check_uniform(graphs)
        vectors = np.zeros((len(graphs), self.config.vector_dim), dtype=np.float32)
        done = 0
        for members in size_batches([graph.num_nodes for graph in graphs], 1):
            batch = GraphBatch.pack([graphs[index] for index in members]).to(self.device)
            vectors[members] = self.vectors(batch, steps=steps).float().cpu().numpy()
            done += len(members)
            if progress is not None:
                progress(done, len(graphs))
        return vectors

    @torch.no_grad()
    def encode_nodes(
        self, graphs: Iterable[Graph], *, steps: int | None = None
    ) -> list[NDArray[np.float32]]:
        """The states of each graph's nodes after the last propagation step, (n, D) float32."""
        graphs = self.read(graphs)
        states: list[NDArray[np.float32]] = [np.zeros(0, dtype=np.float32)] * len(graphs)
        for members in size_batches([graph.num_nodes for graph in graphs], 1):
            batch = GraphBatch.pack([graphs[index] for index in members]).to(self.device)
            packed = self.network.states(batch, steps=steps).float().cpu()
            sizes = batch.node_offsets.diff().tolist()
            for index, part in zip(members, torch.split(packed, sizes), strict=True):
                states[index] = part.numpy().copy()
        return states

    def explain(self, left: Graph, right: Graph, *, steps: int | None = None) -> AttentionMaps:
        """Where the nodes of each graph would look in the other.

        An embedder reads each graph by itself, so this is no part of its score: the attention of
        the paper's matcher, softmax of minus the squared distance, over its last node states.
        """
        ours, theirs = self.encode_nodes([left, right], steps=steps)
        distances = np.square(ours[:, None] - theirs[None]).sum(axis=2)
        ahead, back = softmax(-distances, axis=1), softmax(-distances.T, axis=1)
        return AttentionMaps([ahead], [back], self._score_of(left, right, steps))

    def partners(self, left: Graph, right: Graph) -> PartnerMaps:
        """Where each node of either graph would look most: memory grows with nodes."""
        ours, theirs = self.encode_nodes([left, right])
        return PartnerMaps.by_distance(ours, theirs, self._score_of(left, right, None))

    def _score_of(self, left: Graph, right: Graph, steps: int | None) -> float:
        return float(self._scores(self._read_pairs([(left, right)]), steps, None)[0])

    def codes(self, graphs: Iterable[Graph], *, steps: int | None = None) -> NDArray[np.uint8]:
        """Codes as bits, (N, B / 8) uint8: those that were learned, or the signs of vectors."""
        if self.config.similarity != "hamming" and not self.config.code_bits:
            raise ModelError(
                f"codes need a model of Hamming similarity; this one is {self.config.similarity}"
            )
        return self.codes_of(self.encode(graphs, steps=steps))

    def codes_of(self, vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
        """The codes of vectors that :meth:`encode` gave."""
        return pack_codes(self.unrounded_codes(vectors))

    @torch.no_grad()
    def unrounded_codes(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """(N, bits) numbers whose signs are the codes of vectors: the larger, the surer the bit."""
        if not self.config.code_bits:
            return vectors
        return self.code_values(self.as_tensor(vectors)).float().cpu().numpy()

    @torch.no_grad()
    def similarity(
        self, left: NDArray[np.float32], right: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Similarity of every vector on the left with every one on the right, (A, B) float32."""
        width = self.config.vector_dim
        left, right = np.asarray(left), np.asarray(right)
        for side in (left, right):
            if side.ndim != 2 or side.shape[1] != width:
                raise ModelError(f"vectors must have shape (N, {width}), got {side.shape}")
        ours, theirs = self.as_tensor(left), self.as_tensor(right)
        scores = np.empty((len(ours), len(theirs)), dtype=np.float32)
        for row, vector in enumerate(ours):
            scores[row] = self.compare(vector.expand_as(theirs), theirs).float().cpu().numpy()
        return scores

    def scores(
        self, queries: Iterable[Graph], pool: Iterable[Graph], *, steps: int | None = None
    ) -> NDArray[np.float32]:
        """(Q, P) float32: what ``predict`` gives for every query with every graph of a pool.

        Every graph is encoded once.
        """
        vectors = [self.encode(graphs, steps=steps) for graphs in (queries, pool)]
        return self.linked(self.similarity(*vectors))

    @torch.no_grad()
    def _scores(
        self, pairs: list[tuple[Graph, Graph]], steps: int | None, progress: Progress | None
    ) -> NDArray[np.float32]:
        """(P,) the score of each pair; a graph in several pairs is encoded once."""
        if not pairs:
            return np.zeros(0, dtype=np.float32)
        graphs, left, right = distinct_graphs(pairs)
        vectors = self.encode(graphs, steps=steps, progress=progress)
        similarities = self.compare(self.as_tensor(vectors[left]), self.as_tensor(vectors[right]))
        return similarities.float().cpu().numpy()
