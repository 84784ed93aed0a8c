"""Rounding, large and tiny values, and values that are not numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import Function

from graphkin.graphs import Graph, PairBatch
from graphkin.models import GraphMatcher, ModelConfig
from graphkin.models.kernels import compiled, plain
from graphkin.models.kernels import dispatch as kernels
from graphkin.models.kernels import propagation as propagation_module
from tests.models.samples import SMALL, make_model, random_graph, random_pairs

PRECISION = {torch.float32: 1e-6, torch.float64: 1e-13}
"""Some ten units in the last place."""


@pytest.mark.parametrize("name", ["gnn", "gmn", "gcn"])
def test_single_precision_follows_double(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fused in single precision against plain torch in double, at the paper's sizes."""
    config = ModelConfig.named(name)
    rng = np.random.default_rng(0)
    graphs = [random_graph(rng, config, n, 2 * n, directed=False) for n in (20, 20, 50, 3)]
    batch = PairBatch.pack([(graphs[0], graphs[1]), (graphs[2], graphs[3])])
    single = make_model(config, scale=0.15, double=False)
    results = []
    for model in (single, make_model(config, scale=0.15).double()):
        model.load_state_dict(single.state_dict())
        model.zero_grad()
        output = model(batch)
        output.scores.sum().backward()
        gradients = torch.cat([p.grad.flatten() for p in model.parameters()]).double()
        results.append((output.scores.detach().double(), gradients))
        for module in (propagation_module, kernels):
            monkeypatch.setattr(module, "use_fused", lambda tensor: False)
    (scores, gradients), (exact_scores, exact_gradients) = results
    torch.testing.assert_close(scores, exact_scores, rtol=1e-4, atol=1e-6)
    assert (gradients - exact_gradients).norm() < 1e-4 * exact_gradients.norm()


class CompiledGRU(Function):
    """The GRU update as the fused propagation calls it: pre-activations of input and state."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, states: Tensor, h: Tensor) -> Tensor:
        out, candidate, bias = h.clone(), h.clone(), h.new_zeros(3 * h.shape[1])
        gates = torch.cat([h, h], dim=1)
        ctx.save_for_backward(gates, candidate, states, bias, h)
        arrays = [x.detach().contiguous().numpy() for x in (inputs, states)]
        rest = [x.detach().numpy() for x in (bias, h.contiguous(), out, gates, candidate)]
        compiled.gru_forward(*arrays, 0, *rest)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, ...]:
        gates, candidate, states, bias, h = ctx.saved_tensors
        out = torch.empty_like(states), torch.empty_like(states), torch.empty_like(h)
        arrays = [x.contiguous().numpy() for x in (grad, gates, candidate, states)]
        grads = [x.numpy() for x in (out[0], out[1], bias.clone(), out[2])]
        compiled.gru_backward(*arrays, 0, bias.numpy(), h.contiguous().numpy(), *grads)
        return out


def gru(inputs: Tensor, states: Tensor, h: Tensor) -> Tensor:
    """The same in plain torch."""
    r_in, z_in, n_in = inputs.chunk(3, dim=1)
    r_state, z_state, n_state = states.chunk(3, dim=1)
    r, z = (r_in + r_state).sigmoid(), (z_in + z_state).sigmoid()
    return (1 - z) * (n_in + r * n_state).tanh() + z * h


def spanning(dtype: torch.dtype) -> Tensor:
    """-100 to 100, thickly around 0, with zero, both signs, and numbers too small to be normal."""
    tiny = torch.logspace(-44, 0, 500, dtype=torch.float64)
    wide = torch.cat([torch.linspace(-100, 100, 4001, dtype=torch.float64), tiny, -tiny])
    edge = torch.tensor([0.0, -0.0, 87.0, 87.9, 88.1, -87.0, -87.9, -88.1, 0.1414, -0.1415])
    return torch.cat([wide, edge.double()]).to(dtype)


def sigmoid_of(kernel: Callable[..., Tensor]) -> Callable[[Tensor], Tensor]:
    """A gated sum over one node with gate x and value 1 is the sigmoid of x."""

    def run(x: Tensor) -> Tensor:
        rows = torch.arange(len(x) + 1)
        weight, bias = x.new_tensor([[1.0], [0.0]]), x.new_tensor([0.0, 1.0])
        return kernel(x.unsqueeze(1), weight, bias, rows, rows[:-1])[:, 0]

    return run


def tanh_of(kernel: Callable[..., Tensor]) -> Callable[[Tensor], Tensor]:
    """A GRU whose update gate is shut gives the tanh of its candidate's input."""

    def run(x: Tensor) -> Tensor:
        shut, none = torch.full_like(x, -1000.0), torch.zeros_like(x)
        inputs = torch.stack([none, shut, x], dim=1)
        return kernel(inputs, torch.zeros_like(inputs), none.unsqueeze(1))[:, 0]

    return run


