"""Scratch arrays live on between calls; no computation may see those of another."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from graphkin.graphs import Graph, PairBatch
from graphkin.models import GraphEmbedder, GraphMatcher, ModelConfig
from graphkin.models.kernels.workspace import Workspace
from tests.models.samples import SMALL, make_model, random_pairs

Model = GraphEmbedder | GraphMatcher
Gradients = list[Tensor]


@pytest.fixture(params=["gnn", "gmn"])
def model(request: pytest.FixtureRequest) -> Model:
    return make_model(config(request.param))


def config(name: str) -> ModelConfig:
    return ModelConfig.named(name, **SMALL, node_input="dense", node_input_size=3)


def batch(model: Model, seed: int, shape: str = "uneven") -> PairBatch:
    return PairBatch.pack(random_pairs(model.config, shape, seed=seed))


def loss(model: Model, packed: PairBatch) -> Tensor:
    return model(packed).scores.sum()


def gradients(model: Model, value: Tensor, **options: Any) -> Gradients:
    return list(torch.autograd.grad(value, list(model.parameters()), **options))


def alone(model: Model, packed: PairBatch) -> Gradients:
    """Gradients of a pass that nothing interrupts."""
    return gradients(model, loss(model, packed))


def assert_equal(got: Gradients, expected: Gradients) -> None:
    for ours, theirs in zip(got, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape", ["uneven", "lone"])
def test_two_passes_forward_then_two_backward(model: Model, shape: str) -> None:
    first, second = batch(model, 1), batch(model, 2, shape)
    expected = alone(model, first), alone(model, second)
    for order in ((0, 1), (1, 0)):
        losses = loss(model, first), loss(model, second)
        got = {index: gradients(model, losses[index]) for index in order}
        assert_equal(got[0], expected[0])
        assert_equal(got[1], expected[1])


def test_scoring_between_forward_and_backward(model: Model) -> None:
    first, second = batch(model, 1), batch(model, 2)
    expected = alone(model, first)
    value = loss(model, first)
    with torch.no_grad():
        model(second)
    assert_equal(gradients(model, value), expected)


def test_a_forward_pass_whose_backward_never_comes(model: Model) -> None:
    packed = batch(model, 1)
    expected = alone(model, packed)
    for seed in range(3):
        loss(model, batch(model, seed))
    assert_equal(alone(model, packed), expected)


def test_results_outlive_later_passes(model: Model) -> None:
    """What a caller holds must not be scratch."""
    packed = batch(model, 1)
    value = model(packed)
    kept = [value.scores.clone(), value.left.clone()]
    grads = gradients(model, value.scores.sum())
    kept_grads = [g.clone() for g in grads]
    for seed in range(2, 5):
        alone(model, batch(model, seed))
        with torch.no_grad():
            model(batch(model, seed))
    assert torch.equal(value.scores, kept[0])
    assert torch.equal(value.left, kept[1])
    assert all(torch.equal(a, b) for a, b in zip(grads, kept_grads, strict=True))


def test_a_second_backward_is_refused(model: Model) -> None:
    value = loss(model, batch(model, 1))
    value.backward()
    with pytest.raises(RuntimeError, match="second time"):
        value.backward()


def test_a_second_backward_is_refused_even_where_the_graph_is_retained(model: Model) -> None:
    """The arrays serve others by then: an error, never gradients that mix two batches."""
    value = loss(model, batch(model, 1))
    gradients(model, value, retain_graph=True)
    expected = alone(model, batch(model, 2))
    with pytest.raises(RuntimeError, match="run the forward pass again"):
        gradients(model, value)
    assert_equal(alone(model, batch(model, 2)), expected)


def test_two_losses_of_one_forward_pass_share_a_backward(model: Model) -> None:
    packed = batch(model, 1)
    out = model(packed)
    together = gradients(model, out.scores.sum() + out.left.square().sum())
    parts = [
        gradients(model, model(packed).scores.sum()),
        gradients(model, model(packed).left.square().sum()),
    ]
    assert_equal([a + b for a, b in zip(*parts, strict=True)], together)


def run_all(*tasks: Callable[[], None]) -> None:
    failures: list[BaseException] = []

    def guarded(task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_threads_do_not_share_scratch(model: Model) -> None:
    packed = [batch(model, seed) for seed in range(3)]
    expected = [alone(model, item) for item in packed]
    gradients: dict[tuple[int, int], Gradients] = {}

    def train(index: int) -> Callable[[], None]:
        def repeated() -> None:
            for turn in range(10):
                gradients[index, turn] = alone(model, packed[index])

        return repeated

    run_all(*(train(index) for index in range(3)))
    for (index, _), got in gradients.items():
        assert_equal(got, expected[index])


def test_forward_and_backward_in_different_threads(model: Model) -> None:
    packed = batch(model, 1)
    expected = alone(model, packed)
    value = loss(model, packed)
    received: list[Gradients] = []
    run_all(lambda: received.append(gradients(model, value)))
    alone(model, batch(model, 2))
    assert_equal(received[0], expected)


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Elements taken from all workspaces, and given back."""
    counts = {"taken": 0, "given": 0}
    take, give = Workspace.take, Workspace.give

    def counted_take(self: Workspace, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        counts["taken"] += math.prod(shape)
        return take(self, shape, dtype)

    def counted_give(self: Workspace, *arrays: Tensor | None) -> None:
        counts["given"] += sum(array.numel() for array in arrays if array is not None)
        give(self, *arrays)

    monkeypatch.setattr(Workspace, "take", counted_take)
    monkeypatch.setattr(Workspace, "give", counted_give)
    return counts


def test_training_gives_back_all_that_it_takes(model: Model, ledger: dict[str, int]) -> None:
    alone(model, batch(model, 1))
    assert ledger["given"] == ledger["taken"] > 0


def test_scoring_gives_back_all_that_it_takes(model: Model, ledger: dict[str, int]) -> None:
    model.predict(random_pairs(model.config, "lone"))
    assert ledger["given"] == ledger["taken"] > 0


def test_scoring_takes_no_more_memory_for_more_steps(model: Model, ledger: dict[str, int]) -> None:
    """What a backward pass would need is not kept where none can come."""
    pairs = random_pairs(model.config, "lone")
    model.predict(pairs, steps=2)
    short = ledger["taken"]
    model.predict(pairs, steps=20)
    assert ledger["taken"] == 2 * short


def test_an_array_is_handed_out_to_one_caller_at_a_time() -> None:
    workspace = Workspace()
    first = workspace.take((2, 3), torch.float32)
    second = workspace.take((2, 3), torch.float32)
    assert first.untyped_storage().data_ptr() != second.untyped_storage().data_ptr()
    first.fill_(1.0)
    second.fill_(2.0)
    assert first.tolist() == [[1.0] * 3] * 2


def test_an_array_given_back_serves_again_in_its_own_dtype() -> None:
    workspace = Workspace()
    first = workspace.take((10, 10), torch.float32)
    position = first.untyped_storage().data_ptr()
    workspace.give(first, None)
    assert workspace.take((10, 10), torch.float64).untyped_storage().data_ptr() != position
    assert workspace.take((10_000,), torch.float32).untyped_storage().data_ptr() != position
    again = workspace.take((10, 10), torch.float32)
    assert again.untyped_storage().data_ptr() == position
    assert again.is_contiguous()


def test_batches_of_every_size_in_turn() -> None:
    """Arrays that are larger than asked for change nothing."""
    model = make_model(config("gmn"))
    sizes = (1, 9, 2, 30, 3, 30, 1)
    pairs = [
        (
            Graph(n, [(i, (i + 1) % n) for i in range(n)], node_features=[[1.0, 2.0, 3.0]] * n),
            Graph(n, node_features=[[3.0, 2.0, 1.0]] * n),
        )
        for n in sizes
    ]
    expected = {id(pair): alone(model, PairBatch.pack([pair])) for pair in pairs}
    for pair in reversed(pairs):
        assert_equal(alone(model, PairBatch.pack([pair])), expected[id(pair)])
