"""Layered drawings: what holds for every control flow, and what a few small ones look like."""

from __future__ import annotations

import random
import time
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkin.results.drawing.layout import Layout, Spacing, lay_out
from graphkin.results.drawing.layout.ordering import back_edges, rank

Sizes = list[tuple[float, float]]
Edges = list[tuple[int, int]]
TINY = 1e-6
KINDS = ["plain", "if", "else", "while", "do", "switch"]


class Program:
    """Control flow as a compiler makes it: branches, loops, switches, and jumps to one end."""

    def __init__(self, seed: int, blocks: int) -> None:
        self.random = random.Random(seed)
        self.edges: set[tuple[int, int]] = set()
        self.count = 1
        last = 0
        while self.count < blocks:
            last = self.statement(last, 4)
        end = self.block(last)
        for block in self.random.sample(range(end), max(end // 10, 0)):
            self.edges.add((block, end))

    def block(self, *sources: int) -> int:
        self.count += 1
        self.edges |= {(source, self.count - 1) for source in sources}
        return self.count - 1

    def statement(self, start: int, depth: int) -> int:
        kind = self.random.choice(KINDS if depth else KINDS[:1])
        if kind == "plain":
            return self.block(start)
        if kind == "if":
            return self.block(start, self.statement(self.block(start), depth - 1))
        if kind == "else":
            branches = [self.statement(self.block(start), depth - 1) for _ in range(2)]
            return self.block(*branches)
        if kind == "switch":
            number = self.random.randint(3, 9)
            branches = [self.statement(self.block(start), depth - 2 if depth > 2 else 0)
                    for _ in range(number)]  # fmt: skip
            return self.block(start, *branches)
        head = self.block(start)
        body = self.statement(self.block(head), depth - 1)
        self.edges.add((body, head))
        return self.block(head if kind == "while" else body)

    def boxes(self) -> Sizes:
        sides = self.random.uniform
        return [(sides(50, 250), sides(20, 160)) for _ in range(self.count)]


def assert_sound(sizes: Sizes, edges: Edges, layout: Layout) -> None:
    boxes = [(x, y, x + w, y + h) for (x, y), (w, h) in zip(layout.corners, sizes, strict=True)]
    for one, other in combinations(boxes, 2):
        assert not overlap(one, other)
    for left, top, right, bottom in boxes:
        assert left >= 0
        assert top >= 0
        assert right <= layout.width
        assert bottom <= layout.height
    assert len(layout.paths) == len(edges)
    for (source, target), path in zip(edges, layout.paths, strict=True):
        (start_x, start_y), (end_x, end_y) = path[0], path[-1]
        assert boxes[source][0] - TINY <= start_x <= boxes[source][2] + TINY
        assert start_y == pytest.approx(boxes[source][3])
        assert boxes[target][0] - TINY <= end_x <= boxes[target][2] + TINY
        assert end_y == pytest.approx(boxes[target][1])
        for (x, y), (next_x, next_y) in pairwise(path):
            assert x == next_x or y == next_y
            assert 0 <= next_x <= layout.width
            assert 0 <= next_y <= layout.height
            line = (min(x, next_x), min(y, next_y), max(x, next_x), max(y, next_y))
            assert not any(overlap(line, box) for box in boxes)
        heights = [y for _, y in path]
        if (source, target) in layout.back:
            assert end_y < start_y
        else:
            assert heights == sorted(heights)
            assert boxes[source][3] < boxes[target][1]
        assert path[-2][1] < end_y, "lines come in from above"


def overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return (
        one[0] < other[2] - TINY
        and other[0] < one[2] - TINY
        and one[1] < other[3] - TINY
        and other[1] < one[3] - TINY
    )


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_graph_is_drawn_soundly(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 14))
    node = st.integers(0, count - 1)
    edges = sorted(data.draw(st.sets(st.tuples(node, node), max_size=3 * count)))
    side = st.floats(5, 300)
    sizes = data.draw(st.lists(st.tuples(side, side), min_size=count, max_size=count))
    layout = lay_out(sizes, edges)
    assert_sound(sizes, edges, layout)
    assert layout.corners[0][1] == min(y for _, y in layout.corners)


@pytest.mark.parametrize("seed", range(12))
def test_programs_are_drawn_soundly(seed: int) -> None:
    program = Program(seed, 20 + 10 * seed)
    sizes, edges = program.boxes(), sorted(program.edges)
    assert_sound(sizes, edges, lay_out(sizes, edges))


def test_a_large_program_with_shared_lanes_is_sound_and_quick() -> None:
    program = Program(1, 1_000)
    sizes, edges = program.boxes(), sorted(program.edges)
    lay_out(sizes[:2], [(0, 1)])  # imports the solver
    start = time.process_time()
    layout = lay_out(sizes, edges)
    spent = time.process_time() - start
    assert len(sizes) >= 1_000
    assert spent < 2
    boxes = sorted(zip(layout.corners, sizes, strict=True), key=lambda box: box[0][::-1])
    for ((x, y), (width, _)), ((next_x, next_y), _) in pairwise(boxes):
        assert y < next_y or x + width <= next_x + TINY


def test_the_same_input_gives_the_same_drawing() -> None:
    program = Program(5, 80)
    sizes, edges = program.boxes(), sorted(program.edges)
    assert lay_out(sizes, edges) == lay_out(sizes, edges)


def test_back_edges_close_cycles() -> None:
    edges = [(0, 1), (1, 2), (2, 1), (2, 3), (3, 3), (1, 3)]
    assert back_edges(4, edges) == {(2, 1), (3, 3)}


def test_rows_are_those_of_the_longest_path() -> None:
    assert rank(5, [(0, 1), (0, 3), (1, 2), (2, 3), (0, 4)]) == [0, 1, 2, 3, 1]


def test_a_node_that_only_leads_out_moves_down_to_its_target() -> None:
    assert rank(4, [(0, 1), (1, 2), (3, 2)])[3] == 1


def test_straight_code_is_one_column_of_straight_lines() -> None:
    layout = lay_out([(100, 20), (40, 30), (200, 10)], [(0, 1), (1, 2)])
    assert all(len(path) == 2 for path in layout.paths)
    centres = {x + w / 2 for (x, _), w in zip(layout.corners, (100, 40, 200), strict=True)}
    assert len(centres) == 1


def test_a_diamond_has_its_arms_side_by_side() -> None:
    layout = lay_out([(60, 20)] * 4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    tops = [y for _, y in layout.corners]
    assert tops[0] < tops[1] == tops[2] < tops[3]
    assert layout.corners[2][0] - layout.corners[1][0] >= 60 + Spacing().between_boxes


def test_a_chain_of_tests_does_not_drift_to_the_side() -> None:
    """if ... else if ... else if ...: every test leads to the next, and to a case of its own."""
    tests = 30
    edges = []
    for number in range(tests):
        edges += [(2 * number, 2 * number + 1), (2 * number + 1, 2 * tests)]
        edges += [(2 * number, 2 * number + 2)]
    sizes: Sizes = [(100.0, 40.0)] * (2 * tests + 1)
    assert lay_out(sizes, sorted(edges)).width < 5 * 100


def test_jumps_to_one_block_come_together_in_one_line() -> None:
    count = 12
    edges = [(number, number + 1) for number in range(count - 1)]
    edges += [(number, count - 1) for number in range(count - 2)]
    layout = lay_out([(80, 30)] * count, sorted(edges))
    paths = dict(zip(sorted(edges), layout.paths, strict=True))
    lanes = {paths[number, count - 1][-2][0] for number in range(count - 2)}
    assert len(lanes) == 1
    assert layout.width < 80 + 4 * Spacing().between_boxes + 2 * Spacing().margin


def test_a_loop_runs_back_on_the_left() -> None:
    layout = lay_out([(80, 30)] * 4, [(0, 1), (1, 2), (2, 1), (2, 3)])
    assert layout.back == {(2, 1)}
    back = layout.paths[2]
    assert min(x for x, _ in back) < min(x for x, _ in layout.corners)


def test_a_switch_leaves_its_block_as_one_line() -> None:
    edges = [(0, case) for case in range(1, 8)]
    layout = lay_out([(60, 20)] * 8, edges)
    assert len({path[0] for path in layout.paths}) == 1
    bends = {path[1][1] for path in layout.paths if len(path) > 2}
    assert len(bends) == 1


def test_nothing_to_draw() -> None:
    margin = Spacing().margin
    assert lay_out([], []) == Layout((), (), frozenset(), 2 * margin, 2 * margin)
