"""Sums over the messages that each node receives."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.models.kernels.compiled.compile import kernel

Array = NDArray[Any]


@kernel
def message_forward(
    projected: Array,
    first: int,
    bias: Array,
    offsets: Array,
    neighbours: Array,
    table: Array,
    rows: Array,
    out: Array,
    column: int,
    count_column: int,
    width: int,
) -> None:
    """out_i = sum_j relu(a_i + bias + b_j + c_ij).

    ``projected`` holds a in ``width`` columns from ``first`` on and b in the next ``width``;
    c_ij = table[rows], and an empty table stands for c = 0. The result goes to ``width``
    columns of ``out`` from ``column`` on, and the number of messages to ``count_column``.
    """
    for i in range(offsets.shape[0] - 1):
        out[i, count_column] = offsets[i + 1] - offsets[i]
    if table.shape[0] > 0:
        _message_forward_with_edges(
            projected, first, bias, offsets, neighbours, table, rows, out, column, width
        )
        return
    zero = projected.dtype.type(0)
    base = np.empty(width, dtype=projected.dtype)
    total = np.empty(width, dtype=projected.dtype)
    for i in range(offsets.shape[0] - 1):
        receiver = projected[i, first : first + width]
        for k in range(width):
            base[k] = receiver[k] + bias[k]
        for k in range(width):
            total[k] = zero
        # Two messages at a time halve the traffic on the running total.
        start, stop = offsets[i], offsets[i + 1]
        for e in range(start, stop - 1, 2):
            sender = projected[neighbours[e], first + width : first + 2 * width]
            other = projected[neighbours[e + 1], first + width : first + 2 * width]
            for k in range(width):
                value, second = base[k] + sender[k], base[k] + other[k]
                value = zero if value <= zero else value
                second = zero if second <= zero else second
                total[k] += value + second
        if (stop - start) % 2:
            sender = projected[neighbours[stop - 1], first + width : first + 2 * width]
            for k in range(width):
                value = base[k] + sender[k]
                total[k] += zero if value <= zero else value
        target = out[i, column : column + width]
        for k in range(width):
            target[k] = total[k]


@kernel
def _message_forward_with_edges(
    projected: Array,
    first: int,
    bias: Array,
    offsets: Array,
    neighbours: Array,
    table: Array,
    rows: Array,
    out: Array,
    column: int,
    width: int,
) -> None:
    zero = projected.dtype.type(0)
    base = np.empty(width, dtype=projected.dtype)
    total = np.empty(width, dtype=projected.dtype)
    for i in range(offsets.shape[0] - 1):
        receiver = projected[i, first : first + width]
        for k in range(width):
            base[k] = receiver[k] + bias[k]
        for k in range(width):
            total[k] = zero
        for e in range(offsets[i], offsets[i + 1]):
            sender = projected[neighbours[e], first + width : first + 2 * width]
            term = table[rows[e]]
            for k in range(width):
                value = base[k] + sender[k] + term[k]
                total[k] += zero if value <= zero else value
        target = out[i, column : column + width]
        for k in range(width):
            target[k] = total[k]


@kernel
def message_backward(
    grad: Array,
    column: int,
    projected: Array,
    first: int,
    bias: Array,
    offsets: Array,
    neighbours: Array,
    table: Array,
    rows: Array,
    grad_projected: Array,
    grad_bias: Array,
    grad_table: Array,
    width: int,
    fresh: bool,
) -> None:
    """Adds the gradients of ``message_forward``; ``fresh`` clears its columns beforehand."""
    zero = projected.dtype.type(0)
    if fresh:
        for i in range(offsets.shape[0] - 1):
            both = grad_projected[i, first : first + 2 * width]
            for k in range(2 * width):
                both[k] = zero
    has_edges = table.shape[0] > 0
    base = np.empty(width, dtype=projected.dtype)
    total = np.empty(width, dtype=projected.dtype)
    incoming = np.empty(width, dtype=projected.dtype)
    for i in range(offsets.shape[0] - 1):
        receiver, own = projected[i, first : first + width], grad[i, column : column + width]
        for k in range(width):
            base[k] = receiver[k] + bias[k]
        for k in range(width):
            incoming[k] = own[k]
        for k in range(width):
            total[k] = zero
        start, stop = offsets[i], offsets[i + 1]
        if has_edges:
            for e in range(start, stop):
                j = neighbours[e]
                _message_slope_with_edge(
                    incoming,
                    base,
                    projected[j, first + width : first + 2 * width],
                    table[rows[e]],
                    total,
                    grad_projected[j, first + width : first + 2 * width],
                    grad_table[rows[e]],
                )
        else:
            for e in range(start, stop):
                j = neighbours[e]
                sender = projected[j, first + width : first + 2 * width]
                grad_sender = grad_projected[j, first + width : first + 2 * width]
                for k in range(width):
                    passed = zero if base[k] + sender[k] <= zero else incoming[k]
                    total[k] += passed
                    grad_sender[k] += passed
        grad_receiver = grad_projected[i, first : first + width]
        for k in range(width):
            grad_receiver[k] += total[k]
        for k in range(width):
            grad_bias[k] += total[k]


@kernel
def _message_slope_with_edge(
    incoming: Array,
    base: Array,
    sender: Array,
    term: Array,
    total: Array,
    grad_sender: Array,
    grad_term: Array,
) -> None:
    zero = incoming.dtype.type(0)
    for k in range(len(incoming)):
        passed = zero if base[k] + sender[k] + term[k] <= zero else incoming[k]
        total[k] += passed
        grad_sender[k] += passed
        grad_term[k] += passed


@kernel
def neighbour_sum_forward(x: Array, offsets: Array, neighbours: Array) -> Array:
    """out_i = sum of x_j over the entries that i owns."""
    out = np.zeros_like(x)
    for i in range(offsets.shape[0] - 1):
        for e in range(offsets[i], offsets[i + 1]):
            j = neighbours[e]
            for k in range(x.shape[1]):
                out[i, k] += x[j, k]
    return out


@kernel
def neighbour_sum_backward(grad: Array, offsets: Array, neighbours: Array) -> Array:
    """Gradient of ``neighbour_sum_forward`` for ``x``."""
    out = np.zeros_like(grad)
    for i in range(offsets.shape[0] - 1):
        for e in range(offsets[i], offsets[i + 1]):
            j = neighbours[e]
            for k in range(grad.shape[1]):
                out[j, k] += grad[i, k]
    return out
