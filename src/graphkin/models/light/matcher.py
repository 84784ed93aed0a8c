"""A matcher of late interaction that only answers, without torch.

The equations are those of :class:`~graphkin.models.late.LateInteraction`. Pairs that share their
first graph are compared together: a search asks for one function and many candidates, and what
does not depend on the candidate is computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin._support.progress import Progress
from graphkin._support.threads import one_thread
from graphkin.graphs.graph import Graph, running_offsets
from graphkin.graphs.packing import (
    CELLS_AT_ONCE,
    Index,
    PackedWords,
    checked_pairs,
    distinct_graphs,
    row_slices,
)
from graphkin.graphs.words import KINDS, OFFSETS
from graphkin.models.config import ModelConfig
from graphkin.models.light.model import LightModel
from graphkin.models.light.network import (
    PackedGraphs,
    ResidualNetwork,
    fits,
    sigmoid,
    softmax,
    unit_rows,
)
from graphkin.models.light.weights import Floats, Weights
from graphkin.models.light.words import LightWordBag
from graphkin.models.node_matching import (
    AttentionMaps,
    NodeMatch,
    PartnerMaps,
    Partners,
    assigned,
)
from graphkin.models.saving import Description

WIDTH = 64
"""Of what is compared of a node."""
NODES_AT_ONCE = 20_000
"""Whose states are in memory together, unless a single pair has more."""
NODES_IN_CACHE = 1_500
"""That are encoded or compared together: what is computed of them stays in cache."""
NODES_KEPT = 5_000
"""What is compared of the latest graphs is kept, unless they have more nodes: a search explains the
best of the hits that it has just ordered."""


class NodeViews(NamedTuple):
    """What is compared of N nodes."""

    looks: Floats
    """(N, W + V): nodes look at those with a large product; the factors of the cosines of states
    and words are in it."""
    features: Floats
    """(N, W + V): states, and words of length 1."""
    own: Floats
    """(N, W): what a node brings to its comparison, whatever it is compared with."""
    strengths: Floats
    """(N,) how much and how rare what it says is, as a logarithm."""

    def of(self, nodes: slice | Index) -> NodeViews:
        """Those of some nodes."""
        return NodeViews(*(array[nodes] for array in self))

    @property
    def states(self) -> Floats:
        """(N, W)"""
        return self.features[:, :WIDTH]

    @property
    def words(self) -> Floats:
        """(N, V)"""
        return self.features[:, WIDTH:]


class LightMatcher(LightModel):
    """Computes what a :class:`~graphkin.GraphMatcher` of the same files does."""

    def __init__(self, description: Description, weights: Weights) -> None:
        super().__init__(description)
        config = self.config
        assert self.can_be(config), "models of other kinds answer by torch"
        self._network = ResidualNetwork(config, weights)
        said = [kind for kind in KINDS if kind != OFFSETS]
        self._bag = LightWordBag(weights, "words", config.word_dim, config.words_known, 0, said)
        self._state = weights.floats("late.state", WIDTH, config.node_dim).T.copy()
        self._look = weights.floats("late.look", WIDTH, WIDTH).T.copy()
        self._heat = np.exp(weights.floats("late.heat", 2))
        compared = weights.floats("late.compared", WIDTH, 3 * WIDTH).T
        self._difference, self._product, self._own = (part.copy() for part in np.split(compared, 3))
        self._compared_bias = weights.floats("late.compared_bias", WIDTH)
        self._agreed = weights.floats("late.agreed", WIDTH, 3).T.copy()
        self._gate = weights.floats("late.gate", 1, WIDTH)[0]
        self._gate_bias = weights.floats("late.gate_bias", 1)
        self._hidden = weights.floats("late.hidden", WIDTH, 2 * WIDTH).T.copy()
        self._hidden_bias = weights.floats("late.hidden_bias", WIDTH)
        self._output = weights.floats("late.output", 1, WIDTH)[0]
        weights.finish()
        self._kept: dict[int, tuple[Graph, NodeViews]] = {}
        """By the identity of the graph, which lives as long as this does."""

    @staticmethod
    def can_be(config: ModelConfig) -> bool:
        """Whether models of these options are of a kind that is known here."""
        is_whole = config.steps > 0 and config.word_dim > 0
        return config.similarity == "late" and fits(config) and is_whole

    def predict(self, pairs: Iterable[Sequence[Graph]]) -> NDArray[np.float32]:
        """Similarity of each pair, (P,) float32; higher is more alike."""
        return self.similarities(pairs)

    @one_thread()
    def similarities(
        self, pairs: Iterable[Sequence[Graph]], *, progress: Progress | None = None
    ) -> NDArray[np.float32]:
        """Similarity of each pair, (P,) float32; higher is more alike."""
        checked = self._read_pairs(pairs)
        scores = np.zeros(len(checked), dtype=np.float32)
        done = 0
        for members in _batches(checked):
            scores[members] = self._scores([checked[index] for index in members])
            done += len(members)
            if progress is not None:
                progress(done, len(checked))
        return scores

    def match(self, left: Graph, right: Graph) -> list[NodeMatch]:
        """Which node of one graph is which of the other: the best one-to-one assignment."""
        maps = self.explain(left, right)
        return assigned(maps.left_to_right[-1], maps.right_to_left[-1])

    def explain(self, left: Graph, right: Graph) -> AttentionMaps:
        """Where the nodes of each graph look in the other, after the last step."""
        return self.explain_many([(left, right)])[0]

    @one_thread()
    def explain_many(self, pairs: Sequence[tuple[Graph, Graph]]) -> list[AttentionMaps]:
        """The same of many pairs."""
        checked = self._read_pairs(pairs)
        maps: dict[int, AttentionMaps] = {}
        for members in _batches(checked):
            own = [checked[index] for index in members]
            graphs, left, right = distinct_graphs(own)
            views = self._views(graphs)
            scores = self._scores(own, views).tolist()
            for index, score, a, b in zip(members, scores, left, right, strict=True):
                looks = views[a].looks @ views[b].looks.T
                maps[index] = AttentionMaps([softmax(looks)], [softmax(looks.T)], score)
        return [maps[index] for index in range(len(checked))]

    @one_thread()
    def partners(self, left: Graph, right: Graph) -> PartnerMaps:
        """Where each node of either graph looks most in the other: memory grows with nodes."""
        pair = self._read_pairs([(left, right)])
        graphs, first, second = distinct_graphs(pair)
        views = self._views(graphs)
        ours, theirs = views[int(first[0])], views[int(second[0])]
        ahead, back = (Partners.of(_looked(*sides)) for sides in ((ours, theirs), (theirs, ours)))
        return PartnerMaps([ahead], [back], float(self._scores(pair, views)[0]))

    @one_thread()
    def node_states(self, graphs: Sequence[Graph]) -> list[NDArray[np.float32]]:
        """(N, W) of each graph: its nodes and their surroundings, as they are compared."""
        views = self._views(list(graphs)) if graphs else []
        return [own.states for own in views]

    def _read_pairs(self, pairs: Iterable[Sequence[Graph]]) -> list[tuple[Graph, Graph]]:
        return checked_pairs(pairs, self.attribute_names)

    def _scores(
        self, pairs: list[tuple[Graph, Graph]], views: list[NodeViews] | None = None
    ) -> Floats:
        """(P,) of pairs that are compared at once."""
        graphs, left, right = distinct_graphs(pairs)
        views = self._scored_views(graphs) if views is None else views
        sums = np.empty((len(pairs), 2 * WIDTH), dtype=np.float32)
        for number in np.unique(left).tolist():
            members = np.flatnonzero(left == number)
            size = graphs[number].num_nodes
            sizes = [size + graphs[other].num_nodes for other in right[members]]
            for run in _runs_in_cache(sizes):
                part = members[run]
                others = [views[other] for other in right[part].tolist()]
                sums[part] = self._compared(views[number], others)
        hidden = sums @ self._hidden
        hidden += self._hidden_bias
        np.maximum(hidden, 0, out=hidden)
        scores: Floats = hidden @ self._output
        return scores

    def _views(self, graphs: list[Graph]) -> list[NodeViews]:
        """What is compared of each graph's nodes."""
        known = self._kept  # another thread may replace it
        views = {id(graph): known[id(graph)][1] for graph in graphs if id(graph) in known}
        new = [graph for graph in graphs if id(graph) not in views]
        views |= zip(map(id, new), self._new_views(new) if new else (), strict=True)
        return [views[id(graph)] for graph in graphs]

    def _scored_views(self, graphs: list[Graph]) -> list[NodeViews]:
        """The same, computed anew and kept: scores must not depend on what was asked before, and
        numbers that are computed together with others differ by rounding."""
        views = self._new_views(graphs)
        if sum(graph.num_nodes for graph in graphs) <= NODES_KEPT:
            self._kept = {id(graph): (graph, own) for graph, own in zip(graphs, views, strict=True)}
        return views

    def _new_views(self, graphs: list[Graph]) -> list[NodeViews]:
        """The same, of graphs that were not compared just now."""
        runs = _runs_in_cache([graph.num_nodes for graph in graphs])
        return [view for run in runs for view in self._views_at_once(graphs[run])]

    def _views_at_once(self, graphs: list[Graph]) -> list[NodeViews]:
        batch = PackedGraphs.pack(graphs)
        states: Floats = self._network.states(batch) @ self._state
        said = self._bag.totals(PackedWords.of_nodes(batch.word_bags))
        lengths = np.sqrt(np.einsum("nd,nd->n", said, said))
        words = said / np.maximum(lengths, np.float32(1e-6))[:, None]
        looks = unit_rows(states @ self._look)
        # Half of each factor on either side, so that one product of views has both cosines.
        roots = np.sqrt(self._heat)
        own = states @ self._own
        own += self._compared_bias
        views = NodeViews(
            np.concatenate([roots[0] * looks, roots[1] * words], axis=1),
            np.concatenate([states, words], axis=1),
            own,
            np.log1p(lengths),
        )
        ends = batch.node_offsets.tolist()
        return [views.of(slice(a, b)) for a, b in pairwise(ends)]

    def _compared(self, left: NodeViews, rights: list[NodeViews]) -> Floats:
        """(P, 2W): x_G of a graph and of each of P others that it is compared with, added."""
        joined = NodeViews(*map(np.concatenate, zip(*rights, strict=True)))
        ends = running_offsets(np.array([len(view.own) for view in rights])).tolist()
        runs = list(pairwise(ends))
        if len(left.own) * len(joined.own) > CELLS_AT_ONCE:
            seen = np.stack([_seen(left, right) for right in rights])
            back = _seen(joined, left)
        else:
            looks = left.looks @ joined.looks.T  # (n, M)
            seen = np.stack([softmax(looks[:, a:b]) @ joined.features[a:b] for a, b in runs])
            back = softmax(looks.T) @ left.features  # (M, W + V)
        of_left = self._pooled(*self._nodes(left, seen))
        c, gate = self._nodes(joined, back)
        of_right = np.stack([self._pooled(c[a:b], gate[a:b]) for a, b in runs])
        return of_left + of_right

    def _nodes(self, views: NodeViews, seen: Floats) -> tuple[Floats, Floats]:
        """(..., n, W) c_i and (..., n, 1) gates, of n nodes that see (..., n, W + V)."""
        states = seen[..., :WIDTH]
        c: Floats = np.abs(views.states - states) @ self._difference
        c += (views.states * states) @ self._product
        c += views.own
        kept = np.einsum("nv,...nv->...n", views.words, seen[..., WIDTH:])
        strengths = np.broadcast_to(views.strengths, kept.shape)
        c += np.stack([kept, kept * strengths, strengths], axis=-1) @ self._agreed
        np.maximum(c, 0, out=c)
        return c, sigmoid(c @ self._gate + self._gate_bias)[..., None]

    @staticmethod
    def _pooled(c: Floats, gate: Floats) -> Floats:
        """(..., n, W) and (..., n, 1) -> (..., 2W): the mean of c_i beside the gated mean."""
        gated = (gate * c).sum(axis=-2) / (gate.sum(axis=-2) + np.float32(1e-6))
        return np.concatenate([c.mean(axis=-2), gated], axis=-1)


