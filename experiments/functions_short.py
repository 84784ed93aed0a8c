"""Function similarity after a short training, beside the baselines, by both protocols.

    python experiments/functions_short.py --corpus corpus.graphs --output runs/functions-short

trains a GMN with mnemonics for 8,000 steps, some twenty minutes on one core, and evaluates it
and the baselines on the test functions. The same command goes on with what is in ``--output``.
It proves the pipeline from binaries to scores; it is not the paper's table, whose models were
trained for far longer.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from graphkin.research.reproduce.table_layout import BASELINES

STEPS = 8_000
RESULT = Path(__file__).parent / "results" / "functions-short.json"
GRAPHKIN = [sys.executable, "-c", "from graphkin.cli.main import main; main()"]
PACKAGES = ("graphkin", "numpy", "torch", "scikit-learn", "lief", "capstone")


def graphkin(*arguments: str) -> dict[str, Any]:
    """What a verb prints with ``--json``."""
    done = subprocess.run(
        [*GRAPHKIN, *arguments, "--json"], stdout=subprocess.PIPE, check=True, encoding="utf-8"
    )
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def rows(evaluations: dict[str, Any]) -> list[str]:
    """A Markdown table: one line for each model and protocol."""
    lines = [
        "| protocol | model | random negatives | size-matched | recall@1 | MRR@10 |",
        "|---|---|---|---|---|---|",
    ]
    for number, protocol in enumerate(("paper", "clean")):
        for name, document in evaluations.items():
            sets = {
                key: result["metrics"]
                for key, result in document["results"][number]["sets"].items()
            }
            cells = [
                f"{100 * sets[key]['pair_auc']:.1f} / {100 * sets[key]['triplet_accuracy']:.1f}"
                for key in ("random negatives", "size-matched negatives")
            ]
            cells += [f"{100 * sets['retrieval'][key]:.1f}" for key in ("recall_at_1", "mrr_at_10")]
            lines.append(f"| {protocol} | {name} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=Path("runs/functions-short"))
    parser.add_argument("--steps", type=int, default=STEPS)
    options = parser.parse_args()
    corpus = ("--corpus", str(options.corpus))
    run = (
        "--kind",
        "gmn",
        "--steps",
        str(options.steps),
        "--output",
        str(options.output),
        "--resume",
    )
    training = graphkin("train", "functions", *corpus, *run)
    evaluations = {name: graphkin("eval", "functions", name, *corpus) for name in BASELINES}
    evaluations["gmn"] = graphkin("eval", "functions", str(options.output), *corpus)
    document = {
        "experiment": "functions-short",
        "command": f"python experiments/functions_short.py --steps {options.steps}",
        "seeds": [0],
        "versions": {"python": platform.python_version()}
        | {package: version(package) for package in PACKAGES},
        "training": {key: value for key, value in training.items() if key != "folder"},
        "evaluations": {name: evaluation["results"] for name, evaluation in evaluations.items()},
    }
    RESULT.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    print("\n".join(rows(evaluations)))


if __name__ == "__main__":
    main()
