"""Late interaction: the nodes of two graphs are encoded apart, and compared once, at the end.

A node's state does not depend on the partner of its graph, so that a graph is encoded once however
many others it is compared with. On functions this is as good as cross-graph attention in every
propagation step, at half the cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphkin.graphs.batch import GraphBatch, PairBatch
from graphkin.graphs.packing import CELLS_AT_ONCE, pair_blocks, row_slices
from graphkin.models.config import ModelConfig
from graphkin.models.layers import glorot, zeros

WIDTH = 64
"""Of what is compared of a node."""
FIRST_HEAT = math.log(8.0)
"""Logarithm of the factor on the cosines that a node looks by, at first."""


class NodeViews(NamedTuple):
    """What is compared of N nodes."""

    states: Tensor
    """(N, W) of the node and its surroundings."""
    looks: Tensor
    """(N, W) of length 1: nodes look at those whose vectors are near theirs."""
    words: Tensor | None
    """(N, V) of length 1, what each node says, or 0 where it says nothing."""
    strengths: Tensor | None
    """(N,) how much and how rare what it says is, as a logarithm."""


class LateInteraction(nn.Module):
    """Every node looks at the other graph; what it is and what it sees are compared.

    a_ij = softmax_j(t cos(L v_i, L v_j) + u w_i.w_j) and s_i = sum_j a_ij v_j, where v_i is the
    state of a node in 64 numbers and w_i what it says.
    c_i = relu(C [|v_i - s_i|, v_i * s_i, v_i] + K k_i), where k_i says how much of its words a node
    finds in what it looks at. x_G is the mean of c_i beside a gated mean, and the score of a pair
    an MLP of x_G1 + x_G2.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.has_words = config.word_dim > 0
        self.state = glorot(WIDTH, config.node_dim)
        self.look = glorot(WIDTH, WIDTH)
        self.heat = nn.Parameter(torch.full((2,), FIRST_HEAT))
        self.compared = glorot(WIDTH, 3 * WIDTH)
        self.compared_bias = zeros(WIDTH)
        if self.has_words:
            self.agreed = glorot(WIDTH, 3)
        self.gate = glorot(1, WIDTH)
        self.gate_bias = zeros(1)
        self.hidden = glorot(WIDTH, 2 * WIDTH)
        self.hidden_bias = zeros(WIDTH)
        self.output = glorot(1, WIDTH)

    def views(self, h: Tensor, said: Tensor | None) -> NodeViews:
        """What is compared of nodes.

        Args:
            h: (N, D) states after the last step.
            said: (N, V) sums of their words, or None for a model without.
        """
        states = functional.linear(h, self.state)
        looks = functional.normalize(functional.linear(states, self.look), dim=1)
        if said is None:
            return NodeViews(states, looks, None, None)
        lengths = said.norm(dim=1)
        words = said / lengths.clamp(min=1e-6)[:, None]
        return NodeViews(states, looks, words, lengths.log1p())

    def forward(self, views: NodeViews, batch: PairBatch) -> tuple[Tensor, Tensor, Tensor]:
        """(P,) scores, and (P, 2W) x_G of the left and of the right graphs."""
        offsets = batch.graphs.node_offsets
        sizes = offsets.diff()
        left, right = batch.left, batch.right
        sides = []
        order = []
        for block in pair_blocks(sizes[left].cpu().numpy(), sizes[right].cpu().numpy()):
            members = torch.from_numpy(block).to(left.device)
            rows = padded_nodes(offsets, sizes, left[members])
            columns = padded_nodes(offsets, sizes, right[members])
            sides.append(self._compared(views, rows, columns))
            order.append(members)
        back = torch.cat(order).argsort()
        of_left = torch.cat([first for first, _ in sides])[back]
        of_right = torch.cat([second for _, second in sides])[back]
        return self.score(of_left, of_right), of_left, of_right

    def score(self, left: Tensor, right: Tensor) -> Tensor:
        """(P, 2W) x (P, 2W) -> (P,)"""
        hidden = functional.linear(left + right, self.hidden, self.hidden_bias).relu()
        return functional.linear(hidden, self.output)[:, 0]

    def weights(
        self, views: NodeViews, batch: GraphBatch, left: int, right: int
    ) -> tuple[Tensor, Tensor]:
        """a_ij of two graphs of a batch, by their numbers: (n1, n2) and (n2, n1)."""
        device = batch.node_graph.device
        rows, columns = (
            torch.arange(*batch.node_offsets[number : number + 2].tolist(), device=device)
            for number in (left, right)
        )
        scores = self._scores(views, rows[None], columns[None])[0]
        return scores.softmax(1), scores.T.softmax(1)

    def looked(self, views: NodeViews, nodes: Tensor, others: Tensor) -> Iterator[Tensor]:
        """Slices of the rows of (n, m) attention of n nodes, which is never there as a whole."""
        for rows in row_slices(len(nodes), len(others)):
            yield self._scores(views, nodes[None, rows], others[None])[0].softmax(1)

    def _scores(self, views: NodeViews, rows: Tensor, columns: Tensor) -> Tensor:
        """(B, n) and (B, m) nodes -> (B, n, m), how much each looks at each."""
        heat = self.heat.exp()
        scores = heat[0] * views.looks[rows] @ views.looks[columns].transpose(1, 2)
        if views.words is not None:
            agreement = views.words[rows] @ views.words[columns].transpose(1, 2)
            scores = scores + heat[1] * agreement
        return scores

    def _compared(
        self, views: NodeViews, rows: tuple[Tensor, Tensor], columns: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor]:
        """(B, 2W) x_G of the graphs of rows, and of those of columns."""
        if rows[0].numel() * columns[0].shape[1] > CELLS_AT_ONCE:
            # So large a block is of a single pair, which has no padding.
            pair = rows[0][0], columns[0][0]
            of_rows, of_columns = self._seen_of(views, *pair), self._seen_of(views, *pair[::-1])
        else:
            scores = self._scores(views, rows[0], columns[0])
            ahead = scores.masked_fill(~columns[1][:, None], -torch.inf).softmax(2)
            back = scores.transpose(1, 2).masked_fill(~rows[1][:, None], -torch.inf).softmax(2)
            of_rows = self._seen(views, ahead, columns[0])
            of_columns = self._seen(views, back, rows[0])
        return self._pooled(views, rows, *of_rows), self._pooled(views, columns, *of_columns)

    @staticmethod
    def _seen(views: NodeViews, attention: Tensor, others: Tensor) -> tuple[Tensor, Tensor | None]:
        """(B, n, m) attention -> (B, n, W) states that nodes see, and (B, n, V) words."""
        words = None if views.words is None else attention @ views.words[others]
        return attention @ views.states[others], words

    def _seen_of(
        self, views: NodeViews, nodes: Tensor, others: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """The same of one pair of large graphs, n and m nodes.

        Either side computes products of its own: sums over columns would need all rows at once.
        """
        slices = self.looked(views, nodes, others)
        parts = [self._seen(views, weights[None], others[None]) for weights in slices]
        words = [part for _, part in parts if part is not None]
        states = torch.cat([part for part, _ in parts], 1)
        return states, torch.cat(words, 1) if words else None

    def _pooled(
        self,
        views: NodeViews,
        own: tuple[Tensor, Tensor],
        seen: Tensor,
        seen_words: Tensor | None,
    ) -> Tensor:
        """(B, n, W) states and (B, n, V) words that nodes see -> (B, 2W)"""
        v, is_node = views.states[own[0]], own[1][:, :, None]
        c = functional.linear(
            torch.cat([(v - seen).abs(), v * seen, v], 2), self.compared, self.compared_bias
        )
        if views.words is not None and views.strengths is not None and seen_words is not None:
            words, strengths = views.words[own[0]], views.strengths[own[0]]
            kept = (words * seen_words).sum(2)
            k = torch.stack([kept, kept * strengths, strengths], 2)
            c = c + functional.linear(k, self.agreed)
        c = c.relu() * is_node
        gate = functional.linear(c, self.gate, self.gate_bias).sigmoid() * is_node
        mean = c.sum(1) / is_node.sum(1)
        return torch.cat([mean, (gate * c).sum(1) / (gate.sum(1) + 1e-6)], 1)


def padded_nodes(
    offsets: Tensor, sizes: Tensor, graphs: Tensor, width: int | None = None
) -> tuple[Tensor, Tensor]:
    """(B, n) node numbers of some graphs, and which of them are not padding.

    n is ``width``, or the size of the largest.
    """
    own = sizes[graphs]
    slots = torch.arange(int(own.max()) if width is None else width, device=own.device)
    is_node = slots < own[:, None]
    return offsets[graphs][:, None] + torch.where(is_node, slots, 0), is_node
