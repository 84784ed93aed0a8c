"""The paper's numbers, and that something fills every cell that has one."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphkin.errors import ConfigError
from graphkin.learning.training import TrainConfig
from graphkin.models import ModelConfig
from graphkin.research.reproduce.experiment import MEASURES
from graphkin.research.reproduce.paper import PAPER
from graphkin.research.reproduce.plan.experiments import (
    ATTENTION_MODEL,
    all_experiments,
    experiments_for,
    group_order,
)
from graphkin.research.reproduce.results import CHECKOUT, read_results
from graphkin.research.reproduce.table_layout import OURS_ALONE, SECTIONS, TABLES, sections_of


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (("table1", "n=20 p=0.2", "gmn", "pair_auc"), 95.0),
        (("table1", "n=20 p=0.5", "wl", "triplet_accuracy"), 78.0),
        (("table1", "n=50 p=0.5", "gnn", "triplet_accuracy"), 91.0),
        (("table3", "n=100 p=0.5", "gnn", "pair_auc"), 79.8),
        (("table3", "n=200 p=0.2", "wl", "triplet_accuracy"), 100.0),
        (("table3", "n=200 p=0.5", "gmn", "pair_auc"), 68.3),
        (("table3", "k_p=1 k_n=4", "gmn", "triplet_accuracy"), 100.0),
        (("table2", "functions, paper's protocol", "simhash", "pair_auc"), 96.09),
        (("table2", "functions, paper's protocol", "wl", "triplet_accuracy"), 24.5),
        (("table2", "functions, paper's protocol", "siamese-gcn", "triplet_accuracy"), 97.51),
        (("table2", "functions, paper's protocol", "gmn", "pair_auc"), 99.28),
        (("table2", "COIL-DEL, split by class", "gcn", "pair_auc"), 94.8),
        (("table2", "COIL-DEL, split by graph", "siamese-gnn", "triplet_accuracy"), 98.55),
    ],
    ids=str,
)
def test_values_are_those_of_the_paper(key: tuple[str, str, str, str], value: float) -> None:
    assert PAPER[key] == value


def test_the_paper_gives_no_values_by_the_clean_protocol() -> None:
    assert not [key for key in PAPER if "clean" in key[1] or "retrieval" in key[1]]


def test_every_value_of_the_paper_has_a_place_in_a_table() -> None:
    placed = {
        (section.table, line.row, line.model, metric)
        for section in SECTIONS
        for line in section.lines
        for metric in section.metrics
    }
    assert PAPER.keys() <= placed


def filled_by_plan() -> set[tuple[str, str, str, str]]:
    return {
        (evaluation.table, evaluation.row, experiment.model, metric)
        for experiment in all_experiments()
        for evaluation in experiment.evaluations
        for metric in MEASURES[evaluation.measure]
    }


def stored() -> set[tuple[str, str, str, str]]:
    return {
        (cell.table, cell.row, cell.model, cell.metric)
        for result in read_results(CHECKOUT)
        for cell in result.cells
    }


def test_something_fills_every_cell_of_the_paper() -> None:
    assert PAPER.keys() - filled_by_plan() - stored() == set()
    wl_on_functions = {key for key in PAPER if key[:3:2] == ("table2", "wl")}
    assert PAPER.keys() - filled_by_plan() == wl_on_functions, "the short experiment has these"


def test_the_plan_or_a_script_fills_every_learned_cell_that_is_shown() -> None:
    shown = {
        (section.table, line.row, line.model, metric)
        for section in SECTIONS
        if section.table != "attention" and section.protocol != "clean"
        for line in section.lines
        if line.model not in ("size", "wl", "tfidf", "simhash")
        for metric in section.metrics
    }
    by_scripts = {key for key in shown if key[2] in OURS_ALONE}
    assert shown - filled_by_plan() == by_scripts
    assert by_scripts <= stored()


def test_settings_of_the_plan_are_options_of_models_and_training() -> None:
    for experiment in all_experiments():
        if experiment.trained:
            ModelConfig.named(experiment.model, **experiment.model_options)
            TrainConfig.from_dict(dict(experiment.training))


def test_names_are_told_apart_and_are_good_for_files() -> None:
    names = [experiment.name for experiment in all_experiments()]
    assert len(names) == len(set(names))
    assert all(Path(name).name == name and " " not in name for name in names)
    assert "table1-n20-p0.2-gmn-paper-seed0" in names
    assert list(group_order()) == list(
        dict.fromkeys(all_experiment.group for all_experiment in all_experiments())
    )


@pytest.mark.parametrize("target", TABLES)
def test_every_target_has_sections_and_experiments(target: str) -> None:
    assert sections_of(target)
    for experiment in experiments_for(target):
        assert target in experiment.tables or target == "attention"


def test_all_is_everything() -> None:
    long, short = experiments_for("all", budget="paper"), experiments_for("all")
    assert [*long, *short] == list(all_experiments())
    assert ATTENTION_MODEL in [item.name for item in experiments_for("attention")]


def test_attention_is_of_a_matcher_that_can_be_unrolled() -> None:
    (experiment,) = experiments_for("attention")
    config = ModelConfig.named(experiment.model, **experiment.model_options)
    assert (config.matching, config.shared, config.steps) == (True, True, 5)


def test_only_chooses_by_name() -> None:
    names = [item.name for item in experiments_for("table1", only="n20-p0.2-gmn-paper")]
    assert names == ["table1-n20-p0.2-gmn-paper-seed0"]
    with pytest.raises(ConfigError, match=r"'nonsense'.*table1-n20-p0\.2-gnn-paper-seed0"):
        experiments_for("table1", only="nonsense")


def test_an_unknown_target() -> None:
    with pytest.raises(ConfigError, match="table1, table2"):
        experiments_for("table4")
    with pytest.raises(ConfigError, match="table1, table2"):
        sections_of("table4")


def test_quick_experiments_have_few_steps_and_small_sets() -> None:
    for experiment in experiments_for("all", quick=True):
        assert experiment.training["steps"] <= 50
        sizes = [
            evaluation.task.options["evaluation_size"] for evaluation in experiment.evaluations
        ]
        assert max([experiment.task.options["evaluation_size"], *sizes]) <= 50
        assert not any(evaluation.costly for evaluation in experiment.evaluations)
