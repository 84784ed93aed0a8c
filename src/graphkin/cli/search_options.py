"""Options of searches: which part of a library, how many hits, how the report is written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from graphkin.cli.exit_codes import FOUND, FOUND_AND_UNREADABLE, UNREADABLE
from graphkin.cli.options import (
    MIN_BLOCKS,
    Backend,
    GraphsFolder,
    Html,
    Json,
    MinBlocks,
    OutputFile,
    Raw,
)
from graphkin.errors import ConfigError

if TYPE_CHECKING:
    from graphkin.library.records import Filter

PANEL = "Functions of the library (texts may hold * and ?)"


def _option(text: str, **more: Any) -> Any:
    return typer.Option(help=text, rich_help_panel=PANEL, **more)


BinaryPattern = Annotated[str | None, _option("Path of the binary.")]


@dataclass(frozen=True)
class FilterOptions:
    """The options of a filter; see :func:`graphkin.cli.options.with_groups`."""

    function: Annotated[str | None, _option("Name of the function.")] = None
    binary: BinaryPattern = None
    architecture: Annotated[str | None, _option("Processor: x86-64, aarch64, mipsel, ...")] = None
    compiler: Annotated[str | None, _option("Compiler named in the binary.")] = None
    build: Annotated[str | None, _option("Build, the name of the binary's folder.")] = None
    tag: Annotated[list[str] | None, _option("KEY=VALUE, or KEY for any; repeatable.")] = None
    blocks: Annotated[
        str | None, _option("Basic blocks: a number, or a range such as 5-40 or 5-.")
    ] = None

    def filter(self) -> Filter:
        """The filter that the options describe."""
        from graphkin.library.records import Filter

        least, most = (0, None) if self.blocks is None else _block_range(self.blocks)
        pairs = [item.partition("=") for item in self.tag or ()]
        return Filter(
            function=self.function,
            binary=self.binary,
            architecture=self.architecture,
            compiler=self.compiler,
            build=self.build,
            tags={key: value if equals else "*" for key, equals, value in pairs},
            min_blocks=least,
            max_blocks=most,
        )


def _block_range(text: str) -> tuple[int, int | None]:
    """The least and the most basic blocks of ``7``, ``5-40`` or ``5-``."""
    match = re.fullmatch(r"(\d+)(?:(-)(\d*))?", text, re.ASCII)
    if match is None:
        raise ConfigError(f"--blocks takes a number, or a range such as 5-40 or 5-; got {text!r}")
    least, dash, most = match.groups()
    if not dash:
        return int(least), int(least)
    if most and int(most) < int(least):
        raise ConfigError(f"--blocks {text} holds no number; did you mean {most}-{least}?")
    return int(least), int(most) if most else None


RERANK, MIN_PROBABILITY = 20, 0.5
"""Defaults of every search; those of :mod:`graphkin.library.scan`, which takes long to import."""

Rerank = Annotated[
    int, typer.Option(help="Nearest candidates that the matcher scores again; 0 for none.", min=0)
]
Without = Annotated[
    list[str] | None,
    typer.Option(
        help="Leave a stage of the search out: words, neighbours, ranking or context; repeatable."
    ),
]
Top = Annotated[int, typer.Option(help="Hits to show for each query.", min=1)]
MinProbability = Annotated[
    float, typer.Option(help="Leave out hits and pairs that are less probable.", min=0.0, max=1.0)
]


Format = Annotated[
    str | None,
    typer.Option("--format", help="Format of the report; the command's description lists them."),
]
ExitCode = Annotated[
    bool,
    typer.Option(
        "--exit-code",
        help=f"Exit with {FOUND} when there is a hit, or a difference, and with "
        f"{FOUND_AND_UNREADABLE} when some input could not be read as well. Else it stays "
        f"{UNREADABLE} or 0.",
    ),
]


@dataclass(frozen=True)
class ReportOptions:
    """How queries are read, and how the report is written."""

    min_blocks: MinBlocks = MIN_BLOCKS
    backend: Backend = "auto"
    raw: Raw = None
    graphs_folder: GraphsFolder = None
    format_: Format = None
    output: OutputFile = None
    html: Html = None
    exit_code: ExitCode = False
    as_json: Json = False

    def format(self, default: str) -> str:
        """The name of the format; contradictions and unknown names are refused."""
        from graphkin.results.render import FORMATS

        return chosen_format(
            FORMATS, self.format_, default, self.output, self.html, as_json=self.as_json
        )


def chosen_format(
    formats: Iterable[str],
    name: str | None,
    default: str,
    *files: Path | None,
    as_json: bool = False,
) -> str:
    """The name of a format; contradictions, unknown names and folders to write to are refused."""
    chosen = name or ("json" if as_json else default)
    if chosen not in formats:
        raise ConfigError(f"unknown format {chosen!r}; choose one of {', '.join(formats)}")
    for file in files:
        if file is not None and file.is_dir():
            raise ConfigError(f"{file} is a folder; name a file to write the report to")
    if as_json and chosen != "json":
        raise ConfigError(f"--json and --format {chosen} ask for different things")
    return chosen
