"""Updates of node states: the GRU, and the first step of nodes that all start alike."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.models.kernels.compiled.compile import kernel, sigmoid, tanh

Array = NDArray[Any]


@kernel
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
            gate[k] = sigmoid(row[k] + state[k] + bias[k])
        row_n, state_n, bias_n = row[2 * width :], state[2 * width :], bias[2 * width :]
        for k in range(width):
            new[k] = tanh(row_n[k] + gate[k] * (state_n[k] + bias_n[k]))
        keep, target = gate[width:], out[i]
        for k in range(width):
            target[k] = new[k] + keep[k] * (old[k] - new[k])


@kernel
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


@kernel
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
    """The first step of nodes that all start alike, by class: see ``FirstStep``.

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


@kernel
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
