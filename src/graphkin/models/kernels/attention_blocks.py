"""Attention over blocks of pairs: dense, from one exponential, or in slices of rows.

All functions here work outside autograd; :mod:`graphkin.models.kernels.attend` and
:mod:`graphkin.models.kernels.propagation` make them differentiable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from graphkin.graphs.pair_groups import PairGroup
from graphkin.models.kernels.attention_tiles import (
    Side,
    joint_both_ways,
    runs_in_tiles,
    softmax_both_ways,
)

MAX_CELLS = 1 << 20
"""Cells of a block of weights that are held at once: 4 MB in single precision."""
SMALLEST_SUM = 1e-30
"""Sums of exponentials below this lose precision in single precision."""


@dataclass(frozen=True)
class ScoreKind:
    """Scores are scale * q_i . k_j + bias_j."""

    scale: float
    distances: bool
    """Whether they are minus squared distances, up to what the softmax cancels: then
    scale * q_i . k_j + bias_i + bias_j is never above 0."""


EUCLIDEAN, PLAIN = ScoreKind(2.0, True), ScoreKind(1.0, False)


@dataclass(frozen=True)
class Weights:
    """Attention over a block, both ways; laid out (B, n, m)."""

    row_weights: Tensor
    """Rows over columns."""
    column_weights: Tensor
    """Columns over rows."""


@dataclass(frozen=True)
class JointWeights:
    """Attention over a block of distances, both ways from one exponential e = exp(-d^2)."""

    joint: Tensor
    """(B, n, m) e."""
    row_factor: Tensor
    """(B, n, 1) 1 / the sum of e over columns: row_weights = e * row_factor."""
    column_factor: Tensor
    """(B, m, 1) 1 / the sum of e over rows: column_weights^T = e^T * column_factor."""
    row_out: Tensor
    """(B, n, Dv) what the rows attend to."""
    column_out: Tensor
    """(B, m, Dv) what the columns attend to."""


Kept = list[Weights | JointWeights]
"""What the backward pass needs of every dense block."""

Inputs = tuple[Tensor | None, Tensor, Tensor, Tensor | None]
"""Query, key, value and bias, as :func:`attend` takes them."""


@dataclass(frozen=True)
class Gradients:
    """Where gradients are added, by node; two of them may be the same array."""

    query: Tensor | None
    key: Tensor
    value: Tensor
    bias: Tensor | None

    @property
    def of_queries(self) -> Tensor:
        """Where the gradient of the query side goes: to the keys, where the queries are those."""
        return self.key if self.query is None else self.query


def attention_forward(
    query: Tensor | None,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    groups: Sequence[PairGroup],
    kind: ScoreKind,
    keep: bool,
) -> tuple[Tensor, Kept]:
    """The computation of :func:`attend` outside autograd; all inputs contiguous."""
    out = torch.empty_like(value)
    kept: Kept = []
    for group in groups:
        if (group.cells > MAX_CELLS or not keep) and runs_in_tiles(key, group.cells_of_pair):
            _tiled_forward((query, key, value, bias), group, kind, out)
            continue
        is_joint = query is None and bias is not None and kind.distances and not group.padded
        if group.cells > MAX_CELLS:
            if not (is_joint and _joint_slices(key, value, bias, group, kind.scale, out)):
                _sliced_forward((query, key, value, bias), group, kind.scale, out)
            continue
        weights: Weights | JointWeights | None = None
        if is_joint:
            weights = _joint_block(key, value, bias, group, kind.scale, out)
        if weights is None:
            weights = _block(query, key, value, bias, group, kind.scale, out)
        if keep:
            kept.append(weights)
    return out, kept


def attention_backward(
    grad: Tensor,
    kept: Kept,
    inputs: Inputs,
    groups: Sequence[PairGroup],
    kind: ScoreKind,
    grads: Gradients,
) -> None:
    """Adds the gradients of :func:`attention_forward` to ``grads``."""
    blocks = iter(kept)
    for group in groups:
        if group.cells > MAX_CELLS:
            _sliced_backward(grad, inputs, group, kind.scale, grads)
            continue
        weights = next(blocks)
        if isinstance(weights, JointWeights):
            _joint_block_backward(grad, weights, inputs, group, kind.scale, grads)
        else:
            _block_backward(grad, weights, inputs, group, kind.scale, grads)


def attention_weights(
    query: Tensor | None, key: Tensor, bias: Tensor | None, group: PairGroup, scale: float
) -> tuple[Tensor, Tensor]:
    """The weights of one unpadded block: rows over columns (B, n, m), columns over rows (B, m, n).

    They take |V1| x |V2| memory: for looking at, not for propagation.
    """
    row_weights, column_weights = _block_weights(query, key, bias, group, scale)
    return row_weights, column_weights.transpose(1, 2)


ROWS, COLUMNS = 0, 1


def _nodes(group: PairGroup, side: int) -> Tensor:
    return group.columns if side else group.rows


def _sides(x: Tensor, group: PairGroup) -> tuple[Tensor, Tensor]:
    """The blocks of the rows (B, n, D) and of the columns (B, m, D)."""
    if group.regular:
        count, size = group.rows.shape
        rows, columns = x.view(count, 2, size, -1).unbind(1)
        return rows, columns
    return _take(x, group.rows), _take(x, group.columns)


def _take(x: Tensor, nodes: Tensor) -> Tensor:
    return x.index_select(0, nodes.flatten()).view(*nodes.shape, -1)


def _put(x: Tensor, group: PairGroup, side: int, block: Tensor) -> None:
    """Writes the blocks of one side; a padded slot repeats its node's own value."""
    if group.regular:
        _sides(x, group)[side].copy_(block)
        return
    nodes = _nodes(group, side)
    x.index_copy_(0, nodes.flatten(), block.reshape(nodes.numel(), -1))


