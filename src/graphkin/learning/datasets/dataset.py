"""What datasets of your own graphs have in common: inputs of models, recipes, a description."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from graphkin._support.settings import build, check_at_least, check_types
from graphkin.errors import ConfigError, GraphError
from graphkin.graphs import Graph, PairBatch
from graphkin.graphs.collections import listed
from graphkin.graphs.converters.any_graph import as_graph, unread_attributes
from graphkin.graphs.converters.attributes import AttributeNames
from graphkin.graphs.packing import check_uniform
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.learning.datasets.splits import FOLDS, SHARES, check_recipe
from graphkin.learning.task import EvaluationSet, Mode, Recipe, Split, TargetSet
from graphkin.models.config import MODEL_NAMES, STRONG

SplitBy = Literal["auto", "class", "graph", "pair"]
Augment = Callable[[Graph, Generator], Graph]
RECIPES = ("strong", "paper")
COURSE: dict[str, Any] = {"steps": 3_000, "evaluate_every": 100, "patience": 10}
"""Of a training on a dataset of one's own, which may be small."""


@dataclass(frozen=True)
class DatasetOptions:
    """Of every dataset."""

    split: SplitBy = "auto"
    """What is divided into training, validation and test: ``graph``, the graphs, of each class as
    many; ``class``, whole classes, so that those of the test are unseen; ``pair``, pairs of graphs
    that may all be known; ``auto``, what fits the data."""
    seed: int = 0
    """Of the training data. Splits and evaluation sets do not depend on it."""
    evaluation_size: int = 1000
    """Pairs, and triplets, of an evaluation set."""
    fold: int = 0
    """Which tenth is the test set, from 0 to 9; the tenth before it is for validation."""
    batch_graphs: int = 0
    """Graphs that the pairs of a batch with target values are drawn from, each encoded once: many
    pairs then take little longer than few. For embedders, and for matchers that compare nodes after
    the last step. 0 draws pairs from all graphs."""
    distances: bool | None = None
    """Whether target values are distances, 0 for equal graphs, or similarities, 1 for equal graphs;
    by default the values tell, of equal graphs or above 1."""

    def __post_init__(self) -> None:
        check_types(self)
        check_at_least(self, 0, "seed", "fold", "batch_graphs")
        check_at_least(self, 2, "evaluation_size")
        if self.fold >= FOLDS:
            raise ConfigError(f"fold must lie in 0..{FOLDS - 1}, got {self.fold}")


