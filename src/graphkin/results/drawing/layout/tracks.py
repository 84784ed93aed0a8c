"""Level parts of lines between two rows: each net gets a track of its own where it needs one."""

from __future__ import annotations

from dataclasses import dataclass, field

ALIKE = 3.0
"""Upright parts nearer than this look like one line."""
OVERLAP_COST = 10
SORT_LIMIT = 40
"""Nets between two rows up to which their order is improved pair by pair."""


@dataclass
class Net:
    """Lines that share one level part: pins where they come in or leave, above and below it."""

    above: set[float] = field(default_factory=set)
    below: set[float] = field(default_factory=set)
    track: int = 0

    @property
    def low(self) -> float:
        return min(self.above | self.below)

    @property
    def high(self) -> float:
        return max(self.above | self.below)


def assign_tracks(nets: list[Net], least: float) -> int:
    """Numbers the track of each net from the top, and returns how many there are.

    Nets whose level parts come nearer than ``least`` get different tracks. Their order keeps
    crossings few, and keeps upright parts of two nets from lying on each other.
    """
    spans = [(net.low, net.high) for net in nets]
    bent = [number for number, (low, high) in enumerate(spans) if high > low]
    # Lines that all lead one way do not cross when the furthest along turns off first.
    bent.sort(key=lambda number: _direction(nets[number]))
    if len(bent) <= SORT_LIMIT:
        _improve(bent, nets, spans)
    placed: list[int] = []
    for number in bent:
        low, high = spans[number]
        touching = (
            nets[other].track + 1
            for other in placed
            if spans[other][0] < high + least and low < spans[other][1] + least
        )
        nets[number].track = max(touching, default=0)
        placed.append(number)
    return max((nets[number].track + 1 for number in bent), default=0)


def _direction(net: Net) -> tuple[bool, float]:
    above, below = net.above or net.below, net.below or net.above
    rightward = sum(below) / len(below) >= sum(above) / len(above)
    return rightward, -min(above) if rightward else max(above)


def _improve(order: list[int], nets: list[Net], spans: list[tuple[float, float]]) -> None:
    """Swaps neighbours while that lowers the cost of their crossings."""
    costs: dict[tuple[int, int], int] = {}

    def cost(upper: int, lower: int) -> int:
        pair = (upper, lower)
        if pair not in costs:
            costs[pair] = _cost(nets[upper], spans[upper], nets[lower], spans[lower])
        return costs[pair]

    for _ in order:
        swapped = False
        for index in range(len(order) - 1):
            upper, lower = order[index], order[index + 1]
            if cost(lower, upper) < cost(upper, lower):
                order[index], order[index + 1] = lower, upper
                swapped = True
        if not swapped:
            return


def _cost(
    upper: Net, upper_span: tuple[float, float], lower: Net, lower_span: tuple[float, float]
) -> int:
    """Crossings, and upright parts on top of each other, of two nets in this order."""
    crossings = sum(upper_span[0] <= x <= upper_span[1] for x in lower.above)
    crossings += sum(lower_span[0] <= x <= lower_span[1] for x in upper.below)
    overlaps = sum(abs(x - y) < ALIKE for x in lower.above for y in upper.below)
    return crossings + OVERLAP_COST * overlaps
