"""Results of experiments that have scripts and files of their own, as results like any other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from graphkin.research.reproduce.results import Measurement, Result
from graphkin.research.reproduce.sections import (
    TABLE1,
    TABLE3,
    edit_row,
    function_row,
    retrieval_row,
)

Document = dict[str, Any]


def wl_on_edits(document: Document) -> Iterator[Result]:
    """``table1-wl.json``: the WL kernel on graph edit distance."""
    cells = []
    for row in document["rows"]:
        distribution = (row["task"]["nodes"][0], row["task"]["p"][0])
        table = {**dict.fromkeys(TABLE1, "table1"), **dict.fromkeys(TABLE3, "table3")}[distribution]
        for metric, found in row["metrics"].items():
            data = row["data"]["test"]
            name = edit_row(*distribution)
            cells.append(Measurement(table, name, "wl", metric, found["value"], data))
    yield Result(
        name=document["experiment"],
        group=document["experiment"],
        variant="paper",
        seed=None,
        command=document["command"],
        cells=tuple(cells),
        versions=document["versions"],
    )


def short_functions(document: Document) -> Iterator[Result]:
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
            cells=tuple(cell for one in protocols for cell in _function_cells(model, one)),
            steps=training.get("steps"),
            seconds=training.get("seconds"),
            versions=document["versions"],
        )


def _function_cells(model: str, measured: Document) -> Iterator[Measurement]:
    protocol = measured["protocol"]
    for name, one in measured["sets"].items():
        if name != "retrieval":
            row = function_row(protocol, name)
            yield from _cells(row, model, one["metrics"], one["data"])
        elif protocol == "clean":
            row = retrieval_row(f"pools of {max(one['pools'])}")
            yield from _cells(row, model, one["metrics"], measured["task"]["corpus"])


def searched_functions(document: Document) -> Iterator[Result]:
    """``functions-search.json``: the embedder and matcher that ship, in pairs and a search."""
    cells = {"gnn": [], "gmn": [], "gnn+gmn": []}  # type: dict[str, list[Measurement]]
    for side, model in (("embedder", "gnn"), ("joined", "gmn")):
        for name, one in document["pairs"][side].items():
            protocol, _, negatives = name.partition(", ")
            row = function_row(protocol, negatives)
            cells[model] += _cells(row, model, one["metrics"], one["data"])
    for pools, rows in document["search"].items():
        # As many as a scan reranks.
        usual = min(rows, key=lambda one: one["rerank"])
        row = retrieval_row(pools)
        cells["gnn"] += _cells(row, "gnn", usual["codes"], document["corpus"])
        cells["gnn+gmn"] += _cells(row, "gnn+gmn", usual["reranked"], document["corpus"])
    for model, found in cells.items():
        yield Result(
            name=f"functions-search-{model}",
            group=f"functions-search-{model}",
            variant="ours",
            seed=document["seed"],
            command="python experiments/functions_search.py --corpus CORPUS --embedder EMBEDDER "
            "--matcher MATCHER --out FOLDER",
            cells=tuple(found),
            versions=document["versions"],
        )


def _cells(row: str, model: str, metrics: dict[str, float], data: str) -> Iterator[Measurement]:
    for metric, value in metrics.items():
        yield Measurement("table2", row, model, metric, value, data)


ADAPTERS: dict[str, Callable[[Document], Iterator[Result]]] = {
    "table1-wl.json": wl_on_edits,
    "functions-short.json": short_functions,
    "functions-search.json": searched_functions,
}
"""File in a folder of results to what reads it."""
