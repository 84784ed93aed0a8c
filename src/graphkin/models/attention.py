"""Cross-graph attention (the paper's f_match), without ever looping over pairs.

Node i of one graph attends to all nodes j of the other, and the other way round:

    a_ij = softmax_j(s_h(h_i, h_j)),    mu_i = h_i - sum_j a_ij h_j

For the Euclidean s_h(h_i, h_j) = -|h_i - h_j|^2 = 2 h_i.h_j - |h_j|^2 - |h_i|^2 the last
term cancels in the softmax over j, so that it is attention with a bias for each key. Pairs
of similar size run together as dense blocks (see :mod:`graphkin.graphs.grouping`). Blocks
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

from graphkin.graphs.grouping import PairGroup
from graphkin.models.options import AttentionSimilarity

MAX_CELLS = 1 << 20
"""Cells of a block of weights that are held at once: 4 MB in single precision."""


class CrossAttention(nn.Module):
    """The vector sum_j a_ij v_j for every node, and v itself; mu is their difference.

    With ``projections`` query, key and value are linear maps of the node state (the paper's
    appendix C); without, all three are the state itself.
    """

    def __init__(self, node_dim: int, similarity: AttentionSimilarity, projections: bool) -> None:
        super().__init__()
        self.similarity = similarity
        self.projection = nn.Linear(node_dim, 3 * node_dim, bias=False) if projections else None

    def forward(self, h: Tensor, groups: Sequence[PairGroup]) -> tuple[Tensor, Tensor]:
        """(N, D) states -> values (N, D) and their attention-weighted sums (N, D)."""
        query, key, value, bias = self.prepare(h)
        return value, attend(query, key, value, bias, groups)

    def prepare(self, h: Tensor) -> tuple[Tensor | None, Tensor, Tensor, Tensor | None]:
        """Query (None where it equals the key), key, value, all (N, D), and key bias (N,)."""
        if self.projection is None:
            key, bias = self._scores(h)
            return None, key, h, bias
        query, key, value = self.projection(h).chunk(3, dim=1)
        key, bias = self._scores(key)
        return self._scores(query)[0], key, value, bias

    def _scores(self, x: Tensor) -> tuple[Tensor, Tensor | None]:
        """Vectors and key bias whose products are s_h, up to terms that the softmax cancels."""
        if self.similarity == "euclidean":
            return x * math.sqrt(2.0), -x.square().sum(dim=1)
        if self.similarity == "cosine":
            return functional.normalize(x, dim=1), None
        return x, None


def attend(
    query: Tensor | None,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    groups: Sequence[PairGroup],
) -> Tensor:
    """out_i = sum_j softmax_j(q_i . k_j + bias_j) v_j over the nodes j of i's partner graph.

    Args:
        query: (N, D), or None where the queries are the keys: the scores of both
            directions are then one product.
        key: (N, D)
        value: (N, Dv)
        bias: (N,), or None for 0.
        groups: which nodes face which.

    Returns:
        (N, Dv)
    """
    with torch.autocast(key.device.type, enabled=False):
        wide = [None if x is None else _at_least_single(x) for x in (query, key, value, bias)]
        out: Tensor = _Attend.apply(*wide, groups)
    return out


def attention_weights(
    query: Tensor | None, key: Tensor, bias: Tensor | None, group: PairGroup
) -> tuple[Tensor, Tensor]:
    """The weights of one unpadded block: rows over columns (B, n, m), columns over rows (B, m, n).

    They take |V1| x |V2| memory: for looking at, not for propagation.
    """
    query = key if query is None else query
    scores = query[group.rows] @ key[group.columns].transpose(1, 2)
    reverse = query[group.columns] @ key[group.rows].transpose(1, 2)
    if bias is not None:
        scores = scores + bias[group.columns].unsqueeze(1)
        reverse = reverse + bias[group.rows].unsqueeze(1)
    return scores.softmax(dim=2), reverse.softmax(dim=2)


def _at_least_single(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


class _Attend(Function):
    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor | None,
        key: Tensor,
        value: Tensor,
        bias: Tensor | None,
        groups: Sequence[PairGroup],
    ) -> Tensor:
        ctx.groups = groups
        ctx.save_for_backward(query, key, value, bias)
        ctx.weights = []
        keep = any(ctx.needs_input_grad)
        out = torch.empty_like(value)
        for group in groups:
            if group.cells > MAX_CELLS:
                _sliced_forward(query, key, value, bias, group, out)
                continue
            weights = _block_weights(query, key, bias, group)
            rows, columns = _block_outputs(weights, value, group)
            _put(out, group.rows, rows)
            _put(out, group.columns, columns)
            if keep:
                ctx.weights.append(weights)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, bias = ctx.saved_tensors
        grads = _Gradients(query, key, value, bias)
        kept = iter(ctx.weights)
        for group in ctx.groups:
            if group.cells > MAX_CELLS:
                _sliced_backward(grad, query, key, value, bias, group, grads)
            else:
                _block_backward(grad, next(kept), query, key, value, group, grads)
        return grads.query, grads.key, grads.value, grads.bias, None


class _Gradients:
    """Sums of gradients by node; a padded slot adds nothing, because its gradient is zero."""

    def __init__(
        self, query: Tensor | None, key: Tensor, value: Tensor, bias: Tensor | None
    ) -> None:
        self.query = None if query is None else torch.zeros_like(query)
        self.key = torch.zeros_like(key)
        self.value = torch.zeros_like(value)
        self.bias = None if bias is None else torch.zeros_like(bias)

    def add_scores(
        self, queries: Tensor, keys: Tensor, slope: Tensor, query: Tensor, key: Tensor
    ) -> None:
        """Adds the gradient of slope = d loss / d (q_i . k_j), (B, n, m), for both sides."""
        _add(self.key if self.query is None else self.query, queries, slope @ key)
        _add(self.key, keys, slope.transpose(1, 2) @ query)

    def add_bias(self, keys: Tensor, grad: Tensor) -> None:
        if self.bias is not None:
            self.bias.index_add_(0, keys.flatten(), grad.flatten())


def _take(x: Tensor, nodes: Tensor) -> Tensor:
    """x[nodes] for (B, n) node numbers: (B, n, D)."""
    return x.index_select(0, nodes.flatten()).view(*nodes.shape, -1)


def _put(x: Tensor, nodes: Tensor, block: Tensor) -> None:
    """Writes blocks back; a padded slot repeats its node's own value."""
    x.index_copy_(0, nodes.flatten(), block.reshape(nodes.numel(), -1))


