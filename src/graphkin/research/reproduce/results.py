"""What was measured: result files, those of older scripts included, and where they are kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from graphkin._support.files import read_file, write_atomically
from graphkin._support.settings import build, check_types
from graphkin.errors import FormatError, StorageError
from graphkin.research.reproduce.table_layout import (
    TABLE1,
    TABLE3,
    Variant,
    edit_row,
    function_row,
    retrieval_row,
)

FORMAT = "graphkin-result 1"
SUBFOLDER = "reproduce"
"""Of a folder of results: where the files of this format are."""
PACKAGED = Path(__file__).parent / "stored"
"""Results as a wheel brings them."""
CHECKOUT = Path(__file__).parents[4] / "experiments" / "results"
"""Results of a source checkout."""
Document = dict[str, Any]


@dataclass(frozen=True)
class Measurement:
    """A value for a cell of a table."""

    table: str
    row: str
    model: str
    metric: str
    value: float
    """From 0 to 1."""
    data: str
    """SHA-256 of the evaluation set."""

    def __post_init__(self) -> None:
        check_types(self)
        if not 0 <= self.value <= 1:
            raise ValueError(f"the value of {self.row}, {self.metric} must lie in 0..1")


@dataclass(frozen=True)
class Result:
    """What one model gave, and how it was made."""

    name: str
    group: str
    """The name without the seed."""
    variant: Variant
    seed: int | None
    """None where nothing was drawn."""
    command: str
    cells: tuple[Measurement, ...]
    steps: int | None = None
    """Of training; None where there was none."""
    seconds: float | None = None
    """Of training, and not of evaluation."""
    config: dict[str, Any] = field(default_factory=dict)
    """The tables model, training and task, as a checkpoint has them."""
    versions: dict[str, str] = field(default_factory=dict)
    cases: list[dict[str, Any]] | None = None
    """Attention of single pairs, for pictures."""

    def __post_init__(self) -> None:
        check_types(self)


def result_file(folder: Path, name: str) -> Path:
    """Where a folder of results keeps that of an experiment."""
    return folder / SUBFOLDER / f"{name}.json"


def write_result(result: Result, folder: Path) -> Path:
    """Writes a result into a folder of results; returns the file."""
    path = result_file(folder, result.name)
    document = {"format": FORMAT, **asdict(result)}
    if result.cases is None:
        del document["cases"]
    write_atomically(path, (json.dumps(document, indent=1) + "\n").encode())
    return path


def read_result(path: Path) -> Result:
    """A result that :func:`write_result` wrote."""
    document = read_document(path)
    if document.pop("format", None) != FORMAT:
        raise FormatError(f"{path} is not a {FORMAT} file")
    try:
        cells = tuple(build(Measurement, cell, "cell") for cell in document["cells"])
        return build(Result, {**document, "cells": cells}, "result")
    except (KeyError, TypeError, ValueError) as error:
        raise FormatError(f"{path} is not a result of an experiment: {error}") from error


def read_document(path: Path) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        document = json.loads(read_file(path))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path} is not valid JSON: {error}") from error
    if not isinstance(document, dict):
        raise FormatError(f"{path} must hold a JSON object")
    return document


def stored_folder() -> Path | None:
    """The folder of results that came with graphkin, where there is one."""
    return next((folder for folder in (PACKAGED, CHECKOUT) if folder.is_dir()), None)


def read_results(folder: Path) -> list[Result]:
    """All results of a folder, by name; of files in older forms as well."""
    if not folder.is_dir():
        raise StorageError(f"{folder} is not a folder of results")
    results = [read_result(path) for path in sorted((folder / SUBFOLDER).glob("*.json"))]
    for name, adapt in ADAPTERS.items():
        path = folder / name
        if path.is_file():
            try:
                results += adapt(read_document(path))
            except (KeyError, TypeError, IndexError) as error:
                raise FormatError(
                    f"{path} is not as its experiment writes it: {error!r}"
                ) from error
    return results


def _wl_on_edits(document: Document) -> Iterator[Result]:
    """``table1-wl.json``: the WL kernel on graph edit distance."""
    cells = []
    for row in document["rows"]:
        distribution = (row["task"]["nodes"][0], row["task"]["p"][0])
        table = {**dict.fromkeys(TABLE1, "table1"), **dict.fromkeys(TABLE3, "table3")}[distribution]
        for metric, best in row["metrics"].items():
            data = row["data"]["test"]
            name = edit_row(*distribution)
            cells.append(Measurement(table, name, "wl", metric, best["value"], data))
    yield Result(
        name=document["experiment"],
        group=document["experiment"],
        variant="paper",
        seed=None,
        command=document["command"],
        cells=tuple(cells),
        versions=document["versions"],
    )


def _short_functions(document: Document) -> Iterator[Result]:
    """``functions-short.json``: baselines, and a GMN after a short training."""
    (seed,) = document["seeds"]
    learned = {"gmn", "simhash"}
    for model, protocols in document["evaluations"].items():
        training = document["training"] if model == "gmn" else {}
        name = f"{document['experiment']}-{model}"
        yield Result(
            name=name,
            group=name,
            variant="paper",
            seed=seed if model in learned else None,
            command=f"{document['command']} --corpus CORPUS",
            cells=tuple(cell for each in protocols for cell in _function_cells(model, each)),
            steps=training.get("steps"),
            seconds=training.get("seconds"),
            versions=document["versions"],
        )


def _function_cells(model: str, measured: Document) -> Iterator[Measurement]:
    protocol = measured["protocol"]
    for name, values in measured["sets"].items():
        if name != "retrieval":
            row = function_row(protocol, name)
            yield from _cells(row, model, values["metrics"], values["data"])
        elif protocol == "clean":
            row = retrieval_row(f"pools of {max(values['pools'])}")
            yield from _cells(row, model, values["metrics"], measured["task"]["corpus"])


def _searched_functions(document: Document) -> Iterator[Result]:
    """``functions-search.json``: the embedder and matcher that ship, in pairs and a search."""
    cells = {"gnn": [], "gmn": [], "gnn+gmn": []}  # type: dict[str, list[Measurement]]
    for side, model in (("embedder", "gnn"), ("joined", "gmn")):
        for name, values in document["pairs"][side].items():
            protocol, _, negatives = name.partition(", ")
            row = function_row(protocol, negatives)
            cells[model] += _cells(row, model, values["metrics"], values["data"])
    for pools, rows in document["search"].items():
        # As many as a scan reranks.
        usual = min(rows, key=lambda row: row["rerank"])
        row = retrieval_row(pools)
        cells["gnn"] += _cells(row, "gnn", usual["codes"], document["corpus"])
        cells["gnn+gmn"] += _cells(row, "gnn+gmn", usual["reranked"], document["corpus"])
    for model, measured in cells.items():
        yield Result(
            name=f"functions-search-{model}",
            group=f"functions-search-{model}",
            variant="ours",
            seed=document["seed"],
            command="python experiments/functions_search.py --corpus CORPUS --embedder EMBEDDER "
            "--matcher MATCHER --output FOLDER",
            cells=tuple(measured),
            versions=document["versions"],
        )


def _cells(row: str, model: str, metrics: dict[str, float], data: str) -> Iterator[Measurement]:
    for metric, value in metrics.items():
        yield Measurement("table2", row, model, metric, value, data)


ADAPTERS: dict[str, Callable[[Document], Iterator[Result]]] = {
    "table1-wl.json": _wl_on_edits,
    "functions-short.json": _short_functions,
    "functions-search.json": _searched_functions,
}
"""File in a folder of results to what reads it."""
