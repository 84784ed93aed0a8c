"""Two matchers over one embedder, as the last stage of a search: recall@1 and the time of a pair.

    python experiments/compare_matchers.py CORPUS --embedder RUN --matcher late=RUN \\
        --matcher gmn=RUN [--queries 200]

Functions of the validation projects are looked up in one pool of all of them. The embedder chooses
the same 20 candidates for each matcher. They are ordered by vectors and by a regression, both
without a matcher; by the score of a matcher alone; by the sum of vectors and score, with one
weight; and by a regression over all signals, as a search does. Weight and regressions are fitted on
the queries of two projects and measured on those of the other two, both ways round.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from fit_ranking import FIRST, feature_lists, fit_odds
from numpy.typing import NDArray
from project_search import DIRECTIONS, MATCHED, Search, Searches, run
from unseen_projects import rank_of

from graphkin.graphs import Graph
from graphkin.library.models import SearchModel
from graphkin.library.ranking import Ranking, variants
from graphkin.models import GraphEmbedder, GraphMatcher
from graphkin.research.tasks.projects import VALIDATION, ProjectTask

FOLDS = (VALIDATION[::2], VALIDATION[1::2])
TIMED = 2_000
"""Pairs whose time is taken."""
TURNS = 3
"""The least time of some turns counts, the matchers one after the other in each."""
WEIGHTS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
"""That are tried for a score, beside the weighted cosines of vectors."""
ORDER = Ranking(dict(FIRST), {}, {})
"""What chooses candidates."""
Directions = dict[str, tuple[str, str]]
Recalls = dict[str, float]
"""Of a row of the table, by direction."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", help="what graphkin extract --evidence --min-blocks 1 wrote")
    parser.add_argument("--embedder", type=Path, required=True)
    parser.add_argument(
        "--matcher", action="append", required=True, metavar="NAME=RUN", help="may be repeated"
    )
    parser.add_argument("--queries", type=int, default=200, help="of each direction; 0 for all")
    options = parser.parse_args()
    torch.set_num_threads(1)
    runs = dict(text.split("=", 1) for text in options.matcher)
    matchers = {name: GraphMatcher.from_pretrained(run) for name, run in runs.items()}
    model = SearchModel.of(GraphEmbedder.from_pretrained(options.embedder))
    searches = Searches(ProjectTask(options.corpus), model, VALIDATION, options.queries)
    directions = {name: both for name, both in DIRECTIONS.items() if searches.has(both)}
    print(table(compared(searches, matchers, directions)), flush=True)
    times = pair_times(matchers, candidate_pairs(searches, directions))
    print("\n".join(f"{name}: {1000 * seconds:.2f} ms a pair" for name, seconds in times.items()))


class Lookup(NamedTuple):
    """A search, and where it belongs."""

    direction: str
    project: str
    search: Search


def compared(
    searches: Searches, matchers: dict[str, GraphMatcher], directions: Directions
) -> dict[str, Recalls]:
    """{row: recall@1 by direction}."""
    rows: dict[str, Recalls] = {}
    for in_files, ending in ((False, ""), (True, " in files")):
        for name, matcher in matchers.items():
            searches.model = replace(searches.model, matcher=matcher)
            lookups = looked_up(searches, directions, in_files=in_files, matched=True)
            if f"vectors{ending}" not in rows:  # which are the same for all matchers
                by_vectors = [item.search.rows[0] == item.search.answer for item in lookups]
                rows[f"vectors{ending}"] = recalls(lookups, by_vectors)
                rows[f"regression{ending}"] = recalls(lookups, fitted(lookups, "alone" + ending))
            if not in_files:
                by_score = [is_first(item.search, item.search.seen.scores) for item in lookups]
                rows[f"{name}, its score alone"] = recalls(lookups, by_score)
            rows[f"vectors + {name}{ending}"] = recalls(lookups, summed(lookups))
            rows[f"regression + {name}{ending}"] = recalls(
                lookups, fitted(lookups, "matched" + ending)
            )
    return rows


