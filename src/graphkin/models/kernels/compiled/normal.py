"""Columns of node states brought to mean 0 and variance 1 over the nodes of each graph."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.models.kernels.compiled.compile import kernel

Array = NDArray[Any]


@kernel
def graph_norm_forward(
    x: Array, width: int, node_offsets: Array, epsilon: float, scales: Array
) -> None:
    """Normalises the first ``width`` columns in place; ``scales`` (graphs, width) are 1 / sigma."""
    one, small = x.dtype.type(1), x.dtype.type(epsilon)
    mean = np.empty(width, dtype=x.dtype)
    for g in range(node_offsets.shape[0] - 1):
        start, stop = node_offsets[g], node_offsets[g + 1]
        scale = scales[g]
        for k in range(width):
            mean[k] = 0
            scale[k] = 0
        if start == stop:
            continue
        share = one / x.dtype.type(stop - start)
        for i in range(start, stop):
            row = x[i, :width]
            for k in range(width):
                mean[k] += row[k]
        for k in range(width):
            mean[k] *= share
        for i in range(start, stop):
            row = x[i, :width]
            for k in range(width):
                row[k] -= mean[k]
                scale[k] += row[k] * row[k]
        for k in range(width):
            scale[k] = one / np.sqrt(scale[k] * share + small)
        for i in range(start, stop):
            row = x[i, :width]
            for k in range(width):
                row[k] *= scale[k]


@kernel
def graph_norm_backward(
    grad: Array, normal: Array, width: int, node_offsets: Array, scales: Array
) -> None:
    """Turns the gradient of the normalised columns into that of the columns, in place."""
    one = grad.dtype.type(1)
    mean = np.empty(width, dtype=grad.dtype)
    along = np.empty(width, dtype=grad.dtype)
    for g in range(node_offsets.shape[0] - 1):
        start, stop = node_offsets[g], node_offsets[g + 1]
        if start == stop:
            continue
        share = one / grad.dtype.type(stop - start)
        for k in range(width):
            mean[k] = 0
            along[k] = 0
        for i in range(start, stop):
            incoming, row = grad[i, :width], normal[i, :width]
            for k in range(width):
                mean[k] += incoming[k]
                along[k] += incoming[k] * row[k]
        for k in range(width):
            mean[k] *= share
            along[k] *= share
        scale = scales[g]
        for i in range(start, stop):
            incoming, row = grad[i, :width], normal[i, :width]
            for k in range(width):
                incoming[k] = (incoming[k] - mean[k] - row[k] * along[k]) * scale[k]
