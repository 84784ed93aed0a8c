"""Options of your own graphs: files, attributes, and what says which of them are similar."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphkin.cli.options import without_none
from graphkin.cli.task_options import Fold, SplitBy, same_split
from graphkin.errors import ConfigError

if TYPE_CHECKING:
    from graphkin.graphs.converters.attributes import AttributeNames
    from graphkin.learning.datasets import Dataset
    from graphkin.models.answering import Answering
    from graphkin.models.model import GraphModel

PANEL = "Attributes of graph files; by default those of the training"


def _option(text: str) -> Any:
    return typer.Option(metavar="NAME", help=text, rich_help_panel=PANEL)


GraphFiles = Annotated[
    list[Path],
    typer.Argument(
        metavar="DATA...",
        help="Graphs: a TUDataset (folder or zip), .jsonl, .smi, .graphml, .gexf, .gml or .dot "
        "files, a folder of them, or a graph store.",
    ),
]


@dataclass(frozen=True)
class AttributeOptions:
    """Which attributes of graph files a model reads."""

    node_labels: Annotated[str | None, _option("Attribute of nodes that holds text.")] = None
    node_features: Annotated[
        list[str] | None, _option("Attribute of nodes that holds numbers; repeatable.")
    ] = None
    edge_labels: Annotated[str | None, _option("Attribute of edges that holds text.")] = None
    edge_type: Annotated[str | None, _option("Attribute of edges that holds a whole number.")] = (
        None
    )
    edge_features: Annotated[
        list[str] | None, _option("Attribute of edges that holds numbers; repeatable.")
    ] = None

    def names(self, model: Answering | None = None) -> AttributeNames:
        """As given, or else as a model was trained."""
        from graphkin.graphs.converters.attributes import AttributeNames

        given = {
            "node_labels": self.node_labels,
            "node_features": self.node_features or None,
            "edge_type": self.edge_type,
            "edge_features": self.edge_features or None,
            "edge_labels": self.edge_labels,
        }
        known = AttributeNames() if model is None else model.attribute_names
        return AttributeNames(**{**vars(known), **without_none(given)})


@dataclass(frozen=True)
class DatasetFiles:
    """A dataset of your own."""

    data: GraphFiles
    labels: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV of graph,label: classes.")
    ] = None
    pairs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV of left,right,label: 1 similar, 0 not."),
    ] = None
    targets: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV of left,right,value: what to predict.")
    ] = None
    triplets: Annotated[
        Path | None, typer.Option(metavar="FILE", help="CSV of anchor,near,far.")
    ] = None
    distances: Annotated[
        bool | None,
        typer.Option(
            "--distances/--similarities",
            help="What --targets are: distances, 0 for equal graphs, or similarities in 0..1, 1 "
            "for equal graphs. By default values above 1, or those of pairs of equal graphs, tell.",
        ),
    ] = None
    split_by: SplitBy = None
    fold: Fold = None

    def for_task(self) -> dict[str, Any]:
        """Options of a dataset."""
        return without_none(
            {"split": self.split_by, "fold": self.fold, "distances": self.distances}
        )

    def dataset(self, attributes: AttributeNames, options: dict[str, Any]) -> Dataset:
        """The dataset with further options."""
        from graphkin.learning.datasets import read_dataset

        tables = {name: getattr(self, name) for name in ("labels", "pairs", "targets", "triplets")}
        return read_dataset(self.data, attributes=attributes, **tables, **options)

    def test_of(
        self, model: GraphModel, name: str, attributes: AttributeOptions, options: dict[str, Any]
    ) -> Dataset:
        """The dataset as a model was trained on it, so that its test graphs are unseen."""
        own = {**self.for_task(), **options, "vocabulary": model.vocabulary}
        if model.trained_on is None:
            raise ConfigError(
                f"{name} has no record of what it was trained on, and may have seen any graph; "
                "evaluate in Python, on examples of your own"
            )
        if model.trained_on["task"].get("task") in ("classes", "pairs", "triplets", "targets"):
            own = same_split(own, model.trained_on["task"], name)
        if self.targets is not None:
            said = model.trained_on["task"].get("distances")
            if said is not None or model.config.predicts_distances:
                own.setdefault(
                    "distances", model.config.predicts_distances if said is None else said
                )
        return self.dataset(attributes.names(model), own)
