"""Datasets of meshes made by hand: jittered shapes, a class for each."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from graphkin.graphs import Graph
from graphkin.graphs.converters.tudataset.dataset import write_tudataset


def shapes(
    classes: int = 20, views: int = 20, jitter: float = 2.0
) -> tuple[list[Graph], list[int]]:
    """Polygons with chords; a view moves every corner a little. Labels begin at 3."""
    rng = np.random.default_rng(7)
    graphs, labels = [], []
    for number in range(classes):
        corners = int(rng.integers(4, 9))
        points = rng.uniform((0, 40), (120, 80), (corners, 2))
        ring = [(i, (i + 1) % corners) for i in range(corners)]
        edges, types = [*ring, (0, 2)], [0] * corners + [1]
        for _ in range(views):
            moved = points + rng.normal(0, jitter, points.shape)
            graphs.append(Graph(corners, edges, node_features=moved, edge_types=types))
            labels.append(3 + number)
    return graphs, labels


def write_meshes(path: Path, classes: int = 20, views: int = 20) -> Path:
    """A zip of a dataset of shapes, in no order of classes, as TUDataset has it."""
    graphs, labels = shapes(classes, views)
    order = np.random.default_rng(8).permutation(len(graphs)).tolist()
    folder = path.with_suffix("")
    write_tudataset(folder, "MESH", [graphs[n] for n in order], [labels[n] for n in order])
    with zipfile.ZipFile(path, "w") as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"MESH/{file.name}")
    return path
