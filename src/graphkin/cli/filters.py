"""Options that choose functions of a library, declared once for every verb that takes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

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
    architecture: Annotated[str | None, _option("Processor: x86-64, aarch64, ...")] = None
    compiler: Annotated[str | None, _option("Compiler named in the binary.")] = None
    build: Annotated[str | None, _option("Build, the name of the binary's folder.")] = None
    tag: Annotated[list[str] | None, _option("KEY=VALUE, or KEY for any; repeatable.")] = None
    min_blocks: Annotated[int, _option("Skip functions with fewer basic blocks.", min=0)] = 0
    max_blocks: Annotated[int | None, _option("Skip functions with more basic blocks.", min=1)] = (
        None
    )

    def filter(self) -> Filter:
        """The filter that the options describe."""
        from graphkin.library.records import Filter

        pairs = [item.partition("=") for item in self.tag or ()]
        return Filter(
            function=self.function,
            binary=self.binary,
            architecture=self.architecture,
            compiler=self.compiler,
            build=self.build,
            tags={key: value if equals else "*" for key, equals, value in pairs},
            min_blocks=self.min_blocks,
            max_blocks=self.max_blocks,
        )


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
