"""Fused CPU kernels, compiled by numba when first used and cached on disk.

Each kernel does in one pass what plain torch does in many operators with large
intermediates. All are written over C-contiguous arrays, and take slices of rows before an inner
loop runs over them: with strides, or signs of an index, unknown at compile time the loops would
not vectorise (measured 7 to 20 times slower).
"""

from graphkin.models.kernels.compiled.attention import joint_attention, softmax_attention
from graphkin.models.kernels.compiled.messages import (
    message_backward,
    message_forward,
    neighbour_sum_backward,
    neighbour_sum_forward,
)
from graphkin.models.kernels.compiled.reductions import (
    adam,
    gated_sum_backward,
    gated_sum_forward,
    graph_norm_backward,
    graph_norm_forward,
)
from graphkin.models.kernels.compiled.states import (
    first_step_backward,
    first_step_forward,
    gru_backward,
    gru_forward,
)

__all__ = [
    "adam",
    "first_step_backward",
    "first_step_forward",
    "gated_sum_backward",
    "gated_sum_forward",
    "graph_norm_backward",
    "graph_norm_forward",
    "gru_backward",
    "gru_forward",
    "joint_attention",
    "message_backward",
    "message_forward",
    "neighbour_sum_backward",
    "neighbour_sum_forward",
    "softmax_attention",
]
