"""Searches among projects that nobody trained on: queries, measures, and the fit of a ranking."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from graphkin.graphs.words import KIND_SHIFT, KINDS
from graphkin.library.models import SearchModel
from graphkin.library.odds import probabilities_of
from graphkin.library.ranking import Ranking, variants
from graphkin.research.tasks.projects import ProjectTask
from tests.library.sample_models import ranking_model
from tests.paths import REPOSITORY
from tests.research.tasks.sample_projects import write_projects
from tests.scripts import script

DIRECTION = ("x86_64-gcc-O0", "x86_64-clang-O1")
ASKED, OTHERS = ("libkinbeat", "libkinproto"), ("libkinparse", "libkinmedia")


@pytest.fixture(scope="module", autouse=True)
def importable() -> Iterator[None]:
    """The scripts import each other by name."""
    folder = str(REPOSITORY / "experiments")
    sys.path.insert(0, folder)
    yield
    sys.path.remove(folder)


@pytest.fixture(scope="module")
def search() -> ModuleType:
    import project_search

    project_search.DIRECTIONS = {"levels": DIRECTION}
    return project_search  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = tmp_path_factory.mktemp("projects") / "corpus"
    write_projects(corpus)
    return corpus


@pytest.fixture(scope="module")
def model() -> SearchModel:
    return ranking_model()


@pytest.fixture(scope="module")
def searches(search: ModuleType, corpus: Path, model: SearchModel) -> object:
    return search.Searches(ProjectTask(str(corpus)), model, ASKED, others=OTHERS)


def test_queries_are_of_some_projects_and_pools_of_all(searches: object) -> None:
    asked, pool = searches.asked(DIRECTION[0]), searches.pool(DIRECTION[1])  # type: ignore[attr-defined]
    assert {project for project, _ in asked.names} == set(ASKED)
    assert {project for project, _ in pool.names} == {*ASKED, *OTHERS}
    answers = searches.answers(DIRECTION)  # type: ignore[attr-defined]
    assert answers
    for row, answer in answers:
        assert asked.names[row] == pool.names[answer]
        assert asked.names[row][0] in ASKED


def test_queries_of_a_program_that_holds_its_libraries(
    search: ModuleType, corpus: Path, model: SearchModel
) -> None:
    """They say no names of imports, and call as many functions as before."""
    task = ProjectTask(str(corpus))
    plain, linked = (
        search.Searches(task, model, ASKED, linked=share).asked(DIRECTION[0])
        for share in (0.0, 1.0)
    )
    imports = 0
    for row, graph in enumerate(plain.graphs):
        words = set(graph.node_words.hashes.tolist())
        kept = {word for word in words if KINDS[word >> KIND_SHIFT] != "imp"}
        assert set(linked.graphs[row].node_words.hashes.tolist()) == kept
        added = linked.records[row]["callee_count"] - plain.records[row]["callee_count"]
        assert added == len(words - kept)
        imports += added
    assert imports


def test_a_search_without_its_answer(
    search: ModuleType, searches: object, model: SearchModel
) -> None:
    found = 0
    for one in search.run(searches, model.ranking, DIRECTION, in_files=True, matched=True):
        without = search.without_answer(one)
        assert one.answer not in without.rows
        kept = one.rows != one.answer
        assert without.rows.tolist() == one.rows[kept].tolist()
        np.testing.assert_array_equal(without.seen.scores, one.seen.scores[kept])
        apart = one.seen.graphs.operations_apart
        np.testing.assert_array_equal(without.seen.graphs.operations_apart, apart[kept])
        found += one.answer in one.rows
    assert found


def test_candidates_of_neighbours(searches: object, model: SearchModel) -> None:
    """What lies beside the functions that those beside the query are most like."""
    pool = searches.pool(DIRECTION[1])  # type: ignore[attr-defined]
    inside, answered = 0, 0
    for row, answer in searches.answers(DIRECTION):  # type: ignore[attr-defined]
        beside = searches.beside(model.ranking, DIRECTION, row).tolist()  # type: ignore[attr-defined]
        near = searches.near_in_files(model.ranking, DIRECTION, row).tolist()  # type: ignore[attr-defined]
        assert set(beside) <= set(near)
        inside += answer in beside
        answered += 1
    assert inside > answered / 2
    for row in range(len(pool.names)):
        for other in pool.beside(row, 2):
            assert row in pool.beside(other, 2)
            assert pool.names[row][0] == pool.names[other][0]


def test_every_stage_is_measured(searches: object) -> None:
    unseen = script("experiments/unseen_projects.py")
    measures = unseen.stages(searches, DIRECTION)
    assert {
        "codes",
        "candidates",
        "candidates in files",
        "vectors in files",
        "matched",
        "matched in files",
    } <= set(measures)
    first = unseen.stages(searches, DIRECTION, is_whole=False)
    assert "unrounded" in first
    assert first == {stage: measures[stage] for stage in first} != measures
    for values in measures.values():
        assert values["queries"] == measures["codes"]["queries"]
        assert 0 <= values["recall@1"] <= values["recall@100"] <= 1
    assert "recall@1" in unseen.table({"codes": {"levels": measures["codes"]}})


def test_calibration_error() -> None:
    error = script("experiments/unseen_projects.py").calibration_error
    sure = np.full(10, 0.95)
    assert error(sure, np.arange(10) < 5) == pytest.approx(0.45)
    assert error(np.array([0.0, 1.0]), np.array([False, True])) == 0


def test_a_ranking_is_fitted(searches: object, model: SearchModel) -> None:
    fitting = script("experiments/fit_ranking.py")
    fitting.STEPS, fitting.DIRECTIONS = 60, {"levels": DIRECTION}
    fitted = fitting.fit(searches)
    assert Ranking.from_json(fitted.to_json()) == fitted
    assert fitted.regressions.keys() == variants().keys()
    assert fitted.fitted_on["projects"] == sorted(ASKED)


def test_odds_say_which_is_right_or_none() -> None:
    """What tells them apart is a product of two features, which no plain regression finds."""
    fitting = script("experiments/fit_ranking.py")
    fitting.STEPS = 250
    rng = np.random.default_rng(0)
    lists = []
    for number in range(300):
        features = rng.choice([-1.0, 1.0], (4, 2))
        features[:, 1] = -features[:, 0]
        right = number % 5
        if right < 4:
            features[right, 1] = features[right, 0]
        lists.append((features * [10, 0.1], right if right < 4 else None))
    odds = fitting.fit_odds(lists)
    for features, right in lists[:20]:
        probabilities = probabilities_of(odds(features), list("abcd"))
        assert (probabilities.argmax() == right and probabilities.max() > 0.9) or right is None
        assert right is not None or probabilities.sum() < 0.1
