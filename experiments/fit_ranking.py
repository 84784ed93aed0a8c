"""Fits how a search orders candidates and how probable they are, on projects that no model saw.

    python experiments/fit_ranking.py CORPUS --model FOLDER --projects NAME,NAME,... \\
        [--queries 400] [-o ranking.json]

The folder has ``embedder/`` and ``matcher/``; the ranking is written beside them. The projects must
be left out of the training of both (``graphkin train projects --set task.validation=...``), because
on functions that they were trained on their vectors agree too well.
"""

from __future__ import annotations

import argparse
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from project_search import DIRECTIONS, Search, Searches, run, without_answer

from graphkin._support.files import write_atomically
from graphkin.library.models import SearchModel
from graphkin.library.ranking import ORDERED_BY, VARIANTS, Ranking
from graphkin.models.calibration import Logistic
from graphkin.research.tasks.projects import ProjectTask

WEIGHTS = {
    "words": (0.7, 1.0, 1.4),
    "offsets": (0.0, 0.3, 0.6),
    "callees": (0.0, 0.2, 0.4),
    "callers": (0.0, 0.3, 0.6),
    "callee_count": (0.0, 0.07, 0.14),
    "caller_count": (0.0, 0.07, 0.14),
}
"""That are tried, beside the graph's of 1, one after the other."""
FIRST = {
    "graph": 1.0,
    "words": 0.7,
    "offsets": 0.3,
    "callees": 0.4,
    "callers": 0.6,
    "callee_count": 0.07,
    "caller_count": 0.07,
}
DROPPED_CALLERS = 0.3
"""Share of the queries in files whose callers are taken as unknown: a program links a part of a
library, and its functions have other callers there."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", help="what graphkin extract --evidence --min-blocks 1 wrote")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--projects", required=True, help="with commas")
    parser.add_argument("--queries", type=int, default=400, help="of each direction")
    parser.add_argument("-o", "--output", type=Path, help="by default ranking.json of the model")
    options = parser.parse_args()
    projects = tuple(options.projects.split(","))
    searches = Searches(
        ProjectTask(options.corpus), SearchModel.load(options.model), projects, options.queries
    )
    ranking = fit(searches)
    output = options.output or options.model / "ranking.json"
    write_atomically(output, ranking.to_json().encode() + b"\n")
    print(f"{output}: order {ranking.order}")


def fit(searches: Searches) -> Ranking:
    """The weights of the order one by one, then a regression for each variant."""
    directions = [direction for direction in DIRECTIONS.values() if searches.has(direction)]
    ranking = Ranking(_order(searches, directions), {}, {})
    regressions, count = {}, 0
    for in_files in (False, True):
        examples = [
            search
            for direction in directions
            for search in run(searches, ranking, direction, in_files=in_files, matched=True)
        ]
        count = len(examples)
        for is_matched in (False, True):
            variant = ("matched" if is_matched else "alone") + (" in files" if in_files else "")
            regressions[variant] = _regression(ranking, examples, VARIANTS[variant], is_matched)
            print(f"{variant}: {count} queries")
        if not in_files:
            regressions["pair"] = _regression(ranking, examples, VARIANTS["pair"], True)
    about = {"projects": sorted(searches.projects), "queries": count}
    return Ranking(ranking.order, regressions, about)


def _order(searches: Searches, directions: list[tuple[str, str]]) -> dict[str, float]:
    order = dict(FIRST)
    for name, weights in WEIGHTS.items():
        recalls = {
            weight: _found_first(searches, order | {name: weight}, directions) for weight in weights
        }
        order[name] = max(recalls, key=recalls.__getitem__)
        print(f"{name}: recall@1 {recalls}")
    return {name: order[name] for name in ORDERED_BY}


def _found_first(
    searches: Searches, order: dict[str, float], directions: list[tuple[str, str]]
) -> float:
    ranking = Ranking(order, {}, {})
    right = [
        search.rows[0] == search.answer
        for direction in directions
        for search in run(searches, ranking, direction, in_files=True, matched=False)
    ]
    return float(np.mean(right))


def _regression(
    ranking: Ranking, examples: list[Search], names: tuple[str, ...], is_matched: bool
) -> Logistic:
    rng = np.random.default_rng(0)
    rows: list[NDArray[np.float64]] = []
    labels: list[NDArray[np.bool_]] = []
    # Most functions of a program are in no library: every query is also one without its answer.
    for search in chain(examples, map(without_answer, examples)):
        query = search.query.copy()
        if rng.random() < DROPPED_CALLERS:
            query["callers_scale"] = query["caller_count"] = 0
        matched = (search.scores, search.exact_words) if is_matched else (None, None)
        features = ranking.features(query, search.graph.num_nodes, search.candidates, *matched)
        rows.append(np.column_stack([features[name] for name in names]))
        labels.append(search.rows == search.answer)
    return Logistic.fit(np.concatenate(rows), np.concatenate(labels))


if __name__ == "__main__":
    main()
