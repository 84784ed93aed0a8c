"""Draws the figure of the two models in how-it-works.md.

    python docs/draw_model.py [OUTPUT]

Writes docs/model.svg unless another file is named. The same matplotlib draws the same bytes. The
card behind the drawing makes it readable on pages of any colour.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle

HERE = Path(__file__).parent
# All lengths are in pixels of the page, from the upper left corner.
WIDTH, HEIGHT = 700, 408
CARD, RULE, INK, FAINT = "#fbfcfe", "#d5dbe3", "#1d2733", "#5a6675"
BLUE, ORANGE, PURPLE = "#2f6fb5", "#c8641b", "#7a3fa8"
TINTS = {BLUE: "#e6eff9", ORANGE: "#fbeee2", PURPLE: "#f1e8f8"}
TITLE, TEXT, SMALL = 15.0, 12.0, 11.5
NODE = 8.0

Point = tuple[float, float]
GRAPH_BOX = (120.0, 112.0)
# Two graphs that differ by one edge; points are inside such a box, and none of the lines from one
# node of the first to all of the second meets another node.
NODES: dict[str, tuple[Point, ...]] = {
    BLUE: ((28, 32), (86, 24), (60, 58), (26, 90), (94, 88)),
    ORANGE: ((88, 30), (30, 22), (62, 58), (92, 84), (28, 96)),
}
EDGES = {
    BLUE: ((0, 1), (0, 2), (1, 2), (2, 3), (2, 4)),
    ORANGE: ((0, 1), (0, 2), (1, 4), (2, 3), (2, 4)),
}
GRAPH_TOP, VECTOR_TOP, SCORE_TOP = 84.0, 250.0, 318.0
# How much one node of graph 1 looks at each node of graph 2.
LOOKING = 2
WEIGHTS = (0.16, 0.07, 0.62, 0.05, 0.10)


def main() -> None:
    output = Path(sys.argv[1]) if sys.argv[1:] else HERE / "model.svg"
    write(output)


def write(path: Path) -> None:
    """Draws the figure into an SVG file: no date, and no names made up at random."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({"svg.hashsalt": "graphkin", "svg.fonttype": "path"})
        figure().savefig(path, format="svg", metadata={"Date": None, "Creator": None})


def figure() -> Figure:
    drawing = Figure(figsize=(WIDTH / 72, HEIGHT / 72), dpi=72)
    drawing.patch.set_alpha(0)
    axes = drawing.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(HEIGHT, 0)
    axes.axis("off")
    box(axes, 1, 1, WIDTH - 2, HEIGHT - 2, fill=CARD, edge=RULE, radius=10)
    axes.plot([302, 302], [22, HEIGHT - 22], color=RULE, linewidth=1)
    draw_embedder(axes)
    draw_matcher(axes)
    return drawing


def draw_embedder(axes: Axes) -> None:
    left, right = 22.0, 160.0
    heading(axes, 151, "Embedding model", "GraphEmbedder: each graph on its own")
    for x, colour, number in ((left, BLUE, 1), (right, ORANGE, 2)):
        draw_graph(axes, x, colour, number)
        draw_vector(axes, x + GRAPH_BOX[0] / 2, colour, number)
    words(axes, 151, 214, "T steps: messages along edges")
    draw_sums(axes, (left, right))
    box(axes, 51, SCORE_TOP, 200, 28, fill="white", edge=FAINT)
    words(axes, 151, SCORE_TOP + 14, "similarity of the vectors", colour=INK, weight="bold")
    for x, end in ((left + 60, 110), (right + 60, 192)):
        arrow(axes, (x, VECTOR_TOP + 20), (end, SCORE_TOP - 1))
    words(axes, 151, 370, "Vectors are computed once and kept:")
    words(axes, 151, 387, "they search a whole library.")


def draw_matcher(axes: Axes) -> None:
    left, right, middle = 326.0, 556.0, 501.0
    heading(axes, middle, "Matching model", "GraphMatcher: both graphs together")
    draw_attention(axes, left, right)
    for x, colour, number in ((left, BLUE, 1), (right, ORANGE, 2)):
        draw_graph(axes, x, colour, number)
        draw_vector(axes, x + GRAPH_BOX[0] / 2, colour, number)
    words(axes, middle, GRAPH_TOP + 5, "attention of", colour=PURPLE)
    words(axes, middle, GRAPH_TOP + 20, "one node", colour=PURPLE)
    words(axes, middle, 214, "T steps: messages along edges, attention across")
    draw_sums(axes, (left, right))
    box(axes, 433, 240, 136, 54, fill=TINTS[PURPLE], edge=PURPLE)
    words(axes, middle, 253, "or alignment", colour=PURPLE, weight="bold")
    words(axes, middle, 269, "each node against", colour=INK)
    words(axes, middle, 284, "what it looks at", colour=INK)
    arrow(axes, (middle, 223), (middle, 239), PURPLE)
    box(axes, 401, SCORE_TOP, 200, 28, fill="white", edge=FAINT)
    words(axes, middle, SCORE_TOP + 14, "score of the pair", colour=INK, weight="bold")
    arrow(axes, (left + 60, VECTOR_TOP + 20), (432, SCORE_TOP - 1))
    arrow(axes, (right + 60, VECTOR_TOP + 20), (570, SCORE_TOP - 1))
    arrow(axes, (middle, 295), (middle, SCORE_TOP - 1), PURPLE)
    words(axes, middle, 370, "Every pair is computed anew, more accurately:")
    words(axes, middle, 387, "it ranks the best candidates again.")


