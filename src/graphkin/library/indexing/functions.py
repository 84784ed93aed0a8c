"""Single functions, ``BINARY:FUNCTION``, on their way into a library."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from glob import escape
from pathlib import Path

from graphkin._support.files import PathLike
from graphkin.binaries.backends.choose import Backend
from graphkin.binaries.corpus import FunctionRecord
from graphkin.binaries.extraction import FileSummary, build_names
from graphkin.binaries.function import Skipped
from graphkin.binaries.targets import Target, find_function, parse_target
from graphkin.binaries.workers import Done
from graphkin.errors import ConfigError, FormatError
from graphkin.library.indexing.files import FileJob, Result
from graphkin.library.records import Filter
from graphkin.results.known_function import KnownFunction


def function_target(path: PathLike) -> Target | None:
    """The function that a path stands for, where it is not a path but a file with a function."""
    if os.path.lexists(path):
        return None
    try:
        target = parse_target(os.fspath(path))
    except ConfigError:
        return None
    if target.function is None or not os.path.isfile(target.path):
        return None
    return target._replace(path=str(Path(target.path)))


def read_functions(targets: Sequence[Target], backend: Backend) -> list[tuple[FileJob, Result]]:
    """What reading of the files gives, as if they held nothing but these functions.

    The jobs have no hash, so that the library does not count the files as finished.
    """
    builds = build_names(list(dict.fromkeys(Path(target.path) for target in targets)))
    results: list[tuple[FileJob, Result]] = []
    for file, build in builds.items():
        results += _read_file(file, build, targets, backend)
    return results


def _read_file(
    file: Path, build: str, targets: Sequence[Target], backend: Backend
) -> Iterator[tuple[FileJob, Result]]:
    job = FileJob(str(file), build, file_hash="")
    skipped: list[Skipped] = []
    for target in targets:
        if target.path != job.path:
            continue
        try:
            yield job, FunctionRecord.of(find_function(target, backend), file, build)
        except (ConfigError, FormatError) as error:
            skipped.append(Skipped(target.binary, target.function or "", str(error)))
    yield job, FileSummary(0, skipped)
    yield job, Done()


def filter_of(entry: KnownFunction, path: str) -> Filter:
    """What matches one function of the file at a path, wherever that was added from."""
    member = entry.binary.removeprefix(path)
    return Filter(
        function=escape(entry.function),
        binary=f"*{escape(member)}" if member else None,
        file_hash=entry.file_hash,
        address=entry.address,
    )
