"""Fused CPU kernels, compiled by numba when first used and cached on disk.

Each kernel does in one pass what plain torch does in many operators with large
intermediates. All are written over C-contiguous arrays: with strides unknown at compile
time the inner loops would not vectorise (measured 7 to 20 times slower). They hold no
Python object, so they release the interpreter lock.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import overload
from numpy.typing import NDArray

Array = NDArray[Any]

# Reassociation is what lets a float reduction vectorise; it also ruins the two-part
# argument reduction of `_exp`, which therefore has a list without it.
_FAST = {"reassoc", "contract", "nsz", "arcp"}
_EXACT_ORDER = {"contract", "nsz"}
# Python's division checks for zero, and that branch stops the vectoriser.
_KERNEL = {"fastmath": _FAST, "error_model": "numpy", "nogil": True, "cache": True}
_SCALAR = {"fastmath": _EXACT_ORDER, "error_model": "numpy", "inline": "always"}


def _exp(x: float) -> float:
    """exp of one float; vectorises in single precision. Replaced by the overload below."""
    return math.exp(x)


@overload(_exp, jit_options={"fastmath": _EXACT_ORDER})
def _overload_exp(x: Any) -> Any:
    if x != types.float32:
        return lambda x: math.exp(x)
    log2e = np.float32(1.4426950408889634)
    ln2_high, ln2_low = np.float32(0.693359375), np.float32(-2.12194440e-4)
    low, high = np.float32(-87.0), np.float32(88.0)
    half, one = np.float32(0.5), np.float32(1.0)
    c2, c3, c4, c5, c6, c7 = (np.float32(1 / math.factorial(k)) for k in range(2, 8))

    def single(x: Any) -> Any:
        # exp(x) = 2^n exp(r) with |r| <= ln2 / 2; the power of two goes into the exponent bits.
        # Plain selects: numba's min and max treat NaN apart, and that stops the vectoriser.
        x = low if x < low else x
        x = high if x > high else x
        n = np.floor(x * log2e + half)
        r = (x - n * ln2_high) - n * ln2_low
        series = c2 + r * (c3 + r * (c4 + r * (c5 + r * (c6 + r * c7))))
        power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23)).view(np.float32)
        return (one + r + r * r * series) * power

    return single


@njit(**_SCALAR)  # type: ignore[untyped-decorator]
def _sigmoid(x: Any) -> Any:
    one = type(x)(1.0)
    return one / (one + _exp(-x))


@njit(**_SCALAR)  # type: ignore[untyped-decorator]
def _tanh(x: Any) -> Any:
    # Near 0 the exponential form cancels; the odd series up to x^9 is exact to rounding there.
    one, two = type(x)(1.0), type(x)(2.0)
    far = one - two / (one + _exp(two * x))
    s = x * x
    c3, c5 = type(x)(-1 / 3), type(x)(2 / 15)
    c7, c9 = type(x)(-17 / 315), type(x)(62 / 2835)
    near = x * (one + s * (c3 + s * (c5 + s * (c7 + s * c9))))
    return near if s < type(x)(0.02) else far


@njit(**_KERNEL)  # type: ignore[untyped-decorator]
def message_sum_forward(
    projected: Array, offsets: Array, neighbours: Array, table: Array, rows: Array
) -> Array:
    """out_i = sum_j relu(a_i + b_j + c_ij), with projected = [a | b] and c_ij = table[rows].

    An empty ``table`` (no rows) stands for c = 0.
    """
    width = projected.shape[1] // 2
    count = offsets.shape[0] - 1
    zero = projected.dtype.type(0)
    has_edges = table.shape[0] > 0
    out = np.zeros((count, width), dtype=projected.dtype)
    for i in range(count):
        for e in range(offsets[i], offsets[i + 1]):
            j = neighbours[e]
            if has_edges:
                row = rows[e]
                for k in range(width):
                    value = projected[i, k] + projected[j, width + k] + table[row, k]
                    out[i, k] += value if value > zero else zero
            else:
                for k in range(width):
                    value = projected[i, k] + projected[j, width + k]
                    out[i, k] += value if value > zero else zero
    return out


@njit(**_KERNEL)  # type: ignore[untyped-decorator]
def message_sum_backward(
    grad: Array,
    projected: Array,
    offsets: Array,
    neighbours: Array,
    table: Array,
    rows: Array,
) -> tuple[Array, Array]:
    """Gradients of ``message_sum_forward`` for ``projected`` and ``table``."""
    width = projected.shape[1] // 2
    zero = projected.dtype.type(0)
    has_edges = table.shape[0] > 0
    grad_projected = np.zeros_like(projected)
    grad_table = np.zeros_like(table)
    for i in range(offsets.shape[0] - 1):
        for e in range(offsets[i], offsets[i + 1]):
            j = neighbours[e]
            if has_edges:
                row = rows[e]
                for k in range(width):
                    value = projected[i, k] + projected[j, width + k] + table[row, k]
                    passed = grad[i, k] if value > zero else zero
                    grad_projected[i, k] += passed
                    grad_projected[j, width + k] += passed
                    grad_table[row, k] += passed
            else:
                for k in range(width):
                    value = projected[i, k] + projected[j, width + k]
                    passed = grad[i, k] if value > zero else zero
                    grad_projected[i, k] += passed
                    grad_projected[j, width + k] += passed
    return grad_projected, grad_table


@njit(**_KERNEL)  # type: ignore[untyped-decorator]
def neighbour_sum_forward(x: Array, offsets: Array, neighbours: Array) -> Array:
    """out_i = sum of x_j over the entries that i owns."""
    out = np.zeros_like(x)
    for i in range(offsets.shape[0] - 1):
        for e in range(offsets[i], offsets[i + 1]):
            j = neighbours[e]
            for k in range(x.shape[1]):
                out[i, k] += x[j, k]
    return out


@njit(**_KERNEL)  # type: ignore[untyped-decorator]
def neighbour_sum_backward(grad: Array, offsets: Array, neighbours: Array) -> Array:
    """Gradient of ``neighbour_sum_forward`` for ``x``."""
    out = np.zeros_like(grad)
    for i in range(offsets.shape[0] - 1):
        for e in range(offsets[i], offsets[i + 1]):
            j = neighbours[e]
            for k in range(grad.shape[1]):
                out[j, k] += grad[i, k]
    return out


@njit(**_KERNEL)  # type: ignore[untyped-decorator]
def gru_forward(inputs: Array, states: Array, h: Array) -> tuple[Array, Array, Array]:
    """One GRU update from its two (N, 3D) pre-activations; gates in the order r, z, n.

    Returns the new state (N, D), the gates r and z (N, 2D) and the candidate n (N, D).
    One array is written in each inner loop: with more the vectoriser gives up on aliasing.
    """
    count, width = h.shape
    gates = np.empty((count, 2 * width), dtype=h.dtype)
    candidate = np.empty_like(h)
    out = np.empty_like(h)
    for i in range(count):
        for k in range(2 * width):
            gates[i, k] = _sigmoid(inputs[i, k] + states[i, k])
        for k in range(width):
            c = 2 * width + k
            candidate[i, k] = _tanh(inputs[i, c] + gates[i, k] * states[i, c])
        for k in range(width):
            n = candidate[i, k]
            out[i, k] = n + gates[i, width + k] * (h[i, k] - n)
    return out, gates, candidate


@njit(**_KERNEL)  # type: ignore[untyped-decorator]
def gru_backward(
    grad: Array, gates: Array, candidate: Array, states: Array, h: Array
) -> tuple[Array, Array, Array]:
    """Gradients of ``gru_forward`` for its three arguments."""
    count, width = h.shape
    one = h.dtype.type(1)
    grad_inputs = np.empty((count, 3 * width), dtype=h.dtype)
    grad_states = np.empty((count, 3 * width), dtype=h.dtype)
    grad_h = np.empty_like(h)
    grad_n = np.empty(width, dtype=h.dtype)
    for i in range(count):
        for k in range(width):
            n = candidate[i, k]
            grad_n[k] = grad[i, k] * (one - gates[i, width + k]) * (one - n * n)
        for k in range(width):
            r = gates[i, k]
            grad_inputs[i, k] = grad_n[k] * states[i, 2 * width + k] * r * (one - r)
        for k in range(width):
            z = gates[i, width + k]
            grad_inputs[i, width + k] = grad[i, k] * (h[i, k] - candidate[i, k]) * z * (one - z)
        for k in range(width):
            grad_inputs[i, 2 * width + k] = grad_n[k]
        for k in range(2 * width):
            grad_states[i, k] = grad_inputs[i, k]
        for k in range(width):
            grad_states[i, 2 * width + k] = grad_n[k] * gates[i, k]
        for k in range(width):
            grad_h[i, k] = grad[i, k] * gates[i, width + k]
    return grad_inputs, grad_states, grad_h


@njit(**_KERNEL)  # type: ignore[untyped-decorator]
def gated_sum_forward(x: Array, node_offsets: Array) -> Array:
    """out_g = sum over the nodes of g of sigmoid(gate) * value, with x = [gate | value]."""
    width = x.shape[1] // 2
    out = np.zeros((node_offsets.shape[0] - 1, width), dtype=x.dtype)
    for g in range(node_offsets.shape[0] - 1):
        for i in range(node_offsets[g], node_offsets[g + 1]):
            for k in range(width):
                out[g, k] += _sigmoid(x[i, k]) * x[i, width + k]
    return out


@njit(**_KERNEL)  # type: ignore[untyped-decorator]
def gated_sum_backward(grad: Array, x: Array, node_offsets: Array) -> Array:
    """Gradient of ``gated_sum_forward`` for ``x``."""
    width = x.shape[1] // 2
    one = x.dtype.type(1)
    out = np.empty_like(x)
    for g in range(node_offsets.shape[0] - 1):
        for i in range(node_offsets[g], node_offsets[g + 1]):
            for k in range(width):
                gate = _sigmoid(x[i, k])
                out[i, k] = grad[g, k] * x[i, width + k] * gate * (one - gate)
                out[i, width + k] = grad[g, k] * gate
    return out
