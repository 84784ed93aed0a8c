"""What the rest of a file says of a hit."""

from __future__ import annotations

import pytest

from graphkin.binaries.call_graph import CallGraph, FunctionNode, Link
from graphkin.library.context import WEIGHTS, Context, in_context
from graphkin.results.document import FunctionRef, FunctionResult, Hit, Kin

COMPONENTS = {"a": "A", "b": "B", **{f"c{number}": f"C{number}" for number in range(9)}}


def kin(number: int, file: str, probability: float, address: int = 0) -> Kin:
    return Kin(number, f"f{number}", f"lib{file}.so", file, address, probability, 3.0)


def result(address: int, *own: Kin) -> FunctionResult:
    hits = tuple(
        Hit(
            function=item.function, binary=item.binary, address=item.address, blocks=9, id=item.id,
            rank=rank, rank_by_distance=rank, distance=3.0, probability=item.probability,
            note="too small to tell",
        )
        for rank, item in enumerate(own, start=1)
    )  # fmt: skip
    query = FunctionRef(function=f"sub_{address:x}", binary="fw", address=address, blocks=9)
    return FunctionResult(query=query, hits=hits, kin=own)


def test_a_function_that_stands_alone_keeps_its_probability() -> None:
    alone = result(0x100, kin(1, "a", 0.7), kin(2, "b", 0.2))
    (same,) = in_context([alone], COMPONENTS)
    assert [hit.probability for hit in same.hits] == [0.7, 0.2]


def test_company_of_one_component_lifts_its_hits_above_others() -> None:
    sure = [result(16 * n, kin(n, "b", 0.95, 100 * n)) for n in range(1, 20) if n != 7]
    unsure = result(16 * 7, kin(50, "a", 0.4), kin(7, "b", 0.35, 700))
    changed = in_context([unsure, *sure], COMPONENTS, 0.5)[0]
    assert [hit.function for hit in changed.hits] == ["f7"]
    assert (changed.hits[0].probability or 0) > 0.6
    assert changed.hits[0].rank == 1
    assert changed.hits[0].note is None  # it is not too small any more
    assert changed.best_left_out is not None
    assert sum(item.probability for item in changed.kin) <= 1 + 1e-9


def test_what_is_in_every_component_tells_nothing() -> None:
    runtime = [result(16 * n, *(kin(n, f"c{file}", 0.9) for file in range(9))) for n in range(1, 9)]
    lone = result(0x1000, kin(99, "c0", 0.5))
    assert in_context([*runtime, lone], COMPONENTS)[-1].hits[0].probability == 0.5


def test_calls_on_both_sides_lift_a_hit_wherever_it_lies() -> None:
    nodes = [FunctionNode("", address, "") for address in (0x1000, 0x20000, 0x40000)]
    graph = CallGraph(tuple(nodes), (), (Link(0, 1, "call", False),))
    caller = result(0x10, kin(1, "a", 0.9, 0x1000))
    others = [result(0x100 + n, kin(80 + n, "b", 0.9, 0x90000 * n)) for n in range(1, 9)]
    called = result(0x9000, kin(2, "a", 0.4, 0x20000), kin(3, "a", 0.4, 0x40000))
    everything = [caller, *others, called]
    callees = [(0x9000,), *[()] * len(others), ()]
    lifted = in_context(everything, COMPONENTS, callees=callees, call_graph={"a": graph}.get)[-1]
    assert [hit.function for hit in lifted.hits] == ["f2", "f3"]
    first, second = (hit.probability or 0 for hit in lifted.hits)
    assert first > 0.5 > second
    unlinked = in_context(everything, COMPONENTS, callees=callees)[-1]
    assert [hit.probability for hit in unlinked.hits] == [
        hit.probability for hit in in_context(everything, COMPONENTS)[-1].hits
    ], "without the library's call graph nothing is known"
    backwards = CallGraph(tuple(nodes), (), (Link(1, 0, "call", False),))
    wrong = in_context(everything, COMPONENTS, callees=callees, call_graph={"a": backwards}.get)
    assert wrong[-1].hits == unlinked.hits


@pytest.mark.parametrize("own", [0.0, 0.02, 0.3, 0.9, 1.0])
def test_context_never_lowers(own: float) -> None:
    lifted = [WEIGHTS.probability(own, Context(near, 1.0)) for near in (0.0, 0.5, 1.0)]
    assert own <= lifted[0] <= lifted[1] <= lifted[2] <= 1
    assert WEIGHTS.probability(own, Context(0.0, 0.0)) == own