def heading(axes: Axes, x: float, title: str, below: str) -> None:
    axes.text(x, 31, title, size=TITLE, weight="bold", color=INK, ha="center", va="center")
    words(axes, x, 53, below)


def words(
    axes: Axes, x: float, y: float, text: str, *, colour: str = FAINT, weight: str = "normal"
) -> None:
    size = TEXT if weight == "bold" else SMALL
    axes.text(x, y, text, size=size, color=colour, weight=weight, ha="center", va="center")


def draw_graph(axes: Axes, x: float, colour: str, number: int) -> None:
    """Nodes, and messages both ways along edges, in a box at ``x``."""
    width, height = GRAPH_BOX
    box(axes, x, GRAPH_TOP, width, height, fill=TINTS[colour], edge=colour)
    axes.text(
        x + width / 2,
        GRAPH_TOP - 9,
        f"graph {number}",
        size=TEXT,
        color=colour,
        weight="bold",
        ha="center",
        va="center",
    )
    points = placed(x, colour)
    for source, target in EDGES[colour]:
        arrow(axes, points[source], points[target], colour, "<|-|>", head=6, shrink=NODE + 1)
    for point in points:
        axes.add_patch(Circle(point, NODE, facecolor="white", edgecolor=colour, lw=2, zorder=4))


def placed(x: float, colour: str) -> list[Point]:
    """The nodes of a graph whose box is at ``x``."""
    return [(x + dx, GRAPH_TOP + dy) for dx, dy in NODES[colour]]


def draw_attention(axes: Axes, left: float, right: float) -> None:
    """From one node of graph 1 to all of graph 2, as wide as their weights."""
    start = placed(left, BLUE)[LOOKING]
    for end, weight in zip(placed(right, ORANGE), WEIGHTS, strict=True):
        axes.plot(
            *zip(start, end, strict=True),
            color=PURPLE,
            linewidth=1 + 5 * weight,
            alpha=0.35 + 0.6 * weight,
            linestyle=(0, (3, 1.2)),
            zorder=3,
        )


def draw_sums(axes: Axes, lefts: tuple[float, float]) -> None:
    """From the nodes of a graph to its vector."""
    for left in lefts:
        x = left + GRAPH_BOX[0] / 2
        arrow(axes, (x, 223), (x, VECTOR_TOP - 2))
        axes.text(x - 6, 235, "sum", size=SMALL, color=FAINT, ha="right", va="center")


def draw_vector(axes: Axes, x: float, colour: str, number: int) -> None:
    """Six cells around ``x``, darker for larger numbers."""
    cell, shades = 11.0, (0.25, 0.8, 0.5, 0.1, 0.65, 0.35)
    for place, shade in enumerate(shades if number == 1 else (*shades[:4], 0.3, 0.75)):
        corner = (x + (place - 3) * cell, VECTOR_TOP)
        axes.add_patch(Rectangle(corner, cell, 16, facecolor=colour, alpha=shade, lw=0))
    outline = (x - 3 * cell, VECTOR_TOP)
    axes.add_patch(Rectangle(outline, 6 * cell, 16, facecolor="none", edgecolor=colour, lw=1.2))


def box(
    axes: Axes,
    x: float,
    y: float,
    width: float,
    height: float,
    *,
    fill: str,
    edge: str,
    radius: float = 6,
) -> None:
    style = f"round,pad=0,rounding_size={radius}"
    axes.add_patch(
        FancyBboxPatch(
            (x, y),
            width,
            height,
            boxstyle=style,
            facecolor=fill,
            edgecolor=edge,
            linewidth=1.2,
            zorder=0,
        )
    )


def arrow(
    axes: Axes,
    start: Point,
    end: Point,
    colour: str = FAINT,
    style: str = "-|>",
    head: float = 9,
    shrink: float = 0,
) -> None:
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle=style,
            mutation_scale=head,
            shrinkA=shrink,
            shrinkB=shrink,
            color=colour,
            linewidth=1.3,
            zorder=2,
        )
    )


if __name__ == "__main__":
    main()
