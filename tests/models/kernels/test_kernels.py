"""The kernels: gradients, agreement of the fused ones with plain torch, and the choice of both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import Function, gradcheck
from torch.autograd.function import once_differentiable

from graphkin.errors import ConfigError
from graphkin.graphs import Graph, GraphBatch, PairBatch
from graphkin.graphs import pair_groups as grouping_module
from graphkin.graphs.batch import Adjacency
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig
from graphkin.models.kernels import attention_blocks as attention_module
from graphkin.models.kernels import dispatch as kernels
from graphkin.models.kernels import plain
from graphkin.models.kernels.attend import attend
from graphkin.models.kernels.attention_blocks import EUCLIDEAN, ScoreKind
from tests.models.samples import random_graph

SIZES = (4, 1, 5)


@pytest.fixture
def batch() -> GraphBatch:
    """Three graphs with self loops and duplicate edges; one has no edge at all."""
    rng = np.random.default_rng(0)
    config = ModelConfig()
    edges = (6, 0, 9)
    return GraphBatch.pack(
        [random_graph(rng, config, n, e, directed=True) for n, e in zip(SIZES, edges, strict=True)]
    )


class Repeated(Function):
    """A function that runs forward anew for every backward pass, of which gradcheck makes many."""

    @staticmethod
    def forward(ctx: Any, function: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
        ctx.function = function
        ctx.save_for_backward(*inputs)
        return function(*inputs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        inputs = [x.detach().requires_grad_() for x in ctx.saved_tensors]
        with torch.enable_grad():
            out = ctx.function(*inputs)
        return None, *torch.autograd.grad(out, inputs, grad)


def slopes_are_right(function: Callable[..., Tensor], inputs: Sequence[Tensor]) -> bool:
    return gradcheck(lambda *x: Repeated.apply(function, *x), tuple(inputs), fast_mode=True)


def double(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def calls(batch: GraphBatch) -> dict[str, tuple[Callable[..., Tensor], Callable[..., Tensor], Any]]:
    """Fused kernel, plain kernel and differentiable inputs of each."""
    count = batch.num_nodes
    adjacency = batch.incoming
    rows = torch.arange(batch.num_messages) % 3

    def both(name: str, *rest: Any) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
        fused, reference = getattr(kernels, name), getattr(plain, name)
        return (lambda *x: fused(*x, *rest)), (lambda *x: reference(*x, *rest))

    def with_table(kernel: Callable[..., Tensor]) -> Callable[..., Tensor]:
        return lambda projected, table: kernel(projected, adjacency, table, rows)

    torch.manual_seed(0)
    return {
        "message_sum": (*both("message_sum", adjacency, None, None), (double(count, 6),)),
        "message_sum with edges": (
            with_table(kernels.message_sum),
            with_table(plain.message_sum),
            (double(count, 6), double(3, 3)),
        ),
        "neighbour_sum": (*both("neighbour_sum", adjacency), (double(count, 3),)),
        "gated_sum": (
            *both("gated_sum", batch.node_offsets, batch.node_graph),
            (double(count, 3), double(6, 3), double(6)),
        ),
    }


KERNELS = (
    "message_sum",
    "message_sum with edges",
    "neighbour_sum",
    "gated_sum",
)


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_are_those_of_finite_differences(name: str, batch: GraphBatch) -> None:
    fused, _, inputs = calls(batch)[name]
    assert slopes_are_right(fused, inputs)


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_fused_equals_plain(name: str, dtype: torch.dtype, batch: GraphBatch) -> None:
    fused, reference, inputs = calls(batch)[name]
    inputs = [x.detach().to(dtype).requires_grad_() for x in inputs]
    assert_equal_with_gradients(fused, reference, inputs, 1e-5 if dtype == torch.float32 else 1e-9)


@pytest.mark.parametrize("name", KERNELS)
def test_inputs_may_lie_in_memory_in_any_order(name: str, batch: GraphBatch) -> None:
    fused, reference, inputs = calls(batch)[name]
    transposed = [x.detach().t().clone().contiguous().t().requires_grad_() for x in inputs]
    assert not transposed[0].is_contiguous()
    assert_equal_with_gradients(fused, reference, transposed, 1e-9)


@pytest.mark.parametrize("name", KERNELS)
def test_gradients_may_lie_in_memory_in_any_order(name: str, batch: GraphBatch) -> None:
    """A sum hands back one number, expanded over the output without a copy."""
    fused, reference, inputs = calls(batch)[name]
    expected = torch.autograd.grad(reference(*inputs).sum(), inputs)
    for got, want in zip(torch.autograd.grad(fused(*inputs).sum(), inputs), expected, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-9, atol=1e-9)


def assert_equal_with_gradients(
    fused: Callable[..., Tensor],
    reference: Callable[..., Tensor],
    inputs: list[Tensor],
    precision: float,
) -> None:
    got, expected = fused(*inputs), reference(*inputs)
    assert got.dtype == expected.dtype
    torch.testing.assert_close(got, expected, rtol=precision, atol=precision)
    slopes = torch.randn_like(expected)
    pairs = zip(
        torch.autograd.grad(got, inputs, slopes),
        torch.autograd.grad(expected, inputs, slopes),
        strict=True,
    )
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs, rtol=precision, atol=precision)


def attention_batch(sizes: list[tuple[int, int]]) -> PairBatch:
    return PairBatch.pack([(Graph(n), Graph(m)) for n, m in sizes])


@pytest.mark.parametrize("sizes", [[(3, 2)], [(2, 2), (2, 2)], [(1, 4), (3, 3), (5, 2)]], ids=str)
@pytest.mark.parametrize("queries", [True, False], ids=["queries", "keys as queries"])
@pytest.mark.parametrize("biased", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("scale", [1.0, 1.5])
@pytest.mark.parametrize("cells", [1 << 20, 3], ids=["dense", "sliced"])
def test_attend(
    sizes: list[tuple[int, int]],
    queries: bool,
    biased: bool,
    scale: float,
    cells: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attention_module, "MAX_CELLS", cells)
    monkeypatch.setattr(grouping_module, "MAX_PADDING", 1.0)
    batch = attention_batch(sizes)
    count = batch.graphs.num_nodes
    torch.manual_seed(0)
    query = double(count, 2) if queries else None
    key, value, bias = double(count, 2), double(count, 3), double(count) if biased else None

    out = attend(query, key, value, bias, batch.groups, ScoreKind(scale, False))
    offsets = batch.graphs.node_offsets.tolist()
    for first, second in ((2 * k + s, 2 * k + 1 - s) for k in range(len(sizes)) for s in (0, 1)):
        others = range(offsets[second], offsets[second + 1])
        for i in range(offsets[first], offsets[first + 1]):
            own = key[i] if query is None else query[i]
            scores = [scale * own @ key[j] + (0 if bias is None else bias[j]) for j in others]
            weights = torch.stack(scores).softmax(0)
            expected = sum(w * value[j] for w, j in zip(weights, others, strict=True))
            torch.testing.assert_close(out[i], expected)

    inputs = [x for x in (query, key, value, bias) if x is not None]

    def run(*tensors: Tensor) -> Tensor:
        left = list(tensors)
        q = left.pop(0) if queries else None
        k, v = left.pop(0), left.pop(0)
        return attend(
            q, k, v, left.pop(0) if biased else None, batch.groups, ScoreKind(scale, False)
        )

    assert slopes_are_right(run, inputs)


@pytest.mark.parametrize("sizes", [[(3, 2)], [(4, 4), (4, 4)], [(1, 4), (3, 3), (5, 2)]], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("spread", [0.1, 1.0, 30.0])
def test_distances_give_what_the_softmax_gives(
    sizes: list[tuple[int, int]], dtype: torch.dtype, spread: float
) -> None:
    """One exponential for both directions; nodes too far apart for it go another way."""
    batch = attention_batch(sizes)
    torch.manual_seed(0)
    key = (spread * torch.randn(batch.graphs.num_nodes, 3)).to(dtype).requires_grad_()
    value = torch.randn(batch.graphs.num_nodes, 2).to(dtype).requires_grad_()
    slopes = torch.randn_like(value)
    results = []
    for kind in (EUCLIDEAN, ScoreKind(2.0, False)):
        out = attend(None, key, value, -key.square().sum(dim=1), batch.groups, kind)
        results.append((out, *torch.autograd.grad(out, (key, value), slopes)))
    precision = 1e-3 if dtype == torch.float32 else 1e-9
    for joint, softmax in zip(*results, strict=True):
        torch.testing.assert_close(joint, softmax, rtol=precision, atol=precision)


def test_no_messages_at_all() -> None:
    batch = GraphBatch.pack([Graph(2), Graph(1)])
    projected = double(3, 4)
    out = kernels.message_sum(projected, batch.incoming, None, None)
    assert out.tolist() == [[0.0, 0.0]] * 3
    assert not torch.autograd.grad(out.sum(), projected)[0].any()
    assert not kernels.neighbour_sum(projected, batch.incoming).any()


def test_an_edge_table_row_may_serve_many_messages_or_none() -> None:
    adjacency = Adjacency(
        offsets=torch.tensor([0, 3, 3]),
        neighbours=torch.tensor([0, 1, 1]),
        owners=torch.tensor([0, 0, 0]),
        edge_rows=torch.tensor([0, 1, 2]),
    )
    table = torch.tensor([[1.0], [100.0], [7.0]], requires_grad=True)
    out = kernels.message_sum(torch.zeros(2, 2), adjacency, table, torch.tensor([2, 0, 2]))
    assert out.tolist() == [[15.0], [0.0]]
    assert torch.autograd.grad(out.sum(), table)[0].tolist() == [[1.0], [0.0], [2.0]]


# Which kernels run.

SCORES = """
    import json, sys, warnings
    {prelude}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import torch
        from graphkin.graphs import Graph
        from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig
        from graphkin.models.kernels.dispatch import backend
        pair = Graph(5, [(0, 1), (1, 2), (2, 2), (3, 4)]), Graph(3, [(0, 1), (0, 2)])
        scores = {{}}
        for name in ("gnn", "gmn", "gcn"):
            torch.manual_seed(0)
            config = ModelConfig.named(name)
            model = (GraphMatcher if config.matching else GraphEmbedder)(config)
            scores[name] = float(model.predict([pair, pair[::-1]])[0])
    told = [str(w.message) for w in caught if issubclass(w.category, RuntimeWarning)]
    print(json.dumps({{"scores": scores, "backend": backend(), "warnings": told}}))
