"""``encode``, ``predict`` and ``rank``: a trained model on graph files."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphkin.cli.graph_options import AttributeOptions, GraphFiles
from graphkin.cli.options import Json, OutputFile, Threads, with_groups
from graphkin.cli.search_options import Top
from graphkin.errors import ConfigError

if TYPE_CHECKING:
    from graphkin.graphs.converters.named import NamedGraph
    from graphkin.models.model import GraphModel

Model = Annotated[str, typer.Argument(help="Trained model: a folder or a run.")]
Rows = list[dict[str, Any]]


def register(app: typer.Typer) -> None:
    """Adds the verbs of this file."""
    app.command("encode")(encode)
    app.command("predict")(predict)
    app.command("rank")(rank)


@dataclass(frozen=True)
class OutputOptions:
    """Where numbers go; the ending of a file says in which form."""

    output: OutputFile = None
    threads: Threads = 1
    as_json: Json = False


@with_groups
def encode(
    model: Model, data: GraphFiles, attributes: AttributeOptions, options: OutputOptions
) -> None:
    """Write a vector for each graph: CSV, or .npy, .json or .csv with --output.

    Rows of a .npy file are in the order in which graphs are read; CSV and JSON name them.
    """
    from graphkin.models import GraphEmbedder

    trained, graphs = _read(model, data, attributes, options)
    if not isinstance(trained, GraphEmbedder):
        raise ConfigError(
            f"{model} is a matcher, which compares graphs in pairs and has no vector of one; take "
            "an embedder, such as --kind gnn trains"
        )
    vectors = trained.encode([named.graph for named in graphs])
    rows: Rows = [
        {"graph": named.name, "vector": vector.tolist()}
        for named, vector in zip(graphs, vectors, strict=True)
    ]
    if options.output is not None and options.output.suffix == ".npy":
        _write_array(options.output, vectors)
        return
    _write(rows, options)


@with_groups
def predict(
    model: Model,
    data: GraphFiles,
    attributes: AttributeOptions,
    options: OutputOptions,
    of: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV of left,right: which pairs; by default all."),
    ] = None,
    probability: Annotated[
        bool, typer.Option("--probability", help="Give the probability that a pair is similar.")
    ] = False,
) -> None:
    """Write the similarity of pairs of graphs, or the target value that a model was trained on."""
    from itertools import combinations

    from graphkin.learning.datasets.files import named_pairs

    trained, graphs = _read(model, data, attributes, options)
    pairs = list(combinations(graphs, 2)) if of is None else named_pairs(graphs, of)
    if not pairs:
        raise ConfigError("one graph makes no pair; name at least two")
    values = trained.predict([(a.graph, b.graph) for a, b in pairs], probability=probability)
    if options.output is not None and options.output.suffix == ".npy":
        _write_array(options.output, values)
        return
    compared = zip(pairs, values.tolist(), strict=True)
    _write([{"left": a.name, "right": b.name, "value": v} for (a, b), v in compared], options)


@with_groups
def rank(
    model: Model,
    query: Annotated[Path, typer.Argument(help="File of one graph, or of several.")],
    data: GraphFiles,
    attributes: AttributeOptions,
    options: OutputOptions,
    top: Top = 10,
) -> None:
    """Write the graphs most similar to each query, best first."""
    trained, pool = _read(model, data, attributes, options)
    _, queries = _read(model, [query], attributes, options)
    rows: Rows = []
    for asked in queries:
        ranked = trained.rank(asked.graph, [named.graph for named in pool], top)
        rows += [
            {"query": asked.name, "rank": place, "graph": pool[hit.index].name, "value": hit.score}
            for place, hit in enumerate(ranked, start=1)
        ]
    if options.output is not None and options.output.suffix == ".npy":
        raise ConfigError("a ranking has names; write it to .csv or .json")
    _write(rows, options)


def _read(
    model: str, data: list[Path], attributes: AttributeOptions, options: OutputOptions
) -> tuple[GraphModel, list[NamedGraph]]:
    import torch

    from graphkin.library.own_graphs import read_for
    from graphkin.models import load_model

    if options.output is not None and options.output.suffix not in (".npy", ".csv", ".json"):
        raise ConfigError(f"{options.output} must end in .npy, .csv or .json")
    torch.set_num_threads(options.threads)
    trained = load_model(model)
    return trained, read_for(trained, data, attributes.names(trained))


def _write(rows: Rows, options: OutputOptions) -> None:
    from graphkin._support.files import write_atomically

    output = options.output
    as_json = options.as_json if output is None else output.suffix == ".json"
    text = json.dumps(rows) + "\n" if as_json else _csv(rows)
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(output, text.encode())


def _csv(rows: Rows) -> str:
    """A line for each row; a vector takes a column for each of its numbers."""
    flat = []
    for row in rows:
        vector = row.get("vector", [])
        flat.append(
            {key: value for key, value in row.items() if key != "vector"}
            | {f"v{place}": number for place, number in enumerate(vector)}
        )
    out = io.StringIO()
    writer = csv.DictWriter(out, flat[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return out.getvalue()


def _write_array(path: Path, values: Any) -> None:
    import numpy as np

    from graphkin._support.files import write_atomically

    content = io.BytesIO()
    np.save(content, values)
    write_atomically(path, content.getvalue())
