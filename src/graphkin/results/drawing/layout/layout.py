"""Layered drawings of control flow: boxes in rows, lines between them that cross no box.

After Sugiyama, Tagawa and Toda (1981): edges that go back are arranged, boxes get rows, rows get
an order, boxes and lanes get columns, and lines are led along the lanes. Nothing here draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphkin.results.drawing.layout.horizontal import place
from graphkin.results.drawing.layout.ordering import Edge, arrange, back_edges, rank
from graphkin.results.drawing.layout.routes import Point, Router, Spacing


@dataclass(frozen=True)
class Layout:
    """A drawing. Coordinates grow to the right and downwards, from (0, 0)."""

    corners: tuple[Point, ...]
    """(left, top) of each box."""
    paths: tuple[tuple[Point, ...], ...]
    """The line of each edge: from the lower side of its source to the upper side of its target,
    in parts that are level or upright. Edges to one target may share parts."""
    back: frozenset[Edge]
    """Edges that go up, or to the same box again."""
    width: float
    height: float


def lay_out(
    sizes: Sequence[tuple[float, float]],
    edges: Sequence[Edge],
    spacing: Spacing | None = None,
) -> Layout:
    """Places boxes so that none overlap, and box 0 in the first row.

    Args:
        sizes: (width, height) of each box.
        edges: pairs of boxes, each once.
        spacing: distances; those for text of 8 points by default.
    """
    gaps = spacing or Spacing()
    if not sizes:
        return Layout((), (), frozenset(), 2 * gaps.margin, 2 * gaps.margin)
    back = back_edges(len(sizes), edges)
    forward = [edge for edge in edges if edge not in back]
    arranged = arrange(rank(len(sizes), forward), edges, back)
    widths = [width for width, _ in sizes] + [0.0] * (len(arranged.row_of) - len(sizes))

    def distance(left: int, right: int) -> float:
        lane = arranged.is_lane(left) or arranged.is_lane(right)
        gap = gaps.beside_lane if lane else gaps.between_boxes
        return (widths[left] + widths[right]) / 2 + gap

    x = place(arranged, distance)
    router = Router(arranged, x, widths, edges, back, gaps)
    # Lines go above the first row, and below the last, only where there are tracks.
    spaces, tops, y = [], [], gaps.margin
    for row, nodes in enumerate([*arranged.rows, []]):
        tracks = router.tracks[row]
        outside = row in (0, len(arranged.rows))
        spaces.append(y + gaps.beside_row)
        if tracks or not outside:
            y += 2 * gaps.beside_row + max(tracks - 1, 0) * gaps.between_tracks
        tops.append(y)
        y += max((sizes[node][1] for node in nodes if not arranged.is_lane(node)), default=0.0)
    upper = [tops[arranged.row_of[box]] for box in range(len(sizes))]
    lower = [top + height for top, (_, height) in zip(upper, sizes, strict=True)]
    paths = router.paths(spaces, upper, lower)
    left = min(
        *(x[box] - widths[box] / 2 for box in range(len(sizes))),
        *(px for path in paths for px, _ in path),
        x[0],
    )
    shift = gaps.margin - left
    corners = [(x[box] - widths[box] / 2 + shift, upper[box]) for box in range(len(sizes))]
    moved = tuple(tuple((px + shift, py) for px, py in path) for path in paths)
    right = max(
        *(corner[0] + width for corner, (width, _) in zip(corners, sizes, strict=True)),
        *(px for path in moved for px, _ in path),
        corners[0][0],
    )
    return Layout(tuple(corners), moved, back, right + gaps.margin, y + gaps.margin)