def _looked(views: NodeViews, others: NodeViews) -> Iterator[Floats]:
    """Slices of the rows of (n, m) attention, which is never there as a whole."""
    for rows in row_slices(len(views.own), len(others.own)):
        yield softmax(views.looks[rows] @ others.looks.T)


def _seen(views: NodeViews, others: NodeViews) -> Floats:
    """(n, W + V) what each of n nodes sees of many others.

    Either side computes products of its own: sums over columns would need all rows at once.
    """
    return np.concatenate([weights @ others.features for weights in _looked(views, others)])


def _runs_in_cache(sizes: Sequence[int]) -> Iterator[slice]:
    """Runs of what has so many nodes each."""
    first = nodes = 0
    for number, size in enumerate(sizes):
        if number > first and nodes + size > NODES_IN_CACHE:
            yield slice(first, number)
            first, nodes = number, 0
        nodes += size
    if sizes:
        yield slice(first, len(sizes))


def _batches(pairs: Sequence[tuple[Graph, Graph]]) -> Iterator[list[int]]:
    """Numbers of pairs that are compared at once, those of one first graph together."""
    # By their first appearance, for results differ by rounding with what is computed together.
    seen: dict[int, int] = {}
    firsts = [seen.setdefault(id(left), len(seen)) for left, _ in pairs]
    order = sorted(range(len(pairs)), key=firsts.__getitem__)
    batch: list[int] = []
    graphs: set[int] = set()
    nodes = 0
    for number in order:
        new = {id(graph): graph.num_nodes for graph in pairs[number] if id(graph) not in graphs}
        if batch and nodes + sum(new.values()) > NODES_AT_ONCE:
            yield batch
            batch, graphs, nodes = [], set(), 0
            new = {id(graph): graph.num_nodes for graph in pairs[number]}
        batch.append(number)
        graphs |= new.keys()
        nodes += sum(new.values())
    if batch:
        yield batch
