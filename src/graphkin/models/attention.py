"""Cross-graph attention (the paper's f_match), without ever looping over pairs.

Node i of one graph attends to all nodes j of the other, and the other way round:

    a_ij = softmax_j(s_h(h_i, h_j)),    mu_i = h_i - sum_j a_ij h_j

For the Euclidean s_h(h_i, h_j) = -|h_i - h_j|^2 = 2 h_i.h_j - |h_j|^2 - |h_i|^2 the last
term cancels in the softmax over j, so that it is attention with a bias for each key. Pairs
of similar size run together as dense blocks (see :mod:`graphkin.graphs.pair_groups`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphkin.graphs.pair_groups import PairGroup
from graphkin.models.config import AttentionSimilarity
from graphkin.models.kernels.attend import attend
from graphkin.models.kernels.attention_blocks import EUCLIDEAN, PLAIN, attention_weights


class CrossAttention(nn.Module):
    """mu_i = v_i - sum_j a_ij v_j for every node (eq. 6 and 7).

    With ``projections`` query, key and value are linear maps of the node state (the paper's
    appendix C); without, all three are the state itself.
    """

    def __init__(self, node_dim: int, similarity: AttentionSimilarity, projections: bool) -> None:
        super().__init__()
        self.similarity = similarity
        self.kind = EUCLIDEAN if similarity == "euclidean" else PLAIN
        self.projection = nn.Linear(node_dim, 3 * node_dim, bias=False) if projections else None

    def forward(self, h: Tensor, groups: Sequence[PairGroup]) -> Tensor:
        """mu: (N, D) -> (N, D)"""
        value, attended = self.attend(h, groups)
        return value - attended

    def attend(
        self, h: Tensor, groups: Sequence[PairGroup], sharpness: float = 1.0
    ) -> tuple[Tensor, Tensor]:
        """(N, D) states -> v (N, D) and sum_j a_ij v_j (N, D).

        ``sharpness`` multiplies the scores s_h.
        """
        query, key, value, bias = self._inputs(h)
        if sharpness != 1:
            root = math.sqrt(sharpness)
            query = None if query is None else query * root
            key = key * root
            bias = None if bias is None else bias * sharpness
        return value, attend(query, key, value, bias, groups, self.kind)

    def weights(self, h: Tensor, group: PairGroup) -> tuple[Tensor, Tensor]:
        """a_ij of one unpadded group: (B, n, m) rows over columns, (B, m, n) columns over rows."""
        query, key, _, bias = self._inputs(h)
        return attention_weights(query, key, bias, group, self.kind.scale)

    def _inputs(self, h: Tensor) -> tuple[Tensor | None, Tensor, Tensor, Tensor | None]:
        """Query (None where it equals the key), key, value, all (N, D), and key bias (N,)."""
        if self.projection is None:
            key, bias = self._scores(h)
            return None, key, h, bias
        query, key, value = self.projection(h).chunk(3, dim=1)
        key, bias = self._scores(key)
        return self._scores(query)[0], key, value, bias

    def _scores(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Vectors and key bias: scale * q.k + bias is s_h, up to what the softmax cancels."""
        if self.similarity == "euclidean":
            return x, -torch.linalg.vecdot(x, x)
        if self.similarity == "cosine":
            return functional.normalize(x, dim=1), None
        return x, None
