"""``reproduce``: the paper's tables and figures, its values beside ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from graphkin.cli.options import Json, MaybeCorpus, MaybeData, Threads
from graphkin.errors import ConfigError

if TYPE_CHECKING:
    from graphkin.research.reproduce.experiment import Budget
    from graphkin.research.reproduce.measure import DataPaths
    from graphkin.research.reproduce.results import Result

DEFAULT_RUNS = Path("runs")
BUDGETS: dict[str, Budget] = {"short": "short", "paper": "paper"}


def register(app: typer.Typer) -> None:
    """Adds the verb to the application."""
    app.command("reproduce")(reproduce)


def reproduce(
    target: Annotated[
        str,
        typer.Argument(help="table1, table2, table3, sweep, attention, ablations or all."),
    ],
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run everything in minutes; the numbers mean nothing.",
        ),
    ] = False,
    rerun: Annotated[
        bool, typer.Option("--rerun", help="Train from scratch, or go on where that stopped.")
    ] = False,
    budget: Annotated[
        str,
        typer.Option(help="With --rerun: short runs, or the paper's budget; short or paper."),
    ] = "short",
    status: Annotated[
        bool, typer.Option("--status", help="Show how far the runs of the budget are, and stop.")
    ] = False,
    only: Annotated[
        str,
        typer.Option(help="With --quick or --rerun: run experiments with this in their name."),
    ] = "",
    runs: Annotated[
        Path | None, typer.Option(help="Folder of training runs; by default runs.")
    ] = None,
    corpus: MaybeCorpus = None,
    data: MaybeData = None,
    results: Annotated[
        Path | None, typer.Option(help="Folder of result files; by default graphkin's own.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Write the tables as Markdown into this file.")
    ] = None,
    png: Annotated[
        Path | None, typer.Option(help="Draw the tables and figures: a file, or a folder.")
    ] = None,
    threads: Threads = 1,
    as_json: Json = False,
) -> None:
    """Show the paper's tables and figures with our values beside the paper's."""
    from graphkin._support.files import write_atomically
    from graphkin.research.reproduce.cells import fill
    from graphkin.research.reproduce.render.text_tables import to_markdown, to_text
    from graphkin.research.reproduce.table_layout import sections_of

    if quick and rerun:
        raise ConfigError("--quick and --rerun exclude each other; choose one")
    if quick and results is not None:
        raise ConfigError("--quick keeps no results; leave --results out, or choose --rerun")
    if only and not (quick or rerun or status):
        raise ConfigError("--only chooses what is trained; add --rerun or --quick")
    if budget not in BUDGETS:
        raise ConfigError(f"unknown budget {budget!r}; choose short or paper")
    if budget == "paper" and not (rerun or status):
        raise ConfigError("--budget chooses what is trained; add --rerun or --status")
    sections_of(target)
    if status:
        _show_status(target, only, BUDGETS[budget], runs or DEFAULT_RUNS, as_json)
        return
    if png is not None:
        from graphkin.research.reproduce.render.png import check_destination

        check_destination(target, png)
    if quick or rerun:
        from graphkin.research.reproduce.measure import DataPaths

        measured = _run(
            target, quick, only, runs, DataPaths(corpus, data), results, threads, BUDGETS[budget]
        )
    else:
        from graphkin.research.reproduce.sources import stored_results

        measured = stored_results(target, results, runs or DEFAULT_RUNS)
    filled = fill(target, measured)
    if markdown is not None:
        write_atomically(markdown, (to_markdown(filled, quick) + "\n").encode())
        typer.echo(f"Markdown: {markdown}", err=True)
    if png is not None:
        from graphkin.research.reproduce.render.png import draw

        for file in draw(target, filled, measured, png, quick):
            typer.echo(f"picture: {file}", err=True)
    if as_json:
        cells = [cell.to_dict() for section in filled for cell in section.cells]
        typer.echo(json.dumps([{**cell, "quick": True} if quick else cell for cell in cells]))
    else:
        typer.echo(to_text(filled, quick))


def _run(
    target: str,
    quick: bool,
    only: str,
    runs: Path | None,
    data: DataPaths,
    results: Path | None,
    threads: int,
    budget: Budget,
) -> list[Result]:
    import torch

    from graphkin.research.reproduce.sources import quick_results, rerun_results

    torch.set_num_threads(threads)
    try:
        if quick:
            return quick_results(target, only, runs, data)
        return rerun_results(target, only, runs or DEFAULT_RUNS, data, results, budget)
    except KeyboardInterrupt:
        kept = not quick or runs is not None
        more = "; the same command goes on from here" if kept else ""
        typer.echo(f"graphkin: interrupted{more}", err=True)
        raise typer.Exit(130) from None


def _show_status(target: str, only: str, budget: Budget, runs: Path, as_json: bool) -> None:
    from graphkin.research.reproduce.plan.experiments import experiments_for
    from graphkin.research.reproduce.queue import queue_status, status_text
    from graphkin.research.reproduce.sources import RESULTS_FOLDER

    experiments = experiments_for(target, only=only, budget=budget)
    trained = [experiment for experiment in experiments if experiment.trained]
    queue = queue_status(trained, runs, runs / RESULTS_FOLDER)
    text = json.dumps([run.to_dict() for run in queue]) if as_json else status_text(queue)
    typer.echo(text)