"""


def scores_elsewhere(prelude: str = "", **environment: str) -> dict[str, Any]:
    """What another process computes, on which backend, and what it warns of."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCORES.format(prelude=prelude))],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def scores_here() -> dict[str, float]:
    pair = Graph(5, [(0, 1), (1, 2), (2, 2), (3, 4)]), Graph(3, [(0, 1), (0, 2)])
    scores = {}
    for name in ("gnn", "gmn", "gcn"):
        torch.manual_seed(0)
        config = ModelConfig.named(name)
        model = (GraphMatcher if config.matching else GraphEmbedder)(config)
        scores[name] = float(model.predict([pair])[0])
    return scores


def test_the_environment_chooses_plain_torch() -> None:
    scores = scores_elsewhere(GRAPHKIN_KERNELS="torch")
    assert kernels.backend() == "fused"
    assert scores["backend"] == "torch"
    assert scores["warnings"] == []
    assert scores["scores"] == pytest.approx(scores_here(), rel=1e-4)


def test_without_numba_it_warns_once_and_works() -> None:
    scores = scores_elsewhere("sys.modules['numba'] = None")
    assert scores["backend"] == "torch"
    assert len(scores["warnings"]) == 1
    assert "numba" in scores["warnings"][0]
    assert scores["scores"] == pytest.approx(scores_here(), rel=1e-4)


def test_an_installation_that_cannot_be_written_to_works() -> None:
    """Compiled kernels are cached beside the package or in the user's home; both may be closed."""
    scores = scores_elsewhere(
        "import numba.core.caching; numba.core.caching.CacheImpl._locator_classes = []"
    )
    assert scores["scores"] == pytest.approx(scores_here(), rel=1e-4)


def test_an_unknown_backend_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHKIN_KERNELS", "cuda")
    with pytest.raises(ConfigError, match="fused, torch; got 'cuda'"):
        kernels.backend.__wrapped__()


@pytest.mark.parametrize(
    ("dtype", "fused"), [(torch.float32, True), (torch.float64, True), (torch.bfloat16, False)]
)
def test_fused_kernels_are_for_single_and_double_precision(dtype: torch.dtype, fused: bool) -> None:
    assert kernels.use_fused(torch.zeros(1, dtype=dtype)) == fused


def test_fused_kernels_are_not_for_autocast_and_other_devices() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert not kernels.use_fused(torch.zeros(1))
    assert not kernels.use_fused(torch.zeros(1, device="meta"))
