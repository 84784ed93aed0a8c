"""``index`` and ``library``: fill a library of functions, and look after it."""

from __future__ import annotations

import json
import os
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from graphkin.cli.filters import parse_tags, with_filter
from graphkin.cli.options import Backend, Jobs, Json, checked_backend, checked_jobs, show_skipped
from graphkin.errors import ConfigError, FormatError
from graphkin.results.text import encodable, plural, printable

if TYPE_CHECKING:
    from graphkin.library.indexing.writer import IndexSummary
    from graphkin.library.library import Library
    from graphkin.library.records import Filter

LibraryArgument = Annotated[
    str, typer.Argument(help="A library: a file, or milvus://host:port/name.")
]
GraphsFolder = Annotated[
    Path | None, typer.Option(help="Folder in which a Milvus library keeps its graphs.")
]

MOST_SHOWN = 12
"""Lines of a table of counts."""


class VerbAnywhere(TyperGroup):
    """Takes ``library LIB stats`` as well as ``library stats LIB``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if len(args) > 1 and args[0] not in self.commands and args[1] in self.commands:
            args = [args[1], args[0], *args[2:]]
        return super().parse_args(ctx, args)


library_app = typer.Typer(
    cls=VerbAnywhere,
    no_args_is_help=True,
    help="Look into a library, check it, change it: graphkin library LIBRARY VERB.",
)


def register(app: typer.Typer) -> None:
    """Adds the verbs to the application."""
    app.command("index")(index)
    for verb in (stats, list_, tag_, remove, verify, compact, copy):
        library_app.command(verb.__name__.rstrip("_"))(verb)
    app.add_typer(library_app, name="library")


def index(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="LIBRARY PATH...",
            help="The library, made when absent; then binaries, archives, folders, corpora. "
            "BINARY:FUNCTION adds one function, - reads a list from stdin.",
        ),
    ],
    to: Annotated[
        str | None, typer.Option(help="The library, when it is not the first argument.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE to keep with every function; repeatable.")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="Model of a new library: functions, or a folder.")
    ] = None,
    min_blocks: Annotated[
        int, typer.Option(help="Leave smaller functions out, by basic blocks.", min=1)
    ] = 5,
    jobs: Jobs = None,
    ray: Annotated[
        str | None, typer.Option(help="Spread the work over Ray: local, or a cluster's address.")
    ] = None,
    backend: Backend = "auto",
    seconds: Annotated[float, typer.Option(help="Time for one file.", min=0)] = 600.0,
    approximate: Annotated[
        bool, typer.Option(help="Make a new library approximate: faster beyond 10 million.")
    ] = False,
    graphs_folder: GraphsFolder = None,
    as_json: Json = False,
) -> None:
    """Add the functions of binaries to a library; what is there already costs little.

    The exit code is 11 where nothing of what was named could be read.
    """
    from graphkin._support.progress import counter
    from graphkin.binaries.backends.base import Limits
    from graphkin.library.indexing.run import index_paths

    library, sources = (to, paths) if to is not None else (paths[0], paths[1:])
    sources = [line for path in sources for line in (_from_stdin() if path == "-" else [path])]
    if not sources:
        raise ConfigError(f"name what to add to {library}: graphkin index LIBRARY PATH...")
    tags = parse_tags(tag or [])
    reader, processes = checked_backend(backend), checked_jobs(jobs)
    with _open_or_create(library, model, approximate, graphs_folder) as opened:
        try:
            with counter("indexing files") as progress:
                summary = index_paths(
                    opened,
                    sources,
                    tags=tags,
                    jobs=processes,
                    min_blocks=min_blocks,
                    backend=reader,
                    limits=Limits(seconds=seconds),
                    ray=ray,
                    progress=progress,
                )
        except KeyboardInterrupt:
            typer.echo("graphkin: interrupted; the same command goes on from here", err=True)
            raise typer.Exit(130) from None
        show_skipped(summary.skipped)
        total = len(opened)
    if as_json:
        typer.echo(json.dumps({"library": library, "total": total, **_document(summary)}))
    else:
        tagged = f", {summary.tagged:,} tagged" if tags else ""
        rate = summary.rates().get("total", 0.0)
        typer.echo(
            f"{library}: {plural(summary.added, 'function')} added, {total:,} in all; "
            f"{summary.known:,} known{tagged}, "
            f"{summary.small:,} smaller than {plural(min_blocks, 'block')}, "
            f"{len(summary.skipped):,} skipped; {plural(summary.files, 'file')}, "
            f"{summary.known_files:,} known; {rate:,.0f} functions/s"
        )
    if summary.skipped and not (summary.functions or summary.small or summary.known_files):
        raise typer.Exit(FormatError.exit_code)


def _document(summary: IndexSummary) -> dict[str, Any]:
    skipped = [item._asdict() for item in summary.skipped]
    return {**vars(summary), "skipped": skipped, "rates": summary.rates()}


def _from_stdin() -> list[str]:
    return [line for line in (text.rstrip("\r\n") for text in sys.stdin) if line]


def _open_or_create(
    library: str, model: str | None, approximate: bool, graphs_folder: Path | None
) -> Library:
    from graphkin.library.library import DEFAULT_MODEL, Library

    if library_exists(library, graphs_folder):
        return Library.open(library, model, graphs_folder=graphs_folder)
    return Library.create(
        library, model or DEFAULT_MODEL, approximate=approximate, graphs_folder=graphs_folder
    )


def library_exists(library: str, graphs_folder: Path | None = None) -> bool:
    """Whether there is such a file, or collection."""
    from graphkin.library.library import MILVUS

    if not library.startswith(MILVUS):
        if os.path.isdir(library):
            raise ConfigError(f"{library} is a folder; a library is a file, such as library.kin")
        return os.path.lexists(library)
    from graphkin.library.engines.milvus.engine import MilvusEngine

    return MilvusEngine.exists(library)


def open_library(library: str, graphs_folder: Path | None = None) -> Library:
    """A library that must exist."""
    from graphkin.library.library import Library

    if not library_exists(library, graphs_folder):
        raise FormatError(f"there is no library {library}; `graphkin index` makes one")
    return Library.open(library, graphs_folder=graphs_folder)


def stats(
    library: LibraryArgument, graphs_folder: GraphsFolder = None, as_json: Json = False
) -> None:
    """Count what a library holds, and say which model made it."""
    with open_library(library, graphs_folder) as opened:
        found = opened.stats()
    if as_json:
        typer.echo(json.dumps({"library": library, **found}))
        return
    for name, value in found.items():
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


@with_filter
def list_(
    library: LibraryArgument,
    *,
    where: Filter,
    limit: Annotated[int, typer.Option(help="Functions to list; 0 for all.", min=0)] = 0,
    graphs_folder: GraphsFolder = None,
    as_json: Json = False,
) -> None:
    """List functions of a library, one a line; with --json one object a line."""
    with open_library(library, graphs_folder) as opened:
        found = opened.engine.scan(where)
        for item in islice(found, limit) if limit else found:
            if as_json:
                document = {"id": item.id, "nodes": item.nodes, **item.entry.to_dict()}
                typer.echo(encodable(json.dumps(document, ensure_ascii=False)))
                continue
            entry = item.entry
            address = "" if entry.address is None else f"{entry.address:#x}"
            tags = " ".join(f"{key}={value}" for key, value in entry.tags.items())
            line = f"{item.id:>9} {item.nodes:>6} {address:>12}  {entry.function}  {entry.binary}"
            typer.echo(printable(f"{line}  {tags}".rstrip()))


@with_filter
def tag_(
    library: LibraryArgument,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE to keep; repeatable.")
    ] = None,
    *,
    where: Filter,
    graphs_folder: GraphsFolder = None,
    as_json: Json = False,
) -> None:
    """Tag the functions that match every condition; at least one is needed. Other tags stay."""
    tags = parse_tags(set_ or [], "--set")
    if not tags:
        raise ConfigError("name the tags to give, for example --set reviewed=yes")
    if where.is_empty():
        raise ConfigError("name what to tag, for example --function 'tls1_*'")
    with open_library(library, graphs_folder) as opened:
        count = opened.tag(where, tags)
        total = len(opened)
    if as_json:
        typer.echo(json.dumps({"library": library, "tagged": count, "total": total}))
        return
    typer.echo(f"{library}: {plural(count, 'function')} tagged, {total:,} in all")


@with_filter
def remove(
    library: LibraryArgument,
    *,
    where: Filter,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say how many.")] = False,
    graphs_folder: GraphsFolder = None,
    as_json: Json = False,
) -> None:
    """Remove the functions that match every condition; at least one is needed."""
    if where.is_empty():
        raise ConfigError("name what to remove, for example --binary '*/libold.so'")
    with open_library(library, graphs_folder) as opened:
        count = opened.engine.count(where) if dry_run else opened.remove(where)
        left = len(opened)
    if as_json:
        document = {"library": library, "removed": 0 if dry_run else count, "fitting": count}
        typer.echo(json.dumps({**document, "total": left}))
        return
    verb = "would be removed" if dry_run else "removed"
    typer.echo(f"{library}: {count:,} functions {verb}, {left:,} in all")


def verify(
    library: LibraryArgument, graphs_folder: GraphsFolder = None, as_json: Json = False
) -> None:
    """Read everything, and say what is damaged; the exit code is 11 where something is."""
    from graphkin.library.engines.base import Verification

    try:
        with open_library(library, graphs_folder) as opened:
            found = opened.verify()
    except FormatError as error:  # so much is damaged that it does not open
        found = Verification(damage=[str(error)])
    if as_json:
        typer.echo(json.dumps({"library": library, **vars(found)}))
    else:
        for sentence in found.damage:
            typer.echo(sentence)
        for name, value in found.notes.items():
            typer.echo(f"{name}: {value}")
        typer.echo(f"{library}: {found.entries:,} functions checked, {len(found.damage)} damaged")
    if found.damage:
        raise typer.Exit(FormatError.exit_code)


def compact(
    library: LibraryArgument, graphs_folder: GraphsFolder = None, as_json: Json = False
) -> None:
    """Give back the space of what was removed."""
    with open_library(library, graphs_folder) as opened:
        opened.compact()
        found = opened.stats()
    typer.echo(json.dumps({"library": library, **found}) if as_json else f"{library}: compacted")


def copy(
    source: LibraryArgument,
    target: Annotated[str, typer.Argument(help="Another library, made when absent.")],
    graphs_folder: GraphsFolder = None,
    as_json: Json = False,
) -> None:
    """Copy a library into another, of any engine; what is there already is not copied again."""
    from graphkin._support.progress import counter
    from graphkin.library.copying import copy as run
    from graphkin.library.library import Library

    with open_library(source) as opened:
        if library_exists(target, graphs_folder):
            place = Library.open(target, graphs_folder=graphs_folder)
        else:
            place = Library.create(target, opened.model, graphs_folder=graphs_folder)
        with place, counter("copying functions") as progress:
            copied = run(opened.engine, place.engine, progress)
            total = len(place)
    if as_json:
        typer.echo(
            json.dumps({"source": source, "target": target, "copied": copied, "total": total})
        )
        return
    typer.echo(f"{target}: {copied:,} functions copied from {source}, {total:,} in all")
