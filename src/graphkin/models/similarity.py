"""How two graphs are compared: similarities of vectors, alignment of nodes, learned heads.

Similarities are higher for more alike graphs; distances are their negatives.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphkin.graphs.batch import GraphBatch
from graphkin.models.config import ModelConfig, Similarity
from graphkin.models.layers import glorot, zeros

ALIGNMENT_SCALE = 0.3
"""Factor on the initialisation of the last layer: distances then start near the threshold 1."""


ROOT_EPSILON = 1e-6


def euclidean_similarity(left: Tensor, right: Tensor) -> Tensor:
    """-|x - y|^2, (P, G) x (P, G) -> (P,): the negative of the paper's distance d."""
    return -(left - right).square().sum(dim=-1)


def cosine_similarity(left: Tensor, right: Tensor) -> Tensor:
    """x.y / (|x| |y|), (P, G) x (P, G) -> (P,)"""
    return functional.cosine_similarity(left, right, dim=-1)


def hamming_similarity(left: Tensor, right: Tensor) -> Tensor:
    """mean_k tanh(x_k) tanh(y_k), (P, G) x (P, G) -> (P,): relaxed agreement of bits in [-1, 1]."""
    return (torch.tanh(left) * torch.tanh(right)).mean(dim=-1)


VECTOR_SIMILARITIES = {
    "euclidean": euclidean_similarity,
    "cosine": cosine_similarity,
    "hamming": hamming_similarity,
}


def distances_of(scores: Tensor, similarity: Similarity) -> Tensor:
    """The distance behind a model's score: 0 for equal graphs where the similarity has a top."""
    if similarity in ("euclidean", "siamese", "alignment", "edits", "joint"):
        return -scores
    return 1 - scores


def similarity_matrix(vectors: Tensor, similarity: str) -> Tensor:
    """(N, G) -> (N, N): every vector with every other, by a matrix product."""
    if similarity == "cosine":
        unit = functional.normalize(vectors, dim=1)
        return unit @ unit.T
    if similarity == "hamming":
        bits = torch.tanh(vectors)
        return bits @ bits.T / vectors.shape[1]
    return VECTOR_SIMILARITIES[similarity](vectors[:, None], vectors[None])


class SiameseHead(nn.Module):
    """A 2-layer MLP on two vectors concatenated, averaged over both orders: a distance."""

    def __init__(self, graph_dim: int) -> None:
        super().__init__()
        self.hidden = glorot(graph_dim, 2 * graph_dim)
        self.hidden_bias = zeros(graph_dim)
        self.output = glorot(1, graph_dim)
        self.output_bias = zeros(1)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """(P, G) x (P, G) -> (P,)"""
        both = torch.cat([torch.cat([left, right], 1), torch.cat([right, left], 1)])  # (2P, 2G)
        hidden = functional.linear(both, self.hidden, self.hidden_bias).relu()
        distances = functional.linear(hidden, self.output, self.output_bias)[:, 0]
        return distances.view(2, -1).mean(dim=0)


class Alignment(nn.Module):
    """x_G = sum_i (phi(v_i) - phi(a_i))^2 with a_i what node i attends to; phi is an MLP.

    The square is taken by component. The distance of two graphs is the sum over the components
    of both vectors.

    Graph vectors of a matcher are each a sum over nodes, and the distance between two of them
    misses a node that fits nowhere: it moves both vectors, and what moves both alike cancels. Here
    nodes are compared before anything is summed, so that every node without a counterpart counts,
    in both graphs.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.pool = config.alignment_pool
        self.hidden = glorot(config.graph_dim, config.node_dim)
        self.hidden_bias = zeros(config.graph_dim)
        self.output = glorot(config.graph_dim, config.graph_dim, ALIGNMENT_SCALE)

    def forward(self, value: Tensor, attended: Tensor, batch: GraphBatch) -> Tensor:
        """(N, D) states and what they attend to -> (graphs, G)"""
        both = functional.linear(torch.cat([value, attended]), self.hidden, self.hidden_bias).relu()
        own, other = both.chunk(2)  # (N, G) each
        # phi's last layer is linear: it is applied to the difference, once.
        distances = functional.linear(own - other, self.output).square()  # (N, G)
        out = distances.new_zeros(batch.num_graphs, distances.shape[1])
        out = out.index_add(0, batch.node_graph, distances)
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
        left_nodes, left_vectors = left.chunk(2, dim=1)  # (P, G) each
        right_nodes, right_vectors = right.chunk(2, dim=1)
        whole = 1 - cosine_similarity(left_vectors, right_vectors)
        return self.weight * whole - alignment_similarity(left_nodes, right_nodes)


class TargetLink(nn.Module):
    """From a score to a value in the unit of the targets that a model was trained on.

    With d the distance behind a score s, and c the scale of the targets: c exp(-d), c d, c sqrt(d),
    or c sigmoid(a s + b), where a and b are learned.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.kind, self.scale, self.similarity = config.link, config.target_scale, config.similarity
        if self.kind == "sigmoid":
            self.slope = nn.Parameter(torch.ones(1))
            self.offset = zeros(1)

    def forward(self, scores: Tensor) -> Tensor:
        """(P,) -> (P,)"""
        if self.kind == "sigmoid":
            return self.scale * torch.sigmoid(self.slope * scores + self.offset)
        distances = distances_of(scores, self.similarity)
        if self.kind == "root":
            # The slope of a root is infinite at 0.
            return self.scale * (distances.clamp(min=0) + ROOT_EPSILON).sqrt()
        return self.scale * (distances if self.kind == "distance" else torch.exp(-distances))
