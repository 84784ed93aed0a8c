"""The aggregator's gated sum, and Adam: passes over plain arrays."""

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
