"""``fit``: a model and your own graphs, and nothing else to decide."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from graphkin._support.settings import build
from graphkin.errors import ConfigError, GraphError
from graphkin.graphs.collections import listed
from graphkin.graphs.converters.attributes import AttributeNames
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.learning.datasets import (
    ClassDataset,
    Dataset,
    PairDataset,
    TargetDataset,
    TripletDataset,
)
from graphkin.learning.recipes import TrainingRun, assemble
from graphkin.learning.task import similarity_labels
from graphkin.learning.training import StepReport, TrainConfig
from graphkin.learning.training.log import TrainingProgress
from graphkin.learning.training.loop import MODEL_FOLDER, BatchLoss, SetMetrics
from graphkin.models.config import ModelConfig
from graphkin.models.model import GraphModel

OF_DATA = (
    *("node_input", "node_input_size", "edge_input", "edge_input_size", "feature_scaling"),
    *("reverse_messages", "link", "target_scale"),
)
"""Options of a model that the data decides, whatever its configuration says."""


def fit(
    model: GraphModel,
    examples: Any,
    answers: Any = None,
    *,
    splits: Iterable[Any] | None = None,
    recipe: str = "strong",
    seed: int = 0,
    folder: str | Path | None = None,
    progress: bool = True,
    device: str = "cpu",
    loss: BatchLoss | None = None,
    metrics: SetMetrics | None = None,
    attributes: Mapping[str, Any] | None = None,
    **training: Any,
) -> None:
    """Trains a model in place on your own graphs, and leaves it with its best weights.

    A model made by name begins anew, with the inputs that the graphs have and what the recipe says;
    one made from a ``ModelConfig`` keeps its options but for those inputs; one that was trained
    before goes on from its weights.

    Args:
        model: an embedder or a matcher.
        examples: graphs with their classes as ``answers``; pairs with labels or target values;
            triplets without answers; or a dataset.
        answers: one for each example. Those of pairs are labels where all are 1 and 0, 1 and -1 or
            booleans, and target values otherwise.
        splits: of each example: training, validation or test; by default by their content.
        recipe: ``strong``, or ``paper`` for the paper's losses.
        seed: of first weights and training data.
        folder: where log, checkpoint and best weights go; by default nowhere.
        progress: whether to report on stderr.
        device: where to compute.
        loss: takes the model's output for a batch and the batch, in place of the recipe's loss.
        metrics: takes the model and the validation set, in place of the usual measures.
        attributes: of graphs of NetworkX, which attributes are their input, by the names of the
            arguments of ``from_networkx``: ``{"node_labels": "element"}``. The model keeps them.
        training: options of ``TrainConfig``, such as ``steps``; training ends early where the
            validation set does not get better.
    """
    dataset = examples
    if not isinstance(examples, Dataset):
        known = model.vocabulary if model.trained_on is not None else None
        names = model.attribute_names if attributes is None else build_names(attributes)
        own = {key: value for key, value in vars(names).items() if value is not None}
        origin = {"attributes": own} if own else {}
        dataset = as_dataset(
            examples, answers, splits=splits, seed=seed, vocabulary=known, origin=origin
        )
    elif answers is not None or splits is not None or attributes is not None:
        raise ConfigError("a dataset has answers, splits and attributes of its own; leave them out")
    model.history = history = []
    run = _run(model, dataset, recipe, {"seed": seed, **training})

    def report(step: StepReport) -> None:
        history.append({"step": step.step, "loss": step.loss, **step.validation})
        if shown is not None:
            shown(step)

    with contextlib.ExitStack() as stack:
        shown = stack.enter_context(TrainingProgress(run.config.steps)) if progress else None
        home = stack.enter_context(tempfile.TemporaryDirectory()) if folder is None else folder
        run.train(home, device=device, on_report=report, loss=loss, metrics=metrics)
        best = type(model).from_pretrained(Path(home) / MODEL_FOLDER)
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
    vocabulary: Vocabulary | None = None,
    **options: Any,
) -> Dataset:
    """The dataset of examples and answers, of whichever kind they are.

    Args:
        examples: graphs, pairs or triplets.
        answers: classes, or labels or values of pairs.
        splits: of each example.
        vocabulary: what labels of nodes are tokens.
        options: of the dataset.
    """
    rows = listed(examples, "examples")
    if not rows:
        raise GraphError("there are no examples to learn from")
    options |= {"splits": splits, "vocabulary": vocabulary}
    first = rows[0]
    width = len(first) if isinstance(first, tuple | list) else 1
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
    try:
        labels = similarity_labels(answers)
    except GraphError:
        return TargetDataset(rows, answers, **options)
    return PairDataset(rows, labels, **options)


def _run(model: GraphModel, dataset: Dataset, recipe: str, training: dict[str, Any]) -> TrainingRun:
    """The run of a model, which is made to fit the data where it is new."""
    kind = model.name or _nearest_name(model.config)
    if model.trained_on is not None:
        settings = dataset.recipe(kind, recipe)
        config = TrainConfig.from_dict({**settings.training, **training})
        return TrainingRun(model, dataset, config)
    options = {}
    if model.name is None:
        options = {name: v for name, v in asdict(model.config).items() if name not in OF_DATA}
    fresh = assemble(kind, dataset, recipe=recipe, model_options=options, training=training)
    model.begin_anew(fresh.model.config, fresh.config.seed)
    model.load_tensors(fresh.model.state_dict(), "a new model")
    model.vocabulary = fresh.model.vocabulary
    return TrainingRun(model, dataset, fresh.config)


def _nearest_name(config: ModelConfig) -> str:
    """The model whose recipe a configuration takes."""
    if config.matching:
        return "gmn"
    kind = "gcn" if config.propagation == "convolution" else "gnn"
    return f"siamese-{kind}" if config.similarity == "siamese" else kind
