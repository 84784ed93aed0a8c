"""Lines of a drawing: level and upright parts that keep clear of every box."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from graphkin.results.drawing.layout.ordering import Edge, Rows
from graphkin.results.drawing.layout.tracks import Net, assign_tracks

FAN = 3
"""Edges from one box, from which on they leave it as one line that branches: a switch."""
CORNER = 8.0
"""Lines leave a box at least this far from its corners."""

Point = tuple[float, float]


@dataclass(frozen=True)
class Spacing:
    """Distances of a drawing, all in the unit of the boxes' sizes."""

    between_boxes: float = 26.0
    beside_lane: float = 13.0
    """From a lane to the box, or the lane, next to it."""
    between_tracks: float = 8.0
    """From one level part of a line to the next, between two rows."""
    beside_row: float = 13.0
    """From a row of boxes to the first track; room for the head of an arrow."""
    between_ports: float = 18.0
    """Where lines leave a box at its lower side."""
    margin: float = 16.0


class Bend(NamedTuple):
    """What lines do in one space between rows: come in at one place, leave at another."""

    space: int
    """The space above the row of this number; the last one is below all rows."""
    net: tuple[str, int]
    enters: float
    leaves: float


@dataclass
class Trunk:
    """The way along the lanes of one target, which all edges that it leads there share."""

    is_down: bool
    bends: list[Bend] = field(default_factory=list)
    """In the order of the way."""

    def after(self, space: int) -> int:
        """How many bends lie before those that follow a space on the way."""
        sign = 1 if self.is_down else -1
        return bisect_right(self.bends, sign * space, key=lambda bend: sign * bend.space)


class Lead(NamedTuple):
    """An edge: a bend of its own, then what is left of a trunk."""

    bend: Bend
    trunk: tuple[str, int]


