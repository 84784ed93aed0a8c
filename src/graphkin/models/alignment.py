"""The distance of two graphs as that of their nodes from what they look at in the other graph.

Graph vectors of a matcher are each a sum over nodes, and the distance between two of them sees
only what the graphs do *not* have in common: a node that fits nowhere moves both vectors, and
what moves both alike cancels. Here nodes are compared before anything is summed, so that every
node without a counterpart counts, in both graphs.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphkin.graphs.batch import GraphBatch
from graphkin.models.config import ModelConfig
from graphkin.models.layers import glorot, zeros
from graphkin.models.similarity import cosine_similarity

OUTPUT_SCALE = 0.3
"""Factor on the initialisation of the last layer: distances then start near the threshold 1."""


class Alignment(nn.Module):
    """x_G = sum_i (phi(v_i) - phi(a_i))^2 with a_i what node i attends to; phi is an MLP.

    The square is taken by component. The distance of two graphs is the sum over the components
    of both vectors.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pool = config.alignment_pool
        self.hidden = glorot(config.graph_dim, config.node_dim)
        self.hidden_bias = zeros(config.graph_dim)
        self.output = glorot(config.graph_dim, config.graph_dim, OUTPUT_SCALE)

    def forward(self, value: Tensor, attended: Tensor, batch: GraphBatch) -> Tensor:
        """(N, D) states and what they attend to -> (graphs, G)"""
        both = functional.linear(torch.cat([value, attended]), self.hidden, self.hidden_bias).relu()
        own, other = both.chunk(2)
        # phi's last layer is linear: it is applied to the difference, once.
        apart = functional.linear(own - other, self.output).square()
        out = apart.new_zeros(len(batch.node_offsets) - 1, apart.shape[1])
        out = out.index_add(0, batch.node_graph, apart)
        if self.pool == "sum":
            return out
        return out / batch.node_offsets.diff().clamp(min=1).to(out.dtype).unsqueeze(1)


def alignment_similarity(left: Tensor, right: Tensor) -> Tensor:
    """-(sum of x + sum of y), (P, G) x (P, G) -> (P,)."""
    return -(left + right).sum(dim=-1)


class JointHead(nn.Module):
    """The distance of an alignment, plus w (1 - cosine) of an embedder's vectors.

    The two err differently: the alignment sees single nodes that fit nowhere, the vectors what the
    graphs are as a whole.
    """

    def __init__(self) -> None:
        super().__init__()
        self.weight: Tensor
        self.register_buffer("weight", torch.ones(1))

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """(P, 2G) x (P, 2G) -> (P,)"""
        (apart, vectors), (other_apart, other_vectors) = left.chunk(2, dim=1), right.chunk(2, dim=1)
        whole = 1 - cosine_similarity(vectors, other_vectors)
        return self.weight * whole - alignment_similarity(apart, other_apart)
