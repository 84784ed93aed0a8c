"""``fit``: a model and your own graphs, and nothing else to decide."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
from torch import Tensor

from graphkin._support.settings import build
from graphkin.errors import ConfigError, GraphError
from graphkin.graphs.collections import listed
from graphkin.graphs.converters.attributes import AttributeNames
from graphkin.graphs.labels import similarity_labels
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.learning.datasets import (
    ClassDataset,
    Dataset,
    PairDataset,
    TargetDataset,
    TripletDataset,
)
from graphkin.learning.recipes import TrainingRun, assemble, course
from graphkin.learning.training import StepReport
from graphkin.learning.training.log import TrainingProgress
from graphkin.learning.training.loop import (
    MODEL_FOLDER,
    WEIGHTS_FILE,
    BatchLoss,
    SetMetrics,
)
from graphkin.models.config import STRONG, ModelConfig
from graphkin.models.model import GraphModel
from graphkin.models.own_parts import own_parts

INPUTS = ("node_input", "node_input_size", "edge_input", "edge_input_size", "feature_scaling")
OF_DATA = (*INPUTS, "reverse_messages", "link", "target_scale")
"""Options of a model that the data decides where its configuration does not name them."""
OF_STRONG = ("similarity", "readout")
"""Further ones, of our variants of the paper's models."""


def fit(
    model: GraphModel,
    examples: Any,
    answers: Any = None,
    *,
    splits: Iterable[Any] | None = None,
    recipe: str | None = None,
    distances: bool | None = None,
    seed: int = 0,
    folder: str | Path | None = None,
    progress: bool = True,
    device: str = "cpu",
    loss: BatchLoss | str | None = None,
    metrics: SetMetrics | None = None,
    attributes: Mapping[str, Any] | None = None,
    **training: Any,
) -> None:
    """Trains a model in place on your own graphs, and leaves it with its best weights.

    A new model gets the inputs that the graphs have. One made from a ``ModelConfig`` keeps every
    option that was named there, and modules that you put into it; one that was trained before goes
    on from its weights. Where training ends by an error or Ctrl-C, the model has its best weights
    so far, or without an evaluation is what it was before.

    Args:
        model: an embedder or a matcher.
        examples: graphs with their classes as ``answers``; pairs with labels or target values;
            triplets without answers; or a dataset.
        answers: one for each example. Those of pairs are labels where all are 1 and 0, 1 and -1 or
            booleans, and target values otherwise.
        splits: of each example: training, validation or test; by default by their content.
        recipe: ``strong`` for our losses, ``paper`` for the paper's. By default ``paper`` for the
            paper's models, such as ``gnn`` and ``gmn``, and ``strong`` for ours. With ``strong``,
            the names ``gnn`` and ``gmn`` stand for ``gnn-strong`` and ``gmn-strong``, as on the
            command line.
        distances: whether the answers of pairs are distances, True, or similarities, False; by
            default what :class:`~graphkin.learning.datasets.TargetDataset` takes them for.
        seed: of first weights and training data.
        folder: where log, checkpoint and best weights go; by default nowhere.
        progress: whether to report on stderr.
        device: where to compute.
        loss: the name of a loss, such as ``huber``; or a function that takes the model's output for
            a batch and the batch, and gives a tensor of one number. By default the recipe's.
        metrics: takes the model and the validation set, and gives numbers by name, in place of the
            usual measures.
        attributes: of graphs of NetworkX, which attributes are their input, by the names of the
            arguments of ``from_networkx``: ``{"node_labels": "element"}``. The model keeps them.
        training: options of ``TrainConfig``, such as ``steps``; training ends early where the
            validation set does not get better.
    """
    if isinstance(loss, str):
        training["loss"], loss = loss, None
    for name, function in (("loss", loss), ("metrics", metrics)):
        if function is not None and not callable(function):
            what = "the name of a loss or a function" if name == "loss" else "a function"
            raise ConfigError(f"{name} must be {what}, got {function!r}")
    dataset = examples
    if not isinstance(examples, Dataset):
        known = model.vocabulary if model.trained_on is not None else None
        names = model.attribute_names if attributes is None else build_names(attributes)
        own = {key: value for key, value in vars(names).items() if value is not None}
        origin = {"attributes": own} if own else {}
        dataset = as_dataset(
            examples,
            answers,
            splits=splits,
            distances=distances,
            seed=seed,
            vocabulary=known,
            origin=origin,
        )
    elif any(own is not None for own in (answers, splits, attributes, distances)):
        raise ConfigError(
            "a dataset has answers, splits, distances and attributes of its own; leave them out"
        )
    before = _Snapshot.of(model)
    history: list[dict[str, Any]] = []

    def report(step: StepReport) -> None:
        history.append({"step": step.step, "loss": step.loss, **step.validation})
        if shown is not None:
            shown(step)

    with contextlib.ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory()) if folder is None else folder
        try:
            run = _run(model, dataset, recipe, {"seed": seed, **training})
            model.history = history
            if progress:
                show_remarks(dataset)
            shown = stack.enter_context(TrainingProgress(run.config.steps)) if progress else None
            run.train(
                home,
                device=device,
                on_report=report,
                loss=loss,
                metrics=metrics,
                temporary=folder is None,
            )
        except BaseException:
            # Reports carry the measures of the last evaluation, which was the best or not.
            if any(len(entry) > 2 for entry in history):
                _load_best(model, Path(home))
            else:
                before.restore(model)
            raise
        _load_best(model, Path(home))