class Router:
    """Leads edges along the lanes of arranged rows.

    Args:
        arranged: boxes and lanes.
        x: centres of the nodes.
        widths: of the boxes.
        edges: pairs of boxes.
        back: those of them that go up.
        spacing: distances.
    """

    def __init__(
        self,
        arranged: Rows,
        x: Sequence[float],
        widths: Sequence[float],
        edges: Sequence[Edge],
        back: frozenset[Edge],
        spacing: Spacing,
    ) -> None:
        self._found = arranged
        self._x = x
        self._widths = widths
        self._edges = edges
        self._back = back
        self._spacing = spacing
        self._loops = {target for _, target in back}
        self._fans: set[int] = set()
        self._ports = self._leave_boxes()
        self._nets: list[dict[tuple[str, int], Net]] = [{} for _ in range(len(arranged.rows) + 1)]
        self._trunks: dict[tuple[str, int], Trunk] = {}
        self._leads = [self._lead(source, target) for source, target in edges]
        self.tracks = [
            assign_tracks(list(nets.values()), spacing.beside_lane) for nets in self._nets
        ]
        """How many tracks each space between rows needs."""

    def paths(
        self, spaces: Sequence[float], tops: Sequence[float], bottoms: Sequence[float]
    ) -> list[list[Point]]:
        """The corners of each edge's line, from box to box.

        Args:
            spaces: vertical place of each space's first track.
            tops: upper side of each box.
            bottoms: lower side of each box.
        """
        corners = {
            name: [point for bend in trunk.bends for point in self._corners(bend, spaces)]
            for name, trunk in self._trunks.items()
        }
        lines = []
        for (source, target), (bend, name) in zip(self._edges, self._leads, strict=True):
            done = 2 * self._trunks[name].after(bend.space)
            points = [(bend.enters, bottoms[source]), *self._corners(bend, spaces)]
            points += corners[name][done:]
            points.append((points[-1][0], tops[target]))
            lines.append(_without_straight_points(points))
        return lines

    def _corners(self, bend: Bend, spaces: Sequence[float]) -> tuple[Point, Point]:
        track = self._nets[bend.space][bend.net].track
        y = spaces[bend.space] + track * self._spacing.between_tracks
        return (bend.enters, y), (bend.leaves, y)

    def _leave_boxes(self) -> dict[Edge, float]:
        """Where each edge leaves its source."""
        arranged = self._found
        leaving: dict[int, list[tuple[float, int]]] = {}
        for source, target in self._edges:
            row = arranged.row_of[source]
            if (source, target) in self._back:
                ahead = self._x[arranged.up[target, row]]
            else:
                ahead = self._arrives(target, row + 1)
            leaving.setdefault(source, []).append((ahead, target))
        ports: dict[Edge, float] = {}
        for source, ends in leaving.items():
            ends.sort()
            down = [target for _, target in ends if (source, target) not in self._back]
            if len(down) >= FAN:
                self._fans.add(source)
                ports.update({(source, target): self._x[source] for target in down})
                shift = self._step(source)
                up = [target for _, target in ends if (source, target) in self._back]
                ports.update({(source, target): self._x[source] - shift for target in up})
            else:
                positions = self._spread(source, [ahead for ahead, _ in ends])
                for (_, target), position in zip(ends, positions, strict=True):
                    ports[source, target] = position
        return ports

    def _step(self, box: int) -> float:
        """From the middle of a box to where a line beside another one leaves or enters it."""
        return min(self._spacing.between_ports, self._widths[box] / 3)

    def _spread(self, box: int, ahead: list[float]) -> list[float]:
        """Places along the lower side: straight above where a line goes, or a step towards it."""
        centre, half = self._x[box], max(self._widths[box] / 2 - CORNER, 0.0)
        step = min(self._step(box), half)
        ideal = [
            x if abs(x - centre) <= half else centre + (step if x > centre else -step)
            for x in ahead
        ]
        if len(ideal) < 2:
            return ideal
        # Lines may come a little closer than that where it keeps one of them straight.
        least = min(self._spacing.between_ports / 2, 2 * half / (len(ideal) - 1))
        for index in range(1, len(ideal)):
            ideal[index] = max(ideal[index], ideal[index - 1] + least)
        limit = centre + half
        for index in reversed(range(len(ideal))):
            ideal[index] = min(ideal[index], limit)
            limit = ideal[index] - least
        return ideal

    def _arrives(self, target: int, row: int) -> float:
        """Where an edge on its way down enters a row."""
        lane = self._found.down.get((target, row)) if row < self._found.row_of[target] else None
        return self._x[target if lane is None else lane]

    def _lead(self, source: int, target: int) -> Lead:
        if (source, target) in self._back:
            return self._lead_up(source, target)
        first = self._found.row_of[source] + 1
        name = ("from", source) if source in self._fans else ("to", target)
        bend = Bend(first, name, self._ports[source, target], self._arrives(target, first))
        net = self._net(bend)
        net.above.add(bend.enters)
        net.below.add(bend.leaves)
        return Lead(bend, self._trunk_down(target))

    def _trunk_down(self, target: int) -> tuple[str, int]:
        """The lanes from the space below the first of them."""
        name = ("to", target)
        if name in self._trunks:
            return name
        arranged, last = self._found, self._found.row_of[target]
        first = last
        while (target, first - 1) in arranged.down:
            first -= 1
        trunk = self._trunks[name] = Trunk(is_down=True)
        for row in range(first + 1, last + 1):
            bend = Bend(row, name, self._arrives(target, row - 1), self._arrives(target, row))
            net = self._net(bend)
            net.above.add(bend.enters)
            net.below.add(bend.leaves)
            # Straight lines have no corners.
            if bend.enters != bend.leaves:
                trunk.bends.append(bend)
        return name

    def _lead_up(self, source: int, target: int) -> Lead:
        """Out below, up through the lanes, and in again from above."""
        row = self._found.row_of[source]
        lane = self._x[self._found.up[target, row]]
        bend = Bend(row + 1, ("back to", target), self._ports[source, target], lane)
        self._net(bend).above.update((bend.enters, bend.leaves))
        return Lead(bend, self._trunk_up(target))

    def _trunk_up(self, target: int) -> tuple[str, int]:
        """The lanes from the lowest of them, and into the target."""
        name = ("back to", target)
        if name in self._trunks:
            return name
        arranged, top = self._found, self._found.row_of[target]
        bottom = top
        while (target, bottom + 1) in arranged.up:
            bottom += 1
        trunk = self._trunks[name] = Trunk(is_down=False)
        for row in range(bottom - 1, top - 1, -1):
            lanes = [self._x[arranged.up[target, level]] for level in (row + 1, row)]
            bend = Bend(row + 1, name, *lanes)
            net = self._net(bend)
            net.below.add(bend.enters)
            net.above.add(bend.leaves)
            if bend.enters != bend.leaves:
                trunk.bends.append(bend)
        port = self._x[target] - self._step(target)
        last = Bend(top, name, self._x[arranged.up[target, top]], port)
        self._net(last).below.update((last.enters, last.leaves))
        trunk.bends.append(last)
        return name

    def _net(self, bend: Bend) -> Net:
        return self._nets[bend.space].setdefault(bend.net, Net())


def _without_straight_points(points: list[Point]) -> list[Point]:
    """Leaves out points that are equal to the one before, or on the way to the next."""
    kept: list[Point] = []
    for point in points:
        if kept and kept[-1] == point:
            continue
        if len(kept) > 1 and (
            kept[-2][0] == kept[-1][0] == point[0] or kept[-2][1] == kept[-1][1] == point[1]
        ):
            kept.pop()
        kept.append(point)
    return kept
