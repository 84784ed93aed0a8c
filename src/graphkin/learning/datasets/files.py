"""Datasets from files: graphs of any format, and a CSV that says which of them are similar.

=============== ============================================================
CSV of          columns
=============== ============================================================
labels          ``graph,label``
pairs           ``left,right,label``, of 1 and 0, 1 and -1, or true and false
targets         ``left,right,value``
triplets        ``anchor,near,far``
=============== ============================================================

A further column ``split`` says training, validation or test. The first line may name the columns,
in any order; without it they are in the order above. Graphs are called as
:mod:`graphkin.graphs.converters.graph_files` says; the ending of a file may be left out.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path, PurePath
from typing import Any

from graphkin._support.files import PathLike, read_file
from graphkin.errors import ConfigError, FormatError
from graphkin.graphs.converters.attributes import AttributeNames
from graphkin.graphs.converters.graph_files import read_graphs
from graphkin.graphs.converters.named import NamedGraph
from graphkin.learning.datasets.classes import ClassDataset
from graphkin.learning.datasets.dataset import Dataset
from graphkin.learning.datasets.pairs import PairDataset, TargetDataset, TripletDataset

COLUMNS: dict[str, tuple[str, ...]] = {
    "comparisons": ("left", "right"),
    "labels": ("graph", "label"),
    "pairs": ("left", "right", "label"),
    "targets": ("left", "right", "value"),
    "triplets": ("anchor", "near", "far"),
}
SPLIT = "split"
MISSING = ("", "nan", "none", "null", "na", "n/a")
"""What tables say in place of a class that is not known."""
TRUTHS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}


def read_dataset(
    data: PathLike | Iterable[PathLike],
    *,
    labels: PathLike | None = None,
    pairs: PathLike | None = None,
    targets: PathLike | None = None,
    triplets: PathLike | None = None,
    attributes: AttributeNames | None = None,
    **options: Any,
) -> Dataset:
    """A dataset of graphs in files.

    Args:
        data: files and folders of graphs.
        labels: a CSV of the class of each graph; without any CSV the graphs' own labels count.
        pairs: a CSV of pairs that are similar or not.
        targets: a CSV of pairs with values.
        triplets: a CSV of triplets.
        attributes: which attributes of graph files are the input of nodes and edges.
        options: of the dataset: split, seed, evaluation_size, fold, vocabulary.
    """
    given = {"labels": labels, "pairs": pairs, "targets": targets, "triplets": triplets}
    tables = {kind: path for kind, path in given.items() if path is not None}
    if len(tables) > 1:
        raise ConfigError(f"{' and '.join(tables)} are different kinds of examples; give one")
    names = attributes or AttributeNames()
    graphs = read_graphs(data, names)
    read = {key: value for key, value in asdict(names).items() if value is not None}
    options["origin"] = {"attributes": read} if read else {}
    if not tables:
        return _labelled(graphs, data, options)
    ((kind, path),) = tables.items()
    rows = _rows(path, kind)
    known = _by_name(graphs)
    *columns, last = COLUMNS[kind]
    columns += [last] if kind == "triplets" else []
    examples = [[_graph(known, row, column, path).graph for column in columns] for row in rows]
    splits = [row[SPLIT] for row in rows] if SPLIT in rows[0] else None
    if kind == "triplets":
        return TripletDataset(examples, splits=splits, **options)
    dataset: Dataset
    if kind == "labels":
        own = [_class(row, path) for row in rows]
        _check_once([_graph(known, row, "graph", path).name for row in rows], rows, path)
        dataset = ClassDataset([graph for (graph,) in examples], own, splits=splits, **options)
        if len(rows) < len(graphs):
            dataset.remarks.append(
                f"{path} has classes of {len(rows)} of the {len(graphs)} graphs; the others are "
                "left out"
            )
        return dataset
    answers = [_number(row, last, path) for row in rows]
    make = PairDataset if kind == "pairs" else TargetDataset
    dataset = make(examples, answers, splits=splits, **options)
    contradicted = _contradicted(examples, answers)
    if contradicted:
        dataset.remarks.append(
            f"{path} has {contradicted} of its pairs more than once, with different {last}s; "
            "training takes them as they are"
        )
    return dataset


def named_pairs(graphs: list[NamedGraph], path: PathLike) -> list[tuple[NamedGraph, NamedGraph]]:
    """The pairs of graphs that a CSV of ``left,right`` names."""
    known = _by_name(graphs)
    rows = _rows(path, "comparisons")
    return [(_graph(known, r, "left", path), _graph(known, r, "right", path)) for r in rows]


def _labelled(graphs: list[NamedGraph], data: Any, options: dict[str, Any]) -> Dataset:
    unlabelled = next((named.name for named in graphs if named.label is None), None)
    if unlabelled is not None:
        files = ", ".join(map(str, [data] if isinstance(data, str | Path) else data))
        raise ConfigError(
            f"graph {unlabelled} of {files} has no class, and no file of labels, pairs or targets "
            "was given; give one"
        )
    splits = [named.split for named in graphs]
    own = None if None in splits else splits
    labels = [named.label for named in graphs]
    return ClassDataset([named.graph for named in graphs], labels, splits=own, **options)


def _class(row: Mapping[str, str], path: PathLike) -> str:
    label = row["label"]
    if label.lower() in MISSING:
        raise FormatError(
            f"{path}, line {row['line']}: the label of {row['graph']} is {label!r}; name its "
            "class, or leave the line out"
        )
    return label


def _check_once(names: list[str], rows: list[dict[str, str]], path: PathLike) -> None:
    """Refuses a graph with two classes."""
    lines: dict[str, str] = {}
    for name, row in zip(names, rows, strict=True):
        if name in lines:
            raise FormatError(
                f"{path}, line {row['line']}: graph {name} is in line {lines[name]} already; a "
                "graph has one class"
            )
        lines[name] = row["line"]


def _contradicted(examples: list[list[Any]], answers: list[float]) -> int:
    """How many pairs have several answers."""
    known: dict[tuple[int, int], set[float]] = {}
    for (left, right), answer in zip(examples, answers, strict=True):
        known.setdefault((id(left), id(right)), set()).add(answer)
    return sum(len(values) > 1 for values in known.values())


def _rows(path: PathLike, kind: str) -> list[dict[str, str]]:
    """The lines of a CSV by the names of their columns; ``line`` is the number of each."""
    try:
        text = read_file(path).decode("utf-8-sig")
        lines = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise FormatError(f"{path} is not CSV: {error}") from error
    numbered = [(number, [cell.strip() for cell in line]) for number, line in enumerate(lines, 1)]
    numbered = [(number, line) for number, line in numbered if any(line)]
    expected = COLUMNS[kind]
    header = [*expected, SPLIT]
    if numbered and set(expected) <= set(numbered[0][1]):
        header = numbered.pop(0)[1]
    if not numbered:
        raise FormatError(f"{path} has no lines; a CSV of {kind} has {','.join(expected)}")
    width = len(numbered[0][1])
    rows = []
    for number, line in numbered:
        if len(line) != width or not len(expected) <= width <= len(header):
            raise FormatError(
                f"{path}, line {number}: {len(line)} columns; a CSV of {kind} has "
                f"{','.join(expected)}, and {SPLIT} if you like"
            )
        rows.append({**dict(zip(header, line, strict=False)), "line": str(number)})
    return rows


def _by_name(graphs: list[NamedGraph]) -> dict[str, NamedGraph]:
    """Graphs by their names, and by those without ending where only one has it."""
    short: dict[str, list[NamedGraph]] = {}
    for named in graphs:
        path = PurePath(named.name)
        for name in {str(path.with_suffix("")), path.name, path.stem}:
            short.setdefault(name, []).append(named)
    unique = {name: several[0] for name, several in short.items() if len(several) == 1}
    return unique | {named.name: named for named in graphs}


def _graph(
    known: Mapping[str, NamedGraph], row: Mapping[str, str], column: str, path: PathLike
) -> NamedGraph:
    name = row[column]
    if name not in known:
        header = ""
        if row["line"] == "1":
            names = ",".join(key for key in row if key not in ("line", SPLIT))
            header = f". If the line is meant to name the columns, they are {names}"
        raise FormatError(
            f"{path}, line {row['line']}: there is no graph {name!r}; the first of {len(known)} "
            f"names is {next(iter(known))!r}{header}"
        )
    return known[name]


def _number(row: Mapping[str, str], column: str, path: PathLike) -> float:
    text = row[column].lower()
    try:
        return TRUTHS[text] if text in TRUTHS else float(text)
    except ValueError:
        raise FormatError(
            f"{path}, line {row['line']}: {column} must be a number, got {row[column]!r}"
        ) from None
