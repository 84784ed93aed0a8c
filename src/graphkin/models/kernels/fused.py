"""Fused CPU kernels, compiled by numba when first used and cached on disk.

Each kernel does in one pass what plain torch does in many operators with large
intermediates. All are written over C-contiguous arrays: with strides unknown at compile
time the inner loops would not vectorise (measured 7 to 20 times slower). They hold no
Python object, so they release the interpreter lock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit, types
from numba.extending import overload
from numpy.typing import NDArray

Array = NDArray[Any]

# Reassociation is what lets a float reduction vectorise; it also ruins the two-part
# argument reduction of `_exp`, which therefore has a list without it.
_FAST = {"reassoc", "contract", "nsz", "arcp"}
_EXACT_ORDER = {"contract", "nsz"}
Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def _kernel(function: Kernel) -> Kernel:
    # Python's division checks for zero, and that branch stops the vectoriser.
    options: Any = {"fastmath": _FAST, "error_model": "numpy", "nogil": True}
    try:
        compiled: Kernel = njit(cache=True, **options)(function)
    except RuntimeError:  # no place for the cache: neither the package nor the home is writable
        compiled = njit(**options)(function)
    return compiled


def _scalar(function: Kernel) -> Kernel:
    options: Any = {"fastmath": _EXACT_ORDER, "error_model": "numpy", "inline": "always"}
    compiled: Kernel = njit(**options)(function)
    return compiled


def _exp(x: float) -> float:
    """exp of one float; vectorises in single precision. Replaced by the overload below."""
    return math.exp(x)


@overload(_exp, jit_options={"fastmath": _EXACT_ORDER})
def _overload_exp(x: Any) -> Any:
    if x != types.float32:

        def double(x: Any) -> Any:
            return math.exp(x)

        return double
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


@_scalar
def _sigmoid(x: Any) -> Any:
    one = type(x)(1.0)
    return one / (one + _exp(-x))


def _tanh(x: float) -> float:
    """tanh of one float; vectorises in single precision. Replaced by the overload below."""
    return math.tanh(x)


@overload(_tanh, jit_options={"fastmath": _EXACT_ORDER, "error_model": "numpy"})
def _overload_tanh(x: Any) -> Any:
    if x != types.float32:

        def double(x: Any) -> Any:
            return math.tanh(x)

        return double
    one, two, near_zero = np.float32(1), np.float32(2), np.float32(0.02)
    c3, c5, c7, c9 = (np.float32(c) for c in (-1 / 3, 2 / 15, -17 / 315, 62 / 2835))

    def single(x: Any) -> Any:
        # Near 0 the exponential form cancels; there the odd series up to x^9 is exact to rounding.
        far = one - two / (one + _exp(two * x))
        s = x * x
        near = x * (one + s * (c3 + s * (c5 + s * (c7 + s * c9))))
        return near if s < near_zero else far

    return single


@_kernel
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


@_kernel
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


@_kernel
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


@_kernel
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


@_kernel
def neighbour_sum_forward(x: Array, offsets: Array, neighbours: Array) -> Array:
    """out_i = sum of x_j over the entries that i owns."""
    out = np.zeros_like(x)
    for i in range(offsets.shape[0] - 1):
        for e in range(offsets[i], offsets[i + 1]):
            j = neighbours[e]
            for k in range(x.shape[1]):
                out[i, k] += x[j, k]
    return out


@_kernel
def neighbour_sum_backward(grad: Array, offsets: Array, neighbours: Array) -> Array:
    """Gradient of ``neighbour_sum_forward`` for ``x``."""
    out = np.zeros_like(grad)
    for i in range(offsets.shape[0] - 1):
        for e in range(offsets[i], offsets[i + 1]):
            j = neighbours[e]
            for k in range(grad.shape[1]):
                out[j, k] += grad[i, k]
    return out


@_kernel
def gru_forward(
    inputs: Array,
    projected: Array,
    first: int,
    bias: Array,
    h: Array,
    out: Array,
    gates: Array,
    candidate: Array,
) -> None:
    """One GRU update; gates in the order r, z, n.

    The pre-activation of the input is ``inputs`` (N, 3D); that of the state is ``bias`` plus
    3D columns of ``projected`` from ``first`` on. Writes the new state to ``out`` (N, D), and
    r and z (N, 2D) and n (N, D) for the backward pass. One array is written in each inner
    loop: with more the vectoriser gives up on aliasing.
    """
    count, width = h.shape
    for i in range(count):
        row, gate, new, old = inputs[i], gates[i], candidate[i], h[i]
        state = projected[i, first : first + 3 * width]
        for k in range(2 * width):
            gate[k] = _sigmoid(row[k] + state[k] + bias[k])
        row_n, state_n, bias_n = row[2 * width :], state[2 * width :], bias[2 * width :]
        for k in range(width):
            new[k] = _tanh(row_n[k] + gate[k] * (state_n[k] + bias_n[k]))
        keep, target = gate[width:], out[i]
        for k in range(width):
            target[k] = new[k] + keep[k] * (old[k] - new[k])


@_kernel
def gru_backward(
    grad: Array,
    gates: Array,
    candidate: Array,
    projected: Array,
    first: int,
    bias: Array,
    h: Array,
    grad_inputs: Array,
    grad_projected: Array,
    grad_bias: Array,
    grad_h: Array,
) -> None:
    """Writes the gradients of ``gru_forward``; that of the bias is added to what is there."""
    count, width = h.shape
    one = h.dtype.type(1)
    bias_n = bias[2 * width :]
    for i in range(count):
        g, r, z, n = grad[i], gates[i, :width], gates[i, width:], candidate[i]
        old, state_n = h[i], projected[i, first + 2 * width : first + 3 * width]
        slope_r = grad_inputs[i, :width]
        slope_z = grad_inputs[i, width : 2 * width]
        slope_n = grad_inputs[i, 2 * width :]
        for k in range(width):
            slope_n[k] = g[k] * (one - z[k]) * (one - n[k] * n[k])
        for k in range(width):
            slope_z[k] = g[k] * (old[k] - n[k]) * z[k] * (one - z[k])
        for k in range(width):
            slope_r[k] = slope_n[k] * (state_n[k] + bias_n[k]) * r[k] * (one - r[k])
        both, grad_gates = grad_inputs[i], grad_projected[i, first : first + 2 * width]
        for k in range(2 * width):
            grad_gates[k] = both[k]
        grad_state_n = grad_projected[i, first + 2 * width : first + 3 * width]
        for k in range(width):
            grad_state_n[k] = slope_n[k] * r[k]
        grad_state = grad_projected[i, first : first + 3 * width]
        for k in range(3 * width):
            grad_bias[k] += grad_state[k]
        target = grad_h[i]
        for k in range(width):
            target[k] = g[k] * z[k]


@_kernel
def first_step_forward(
    projected: Array,
    networks: Array,
    counts: Array,
    fold: Array,
    start: Array,
    classes: Array,
    summed: Array,
    gates: Array,
    candidate: Array,
    new: Array,
    out: Array,
    width: int,
) -> None:
    """The first step of nodes that all start alike, by class: see ``_FirstStep``.

    ``projected`` (W,) are the projections of the common start, biases included; ``counts``
    (C, R) the messages of each class on each route. Writes the classes' states to ``new``
    (C, D) and the nodes' to ``out`` (N, D).
    """
    number, routes = counts.shape
    states = np.empty((number, 3 * new.shape[1]), dtype=new.dtype)
    inputs = np.empty_like(states)
    old = np.empty_like(new)
    for c in range(number):
        for r in range(routes):
            receiver = 2 * width * networks[r]
            for k in range(width):
                value = projected[receiver + k] + projected[receiver + width + k]
                summed[c, r * width + k] = 0 if value <= 0 else counts[c, r] * value
            summed[c, routes * width + r] = counts[c, r]
        summed[c, routes * width + routes] = 1
        row, total = summed[c], inputs[c]
        total[:] = 0
        for k in range(fold.shape[0]):
            value, weights = row[k], fold[k]
            for o in range(len(total)):
                total[o] += value * weights[o]
        states[c] = projected[projected.shape[0] - states.shape[1] :]
        old[c] = start
    bias = np.zeros(states.shape[1], dtype=new.dtype)
    gru_forward(inputs, states, 0, bias, old, new, gates, candidate)
    for i in range(out.shape[0]):
        out[i] = new[classes[i]]


@_kernel
def first_step_backward(
    grad: Array,
    projected: Array,
    networks: Array,
    counts: Array,
    fold: Array,
    start: Array,
    classes: Array,
    summed: Array,
    gates: Array,
    candidate: Array,
    grad_fold: Array,
    grad_projected: Array,
    grad_start: Array,
    width: int,
) -> None:
    """Gradients of ``first_step_forward``; those of ``fold`` are added to what is there."""
    number, routes = counts.shape
    by_class = np.zeros_like(candidate)
    for i in range(grad.shape[0]):
        row, target = grad[i], by_class[classes[i]]
        for k in range(len(row)):
            target[k] += row[k]
    states = np.empty((number, 3 * candidate.shape[1]), dtype=grad.dtype)
    old = np.empty_like(candidate)
    for c in range(number):
        states[c] = projected[projected.shape[0] - states.shape[1] :]
        old[c] = start
    grad_inputs, grad_states = np.empty_like(states), np.empty_like(states)
    grad_old = np.empty_like(old)
    bias = np.zeros(states.shape[1], dtype=grad.dtype)
    grad_bias = np.zeros_like(bias)
    gru_backward(
        by_class,
        gates,
        candidate,
        states,
        0,
        bias,
        old,
        grad_inputs,
        grad_states,
        grad_bias,
        grad_old,
    )
    grad_summed = np.zeros(fold.shape[0], dtype=grad.dtype)
    grad_projected[:] = 0
    grad_projected[grad_projected.shape[0] - len(grad_bias) :] = grad_bias
    grad_start[:] = 0
    for c in range(number):
        grad_start += grad_old[c]
        row, slopes = summed[c], grad_inputs[c]
        for k in range(fold.shape[0]):
            value, weights, grad_weights = row[k], fold[k], grad_fold[k]
            total = fold.dtype.type(0)
            for o in range(len(slopes)):
                total += slopes[o] * weights[o]
            grad_summed[k] = total
            for o in range(len(slopes)):
                grad_weights[o] += value * slopes[o]
        for r in range(routes):
            receiver = 2 * width * networks[r]
            for k in range(width):
                if not projected[receiver + k] + projected[receiver + width + k] <= 0:
                    passed = counts[c, r] * grad_summed[r * width + k]
                    grad_projected[receiver + k] += passed
                    grad_projected[receiver + width + k] += passed


@_kernel
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
                total[k] += _sigmoid(gate[k] + gate_bias[k]) * (value[k] + value_bias[k])


@_kernel
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
                sigma[k] = _sigmoid(gate[k] + gate_bias[k])
            for k in range(width):
                slope = sigma[k] * (one - sigma[k])
                grad_gate[k] = incoming[k] * (value[k] + value_bias[k]) * slope
            for k in range(width):
                grad_value[k] = incoming[k] * sigma[k]
            both = grad_x[i]
            for k in range(2 * width):
                grad_bias[k] += both[k]


@_kernel
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
