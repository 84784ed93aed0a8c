"""Sums and normalisation over the nodes of each graph, and Adam over a flat array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.models.kernels.compiled.compile import kernel, sigmoid

Array = NDArray[Any]


@kernel
def gated_sum_forward(x: Array, bias: Array, node_offsets: Array, out: Array) -> None:
    """out_g = sum over the nodes of g of sigmoid(gate) * value, with x + bias = [gate | value]."""
    width = x.shape[1] // 2
    gate_bias, value_bias = bias[:width], bias[width:]
    for g in range(node_offsets.shape[0] - 1):
        total = out[g]
        for k in range(width):
            total[k] = 0
        for i in range(node_offsets[g], node_offsets[g + 1]):
            gate, value = x[i, :width], x[i, width:]
            for k in range(width):
                total[k] += sigmoid(gate[k] + gate_bias[k]) * (value[k] + value_bias[k])


@kernel
def gated_sum_backward(
    grad: Array, x: Array, bias: Array, node_offsets: Array, grad_x: Array, grad_bias: Array
) -> None:
    """Gradients of ``gated_sum_forward``; that of the bias is added to what is there."""
    width = x.shape[1] // 2
    one = x.dtype.type(1)
    gate_bias, value_bias = bias[:width], bias[width:]
    sigma = np.empty(width, dtype=x.dtype)
    for g in range(node_offsets.shape[0] - 1):
        incoming = grad[g]
        for i in range(node_offsets[g], node_offsets[g + 1]):
            gate, value = x[i, :width], x[i, width:]
            grad_gate, grad_value = grad_x[i, :width], grad_x[i, width:]
            for k in range(width):
                sigma[k] = sigmoid(gate[k] + gate_bias[k])
            for k in range(width):
                slope = sigma[k] * (one - sigma[k])
                grad_gate[k] = incoming[k] * (value[k] + value_bias[k]) * slope
            for k in range(width):
                grad_value[k] = incoming[k] * sigma[k]
            both = grad_x[i]
            for k in range(2 * width):
                grad_bias[k] += both[k]


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


@kernel
def adam(
    weights: Array,
    grad: Array,
    mean: Array,
    square: Array,
    rate: float,
    beta1: float,
    beta2: float,
    scale: float,
    epsilon: float,
) -> None:
    """One Adam update of a flat array in a single pass; see ``FlatOptimizer``."""
    kind = weights.dtype.type
    rate_, scale_, epsilon_ = kind(rate), kind(scale), kind(epsilon)
    b1, b2, one = kind(beta1), kind(beta2), kind(1)
    for k in range(len(weights)):
        g = grad[k]
        mean[k] = b1 * mean[k] + (one - b1) * g
        square[k] = b2 * square[k] + (one - b2) * g * g
        weights[k] -= rate_ * mean[k] / (np.sqrt(square[k]) * scale_ + epsilon_)