def _add(x: Tensor, group: PairGroup, side: int, block: Tensor) -> None:
    """Adds blocks to one side; a padded slot adds nothing, because its block is zero."""
    if group.regular:
        _sides(x, group)[side].add_(block)
        return
    nodes = _nodes(group, side)
    x.index_add_(0, nodes.flatten(), block.reshape(nodes.numel(), -1))


def _add_bias(bias: Tensor | None, group: PairGroup, side: int, grad: Tensor) -> None:
    if bias is not None:
        _add(bias.unsqueeze(1), group, side, grad.unsqueeze(2))


def _beyond(group: PairGroup, side: int) -> Tensor:
    """(B, n) whether a slot of one side is padding."""
    sizes = group.column_sizes if side else group.row_sizes
    slots = torch.arange(_nodes(group, side).shape[1], device=sizes.device)
    return slots >= sizes.unsqueeze(1)


def _key_bias(
    bias: Tensor | None, like: Tensor, group: PairGroup
) -> tuple[Tensor | None, Tensor | None]:
    """(B, n) and (B, m) bias of the keys of both sides, minus infinity in padded slots."""
    rows: Tensor | None = None
    columns: Tensor | None = None
    if bias is not None:
        rows, columns = (side.squeeze(2) for side in _sides(bias.unsqueeze(1), group))
    if not group.padded:
        return rows, columns
    if rows is None or columns is None:
        rows, columns = like.new_zeros(group.rows.shape), like.new_zeros(group.columns.shape)
    rows = rows.masked_fill(_beyond(group, ROWS), -math.inf)
    return rows, columns.masked_fill(_beyond(group, COLUMNS), -math.inf)


def _sides_of_grad(grad: Tensor, group: PairGroup) -> tuple[Tensor, Tensor]:
    """(B, n, D) and (B, m, D) gradients of both sides, zero in padded slots."""
    rows, columns = _sides(grad, group)
    if not group.padded:
        return rows, columns
    rows = rows.masked_fill(_beyond(group, ROWS).unsqueeze(2), 0.0)
    return rows, columns.masked_fill(_beyond(group, COLUMNS).unsqueeze(2), 0.0)


