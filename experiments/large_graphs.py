"""Why does a matcher of the paper's architecture fail on large graphs? The same weights, changed.

    python experiments/large_graphs.py [--model runs/table3-gmn-paper-seed0] [--json]

The model was trained on graphs of 20 to 50 nodes and p from 0.2 to 0.5, in which a node has 12
neighbours on average. On larger ones, sums of messages are many times as large as any that it was
trained on. Here they are brought back: the last layer of the message MLP is multiplied by 12 over
the mean degree of the graphs. If the size of the sums were the reason, that would mend it. Measured
on validation pairs, one edit against two, beside how much attention a node pays on average to what
it looks at most.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphkin._support.progress import counter
from graphkin.learning.evaluation import evaluate
from graphkin.learning.task import EvaluationSet
from graphkin.models import GraphMatcher, load_model
from graphkin.research.tasks.edits import EditTask

TRAINED_DEGREE = 0.35 * 35
"""Mean p times mean number of nodes, in training."""
SIZES = (20, 50, 100, 200)
OUTPUT = ("messages.output", "messages.output_bias")


def scaled(folder: Path, factor: float) -> GraphMatcher:
    """The model, with all messages multiplied."""
    model = load_model(folder)
    assert isinstance(model, GraphMatcher)
    state = model.state_dict()
    for name, values in state.items():
        if name.endswith(OUTPUT):
            state[name] = values * factor
    model.load_state_dict(state)
    return model


def peak(model: GraphMatcher, data: EvaluationSet, pairs: int = 20) -> float:
    """The largest attention weight of a node after the last step, on average."""
    maps = (model.explain(*pair).left_to_right[-1] for pair in data.pairs[:pairs])
    return float(np.mean([weights.max(axis=1).mean() for weights in maps]))


def measured(folder: Path, p: float, pairs: int) -> list[dict[str, Any]]:
    rows = []
    with counter("measuring") as progress:
        for done, nodes in enumerate(SIZES):
            task = EditTask((nodes, nodes), (p, p), 1, 2, evaluation_size=pairs)
            whole = task.evaluation_set("validation")
            data = EvaluationSet(whole.pairs, whole.labels, ())
            factor = TRAINED_DEGREE / (p * (nodes - 1))
            row: dict[str, Any] = {"nodes": nodes, "p": p, "factor": factor}
            for name, model in (
                ("as trained", scaled(folder, 1.0)),
                ("scaled", scaled(folder, factor)),
            ):
                row[name] = {
                    "pair_auc": evaluate(model, data)["pair_auc"],
                    "peak": peak(model, data),
                }
            rows.append(row)
            progress(done + 1, len(SIZES))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--model", type=Path, default=Path("runs/table3-gmn-paper-seed0"))
    parser.add_argument("--p", type=float, default=0.5)
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = measured(options.model, options.p, options.pairs)
    if options.json:
        print(json.dumps(rows))
        return
    print("nodes  factor  AUC as trained  scaled  peak attention as trained  scaled")
    for row in rows:
        one, other = row["as trained"], row["scaled"]
        print(
            f"{row['nodes']:>5}  {row['factor']:>6.2f}  {100 * one['pair_auc']:>14.1f}"
            f"  {100 * other['pair_auc']:>6.1f}  {one['peak']:>25.3f}  {other['peak']:>6.3f}"
        )


if __name__ == "__main__":
    main()
