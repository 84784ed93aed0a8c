"""The losses against plain loops over examples: values and gradients, in double precision."""

from __future__ import annotations

import doctest
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from graphkin.errors import ConfigError
from graphkin.learning import losses
from graphkin.learning.losses import (
    check_loss,
    distances_of,
    hamming_pair_loss,
    hamming_triplet_loss,
    margin_pair_loss,
    margin_triplet_loss,
    scores_loss,
)

Values = list[float]
MARGIN = 0.3


def margin_pairs(distances: Values, labels: Values) -> tuple[float, Values]:
    """Loss and gradient by the distances."""
    total, gradient = 0.0, []
    for d, t in zip(distances, labels, strict=True):
        hinge = MARGIN - t * (1 - d)
        total += max(0.0, hinge)
        gradient.append(t / len(distances) if hinge > 0 else 0.0)
    return total / len(distances), gradient


def margin_triplets(distances: Values) -> tuple[float, Values]:
    """The same for triplets, whose two distances take turns."""
    count = len(distances) // 2
    total, gradient = 0.0, []
    for k in range(count):
        hinge = distances[2 * k] - distances[2 * k + 1] + MARGIN
        total += max(0.0, hinge)
        gradient += [1 / count, -1 / count] if hinge > 0 else [0.0, 0.0]
    return total / count, gradient


def hamming_pairs(similarities: Values, labels: Values) -> tuple[float, Values]:
    """Loss and gradient by the similarities."""
    total, gradient = 0.0, []
    for s, t in zip(similarities, labels, strict=True):
        total += (t - s) ** 2 / 4
        gradient.append(-2 * (t - s) / 4 / len(similarities))
    return total / len(similarities), gradient


def hamming_triplets(similarities: Values) -> tuple[float, Values]:
    count = len(similarities) // 2
    total, gradient = 0.0, []
    for k in range(count):
        near, far = similarities[2 * k], similarities[2 * k + 1]
        total += ((near - 1) ** 2 + (far + 1) ** 2) / 8
        gradient += [2 * (near - 1) / 8 / count, 2 * (far + 1) / 8 / count]
    return total / count, gradient


def scores_for(similarity: str, count: int = 12) -> Tensor:
    """Random scores as a model of this similarity gives them."""
    generator = torch.Generator().manual_seed(3)
    uniform = torch.rand(count, generator=generator, dtype=torch.float64)
    scores = {"euclidean": -2.5 * uniform, "siamese": 4 * uniform - 2}.get(similarity)
    return (2 * uniform - 1 if scores is None else scores).requires_grad_()


def labels_for(count: int = 12) -> Tensor:
    generator = torch.Generator().manual_seed(4)
    return torch.randint(0, 2, (count,), generator=generator).double() * 2 - 1


@pytest.mark.parametrize("similarity", ["euclidean", "siamese", "cosine", "hamming"])
@pytest.mark.parametrize("mode", ["pairs", "triplets"])
def test_margin_losses_of_scores(similarity: Any, mode: str) -> None:
    scores, labels = scores_for(similarity), labels_for()
    # A distance falls as a score rises, by one for one.
    top = 0.0 if similarity in ("euclidean", "siamese") else 1.0
    distances = [top - score for score in scores.tolist()]
    if mode == "pairs":
        value, gradient = margin_pairs(distances, labels.tolist())
    else:
        value, gradient = margin_triplets(distances)
    assert 0 < sum(g != 0 for g in gradient) < len(gradient), "both sides of the hinge"
    loss = scores_loss(scores, labels if mode == "pairs" else None, "margin", MARGIN, similarity)
    loss.backward()
    assert loss.item() == pytest.approx(value, rel=1e-14)
    assert scores.grad.tolist() == pytest.approx([-g for g in gradient], rel=1e-14)


@pytest.mark.parametrize("similarity", ["cosine", "hamming"])
@pytest.mark.parametrize("mode", ["pairs", "triplets"])
def test_hamming_losses_of_scores(similarity: Any, mode: str) -> None:
    scores, labels = scores_for(similarity), labels_for()
    if mode == "pairs":
        value, gradient = hamming_pairs(scores.tolist(), labels.tolist())
    else:
        value, gradient = hamming_triplets(scores.tolist())
    loss = scores_loss(scores, labels if mode == "pairs" else None, "hamming", 9.9, similarity)
    loss.backward()
    assert loss.item() == pytest.approx(value, rel=1e-14)
    assert scores.grad.tolist() == pytest.approx(gradient, rel=1e-14)


def test_each_loss_by_hand() -> None:
    distances, signs = torch.tensor([0.5, 1.0, 3.0, 0.8]), torch.tensor([1.0, 1.0, -1.0, -1.0])
    # 0.1 - 0.5, 0.1, 0.1 - 2, 0.1 + 0.2
    assert margin_pair_loss(distances, signs, 0.1).item() == pytest.approx((0 + 0.1 + 0 + 0.3) / 4)
    near, far = torch.tensor([1.0, 0.2]), torch.tensor([1.5, 2.0])
    assert margin_triplet_loss(near, far, 1.0).item() == pytest.approx((0.5 + 0) / 2)
    similarities = torch.tensor([0.5, -1.0])
    assert hamming_pair_loss(similarities, torch.tensor([1.0, 1.0])).item() == pytest.approx(
        (0.25 / 4 + 1) / 2
    )
    assert hamming_triplet_loss(torch.tensor([0.0]), torch.tensor([1.0])).item() == 5 / 8


SIMILARITY = st.floats(-1, 1)


@settings(deadline=None)
@given(st.lists(st.tuples(SIMILARITY, SIMILARITY, st.sampled_from([-1.0, 1.0])), min_size=1))
def test_hamming_losses_lie_between_0_and_1(rows: list[tuple[float, float, float]]) -> None:
    near, far, labels = torch.tensor(rows, dtype=torch.float64).unbind(dim=1)
    assert 0 <= hamming_pair_loss(near, labels).item() <= 1
    assert 0 <= hamming_triplet_loss(near, far).item() <= 1


def test_hamming_losses_reach_both_ends() -> None:
    top, bottom = torch.ones(3), -torch.ones(3)
    assert hamming_pair_loss(top, top).item() == hamming_triplet_loss(top, bottom).item() == 0
    assert hamming_pair_loss(top, bottom).item() == hamming_triplet_loss(bottom, top).item() == 1


@pytest.mark.parametrize("similarity", ["euclidean", "siamese"])
@pytest.mark.parametrize("labels", [None, torch.ones(2)])
def test_the_hamming_loss_needs_similarities_with_bounds(similarity: Any, labels: Any) -> None:
    with pytest.raises(ConfigError, match=f"the model's is {similarity}; use loss='margin'"):
        check_loss("hamming", similarity)
    with pytest.raises(ConfigError, match="needs Hamming or cosine similarity"):
        scores_loss(torch.zeros(2), labels, "hamming", 0.1, similarity)


@pytest.mark.parametrize("similarity", ["euclidean", "siamese", "cosine", "hamming"])
def test_the_margin_loss_takes_every_similarity(similarity: Any) -> None:
    check_loss("margin", similarity)


def test_equal_graphs_are_at_distance_0() -> None:
    assert distances_of(torch.tensor([0.0]), "euclidean").item() == 0
    assert distances_of(torch.tensor([1.0]), "cosine").item() == 0
    assert distances_of(torch.tensor([1.0]), "hamming").item() == 0


def test_examples_in_docstrings() -> None:
    result = doctest.testmod(losses)
    assert result.failed == 0
    assert result.attempted >= 8
