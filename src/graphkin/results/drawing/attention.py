"""Pictures for people: attention between two graphs, and the sizes of a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from graphkin.errors import ConfigError
from graphkin.graphs import Graph
from graphkin.graphs.converters.from_networkx import to_networkx
from graphkin.models.node_matching import MOST_WEIGHTS, AttentionMaps, PartnerMaps
from graphkin.results.drawing.pictures import headless_pyplot, save_picture

Positions = NDArray[np.float64]

FAINTEST = 0.1
"""Weights below this share of the largest are left out."""
GAP = 3.2
"""Distance between the centres of the two graphs, in units of their size."""


def plot_attention(
    left: Graph,
    right: Graph,
    maps: AttentionMaps | PartnerMaps,
    path: str | Path,
    *,
    steps: Sequence[int] | None = None,
    columns: int = 1,
    relative: bool = True,
    title: str = "",
) -> None:
    """Draws both graphs, with green lines across: the stronger the attention, the less faint.

    Opacity is the weight, by default as a share of the largest weight in the picture.
    Two panels for each propagation step; on the left the first graph looks at the second, on
    the right the other way round. Nodes of the second graph are placed by the node that they
    match best after the last step, so that a good match draws level lines.

    Args:
        left: the first graph of the pair.
        right: the second.
        maps: from :meth:`graphkin.GraphMatcher.explain`.
        path: a file with the ending .png, .svg or .pdf.
        steps: which steps to draw; all of them by default.
        columns: steps in a row of the picture.
        relative: whether the largest weight is drawn in full; else a weight of 1 would be.
        title: a line above the picture.

    Raises:
        ConfigError: for steps that are not there, or graphs too large for a picture.
    """
    if isinstance(maps, PartnerMaps):
        raise ConfigError(
            f"graphs of {left.num_nodes} and {right.num_nodes} nodes are too large for a picture "
            f"of attention, which has at most {MOST_WEIGHTS} pairs of nodes"
        )
    pyplot = headless_pyplot()
    chosen = list(range(maps.steps + 1)) if steps is None else list(steps)
    if not chosen:
        raise ConfigError("steps is empty; name at least one step to draw")
    for step in chosen:
        if not 0 <= step <= maps.steps:
            raise ConfigError(f"step {step} was not computed; there are 0..{maps.steps}")
    ours = _layout(left)
    theirs = _matched_layout(ours, right, maps.left_to_right[-1] + maps.right_to_left[-1].T)
    if columns < 1:
        raise ConfigError(f"columns must be at least 1, got {columns}")
    columns = min(columns, len(chosen))
    rows = -(-len(chosen) // columns)
    figure, axes = pyplot.subplots(
        rows,
        2 * columns,
        figsize=(10 * columns, 2.2 * rows + 0.8),
        squeeze=False,
        layout="constrained",
    )
    both = [(maps.left_to_right[step], maps.right_to_left[step].T) for step in chosen]
    largest = max(float(weights.max()) for pair in both for weights in pair)
    full = largest if relative else 1.0
    panels = axes.reshape(-1, 2)
    for (left_to_right, right_to_left), step, pair in zip(panels, chosen, both, strict=False):
        for axis, weights in zip((left_to_right, right_to_left), pair, strict=True):
            _draw(axis, left, right, ours, theirs, weights / full, FAINTEST * largest / full)
        plural = "step" if step == 1 else "steps"
        left_to_right.set_ylabel(f"{step} {plural}", fontsize=11)
    for left_to_right, right_to_left in panels[:columns]:
        left_to_right.set_title("the first graph looks at the second", fontsize=11)
        right_to_left.set_title("the second graph looks at the first", fontsize=11)
    for axis in panels[len(chosen) :].flat:
        axis.set_visible(False)
    if title:
        figure.suptitle(title)
    save_picture(figure, path)


def _layout(graph: Graph) -> Positions:
    """(N, 2) positions within [-1, 1]."""
    import networkx

    positions = networkx.kamada_kawai_layout(to_networkx(graph))
    return np.array([positions[node] for node in range(graph.num_nodes)])


def _matched_layout(ours: Positions, right: Graph, weights: NDArray[np.float32]) -> Positions:
    """Positions of the second graph: those of the nodes it matches; the rest by its own layout."""
    theirs = _layout(right)
    rows, columns = linear_sum_assignment(-weights)
    theirs[columns] = ours[rows]
    return theirs


def _draw(
    axis: Any,
    left: Graph,
    right: Graph,
    ours: Positions,
    theirs: Positions,
    opacity: NDArray[np.float32],
    faintest: float,
) -> None:
    from matplotlib.collections import LineCollection

    shifted = theirs + np.array([GAP, 0.0])
    for graph, positions in ((left, ours), (right, shifted)):
        inner = LineCollection(
            list(positions[graph.edges]), colors="0.35", linewidths=0.8, zorder=1
        )
        axis.add_collection(inner)
        axis.scatter(*positions.T, s=26, color="#1f4e79", zorder=3)
    rows, columns = np.nonzero(opacity >= faintest)
    across = np.stack([ours[rows], shifted[columns]], axis=1)
    colors = np.tile([0.13, 0.6, 0.2, 1.0], (len(rows), 1))
    colors[:, 3] = opacity[rows, columns]
    axis.add_collection(LineCollection(list(across), colors=colors, linewidths=1.4, zorder=2))
    axis.set_xlim(-1.15, GAP + 1.15)
    axis.set_ylim(-1.15, 1.15)
    axis.set_xticks([])
    axis.set_yticks([])
    for spine in axis.spines.values():
        spine.set_visible(False)
