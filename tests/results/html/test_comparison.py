"""Attention as a page stores it."""

from __future__ import annotations

import numpy as np
import pytest

from graphkin.errors import ConfigError
from graphkin.models.node_matching import AttentionMaps, PartnerMaps
from graphkin.results.evidence import (
    LEAST_WEIGHT,
    best_evidence,
    matched_blocks,
    mutual_pairs,
    node_evidence,
)
from graphkin.results.html.comparison import LEAST, MOST_PER_BLOCK, checked_steps, largest_weights
from tests.results.samples import Maps, attention


@pytest.mark.parametrize("sharpness", [0, 1, 3])
def test_pairs_agree_with_the_evidence_of_a_search(sharpness: int) -> None:
    maps = attention(30, 20, steps=3)
    left_to_right, right_to_left = maps.left_to_right[sharpness], maps.right_to_left[sharpness]
    pairs = [
        pair for pair in mutual_pairs(left_to_right, right_to_left) if pair.weight >= LEAST_WEIGHT
    ]
    evidence = matched_blocks(left_to_right, right_to_left)
    assert len(pairs) / 30 == evidence.matched_share
    assert set(evidence.pairs) <= set(pairs)


def test_pairs_look_at_each_other_most() -> None:
    maps = attention(30, 20)
    left_to_right, right_to_left = maps.left_to_right[0], maps.right_to_left[0]
    expected = [
        (i, j, min(left_to_right[i, j], right_to_left[j, i]))
        for i in range(30)
        for j in range(20)
        if left_to_right[i, j] == left_to_right[i].max()
        and right_to_left[j, i] == right_to_left[j].max()
    ]
    assert 5 < len(expected) < 20
    pairs = [
        (pair.left, pair.right, pair.weight) for pair in mutual_pairs(left_to_right, right_to_left)
    ]
    assert pairs == expected


def test_the_largest_weights_are_kept() -> None:
    weights = attention(40, 60, steps=1).left_to_right[1]
    packed = largest_weights(weights)
    at = 0
    for row, count in zip(weights, packed["counts"], strict=True):
        order = [column for column in np.argsort(-row) if row[column] >= LEAST]
        assert packed["targets"][at : at + count] == order[:MOST_PER_BLOCK]
        expected = [round(1000 * float(row[column])) for column in order[:MOST_PER_BLOCK]]
        np.testing.assert_allclose(packed["weights"][at : at + count], expected, atol=1)
        at += count
    assert at == len(packed["targets"]) == len(packed["weights"])
    assert 40 * MOST_PER_BLOCK > at > 40


def test_of_large_functions_only_partners_are_shown() -> None:
    whole = attention(30, 20, steps=2)
    kept = PartnerMaps.of(AttentionMaps(whole.left_to_right, whole.right_to_left, 1.0))
    assert best_evidence(kept) == best_evidence(whole)
    assert checked_steps(kept, 30, 20) == 3
    for partners, weights in zip(kept.left_to_right, whole.left_to_right, strict=True):
        packed = largest_weights(partners)
        assert packed["counts"] == [int(row.max() >= LEAST) for row in weights]
        assert packed["targets"] == weights.argmax(axis=1).tolist()
        expected = np.rint(1000 * weights.max(axis=1)).astype(int).tolist()
        assert packed["weights"] == expected
    pairs = {(pair.left, pair.right) for pair in node_evidence(kept, most=None).pairs}
    sides = kept.left_to_right[-1].nodes, kept.right_to_left[-1].nodes
    assert pairs == {(a, int(b)) for a, b in enumerate(sides[0]) if sides[1][b] == a}


def test_attention_too_thin_to_show_leaves_empty_rows() -> None:
    packed = largest_weights(np.full((3, 500), 1 / 500, dtype=np.float32))
    assert packed == {"counts": [0, 0, 0], "targets": [], "weights": []}


def test_maps_of_other_functions_are_refused() -> None:
    maps = attention(4, 5)
    assert checked_steps(maps, 4, 5) == 3
    with pytest.raises(ConfigError, match=r"attention is \(4, 5\), .* expected \(5, 4\)"):
        checked_steps(maps, 5, 4)
    with pytest.raises(ConfigError, match="3 maps from left to right and 2 from right to left"):
        checked_steps(Maps(maps.left_to_right, maps.right_to_left[1:]), 4, 5)
    with pytest.raises(ConfigError, match="0 maps"):
        checked_steps(Maps([], []), 4, 5)
