"""How well functions of projects that nobody trained on are found: recall by direction.

    python experiments/unseen_projects.py CORPUS [--model FOLDER] [--split validation] [--json FILE]

A query is a function of configuration A with at least five blocks, whose name is there once in A
and in B. The pool is every function of B of all projects of the split, with ``--among-all`` of
all that are not of the test. Each row is one stage of a search: codes, codes against numbers of
the query that were not rounded, these and rare words, and in files what lies beside what its
neighbours are like, parts of the vectors, the order of vectors,
and the regression over all signals without and with the matcher, by functions alone and in
files, where callers, callees and neighbours are known. The corpus is what
``graphkin extract --evidence --min-blocks 1`` wrote.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from fit_ranking import FIRST
from numpy.typing import NDArray
from project_search import (
    DIRECTIONS,
    Pool,
    Search,
    Searches,
    code_likeness,
    run,
    without_answer,
    without_files,
)

from graphkin._support.progress import counter
from graphkin.binaries.corpus import FunctionCorpus
from graphkin.library.models import SearchModel
from graphkin.library.ranking import Ranking
from graphkin.library.signals import cosines
from graphkin.models.codes import hamming_distances
from graphkin.research.tasks.projects import TEST, VALIDATION, ProjectTask

FIRST_BY_CODES = 10
"""Candidates by code and by rare words that come ahead of those which neighbours lead to."""
SPLITS = {"validation": VALIDATION, "test": TEST}
Ranks = NDArray[np.float64]
Measures = dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", help="what graphkin extract --evidence --min-blocks 1 wrote")
    parser.add_argument("--model", default="functions", help="a model that reads words")
    parser.add_argument("--split", choices=SPLITS, default="validation")
    parser.add_argument("--queries", type=int, default=0, help="of each direction; 0 for all")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    parser.add_argument(
        "--among-all", action="store_true", help="search among all projects but those of the test"
    )
    parser.add_argument(
        "--first-stages", action="store_true", help="measure what is before the regression alone"
    )
    options = parser.parse_args()
    model, projects = SearchModel.load(options.model), SPLITS[options.split]
    others: tuple[str, ...] = ()
    if options.among_all:
        every = {binary.build for binary in FunctionCorpus.open(Path(options.corpus)).binaries}
        others = tuple(sorted(every - {*projects, *TEST}))
    searches = Searches(ProjectTask(options.corpus), model, projects, options.queries, others)
    rows = measure(searches, is_whole=not options.first_stages)
    print(table(rows))
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def measure(searches: Searches, *, is_whole: bool = True) -> dict[str, dict[str, Measures]]:
    """{stage: {direction: measures}}, with the regression and the matcher or without."""
    rows: dict[str, dict[str, Measures]] = {}
    directions = {name: both for name, both in DIRECTIONS.items() if searches.has(both)}
    with counter("directions") as progress:
        for done, (name, direction) in enumerate(directions.items()):
            progress(done, len(directions))
            for stage, measures in stages(searches, direction, is_whole).items():
                rows.setdefault(stage, {})[name] = measures
    return rows


def stages(
    searches: Searches, direction: tuple[str, str], is_whole: bool = True
) -> dict[str, Measures]:
    """The measures of every stage in one direction."""
    asked, pool = searches.asked(direction[0]), searches.pool(direction[1])
    answers = searches.answers(direction)
    silent = np.array([searches.says_nothing(asked.graphs[row]) for row, _ in answers])
    size = len(pool.numbers)
    ranking = searches.model.ranking or Ranking(dict(FIRST), {}, {})
    alone = without_files(asked.records), without_files(pool.records)
    ranks = {
        stage: np.array([rank_of(scores(row), answer) for row, answer in answers])
        for stage, scores in {
            "codes": lambda row: -hamming_distances(asked.codes[row][None], pool.codes)[0],
            "unrounded": lambda row: code_likeness(asked, pool, row),
            "candidates": lambda row: first_stage(asked, pool, row),
            "candidates in files": lambda row: first_stage(
                asked, pool, row, searches.beside(ranking, direction, row)
            ),
            "graph": lambda row: cosines(asked.records[row], pool.records, "graph"),
            "words": lambda row: cosines(asked.records[row], pool.records, "words"),
            "vectors": lambda row: ranking.totals(alone[0][row], alone[1]),
            "vectors in files": lambda row: ranking.totals(asked.records[row], pool.records),
        }.items()
    }
    measures = {stage: measured(own, silent, size) for stage, own in ranks.items()}
    if searches.model.ranking is None or not is_whole:
        return measures
    for in_files, ending in ((False, ""), (True, " in files")):
        is_matched = searches.model.matcher is not None
        looked_up = list(run(searches, ranking, direction, in_files=in_files, matched=is_matched))
        for matched in (False, True)[: 1 + is_matched]:
            stage = ("matched" if matched else "regression") + ending
            measures[stage] = ordered(ranking, looked_up, silent, size, matched)
    return measures


def first_stage(
    asked: Pool, pool: Pool, row: int, beside: Iterable[int] = ()
) -> NDArray[np.float64]:
    """An order of candidates by code and by rare words, in turns: two of the first, then one. Those
    beside what the neighbours of the query are like come behind the first ten, in no order."""
    likeness = code_likeness(asked, pool, row)
    places = np.argsort(np.argsort(-likeness, kind="stable"), kind="stable").astype(np.float64)
    for place, other in enumerate(pool.sharing(asked.graphs[row])):
        places[other] = min(places[other], 2 * place + 0.5)
    near = np.array(sorted(beside), dtype=np.int64)
    places[near] = np.minimum(places[near], FIRST_BY_CODES - 0.25)
    return -places


def ordered(
    ranking: Ranking,
    searches: Iterable[Search],
    silent: NDArray[np.bool_],
    size: int,
    matched: bool,
) -> Measures:
    """The measures of an order by probability, and how far the probabilities hold.

    They are to hold where half of the functions that are looked up are in the library: each query
    counts twice for them, with its answer and without.
    """
    ranks, best, right = [], [], []
    for search in searches:
        probabilities = _probabilities(ranking, search, matched)
        rank = np.inf
        if search.answer in search.rows:
            rank = rank_of(probabilities, int(np.flatnonzero(search.rows == search.answer)[0]))
        ranks.append(rank)
        absent = _probabilities(ranking, without_answer(search), matched)
        best += [float(probabilities.max()), float(absent.max())]
        right += [rank == 1, False]
    errors = calibration_error(np.array(best), np.array(right))
    return measured(np.array(ranks), silent, size) | {"calibration error": errors}


def _probabilities(ranking: Ranking, search: Search, matched: bool) -> NDArray[np.float64]:
    seen = search.seen if matched else None
    return ranking.probabilities(search.query, search.graph.num_nodes, search.candidates, seen)


def rank_of(scores: NDArray[np.floating], answer: int) -> float:
    """From 1; ties share the mean of their ranks."""
    above = np.count_nonzero(scores > scores[answer])
    level = np.count_nonzero(scores == scores[answer])
    return above + (level + 1) / 2


def measured(ranks: Ranks, silent: NDArray[np.bool_], size: int) -> Measures:
    """A query whose answer is not among the candidates has an infinite rank."""
    # The chance that none of 99 functions drawn at random is above the right one.
    beaten = np.where(np.isfinite(ranks), 1 - (np.minimum(ranks, size) - 1) / max(size - 1, 1), 0)
    return {
        "recall@1": float(np.mean(ranks == 1)),
        "MRR@10": float(np.mean(np.where(ranks <= 10, 1 / ranks, 0))),
        "recall@100": float(np.mean(ranks <= 100)),
        "recall@1 of 100": float(np.mean(beaten**99)),
        "silent recall@1": float(np.mean(ranks[silent] == 1)) if silent.any() else 1.0,
        "silent": float(silent.mean()),
        "queries": len(ranks),
        "pool": size,
    }


def calibration_error(probabilities: Ranks, right: NDArray[np.bool_], bins: int = 10) -> float:
    """Expected calibration error of the best hits, over bins of equal width."""
    numbers = np.minimum((probabilities * bins).astype(int), bins - 1)
    gaps = [
        np.mean(numbers == number)
        * abs(probabilities[numbers == number].mean() - right[numbers == number].mean())
        for number in np.unique(numbers)
    ]
    return float(sum(gaps))


def table(rows: dict[str, dict[str, Measures]]) -> str:
    """One Markdown table a measure."""
    directions = list(next(iter(rows.values())))
    lines = []
    names = ("recall@1", "MRR@10", "recall@100", "recall@1 of 100", "silent recall@1")
    for name in (*names, "calibration error"):
        lines += [f"\n{name}\n", f"| stage | {' | '.join(directions)} | mean |"]
        lines.append("|---" * (len(directions) + 2) + "|")
        for stage, cells in rows.items():
            if name in cells[directions[0]]:
                values = [cells[direction][name] for direction in directions]
                shown = " | ".join(f"{value:.3f}" for value in [*values, float(np.mean(values))])
                lines.append(f"| {stage} | {shown} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
