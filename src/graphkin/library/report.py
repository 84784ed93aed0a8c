"""A search or a scan as one document: what was read, what was found, and what could not be read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from graphkin.binaries.backends.choose import Backend
from graphkin.binaries.coverage import Coverage
from graphkin.binaries.function import Skipped
from graphkin.errors import GraphkinError, NoCodeError
from graphkin.library.library import Library
from graphkin.library.model_age import age_warnings
from graphkin.library.processors import hit_processors, processor_warnings
from graphkin.library.records import Filter, SearchOptions
from graphkin.library.scan import MIN_BLOCKS, MIN_PROBABILITY, RERANK, Query, read_queries
from graphkin.library.whole_files import look_up_files
from graphkin.results.coverage import coverage_of
from graphkin.results.document import Report, SearchedFile, Tool

if TYPE_CHECKING:
    from graphkin._support.progress import Progress

TOP = 10
"""Hits of each function of a search."""


@dataclass
class ReadTargets:
    """The functions of what a person named, and what became of the rest."""

    queries: list[Query] = field(default_factory=list)
    files: list[SearchedFile] = field(default_factory=list)
    """What could be read."""
    skipped: list[Skipped] = field(default_factory=list)
    """Functions and members that could not be read."""
    coverages: list[Coverage] = field(default_factory=list)
    failures: list[GraphkinError] = field(default_factory=list)
    """Of the targets that could not be read at all."""


def search(
    library: Library | str | Path,
    target: str | Path | Sequence[str | Path],
    *,
    top: int = TOP,
    rerank: int = RERANK,
    min_probability: float = MIN_PROBABILITY,
    where: Filter | None = None,
    min_blocks: int = MIN_BLOCKS,
    backend: Backend = "auto",
) -> Report:
    """Finds the kin of a function, or of all functions of some files, in a library.

    Example::

        report = graphkin.search("library.kin", "firmware.bin:parse_header")
        for hit in report.results[0].hits:
            print(hit.function, hit.binary, hit.probability)

    Args:
        library: an open library, or where it is; that is opened, and closed at the end.
        target: ``BINARY:FUNCTION`` or ``BINARY:0x1234``, or a whole binary, container or folder;
            or several of them.
        top: hits of each function.
        rerank: candidates of each function that the matcher scores again; 0 for none.
        min_probability: hits that are less probable are left out.
        where: the part of the library to search.
        min_blocks: functions of a whole file with fewer basic blocks are skipped.
        backend: what reads the files.

    Raises:
        FormatError: for a file that cannot be read, or a library that is not there.
    """
    options = SearchOptions(top, rerank, where, min_probability, evidence=rerank > 0)
    names = [target] if isinstance(target, str | Path) else target
    with ExitStack() as stack:
        opened = library
        if not isinstance(opened, Library):
            opened = stack.enter_context(Library.open(opened))
        read = read_targets(opened, [str(name) for name in names], backend, min_blocks)
        if read.failures:
            raise read.failures[0]
        return make_report(opened, read, options, min_blocks=min_blocks, backend=backend)


def read_targets(
    library: Library, targets: Sequence[str], backend: Backend, min_blocks: int
) -> ReadTargets:
    """Reads all targets; one that cannot be read does not stop the others."""
    read = ReadTargets()

    def fail(error: GraphkinError) -> None:
        """A target of which nothing was read: its error names what was skipped."""
        if isinstance(error, NoCodeError):
            return  # which is said by what was skipped, and is no failure
        read.skipped[:] = [item for item in read.skipped if str(item) not in str(error)]
        read.failures.append(error)

    read.queries += read_queries(
        library,
        targets,
        backend,
        min_blocks,
        skipped=read.skipped,
        files=read.files,
        coverages=read.coverages,
        on_error=fail,
    )
    return read


def make_report(
    library: Library,
    read: ReadTargets,
    options: SearchOptions,
    *,
    min_blocks: int,
    backend: Backend,
    progress: Progress | None = None,
) -> Report:
    """Looks up what was read.

    Args:
        library: what is searched.
        read: the functions to look up, and what the document says of those that are missing.
        options: how it is searched.
        min_blocks: functions with fewer blocks were skipped, which the document says.
        backend: what read the files, likewise.
        progress: called as ``progress(done, total)``, in functions.
    """
    scanned = look_up_files(library, read.queries, options, progress=progress)
    processors = {query.architecture for query in read.queries}
    processors |= hit_processors(scanned.results)
    return Report(
        tool=Tool(version=version("graphkin")),
        library=str(library.path),
        model=str(library.model_id),
        options={**options.to_dict(), "min_blocks": min_blocks, "backend": backend},
        results=scanned.results,
        components=scanned.components,
        files=tuple(read.files),
        skipped=tuple(map(str, [*read.failures, *read.skipped])),
        coverage=tuple(map(coverage_of, read.coverages)),
        warnings=(
            *age_warnings(library),
            *processor_warnings(library.model, processors),
        ),
    )