def _block(
    query: Tensor | None,
    key: Tensor,
    value: Tensor,
    bias: Tensor | None,
    group: PairGroup,
    scale: float,
    out: Tensor,
) -> Weights:
    """Writes what a block attends to into ``out``."""
    row_weights, column_weights = _block_weights(query, key, bias, group, scale)
    row_values, column_values = _sides(value, group)
    _put(out, group, ROWS, row_weights @ column_values)
    _put(out, group, COLUMNS, column_weights.transpose(1, 2) @ row_values)
    return Weights(row_weights, column_weights)


def _joint_block(
    key: Tensor, value: Tensor, bias: Tensor | None, group: PairGroup, scale: float, out: Tensor
) -> JointWeights | None:
    """As :func:`_block`, for distances: e = exp(-d^2) serves both directions.

    None where a node is so far from all others that its sum would vanish; the softmax, which
    subtracts the largest score first, is the way then.
    """
    assert bias is not None, "distances have one"
    row_keys, column_keys = _sides(key, group)
    row_bias, column_bias = _sides(bias.unsqueeze(1), group)
    joint = torch.baddbmm(row_bias, row_keys, column_keys.transpose(1, 2), alpha=scale)
    joint.add_(column_bias.transpose(1, 2)).exp_()
    row_sums, column_sums = joint.sum(dim=2, keepdim=True), joint.sum(dim=1).unsqueeze(2)
    if not min(float(row_sums.min()), float(column_sums.min())) > SMALLEST_SUM:
        return None
    row_factor, column_factor = row_sums.reciprocal_(), column_sums.reciprocal_()
    row_values, column_values = _sides(value, group)
    row_out = (joint @ column_values).mul_(row_factor)
    column_out = (joint.transpose(1, 2) @ row_values).mul_(column_factor)
    _put(out, group, ROWS, row_out)
    _put(out, group, COLUMNS, column_out)
    return JointWeights(joint, row_factor, column_factor, row_out, column_out)


def _joint_block_backward(
    grad: Tensor,
    weights: JointWeights,
    inputs: Inputs,
    group: PairGroup,
    scale: float,
    grads: Gradients,
) -> None:
    """The slope of the scores of both directions together.

    forth_ij = e_ij r_i has the slope e_ij r_i (g_i . v_j - g_i . out_i) for the gradient g_i of
    what row i attends to, and column_weights likewise, so that with g r in place of g

        slope = e * (g_rows v_columns^T + v_rows g_columns^T - own_i - own_j)
    """
    _, key, value, _ = inputs
    joint = weights.joint
    row_grad, column_grad = _sides(grad, group)
    row_grad, column_grad = row_grad * weights.row_factor, column_grad * weights.column_factor
    row_values, column_values = _sides(value, group)
    row_own = torch.linalg.vecdot(row_grad, weights.row_out).unsqueeze(2)
    column_own = torch.linalg.vecdot(column_grad, weights.column_out).unsqueeze(1)
    slope = torch.baddbmm(row_own, row_grad, column_values.transpose(1, 2), beta=-1)
    slope = slope.baddbmm_(row_values, column_grad.transpose(1, 2)).sub_(column_own).mul_(joint)
    _add(grads.value, group, COLUMNS, joint.transpose(1, 2) @ row_grad)
    _add(grads.value, group, ROWS, joint @ column_grad)
    # A row's own bias cancels in its softmax: its part of the sum is zero, and does no harm.
    _add_bias(grads.bias, group, COLUMNS, slope.sum(dim=1))
    _add_bias(grads.bias, group, ROWS, slope.sum(dim=2))
    slope *= scale
    row_keys, column_keys = _sides(key, group)
    _add(grads.key, group, ROWS, slope @ column_keys)
    _add(grads.key, group, COLUMNS, slope.transpose(1, 2) @ row_keys)


