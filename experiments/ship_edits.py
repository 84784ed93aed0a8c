"""Puts trained models of edit distance into the package, with calibration and card.

    python experiments/ship_edits.py --runs runs

takes the runs ``general-gnn-ours-seed0`` and ``general-gmn-ours-seed0``, which ``graphkin reproduce
table3 --rerun`` trains, fits calibrations on validation pairs, and writes
``src/graphkin/models/shipped/edits``. Scores come from the result files of those runs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import torch

from graphkin.learning.evaluation import evaluate
from graphkin.learning.reliability import fit_calibration, reliability
from graphkin.models import load_model
from graphkin.models.model import GraphModel
from graphkin.models.saving import PARTS, SHIPPED, WEIGHTS_FILE
from graphkin.research.tasks.edits import EditTask

OUT = SHIPPED / "edits"
RESULTS = Path(__file__).parent / "results" / "reproduce"
RUNS = {"GraphEmbedder": "general-gnn-ours-seed0", "GraphMatcher": "general-gmn-ours-seed0"}
TRAINED_ON = EditTask(nodes=(20, 50), p=(0.2, 0.5))
CHECK = EditTask(nodes=(20, 50), p=(0.2, 0.5), evaluation_size=200)
"""The small set on which tests hold the weights to their card."""
CHECK_LINE = "| 200 validation pairs and triplets of n 20..50, p 0.2..0.5 |"


def scores(metrics: dict[str, float]) -> str:
    return f"{100 * metrics['pair_auc']:.1f} / {100 * metrics['triplet_accuracy']:.1f}"


def stored(run: str) -> dict[str, dict[str, float]]:
    """Row of a table to metrics, from a result file."""
    rows: dict[str, dict[str, float]] = {}
    for cell in json.loads((RESULTS / f"{run}.json").read_text())["cells"]:
        rows.setdefault(cell["row"], {})[cell["metric"]] = cell["value"]
    return rows


def calibration_error(model: GraphModel) -> float:
    """On test pairs of the distribution that the model was trained on."""
    tested = TRAINED_ON.evaluation_set("test")
    probabilities = model.predict(tested.pairs, probability=True)
    return reliability(probabilities, tested.labels).expected_calibration_error


def card(lines: list[str], errors: dict[str, float], hashes: dict[str, str]) -> str:
    table = "\n".join(
        ["| pair AUC / triplet accuracy | embedder | matcher |", "|---|---|---|", *lines]
    )
    return f"""\
# edits

An embedder and a matcher for graph edit distance: random graphs G(n, p) without attributes, one
edge substitution apart or two?

## Command

```sh
graphkin reproduce table3 --rerun --only general-gnn-ours
graphkin reproduce table3 --rerun --only general-gmn-ours
python experiments/ship_edits.py --runs runs
```

Both were trained twice, which the commands do: the embedder for 16,000 steps, then 10,000 at a
lower rate; the matcher for 10,000 steps, then 3,000 with a sharper alignment. The cards in
`embedder/` and `matcher/` have every setting.

## Seed

0, one run of each; 1000 for the data of the second trainings.

## Data

Generated: connected G(n, p) with n in 20..50 and p in 0.2..0.5, 1 substitution between similar
graphs and 2 between others. SHA-256 of the weights: embedder `{hashes["embedder"]}`, matcher
`{hashes["matcher"]}`.

## Scores

On test sets of 1,000 pairs and 1,000 triplets each, in per cent; the last line is the small set
that the tests use.

{table}

`predict(..., probability=True)` is a logistic of the score, fitted on validation pairs, as many
similar as dissimilar. Its expected calibration error on 1,000 test pairs of n in 20..50 is
{errors["embedder"]:.3f} for the embedder and {errors["matcher"]:.3f} for the matcher.

## Limits

- Trained on random graphs. Graphs with other structure, such as trees or grids, have many nodes
  that look alike, and were never seen. All regular graphs look alike to these models.
- The score orders pairs by how many edges were substituted; it is not the edit distance itself.
- Probabilities are for the choice between 1 and 2 substitutions, at the sizes of training.
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    runs: Path = parser.parse_args().runs
    torch.set_num_threads(1)
    measured: dict[str, dict[str, Any]] = {}
    errors, hashes, checks = {}, {}, {}
    for kind, run in RUNS.items():
        part = PARTS[kind]
        model = load_model(runs / run)
        model.calibration = fit_calibration(model, TRAINED_ON.evaluation_set("validation"))
        model.save_pretrained(OUT / part)
        errors[part] = calibration_error(model)
        hashes[part] = hashlib.sha256((OUT / part / WEIGHTS_FILE).read_bytes()).hexdigest()
        checks[part] = scores(evaluate(model, CHECK.evaluation_set("validation")))
        measured[part] = stored(run)
    lines = [
        f"| {row} | {scores(measured['embedder'][row])} | {scores(measured['matcher'][row])} |"
        for row in measured["embedder"]
    ]
    lines.append(f"{CHECK_LINE} {checks['embedder']} | {checks['matcher']} |")
    text = card(lines, errors, hashes)
    (OUT / "README.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
