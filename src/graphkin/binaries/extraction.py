"""From binaries to a corpus of functions: many files at once, each within its limits."""

from __future__ import annotations

import os
import pickle
import shutil
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from graphkin._support.files import PathLike, locked, storing
from graphkin._support.progress import Progress
from graphkin.binaries.backends.base import Limits
from graphkin.binaries.backends.choose import Backend, check_backend, is_raw, open_source
from graphkin.binaries.corpus import CorpusWriter, FunctionRecord
from graphkin.binaries.coverage import Coverage, CoverageTotal
from graphkin.binaries.function import Skipped
from graphkin.binaries.inputs import Input, Inputs
from graphkin.binaries.reading import reading_pool
from graphkin.binaries.workers import Done, Failure
from graphkin.errors import FormatError, GraphkinError, StorageError
from graphkin.graphs.vocabulary import Reads

BATCH = 4096
"""Functions that are committed at once."""


@dataclass
class Summary:
    """What an extraction did."""

    files: int = 0
    functions: int = 0
    small: int = 0
    """Functions left out because they have too few blocks."""
    skipped: list[Skipped] = field(default_factory=list)
    """Functions and files that could not be read, with the reasons."""
    coverage: CoverageTotal = field(default_factory=CoverageTotal)


@dataclass(frozen=True)
class FileSummary:
    """What is to be said of one file when all its functions are read."""

    small: int
    """Functions left out because they have too few blocks."""
    skipped: list[Skipped]
    seconds: float = 0.0
    """CPU time that reading took."""
    coverages: list[Coverage] = field(default_factory=list)
    """Of the file, or of each file of an archive, where the backend knows."""


def extract(
    paths: Sequence[PathLike],
    out: PathLike,
    *,
    min_blocks: int = 5,
    jobs: int = 1,
    backend: Backend = "auto",
    features: Reads = "mnemonics",
    limits: Limits | None = None,
    progress: Progress | None = None,
) -> Summary:
    """Reads every function of some binaries into a new corpus.

    What comes out does not depend on ``jobs``: the files are in the order given, and the
    functions of each in the order of their addresses. The corpus appears when it is complete.

    Args:
        paths: files, containers, and folders, which are searched for both.
        out: the corpus, which must not exist yet.
        min_blocks: functions with fewer basic blocks are left out.
        jobs: processes that read files.
        backend: which source of functions reads them.
        features: what is kept of a block: its mnemonics, or its operations and what it says.
        limits: what one file may cost.
        progress: called as ``progress(done, total)``, in files.

    Raises:
        FormatError: where there is no binary to read, or no function in any.
        StorageError: where the corpus exists, or cannot be written.
    """
    out = Path(out)
    limits = limits or Limits()
    check_reading(backend, limits)
    if os.path.lexists(out):
        raise StorageError(f"{out} exists already; remove it, or name another corpus")
    summary = Summary()
    # Closed at once, so that no worker outlives an error.
    with Inputs(limits, skipped=summary.skipped, as_is=is_raw(backend)) as inputs:
        files = inputs.files(paths)
        if not files:
            named = ", ".join(map(str, paths))
            raise FormatError(f"no binary found in {named or 'no paths at all'}")
        queue = _Queue(files, inputs.inputs(files))
        read = partial(
            read_input,
            min_blocks=min_blocks,
            backend=backend,
            limits=limits,
            features=features,
        )
        pool = reading_pool(jobs, read, limits)
        with (
            storing(f"write {out}"),
            TemporaryDirectory(prefix="graphkin-") as spool,
            _workplace(out) as folder,
            closing(pool.run(queue)) as results,
        ):
            writer = CorpusWriter(folder / "corpus")
            in_order = _in_order(queue.taken, results, _Spool(Path(spool)))
            for batch in _batches(_functions(in_order, summary, queue, progress)):
                writer.add(batch)
                summary.functions += len(batch)
            summary.files = len(queue.taken)
            if not summary.functions:
                raise FormatError(_nothing(summary, min_blocks))
            os.replace(folder / "corpus", out)
    return summary


def check_reading(backend: Backend, limits: Limits) -> None:
    """Refuses a time that is none, and a backend that is not installed."""
    limits.check()
    check_backend(backend)


@contextmanager
def _workplace(out: Path) -> Iterator[Path]:
    """A folder beside ``out`` for what is not complete yet; only one process works in it."""
    folder = out.with_name(f".{out.name}.partial")
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder, f"another process is writing {out}; wait for it"):
        try:
            for leftover in folder.iterdir():
                shutil.rmtree(leftover)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def build_names(files: Sequence[Path]) -> dict[Path, str]:
    """The build of each file: the folder it lies in, with as many above as tell builds apart.

    ``gcc/lib/libz.so`` and ``clang/lib/libz.so`` are of the builds ``gcc/lib`` and ``clang/lib``.
    """
    folders = {file: Path(os.path.abspath(file)).parent.parts for file in files}
    depths = dict.fromkeys(files, 1)
    while True:
        names = {file: "/".join(folders[file][-depths[file] :]) for file in files}
        homes: dict[tuple[str, str], set[tuple[str, ...]]] = defaultdict(set)
        for file in files:
            homes[names[file], file.name].add(folders[file])
        unclear = {name for (name, _), parents in homes.items() if len(parents) > 1}
        if not unclear:
            return names
        for file in files:
            depths[file] += names[file] in unclear