def _block_weights(
    query: Tensor | None, key: Tensor, bias: Tensor | None, group: PairGroup, scale: float
) -> tuple[Tensor, Tensor]:
    """Weights of rows over columns and of columns over rows, both laid out (B, n, m)."""
    row_keys, column_keys = _sides(key, group)
    if query is None:
        row_weights = column_weights = row_keys @ column_keys.transpose(1, 2)
    else:
        row_queries, column_queries = _sides(query, group)
        row_weights = row_queries @ column_keys.transpose(1, 2)
        column_weights = row_keys @ column_queries.transpose(1, 2)
    row_bias, column_bias = _key_bias(bias, key, group)
    if row_bias is not None and column_bias is not None:
        row_weights = torch.add(column_bias.unsqueeze(1), row_weights, alpha=scale)
        column_weights = torch.add(row_bias.unsqueeze(2), column_weights, alpha=scale)
    elif scale != 1:
        row_weights, column_weights = row_weights * scale, column_weights * scale
    return row_weights.softmax(dim=2), column_weights.softmax(dim=1)


def _block_backward(
    grad: Tensor,
    weights: Weights,
    inputs: Inputs,
    group: PairGroup,
    scale: float,
    grads: Gradients,
) -> None:
    query, key, value, _ = inputs
    row_weights, column_weights = weights.row_weights, weights.column_weights
    row_grad, column_grad = _sides_of_grad(grad, group)
    row_values, column_values = _sides(value, group)
    _add(grads.value, group, COLUMNS, row_weights.transpose(1, 2) @ row_grad)
    _add(grads.value, group, ROWS, column_weights @ column_grad)
    row_slope = _softmax_slope(row_grad @ column_values.transpose(1, 2), row_weights, 2)
    column_slope = _softmax_slope(row_values @ column_grad.transpose(1, 2), column_weights, 1)
    _add_bias(grads.bias, group, COLUMNS, row_slope.sum(dim=1))
    _add_bias(grads.bias, group, ROWS, column_slope.sum(dim=2))
    row_keys, column_keys = _sides(key, group)
    if query is None:
        slope = row_slope.add_(column_slope)
        if scale != 1:
            slope *= scale
        _add(grads.key, group, ROWS, slope @ column_keys)
        _add(grads.key, group, COLUMNS, slope.transpose(1, 2) @ row_keys)
        return
    row_slope, column_slope = row_slope * scale, column_slope * scale
    row_queries, column_queries = _sides(query, group)
    _add(grads.of_queries, group, ROWS, row_slope @ column_keys)
    _add(grads.key, group, COLUMNS, row_slope.transpose(1, 2) @ row_queries)
    _add(grads.of_queries, group, COLUMNS, column_slope.transpose(1, 2) @ row_keys)
    _add(grads.key, group, ROWS, column_slope @ column_queries)


def _softmax_slope(grad: Tensor, weights: Tensor, dim: int) -> Tensor:
    slope: Tensor = torch._softmax_backward_data(grad, weights, dim, weights.dtype)
    return slope