def _add(x: Tensor, nodes: Tensor, block: Tensor) -> None:
    x.index_add_(0, nodes.flatten(), block.reshape(nodes.numel(), -1))


def _key_bias(bias: Tensor | None, nodes: Tensor, sizes: Tensor, padded: bool) -> Tensor | None:
    """(B, n) bias of the keys, minus infinity in padded slots."""
    taken = None if bias is None else bias[nodes]
    if not padded:
        return taken
    beyond = torch.arange(nodes.shape[1], device=nodes.device) >= sizes.unsqueeze(1)
    if taken is None:
        taken = torch.zeros(beyond.shape, device=nodes.device)
    return taken.masked_fill(beyond, -math.inf)


def _without_padding(grad: Tensor, sizes: Tensor, padded: bool) -> Tensor:
    """(B, n, D) gradients with the padded slots set to zero."""
    if not padded:
        return grad
    beyond = torch.arange(grad.shape[1], device=grad.device) >= sizes.unsqueeze(1)
    return grad.masked_fill(beyond.unsqueeze(2), 0.0)


def _block_weights(
    query: Tensor | None, key: Tensor, bias: Tensor | None, group: PairGroup
) -> tuple[Tensor, Tensor]:
    """Weights of rows over columns and of columns over rows, both laid out (B, n, m)."""
    row_keys, column_keys = _take(key, group.rows), _take(key, group.columns)
    if query is None:
        forth = back = row_keys @ column_keys.transpose(1, 2)
    else:
        forth = _take(query, group.rows) @ column_keys.transpose(1, 2)
        back = row_keys @ _take(query, group.columns).transpose(1, 2)
    column_bias = _key_bias(bias, group.columns, group.column_sizes, group.padded)
    row_bias = _key_bias(bias, group.rows, group.row_sizes, group.padded)
    if column_bias is not None and row_bias is not None:
        forth = forth + column_bias.unsqueeze(1)
        back = back + row_bias.unsqueeze(2)
    return forth.softmax(dim=2), back.softmax(dim=1)


