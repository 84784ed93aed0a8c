"""Pairs and triplets from classes, against what they must be; and batches of equal cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from graphkin.errors import ConfigError
from graphkin.learning.datasets.sampling import ClassSampler, balanced_batches

Index = NDArray[np.int64]


def classes_of(*sizes: int) -> list[Index]:
    """Classes of these numbers of graphs, numbered on; every second number is no graph."""
    ends = 2 * np.cumsum(sizes)
    return [np.arange(end - 2 * size, end, 2) for size, end in zip(sizes, ends, strict=True)]


def draw(seed: int, sampler: ClassSampler, count: int = 400, **options: Any) -> Index:
    return sampler.triplets(np.random.default_rng(seed), count, **options)


@st.composite
def structures(draw: st.DrawFn) -> dict[str, Any]:
    """Classes, sizes, groups and contents at random."""
    counts = draw(st.lists(st.integers(1, 5), min_size=1, max_size=12))
    classes = classes_of(*counts)
    total = 2 * sum(counts)
    sizes = draw(st.lists(st.integers(1, 60), min_size=total, max_size=total))
    groups = draw(
        st.none()
        | st.lists(st.integers(0, 3), min_size=len(counts), max_size=len(counts)).map(np.array)
    )
    contents = draw(
        st.none() | st.lists(st.integers(0, 4), min_size=total, max_size=total).map(np.array)
    )
    return {
        "classes": classes,
        "sizes": np.array(sizes),
        "groups": groups,
        "contents": contents,
    }


@settings(max_examples=200, deadline=None)
@given(structures(), st.sampled_from(["random", "size"]), st.integers(0, 2**32))
def test_what_every_triplet_must_be(structure: dict[str, Any], negatives: Any, seed: int) -> None:
    classes, contents = structure["classes"], structure["contents"]
    groups = np.arange(len(classes)) if structure["groups"] is None else structure["groups"]
    drawable = any(
        len(members if contents is None else np.unique(contents[members])) > 1
        for members in classes
    )
    if not drawable or len(np.unique(groups)) < 2:
        with pytest.raises(ConfigError, match="too few"):
            ClassSampler(**structure)
        return
    sampler = ClassSampler(**structure)
    class_of = {int(graph): number for number, each in enumerate(classes) for graph in each}
    triplets = draw(seed, sampler, 60, negatives=negatives)
    assert triplets.shape == (60, 3)
    for first, second, third in triplets.tolist():
        assert first != second
        assert class_of[first] == class_of[second]
        assert groups[class_of[third]] != groups[class_of[first]]
        if contents is not None:
            assert contents[first] != contents[second]
    np.testing.assert_array_equal(triplets, draw(seed, sampler, 60, negatives=negatives))


@pytest.mark.parametrize("negatives", ["random", "size"])
def test_one_group_that_holds_almost_everything(negatives: Any) -> None:
    """Negatives are found, however rare they are."""
    classes = classes_of(*[4] * 400, 3)
    sizes = np.full(2 * 1603, 30)
    sizes[classes[-1]] = 7
    groups = np.array([0] * 400 + [1])
    sampler = ClassSampler(classes, sizes, groups=groups)
    triplets = draw(0, sampler, 300, negatives=negatives)
    assert set(triplets[triplets[:, 0] < 3200, 2].tolist()) == set(classes[-1].tolist())
    assert set(triplets[triplets[:, 0] >= 3200, 2] // 8) <= set(range(400))


def chi_square(drawn: Index, choices: int) -> float:
    """As a number of standard deviations above what chance gives."""
    counts = np.bincount(drawn, minlength=choices)
    expected = len(drawn) / choices
    statistic = ((counts - expected) ** 2 / expected).sum()
    return float((statistic - (choices - 1)) / np.sqrt(2 * (choices - 1)))


def test_draws_are_uniform() -> None:
    """Over classes, over ordered pairs of a class, and over classes for negatives."""
    classes = classes_of(3, 3, 3, 3, 3, 3)
    triplets = draw(1, ClassSampler(classes, np.full(36, 5)), 30_000) // 2
    assert abs(chi_square(triplets[:, 0], 18)) < 4
    assert abs(chi_square(triplets[:, 2], 18)) < 4
    pairs = triplets[:, 0] % 3 * 3 + triplets[:, 1] % 3
    kinds = np.unique(pairs, return_inverse=True)[1]
    assert kinds.max() == 5
    assert abs(chi_square(kinds, 6)) < 4
    # Whatever the anchor, the other five classes are equally likely.
    shift = (triplets[:, 2] // 3 - triplets[:, 0] // 3) % 6
    assert shift.min() == 1
    assert abs(chi_square(shift - 1, 5)) < 4


def test_pairs_of_different_content_are_uniform() -> None:
    contents = np.array([0, 9, 0, 9, 1, 9, 2, 9, 7, 9, 8, 9])
    sampler = ClassSampler(classes_of(4, 2), np.full(12, 5), contents=contents)
    triplets = draw(2, sampler, 40_000)
    mine = triplets[triplets[:, 0] < 8] // 2
    kinds = np.unique(mine[:, 0] * 4 + mine[:, 1], return_inverse=True)[1]
    assert kinds.max() + 1 == 10  # of 12 ordered pairs two are of equal content
    assert abs(chi_square(kinds, 10)) < 4


def test_classes_of_one_content_are_negatives_only() -> None:
    contents = np.array([0, 0, 0, 0, 1, 0, 2, 0])
    sampler = ClassSampler(classes_of(2, 2), np.full(8, 5), contents=contents)
    triplets = draw(3, sampler)
    assert set(triplets[:, 0].tolist()) == {4, 6}
    assert set(triplets[:, 2].tolist()) == {0, 2}


def test_negatives_of_the_size_of_the_positive() -> None:
    rng = np.random.default_rng(0)
    classes = [np.arange(4 * n, 4 * n + 4) for n in range(500)]
    sizes = 5 + rng.exponential(25, size=2000).astype(np.int64)
    sampler = ClassSampler(classes, sizes)
    triplets = draw(4, sampler, 3000, negatives="size")
    ratio = sizes[triplets[:, 2]] / sizes[triplets[:, 1]]
    common = sizes[triplets[:, 1]] < 80  # larger ones are rare
    assert common.mean() > 0.9
    assert ratio[common].max() <= 1.1
    assert ratio[common].min() >= 1 / 1.1
    assert np.median(ratio[~common]) == pytest.approx(1, abs=0.1)
    # Not always the nearest: chance decides among all of the right size.
    assert len(np.unique(triplets[:, 2])) > 1000
    loose = draw(4, sampler, 3000)
    spread = np.abs(np.log(sizes[loose[:, 2]] / sizes[loose[:, 1]]))
    assert np.median(spread) > 0.4


def test_size_alone_cannot_tell_matched_negatives() -> None:
    rng = np.random.default_rng(0)
    base = np.repeat(5 + rng.exponential(40, size=500), 4)
    sizes = np.round(base * np.exp(rng.normal(0, 0.25, size=2000))).astype(np.int64)
    sampler = ClassSampler([np.arange(4 * n, 4 * n + 4) for n in range(500)], sizes)

    def accuracy(negatives: Any) -> float:
        a, b, c = np.log(sizes[draw(5, sampler, 4000, negatives=negatives).T])
        near, far = np.abs(a - b), np.abs(a - c)
        return float(np.mean(near < far) + 0.5 * np.mean(near == far))

    assert accuracy("random") > 0.75
    assert accuracy("size") == pytest.approx(0.5, abs=0.03)


def test_the_largest_graph_finds_a_negative() -> None:
    sizes = np.array([5, 0, 6, 0, 9000, 0, 9100, 0])
    triplets = draw(6, ClassSampler(classes_of(2, 2), sizes), negatives="size")
    assert set(triplets[triplets[:, 0] >= 4, 2].tolist()) == {0, 2}


def test_hard_negatives_are_of_near_classes() -> None:
    classes = classes_of(*[3] * 30)
    near = np.array([[(n + 1) % 30, (n + 2) % 30] for n in range(30)])
    sampler = ClassSampler(classes, np.full(180, 5), near=near)
    for share in (1.0, 0.3, 0.0):
        triplets = draw(7, sampler, 6000, hard=share)
        ahead = (triplets[:, 2] // 6 - triplets[:, 0] // 6) % 30
        rng = 2 / 29
        assert np.isin(ahead, (1, 2)).mean() == pytest.approx(share + (1 - share) * rng, abs=0.03)
        assert (ahead == 1).sum() == pytest.approx((ahead == 2).sum(), rel=0.2)


def test_near_classes_of_the_same_group_are_no_negatives() -> None:
    """Where all that is near is of the group, any other will do."""
    classes = classes_of(*[2] * 10)
    near = np.array([[n ^ 1] for n in range(10)])
    groups = np.arange(10) // 2
    sampler = ClassSampler(classes, np.full(40, 5), groups=groups, near=near)
    triplets = draw(8, sampler, hard=1.0)
    assert (groups[triplets[:, 0] // 4] != groups[triplets[:, 2] // 4]).all()


def test_hard_negatives_need_near_classes() -> None:
    sampler = ClassSampler(classes_of(2, 2), np.full(8, 5))
    with pytest.raises(ConfigError, match=r"0\.5 hard negatives needs near classes"):
        draw(0, sampler, hard=0.5)


@pytest.mark.parametrize(
    ("sizes", "groups"), [((), None), ((3,), None), ((1, 1, 1), None), ((2, 2), [4, 4])]
)
def test_what_cannot_be_drawn_from(sizes: tuple[int, ...], groups: list[int] | None) -> None:
    chosen = None if groups is None else np.array(groups)
    with pytest.raises(ConfigError, match=f"{len(sizes)} classes.*too few"):
        ClassSampler(classes_of(*sizes), np.full(20, 5), groups=chosen)


# --- Batches ------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.floats(1, 1e6), min_size=1, max_size=120),
    st.integers(1, 12),
    st.integers(1, 4),
    st.integers(0, 99),
)
def test_every_example_is_dealt_out_once(
    costs: list[float], batches: int, least: int, seed: int
) -> None:
    assume(len(costs) >= batches * least)
    dealt = balanced_batches(np.random.default_rng(seed), np.array(costs), batches, least)
    assert len(dealt) == batches
    assert sorted(np.concatenate(dealt).tolist()) == list(range(len(costs)))
    assert min(map(len, dealt)) >= least
    again = balanced_batches(np.random.default_rng(seed), np.array(costs), batches, least)
    assert [each.tolist() for each in dealt] == [each.tolist() for each in again]


def test_batches_are_of_about_equal_cost() -> None:
    """As of real functions: a few examples are as dear as hundreds of others."""
    costs = np.exp(np.random.default_rng(0).normal(4, 1.3, size=640))
    dealt = balanced_batches(np.random.default_rng(1), costs, 32, 1)
    loads = np.array([costs[batch].sum() for batch in dealt])
    plain = costs.reshape(32, 20).sum(axis=1)
    assert loads.max() / loads.min() < 2 < 3 < plain.max() / plain.min()
    # No batch but those of the dearest examples is far from the mean.
    mean = costs.sum() / 32
    usual = [
        load for load, batch in zip(loads, dealt, strict=True) if costs[batch].max() < mean / 2
    ]
    assert len(usual) > 20
    assert max(usual) / min(usual) < 1.1


def test_equal_costs_give_equal_batches() -> None:
    dealt = balanced_batches(np.random.default_rng(0), np.full(640, 7.0), 32, 1)
    assert {len(batch) for batch in dealt} == {20}


def test_the_order_of_batches_is_by_chance() -> None:
    """The dearest example comes first as often as it comes last."""
    costs = np.arange(1, 65, dtype=np.float64)
    positions = []
    for seed in range(400):
        dealt = balanced_batches(np.random.default_rng(seed), costs, 8, 1)
        positions += [number for number, batch in enumerate(dealt) if 63 in batch]
    assert abs(chi_square(np.array(positions), 8)) < 4