def member_build(build: str, container: str, label: str) -> str:
    """The build of a member: that of its container, and the folders inside.

    ``gcc/all.zip!lib/libz.so`` is of the build ``gcc/all.zip!lib``.
    """
    below = label.removeprefix(str(Path(container).parent)).lstrip("/")
    folders, slash, _ = below.rpartition("/")
    return f"{build}/{folders}" if slash else build


class BuiltInput(NamedTuple):
    """A file to read, with its build."""

    file: Input
    build: str


def read_input(
    item: BuiltInput,
    *,
    min_blocks: int,
    backend: Backend,
    limits: Limits,
    with_files: bool = True,
    features: Reads = "mnemonics",
) -> Iterator[FunctionRecord | FileSummary]:
    """The functions of a file that have enough blocks, and then its summary.

    It is the task of worker processes: see :class:`graphkin.binaries.workers.WorkerPool`.
    """
    started = time.process_time()
    file, build = item
    small = 0
    try:
        source = open_source(
            file.path,
            backend=backend,
            with_files=with_files,
            with_evidence=features == "evidence",
            limits=limits,
        )
        for function in source.functions():
            if not function.is_large(min_blocks):
                small += 1
            else:
                yield FunctionRecord.of(file.function(function), file.label, build, features)
    except GraphkinError as error:
        raise type(error)(file.named(str(error))) from error
    skipped = [file.skip(item) for item in source.skipped]
    coverages = [file.coverage(item) for item in source.coverages]
    yield FileSummary(small, skipped, time.process_time() - started, coverages)


class _Queue:
    """Files on their way to workers; members of containers come while others are read."""

    def __init__(self, files: Sequence[Path], inputs: Iterator[Input]) -> None:
        self._inputs = inputs
        self._builds = {str(file): build for file, build in build_names(files).items()}
        self._pending = set(self._builds)
        """Named files that nothing came of so far."""
        self.taken: list[BuiltInput] = []

    def __iter__(self) -> Iterator[BuiltInput]:
        for file in self._inputs:
            origin = file.container or file.label
            build = self._builds[origin]
            if file.container is not None:
                build = member_build(build, file.container, file.label)
            self._pending.discard(origin)
            self.taken.append(BuiltInput(file, build))
            yield self.taken[-1]
        self._pending.clear()

    @property
    def total(self) -> int:
        """Files, as far as they are known."""
        return len(self.taken) + len(self._pending)


Result = FunctionRecord | FileSummary | Failure | Done


class _Spool:
    """Results that came before their turn, on disk, so that memory stays bounded.

    They are pickled, so the folder must be one that nobody else can write to.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, number: int, result: Result) -> None:
        with open(self._folder / str(number), "ab") as file:
            pickle.dump(result, file, pickle.HIGHEST_PROTOCOL)

    def take(self, number: int) -> Iterator[Result]:
        path = self._folder / str(number)
        if not path.exists():
            return
        with open(path, "rb") as file, suppress(EOFError):
            while True:
                yield pickle.load(file)
        path.unlink()


def _in_order(
    files: Sequence[BuiltInput], results: Iterable[tuple[BuiltInput, Result]], spool: _Spool
) -> Iterator[tuple[BuiltInput, Result]]:
    """Results file by file, as if they had been read one after the other.

    Args:
        files: in their order; it grows while results come, before the first result of a file.
        results: as workers give them.
        spool: where those wait that are not due.
    """
    number_of: dict[BuiltInput, int] = {}
    turn = 0
    finished: set[int] = set()
    for file, result in results:
        for number in range(len(number_of), len(files)):
            number_of[files[number]] = number
        number = number_of[file]
        ended = isinstance(result, Failure | Done)
        if number != turn:
            spool.put(number, result)
            if ended:
                finished.add(number)
            continue
        yield file, result
        while ended:
            turn += 1
            ended = turn in finished
            for kept in spool.take(turn):
                yield files[turn], kept


def _functions(
    results: Iterable[tuple[BuiltInput, Result]],
    summary: Summary,
    queue: _Queue,
    progress: Progress | None,
) -> Iterator[FunctionRecord]:
    done = 0
    if progress is not None:
        progress(done, queue.total)
    for (file, _), result in results:
        if isinstance(result, FunctionRecord):
            yield result
            continue
        if isinstance(result, FileSummary):
            summary.small += result.small
            summary.skipped += result.skipped
            summary.coverage.add(result.coverages)
            continue
        if isinstance(result, Failure):
            summary.skipped.append(Skipped(file.label, "", file.named(result.reason)))
        file.discard()
        done += 1
        if progress is not None:
            progress(done, queue.total)


def _batches(records: Iterable[FunctionRecord]) -> Iterator[list[FunctionRecord]]:
    batch: list[FunctionRecord] = []
    for record in records:
        batch.append(record)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _nothing(summary: Summary, min_blocks: int) -> str:
    reasons = [str(skip) for skip in summary.skipped]
    if summary.small:
        reasons.append(f"{summary.small} functions have fewer than {min_blocks} blocks")
    shown = "; ".join(reasons[:3]) + (f"; and {len(reasons) - 3} more" if len(reasons) > 3 else "")
    return f"no function to keep: {shown or 'the binaries hold none'}"