def _block_outputs(
    weights: tuple[Tensor, Tensor], value: Tensor, group: PairGroup
) -> tuple[Tensor, Tensor]:
    forth, back = weights
    rows = forth @ _take(value, group.columns)
    columns = back.transpose(1, 2) @ _take(value, group.rows)
    return rows, columns


def _block_backward(
    grad: Tensor,
    weights: tuple[Tensor, Tensor],
    query: Tensor | None,
    key: Tensor,
    value: Tensor,
    group: PairGroup,
    grads: _Gradients,
) -> None:
    forth, back = weights
    row_grad = _without_padding(_take(grad, group.rows), group.row_sizes, group.padded)
    column_grad = _without_padding(_take(grad, group.columns), group.column_sizes, group.padded)
    _add(grads.value, group.columns, forth.transpose(1, 2) @ row_grad)
    _add(grads.value, group.rows, back @ column_grad)
    forth_slope = _softmax_slope(row_grad @ _take(value, group.columns).transpose(1, 2), forth, 2)
    back_slope = _softmax_slope(_take(value, group.rows) @ column_grad.transpose(1, 2), back, 1)
    grads.add_bias(group.columns, forth_slope.sum(dim=1))
    grads.add_bias(group.rows, back_slope.sum(dim=2))
    row_keys, column_keys = _take(key, group.rows), _take(key, group.columns)
    if query is None:
        slope = forth_slope + back_slope
        grads.add_scores(group.rows, group.columns, slope, row_keys, column_keys)
        return
    row_queries, column_queries = _take(query, group.rows), _take(query, group.columns)
    grads.add_scores(group.rows, group.columns, forth_slope, row_queries, column_keys)
    back_slope = back_slope.transpose(1, 2)
    grads.add_scores(group.columns, group.rows, back_slope, column_queries, row_keys)


def _softmax_slope(grad: Tensor, weights: Tensor, dim: int) -> Tensor:
    return torch._softmax_backward_data(grad, weights, dim, weights.dtype)  # type: ignore[no-any-return,attr-defined]


def _directions(group: PairGroup) -> tuple[tuple[Tensor, Tensor, Tensor, Tensor], ...]:
    """(queries, their sizes, keys, their sizes) both ways."""
    rows, columns = (group.rows, group.row_sizes), (group.columns, group.column_sizes)
    return (*rows, *columns), (*columns, *rows)


def _slices(queries: Tensor, keys: Tensor) -> list[slice]:
    height = max(1, MAX_CELLS // keys.numel())
    return [slice(at, at + height) for at in range(0, queries.shape[1], height)]


def _sliced_forward(
    query: Tensor | None,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    group: PairGroup,
    out: Tensor,
) -> None:
    for queries, _, keys, key_sizes in _directions(group):
        columns, values = _take(key, keys).transpose(1, 2), _take(value, keys)
        key_bias = _key_bias(bias, keys, key_sizes, group.padded)
        for part in _slices(queries, keys):
            rows = _take(key if query is None else query, queries[:, part])
            weights = _slice_weights(rows, columns, key_bias)
            _put(out, queries[:, part], weights @ values)


def _slice_weights(rows: Tensor, columns: Tensor, key_bias: Tensor | None) -> Tensor:
    if key_bias is None:
        return (rows @ columns).softmax(dim=2)
    return torch.baddbmm(key_bias.unsqueeze(1), rows, columns).softmax(dim=2)


def _sliced_backward(
    grad: Tensor,
    query: Tensor | None,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    group: PairGroup,
    grads: _Gradients,
) -> None:
    for queries, query_sizes, keys, key_sizes in _directions(group):
        key_rows, values = _take(key, keys), _take(value, keys)
        key_bias = _key_bias(bias, keys, key_sizes, group.padded)
        out_grad = _without_padding(_take(grad, queries), query_sizes, group.padded)
        for part in _slices(queries, keys):
            rows = _take(key if query is None else query, queries[:, part])
            weights = _slice_weights(rows, key_rows.transpose(1, 2), key_bias)
            part_grad = out_grad[:, part]
            _add(grads.value, keys, weights.transpose(1, 2) @ part_grad)
            slope = _softmax_slope(part_grad @ values.transpose(1, 2), weights, 2)
            grads.add_bias(keys, slope.sum(dim=1))
            grads.add_scores(queries[:, part], keys, slope, rows, key_rows)
