"""Numbers as pictures: the sizes of a corpus, and how far probabilities hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import ConfigError
from graphkin.learning.reliability import Reliability
from graphkin.results.drawing.pictures import headless_pyplot, picture_ending, save_picture


def plot_sizes(nodes: NDArray[np.int64], edges: NDArray[np.int64], path: str | Path) -> None:
    """Draws the graphs of a corpus from the smallest to the largest, as the paper's appendix.

    Args:
        nodes: (G,) number of nodes of each graph.
        edges: (G,) number of edges.
        path: a file with the ending .png, .svg or .pdf.
    """
    pyplot = headless_pyplot()
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


def plot_reliability(measured: Reliability, path: str | Path) -> None:
    """Draws the share of similar pairs over their probability, and below how many there are.

    Bars span two standard errors each way: where probabilities are right, 19 of 20 reach the
    diagonal.

    Args:
        measured: from :func:`graphkin.learning.reliability.reliability`.
        path: a file with the ending .png, .svg or .pdf.
    """
    pyplot = headless_pyplot()
    picture_ending(path)
    means = np.array([b.mean_probability for b in measured.bins])
    shares = np.array([b.share_similar for b in measured.bins])
    counts = np.array([b.count for b in measured.bins])
    lows, highs = (np.array([getattr(b, end) for b in measured.bins]) for end in ("low", "high"))
    errors = 2 * np.sqrt(means * (1 - means) / counts)
    figure, (curve, sizes) = pyplot.subplots(
        2, 1, figsize=(5, 6), sharex=True, height_ratios=(4, 1), layout="constrained"
    )
    curve.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle=":", label="right")
    curve.errorbar(
        means,
        shares,
        errors,
        color="#1f4e79",
        marker="o",
        markersize=5,
        capsize=3,
        label="measured",
    )
    curve.set_xlim(0, 1)
    curve.set_ylim(-0.02, 1.02)
    curve.set_ylabel("share of similar pairs")
    error = 100 * measured.expected_calibration_error
    curve.set_title(f"expected calibration error {error:.1f} points", fontsize=11)
    curve.legend(frameon=False, loc="upper left")
    sizes.bar((lows + highs) / 2, counts, width=0.9 * (highs - lows), color="#1f4e79")
    sizes.set_ylabel("pairs")
    sizes.set_xlabel("probability of being similar")
    for axis in (curve, sizes):
        axis.spines[["top", "right"]].set_visible(False)
    save_picture(figure, path)
