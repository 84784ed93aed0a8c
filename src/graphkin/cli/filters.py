"""Options that choose functions of a library, declared once for every verb that takes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from graphkin.errors import ConfigError

if TYPE_CHECKING:
    from graphkin.library.records import Filter

PANEL = "Functions of the library (texts may hold * and ?)"


def _option(text: str, **more: Any) -> Any:
    return typer.Option(help=text, rich_help_panel=PANEL, **more)


def _filter(
    function: Annotated[str | None, _option("Name of the function.")] = None,
    binary: Annotated[str | None, _option("Path of the binary.")] = None,
    architecture: Annotated[str | None, _option("Processor: x86-64, aarch64, ...")] = None,
    compiler: Annotated[str | None, _option("Compiler named in the binary.")] = None,
    build: Annotated[str | None, _option("Build, the name of the binary's folder.")] = None,
    tag: Annotated[list[str] | None, _option("KEY=VALUE, or KEY for any; repeatable.")] = None,
    min_blocks: Annotated[int, _option("Skip functions with fewer basic blocks.", min=0)] = 0,
    max_blocks: Annotated[
        int | None, _option("Skip functions with more basic blocks.", min=1)
    ] = None,
) -> Filter:
    """The filter that the options describe."""
    from graphkin.library.records import Filter

    pairs = [item.partition("=") for item in tag or ()]
    return Filter(
        function=function,
        binary=binary,
        architecture=architecture,
        compiler=compiler,
        build=build,
        tags={key: value if equals else "*" for key, equals, value in pairs},
        min_nodes=min_blocks,
        max_nodes=max_blocks,
    )


def with_filter(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose parameter ``where: Filter`` becomes the eight options of a filter."""
    options = _parameters(_filter)

    @wraps(command)
    def run(**values: Any) -> None:
        where = _filter(**{option.name: values.pop(option.name) for option in options})
        command(**values, where=where)

    parameters: list[Parameter] = []
    for parameter in _parameters(command):
        parameters += options if parameter.name == "where" else [parameter]
    run.__annotations__ = {item.name: item.annotation for item in parameters}
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return run


def _parameters(function: Callable[..., Any]) -> list[Parameter]:
    """Parameters as typer reads them; Filter is imported for type checkers only."""
    hints = get_type_hints(function, localns={"Filter": object}, include_extras=True)
    return [
        parameter.replace(annotation=hints[name], kind=Parameter.KEYWORD_ONLY)
        for name, parameter in signature(function).parameters.items()
    ]


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
