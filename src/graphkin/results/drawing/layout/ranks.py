"""The first half of a layered drawing: which edges go back, and which row each box is in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Edge = tuple[int, int]


def back_edges(count: int, edges: Sequence[Edge]) -> frozenset[Edge]:
    """Edges that close a cycle, self loops included, in a depth-first walk from node 0.

    Nodes that the walk does not reach are walked from afterwards, in their order; what leads
    from them to node 0 goes back, too, so that node 0 stays on top.
    """
    following = adjacency(count, edges)
    found: set[Edge] = set()
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
                found.add((node, target))
            elif not state[target]:
                state[target] = 1
                path.append((target, iter(following[target])))
    return frozenset(found)


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
