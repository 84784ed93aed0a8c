"""Cells from result files: means over seeds, the order of preference, what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphkin.errors import FormatError, StorageError
from graphkin.research.reproduce import results as stored
from graphkin.research.reproduce.cells import Cell, counts, fill
from graphkin.research.reproduce.results import (
    CHECKOUT,
    Result,
    read_result,
    read_results,
    stored_folder,
    write_result,
)
from graphkin.research.reproduce.table_layout import OURS_ALONE, RETRIEVAL
from tests.research.reproduce.made_up import folder_of, result

GROUP = "table1-n20-p0.2-gmn-paper"


def cell_of(
    results: list[Result], metric: str = "pair_auc", variant: str = "paper", model: str = "gmn"
) -> Cell:
    (matching,) = [
        cell
        for section in fill("table1", results)
        for cell in section.cells
        if (cell.row, cell.model, cell.metric, cell.variant)
        == ("n=20 p=0.2", model, metric, variant)
    ]
    return matching


def test_a_value_is_the_mean_over_seeds() -> None:
    runs = [result(GROUP, seed, (0.95 + seed / 100, 0.9)) for seed in (0, 1, 2)]
    cell = cell_of(runs)
    assert cell.paper == 95.0
    assert cell.ours == pytest.approx(96.0)
    assert cell.seeds == 3
    assert cell.spread == pytest.approx(1.0)
    assert cell.sources == tuple(f"{GROUP}-seed{seed}" for seed in (0, 1, 2))


def test_what_was_not_measured_has_no_value() -> None:
    cell = cell_of([])
    assert (cell.paper, cell.ours, cell.seeds, cell.sources) == (95.0, None, 0, ())


def test_one_model_is_not_mixed_with_another() -> None:
    """The plan decides which model fills a cell, and never its score."""
    other = result("zz-other", 0, (0.999, 0.999))
    assert cell_of([other]).ours == pytest.approx(99.9)
    planned = result(GROUP, 0, (0.9, 0.9))
    for order in ([planned, other], [other, planned]):
        assert cell_of(order).ours == pytest.approx(90.0)
        assert cell_of(order).seeds == 1


def test_variants_are_columns_of_their_own() -> None:
    runs = [
        result(GROUP, 0, (0.96, 0.9)),
        result("general-gmn-ours", 0, (0.98, 0.9), variant="ours"),
    ]
    assert cell_of(runs).ours == pytest.approx(96.0)
    assert cell_of(runs, variant="ours").ours == pytest.approx(98.0)
    (section,) = fill("table1", runs)
    assert section.variants == ("paper", "ours")


def test_json_has_the_promised_keys() -> None:
    (section,) = fill("table1", [result(GROUP, 0, (0.96, 0.9))])
    documents = json.loads(json.dumps([cell.to_dict() for cell in section.cells]))
    promised = {"table", "row", "model", "metric", "paper", "ours", "seeds", "variant"}
    assert all(promised <= document.keys() for document in documents)
    (measured,) = [item for item in documents if item["ours"] is not None and item["paper"] == 95.0]
    assert measured["ours"] == pytest.approx(96.0)
    assert (measured["table"], measured["row"], measured["model"]) == (
        "table1",
        "n=20 p=0.2",
        "gmn",
    )
    assert (
        sum(item["ours"] is None and item["seeds"] == 0 for item in documents) == len(documents) - 2
    )


def test_counts_take_each_value_of_the_paper_once() -> None:
    runs = [
        result(GROUP, 0, (0.94, 0.97)),
        result("general-gmn-ours", 0, (0.96, 0.5), variant="ours"),
    ]
    (section,) = fill("table1", runs)
    assert counts(section.cells, "paper") == (16, 2, 1), "triplets reach it, AUC does not"
    assert counts(section.cells, "ours") == (16, 2, 1), "the other way round"


def test_further_pools_of_a_search_are_shown() -> None:
    row = "retrieval, gcc-O0 to clang-O3, pools of 1000"
    measured = result(
        "search", 0, (0.5, 0.7, 0.6), row=row, model="gnn", table="table2",
        variant="ours", metrics=RETRIEVAL,
    )  # fmt: skip
    cells = [
        cell for section in fill("table2", [measured]) for cell in section.cells if cell.row == row
    ]
    assert [(cell.metric, cell.ours) for cell in cells] == [
        ("recall_at_1", 50.0),
        ("recall_at_10", 70.0),
        ("mrr_at_10", 60.0),
    ]
    assert {cell.protocol for cell in cells} == {"clean"}


def test_a_result_survives_its_file(tmp_path: Path) -> None:
    made = result(GROUP, 0, (0.96, 0.9))
    path = write_result(made, tmp_path)
    assert path == tmp_path / "reproduce" / f"{GROUP}-seed0.json"
    assert read_result(path) == made


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "is not a graphkin-result"),
        ({"cells": [{"table": "table1"}]}, "is not a result"),
        ({"cells": None}, "is not a result"),
        ({"colour": "red"}, "colour"),
        ({"variant": "theirs"}, "theirs"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, change: dict[str, object], message: str) -> None:
    path = write_result(result(GROUP, 0, (0.96, 0.9)), tmp_path)
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(FormatError, match=message):
        read_results(tmp_path)


def test_text_in_place_of_json_is_refused(tmp_path: Path) -> None:
    folder_of(tmp_path, result(GROUP, 0, (0.96, 0.9)))
    (tmp_path / "table1-wl.json").write_text("nothing")
    with pytest.raises(FormatError, match=r"table1-wl\.json is not valid JSON"):
        read_results(tmp_path)
    (tmp_path / "table1-wl.json").write_text("{}")
    with pytest.raises(FormatError, match="not as its experiment writes it"):
        read_results(tmp_path)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="not a folder of results"):
        read_results(tmp_path / "missing")


def test_results_of_a_wheel_come_before_those_of_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "PACKAGED", tmp_path)
    assert stored_folder() == tmp_path
    monkeypatch.setattr(stored, "PACKAGED", tmp_path / "missing")
    assert stored_folder() == CHECKOUT
    monkeypatch.setattr(stored, "CHECKOUT", tmp_path / "missing")
    assert stored_folder() is None


def test_files_of_older_experiments_fill_cells() -> None:
    """Against the numbers in the files that are in the repository."""
    folder = stored_folder()
    assert folder == CHECKOUT
    results = [
        item for item in read_results(folder) if item.group.startswith(("table1-wl", "functi"))
    ]
    cells = {
        (cell.row, cell.model, cell.metric, cell.variant): cell
        for target in ("table1", "table2")
        for section in fill(target, results)
        for cell in section.cells
    }
    wl = cells["n=20 p=0.2", "wl", "triplet_accuracy", "paper"]
    assert (wl.ours, wl.seeded) == (84.0, False)
    rows = json.loads((folder / "functions-short.json").read_text())["evaluations"]["simhash"]
    simhash = cells["functions, clean protocol", "simhash", "pair_auc", "paper"]
    expected = rows[1]["sets"]["random negatives"]["metrics"]["pair_auc"]
    assert simhash.ours == pytest.approx(100 * expected, abs=1e-3)
    shipped = json.loads((folder / "functions-search.json").read_text())
    for model, part in (("gnn", "embedder"), ("gmn", "joined")):
        pairs = cells["functions, paper's protocol", model, "pair_auc", "ours"]
        metrics = shipped["pairs"][part]["paper, random negatives"]["metrics"]
        assert pairs.ours == pytest.approx(100 * metrics["pair_auc"], abs=1e-3)
    search = shipped["search"]
    reranked = cells["retrieval, pools of 100", "gnn+gmn", "recall_at_1", "ours"]
    expected = search["pools of 100"][0]["reranked"]["recall_at_1"]
    assert reranked.ours == pytest.approx(100 * expected, abs=1e-3)


def test_models_that_the_paper_lacks_are_ours_measured_or_not() -> None:
    by_model = {line.model: list(cells) for item in fill("table2", []) for line, cells in item.rows}
    for model in OURS_ALONE:
        assert by_model[model] == ["ours"]
    assert by_model["wl"] == ["paper"]
