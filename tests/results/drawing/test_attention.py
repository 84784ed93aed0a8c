"""Pictures: files of each format, and what is drawn in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib import image, pyplot
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from graphkin.errors import ConfigError, StorageError
from graphkin.graphs import Graph
from graphkin.models import AttentionMaps, GraphMatcher, ModelConfig
from graphkin.models.node_matching import PartnerMaps
from graphkin.results.drawing.attention import plot_attention

RING = Graph(6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 3)])
STAR = Graph(4, [(0, 1), (0, 2), (0, 3)])
LONE = Graph(1, [])
SPLIT = Graph(5, [(0, 1), (2, 3)])


@pytest.fixture(scope="module")
def matcher() -> GraphMatcher:
    torch.manual_seed(0)
    return GraphMatcher(ModelConfig.named("gmn", node_dim=8, message_dim=8, graph_dim=8, steps=3))


def permutation_maps(order: list[int], weight: float = 1.0) -> AttentionMaps:
    """One step in which node i of the first graph and node order[i] of the second match."""
    left_to_right = np.full(
        (len(order), len(order)), (1 - weight) / (len(order) - 1), dtype=np.float32
    )
    left_to_right[np.arange(len(order)), order] = weight
    return AttentionMaps(
        [left_to_right, left_to_right], [left_to_right.T, left_to_right.T], score=0.0
    )


MAGIC = {".png": b"\x89PNG\r\n\x1a\n", ".svg": b"<?xml", ".pdf": b"%PDF-"}


@pytest.mark.parametrize("ending", MAGIC)
@pytest.mark.parametrize("pair", [(RING, STAR), (STAR, RING)], ids=["larger first", "smaller"])
def test_graphs_of_unequal_size(
    matcher: GraphMatcher, tmp_path: Path, ending: str, pair: tuple[Graph, Graph]
) -> None:
    path = tmp_path / f"picture{ending}"
    plot_attention(*pair, matcher.explain(*pair), path, title="A pair")
    content = path.read_bytes()
    assert content.startswith(MAGIC[ending])
    assert len(content) > 5_000


def test_the_picture_shows_something(matcher: GraphMatcher, tmp_path: Path) -> None:
    path = tmp_path / "picture.png"
    plot_attention(RING, STAR, matcher.explain(RING, STAR), str(path))
    pixels = image.imread(path)[..., :3]
    assert min(pixels.shape[:2]) > 300
    red, green, blue = np.moveaxis(pixels, -1, 0)
    assert ((green > red + 0.05) & (green > blue + 0.05)).sum() > 500, "lines of attention"
    assert ((blue > red + 0.2) & (blue > green + 0.1)).sum() > 500, "nodes"


@pytest.mark.parametrize("pair", [(LONE, RING), (RING, LONE), (LONE, LONE), (SPLIT, RING)])
def test_awkward_graphs(matcher: GraphMatcher, tmp_path: Path, pair: tuple[Graph, Graph]) -> None:
    path = tmp_path / "picture.png"
    plot_attention(*pair, matcher.explain(*pair), path)
    assert image.imread(path)[..., :3].std() > 0.01


def test_one_row_for_each_step(matcher: GraphMatcher, tmp_path: Path) -> None:
    maps = matcher.explain(RING, STAR)
    heights = []
    for steps in (None, [0, 3], [2]):
        plot_attention(RING, STAR, maps, tmp_path / "picture.png", steps=steps)
        heights.append(image.imread(tmp_path / "picture.png").shape[0])
    assert heights[0] - heights[1] == pytest.approx(2 * (heights[1] - heights[2]), abs=2)


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """Positions of nodes and lines, as they are handed to matplotlib."""
    seen: dict[str, list[Any]] = {"nodes": [], "lines": []}
    scatter, add = Axes.scatter, Axes.add_collection

    def watched_scatter(axis: Axes, x: Any, y: Any, **options: Any) -> Any:
        seen["nodes"].append(np.stack([x, y], axis=1))
        return scatter(axis, x, y, **options)

    def watched_add(axis: Axes, collection: Any, **options: Any) -> Any:
        if isinstance(collection, LineCollection) and collection.get_linewidth()[0] > 1:
            seen["lines"].append((collection.get_segments(), collection.get_colors()[:, 3]))
        return add(axis, collection, **options)

    monkeypatch.setattr(Axes, "scatter", watched_scatter)
    monkeypatch.setattr(Axes, "add_collection", watched_add)
    return seen


def test_matching_nodes_are_level(drawn: dict[str, list[Any]], tmp_path: Path) -> None:
    order = [3, 5, 0, 1, 4, 2]
    maps = permutation_maps(order)
    plot_attention(RING, RING, maps, tmp_path / "picture.png", steps=[1])
    left, right = drawn["nodes"][:2]
    shift = right[order] - left
    assert np.allclose(shift, shift[0])
    assert shift[0][0] > 2
    assert shift[0][1] == 0
    for segments, _ in drawn["lines"]:
        assert len(segments) == 6
        assert all(start[1] == pytest.approx(end[1]) for start, end in segments)


def test_opacity_is_the_weight(drawn: dict[str, list[Any]], tmp_path: Path) -> None:
    order = [1, 0, 2, 3]
    maps = permutation_maps(order, weight=0.7)
    plot_attention(STAR, STAR, maps, tmp_path / "picture.png", steps=[0])
    for segments, opacity in drawn["lines"]:
        assert len(segments) == 16
        assert sorted(opacity)[-4:] == pytest.approx([max(opacity)] * 4)
        assert min(opacity) / max(opacity) == pytest.approx(0.1 / 0.7)


def test_faint_lines_are_left_out(drawn: dict[str, list[Any]], tmp_path: Path) -> None:
    maps = permutation_maps([1, 0, 2, 3], weight=0.97)
    plot_attention(STAR, STAR, maps, tmp_path / "picture.png", steps=[0])
    assert [len(segments) for segments, _ in drawn["lines"]] == [4, 4]


@pytest.mark.parametrize("steps", [[-1], [4], [0, 99]])
def test_steps_that_were_not_computed(
    matcher: GraphMatcher, tmp_path: Path, steps: list[int]
) -> None:
    maps = matcher.explain(RING, STAR)
    message = rf"step {steps[-1]} was not computed; there are 0\.\.3"
    with pytest.raises(ConfigError, match=message):
        plot_attention(RING, STAR, maps, tmp_path / "picture.png", steps=steps)
    assert not (tmp_path / "picture.png").exists()


def test_graphs_too_large_for_a_picture(matcher: GraphMatcher, tmp_path: Path) -> None:
    maps = PartnerMaps.of(matcher.explain(RING, STAR))
    with pytest.raises(ConfigError, match="graphs of 6 and 4 nodes are too large for a picture"):
        plot_attention(RING, STAR, maps, tmp_path / "picture.png")


def test_no_steps_at_all(matcher: GraphMatcher, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="step"):
        plot_attention(RING, STAR, matcher.explain(RING, STAR), tmp_path / "picture.png", steps=[])


@pytest.mark.parametrize("name", ["picture.doc", "absent/picture.png"])
def test_pictures_that_cannot_be_written(matcher: GraphMatcher, tmp_path: Path, name: str) -> None:
    with pytest.raises(StorageError, match=f"cannot write the picture .*{name}"):
        plot_attention(RING, STAR, matcher.explain(RING, STAR), tmp_path / name)
    assert not any(tmp_path.iterdir())


def test_no_figure_stays_open(matcher: GraphMatcher, tmp_path: Path) -> None:
    before = pyplot.get_fignums()
    maps = matcher.explain(RING, STAR)
    plot_attention(RING, STAR, maps, tmp_path / "picture.png")
    with pytest.raises(StorageError):
        plot_attention(RING, STAR, maps, tmp_path / "picture.doc")
    assert pyplot.get_fignums() == before