def _slices(group: PairGroup, side: int) -> list[slice]:
    height = max(1, MAX_CELLS // _nodes(group, 1 - side).numel())
    return [slice(at, at + height) for at in range(0, _nodes(group, side).shape[1], height)]


def _slice_weights(queries: Tensor, keys: Tensor, key_bias: Tensor | None, scale: float) -> Tensor:
    if key_bias is None:
        return ((queries @ keys.transpose(1, 2)) * scale).softmax(dim=2)
    scores = torch.baddbmm(key_bias.unsqueeze(1), queries, keys.transpose(1, 2), alpha=scale)
    return scores.softmax(dim=2)


def _sliced_forward(inputs: Inputs, group: PairGroup, scale: float, out: Tensor) -> None:
    query, key, value, bias = inputs
    all_queries = _sides(key if query is None else query, group)
    all_keys, all_values = _sides(key, group), _sides(value, group)
    all_bias = _key_bias(bias, key, group)
    for side, other in ((ROWS, COLUMNS), (COLUMNS, ROWS)):
        queries, keys, values = all_queries[side], all_keys[other], all_values[other]
        result = values.new_empty(*queries.shape[:2], values.shape[2])
        for part in _slices(group, side):
            weights = _slice_weights(queries[:, part], keys, all_bias[other], scale)
            result[:, part] = weights @ values
        _put(out, group, side, result)


def _joint_slices(
    key: Tensor, value: Tensor, bias: Tensor | None, group: PairGroup, scale: float, out: Tensor
) -> bool:
    """As :func:`_joint_block` in slices of rows, one of which is held at a time.

    Returns:
        Whether it was done; not where a sum would vanish.
    """
    assert bias is not None, "distances have one"
    row_keys, column_keys = _sides(key, group)
    row_values, column_values = _sides(value, group)
    row_bias, column_bias = _sides(bias.unsqueeze(1), group)
    row_out, column_out = torch.empty_like(row_values), torch.zeros_like(column_values)
    column_sums = column_bias.new_zeros(column_bias.shape)
    for part in _slices(group, ROWS):
        joint = torch.baddbmm(
            row_bias[:, part], row_keys[:, part], column_keys.transpose(1, 2), alpha=scale
        )
        joint.add_(column_bias.transpose(1, 2)).exp_()
        row_sums = joint.sum(dim=2, keepdim=True)
        if not float(row_sums.min()) > SMALLEST_SUM:
            return False
        torch.div(joint @ column_values, row_sums, out=row_out[:, part])
        column_out.baddbmm_(joint.transpose(1, 2), row_values[:, part])
        column_sums += joint.sum(dim=1).unsqueeze(2)
    if not float(column_sums.min()) > SMALLEST_SUM:
        return False
    _put(out, group, ROWS, row_out)
    _put(out, group, COLUMNS, column_out.div_(column_sums))
    return True


def _tiled_forward(inputs: Inputs, group: PairGroup, kind: ScoreKind, out: Tensor) -> None:
    """One pair after the other, each of which is large enough to be worth a call."""
    query, key, value, bias = inputs
    is_joint = query is None and bias is not None and kind.distances
    if bias is None:
        bias = key.new_zeros(len(key))
    arrays = [(key if query is None else query), key, value, bias]
    whole = Side(*(array.detach().numpy() for array in arrays))
    target = out.numpy()
    sides = (group.rows, group.row_sizes), (group.columns, group.column_sizes)
    for nodes in zip(*(_runs(*side) for side in sides), strict=True):
        rows, columns = (whole.part(run) for run in nodes)
        outs = joint_both_ways(rows, columns, kind.scale, SMALLEST_SUM) if is_joint else None
        if outs is None:
            outs = softmax_both_ways(rows, columns, kind.scale)
        for run, result in zip(nodes, outs, strict=True):
            target[run] = result


def _runs(nodes: Tensor, sizes: Tensor) -> list[slice]:
    """The nodes of each graph, which follow each other; padding is left out."""
    firsts = nodes[:, 0].tolist()
    return [slice(a, a + size) for a, size in zip(firsts, sizes.tolist(), strict=True)]


def _sliced_backward(
    grad: Tensor, inputs: Inputs, group: PairGroup, scale: float, grads: Gradients
) -> None:
    query, key, value, bias = inputs
    all_queries = _sides(key if query is None else query, group)
    all_keys, all_values = _sides(key, group), _sides(value, group)
    all_bias, all_grads = _key_bias(bias, key, group), _sides_of_grad(grad, group)
    for side, other in ((ROWS, COLUMNS), (COLUMNS, ROWS)):
        queries, keys, values = all_queries[side], all_keys[other], all_values[other]
        query_grad, key_grad = torch.zeros_like(queries), torch.zeros_like(keys)
        value_grad, bias_grad = torch.zeros_like(values), keys.new_zeros(keys.shape[:2])
        for part in _slices(group, side):
            weights = _slice_weights(queries[:, part], keys, all_bias[other], scale)
            part_grad = all_grads[side][:, part]
            value_grad += weights.transpose(1, 2) @ part_grad
            slope = _softmax_slope(part_grad @ values.transpose(1, 2), weights, 2)
            bias_grad += slope.sum(dim=1)
            slope = slope * scale
            query_grad[:, part] = slope @ keys
            key_grad += slope.transpose(1, 2) @ queries[:, part]
        _add(grads.of_queries, group, side, query_grad)
        _add(grads.key, group, other, key_grad)
        _add(grads.value, group, other, value_grad)
        _add_bias(grads.bias, group, other, bias_grad)
