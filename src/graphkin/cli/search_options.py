"""Options of searches: which part of a library, how many hits, how the report is written."""

from __future__ import annotations

import re
from dataclasses import dataclass
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


@dataclass(frozen=True)
class FilterOptions:
    """The options of a filter; see :func:`graphkin.cli.options.with_groups`."""

    function: Annotated[str | None, _option("Name of the function.")] = None
    binary: Annotated[str | None, _option("Path of the binary.")] = None
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
Top = Annotated[int, typer.Option(help="Hits to show for each query.", min=1)]
MinProbability = Annotated[
    float, typer.Option(help="Show only hits at least this probable.", min=0.0, max=1.0)
]


@dataclass(frozen=True)
class ReportOptions:
    """How queries are read, and how the report is written."""

    min_blocks: MinBlocks = MIN_BLOCKS
    backend: Backend = "auto"
    raw: Raw = None
    graphs_folder: GraphsFolder = None
    format_: Annotated[
        str | None,
        typer.Option(
            "--format", help="Format of the report: table, hits, json, jsonl, csv, sarif or html."
        ),
    ] = None
    output: OutputFile = None
    html: Html = None
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code",
            help=f"Exit with {FOUND} when there is a hit, or with {FOUND_AND_UNREADABLE} when some "
            f"input could not be read as well. Without a hit it stays {UNREADABLE} or 0.",
        ),
    ] = False
    as_json: Json = False

    def format(self, default: str) -> str:
        """The name of the format; contradictions and unknown names are refused."""
        from graphkin.results.render import format_named

        chosen = self.format_ or ("json" if self.as_json else default)
        format_named(chosen)
        for file in (self.output, self.html):
            if file is not None and file.is_dir():
                raise ConfigError(f"{file} is a folder; name a file to write the report to")
        if self.as_json and chosen != "json":
            raise ConfigError(f"--json and --format {chosen} ask for different things")
        return chosen
