"""Attention over groups of pairs as one differentiable function, in single precision at least.

Blocks beyond ``MAX_CELLS`` go in slices of rows, whose weights are computed anew in the backward
pass: memory grows with |V1| + |V2|, not with their product.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from graphkin.graphs.pair_groups import PairGroup
from graphkin.models.kernels.attention_blocks import (
    PLAIN,
    Gradients,
    ScoreKind,
    attention_backward,
    attention_forward,
)
from graphkin.models.kernels.autograd import apply


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
        inputs = [None if x is None else _wide(x) for x in (query, key, value, bias)]
        out = apply(_Attend, *inputs, groups, kind, torch.is_grad_enabled())
    return out.to(value.dtype)


def _wide(x: Tensor) -> Tensor:
    """Contiguous, and no narrower than single precision."""
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
