"""Charts: files of each format, and what is drawn in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes

from graphkin.errors import ConfigError, StorageError
from graphkin.learning.reliability import Bin, Reliability
from graphkin.results.drawing.charts import plot_reliability, plot_sizes

MAGIC = {".png": b"\x89PNG\r\n\x1a\n", ".svg": b"<?xml", ".pdf": b"%PDF-"}
NODES = np.array([30, 5, 7, 400, 12])
EDGES = np.array([44, 6, 9, 610, 0])


@pytest.mark.parametrize("ending", MAGIC)
def test_sizes_in_every_format(tmp_path: Path, ending: str) -> None:
    plot_sizes(NODES, EDGES, tmp_path / f"sizes{ending}")
    assert (tmp_path / f"sizes{ending}").read_bytes().startswith(MAGIC[ending])
    assert pyplot.get_fignums() == []


def test_sizes_are_drawn_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, list[float]] = {}
    plot = Axes.plot

    def noted(self: Axes, x: Any, y: Any, **options: Any) -> Any:
        drawn[options["label"]] = np.asarray(y).tolist()
        assert np.asarray(x).tolist() == [1, 2, 3, 4, 5]
        return plot(self, x, y, **options)

    monkeypatch.setattr(Axes, "plot", noted)
    plot_sizes(NODES, EDGES, tmp_path / "sizes.svg")
    assert drawn == {"nodes": [5, 7, 12, 30, 400], "edges": [0, 6, 9, 44, 610]}


def test_no_sizes_to_draw(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no graphs"):
        plot_sizes(NODES[:0], EDGES[:0], tmp_path / "sizes.png")
    assert list(tmp_path.iterdir()) == []


def test_sizes_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot write the picture"):
        plot_sizes(NODES, EDGES, tmp_path / "absent" / "sizes.png")
    with pytest.raises(ConfigError, match=r"sizes.xyz: name a file that ends in .png"):
        plot_sizes(NODES, EDGES, tmp_path / "sizes.xyz")
    assert pyplot.get_fignums() == []


def test_the_reliability_curve(tmp_path: Path) -> None:
    measured = Reliability((Bin(0.0, 0.5, 0.2, 0.25, 30), Bin(0.5, 1.0, 0.9, 0.8, 50)))
    plot_reliability(measured, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ConfigError, match=r"curve\.txt"):
        plot_reliability(measured, tmp_path / "curve.txt")
