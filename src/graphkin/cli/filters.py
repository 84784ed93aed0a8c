"""Options that choose a part of a library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from graphkin.errors import ConfigError

if TYPE_CHECKING:
    from graphkin.library.records import Filter

PANEL = "Part of the library (texts may hold * and ?)"

FunctionFilter = Annotated[
    str | None, typer.Option("--function", help="Name of the function.", rich_help_panel=PANEL)
]
BinaryFilter = Annotated[
    str | None, typer.Option("--binary", help="Path of the binary.", rich_help_panel=PANEL)
]
ArchitectureFilter = Annotated[
    str | None, typer.Option("--architecture", help="x86-64, aarch64, ...", rich_help_panel=PANEL)
]
CompilerFilter = Annotated[
    str | None,
    typer.Option("--compiler", help="What binaries say of it.", rich_help_panel=PANEL),
]
BuildFilter = Annotated[
    str | None,
    typer.Option("--build", help="The folder that binaries lay in.", rich_help_panel=PANEL),
]
TagFilter = Annotated[
    list[str] | None,
    typer.Option("--tag", help="KEY=VALUE, or KEY for any value.", rich_help_panel=PANEL),
]
MinBlocks = Annotated[
    int, typer.Option("--min-nodes", help="Basic blocks, at least.", rich_help_panel=PANEL, min=0)
]
MaxBlocks = Annotated[
    int | None,
    typer.Option("--max-nodes", help="Basic blocks, at most.", rich_help_panel=PANEL, min=1),
]


def chosen_part(
    *,
    function: str | None = None,
    binary: str | None = None,
    architecture: str | None = None,
    compiler: str | None = None,
    build: str | None = None,
    tag: Sequence[str] | None = None,
    min_nodes: int = 0,
    max_nodes: int | None = None,
) -> Filter:
    """The filter that the options ask for."""
    from graphkin.library.records import Filter

    pairs = [item.partition("=") for item in tag or ()]
    tags = {key: value if equals else "*" for key, equals, value in pairs}
    return Filter(
        function=function,
        binary=binary,
        architecture=architecture,
        compiler=compiler,
        build=build,
        tags=tags,
        min_nodes=min_nodes,
        max_nodes=max_nodes,
    )


def parse_tags(items: Sequence[str], option: str = "--tag") -> dict[str, str]:
    """Tags to keep, from the KEY=VALUE of an option."""
    tags: dict[str, str] = {}
    for item in items:
        key, equals, value = item.partition("=")
        if not key or not equals:
            raise ConfigError(f"{option} takes KEY=VALUE, such as cve=CVE-2014-0160; got {item!r}")
        if tags.setdefault(key, value) != value:
            raise ConfigError(f"{option} {key} has two values, {tags[key]!r} and {value!r}")
    return tags