class Dataset(ABC):
    """Your own graphs as a task; see :class:`graphkin.learning.task.Task`.

    Args:
        graphs: all graphs, each once: :class:`graphkin.Graph`, or graphs of NetworkX or PyG.
        options: of :class:`DatasetOptions`, by name.
        vocabulary: what labels have numbers; by default those of the training graphs.
        origin: further facts for the description, ready for JSON; ``attributes`` says which
            attributes of NetworkX graphs are their input.
    """

    kind: ClassVar[str]
    modes: ClassVar[tuple[Mode, ...]]

    def __init__(
        self,
        graphs: Iterable[Any],
        options: dict[str, Any],
        vocabulary: Vocabulary | None = None,
        origin: dict[str, Any] | None = None,
    ) -> None:
        self.options = build(DatasetOptions, options, "dataset")
        if self.options.distances is not None and self.kind != "targets":
            raise ConfigError(
                f"distances={self.options.distances} says what target values are, and these are "
                f"{self.kind}; leave it out"
            )
        self.origin = origin or {}
        names = AttributeNames(**self.origin.get("attributes", {}))
        originals = listed(graphs)
        self._given = [as_graph(graph, place, names) for place, graph in enumerate(originals)]
        if not self._given:
            raise GraphError("a dataset needs graphs, and got none")
        check_uniform(self._given)
        if vocabulary is not None and vocabulary.mistakes(self._given[0]):
            raise ConfigError(
                "the nodes of the graphs have whole numbers, and the model was trained on labels "
                "as text: it would take them for numbers of its vocabulary; give node_labels"
            )
        self._vocabulary = vocabulary
        self.remarks: list[str] = []
        """What was assumed of the examples, or left out, in sentences for whoever trains."""
        unread = unread_attributes(originals[0], self._given[0])
        if unread:
            self.remarks.append(
                f"nodes have the attributes {', '.join(unread)}, which nobody named, so that only "
                "the structure counts; name them, such as "
                f"attributes={{'node_labels': {unread[0]!r}}}"
            )

    @abstractmethod
    def numbers(self, split: str) -> NDArray[np.int64]:
        """The numbers of the graphs that occur in a split, rising."""

    @abstractmethod
    def batch(
        self, step: int, size: int, mode: Mode, *, rank: int = 0, world: int = 1
    ) -> PairBatch:
        """The training batch of one step; see :class:`graphkin.learning.task.Task`."""

    @abstractmethod
    def evaluation_set(self, split: Split) -> EvaluationSet | TargetSet:
        """The fixed examples of a split: the same for every ``seed``."""

    @abstractmethod
    def answers(self) -> Iterable[Any]:
        """What was given beside the graphs, for the digest of the data."""

    def training_options(self, model: str, kind: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """What a recipe changes for this kind of examples: options of model and training."""
        return {}, {}

    @cached_property
    def graphs(self) -> list[Graph]:
        """All graphs as models see them, by number."""
        vocabulary = self.vocabulary
        return self._given if vocabulary is None else [vocabulary.read(g) for g in self._given]

    @cached_property
    def vocabulary(self) -> Vocabulary | None:
        """The labels of nodes and edges that have numbers; None for graphs without labels."""
        if not self._given[0].has_text:
            return None
        if self._vocabulary is not None:
            return self._vocabulary
        return Vocabulary.of_labels(self._given[n] for n in self.numbers("training").tolist())

    @cached_property
    def digests(self) -> list[str]:
        """Of each graph."""
        return [graph.digest() for graph in self._given]

    def recipe(self, model: str, kind: str = "strong") -> Recipe:
        """Inputs of the model as the graphs have them, and how it is trained.

        Args:
            model: its name.
            kind: ``strong`` for what we found to learn best, ``paper`` for the paper's model and
                losses.
        """
        check_recipe(kind, RECIPES)
        options = {} if kind == "paper" else dict(MODEL_NAMES.get(f"{model}{STRONG}", {}))
        options |= model_inputs(self.graphs)
        if self.graphs[0].directed:
            options["reverse_messages"] = "shared" if "gcn" in model else "separate"
        labels = 0
        if self.vocabulary is not None:
            labels = len(self.vocabulary) if self._given[0].has_labels else 0
            if labels and options["node_input"] == "tokens":
                options["node_input_size"] = labels
            if self.vocabulary.edge_types:
                options["edge_input_size"] = self.vocabulary.edge_types
        own, training = self.training_options(model.removesuffix(STRONG), kind)
        scale = None
        if options.get("node_input") == "dense":
            options["feature_scaling"] = True
            scale = feature_scale([self.graphs[n] for n in self.numbers("training")], labels)
        course = {"batch_size": 32, "learning_rate": 1e-3, **COURSE}
        return Recipe(options | own, course | training, self.vocabulary, feature_scale=scale)

    def describe(self) -> dict[str, Any]:
        """The options, ready for JSON; the data by its content."""
        sha = hashlib.sha256()
        for digest in self.digests:
            sha.update(bytes.fromhex(digest))
        sha.update("\0".join(map(str, self.answers())).encode("utf-8", "surrogatepass"))
        options = asdict(self.options)
        if not self.options.batch_graphs:
            # Runs of before this option have no word of it, and go on.
            del options["batch_graphs"]
        if self.options.distances is None:
            del options["distances"]
        return {"task": self.kind, "data": sha.hexdigest(), **options} | self.origin

    def _check_batch(self, step: int, size: int, mode: Mode, rank: int, world: int) -> None:
        if mode not in self.modes:
            raise ConfigError(
                f"a dataset of {self.kind} has batches of {', '.join(self.modes)}, not of {mode}; "
                "set mode"
            )
        if step < 0 or not 0 <= rank < world <= size:
            raise ConfigError(
                f"no batch for step {step}, size {size}, rank {rank} of {world}: steps and ranks "
                "count from 0, and every rank needs an example"
            )


def check_part(split: str) -> None:
    """Refuses what is not a split."""
    if split not in SHARES:
        raise ConfigError(f"split must be one of {', '.join(SHARES)}; got {split!r}")


def model_inputs(graphs: Sequence[Graph]) -> dict[str, Any]:
    """Options of a model that takes such graphs, all of one kind."""
    first = graphs[0]
    options: dict[str, Any] = {}
    if first.node_features is not None:
        options |= {"node_input": "dense", "node_input_size": first.node_features.shape[1]}
    if first.node_tokens is not None:
        most = max(g.node_tokens.ids.max(initial=0) for g in graphs if g.node_tokens is not None)
        options |= {"node_input": "tokens", "node_input_size": 1 + int(most)}
    if first.edge_features is not None:
        options |= {"edge_input": "dense", "edge_input_size": first.edge_features.shape[1]}
    if first.edge_types is not None:
        most = max(g.edge_types.max(initial=0) for g in graphs if g.edge_types is not None)
        options |= {"edge_input": "types", "edge_input_size": 1 + int(most)}
    return options


def feature_scale(
    graphs: Sequence[Graph], labels: int
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Mean and standard deviation, each (F,), of the features of all nodes.

    Args:
        graphs: with features.
        labels: how many of the columns, the last ones, are of labels, and stay as they are.
    """
    features = np.concatenate([g.node_features for g in graphs if g.node_features is not None])
    center, spread = features.mean(axis=0, dtype=np.float64), features.std(axis=0, dtype=np.float64)
    spread[spread == 0] = 1.0
    if labels:
        center[-labels:], spread[-labels:] = 0.0, 1.0
    return center.astype(np.float32), spread.astype(np.float32)
