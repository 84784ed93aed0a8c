"""What it costs to edit one graph into another, by a soft assignment of their nodes.

The edit distance is a minimum over assignments of nodes to nodes: what they are, and the edges
between them, cost 1 each where they differ. Here the states of nodes propose an assignment, a few
rounds make it agree with the edges, and its cost is what the distance is estimated from. Graphs are
encoded apart, so that each is encoded once however many others it is compared with.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphkin.graphs.batch import GraphBatch, PairBatch
from graphkin.graphs.packing import pair_blocks
from graphkin.models.config import ModelConfig
from graphkin.models.late import padded_nodes
from graphkin.models.layers import glorot, zeros

KIND_WIDTH = 16
"""Of the vectors by which it is told whether two nodes carry the same."""
KIND_SCALE = 6.0
"""Factor on their initialisation: nodes that carry something else then cost nearly 1 at first."""
FIRST_MISMATCH = 2.0
"""How much a node shuns another that carries something else, at first."""
HIDDEN = 64
"""Of the MLP over what is left of a node."""
CORRECTION_SCALE = 0.1
"""Factor on the initialisation of what that adds: the estimate starts as the cost itself."""
BALANCING = 6
"""Iterations that bring rows and columns of an assignment to sum 1."""
LEAST_SUM = 1e-12
"""What the sum of a row is taken for at least, where all its scores are far below the others."""


class EditViews(NamedTuple):
    """What is compared of N nodes."""

    states: Tensor
    """(N, D) of the node and its surroundings."""
    kinds: Tensor
    """(N, W) of what it carries itself."""
    removal: Tensor
    """(N,) the score for leaving it without a partner."""


class Side(NamedTuple):
    """One graph of each of B pairs, with K places for nodes; places without a node are empty."""

    nodes: Tensor
    """(B, K) the numbers of nodes; of empty places any number."""
    is_node: Tensor
    """(B, K)"""
    adjacency: Tensor
    """(B, K, K) how many edges lead from the column to the row."""


class EditAlignment(nn.Module):
    """An estimate of the edit distance: the cost of a soft assignment, and a learned correction.

    With v_i = V h_i + b of the last states, u_i = U x_i of encoded input, and A and B the
    adjacency matrices of two graphs, the smaller of which has empty places as well:

        c_ij = 1 - exp(-|u_i - u_j|^2), and 1 between a node and an empty place
        s_ij = t v_i.v_j / sqrt(D) - l c_ij, and g.h_i + b between a node and an empty place
        P_0 = S(s),  P_r = S(s + a_r A P_(r-1) B) for r = 1..R
        n_i = sum_j P_ij c_ij,  e_i = sum_k |A - P B P^T|_ik
        f_i = relu(F relu(E [|v_i - w_i|, v_i * w_i, n_i, e_i])),  w_i = sum_j P_ij v_j
        x_G = [sum n_i, sum e_i / 2, sum f_i over nodes],  d = o.(x_G1 + x_G2)

    S divides by the roots of the sums of rows and columns, several times, so that both come to 1
    and neither graph is the first. A P B counts, for two nodes, the edges that agree where their
    neighbours are assigned as in P (Gold & Rangarajan, 1996); of directed graphs it is the mean of
    that over both directions. What edges carry enters through the states alone.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.node_dim
        self.rounds, self.pool = config.alignment_rounds, config.alignment_pool
        self.state = glorot(width, width)
        self.state_bias = zeros(width)
        self.kind = glorot(KIND_WIDTH, width, KIND_SCALE)
        self.removal = glorot(1, width)
        self.removal_bias = zeros(1)
        self.heat = nn.Parameter(torch.ones(1))
        self.mismatch = nn.Parameter(torch.full((1,), FIRST_MISMATCH))
        self.agreement = nn.Parameter(torch.ones(self.rounds))
        self.compared = glorot(HIDDEN, 2 * width + 2)
        self.compared_bias = zeros(HIDDEN)
        self.hidden = glorot(HIDDEN, HIDDEN)
        self.hidden_bias = zeros(HIDDEN)
        # Each graph of a pair brings the whole cost: it counts half.
        cost = torch.full((1, 2), 0.5 / config.target_scale)
        correction = glorot(1, HIDDEN, CORRECTION_SCALE / config.target_scale).data
        self.output = nn.Parameter(torch.cat([cost, correction], 1))

    def views(self, inputs: Tensor, h: Tensor) -> EditViews:
        """What is compared of nodes.

        Args:
            inputs: (N, D) encoded, before the first step.
            h: (N, D) states after the last step.
        """
        return EditViews(
            functional.linear(h, self.state, self.state_bias),
            functional.linear(inputs, self.kind),
            functional.linear(h, self.removal, self.removal_bias)[:, 0],
        )

    def forward(self, views: EditViews, batch: PairBatch) -> tuple[Tensor, Tensor, Tensor]:
        """(P,) minus the distances, and (P, 2 + H) x_G of the left and of the right graphs."""
        sizes = batch.graphs.node_offsets.diff()
        lefts, rights, order = [], [], []
        blocks = pair_blocks(sizes[batch.left].cpu().numpy(), sizes[batch.right].cpu().numpy())
        for block in blocks:
            members = torch.from_numpy(block).to(batch.left.device)
            left, right = batch.left[members], batch.right[members]
            of_left, of_right = self._compared(views, *_sides(batch.graphs, left, right, views))
            if self.pool == "mean":
                share = (2 / (sizes[left] + sizes[right]).to(of_left.dtype))[:, None]
                of_left, of_right = of_left * share, of_right * share
            lefts.append(of_left)
            rights.append(of_right)
            order.append(members)
        back = torch.cat(order).argsort()
        left, right = torch.cat(lefts)[back], torch.cat(rights)[back]
        return self.score(left, right), left, right

    def score(self, left: Tensor, right: Tensor) -> Tensor:
        """(P, 2 + H) x (P, 2 + H) -> (P,)"""
        return -functional.linear(left + right, self.output)[:, 0]

    def weights(
        self, views: EditViews, batch: GraphBatch, left: int, right: int
    ) -> tuple[Tensor, Tensor]:
        """The assignment of two graphs of a batch, by their numbers: (n1, n2) and (n2, n1).

        Of a node, the part that stays without a partner is left out, and the rest has sum 1.
        """
        device = batch.node_graph.device
        first, second = (torch.tensor([number], device=device) for number in (left, right))
        sides = _sides(batch, first, second, views)
        n, m = (int(side.is_node.sum()) for side in sides)
        p = self._assignment(views, *sides)[0][0, :n, :m] + torch.finfo(views.states.dtype).tiny
        return p / p.sum(1, keepdim=True), p.T / p.T.sum(1, keepdim=True)

    def _assignment(self, views: EditViews, left: Side, right: Side) -> tuple[Tensor, Tensor]:
        """(B, K, K) P after the last round, and (B, K, K) c."""
        v, w = views.states[left.nodes], views.states[right.nodes]
        kinds = views.kinds[left.nodes][:, :, None] - views.kinds[right.nodes][:, None]
        c = 1 - torch.exp(-kinds.square().sum(3))
        scores = self.heat * (v @ w.transpose(1, 2)) / math.sqrt(v.shape[2]) - self.mismatch * c
        rows, columns = left.is_node[:, :, None], right.is_node[:, None]
        # Between a node and an empty place, and between two empty places.
        removal = views.removal[left.nodes][:, :, None] * rows
        removal = removal + views.removal[right.nodes][:, None] * columns
        scores = torch.where(rows & columns, scores, removal)
        c = torch.where(rows & columns, c, (rows | columns).to(c.dtype))
        # The larger graph of a pair has no empty places: those of the block stay among themselves.
        empty = ~(left.is_node | right.is_node)
        barred = (empty[:, :, None] | empty[:, None]) & ~torch.diag_embed(empty)
        scores = scores.masked_fill(barred, -torch.inf)
        p = balanced(scores)
        for weight in self.agreement:
            p = balanced(scores + weight * _agreement(left.adjacency, p, right.adjacency))
        return p, c

    def _compared(self, views: EditViews, left: Side, right: Side) -> tuple[Tensor, Tensor]:
        """(B, 2 + H) x_G of the graphs on the left, and of those on the right."""
        p, c = self._assignment(views, left, right)
        back, cost = p.transpose(1, 2), p * c
        return (
            self._pooled(views, left, right, p, cost),
            self._pooled(views, right, left, back, cost.transpose(1, 2)),
        )

    def _pooled(self, views: EditViews, own: Side, other: Side, p: Tensor, cost: Tensor) -> Tensor:
        """(B, K, K) assignment of own places to the other's -> (B, 2 + H)"""
        is_node = own.is_node[:, :, None]
        v = views.states[own.nodes] * is_node
        w = p @ (views.states[other.nodes] * other.is_node[:, :, None])
        n = cost.sum(2)
        e = (own.adjacency - p @ other.adjacency @ p.transpose(1, 2)).abs().sum(2)
        features = torch.cat([(v - w).abs(), v * w, n[:, :, None], e[:, :, None]], 2)
        f = functional.linear(features, self.compared, self.compared_bias).relu()
        f = functional.linear(f, self.hidden, self.hidden_bias).relu()
        total = (f * is_node).sum(1)
        return torch.cat([n.sum(1)[:, None], e.sum(1)[:, None] / 2, total], 1)


