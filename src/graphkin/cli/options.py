"""Options that several verbs share. Each is declared once, so that a name has one meaning."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from graphkin.errors import ConfigError
from graphkin.results.text import printable

if TYPE_CHECKING:
    from graphkin.binaries.backends.choose import Backend as BackendName
    from graphkin.binaries.coverage import Coverage
    from graphkin.binaries.function import Skipped

MAX_WARNINGS = 20

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Threads = Annotated[int, typer.Option(help="Threads of matrix products.", min=1)]
CORPUS = typer.Option(help="Corpus of functions: the folder that graphkin extract wrote.")
DATA = typer.Option(help="Meshes: the zip or folder of a TUDataset, such as COIL-DEL.zip.")
Corpus = Annotated[Path, CORPUS]
MaybeCorpus = Annotated[Path | None, CORPUS]
Data = Annotated[Path, DATA]
MaybeData = Annotated[Path | None, DATA]
PropagationSteps = Annotated[
    int | None,
    typer.Option(
        help="T, the propagation steps of the model. A trained model takes another number than its "
        "own where its steps share their parameters.",
        min=0,
    ),
]
Seed = Annotated[
    int | None, typer.Option(help="Seed of first weights and training data; by default 0.")
]
Backend = Annotated[str, typer.Option(help="What reads a binary: auto, native, smda or binexport.")]
Raw = Annotated[
    str | None,
    typer.Option(
        metavar="ARCH@BASE",
        help="Read files as raw code at an address: thumb@0x8000000, arm, aarch64, x86, x86-64, "
        "mips, mipsel, mips64, mips64el, riscv64, ppc, ppc64le.",
    ),
]
Jobs = Annotated[int | None, typer.Option(help="Processes; by default one a core.")]
Seconds = Annotated[float, typer.Option(help="Seconds to read one file.", min=1)]
MinBlocks = Annotated[
    int, typer.Option(help="In the files, skip functions with fewer basic blocks.", min=1)
]
MIN_BLOCKS = 5
"""Default of every command that reads files; too many smaller functions are alike."""
OUTPUT = "Write the result to this file or folder."
OutputFile = Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help=OUTPUT)]
OutputFolder = Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help=OUTPUT)]
Plot = Annotated[Path | None, typer.Option(help="Draw a picture: a .png, .svg or .pdf file.")]
TRAINED_MODEL = typer.Option(help="Trained model: a name that ships with graphkin, or a folder.")
Matcher = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="Trained matcher of your own graphs, beside an embedder: it reranks hits, and says "
        "which node is which.",
    ),
]
Html = Annotated[Path | None, typer.Option(help="Write the result as one HTML file, too.")]
LibraryArgument = Annotated[
    str, typer.Argument(help="Library: a file, or milvus://host:port/collection.")
]
GraphsFolder = Annotated[
    Path | None, typer.Option(help="Folder in which a Milvus library keeps its graphs.")
]
AddTag = Annotated[
    list[str] | None, typer.Option(help="Tag the functions with KEY=VALUE; repeatable.")
]


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each parameter that is a dataclass replaced by its fields as options."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[Any]] = {
        name: kind for name, kind in hints.items() if isinstance(kind, type) and is_dataclass(kind)
    }

    @wraps(command)
    def run(**values: Any) -> None:
        for name, kind in groups.items():
            options = {field.name: values.pop(field.name) for field in fields(kind)}
            values[name] = kind(**options)
        command(**values)

    parameters: list[Parameter] = []
    for parameter in _parameters(command):
        own = groups.get(parameter.name)
        parameters += [parameter] if own is None else _parameters(own)
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    """Of a function or a dataclass, as typer reads them."""
    hints = get_type_hints(function, include_extras=True)
    return [
        parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY)
        for name, parameter in signature(function).parameters.items()
    ]


def without_none(options: dict[str, Any]) -> dict[str, Any]:
    """The options that have a value; others have a default where they go."""
    return {name: value for name, value in options.items() if value is not None}


def checked_backend(name: str, raw: str | None = None) -> BackendName:
    """The backend of a name, or that of ``--raw``."""
    from graphkin.binaries.backends.choose import BACKENDS, RAW, check_backend

    if raw is not None:
        if name != "auto":
            raise ConfigError(f"--raw and --backend {name} ask for different things")
        check_backend(RAW + raw)
        return RAW + raw
    if name not in BACKENDS:
        raise ConfigError(f"unknown backend {name!r}; choose one of {', '.join(BACKENDS)}")
    return name


def checked_jobs(jobs: int | None) -> int:
    """A number of processes; by default that of the cores that this one may use."""
    if jobs is not None and jobs < 1:
        raise ConfigError(f"--jobs must be at least 1, got {jobs}")
    if jobs is None and hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return jobs or os.cpu_count() or 1


def show_skipped(skipped: Sequence[Skipped]) -> None:
    """Says on stderr what could not be read."""
    for skip in skipped[:MAX_WARNINGS]:
        typer.echo(f"graphkin: {printable(str(skip))}", err=True)
    if len(skipped) > MAX_WARNINGS:
        left = len(skipped) - MAX_WARNINGS
        typer.echo(f"graphkin: and {left} more skipped; --json lists them all", err=True)


def show_coverage(coverages: Sequence[Coverage]) -> None:
    """Says on stderr how much of some files was recovered, and of which it was too little."""
    from graphkin.results.coverage import coverage_text

    if coverages:
        typer.echo(coverage_text(coverages), err=True)
    show_low_coverage([coverage for coverage in coverages if coverage.is_low])


def show_low_coverage(low: Sequence[Coverage]) -> None:
    """Says on stderr of which files too little was recovered."""
    for coverage in low[:MAX_WARNINGS]:
        typer.echo(f"graphkin: {printable(coverage.warning())}", err=True)
    if len(low) > MAX_WARNINGS:
        left = len(low) - MAX_WARNINGS
        typer.echo(f"graphkin: and {left} more files with missing functions", err=True)


def show_warnings(warnings: Iterable[str]) -> None:
    """Says on stderr why results may mean little."""
    for warning in warnings:
        typer.echo(f"graphkin: {printable(warning)}", err=True)


def parse_tags(items: Sequence[str], option: str = "--add-tag") -> dict[str, str]:
    """Tags to keep, from the KEY=VALUE of an option."""
    tags: dict[str, str] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not key or not equals:
            raise ConfigError(f"{option} takes KEY=VALUE, such as cve=CVE-2014-0160; got {item!r}")
        if tags.setdefault(key, value) != value:
            raise ConfigError(f"{option} {key} has two values, {tags[key]!r} and {value!r}")
    return tags
