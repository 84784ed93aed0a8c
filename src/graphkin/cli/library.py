"""``library``: look into a library, check it, change it, copy it."""

from __future__ import annotations

import json
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from graphkin.cli.options import (
    AddTag,
    GraphsFolder,
    Json,
    LibraryArgument,
    parse_tags,
    show_warnings,
    with_groups,
)
from graphkin.cli.search_options import BinaryPattern, FilterOptions
from graphkin.errors import ConfigError, FormatError
from graphkin.results.text import address_text, plural, printable

if TYPE_CHECKING:
    from graphkin.library.library import Library


MOST_SHOWN = 12
"""Lines of a table of counts."""


class VerbAnywhere(TyperGroup):
    """Takes ``library LIB stats`` as well as ``library stats LIB``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if len(args) > 1 and args[0] not in self.commands and args[1] in self.commands:
            args = [args[1], args[0], *args[2:]]
        return super().parse_args(ctx, args)


def register(app: typer.Typer) -> None:
    """Adds the verbs to the application."""
    group = typer.Typer(
        cls=VerbAnywhere,
        no_args_is_help=True,
        help="Look into a library, check it, change it: graphkin library LIBRARY VERB.",
    )
    for verb in (stats, list_, calls, tag_, remove, verify, compact, copy):
        group.command(verb.__name__.rstrip("_"))(verb)
    app.add_typer(group, name="library")


def open_library(library: str, graphs_folder: Path | None = None) -> Library:
    """A library that must exist."""
    from graphkin.library.library import Library

    return Library.open(library, graphs_folder=graphs_folder)


def stats(
    library: LibraryArgument, graphs_folder: GraphsFolder = None, as_json: Json = False
) -> None:
    """Count the functions of a library by architecture, compiler, build and tag."""
    from graphkin.library.processors import processor_warnings

    with open_library(library, graphs_folder) as opened:
        counts = opened.stats()
        warnings = processor_warnings(opened.model, counts["architectures"])
    show_warnings(warnings)
    if as_json:
        typer.echo(json.dumps({"library": library, **counts, "warnings": warnings}))
        return
    for name, value in counts.items():
        if not isinstance(value, dict):
            typer.echo(f"{name.replace('_', ' '):<16} {_shown(value)}")
            continue
        typer.echo(f"{name.replace('_', ' ')}")
        for key, count in list(value.items())[:MOST_SHOWN]:
            typer.echo(f"  {_shown(count):>14}  {printable(key) or '(not known)'}")
        if len(value) > MOST_SHOWN:
            typer.echo(f"  and {len(value) - MOST_SHOWN} more; --json lists them")


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


@with_groups
def list_(
    library: LibraryArgument,
    *,
    where: FilterOptions,
    limit: Annotated[
        int, typer.Option(help="List at most this many functions; 0 lists all.", min=0)
    ] = 0,
    graphs_folder: GraphsFolder = None,
    as_json: Json = False,
) -> None:
    """List functions of a library, one on each line; with --json one object on each line."""
    from graphkin.binaries.demangling import shown_name
    from graphkin.results.document import LibraryFunction
    from graphkin.results.render import to_json

    with open_library(library, graphs_folder) as opened:
        functions = opened.engine.scan(where.filter())
        for item in islice(functions, limit) if limit else functions:
            if as_json:
                typer.echo(to_json(LibraryFunction(**item.to_document())))
                continue
            entry, address = item.entry, address_text(item.entry.address)
            name = shown_name(entry.function)
            tags = " ".join(f"{key}={value}" for key, value in entry.tags.items())
            line = f"{item.id:>9} {item.nodes:>6} {address:>12}  {name}  {entry.binary}"
            typer.echo(printable(f"{line}  {tags}".rstrip()))


def calls(
    library: LibraryArgument,
    binary: BinaryPattern = None,
    graphs_folder: GraphsFolder = None,
    as_json: Json = False,
) -> None:
    """List who calls whom in the files of a library, in the order of each file.

    Known of files that were indexed as a whole, for models that read evidence. With --json one
    object on each line, for each file.
    """
    from graphkin.binaries.function import file_path
    from graphkin.results.text import encodable

    with open_library(library, graphs_folder) as opened:
        engine = opened.engine
        paths = {item.file_hash: file_path(item.binary) for item in engine.binaries()}
        for file_hash in engine.call_graph_files():
            path = paths.get(file_hash, file_hash)
            graph = engine.call_graph(file_hash)
            if graph is None or not fnmatchcase(path, binary or "*"):
                continue
            if as_json:
                document = {"binary": encodable(path), "file_hash": file_hash, **graph.to_dict()}
                typer.echo(json.dumps(document))
                continue
            typer.echo(
                f"{printable(path)}: {plural(len(graph.functions), 'function')}, "
                f"{plural(len(graph.imports), 'import')}, {plural(len(graph.links), 'link')}"
            )
            for line in graph.lines():
                typer.echo(printable(line))


@with_groups
def tag_(
    library: LibraryArgument,
    add_tag: AddTag = None,
    *,
    where: FilterOptions,
    graphs_folder: GraphsFolder = None,
    as_json: Json = False,
) -> None:
    """Add tags to the functions that match every filter, and keep their other tags.

    At least one filter is needed.
    """
    tags = parse_tags(add_tag or [])
    if not tags:
        raise ConfigError("name the tags to add, for example --add-tag reviewed=yes")
    part = where.filter()
    if part.is_empty():
        raise ConfigError("name what to tag, for example --function 'tls1_*'")
    with open_library(library, graphs_folder) as opened:
        count = opened.tag(part, tags)
        total = len(opened)
    if as_json:
        typer.echo(json.dumps({"library": library, "tagged": count, "total": total}))
        return
    typer.echo(f"{library}: {plural(count, 'function')} tagged, {total:,} in all")


@with_groups
def remove(
    library: LibraryArgument,
    *,
    where: FilterOptions,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print how many would be removed.")
    ] = False,
    graphs_folder: GraphsFolder = None,
    as_json: Json = False,
) -> None:
    """Remove the functions that match every filter; at least one filter is needed."""
    part = where.filter()
    if part.is_empty():
        raise ConfigError("name what to remove, for example --binary '*/libold.so'")
    with open_library(library, graphs_folder) as opened:
        count = opened.engine.count(part) if dry_run else opened.remove(part)
        left = len(opened)
    if as_json:
        document = {"library": library, "removed": 0 if dry_run else count, "matching": count}
        typer.echo(json.dumps({**document, "total": left}))
        return
    verb = "would be removed" if dry_run else "removed"
    typer.echo(f"{library}: {count:,} functions {verb}, {left:,} in all")


def verify(
    library: LibraryArgument, graphs_folder: GraphsFolder = None, as_json: Json = False
) -> None:
    """Read the whole library, and list what is damaged; the exit code is 11 if anything is."""
    from graphkin.library.engines.base import Verification
    from graphkin.library.engines.open import exists

    try:
        with open_library(library, graphs_folder) as opened:
            verification = opened.verify()
    except FormatError as error:
        if not exists(library):
            raise
        # So much is damaged that it does not open.
        verification = Verification(damage=[str(error)])
    if as_json:
        typer.echo(json.dumps({"library": library, **vars(verification)}))
    else:
        for sentence in verification.damage:
            typer.echo(sentence)
        for name, value in verification.notes.items():
            typer.echo(f"{name}: {value}")
        typer.echo(
            f"{library}: {verification.entries:,} functions checked, "
            f"{len(verification.damage)} damaged"
        )
    if verification.damage:
        raise typer.Exit(FormatError.exit_code)


def compact(
    library: LibraryArgument, graphs_folder: GraphsFolder = None, as_json: Json = False
) -> None:
    """Free the space of removed functions."""
    with open_library(library, graphs_folder) as opened:
        opened.compact()
        counts = opened.stats()
    typer.echo(json.dumps({"library": library, **counts}) if as_json else f"{library}: compacted")


def copy(
    source: LibraryArgument,
    target: Annotated[str, typer.Argument(help="Another library, created if it does not exist.")],
    graphs_folder: GraphsFolder = None,
    as_json: Json = False,
) -> None:
    """Copy a library into another, of any engine; functions already there are skipped.

    Two libraries on Milvus may name their folders by ?graphs-folder= in their addresses.
    """
    from graphkin._support.progress import counter
    from graphkin.library.copying import copy as run
    from graphkin.library.engines.open import exists
    from graphkin.library.library import Library

    with open_library(source, graphs_folder) as opened:
        if exists(target):
            other = Library.open(target, graphs_folder=graphs_folder)
        else:
            other = Library.create(target, opened.model, graphs_folder=graphs_folder)
        with other, counter("copying functions") as progress:
            copied = run(opened.engine, other.engine, progress)
            total = len(other)
    if as_json:
        typer.echo(
            json.dumps({"source": source, "target": target, "copied": copied, "total": total})
        )
        return
    typer.echo(f"{target}: {copied:,} functions copied from {source}, {total:,} in all")
