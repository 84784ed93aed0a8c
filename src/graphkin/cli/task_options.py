"""The options of each task, for train, eval and calibrate alike."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphkin.cli.options import Data, without_none
from graphkin.errors import ConfigError

if TYPE_CHECKING:
    from graphkin.models.model import GraphModel

Features = Annotated[
    str | None, typer.Option(help="What a node carries: mnemonics, or structure for nothing.")
]
Protocol = Annotated[
    str | None, typer.Option(help="Which pairs of functions are drawn: paper or clean.")
]
Size = Annotated[
    int | None, typer.Option(help="Pairs, and triplets, of an evaluation set; by default 1,000.")
]


@dataclass(frozen=True)
class EditOptions:
    """Of graph edit distance."""

    nodes: Annotated[
        str | None, typer.Option(help="Nodes of a graph: a number, or a range such as 20-50.")
    ] = None
    p: Annotated[
        str | None, typer.Option("--p", help="Edge probability: a number, or a range: 0.2-0.5.")
    ] = None
    kp: Annotated[int | None, typer.Option("--kp", help="Edits between similar graphs.")] = None
    kn: Annotated[int | None, typer.Option("--kn", help="Edits between dissimilar graphs.")] = None

    def for_task(self) -> dict[str, Any]:
        """What EditTask takes."""
        return without_none(
            {
                "nodes": None if self.nodes is None else _range(self.nodes, int, "--nodes"),
                "p": None if self.p is None else _range(self.p, float, "--p"),
                "positive_edits": self.kp,
                "negative_edits": self.kn,
            }
        )


SplitBy = Annotated[
    str | None,
    typer.Option(
        help="What is unseen in the test: class, whole classes; graph, other graphs; pair, for own "
        "pairs. By default that of the model; class for meshes, else what fits the data."
    ),
]
Fold = Annotated[
    int | None,
    typer.Option(
        help="Which tenth is the test set; by default that of the model, or 0.", min=0, max=9
    ),
]


@dataclass(frozen=True)
class MeshOptions:
    """Of meshes."""

    data: Data
    split_by: SplitBy = None
    fold: Fold = None

    def for_task(self) -> dict[str, Any]:
        """What MeshTask takes."""
        return without_none({"data": str(self.data), "split": self.split_by, "fold": self.fold})

    def for_test_of(self, model: GraphModel, name: str) -> dict[str, Any]:
        """The same, for graphs that a model has not seen in training."""
        options = self.for_task()
        if model.trained_on is None:
            if self.split_by is None or self.fold is None:
                raise ConfigError(
                    f"{name} has no record of what it was trained on, and may have seen any graph; "
                    "name its --split-by and --fold, which its card may tell"
                )
            return options
        task = model.trained_on["task"]
        return same_split(options, task, name) if task.get("task") == "meshes" else options


def same_split(options: dict[str, Any], task: dict[str, Any], name: str) -> dict[str, Any]:
    """Options of a task with the split that a model was trained with.

    Args:
        options: as given; another split is refused.
        task: what the model recorded of its task.
        name: of the model.
    """
    for key, option in (("split", "--split-by"), ("fold", "--fold")):
        if options.setdefault(key, task[key]) != task[key]:
            raise ConfigError(
                f"{name} was trained with {key} {task[key]}, so it may have seen test graphs "
                f"of {key} {options[key]}; leave {option} out"
            )
    return options


def function_options(
    model: GraphModel, name: str, corpus: Path, options: dict[str, Any]
) -> dict[str, Any]:
    """What FunctionTask takes, for graphs that a model can read."""
    own = "mnemonics" if model.config.node_input == "tokens" else "structure"
    if options.get("features") not in (None, own):
        raise ConfigError(f"{name} was trained on {own}; leave --features out")
    if model.vocabulary is None and own == "mnemonics":
        raise ConfigError(f"{name} has no vocabulary, so what its tokens mean is unknown")
    words = None if model.vocabulary is None else model.vocabulary.words
    return without_none({**options, "corpus": str(corpus), "features": own, "words": words})


def _range(text: str, kind: type[int] | type[float], name: str) -> tuple[Any, Any]:
    # A number may hold a dash of its own (2e-1), so that every cut is tried.
    cuts = [(text, text), *((text[:i], text[i + 1 :]) for i, c in enumerate(text) if c == "-")]
    for low, high in cuts:
        with contextlib.suppress(ValueError):
            return kind(low), kind(high)
    example = "20 or 20-50" if kind is int else "0.2 or 0.2-0.5"
    raise ConfigError(f"{name} takes {example}, got {text!r}")
