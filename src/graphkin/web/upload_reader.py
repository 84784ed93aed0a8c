"""Uploaded files are read in processes of their own, each within a budget of time and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from graphkin.binaries.backends.base import Limits
from graphkin.binaries.backends.choose import open_source
from graphkin.binaries.demangling import demangled
from graphkin.binaries.function import Function, Skipped
from graphkin.binaries.targets import Target, choose
from graphkin.binaries.workers import Done, Failure, WorkerPool
from graphkin.errors import FormatError
from graphkin.graphs import Graph
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.library.records import Stored
from graphkin.results.document import FunctionResult, LibraryFunction
from graphkin.web.limits import ServerLimits

R = TypeVar("R")

MARGIN_SECONDS = 5.0
"""For a process to report what it read when the time of its file is over."""
MOST_REASONS = 20
MOST_LETTERS = 1_000
"""Of a name: a file can make thousands of huge ones out of few bytes."""
OBJECT_BYTES = 1_000
"""Of memory for a function beside its names and arrays."""


@dataclass(frozen=True, eq=False)
class UploadedFunction:
    """What the server keeps of a function: enough to list it and to search for it."""

    name: str
    demangled: str | None
    """The name as C++ or Rust sources spell it, where that is not the name itself."""
    address: int
    size: int
    blocks: int
    edges: int
    member: str | None
    """Of an archive, or of a fat file."""
    unit: str | None
    graph: Graph
    code_hash: str

    @property
    def nbytes(self) -> int:
        """Of memory, about."""
        texts = (self.name, self.demangled, self.member, self.unit)
        letters = sum(len(text or "") for text in texts)
        arrays = self.graph.arrays().values()
        return OBJECT_BYTES + 4 * letters + sum(array.nbytes for array in arrays)


@dataclass(frozen=True)
class FileFacts:
    """What is said of a file when all its functions are read."""

    architecture: str
    format: str
    compiler: str | None
    skipped: int
    reasons: tuple[str, ...]


class Reader:
    """Reads files; every method may be called by any thread, and starts a process."""

    def __init__(self, limits: ServerLimits, vocabulary: Vocabulary) -> None:
        self._limits = limits
        self._vocabulary = vocabulary

    def functions(self, path: Path) -> tuple[list[UploadedFunction], FileFacts]:
        """Every function of a file.

        Raises:
            FormatError: for a file that cannot be read within its budget, or has no functions.
        """
        task = partial(
            list_file,
            vocabulary=self._vocabulary,
            limits=self._file_limits(),
            most_bytes=self._limits.kept_graphs,
            most_functions=self._limits.functions,
        )
        results = self._results(task, path)
        functions = [item for item in results if isinstance(item, UploadedFunction)]
        facts = next(item for item in results if isinstance(item, FileFacts))
        if not functions:
            raise FormatError("; ".join(facts.reasons) or f"{path.name} has no functions")
        return functions, facts

    def function(self, path: Path, address: int, member: str | None) -> Function:
        """One function with the text of its instructions."""
        task = partial(read_function, address=address, member=member, limits=self._file_limits())
        return self._results(task, path)[0]

    def _file_limits(self) -> Limits:
        return Limits(self._limits.extraction_seconds, self._limits.upload_bytes)

    def _results(self, task: Callable[[Path], Iterator[R]], path: Path) -> list[R]:
        pool: WorkerPool[Path, R] = WorkerPool(
            1,
            task,
            seconds=self._limits.extraction_seconds + MARGIN_SECONDS,
            memory_bytes=self._limits.extraction_bytes,
        )
        results: list[R] = []
        with closing(pool.run([path])) as outcomes:  # type: ignore[type-var]
            for _, outcome in outcomes:
                if isinstance(outcome, Failure):
                    raise FormatError(f"{path.name} cannot be read: {_local(outcome.reason, path)}")
                if not isinstance(outcome, Done):
                    results.append(outcome)
        return results


def list_file(
    path: Path, *, vocabulary: Vocabulary, limits: Limits, most_bytes: int, most_functions: int
) -> Iterator[UploadedFunction | FileFacts]:
    """The task of a worker process: every function, then the facts of the file.

    What would take more memory of the server than ``most_bytes`` is left out, and so are
    functions beyond ``most_functions``.
    """
    source = open_source(path, limits=limits)
    first: Function | None = None
    used = 0
    for number, function in enumerate(source.functions()):
        first = first or function
        listed = _listed(function, path, vocabulary)
        used += listed.nbytes
        if used > most_bytes or number == most_functions:
            reason = (
                f"its functions take more than {most_bytes >> 20} MB of memory"
                if used > most_bytes
                else f"it has more than {most_functions:,} functions"
            )
            source.skipped.insert(0, Skipped(str(path), "", f"{reason}; the rest is left out"))
            break
        yield listed
    reasons = (_local(str(skip), path) for skip in source.skipped[:MOST_REASONS])
    yield FileFacts(
        architecture=first.architecture if first else "",
        format=first.format if first else "",
        compiler=cut(first.compiler) if first and first.compiler else None,
        skipped=len(source.skipped),
        reasons=tuple(map(cut, reasons)),
    )


def _listed(function: Function, path: Path, vocabulary: Vocabulary) -> UploadedFunction:
    member = _member(function, path)
    spelling = demangled(function.name)
    return UploadedFunction(
        name=cut(function.name),
        demangled=cut(spelling) if spelling else None,
        address=function.address,
        size=function.size,
        blocks=len(function.blocks),
        edges=len(function.edges),
        member=cut(member) if member else None,
        unit=cut(function.unit) if function.unit else None,
        graph=function.to_graph(vocabulary),
        code_hash=function.code_hash(),
    )


def read_function(
    path: Path, *, address: int, member: str | None, limits: Limits
) -> Iterator[Function]:
    """The task of a worker process: the function at an address, with its text."""
    target = Target(str(path), member, f"{address:#x}")
    function = choose(
        target,
        lambda wants: open_source(
            path, with_text=True, with_evidence=True, limits=limits, wants=wants
        ),
    )
    yield replace(
        function, binary=_local(function.binary, path), name=cut(function.name), aliases=()
    )


def library_function(stored: Stored) -> LibraryFunction:
    """A function of the library, with a name of bounded length."""
    fields = stored.to_document()
    return LibraryFunction(**{**fields, "function": cut(fields["function"])})


def bounded(result: FunctionResult) -> FunctionResult:
    """A result whose hits have names of bounded length."""
    hits = tuple(hit.model_copy(update={"function": cut(hit.function)}) for hit in result.hits)
    return result.model_copy(update={"hits": hits})


def cut(text: str) -> str:
    """A text of bounded length."""
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}…"


def _member(function: Function, path: Path) -> str | None:
    inside = function.binary.removeprefix(str(path))
    return inside.removeprefix("(").removesuffix(")") or None


def _local(text: str, path: Path) -> str:
    """Text without the folder of the server that a file lies in."""
    return text.replace(f"{path.parent}/", "")
