"""Meshes of objects (COIL-DEL): do two graphs show the same object from different sides?

Two splits say what is unseen. By class, the objects of the test set occur in training nowhere,
as the functions of :mod:`graphkin.research.tasks.functions.task` do. By graph, every object is
known, and other views of it are asked for.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from graphkin._support.settings import check_at_least, check_types
from graphkin.errors import ConfigError
from graphkin.graphs import Graph, PairBatch
from graphkin.graphs.converters.tudataset.dataset import read_tudataset
from graphkin.learning.datasets.classes import ClassDataset
from graphkin.learning.datasets.dataset import model_inputs
from graphkin.learning.datasets.sampling import Index
from graphkin.learning.datasets.splits import (
    FOLDS,
    SHARES,
    check_recipe,
    split_classes,
    text_hash,
)
from graphkin.learning.evaluation import Neighbours
from graphkin.learning.task import EvaluationSet, Mode, Recipe, Split
from graphkin.models.config import STRONG

SplitBy = Literal["class", "graph"]
STRONG_MODEL: dict[str, Any] = {"message_norm": "graph", "similarity": "cosine"}
"""What our models change in the paper's architecture."""
CONTRASTIVE: dict[str, Any] = {"loss": "contrastive", "scale": 20.0, "clip": 1.0}
STRONG_TRAINING: dict[str, dict[str, Any]] = {
    "gnn": {"mode": "kin", **CONTRASTIVE},
    "gmn": {"mode": "lists", "batch_size": 20, "learning_rate": 3e-4, **CONTRASTIVE},
}
"""How our models are trained; a matcher begins with an embedder's weights."""
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class MeshTask:
    """Graphs of a labelled dataset with coordinates at their nodes; those of a class are similar.

    Coordinates are standardised: less the mean of all nodes of the training graphs, over their
    standard deviation, column by column. Labels of edges are their types.

    Args:
        data: the folder or zip of a TUDataset, such as COIL-DEL.zip.
        split: whether classes are divided into training, validation and test, so that test classes
            are unseen; or the graphs of every class.
        seed: seed of the training data. Splits and evaluation sets do not depend on it.
        evaluation_size: pairs, and triplets, of an evaluation set.
        distortion: by how much, in standard deviations of the coordinates, training graphs are bent
            out of shape each time that they are drawn: turned, stretched and sheared, moved, and
            every node on its own.
        fold: which tenth is the test set, from 0 to 9; the tenth before it is for validation.
    """

    data: str
    split: SplitBy = "class"
    seed: int = 0
    evaluation_size: int = 1000
    distortion: float = 0.0
    fold: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", str(self.data))
        check_types(self)
        check_at_least(self, 0, "seed", "distortion", "fold")
        if not math.isfinite(self.distortion):
            raise ConfigError(f"distortion must be finite, got {self.distortion}")
        if self.fold >= FOLDS:
            raise ConfigError(f"fold must lie in 0..{FOLDS - 1}, got {self.fold}")
        check_at_least(self, 2, "evaluation_size")

    def batch(
        self, step: int, size: int, mode: Mode, *, rank: int = 0, world: int = 1
    ) -> PairBatch:
        """The training batch of one step; see :class:`graphkin.learning.task.Task`.

        Pairs are similar and dissimilar in turn.
        """
        if mode not in get_args(Mode):
            raise ConfigError(f"mode must be one of {', '.join(get_args(Mode))}; got {mode!r}")
        return self._dataset.batch(step, size, mode, rank=rank, world=world)

    def evaluation_set(self, split: Split) -> EvaluationSet:
        """The fixed pairs and triplets of a split: the same for every ``seed``."""
        return self._dataset.evaluation_set(split)

    def neighbours(self, split: Split) -> Neighbours:
        """The graphs of a split, and those among which their nearest is looked for.

        By class, all others of the split; by graph, the training graphs.
        """
        return self._dataset.neighbours(split)

    def recipe(self, model: str, kind: str = "paper") -> Recipe:
        """Inputs of the model as the dataset has them, and how it is trained."""
        check_recipe(kind, ("paper", "strong"))
        options = model_inputs(self.graphs)
        training: dict[str, Any] = {"batch_size": 50, "learning_rate": 1e-3}
        name = model.removesuffix(STRONG)
        if kind == "strong" and name in ("gnn", "gmn"):
            options |= STRONG_MODEL
            training |= STRONG_TRAINING[name]
        return Recipe(options, training)

    def describe(self) -> dict[str, Any]:
        """The parameters, ready for JSON; the dataset by its content, and how it is scaled."""
        center, spread = (values.tolist() for values in self.scale)
        described = {"task": "meshes", "data": self._data.digest}
        return asdict(self) | described | {"standardised": {"center": center, "spread": spread}}

    def numbers(self, split: str) -> Index:
        """The numbers of the graphs of ``training``, ``validation`` or ``test``, rising."""
        if split not in SHARES:
            raise ConfigError(f"split must be one of {', '.join(SHARES)}; got {split!r}")
        return np.flatnonzero(self._splits == split)

    @property
    def classes(self) -> Index:
        """(G,) the number of each graph's class, from 0."""
        return self._data.classes

    @cached_property
    def graphs(self) -> list[Graph]:
        """All graphs of the dataset as models see them, by number."""
        center, spread = self.scale
        graphs = self._data.graphs
        return [_with_points(graph, (_points(graph) - center) / spread) for graph in graphs]

    def _distorted(self, graph: Graph, rng: np.random.Generator) -> Graph:
        points = _points(graph)
        columns = points.shape[1]
        bend, move = rng.normal(size=(columns, columns)), rng.normal(size=columns)
        tremble = rng.normal(size=points.shape)
        return _with_points(graph, points + self.distortion * (points @ bend + move + tremble))

    @cached_property
    def scale(self) -> tuple[Floats, Floats]:
        """Mean and standard deviation, each (F,), of the coordinates of training graphs.

        To six digits, so that they are the same wherever they are computed.
        """
        points = np.concatenate([_points(self._data.graphs[n]) for n in self.numbers("training")])
        center, spread = points.mean(axis=0), points.std(axis=0)
        spread[spread == 0] = 1.0
        return _rounded(center), _rounded(spread)

    @cached_property
    def _data(self) -> _MeshData:
        return _load(Path(self.data))

    @cached_property
    def _splits(self) -> NDArray[np.str_]:
        """(G,) the split of each graph."""
        data = self._data
        return split_classes(data.classes, data.labels, data.digests, self.split, self.fold)

    @cached_property
    def _dataset(self) -> ClassDataset:
        """The graphs as models see them, in their classes."""
        return ClassDataset(
            self.graphs,
            self.classes,
            splits=self._splits,
            augment=self._distorted if self.distortion else None,
            name=self.data,
            split=self.split,
            seed=self.seed,
            evaluation_size=self.evaluation_size,
        )


