"""Boxes and lanes in rows, in an order from left to right with few crossings.

Edges that close a cycle go back; all others lead to a lower row.

An edge that skips rows passes each of them in a lane, a node without a box. All edges to one
target share its lanes, so that a clean-up block that a hundred blocks jump to has one line
leading to it. An edge that goes back runs up through lanes left of its loop.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

SWEEPS = 12
SWEEP_LIMIT, FEW_SWEEPS = 20_000, 4
"""Nodes beyond which there are fewer sweeps."""
IDLE_SWEEPS = 4
"""Without fewer crossings, after which no more are hoped for."""
EXCHANGE_LIMIT = 3_000
"""Nodes up to which neighbours are exchanged one by one, which takes the square of a row."""

Place = tuple[int, int]
"""(target, row)."""
Edge = tuple[int, int]


def back_edges(count: int, edges: Sequence[Edge]) -> frozenset[Edge]:
    """Edges that close a cycle, self loops included, in a depth-first walk from node 0.

    Nodes that the walk does not reach are walked from afterwards, in their order; what leads
    from them to node 0 goes back, too, so that node 0 stays on top.
    """
    following = adjacency(count, edges)
    closing: set[Edge] = set()
    # 0: not seen; 1: on the path from the root; 2: done.
    state = bytearray(count)
    for root in range(count):
        if state[root]:
            continue
        state[root] = 1
        path = [(root, iter(following[root]))]
        while path:
            node, targets = path[-1]
            target = next(targets, None)
            if target is None:
                state[node] = 2
                path.pop()
            elif state[target] == 1 or target == 0:
                closing.add((node, target))
            elif not state[target]:
                state[target] = 1
                path.append((target, iter(following[target])))
    return frozenset(closing)


def rank(count: int, forward: Sequence[Edge]) -> list[int]:
    """A row for each node of an acyclic graph: every edge leads to a lower row.

    Rows are those of the longest path. Then nodes with more edges out than in move down as far
    as they can, which shortens more edges than it lengthens.
    """
    following, before = adjacency(count, forward), adjacency(count, ((t, s) for s, t in forward))
    order = _topological(following, before)
    rows = [0] * count
    for node in order:
        for target in following[node]:
            rows[target] = max(rows[target], rows[node] + 1)
    for node in reversed(order):
        if node and len(following[node]) > len(before[node]):
            rows[node] = min(rows[target] for target in following[node]) - 1
    return rows


def adjacency(count: int, edges: Iterable[Edge]) -> list[list[int]]:
    """The targets of each node."""
    lists: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        lists[source].append(target)
    return lists


def _topological(following: list[list[int]], before: list[list[int]]) -> list[int]:
    waiting = [len(sources) for sources in before]
    order = [node for node, number in enumerate(waiting) if not number]
    for node in order:
        for target in following[node]:
            waiting[target] -= 1
            if not waiting[target]:
                order.append(target)
    return order


@dataclass
class Rows:
    """Nodes are numbered: boxes first, then lanes."""

    row_of: list[int]
    rows: list[list[int]]
    """Nodes of each row, from left to right."""
    above: list[list[int]]
    below: list[list[int]]
    """Neighbours of each node in the rows next to its own."""
    boxes: int
    down: dict[Place, int] = field(default_factory=dict)
    """The lane on the way down to a target, by row."""
    up: dict[Place, int] = field(default_factory=dict)
    """The lane on the way back up to a target, by row."""

    def is_lane(self, node: int) -> bool:
        return node >= self.boxes

    def positions(self) -> list[int]:
        """The index of each node in its row."""
        positions = [0] * len(self.row_of)
        for row in self.rows:
            for index, node in enumerate(row):
                positions[node] = index
        return positions

    def add(self, row: int) -> int:
        self.row_of.append(row)
        self.above.append([])
        self.below.append([])
        return len(self.row_of) - 1

    def join(self, upper: int, lower: int) -> None:
        self.below[upper].append(lower)
        self.above[lower].append(upper)


def arrange(row_of: Sequence[int], edges: Sequence[Edge], back: frozenset[Edge]) -> Rows:
    """Puts boxes and lanes in order."""
    count = len(row_of)
    height = max(row_of) + 1
    empty: list[list[int]] = [[] for _ in range(count)]
    arranged = Rows(list(row_of), [[] for _ in range(height)], empty, [[] for _ in empty], count)
    for source, target in edges:
        if (source, target) not in back:
            _lead_down(arranged, source, target)
    _first_order(arranged)
    _sweep(arranged)
    lanes: dict[int, list[int]] = {}
    for (target, _), lane in arranged.down.items():
        lanes.setdefault(target, []).append(lane)
    for target, sources, body in _loops(count, edges, back):
        own = _lead_up(arranged, target, sources, body, lanes)
        lanes.setdefault(target, []).extend(own)
    return arranged


def _lead_down(arranged: Rows, source: int, target: int) -> None:
    node = source
    for row in range(arranged.row_of[source] + 1, arranged.row_of[target]):
        lane = arranged.down.get((target, row))
        if lane is not None:
            arranged.join(node, lane)
            return
        lane = arranged.down[target, row] = arranged.add(row)
        arranged.join(node, lane)
        node = lane
    arranged.join(node, target)


def _first_order(arranged: Rows) -> None:
    """In the order of a depth-first walk: what belongs together starts out side by side."""
    seen = bytearray(len(arranged.row_of))
    for root in range(arranged.boxes):
        stack = [root]
        while stack:
            node = stack.pop()
            if seen[node]:
                continue
            seen[node] = 1
            arranged.rows[arranged.row_of[node]].append(node)
            stack += reversed(arranged.below[node])


def _sweep(arranged: Rows) -> None:
    """Sorts rows by the mean place of their neighbours, down and up, and keeps the best order."""
    best, fewest, since = [row[:] for row in arranged.rows], _crossings(arranged), 0
    for number in range(SWEEPS if len(arranged.row_of) <= SWEEP_LIMIT else FEW_SWEEPS):
        if not fewest or since == IDLE_SWEEPS:
            break
        positions = arranged.positions()
        downward = number % 2 == 0
        neighbours = arranged.above if downward else arranged.below
        for row in arranged.rows if downward else reversed(arranged.rows):
            _sort_row(row, neighbours, positions)
        if len(arranged.row_of) <= EXCHANGE_LIMIT:
            _exchange(arranged, positions)
        crossings = _crossings(arranged)
        since += 1
        if crossings < fewest:
            best, fewest, since = [row[:] for row in arranged.rows], crossings, 0
    arranged.rows = best


def _sort_row(row: list[int], neighbours: list[list[int]], positions: list[int]) -> None:
    keys = {}
    for index, node in enumerate(row):
        near = neighbours[node]
        # A node without neighbours on that side stays about where it is.
        keys[node] = sum(positions[other] for other in near) / len(near) if near else float(index)
    row.sort(key=keys.__getitem__)
    for index, node in enumerate(row):
        positions[node] = index


def _exchange(arranged: Rows, positions: list[int]) -> None:
    """Swaps neighbours of a row where that removes crossings."""
    for row in arranged.rows:
        ends = {
            node: [
                sorted([positions[n] for n in near[node]])
                for near in (arranged.above, arranged.below)
            ]
            for node in row
        }
        for index in range(len(row) - 1):
            left, right = row[index], row[index + 1]
            gain = 0
            for ours, theirs in zip(ends[left], ends[right], strict=True):
                # Most neighbours do not cross, and could only get worse.
                if ours and theirs and ours[-1] > theirs[0]:
                    gain += _inversions(ours, theirs) - _inversions(theirs, ours)
                elif ours and theirs and ours[0] < theirs[-1]:
                    gain -= _inversions(theirs, ours)
            if gain > 0:
                row[index], row[index + 1] = right, left
                positions[left], positions[right] = index + 1, index


def _inversions(left: list[int], right: list[int]) -> int:
    """Crossings between the edges of two nodes side by side; both lists are sorted."""
    return sum(len(left) - bisect_right(left, position) for position in right)


def _crossings(arranged: Rows) -> int:
    positions = arranged.positions()
    total = 0
    for row in arranged.rows:
        seen: list[int] = []
        for node in row:
            ends = sorted(positions[other] for other in arranged.below[node])
            total += sum(len(seen) - bisect_right(seen, end) for end in ends)
            for end in ends:
                insort(seen, end)
    return total


def _loops(
    count: int, edges: Sequence[Edge], back: frozenset[Edge]
) -> list[tuple[int, list[int], set[int]]]:
    """(target, sources, body) for each target of edges that go back, inner loops first."""
    before = adjacency(count, ((target, source) for source, target in edges))
    sources_of: dict[int, list[int]] = {}
    for source, target in sorted(back):
        sources_of.setdefault(target, []).append(source)
    loops = []
    for target, sources in sources_of.items():
        body = {target, *sources}
        todo = [source for source in sources if source != target]
        while todo:
            for node in before[todo.pop()]:
                if node not in body:
                    body.add(node)
                    todo.append(node)
        loops.append((target, sources, body))
    return sorted(loops, key=lambda loop: (len(loop[2]), loop[0]))


def _lead_up(
    arranged: Rows, target: int, sources: list[int], body: set[int], lanes: dict[int, list[int]]
) -> list[int]:
    """Adds lanes left of everything that belongs to the loop, and returns them.

    Args:
        lanes: those that lead to each box so far.
    """
    inside = set(body)
    for end in body - {target}:
        inside.update(lanes.get(end, ()))
    added: list[int] = []
    index = 0
    for row in range(
        arranged.row_of[target], max(arranged.row_of[source] for source in sources) + 1
    ):
        nodes = arranged.rows[row]
        positions = (position for position, node in enumerate(nodes) if node in inside)
        index = next(positions, min(index, len(nodes)))
        lane = arranged.up[target, row] = arranged.add(row)
        nodes.insert(index, lane)
        if added:
            arranged.join(added[-1], lane)
        added.append(lane)
    return added
