"""How much a model gains from more projects to train on: recall@1 by their number.

    python experiments/project_curve.py CORPUS -o RUNS [--counts 22 50 100] [--steps 1500]

For each number, an embedder is trained on that many projects, by ``graphkin train projects`` with
the recipe ``strong`` and equal steps, and measured on the validation projects as
``unseen_projects.py`` does before a ranking. The projects of a larger number hold those of the
smaller ones; those with the most builds come first, so that the curve begins with the 22 that were
built in 16 configurations. Runs that were begun go on where they ended.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sysconfig
from collections import defaultdict
from pathlib import Path

import numpy as np
from numpy.random import default_rng
from project_search import Searches
from unseen_projects import Measures, measure

from graphkin.binaries.corpus import FunctionCorpus
from graphkin.library.models import SearchModel
from graphkin.research.tasks.projects import TEST, VALIDATION, ProjectTask

SHOWN = ("graph", "words", "vectors", "vectors in files", "codes")
GRAPHKIN = Path(sysconfig.get_path("scripts")) / "graphkin"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", help="what graphkin extract --evidence --min-blocks 1 wrote")
    parser.add_argument("--output", "-o", type=Path, required=True, help="folder for the runs")
    parser.add_argument("--counts", type=int, nargs="+", default=[22, 50, 100])
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--queries", type=int, default=0, help="of each direction; 0 for all")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    parser.add_argument(
        "--leave-out", nargs="+", default=[], metavar="PROJECT", help="not to be trained on"
    )
    options = parser.parse_args()
    held_out = [*TEST, *options.leave_out]
    projects = ordered_projects(options.corpus, held_out)
    rows: dict[str, dict[str, dict[str, Measures]]] = {}
    print("| projects | " + " | ".join(SHOWN) + " |")
    print("|---" * (1 + len(SHOWN)) + "|")
    for count in sorted({min(count, len(projects)) for count in options.counts}):
        run = options.output / f"{count}-projects"
        train(options.corpus, [*held_out, *projects[count:]], options.steps, run)
        model = SearchModel.load(run)
        task = ProjectTask(options.corpus)
        stages = measure(Searches(task, model, VALIDATION, options.queries), is_whole=False)
        rows[str(count)] = stages
        means = (mean_recall(stages[stage]) for stage in SHOWN)
        print(f"| {count} | " + " | ".join(f"{value:.3f}" for value in means) + " |", flush=True)
        if options.json is not None:
            options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def ordered_projects(corpus: str, held_out: list[str]) -> list[str]:
    """Projects to train on, those with the most builds first, otherwise in a random order."""
    builds: dict[str, set[str]] = defaultdict(set)
    for binary in FunctionCorpus.open(Path(corpus)).binaries:
        builds[binary.build].add(binary.library)
    names = sorted(set(builds) - {*held_out, *VALIDATION})
    default_rng(0).shuffle(names)
    return sorted(names, key=lambda name: -len(builds[name]))


def train(corpus: str, held_out: list[str], steps: int, run: Path) -> None:
    """Trains an embedder on all projects but some, or goes on with it."""
    settings = run.with_suffix(".toml")
    settings.parent.mkdir(parents=True, exist_ok=True)
    split = {"test": held_out, "validation": [*VALIDATION]}
    lines = [f"{name} = {json.dumps(projects)}" for name, projects in split.items()]
    settings.write_text("\n".join(["[task]", *lines, ""]), encoding="utf-8")
    command = [str(GRAPHKIN), "train", "projects", "--kind", "gnn"]
    command += ["--recipe", "strong", "--corpus", corpus, "--config", str(settings)]
    command += ["--steps", str(steps), "--output", str(run)]
    command += ["--resume"] if run.exists() else []
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def mean_recall(directions: dict[str, Measures]) -> float:
    return float(np.mean([measures["recall@1"] for measures in directions.values()]))


if __name__ == "__main__":
    main()
