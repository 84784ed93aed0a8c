"""Attention of large pairs in tiles: equal to the softmax by the letter, whatever the shapes."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from graphkin.graphs import Graph, PairBatch
from graphkin.graphs import pair_groups as grouping_module
from graphkin.models.kernels import attention_blocks, attention_tiles, dispatch
from graphkin.models.kernels.attend import attend
from graphkin.models.kernels.attention_blocks import EUCLIDEAN, PLAIN, ScoreKind
from graphkin.models.kernels.attention_tiles import MIN_CELLS, runs_in_tiles

SIZES = [[(1, 1)], [(3, 2)], [(97, 513)], [(200, 1030)], [(1, 40), (300, 31), (5, 2)]]
"""Below, at and beyond the sides of tiles; and pairs that share a padded block."""


@pytest.fixture(autouse=True)
def all_in_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_tiles, "MIN_CELLS", 0)
    monkeypatch.setattr(grouping_module, "MAX_PADDING", 1.0)


@pytest.fixture
def three_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(attention_tiles, "MIN_ROWS_PER_THREAD", 1)
    threads = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(threads)


def packed(sizes: list[tuple[int, int]]) -> PairBatch:
    return PairBatch.pack([(Graph(n), Graph(m)) for n, m in sizes])


def by_the_letter(
    query: Tensor, key: Tensor, value: Tensor, bias: Tensor, batch: PairBatch, scale: float
) -> Tensor:
    """In double precision, with all scores of a pair at once."""
    query, key, value, bias = (x.double() for x in (query, key, value, bias))
    offsets = batch.graphs.node_offsets.tolist()
    graphs = [slice(a, b) for a, b in pairwise(offsets)]
    out = torch.empty_like(value)
    for first, second in zip(graphs[::2], graphs[1::2], strict=True):
        for own, other in ((first, second), (second, first)):
            scores = scale * query[own] @ key[other].T + bias[other]
            out[own] = scores.softmax(dim=1) @ value[other]
    return out


def close(got: Tensor, expected: Tensor, precision: float = 1e-5) -> None:
    scale = max(1.0, expected.abs().max().item())
    torch.testing.assert_close(got.double(), expected, rtol=precision, atol=precision * scale)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("widths", [(32, 32), (5, 3), (33, 40)], ids=str)
@pytest.mark.parametrize("queries", [True, False], ids=["queries", "keys as queries"])
@pytest.mark.parametrize("biased", [True, False], ids=["bias", "no bias"])
@torch.no_grad()
def test_softmax(
    sizes: list[tuple[int, int]], widths: tuple[int, int], queries: bool, biased: bool
) -> None:
    torch.manual_seed(0)
    batch = packed(sizes)
    count = batch.graphs.num_nodes
    key, value = (torch.randn(count, width) for width in widths)
    query = torch.randn(count, widths[0]) if queries else None
    bias = torch.randn(count) if biased else None
    out = attend(query, key, value, bias, batch.groups, ScoreKind(1.5, False))
    expected = by_the_letter(
        key if query is None else query,
        key,
        value,
        torch.zeros(count) if bias is None else bias,
        batch,
        1.5,
    )
    close(out, expected)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("spread", [0.02, 0.3, 1.0, 30.0])
@torch.no_grad()
def test_distances(sizes: list[tuple[int, int]], spread: float) -> None:
    """One exponential for both directions, or a softmax each way if all others are far away."""
    distances_are_right(packed(sizes), spread)


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize("spread", [0.3, 30.0])
@torch.no_grad()
def test_threads_share_the_rows(spread: float) -> None:
    distances_are_right(packed([(200, 1030), (1, 2)]), spread)


def distances_are_right(batch: PairBatch, spread: float) -> None:
    torch.manual_seed(0)
    key = spread * torch.randn(batch.graphs.num_nodes, 32)
    value = torch.randn(batch.graphs.num_nodes, 8)
    bias = -key.square().sum(dim=1)
    out = attend(None, key, value, bias, batch.groups, EUCLIDEAN)
    # Scores of states that are far apart have thousands of the last bit's size.
    close(out, by_the_letter(key, key, value, bias, batch, 2.0), 1e-5 if spread < 30 else 2e-2)


@torch.no_grad()
def test_thousands_of_like_nodes_do_not_drift() -> None:
    """Equal numbers added one by one to a large sum are all rounded the same way."""
    torch.manual_seed(0)
    batch = packed([(20_000, 40)])
    key = 0.5 * torch.randn(1, 32) + 0.001 * torch.randn(20_040, 32)
    bias = -key.square().sum(dim=1)
    out = attend(None, key, key, bias, batch.groups, EUCLIDEAN)
    close(out, by_the_letter(key, key, key, bias, batch, 2.0), 1e-5)


@torch.no_grad()
def test_a_score_that_is_not_a_number_stays_with_those_who_see_it() -> None:
    batch = packed([(600, 2)])
    key = torch.ones(602, 4)
    key[1] = torch.nan
    for kind, bias in ((PLAIN, None), (EUCLIDEAN, -key.square().sum(dim=1))):
        out = attend(None, key, torch.ones(602, 4), bias, batch.groups, kind)
        is_number = ~out.isnan().any(dim=1)
        assert not is_number[[1, 600, 601]].any()
        assert is_number.sum() == 599


def test_gradients_of_large_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_blocks, "MAX_CELLS", 10)
    torch.manual_seed(0)
    batch = packed([(97, 30), (40, 31)])
    key = (0.3 * torch.randn(batch.graphs.num_nodes, 32)).requires_grad_()
    value = torch.randn(batch.graphs.num_nodes, 8, requires_grad=True)
    bias = -key.square().sum(dim=1)
    slopes = torch.randn_like(value)
    out = attend(None, key, value, bias, batch.groups, EUCLIDEAN)
    expected = by_the_letter(key, key, value, bias, batch, 2.0)
    close(out, expected)
    got = torch.autograd.grad(out, (key, value), slopes, retain_graph=True)
    for ours, theirs in zip(
        got, torch.autograd.grad(expected, (key, value), slopes.double()), strict=True
    ):
        close(ours, theirs.double())


def test_without_compiled_kernels_the_results_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    batch = packed([(97, 513), (60, 31)])
    key = 0.3 * torch.randn(batch.graphs.num_nodes, 32)
    inputs = None, key, key, -key.square().sum(dim=1), batch.groups, EUCLIDEAN
    with torch.no_grad():
        fused = attend(*inputs)
        monkeypatch.setattr(dispatch, "use_fused", lambda tensor: False)
        plain = attend(*inputs)
    close(fused, plain.double())


def test_what_runs_in_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attention_tiles, "MIN_CELLS", MIN_CELLS)
    assert runs_in_tiles(torch.zeros(1, 1), MIN_CELLS)
    assert not runs_in_tiles(torch.zeros(1, 1), MIN_CELLS - 1)
    assert not runs_in_tiles(torch.zeros(1, 1).double(), MIN_CELLS)
    monkeypatch.setattr(dispatch, "use_fused", lambda tensor: False)
    assert not runs_in_tiles(torch.zeros(1, 1), MIN_CELLS)
