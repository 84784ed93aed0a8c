"""How large graphs are: nodes and edges of a corpus as a picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import ConfigError
from graphkin.results.drawing.files import picture_ending, save_picture


def plot_sizes(nodes: NDArray[np.int64], edges: NDArray[np.int64], path: str | Path) -> None:
    """Draws the graphs of a corpus from the smallest to the largest, as the paper's appendix.

    Args:
        nodes: (G,) number of nodes of each graph.
        edges: (G,) number of edges.
        path: a file with the ending .png, .svg or .pdf.
    """
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    picture_ending(path)
    if not len(nodes):
        raise ConfigError("there are no graphs to draw; extract some binaries first")
    figure, axis = pyplot.subplots(figsize=(7, 4.2), layout="constrained")
    for counts, name, color in ((edges, "edges", "#c0504d"), (nodes, "nodes", "#1f4e79")):
        axis.plot(np.arange(1, len(counts) + 1), np.sort(counts), color=color, label=name)
    axis.axhline(float(np.median(nodes)), color="0.6", linewidth=0.8, linestyle=":")
    axis.annotate(f"median {np.median(nodes):g} nodes", (len(nodes) * 0.02, np.median(nodes) * 1.1))
    axis.set_yscale("log")
    axis.set_xlabel("graphs, sorted by size")
    axis.set_ylabel("size")
    axis.set_title(f"{len(nodes):,} control-flow graphs, mean {nodes.mean():.0f} nodes")
    axis.legend(frameon=False, loc="upper left")
    axis.spines[["top", "right"]].set_visible(False)
    save_picture(figure, path)
