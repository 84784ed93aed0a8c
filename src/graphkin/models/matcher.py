"""The matching model (GMN): two graphs are compared through cross-graph attention.

In every propagation step, as in the paper, or with ``similarity="late"`` or ``"edits"`` after the
last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphkin._support.progress import Progress
from graphkin.errors import ModelError
from graphkin.graphs import Graph, GraphBatch, PairBatch
from graphkin.graphs.packing import size_batches
from graphkin.graphs.words import KINDS, OFFSETS
from graphkin.models.attention import CrossAttention
from graphkin.models.config import INHERITED, ModelConfig
from graphkin.models.edits import EditAlignment, EditViews
from graphkin.models.late import LateInteraction, NodeViews
from graphkin.models.model import GraphModel, PairOutput, as_config
from graphkin.models.network import Observer
from graphkin.models.node_matching import AttentionMaps, PartnerMaps, Partners
from graphkin.models.words import WordBag, WordStatistics, checked_words

if TYPE_CHECKING:
    from graphkin._support.progress import Progress


class GraphMatcher(GraphModel):
    """Compares graphs in pairs; more accurate than an embedder, and needs both graphs at once.

    Example:
        >>> from graphkin import Graph, GraphMatcher
        >>> matcher = GraphMatcher("gmn")
        >>> chain, ring = Graph(3, [(0, 1), (1, 2)]), Graph(3, [(0, 1), (1, 2), (2, 0)])
        >>> matcher.predict([(chain, ring)]).shape
        (1,)
    """

    def __init__(self, config: ModelConfig | str) -> None:
        options = as_config(config, matching=True)
        super().__init__(options)
        self.name = config if isinstance(config, str) else None
        config = options
        if config.similarity == "late":
            self.late = LateInteraction(config)
        if config.similarity == "edits":
            self.edits = EditAlignment(config)
        if config.word_dim:
            said = [kind for kind in KINDS if kind != OFFSETS]
            self.words = WordBag(config.word_dim, config.words_known, 0, said)

    def fit_words(self, statistics: WordStatistics) -> None:
        """Takes over how rare words are."""
        self.words.fit(statistics)

    def forward(self, batch: PairBatch, steps: int | None = None) -> PairOutput:
        if self.config.similarity == "late":
            return PairOutput(*self.late(self._views(batch.graphs, steps), batch))
        if self.config.similarity == "edits":
            return PairOutput(*self.edits(self._edit_views(batch.graphs, steps), batch))
        left, right = batch.split(self._vectors(batch, steps))
        return PairOutput(self.compare(left, right), left, right)

    def _views(self, batch: GraphBatch, steps: int | None) -> NodeViews:
        said = None
        if self.config.word_dim:
            said = self.words.totals(checked_words(batch.node_words))
        return self.late.views(self.network.states(batch, steps=steps), said)

    def _edit_views(self, batch: GraphBatch, steps: int | None) -> EditViews:
        return self.edits.views(self.network.nodes(batch), self.network.states(batch, steps=steps))

    def _vectors(
        self, batch: PairBatch, steps: int | None, observe: Observer | None = None
    ) -> Tensor:
        """(2P, G); with a joint similarity (2P, 2G), those of the embedder last."""
        vectors: Tensor = self.network(batch.graphs, batch.groups, steps, observe)
        if self.config.similarity != "joint":
            return vectors
        return torch.cat([vectors, self.embedding(batch.graphs, steps=steps)], dim=1)

    @torch.no_grad()
    def _scores(
        self, pairs: list[tuple[Graph, Graph]], steps: int | None, progress: Progress | None
    ) -> NDArray[np.float32]:
        scores = np.zeros(len(pairs), dtype=np.float32)
        done = 0
        pack = PairBatch.pack_distinct if self.config.encodes_apart else PairBatch.pack
        for members in size_batches([a.num_nodes + b.num_nodes for a, b in pairs], 2):
            batch = pack([pairs[index] for index in members]).to(self.device)
            scores[members] = self(batch, steps).scores.float().cpu().numpy()
            done += len(members)
            if progress is not None:
                progress(done, len(pairs))
        return scores

    @torch.no_grad()
    def node_states(self, graphs: Sequence[Graph]) -> list[NDArray[np.float32]]:
        """(N, W) of each graph: its nodes and their surroundings, as they are compared.

        W is 0 for a model with attention in every step: there a state depends on the other graph.
        """
        if self.config.similarity != "late":
            return [np.zeros((graph.num_nodes, 0), np.float32) for graph in graphs]
        return [
            self._views(GraphBatch.pack([graph]).to(self.device), None).states.float().cpu().numpy()
            for graph in self.read(graphs)
        ]

    def joined(self, embedder: GraphModel, weight: float) -> GraphMatcher:
        """This matcher with the distance of an embedder's vectors added.

        The two err differently: the alignment sees single nodes that fit nowhere, the vectors what
        the graphs are as a whole. :func:`graphkin.models.joining.join` finds the weight.

        Args:
            embedder: trained on the same kind of graphs, with the same widths.
            weight: factor on 1 - cosine of its vectors, at least 0.
        """
        if self.config.similarity != "alignment" or embedder.config.matching:
            raise ModelError(
                "a matcher with similarity='alignment' is joined with an embedder; these have "
                f"{self.config.similarity!r} and matching={embedder.config.matching}"
            )
        if embedder.config.similarity == "siamese":
            raise ModelError(
                "the vectors of a Siamese embedder are compared by its own network, not by distance"
            )
        if not 0 <= weight < math.inf:
            raise ModelError(f"the weight must be at least 0, got {weight}")
        if self.vocabulary != embedder.vocabulary:
            raise ModelError("the embedder has another vocabulary; use its words for both")
        # A matcher that aligns nodes has no readout of its own.
        config = replace(
            self.config,
            similarity="joint",
            readout=embedder.config.readout,
            embedder_norm=embedder.config.message_norm,
        )
        for name in (*INHERITED, "steps", "message_scale"):
            value, own = getattr(embedder.config, name), getattr(config.embedding(), name)
            if value != own:
                raise ModelError(
                    f"the embedder has {name}={value!r}, and the matcher {own!r}; they are to be "
                    "alike in this"
                )
        joined = GraphMatcher(config).to(self.device)
        joined.vocabulary = self.vocabulary
        tensors = {f"network.{name}": t for name, t in self.network.state_dict().items()}
        for name, tensor in embedder.network.state_dict().items():
            tensors[f"embedding.{name}"] = tensor
        tensors["head.weight"] = torch.tensor([float(weight)])
        joined.load_tensors(tensors, "the models")
        return joined.eval()

    @torch.no_grad()
    def explain(self, left: Graph, right: Graph, *, steps: int | None = None) -> AttentionMaps:
        """The attention of every step, both ways. Takes memory for |V1| x |V2| weights a step."""
        return self.explain_many([(left, right)], steps=steps)[0]

    @torch.no_grad()
    def explain_many(
        self, pairs: Sequence[tuple[Graph, Graph]], *, steps: int | None = None
    ) -> list[AttentionMaps]:
        """The same of many pairs; a matcher that encodes apart encodes each graph once."""
        if not self.config.steps:
            raise ModelError("a model with 0 propagation steps has no attention to show")
        pairs = self._read_pairs(pairs)
        if not self.config.encodes_apart:
            return [self._explain(pair, steps) for pair in pairs]
        maps: dict[int, AttentionMaps] = {}
        for members in size_batches([a.num_nodes + b.num_nodes for a, b in pairs], 2):
            batch = PairBatch.pack_distinct([pairs[index] for index in members]).to(self.device)
            maps |= zip(members, self._explain_apart(batch, steps), strict=True)
        return [maps[index] for index in range(len(pairs))]

    @torch.no_grad()
    def partners(self, left: Graph, right: Graph) -> PartnerMaps:
        """Where each node of either graph looks most in the other, after each step.

        Memory grows with the number of nodes for late interaction alone.
        """
        if self.config.similarity != "late" or not self.config.steps:
            return super().partners(left, right)
        batch = PairBatch.pack(self._read_pairs([(left, right)])).to(self.device)
        views = self._views(batch.graphs, None)
        nodes = torch.arange(len(views.states), device=self.device)
        ours, theirs = nodes.tensor_split(batch.graphs.node_offsets[1:2].cpu())
        ahead, back = (
            Partners.of(weights.float().cpu().numpy() for weights in self.late.looked(views, *pair))
            for pair in ((ours, theirs), (theirs, ours))
        )
        return PartnerMaps([ahead], [back], float(self.late(views, batch)[0]))

    def _explain(self, pair: tuple[Graph, Graph], steps: int | None) -> AttentionMaps:
        batch = PairBatch.pack([pair]).to(self.device)
        group = batch.groups[0]
        left_to_right: list[NDArray[np.float32]] = []
        right_to_left: list[NDArray[np.float32]] = []

        def keep(step: int, h: Tensor, attention: CrossAttention) -> None:
            weights = attention.weights(h, group)
            rows, columns = (block[0].float().cpu().numpy() for block in weights)
            # A group's rows are the larger graph, which may be the second one.
            swapped = int(group.rows[0, 0]) != 0
            left_to_right.append(columns if swapped else rows)
            right_to_left.append(rows if swapped else columns)

        vectors = self._vectors(batch, steps, keep)
        score = float(self.compare(vectors[0:1], vectors[1:2])[0])
        return AttentionMaps(left_to_right, right_to_left, score)

    def _explain_apart(self, batch: PairBatch, steps: int | None) -> Iterator[AttentionMaps]:
        """There is one look at the other graph, after the last step."""
        weights_of: Callable[[int, int], tuple[Tensor, Tensor]]
        if self.config.similarity == "late":
            views = self._views(batch.graphs, steps)
            scores = self.late(views, batch)[0].tolist()
            weights_of = partial(self.late.weights, views, batch.graphs)
        else:
            edit_views = self._edit_views(batch.graphs, steps)
            scores = self.edits(edit_views, batch)[0].tolist()
            weights_of = partial(self.edits.weights, edit_views, batch.graphs)
        sides = batch.left.tolist(), batch.right.tolist()
        for left, right, score in zip(*sides, scores, strict=True):
            weights = weights_of(left, right)
            ahead, back = (side.float().cpu().numpy() for side in weights)
            yield AttentionMaps([ahead], [back], score)