@dataclass(frozen=True, eq=False)
class _MeshData:
    """A dataset as it is on disk."""

    graphs: list[Graph]
    classes: Index
    """(G,) the place in ``labels`` of each graph's class."""
    labels: list[str]
    digests: list[str]
    """Of each graph."""
    digest: str
    """Of all graphs and their labels: the same for a zip and its folder, wherever they lie."""


def _load(path: Path) -> _MeshData:
    graphs, targets = read_tudataset(path)
    if targets.ndim != 1 or targets.dtype.kind not in "iu":
        raise ConfigError(f"{path} has no single class for each graph; its labels are {targets[0]}")
    if graphs[0].node_kind != "dense":
        raise ConfigError(
            f"{path} has {graphs[0].node_kind} nodes; meshes need coordinates, in a file "
            "*_node_attributes.txt"
        )
    values, classes = np.unique(targets, return_inverse=True)
    digests = [graph.digest() for graph in graphs]
    digest = text_hash(" ".join([*digests, *map(str, targets.tolist())]))
    return _MeshData(graphs, classes, [str(value) for value in values.tolist()], digests, digest)


def _points(graph: Graph) -> Floats:
    """(N, F) coordinates."""
    assert graph.node_features is not None, "a dataset without coordinates is refused"
    return graph.node_features.astype(np.float64)


def _with_points(graph: Graph, points: Floats) -> Graph:
    return Graph(
        graph.num_nodes,
        graph.edges,
        directed=graph.directed,
        node_features=points,
        edge_features=graph.edge_features,
        edge_types=graph.edge_types,
    )


def _rounded(values: Floats) -> Floats:
    return np.array([float(f"{value:.6g}") for value in values.tolist()])
