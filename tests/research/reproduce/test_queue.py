"""The queue of long runs: its order, its locks, and what it says of itself."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from graphkin.errors import StorageError
from graphkin.research.reproduce.measure import DataPaths
from graphkin.research.reproduce.plan.experiments import all_experiments, experiments_for
from graphkin.research.reproduce.queue import own_run, queue_status, status_text
from graphkin.research.reproduce.results import result_file
from graphkin.research.reproduce.run_experiment import Folders, run_experiments
from tests.command_line import Graphkin
from tests.research.reproduce.made_up import tiny_experiment


def test_every_model_of_the_paper_is_trained_for_long() -> None:
    queue = experiments_for("all", budget="paper")
    names = [experiment.name for experiment in queue]
    assert names[:2] == [
        "table1-n20-p0.2-gnn-paper-full-seed0",
        "table1-n20-p0.2-gmn-paper-full-seed0",
    ]
    assert len(names) == len(set(names)) == 27
    assert {experiment.variant for experiment in queue} == {"paper"}
    edits = [experiment for experiment in queue if experiment.data == "edits"]
    steps = {experiment.name: experiment.training["steps"] for experiment in edits}
    small = {name for name in steps if "-n20-" in name}
    assert len(small) == 4
    assert {steps[name] for name in small} == {200_000}
    assert {steps[name] for name in steps.keys() - small} == {100_000}


def test_long_runs_are_not_part_of_short_ones() -> None:
    short = experiments_for("all")
    assert not any(experiment.budget == "paper" for experiment in short)
    assert len(short) + 27 == len(all_experiments())


def test_a_cell_prefers_the_long_run() -> None:
    groups = [experiment.group for experiment in all_experiments()]
    assert groups.index("table1-n20-p0.2-gmn-paper-full") < groups.index(
        "table1-n20-p0.2-gmn-paper"
    )


def test_a_run_belongs_to_one_process(tmp_path: Path) -> None:
    with own_run(tmp_path / "run") as first, own_run(tmp_path / "run") as second:
        assert (first, second) == (True, False)
    with own_run(tmp_path / "run") as again:
        assert again


def test_a_failure_inside_is_not_taken_for_a_lock(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="disk"), own_run(tmp_path / "run"):
        raise StorageError("the disk is full")


def test_what_another_process_trains_is_passed_over(tmp_path: Path) -> None:
    experiments = [tiny_experiment(), replace(tiny_experiment(), group="other")]
    folders = Folders(tmp_path / "runs", tmp_path / "results")
    with own_run(folders.runs / experiments[0].name):
        done = run_experiments(experiments, folders, DataPaths(None, None))
    assert [result.name for result in done] == [experiments[1].name]


def test_status(tmp_path: Path) -> None:
    experiments = [
        replace(tiny_experiment(), group=group, training={"steps": 20_000})
        for group in ("new", "begun", "busy", "done")
    ]
    runs, results = tmp_path / "runs", tmp_path / "results"
    _, begun, busy, done = (experiment.name for experiment in experiments)
    for name in (begun, busy):
        folder = runs / name
        folder.mkdir(parents=True)
        lines = [
            {"step": 5_000, "steps_per_second": 2.0, "validation": {"pair_auc": 0.8}},
            {"step": 12_800, "steps_per_second": 2.0},
        ]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        (folder / "log.jsonl").write_text(text + '{"step": 129')
    result_file(results, done).parent.mkdir(parents=True)
    result_file(results, done).write_text("{}")
    with own_run(runs / busy):
        queue = queue_status(experiments, runs, results)
    assert [run.state for run in queue] == ["waiting", "paused", "running", "done"]
    assert [run.step for run in queue] == [0, 12_800, 12_800, 0]
    assert queue[1].hours_left == pytest.approx(1.0)
    assert queue[1].curve == ({"step": 5_000, "pair_auc": 0.8},)
    text = status_text(queue)
    assert text.startswith("1 done, 1 running, 1 paused, 1 waiting\n")
    assert "1.0 h left" in text
    assert "5k 80.0  10k 80.0" in text


def test_the_command_line(run: Graphkin, tmp_path: Path) -> None:
    outcome = run("reproduce", "table1", "--budget", "paper", "--status", "--runs", tmp_path)
    assert outcome.code == 0, outcome.err
    assert "0 done, 0 running, 0 paused, 8 waiting" in outcome.out
    listed = json.loads(run("reproduce", "table1", "--status", "--runs", tmp_path, "--json").out)
    assert all(entry["state"] == "waiting" for entry in listed)
    assert run("reproduce", "table1", "--budget", "paper").code == 12
    assert run("reproduce", "table1", "--rerun", "--budget", "endless").code == 12