def show_remarks(dataset: Dataset) -> None:
    """Says on stderr what a dataset took its examples for, where that was not certain."""
    for remark in dataset.remarks:
        print(f"graphkin: {remark}", file=sys.stderr, flush=True)


@dataclass(frozen=True, eq=False)
class _Snapshot:
    """A model as it was, for a training that fails."""

    config: ModelConfig
    tensors: dict[str, Tensor]
    about: dict[str, Any]

    @classmethod
    def of(cls, model: GraphModel) -> _Snapshot:
        tensors = {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}
        names = ("vocabulary", "calibration", "trained_on", "history", "training")
        return cls(model.config, tensors, {name: getattr(model, name) for name in names})

    def restore(self, model: GraphModel) -> None:
        if model.config is not self.config:
            model.begin_anew(self.config, 0)
        model.load_state_dict(self.tensors)
        about = dict(self.about)
        model.train(about.pop("training"))
        for name, value in about.items():
            setattr(model, name, value)


def _load_best(model: GraphModel, home: Path) -> None:
    """Puts the best weights of a run into its model."""
    if model.own_parts:
        record = model.trained_on
        model.load_tensors(safetensors.torch.load_file(home / WEIGHTS_FILE), "the best weights")
        model.trained_on = record
    else:
        best = type(model).from_pretrained(home / MODEL_FOLDER)
        model.load_tensors(best.state_dict(), "the best weights")
        model.trained_on = best.trained_on
    model.eval()


def build_names(attributes: Mapping[str, Any]) -> AttributeNames:
    """Names of attributes; an unknown key is refused."""
    return build(AttributeNames, dict(attributes), "attributes")


def as_dataset(
    examples: Any,
    answers: Any = None,
    *,
    splits: Iterable[Any] | None = None,
    distances: bool | None = None,
    vocabulary: Vocabulary | None = None,
    **options: Any,
) -> Dataset:
    """The dataset of examples and answers, of whichever kind they are.

    Args:
        examples: graphs, pairs or triplets.
        answers: classes, or labels or values of pairs.
        splits: of each example.
        distances: whether values of pairs are distances; None where that is to be found out.
        vocabulary: what labels of nodes are tokens.
        options: of the dataset.
    """
    rows = [tuple(row) if _is_row(row) else row for row in listed(examples, "examples")]
    if not rows:
        raise GraphError("there are no examples to learn from")
    options |= {"splits": splits, "vocabulary": vocabulary}
    first = rows[0]
    width = len(first) if isinstance(first, tuple) else 1
    if distances is not None:
        options["distances"] = distances
    if width == 3:
        if answers is not None:
            raise ConfigError("triplets have no answers; the second graph of each is the nearer")
        return TripletDataset(rows, **options)
    if answers is None:
        what = "a class for each graph" if width == 1 else "a label or a value for each pair"
        raise ConfigError(f"answers are missing; give {what}")
    answers = listed(answers, "answers")
    if width == 1:
        return ClassDataset(rows, answers, **options)
    if distances is not None:
        return TargetDataset(rows, answers, **options)
    try:
        labels = similarity_labels(answers)
    except GraphError:
        if _are_meant_as_labels(answers):
            raise
        return TargetDataset(rows, answers, **options)
    return PairDataset(rows, labels, **options)


def _are_meant_as_labels(answers: list[Any]) -> bool:
    """Whether answers were meant as labels: text, or no other numbers than labels have."""
    if any(isinstance(answer, str) for answer in answers):
        return True
    values = np.array(answers)
    if values.dtype.kind not in "biuf" or values.ndim != 1:
        return False
    return bool(np.isin(values[np.isfinite(values)], (-1, 0, 1)).all())


def _is_row(row: Any) -> bool:
    """Whether an example is a pair or triplet, as a tuple, a list or a row of an array."""
    return isinstance(row, tuple | list) or (isinstance(row, np.ndarray) and row.ndim == 1)


def _run(
    model: GraphModel, dataset: Dataset, recipe: str | None, training: dict[str, Any]
) -> TrainingRun:
    """The run of a model, which is made to fit the data where it is new."""
    kind = model.name or _nearest_name(model.config)
    if recipe is None:
        recipe = "strong" if model.config.is_strong or kind.endswith(STRONG) else "paper"
    if model.trained_on is not None:
        settings = dataset.recipe(kind, recipe)
        config = course(settings.training, training, matching=model.config.matching)
        return TrainingRun(model, dataset, config)
    options = {} if model.name is not None else _kept(model.config)
    fresh = assemble(kind, dataset, recipe=recipe, model_options=options, training=training)
    model.begin_anew(fresh.model.config, fresh.config.seed)
    own, made = model.state_dict(), fresh.model.state_dict()
    kept = own_parts(model)
    inside = tuple(f"{path}." for path in kept)
    model.load_state_dict(
        {
            name: tensor if name in kept or name.startswith(inside) else made[name]
            for name, tensor in own.items()
        }
    )
    model.vocabulary = fresh.model.vocabulary
    return TrainingRun(model, dataset, fresh.config)


def _kept(config: ModelConfig) -> dict[str, Any]:
    """The options of a configuration that the data may not change."""
    by_data = {*OF_DATA, *(OF_STRONG if config.is_strong else ())} - config.explicit
    return {name: value for name, value in asdict(config).items() if name not in by_data}


def _nearest_name(config: ModelConfig) -> str:
    """The model whose recipe a configuration takes."""
    if config.matching:
        return "gmn"
    kind = "gcn" if config.propagation == "convolution" else "gnn"
    return f"siamese-{kind}" if config.similarity == "siamese" else kind
