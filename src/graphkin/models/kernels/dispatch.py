"""The inner loops of the models: fused where numba can run, plain torch elsewhere.

The choice is made at each call: fused on the CPU in single or double precision, plain
torch on other devices, under ``torch.compile`` and under autocast. Set the environment
variable ``GRAPHKIN_KERNELS`` to ``torch`` to use the plain ones throughout.
"""

from __future__ import annotations

import os
import warnings
from functools import cache

import torch
from torch import Tensor

from graphkin.errors import ConfigError
from graphkin.graphs.batch import Adjacency
from graphkin.models.kernels import plain

BACKENDS = ("fused", "torch")


@cache
def backend() -> str:
    """``fused`` or ``torch``: what CPU tensors run on in this process."""
    chosen = os.environ.get("GRAPHKIN_KERNELS", "fused")
    if chosen not in BACKENDS:
        raise ConfigError(f"GRAPHKIN_KERNELS must be one of {', '.join(BACKENDS)}; got {chosen!r}")
    if chosen == "fused":
        try:
            import graphkin.models.kernels.compiled  # noqa: F401
        except ImportError as error:
            warnings.warn(
                f"graphkin runs on plain torch, several times slower: {error}. "
                "Install numba for the fused kernels.",
                RuntimeWarning,
                stacklevel=2,
            )
            return "torch"
    return chosen


def use_fused(tensor: Tensor) -> bool:
    """Whether the fused kernels compute with this tensor."""
    if torch.compiler.is_compiling() or tensor.device.type != "cpu":
        return False
    if torch.is_autocast_enabled("cpu"):
        return False
    return tensor.dtype in (torch.float32, torch.float64) and backend() == "fused"


def message_sum(
    projected: Tensor, adjacency: Adjacency, table: Tensor | None, rows: Tensor | None
) -> Tensor:
    """out_i = sum_j relu(a_i + b_j + c_ij) over the messages that node i owns.

    Args:
        projected: (N, 2H), a (for the receiver) beside b (for the sender).
        adjacency: who receives from whom.
        table: (R, H) edge terms, or None for c = 0.
        rows: (E,) row of the table for each message, in the order of ``adjacency``.

    Returns:
        (N, H)
    """
    if use_fused(projected):
        from graphkin.models.kernels.autograd import MessageSum

        return MessageSum.run(projected, adjacency, table, rows)
    return plain.message_sum(projected, adjacency, table, rows)


def neighbour_sum(x: Tensor, adjacency: Adjacency) -> Tensor:
    """out_i = sum of x_j over the entries that node i owns: (N, H) -> (N, H)."""
    if use_fused(x):
        from graphkin.models.kernels.autograd import NeighbourSum

        return NeighbourSum.run(x, adjacency)
    return plain.neighbour_sum(x, adjacency)


def gated_sum(
    h: Tensor, weight: Tensor, bias: Tensor, node_offsets: Tensor, node_graph: Tensor
) -> Tensor:
    """Sum over each graph's nodes of sigmoid(gate) * value, with [gate | value] = W h + b.

    Args:
        h: (N, D)
        weight: (2G, D), rows of the gate first.
        bias: (2G,)
        node_offsets: (graphs + 1,)
        node_graph: (N,)

    Returns:
        (graphs, G)
    """
    if use_fused(h):
        from graphkin.models.kernels.autograd import GatedSum

        return GatedSum.run(h, weight, bias, node_offsets)
    return plain.gated_sum(h, weight, bias, node_offsets, node_graph)


def adam(
    weights: Tensor,
    grad: Tensor,
    mean: Tensor,
    square: Tensor,
    rate: float,
    beta1: float,
    beta2: float,
    scale: float,
    epsilon: float,
) -> None:
    """One Adam update of flat arrays, in place.

    mean and square follow the gradient and its square; then
    weights -= rate * mean / (sqrt(square) * scale + epsilon), where rate and scale carry the
    corrections for the first steps.
    """
    options = rate, beta1, beta2, scale, epsilon
    if use_fused(weights):
        from graphkin.models.kernels import compiled

        compiled.adam(weights.numpy(), grad.numpy(), mean.numpy(), square.numpy(), *options)
        return
    plain.adam(weights, grad, mean, square, *options)