def looked_up(
    searches: Searches, directions: Directions, *, in_files: bool, matched: bool
) -> list[Lookup]:
    """All searches."""
    return [
        Lookup(name, searches.pool(both[1]).names[search.answer][0], search)
        for name, both in directions.items()
        for search in run(searches, ORDER, both, in_files=in_files, matched=matched)
    ]


def summed(lookups: list[Lookup]) -> list[bool]:
    """Whether each search finds its answer by vectors and score, weighed as is best for others."""
    scale = np.concatenate([item.search.seen.scores for item in lookups]).std()
    found = {
        weight: np.array(
            [
                is_first(search, totals_of(search) + weight / scale * search.seen.scores)
                for _, _, search in lookups
            ]
        )
        for weight in WEIGHTS
    }
    right = np.zeros(len(lookups), dtype=bool)
    for projects in FOLDS:
        own = np.array([item.project in projects for item in lookups])
        best = max(WEIGHTS, key=lambda weight: found[weight][~own].mean())
        right[own] = found[best][own]
    return right.tolist()


def totals_of(search: Search) -> NDArray[np.float32]:
    """(N,) how alike the candidates are by their vectors."""
    return ORDER.totals(search.query, search.candidates.records)


def fitted(lookups: list[Lookup], variant: str) -> list[bool]:
    """Whether each search finds its answer by a regression over searches of other projects."""
    is_matched = variant.startswith("matched")
    right = np.zeros(len(lookups), dtype=bool)
    for projects in FOLDS:
        others = [item.search for item in lookups if item.project not in projects]
        odds = fit_odds(feature_lists(ORDER, others, variants()[variant], is_matched))
        ranking = Ranking(ORDER.order, {variant: odds}, {})
        for number, item in enumerate(lookups):
            if item.project in projects:
                query, graph, _, _, candidates, seen = item.search
                probabilities = ranking.probabilities(
                    query, graph.num_nodes, candidates, seen if is_matched else None
                )
                right[number] = is_first(item.search, probabilities)
    return right.tolist()


def is_first(search: Search, scores: NDArray[np.floating]) -> bool:
    """Whether the answer is among the candidates, and above all others."""
    (answer,) = np.flatnonzero(search.rows == search.answer).tolist() or [None]
    return answer is not None and rank_of(scores, answer) == 1


def recalls(lookups: list[Lookup], right: list[bool]) -> Recalls:
    """The share of right ones, by direction."""
    by_direction: dict[str, list[bool]] = {}
    for item, is_right in zip(lookups, right, strict=True):
        by_direction.setdefault(item.direction, []).append(is_right)
    return {direction: float(np.mean(own)) for direction, own in by_direction.items()}


def candidate_pairs(searches: Searches, directions: Directions) -> list[tuple[Graph, Graph]]:
    """Some pairs that a matcher is asked for, of all directions."""
    pairs = [
        (item.search.graph, searches.pool(directions[item.direction][1]).graphs[row])
        for item in looked_up(searches, directions, in_files=False, matched=False)
        for row in item.search.rows.tolist()
    ]
    # The candidates of a query stay together, as a search has them.
    queries = [pairs[start : start + MATCHED] for start in range(0, len(pairs), MATCHED)]
    step = max(1, len(pairs) // TIMED)
    return [pair for own in queries[::step] for pair in own]


def pair_times(
    matchers: dict[str, GraphMatcher], pairs: list[tuple[Graph, Graph]]
) -> dict[str, float]:
    """Seconds of the processor for a pair, those of both graphs' blocks included."""
    least = dict.fromkeys(matchers, np.inf)
    for _ in range(TURNS):
        for name, matcher in matchers.items():
            start = time.process_time()
            matcher.predict(pairs)
            least[name] = min(least[name], time.process_time() - start)
    return {name: seconds / len(pairs) for name, seconds in least.items()}


def table(rows: dict[str, Recalls]) -> str:
    """In Markdown."""
    directions = list(next(iter(rows.values())))
    lines = [
        f"| recall@1 | {' | '.join(directions)} | mean |",
        "|---" * (len(directions) + 2) + "|",
    ]
    for name, row in rows.items():
        values = [row[direction] for direction in directions]
        shown = " | ".join(f"{value:.3f}" for value in [*values, float(np.mean(values))])
        lines.append(f"| {name} | {shown} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
