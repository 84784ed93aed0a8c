"""Functions inside others: what two say together, call together, and are as long as together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from graphkin.binaries.targets import parse_target
from graphkin.library.diff.context import context_features
from graphkin.library.diff.inlining import Inlining
from graphkin.library.diff.pairs import Pairs
from graphkin.library.diff.rounds import pair
from graphkin.library.diff.side import Side, read_side
from graphkin.library.models import SearchModel
from graphkin.library.pairing import INLINING_NAMES
from tests.binaries.compiling import Compile

MODEL = SearchModel.load("functions")
SOURCE = """
extern int puts(const char *); extern int remove(const char *); extern int rand(void);
__attribute__((noinline)) int leaf(int n) {
  for (int i = 0; i < 7349; i++) n ^= rand() * 40961;
  return n;
}
static int inner(const char *s, int n) {
  puts("the inner one has a lot to say"); remove("a file of the inner one");
  for (int i = 0; i < n; i++) n += leaf(s[i] * 52711);
  return n;
}
int outer(const char *s, int n) {
  if (n > 25031) puts("the outer one says less");
  if (rand() > 17389) return remove("a file of the outer one");
  return inner(s, n) * 31337;
}
int other(const char *s) { puts("nothing of the kind"); return remove(s) + 9173; }
"""


def numbers(side: Side) -> dict[str, int]:
    return {function.name: row for row, function in enumerate(side.functions)}


@pytest.fixture
def sides(compile_c: Compile) -> tuple[Side, Side]:
    """The first has an inner function, the second has put it into the outer one."""
    flags = ("-shared", "-fPIC", "-fno-semantic-interposition")
    files: list[Path] = [
        compile_c(SOURCE, level, *flags, name=f"{level[1:]}.so") for level in ("-O0", "-O2")
    ]
    left, right = (read_side(MODEL, parse_target(str(file))) for file in files)
    assert "inner" in numbers(left), "it is there without optimization"
    assert not any(name.startswith("inner") for name in numbers(right))
    return left, right


def features_of(
    left: Side, right: Side, probabilities: dict[tuple[str, str], float]
) -> dict[tuple[str, str], dict[str, float]]:
    """By names of both, of a few pairs."""
    ours, theirs = numbers(left), numbers(right)
    cells = sorted((ours[own], theirs[other], own, other) for own, other in probabilities)
    pairs = Pairs(
        left, right, np.array([cell[0] for cell in cells]), np.array([cell[1] for cell in cells])
    )
    values = np.array([probabilities[own, other] for _, _, own, other in cells])
    features = Inlining(MODEL.embedder, left, right).features(pairs, values)
    assert features.keys() == set(INLINING_NAMES)
    features |= context_features(pairs, values)
    assert all(np.isfinite(own).all() for own in features.values())
    return {
        (own, other): {name: float(column[row]) for name, column in features.items()}
        for row, (_, _, own, other) in enumerate(cells)
    }


PROBABLE = {
    ("leaf", "leaf"): 0.98,
    ("other", "other"): 0.98,
    ("inner", "outer"): 0.7,
    ("outer", "outer"): 0.2,
}


def test_a_function_is_compared_with_what_it_may_have_inside(sides: tuple[Side, Side]) -> None:
    features = features_of(*sides, PROBABLE)
    caller, callee = features["outer", "outer"], features["inner", "outer"]
    assert caller["inlined_words"] > 0.9, "both say all that the new one says"
    assert caller["inlined_gain"] > 0.2
    assert caller["inlined_words"] > callee["inlined_words"]
    assert abs(callee["inlined_gain"]) < 0.1, "the inner one has nothing inside"
    assert caller["claimed_by_callees"] > 0.3 > caller["claimed_by_callers"]
    assert callee["claimed_by_callers"] > 0.1 > callee["claimed_by_callees"]


def test_of_two_that_look_like_one_the_caller_is_the_pair(sides: tuple[Side, Side]) -> None:
    partners = partners_by(MODEL, sides)
    assert partners["outer"] == "outer"
    assert partners["leaf"] == "leaf"
    assert "inner" not in partners
    assert MODEL.pairing is not None
    early = tuple(own for own in MODEL.pairing.rounds if not own.is_late)
    without = replace(MODEL, pairing=replace(MODEL.pairing, rounds=early))
    assert partners_by(without, sides).get("outer") != "outer"


def partners_by(model: SearchModel, sides: tuple[Side, Side]) -> dict[str, str]:
    left, right = sides
    return {
        left.functions[item.row].name: right.functions[item.column].name
        for item in pair(model, left, right, by_name=False)
    }


def test_calls_lead_through_what_has_no_partner(sides: tuple[Side, Side]) -> None:
    """The old outer function calls the leaf by way of the inner one, the new one by itself."""
    likely = PROBABLE | {("inner", "outer"): 0.1, ("outer", "outer"): 0.8}
    outer = features_of(*sides, likely)["outer", "outer"]
    assert outer["callees_share"] < 0.1 < 0.4 < outer["through_callees_share"]
    leaf = features_of(*sides, likely)["leaf", "leaf"]
    assert leaf["through_callers_share"] > leaf["callers_share"]


def test_a_function_with_a_partner_is_not_inside(sides: tuple[Side, Side]) -> None:
    likely = PROBABLE | {("inner", "outer"): 0.0, ("inner", "other"): 0.97, ("other", "other"): 0.0}
    features = features_of(*sides, likely)
    assert abs(features["outer", "outer"]["inlined_gain"]) < 0.05


def test_both_sides_are_alike(sides: tuple[Side, Side]) -> None:
    features = features_of(*sides, PROBABLE)
    turned = {(other, own): value for (own, other), value in PROBABLE.items()}
    mirrored = features_of(sides[1], sides[0], turned)
    for (own, other), values in features.items():
        assert mirrored[other, own] == pytest.approx(values, abs=1e-6)
