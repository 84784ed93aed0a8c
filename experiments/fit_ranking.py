"""Fits how a search orders candidates and how probable they are, on projects that no model saw.

    python experiments/fit_ranking.py CORPUS --model FOLDER --projects NAME,NAME,... \\
        [--queries 200] [-o ranking.json]

The folder has ``embedder/`` and ``matcher/``; the ranking is written beside them. The projects must
be left out of the training of both (``graphkin train projects --set task.validation=...``), because
on functions that they were trained on their vectors agree too well. They are looked up among the
functions of all projects but those of the test, as a large library has them; each query once with
its answer, and once without. Some of them are as in a firmware, where callers are others, and
imports are linked in.
"""

from __future__ import annotations

import argparse
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from project_search import DIRECTIONS, Search, Searches, run, without_answer
from torch.nn import functional

from graphkin._support.files import write_atomically
from graphkin.binaries.corpus import FunctionCorpus
from graphkin.library.models import SearchModel
from graphkin.library.odds import Odds
from graphkin.library.ranking import Ranking, ordered_by, variants
from graphkin.research.tasks.projects import TEST, ProjectTask

WEIGHTS = {
    "words": (0.7, 1.0, 1.4),
    "offsets": (0.0, 0.3, 0.6),
    "callees": (0.0, 0.2, 0.4),
    "callers": (0.0, 0.3, 0.6),
    "neighbours": (0.0, 0.4, 0.8),
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
    "neighbours": 0.4,
    "callee_count": 0.07,
    "caller_count": 0.07,
}
DROPPED_CALLERS = 0.4
"""Share of the queries in files whose callers are taken as unknown: a program links a part of a
library, and its functions have other callers there."""
OTHER_NEIGHBOURS = 0.2
"""Share of those that get the neighbours of another query: a program that was put together by other
rules, or holds a copy of one function alone, has other code beside it."""
NO_NEIGHBOURS = 0.1
"""Share of those that are taken to be the only function of their file."""
LINKED = 0.3
"""Share of the queries that are as in a program which holds the libraries that it uses."""
QUERIES = 200
"""Of each direction, by default."""
HIDDEN = 8
"""Width of the hidden layer of the regressions."""
STEPS, RATE, DECAY = 250, 0.05, 1e-4
"""Of the fit of a regression, all examples at each step."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", help="what graphkin extract --evidence --min-blocks 1 wrote")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--projects", required=True, help="with commas")
    parser.add_argument("--queries", type=int, default=QUERIES, help="of each direction")
    parser.add_argument("-o", "--output", type=Path, help="by default ranking.json of the model")
    options = parser.parse_args()
    projects = tuple(options.projects.split(","))
    model = SearchModel.load(options.model)
    ranking = fit(searches_of(options.corpus, model, projects, options.queries))
    output = options.output or options.model / "ranking.json"
    write_atomically(output, ranking.to_json().encode() + b"\n")
    print(f"{output}: order {ranking.order}")


def searches_of(
    corpus: str, model: SearchModel, projects: tuple[str, ...], queries: int
) -> Searches:
    """Queries of some projects, among the functions of all but those of the test."""
    every = {binary.build for binary in FunctionCorpus.open(Path(corpus)).binaries}
    others = tuple(sorted(every - {*projects, *TEST}))
    return Searches(ProjectTask(corpus), model, projects, queries, others, LINKED)


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
            lists = _lists(ranking, examples, variants()[variant], is_matched)
            regressions[variant] = fit_odds(lists)
            print(f"{variant}: {count} queries", flush=True)
        if not in_files:
            lists = _lists(ranking, examples, variants()["pair"], True)
            regressions["pair"] = fit_odds(_pairs(lists))
    sizes = [len(searches.pool(pool).numbers) for _, pool in directions]
    about = {
        "projects": sorted(searches.projects),
        "queries": count,
        "pools": [min(sizes), max(sizes)],
        "corpus": FunctionCorpus.open(Path(searches.task.corpus)).digest(),
    }
    return Ranking(ranking.order, regressions, about)


def _order(searches: Searches, directions: list[tuple[str, str]]) -> dict[str, float]:
    order = dict(FIRST)
    for name, weights in WEIGHTS.items():
        recalls = {
            weight: _found_first(searches, order | {name: weight}, directions) for weight in weights
        }
        order[name] = max(recalls, key=recalls.__getitem__)
        print(f"{name}: recall@1 {recalls}")
    return {name: order[name] for name in ordered_by()}


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


Example = tuple[NDArray[np.float64], int | None]
"""(N, F) features of the candidates of a query, and which of them is right, if any."""


def _lists(
    ranking: Ranking, examples: list[Search], names: tuple[str, ...], is_matched: bool
) -> list[Example]:
    rng = np.random.default_rng(0)
    lists: list[Example] = []
    # Most functions of a program are in no library: every query is also one without its answer.
    for search in chain(examples, map(without_answer, examples)):
        query = search.query.copy()
        if rng.random() < DROPPED_CALLERS:
            query["callers_scale"] = query["caller_count"] = 0
        other, draw = examples[rng.integers(len(examples))].query, rng.random()
        if draw < NO_NEIGHBOURS:
            query["neighbours_scale"] = 0
        elif draw < NO_NEIGHBOURS + OTHER_NEIGHBOURS:
            for name in ("neighbours", "neighbours_scale"):
                query[name] = other[name]
        seen = search.seen if is_matched else None
        features = ranking.features(query, search.graph.num_nodes, search.candidates, seen)
        right = np.flatnonzero(search.rows == search.answer)
        columns = np.column_stack([features[name] for name in names])
        lists.append((columns, int(right[0]) if len(right) else None))
    return lists


def _pairs(lists: list[Example]) -> list[Example]:
    """Of each query the right candidate by itself, and one of the wrong ones: who compares two
    functions has a reason to."""
    rng = np.random.default_rng(0)
    pairs: list[Example] = []
    for features, right in lists:
        if right is not None:
            pairs.append((features[right][None], 0))
        wrong = [row for row in range(len(features)) if row != right]
        if wrong:
            pairs.append((features[rng.choice(wrong)][None], None))
    return pairs


def fit_odds(lists: list[Example], hidden: int = HIDDEN) -> Odds:
    """The most likely odds: of one of the candidates, or none, to be the right one."""
    torch.manual_seed(0)
    features = np.concatenate([own for own, _ in lists])
    mean, scale = features.mean(axis=0), features.std(axis=0)
    scale[scale == 0] = 1
    sizes = np.array([len(own) for own, _ in lists])
    is_there = torch.from_numpy(np.arange(sizes.max()) < sizes[:, None])
    x = torch.zeros(*is_there.shape, features.shape[1])
    x[is_there] = torch.from_numpy((features - mean) / scale).float()
    answers = torch.tensor([0 if right is None else 1 + right for _, right in lists])
    line = torch.nn.Linear(features.shape[1], 1)
    inner = torch.nn.Linear(features.shape[1], hidden)
    outer = torch.nn.Linear(hidden, 1, bias=False)
    torch.nn.init.zeros_(line.weight)
    torch.nn.init.zeros_(outer.weight)
    weights = [line.weight, inner.weight, outer.weight]
    parameters = [*weights, line.bias, inner.bias]
    optimizer = torch.optim.Adam(parameters, RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for _ in range(STEPS):
        odds = (line(x) + outer(inner(x).tanh()))[..., 0].masked_fill(~is_there, -torch.inf)
        against_none = torch.cat([torch.zeros(len(odds), 1), odds], dim=1)
        loss = functional.cross_entropy(against_none, answers)
        loss = loss + DECAY * torch.stack([weight.square().sum() for weight in weights]).sum()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()

    def plain(layer: torch.nn.Linear) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Weights and biases for features as they are."""
        own = layer.weight.detach().double().numpy() / scale
        return own, layer.bias.detach().double().numpy() - own @ mean

    weights_of_line, bias = plain(line)
    rows, hidden_bias = plain(inner)
    return Odds(
        tuple(weights_of_line[0].tolist()),
        float(bias[0]),
        tuple(tuple(row) for row in rows.tolist()),
        tuple(hidden_bias.tolist()),
        tuple(outer.weight.detach().double()[0].tolist()),
    )


if __name__ == "__main__":
    main()