def update_gate_of(kernel: Callable[..., Tensor]) -> Callable[[Tensor], Tensor]:
    """A GRU with candidate 0 keeps sigmoid(update gate) of its state 1."""

    def run(x: Tensor) -> Tensor:
        none = torch.zeros_like(x)
        inputs = torch.stack([none, x, none], dim=1)
        return kernel(inputs, torch.zeros_like(inputs), torch.ones_like(x).unsqueeze(1))[:, 0]

    return run


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (sigmoid_of(kernels.gated_sum), torch.sigmoid),
        (update_gate_of(CompiledGRU.apply), torch.sigmoid),
        (tanh_of(CompiledGRU.apply), torch.tanh),
    ],
    ids=["gate of the aggregator", "update gate", "candidate"],
)
def test_activations_are_accurate_everywhere(
    function: Callable[[Tensor], Tensor],
    expected: Callable[[Tensor], Tensor],
    dtype: torch.dtype,
) -> None:
    x = spanning(dtype).requires_grad_()
    exact = x.detach().double().requires_grad_()
    expected_list = expected(exact)
    precision = PRECISION[dtype]
    # Beyond exp(-87) single precision has no normal numbers: there an absolute error counts.
    close(function(x), expected_list, precision, 1e-37)
    (slope,) = torch.autograd.grad(function(x).sum(), x)
    (wanted_slope,) = torch.autograd.grad(expected_list.sum(), exact)
    close(slope, wanted_slope, precision, precision)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gru_and_gates_on_large_random_inputs(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    wide = (torch.rand(200, 12, dtype=torch.float64) - 0.5) * 200
    states, h = torch.randn(200, 12, dtype=torch.float64), torch.randn(200, 4, dtype=torch.float64)
    exact = [x.to(dtype).double().requires_grad_() for x in (wide, states, h)]
    rounded = [x.detach().to(dtype).requires_grad_() for x in exact]
    got, expected = CompiledGRU.apply(*rounded), gru(*exact)
    precision = 100 * PRECISION[dtype]
    close(got, expected, precision, precision)
    slopes = torch.autograd.grad(got.sum(), rounded)
    wanted_slopes = torch.autograd.grad(expected.sum(), exact)
    for slope, wanted_slope in zip(slopes, wanted_slopes, strict=True):
        close(slope, wanted_slope, precision, precision)


def close(got: Tensor, wanted: Tensor, relative: float, absolute: float) -> None:
    torch.testing.assert_close(got.double(), wanted, rtol=relative, atol=absolute)


SUMS = ("message_sum", "neighbour_sum", "gated_sum")
FUSED = {**{name: getattr(kernels, name) for name in SUMS}, "gru": CompiledGRU.apply}
PLAIN = {**{name: getattr(plain, name) for name in SUMS}, "gru": gru}
STRANGE = (float("nan"), float("inf"), -float("inf"))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("strange", STRANGE)
@pytest.mark.parametrize("name", FUSED)
def test_kernels_pass_on_what_is_not_finite(name: str, strange: float, dtype: torch.dtype) -> None:
    """Wherever plain torch says NaN or infinity, so does the fused kernel."""
    batch = PairBatch.pack([(Graph(3, [(0, 1), (1, 2)]), Graph(2, [(0, 1), (0, 0)]))]).graphs
    torch.manual_seed(0)
    rest = {
        "message_sum": (batch.incoming, None, None),
        "neighbour_sum": (batch.incoming,),
        "gru": (torch.randn(5, 6, dtype=dtype), torch.randn(5, 2, dtype=dtype)),
        "gated_sum": (
            torch.eye(4, dtype=dtype),
            torch.zeros(4, dtype=dtype),
            batch.node_offsets,
            batch.node_graph,
        ),
    }[name]
    x = torch.randn(5, 6 if name == "gru" else 4, dtype=dtype)
    for row in range(5):
        for column in range(x.shape[1]):
            odd = x.clone()
            odd[row, column] = strange
            got = FUSED[name](odd, *rest)
            expected = PLAIN[name](odd, *rest)
            torch.testing.assert_close(got, expected, equal_nan=True)


@pytest.mark.parametrize("kind", ["constant", "dense"])
@pytest.mark.parametrize("name", ["gnn", "gmn", "gcn"])
def test_a_weight_that_is_no_number_shows_in_the_score(name: str, kind: str) -> None:
    """A diverged model must not look healthy."""
    config = ModelConfig.named(name, **SMALL, node_input=kind, edge_input=kind)
    model = make_model(config, double=False)
    pairs = random_pairs(config, "even")
    assert np.isfinite(model.predict(pairs)).all()
    silent = []
    for parameter_name, parameter in model.named_parameters():
        kept = parameter.detach().clone()
        parameter.data.view(-1)[0] = np.nan
        if not np.isnan(model.predict(pairs)).any():
            silent.append(parameter_name)
        parameter.data.copy_(kept)
    assert silent == []


def test_states_far_from_zero_still_match_themselves() -> None:
    """Euclidean attention expands the square; large states must not spoil a perfect match."""
    config = ModelConfig.named("gmn", node_input="dense", node_input_size=2)
    torch.manual_seed(0)
    matcher = GraphMatcher(config)
    features = np.array([[100.0, -100.0], [50.0, 80.0], [-100.0, 3.0]])
    graph = Graph(3, [(0, 1), (1, 2)], node_features=features)
    other = Graph(3, node_features=features[::-1])
    maps = matcher.explain(graph, graph)
    np.testing.assert_allclose(maps.left_to_right[0], np.eye(3), atol=1e-6)
    same, different = matcher.predict([(graph, graph), (graph, other)])
    assert abs(same) < 1e-4 * abs(different)


def test_attention_does_not_overflow() -> None:
    config = ModelConfig.named("gmn", node_input="dense", node_input_size=1)
    torch.manual_seed(0)
    matcher = GraphMatcher(config)
    huge = Graph(2, [(0, 1)], node_features=[[1e4], [-1e4]])
    tiny = Graph(2, [(0, 1)], node_features=[[1e-30], [0.0]])
    assert np.isfinite(matcher.predict([(huge, tiny), (huge, huge), (tiny, tiny)])).all()