def balanced(scores: Tensor) -> Tensor:
    """(B, K, K) scores -> exp of them, scaled until rows and columns have nearly sum 1.

    It is the same either way round: Sinkhorn's turns of rows and columns are not, unless they
    converge.
    """
    highest = (scores.amax(2, keepdim=True) + scores.amax(1, keepdim=True)) / 2
    p = (scores - highest).exp()
    for _ in range(BALANCING):
        columns, rows = (p.sum(dim, keepdim=True).clamp(min=LEAST_SUM) for dim in (1, 2))
        p = p / (columns * rows).sqrt()
    return p


def _agreement(a: Tensor, p: Tensor, b: Tensor) -> Tensor:
    """(B, K, K) each: the mean of A P B^T and A^T P B; of symmetric matrices A P B."""
    return (a @ p @ b.transpose(1, 2) + a.transpose(1, 2) @ p @ b) / 2


def _sides(batch: GraphBatch, left: Tensor, right: Tensor, views: EditViews) -> tuple[Side, Side]:
    """Pairs of graphs of a batch, (B,) numbers each, with as many places on both sides."""
    sizes = batch.node_offsets.diff()
    places = int(torch.maximum(sizes[left].max(), sizes[right].max()))
    first, second = (
        Side(
            *padded_nodes(batch.node_offsets, sizes, graphs, places),
            _adjacency(batch, graphs, places).to(views.states.dtype),
        )
        for graphs in (left, right)
    )
    return first, second


def _adjacency(batch: GraphBatch, graphs: Tensor, places: int) -> Tensor:
    """(B, K, K) the adjacency matrices of some graphs of a batch."""
    chosen, rows = torch.unique(graphs, return_inverse=True)
    slots = torch.full((batch.num_graphs,), -1, device=graphs.device)
    slots[chosen] = torch.arange(len(chosen), device=graphs.device)
    receivers, senders = batch.incoming.owners, batch.incoming.neighbours
    slot = slots[batch.node_graph[receivers]]
    starts = batch.node_offsets[batch.node_graph[receivers]]
    cells = (slot * places + receivers - starts) * places + senders - starts
    counts = torch.bincount(cells[slot >= 0], minlength=len(chosen) * places * places)
    return counts.view(len(chosen), places, places)[rows]
