"""The verb end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphkin.research.reproduce import sources
from graphkin.research.reproduce.render.text_tables import QUICK
from graphkin.research.reproduce.results import CHECKOUT
from tests.command_line import Graphkin
from tests.research.reproduce.made_up import folder_of, result

GROUP = "table1-n20-p0.2-gmn-paper"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "results", result(GROUP, 0, (0.961, 0.957)))


def stored_bytes() -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in CHECKOUT.rglob("*.json")}


def test_stored_results_as_text_markdown_and_picture(
    run: Graphkin, results: Path, tmp_path: Path
) -> None:
    markdown, png = tmp_path / "table.md", tmp_path / "table.png"
    outcome = run(
        "reproduce", "table1", "--results", results, "--markdown", markdown, "--png", png
    )  # fmt: skip
    assert outcome.code == 0
    assert "96.1 / 95.7 (1 seed)" in outcome.out
    assert "96.1 / 95.7 (1 seed)" in markdown.read_text()
    assert png.read_bytes().startswith(b"\x89PNG")
    assert str(png) in outcome.err


def test_json_is_a_list_of_cells(run: Graphkin, results: Path) -> None:
    outcome = run("reproduce", "all", "--results", results, "--runs", results, "--json")
    cells = json.loads(outcome.out)
    assert {"table1", "table2", "table3", "sweep", "attention", "ablations"} == {
        cell["table"] for cell in cells
    }
    measured = [cell for cell in cells if cell["ours"] is not None and cell["table"] == "table1"]
    assert [(cell["metric"], cell["seeds"]) for cell in measured] == [
        ("pair_auc", 1),
        ("triplet_accuracy", 1),
    ]


def test_results_of_the_repository_are_found(run: Graphkin) -> None:
    outcome = run("reproduce", "table1")
    assert outcome.code == 0
    assert "79.4 / 84.0 (no seed)" in outcome.out


def test_a_quick_run_keeps_no_results(run: Graphkin, tmp_path: Path) -> None:
    outcome = run("reproduce", "table1", "--quick", "--results", tmp_path)
    assert outcome.code == 12
    assert "--quick keeps no results" in outcome.err


def test_a_quick_run_of_table_1(run: Graphkin, tmp_path: Path) -> None:
    before = stored_bytes()
    arguments = ("reproduce", "table1", "--quick", "--only", "n20-p0.2", "--runs", tmp_path)
    outcome = run(*arguments)
    assert outcome.code == 0, outcome.err
    assert outcome.out.startswith(QUICK)
    lines = [line for line in outcome.out.splitlines() if "88.8 / 94.0" in line]
    assert "(1 seed)" in lines[0]
    assert (tmp_path / "quick" / f"{GROUP}-seed0" / "model").is_dir()
    again = run(*arguments, "--json")
    assert "step 12/12" not in again.err, "what is finished is not run again"
    assert all(cell["quick"] for cell in json.loads(again.out))
    assert stored_bytes() == before, "quick results are never stored"


def test_a_quick_run_leaves_nothing_behind(
    run: Graphkin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("reproduce", "table1", "--quick", "--only", "edits-wl").code == 0
    assert not list(tmp_path.iterdir())


def test_quick_attention_is_measured(run: Graphkin) -> None:
    outcome = run("reproduce", "attention", "--quick", "--json")
    assert outcome.code == 0, outcome.err
    cells = json.loads(outcome.out)
    assert len(cells) == 12
    assert all(0 < cell["ours"] <= 100 and cell["seeds"] == 1 for cell in cells)


def test_rerun_stores_what_it_measures(
    run: Graphkin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real way, but for the length of the training."""
    from graphkin.research.reproduce.plan.experiments import experiments_for

    def short(target: str, *, only: str, budget: str) -> list[object]:
        return list(experiments_for(target, True, only))

    monkeypatch.setattr(sources, "experiments_for", short)
    store = tmp_path / "store"
    outcome = run(
        "reproduce", "table1", "--rerun", "--only", "n20-p0.2-gnn", "--runs", tmp_path / "runs",
        "--results", store,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    assert QUICK not in outcome.out
    name = "table1-n20-p0.2-gnn-paper-seed0.json"
    assert (store / "reproduce" / name).is_file()
    assert (tmp_path / "runs" / "results" / "reproduce" / name).is_file()
    assert "--rerun" in json.loads((store / "reproduce" / name).read_text())["command"]
    assert "(1 seed)" in run("reproduce", "table1", "--results", store).out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("table4",), "table1, table2"),
        (("table1", "--quick", "--rerun"), "choose one"),
        (("table1", "--only", "gmn"), "add --rerun or --quick"),
        (("table1", "--quick", "--only", "nonsense"), "nonsense"),
        (("all", "--png", "picture.png"), "name a folder"),
        (("table2", "--quick", "--only", "coil"), "could be run"),
    ],
)
def test_mistakes_are_named(run: Graphkin, arguments: tuple[str, ...], message: str) -> None:
    outcome = run("reproduce", *arguments)
    assert outcome.code == 12
    assert message in outcome.err
    assert outcome.out == ""
