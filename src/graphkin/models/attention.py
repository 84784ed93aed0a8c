"""Cross-graph attention (the paper's f_match), without ever looping over pairs.

Node i of one graph attends to all nodes j of the other, and the other way round:

    a_ij = softmax_j(s_h(h_i, h_j)),    mu_i = h_i - sum_j a_ij h_j

For the Euclidean s_h(h_i, h_j) = -|h_i - h_j|^2 = 2 h_i.h_j - |h_j|^2 - |h_i|^2 the last
term cancels in the softmax over j, so that it is attention with a bias for each key. Pairs
of similar size run together as dense blocks (see :mod:`graphkin.graphs.pair_groups`). Blocks
beyond ``MAX_CELLS`` go in slices of rows, whose weights are computed anew in the backward
pass: memory grows with |V1| + |V2|, not with their product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from graphkin.graphs.pair_groups import PairGroup
from graphkin.models.kernels.attention_blocks import (
    EUCLIDEAN,
    PLAIN,
    Gradients,
    ScoreKind,
    attention_backward,
    attention_forward,
)
from graphkin.models.kernels.functions import apply
from graphkin.models.options import AttentionSimilarity


class CrossAttention(nn.Module):
    """The vector sum_j a_ij v_j for every node, and v itself; mu is their difference.

    With ``projections`` query, key and value are linear maps of the node state (the paper's
    appendix C); without, all three are the state itself.
    """

    def __init__(self, node_dim: int, similarity: AttentionSimilarity, projections: bool) -> None:
        super().__init__()
        self.similarity = similarity
        self.kind = EUCLIDEAN if similarity == "euclidean" else PLAIN
        self.projection = nn.Linear(node_dim, 3 * node_dim, bias=False) if projections else None

    def forward(
        self, h: Tensor, groups: Sequence[PairGroup], sharpness: float = 1.0
    ) -> tuple[Tensor, Tensor]:
        """(N, D) states -> values (N, D) and their attention-weighted sums (N, D).

        ``sharpness`` multiplies the scores.
        """
        query, key, value, bias = self.prepare(h)
        if sharpness != 1:
            root = math.sqrt(sharpness)
            query = None if query is None else query * root
            key = key * root
            bias = None if bias is None else bias * sharpness
        return value, attend(query, key, value, bias, groups, self.kind)

    def fusible(self) -> bool:
        """Whether :mod:`graphkin.models.kernels.propagation` computes this attention."""
        return self.projection is None and self.similarity != "cosine"

    def prepare(self, h: Tensor) -> tuple[Tensor | None, Tensor, Tensor, Tensor | None]:
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


def attend(
    query: Tensor | None,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    groups: Sequence[PairGroup],
    kind: ScoreKind = PLAIN,
) -> Tensor:
    """out_i = sum_j softmax_j(scale * q_i . k_j + bias_j) v_j over the nodes j of i's partner.

    Args:
        query: (N, D), or None where the queries are the keys: the scores of both
            directions are then one product.
        key: (N, D)
        value: (N, Dv)
        bias: (N,), or None for 0.
        groups: which nodes face which.
        kind: the scale, and what is known of the scores.

    Returns:
        (N, Dv)
    """
    with torch.autocast(key.device.type, enabled=False):
        wide = [None if x is None else _wide(x) for x in (query, key, value, bias)]
        out = apply(_Attend, *wide, groups, kind, torch.is_grad_enabled())
    return out.to(value.dtype)


def _wide(x: Tensor) -> Tensor:
    return (x if x.dtype == torch.float64 else x.float()).contiguous()


class _Attend(Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor | None,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        groups: Sequence[PairGroup],
        kind: ScoreKind,
        differentiable: bool,
    ) -> Tensor:
        ctx.groups, ctx.kind = groups, kind
        ctx.save_for_backward(query, key, value, bias)
        keep = differentiable and any(ctx.needs_input_grad)
        out, ctx.kept = attention_forward(query, key, value, bias, groups, kind, keep)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, bias = ctx.saved_tensors
        grads = Gradients(
            query=None if query is None else torch.zeros_like(query),
            key=torch.zeros_like(key),
            value=torch.zeros_like(value),
            bias=None if bias is None else torch.zeros_like(bias),
        )
        inputs = query, key, value, bias
        with torch.autocast(grad.device.type, enabled=False):
            grad = grad.to(value.dtype).contiguous()
            attention_backward(grad, ctx.kept, inputs, ctx.groups, ctx.kind, grads)
        return grads.query, grads.key, grads.value, grads.bias, None, None, None
