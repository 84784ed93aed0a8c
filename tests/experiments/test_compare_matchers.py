"""Matchers side by side: whose searches fit a regression, what is counted, and what is timed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from graphkin.library.models import SearchModel
from graphkin.research.tasks.projects import ProjectTask
from tests.library.sample_models import ranking_model
from tests.paths import REPOSITORY
from tests.research.tasks.sample_projects import write_projects
from tests.scripts import script

PROJECTS = ("libkinbeat", "libkinproto", "libkinparse", "libkinmedia")
DIRECTIONS = {"levels": ("x86_64-gcc-O0", "x86_64-clang-O1")}


@pytest.fixture(scope="module")
def compare() -> Iterator[ModuleType]:
    folder = str(REPOSITORY / "experiments")
    sys.path.insert(0, folder)
    module = script("experiments/compare_matchers.py")
    module.FOLDS = (PROJECTS[::2], PROJECTS[1::2])
    yield module
    sys.path.remove(folder)


@pytest.fixture(scope="module")
def model() -> SearchModel:
    return ranking_model()


@pytest.fixture(scope="module")
def searches(
    compare: ModuleType, model: SearchModel, tmp_path_factory: pytest.TempPathFactory
) -> Any:
    path = tmp_path_factory.mktemp("projects") / "corpus"
    write_projects(path)
    return compare.Searches(ProjectTask(str(path)), model, PROJECTS)


def with_scores(lookups: list[Any], is_right: bool) -> list[Any]:
    """The same searches, whose matcher knows the answer, or takes it for the worst."""
    sign = 1.0 if is_right else -1.0
    return [
        item._replace(
            search=item.search._replace(
                seen=item.search.seen._replace(
                    scores=sign * (item.search.rows == item.search.answer).astype(np.float32)
                )
            )
        )
        for item in lookups
    ]


def test_rows_of_every_matcher(compare: ModuleType, searches: Any, model: SearchModel) -> None:
    matcher = model.matcher
    rows = compare.compared(searches, {"a": matcher, "b": matcher}, DIRECTIONS)
    for name in ("a", "b"):
        own = {f"vectors + {name}", f"regression + {name}", f"{name}, its score alone"}
        assert own | {f"vectors + {name} in files", f"regression + {name} in files"} <= rows.keys()
    assert rows["regression + a"] == rows["regression + b"]
    assert {"vectors", "regression", "vectors in files", "regression in files"} <= rows.keys()
    assert all(0 <= row["levels"] <= 1 for row in rows.values())
    assert "| regression + b in files | " in compare.table(rows)


def test_a_matcher_that_knows_is_believed(compare: ModuleType, searches: Any) -> None:
    lookups = compare.looked_up(searches, DIRECTIONS, in_files=False, matched=True)
    known = [item.search.answer in item.search.rows for item in lookups]
    knowing = with_scores(lookups, is_right=True)
    for right in (compare.summed(knowing), compare.fitted(knowing, "matched")):
        assert np.mean(right) > 0.9 * np.mean(known)
    ignored = compare.fitted(knowing, "alone")
    assert ignored == compare.fitted(lookups, "alone")


def test_a_search_is_not_judged_by_a_regression_that_saw_its_project(
    compare: ModuleType, searches: Any
) -> None:
    """A matcher that is right in one half of the projects misleads in the other."""
    lookups = compare.looked_up(searches, DIRECTIONS, in_files=False, matched=True)
    first = [item for item in lookups if item.project in compare.FOLDS[0]]
    second = [item for item in lookups if item.project in compare.FOLDS[1]]
    assert first
    assert second
    mixed = with_scores(first, is_right=True) + with_scores(second, is_right=False)
    by_vectors = np.mean([item.search.rows[0] == item.search.answer for item in second])
    for order in (compare.summed, lambda lookups: compare.fitted(lookups, "matched")):
        assert np.mean(order(mixed)[len(first) :]) < 0.5 * by_vectors


def test_time_of_the_pairs_that_a_search_has(
    compare: ModuleType, searches: Any, model: SearchModel
) -> None:
    pairs = compare.candidate_pairs(searches, DIRECTIONS)
    pool = searches.pool(DIRECTIONS["levels"][1]).graphs
    assert {id(right) for _, right in pairs} <= {id(graph) for graph in pool}
    times = compare.pair_times({"late": model.matcher}, pairs[:40])
    assert 0 < times["late"] < 1
