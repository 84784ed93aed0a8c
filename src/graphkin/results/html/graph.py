"""A graph of somebody's own as markup: a pill for each node, and lines between them."""

from __future__ import annotations

import math

from graphkin.results.drawing.force import Positions
from graphkin.results.graph import ShownGraph
from graphkin.results.html.function import LETTER, Drawing
from graphkin.results.html.page import text
from graphkin.results.text import shortened

EDGE = 74.0
"""Pixels of a usual edge."""
HEIGHT = 24
LEAST_WIDTH = 34
MOST_LETTERS = 18
PADDING = 9
MARGIN = 40
LOOP = 16
HEAD = 7
"""Of an arrow."""


def draw_graph(shown: ShownGraph, places: Positions) -> Drawing:
    """One picture with all lines, then the nodes in their order, in a template.

    Args:
        shown: the graph.
        places: (N, 2) of its nodes, in lengths of an edge.
    """
    labels = [shortened(label, MOST_LETTERS) for label in shown.node_texts]
    widths = [_width(number, label) for number, label in enumerate(labels)]
    centres = [(x * EDGE + MARGIN + LEAST_WIDTH, y * EDGE + MARGIN) for x, y in places.tolist()]
    boxes = [
        (round(x - width / 2), round(y - HEIGHT / 2), width, HEIGHT)
        for (x, y), width in zip(centres, widths, strict=True)
    ]
    width = round(max(x for x, _ in centres) + MARGIN + LEAST_WIDTH)
    height = round(max(y for _, y in centres) + MARGIN)
    lines = "".join(
        _line(centres[source], centres[target], label, is_directed=shown.graph.directed)
        for (source, target), label in zip(
            shown.graph.edges.tolist(), shown.edge_texts, strict=True
        )
    )
    picture = (
        f'<svg class="edges" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" aria-hidden="true">{lines}</svg>'
    )
    nodes = "".join(
        f'<div class="block node" tabindex="0"><div class="strip"><b>{text(label)}</b>'
        f"<small>{number}</small></div><pre>{text(beside)}</pre></div>"
        for number, (label, beside) in enumerate(zip(labels, shown.neighbours(), strict=True))
    )
    return Drawing(f"{picture}<template>{nodes}</template>", boxes, width, height)


def _width(number: int, label: str) -> int:
    letters = len(label) + len(str(number)) + bool(label)
    return max(LEAST_WIDTH, round(letters * LETTER + 2 * PADDING))


def _line(
    start: tuple[float, float], end: tuple[float, float], label: str, *, is_directed: bool
) -> str:
    (x1, y1), (x2, y2) = start, end
    if start == end:
        left, right, top = x1 - LOOP / 2, x1 + LOOP / 2, y1 - HEIGHT / 2
        path = f"M{left:.0f} {top:.0f}C{left:.0f} {top - LOOP:.0f} {right:.0f} {top - LOOP:.0f} "
        path += f"{right:.0f} {top:.0f}"
        middle = x1, top - LOOP
    else:
        path = f"M{x1:.0f} {y1:.0f}L{x2:.0f} {y2:.0f}"
        middle = (x1 + x2) / 2, (y1 + y2) / 2
        path += _head(start, end) if is_directed else ""
    words = ""
    if label:
        words = f'<text x="{middle[0]:.0f}" y="{middle[1] - 3:.0f}">'
        words += f"{text(shortened(label, MOST_LETTERS))}</text>"
    return f'<path d="{path}"/>{words}'


def _head(start: tuple[float, float], end: tuple[float, float]) -> str:
    """An arrow's head two thirds along the line, where no node covers it."""
    (x1, y1), (x2, y2) = start, end
    angle = math.atan2(y2 - y1, x2 - x1)
    x, y = x1 + (x2 - x1) * 0.66, y1 + (y2 - y1) * 0.66
    sides = [
        (x - HEAD * math.cos(angle + turn), y - HEAD * math.sin(angle + turn))
        for turn in (0.45, -0.45)
    ]
    (ax, ay), (bx, by) = sides
    return f"M{ax:.0f} {ay:.0f}L{x:.0f} {y:.0f}L{bx:.0f} {by:.0f}"
