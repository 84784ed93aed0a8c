"""How often the best hit of a small function that says little is right, by its number of blocks.

    python experiments/small_functions.py CORPUS [--queries 600]

Such functions of the validation projects are looked up by themselves, without their files, among
the functions of all projects but those of the test: each once with its answer and once without. A
library of a few functions cannot show how many others are like one of them, so that no hit there
has more than the best of these shares (``MOST_AMONG_FEW`` of ``library/ranking.py``). The corpus
is what ``graphkin extract --evidence --min-blocks 1`` wrote.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
from project_search import DIRECTIONS, Searches, run, without_answer

from graphkin.binaries.corpus import FunctionCorpus
from graphkin.library.models import SearchModel
from graphkin.library.ranking import is_small
from graphkin.research.tasks.projects import TEST, VALIDATION, ProjectTask

ASKED = ("XO+XC", "same level", "XA 64", "XB")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", help="what graphkin extract --evidence --min-blocks 1 wrote")
    parser.add_argument("--model", default="functions")
    parser.add_argument("--queries", type=int, default=600, help="of a direction, small or not")
    options = parser.parse_args()
    every = {binary.build for binary in FunctionCorpus.open(Path(options.corpus)).binaries}
    others = tuple(sorted(every - {*VALIDATION, *TEST}))
    task = replace(ProjectTask(options.corpus), min_nodes=1)
    model = SearchModel.load(options.model)
    print("| blocks | best hits | right | mean probability |\n|---|--:|--:|--:|")
    for blocks, hits in best_hits(Searches(task, model, VALIDATION, options.queries, others)):
        probability, right = np.mean(hits, axis=0)
        print(f"| {blocks} | {len(hits)} | {right:.2f} | {probability:.2f} |")


def best_hits(searches: Searches) -> list[tuple[int, list[tuple[float, bool]]]]:
    """For each number of blocks the probability of every best hit, and whether it is right."""
    ranking = searches.model.ranking
    assert ranking is not None, "the model has one"
    hits: dict[int, list[tuple[float, bool]]] = defaultdict(list)
    for name in ASKED:
        for search in run(searches, ranking, DIRECTIONS[name], in_files=False, matched=True):
            blocks = search.graph.num_nodes
            if not is_small(search.query, blocks):
                continue
            for own in (search, without_answer(search)):
                odds = ranking.probabilities(own.query, blocks, own.candidates, own.seen)
                best = int(odds.argmax())
                hits[blocks].append((float(odds[best]), bool(own.rows[best] == search.answer)))
    return sorted(hits.items())


if __name__ == "__main__":
    main()
