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


STYLE = (
    ".l{stroke:#59636e;fill:none;stroke-width:1.2}.n{fill:#eaeef2;stroke:#8c959f}"
    "text{font:11px monospace;text-anchor:middle;fill:#1f2328}.e{font-size:10px;fill:#59636e}"
)
"""Of a picture by itself."""


def graph_picture(shown: ShownGraph, places: Positions) -> str:
    """One SVG file."""
    width, height, centres = _canvas(places)
    labels = [shortened(label, MOST_LETTERS) for label in shown.node_texts]
    nodes = []
    for number, ((x, y), label) in enumerate(zip(centres, labels, strict=True)):
        wide = _width(number, label)
        nodes.append(
            f'<rect class="n" x="{x - wide / 2:.0f}" y="{y - HEIGHT / 2:.0f}" width="{wide}" '
            f'height="{HEIGHT}" rx="12"/><text x="{x:.0f}" y="{y + 4:.0f}">'
            f"{text(f'{label} {number}'.strip())}</text>"
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}"><style>{STYLE}</style>'
        f'<rect width="100%" height="100%" fill="#fff"/>{_lines(shown, centres)}'
        f"{''.join(nodes)}</svg>"
    )


def draw_graph(shown: ShownGraph, places: Positions) -> Drawing:
    """One picture with all lines, then the nodes in their order, in a template.

    Args:
        shown: the graph.
        places: (N, 2) of its nodes, in lengths of an edge.
    """
    labels = [shortened(label, MOST_LETTERS) for label in shown.node_texts]
    widths = [_width(number, label) for number, label in enumerate(labels)]
    width, height, centres = _canvas(places)
    boxes = [
        (round(x - wide / 2), round(y - HEIGHT / 2), wide, HEIGHT)
        for (x, y), wide in zip(centres, widths, strict=True)
    ]
    picture = (
        f'<svg class="edges" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" aria-hidden="true">{_lines(shown, centres)}</svg>'
    )
    nodes = "".join(
        f'<div class="block node" tabindex="0"><div class="strip"><b>{text(label)}</b>'
        f"<small>{number}</small></div><pre>{text(beside)}</pre></div>"
        for number, (label, beside) in enumerate(zip(labels, shown.neighbours(), strict=True))
    )
    return Drawing(f"{picture}<template>{nodes}</template>", boxes, width, height)


def _canvas(places: Positions) -> tuple[int, int, list[tuple[float, float]]]:
    """Width and height, and the centre of each node."""
    side = MARGIN + LEAST_WIDTH
    centres = [(x * EDGE + side, y * EDGE + MARGIN) for x, y in places.tolist()]
    width = max(x for x, _ in centres) + side
    return round(width), round(max(y for _, y in centres) + MARGIN), centres


def _lines(shown: ShownGraph, centres: list[tuple[float, float]]) -> str:
    edges = zip(shown.graph.edges.tolist(), shown.edge_texts, strict=True)
    return "".join(
        _line(centres[source], centres[target], label, is_directed=shown.graph.directed)
        for (source, target), label in edges
    )


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
        words = f'<text class="e" x="{middle[0]:.0f}" y="{middle[1] - 3:.0f}">'
        words += f"{text(shortened(label, MOST_LETTERS))}</text>"
    return f'<path class="l" d="{path}"/>{words}'


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
