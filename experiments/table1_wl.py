"""Table 1, the column of the Weisfeiler-Lehman kernel.

The kernel is normalised and starts from degrees. As in the paper, T up to 5 is chosen on the
evaluation set itself, for each measure on its own. It needs no training, so beside the test
set stands the mean over twenty sets of the same size (the test set is one of them): the
spread shows how far a set of 1000 examples lies from the truth by chance.

    python experiments/table1_wl.py
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.graphs import Graph
from graphkin.learning.evaluation import pair_auc, triplet_accuracy
from graphkin.learning.task import EvaluationSet, Split
from graphkin.research.baselines.wl import WLKernel, best_iterations
from graphkin.research.tasks.edits import EditTask

Floats = NDArray[np.float64]
Pairs = Sequence[tuple[Graph, Graph]]

PAPER = {
    (20, 0.2): {"pair_auc": 0.808, "triplet_accuracy": 0.832},
    (20, 0.5): {"pair_auc": 0.745, "triplet_accuracy": 0.780},
    (50, 0.2): {"pair_auc": 0.939, "triplet_accuracy": 0.978},
    (50, 0.5): {"pair_auc": 0.823, "triplet_accuracy": 0.890},
}
KERNEL = WLKernel(iterations=5, normalize=True)
SETS_OF_A_SPLIT = 10


def evaluate_sweep(data: EvaluationSet) -> dict[str, Any]:
    """Both measures for every T, and the best T of each."""
    halves = [pair for a, b, c in data.triplets for pair in ((a, b), (a, c))]
    measures: dict[str, tuple[Pairs, Callable[[Floats], float]]] = {
        "pair_auc": (data.pairs, lambda row: pair_auc(row, data.labels)),
        "triplet_accuracy": (halves, lambda row: triplet_accuracy(row[0::2], row[1::2])),
    }
    metrics = {}
    for name, (pairs, metric) in measures.items():
        scores = KERNEL.sweep(pairs)
        best = best_iterations(scores, metric)
        metrics[name] = {
            "value": metric(scores[best]),
            "iterations": best,
            "by_iterations": [metric(row) for row in scores],
        }
    return metrics


def evaluation_sets(nodes: int, p: float, size: int) -> Iterator[EvaluationSet]:
    """Sets of ``size`` examples, the test set first: a larger set begins with the smaller."""
    larger = EditTask(nodes=(nodes, nodes), p=(p, p), evaluation_size=size * SETS_OF_A_SPLIT)
    splits: tuple[Split, ...] = ("test", "validation")
    for split in splits:
        data = larger.evaluation_set(split)
        for start in range(0, len(data.pairs), size):
            cut = slice(start, start + size)
            yield EvaluationSet(data.pairs[cut], data.labels[cut], data.triplets[cut])


def row(nodes: int, p: float, size: int) -> dict[str, Any]:
    """One row of the table."""
    task = EditTask(nodes=(nodes, nodes), p=(p, p), evaluation_size=size)
    results = [evaluate_sweep(data) for data in evaluation_sets(nodes, p, size)]
    metrics = {}
    for name, paper in PAPER[nodes, p].items():
        values = [result[name]["value"] for result in results]
        metrics[name] = {
            **results[0][name],
            "paper": paper,
            "mean": float(np.mean(values)),
            "standard_deviation": float(np.std(values, ddof=1)),
            "every_set": values,
        }
    digest = task.evaluation_set("test").digest
    return {"task": task.describe(), "data": {"test": digest}, "metrics": metrics}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=1000, help="pairs, and triplets, of a set")
    parser.add_argument(
        "--output",
        type=Path,
        default=Path(__file__).parent / "results" / "table1-wl.json",
        help="where the result is written",
    )
    arguments = parser.parse_args()
    begin = time.perf_counter()
    rows = []
    heading = f"{'n':>3} {'p':>4}  {'measure':<17} {'paper':>6} {'test set':>9} T"
    print(f"{heading}  mean of {2 * SETS_OF_A_SPLIT}")
    for nodes, p in PAPER:
        print(f"scoring n={nodes} p={p} ...", file=sys.stderr)
        rows.append(row(nodes, p, arguments.size))
        for name, values in rows[-1]["metrics"].items():
            print(
                f"{nodes:>3} {p:>4}  {name:<17} {100 * values['paper']:>6.1f} "
                f"{100 * values['value']:>9.1f} {values['iterations']}  "
                f"{100 * values['mean']:.1f} +- {100 * values['standard_deviation']:.1f}"
            )
    result = {
        "experiment": "table1-wl",
        "command": f"python experiments/table1_wl.py --size {arguments.size}",
        "config": {
            "kernel": asdict(KERNEL),
            "labels": "degree",
            "iterations_chosen_on": "the evaluation set, for each measure on its own",
            "sets": 2 * SETS_OF_A_SPLIT,
        },
        "seeds": "the fixed evaluation streams of the task; nothing is trained",
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("graphkin", "numpy", "scikit-learn", "torch")},
        },
        "wall_seconds": round(time.perf_counter() - begin, 1),
        "rows": rows,
    }
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    arguments.output.write_text(json.dumps(result, indent=2) + "\n")
    print(f"written to {arguments.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
