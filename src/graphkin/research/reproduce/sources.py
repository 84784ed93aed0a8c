"""The three sources of results: stored, rerun, and a quick run of everything."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from graphkin.errors import ConfigError
from graphkin.research.reproduce.plan.experiments import ATTENTION_MODEL, experiments_for
from graphkin.research.reproduce.results import CHECKOUT, Result, read_results, stored_folder

if TYPE_CHECKING:
    from graphkin.research.reproduce.experiment import Budget, Experiment
    from graphkin.research.reproduce.measure import DataPaths
    from graphkin.research.reproduce.run_experiment import Folders

QUICK_FOLDER = "quick"
RESULTS_FOLDER = "results"
"""Beside the runs: what this folder of runs gave."""
_BUDGET_OPTION = {"short": "", "paper": " --budget paper"}


def stored_results(target: str, folder: Path | None, runs: Path) -> list[Result]:
    """What was measured before, by us or by whoever wrote the folder.

    Where attention is asked for and was not stored, a model in the folder of runs, or one that
    ships, is looked at now.
    """
    home = folder or stored_folder()
    if home is None:
        raise ConfigError("this installation has no stored results; name a folder with --results")
    results = read_results(home)
    shown = target in ("attention", "all")
    if shown and not any(result.cases for result in results):
        from graphkin.research.reproduce.attention_figure import find_matcher, measure_attention
        from graphkin.research.reproduce.run_experiment import versions

        trained = find_matcher(runs / ATTENTION_MODEL)
        if trained is not None:
            command = "graphkin reproduce attention"
            results.append(measure_attention(*trained, command, versions()))
    return results


def rerun_results(
    target: str,
    only: str,
    runs: Path,
    data: DataPaths,
    store: Path | None,
    budget: Budget = "short",
) -> list[Result]:
    """Trains what is chosen, or goes on with it; nothing that was stored before is read.

    Args:
        target: what to fill.
        only: a part of the names of the experiments.
        runs: the folder of runs, and of their results.
        data: where the tasks find their data.
        store: where result files go as well; by default that of the checkout, if this is one.
        budget: the runs that take minutes, or those of the paper's budget.
    """
    from graphkin.research.reproduce.run_experiment import Folders

    results = runs / RESULTS_FOLDER
    home = store or (CHECKOUT if CHECKOUT.is_dir() else None)
    folders = Folders(runs, results, home, "--rerun" + _BUDGET_OPTION[budget])
    return _run(experiments_for(target, only=only, budget=budget), target, folders, data)


def quick_results(target: str, only: str, runs: Path | None, data: DataPaths) -> list[Result]:
    """The same pipeline in minutes, in a folder that does not last unless ``runs`` is given.

    Functions come from the samples of the package where no corpus is given.
    """
    from graphkin.research.reproduce.run_experiment import Folders

    with _folder(runs) as folder:
        if data.corpus is None and _needs_functions(target, only):
            data = replace(data, corpus=_sample_corpus(folder))
        folders = Folders(folder, folder / RESULTS_FOLDER, mode="--quick")
        return _run(experiments_for(target, True, only), target, folders, data)


def _run(
    experiments: Sequence[Experiment], target: str, folders: Folders, data: DataPaths
) -> list[Result]:
    from graphkin.research.reproduce.attention_figure import find_matcher, measure_attention
    from graphkin.research.reproduce.run_experiment import run_experiments, versions

    done = run_experiments(experiments, folders, data)
    if not done:
        raise ConfigError(f"nothing of {target} could be run: give it the data named above")
    attention = target in ("attention", "all")
    if attention and any(result.name == ATTENTION_MODEL for result in done):
        trained = find_matcher(folders.runs / ATTENTION_MODEL)
        assert trained is not None, "the run was just finished"
        command = f"graphkin reproduce attention {folders.mode}"
        folders.save(measure_attention(*trained, command, versions()))
    return read_results(folders.results)


def _needs_functions(target: str, only: str) -> bool:
    experiments = experiments_for(target, True, only)
    return any(experiment.data == "functions" for experiment in experiments)


@contextmanager
def _folder(runs: Path | None) -> Iterator[Path]:
    if runs is not None:
        yield runs / QUICK_FOLDER
        return
    with TemporaryDirectory(prefix="graphkin-quick-") as folder:
        yield Path(folder)


def _sample_corpus(folder: Path) -> Path:
    """A corpus of the small binaries that come with the package."""
    from graphkin._support.progress import counter
    from graphkin.binaries import samples
    from graphkin.binaries.extraction import extract

    path = folder / "samples.graphs"
    if not path.exists():
        print("no --corpus: functions are those of the bundled samples", file=sys.stderr)
        folder.mkdir(parents=True, exist_ok=True)
        with counter("reading samples") as progress:
            extract(samples.KNOWN, path, jobs=1, progress=progress)
    return path
