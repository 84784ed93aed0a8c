"""Uploaded files are read in processes of their own, each within a budget of time and memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from graphkin.binaries.backends.base import Limits
from graphkin.binaries.backends.choose import open_source
from graphkin.binaries.containers.unpack import SEPARATOR
from graphkin.binaries.coverage import Coverage
from graphkin.binaries.demangling import demangled
from graphkin.binaries.function import Function, Skipped
from graphkin.binaries.inputs import Input, Inputs
from graphkin.binaries.reading import read_function as find_in_container
from graphkin.binaries.reading import read_functions
from graphkin.binaries.targets import Target, choose, parse_target
from graphkin.binaries.workers import Done, Failure, WorkerPool
from graphkin.errors import FormatError
from graphkin.graphs import Graph
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.library.records import Stored
from graphkin.results.document import EvidenceToken, FunctionResult, LibraryFunction
from graphkin.results.function import said_by
from graphkin.web.limits import ServerLimits

R = TypeVar("R")

MARGIN_SECONDS = 5.0
"""For a process to report what it read when the time of its file is over."""
MOST_REASONS = 20
MOST_LETTERS = 1_000
"""Of a name: a file can make thousands of huge ones out of few bytes."""
MOST_SAID = 100
"""Strings, imports and constants of a function that are kept to be shown."""
OBJECT_BYTES = 1_000
"""Of memory for a function beside its names and arrays."""


@dataclass(frozen=True, eq=False)
class UploadedFunction:
    """What the server keeps of a function: enough to list it and to search for it."""

    name: str
    demangled: str | None
    """The name as C++ or Rust sources spell it, where that is not the name itself."""
    address: int | None
    """None for a graph."""
    size: int | None
    blocks: int
    edges: int
    member: str | None
    """Of an archive, or of a fat file; ``!inner`` for a member of a container."""
    unit: str | None
    graph: Graph
    code_hash: str
    callees: tuple[int, ...] = ()
    """Addresses of functions of the same file that it calls."""
    said: tuple[EvidenceToken, ...] = ()
    """What it says, each once."""
    label: str | None = None
    """The class of a graph."""

    @property
    def nbytes(self) -> int:
        """Of memory, about."""
        texts = (self.name, self.demangled, self.member, self.unit)
        letters = sum(len(text or "") for text in texts)
        letters += sum(len(token.text) for token in self.said) + 2 * len(self.callees)
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
    coverages: tuple[Coverage, ...] = ()


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
        limits = self._limits
        functions: list[UploadedFunction] = []
        facts: list[FileFacts] = []
        used, end = 0, time.monotonic() + limits.extraction_seconds
        with Inputs(self._file_limits()) as inputs:
            files = inputs.inputs(inputs.files([path]))
            for file in files:
                try:
                    items = self._results(task, file, path)
                except FormatError as error:
                    if file.copy is None:
                        raise
                    items = [FileFacts("", "", None, 1, (cut(str(error)),))]
                file.discard()
                for item in items:
                    if isinstance(item, FileFacts):
                        facts.append(item)
                    elif used <= limits.kept_graphs and len(functions) < limits.functions:
                        functions.append(item)
                        used += item.nbytes
                if file.copy is not None and (
                    used > limits.kept_graphs
                    or len(functions) >= limits.functions
                    or time.monotonic() > end
                ):
                    reason = "it holds too much to be read here; the rest is left out"
                    inputs.skipped.insert(0, Skipped(path.name, "", reason))
                    break
        both = _joined(facts, [_local(str(skip), path) for skip in inputs.skipped])
        if not functions:
            raise FormatError("; ".join(both.reasons) or f"{path.name} has no functions")
        return functions, both

    def function(self, path: Path, address: int, member: str | None) -> Function:
        """One function with the text of its instructions."""
        if member is not None and member.startswith(SEPARATOR):
            target = parse_target(f"{path}{member}")._replace(function=f"{address:#x}")
            function = find_in_container(target, limits=self._file_limits())
            return _bounded(function, path)
        task = partial(read_function, address=address, member=member, limits=self._file_limits())
        return self._results(task, Input(str(path)), path)[0]

    def with_text(self, path: Path) -> Iterator[Function]:
        """Every function of a file with the text of its instructions and what it says.

        Raises:
            FormatError: for a file that cannot be read within its budget, or has no functions.
        """
        for function in read_functions(
            Target(str(path)), with_text=True, with_evidence=True, limits=self._file_limits()
        ):
            yield _bounded(function, path)

    def _file_limits(self) -> Limits:
        limits = self._limits
        return Limits(
            limits.extraction_seconds, limits.upload_bytes, memory_bytes=limits.extraction_bytes
        )

    def _results(self, task: Callable[[Input], Iterator[R]], file: Input, path: Path) -> list[R]:
        pool: WorkerPool[Input, R] = WorkerPool(
            1,
            task,
            seconds=self._limits.extraction_seconds + MARGIN_SECONDS,
            memory_bytes=self._limits.extraction_bytes,
            confined=True,
        )
        results: list[R] = []
        with closing(pool.run([file])) as outcomes:
            for _, outcome in outcomes:
                if isinstance(outcome, Failure):
                    name = _local(file.label, path)
                    reason = _local(file.named(outcome.reason), path)
                    raise FormatError(f"{name} cannot be read: {reason}")
                if not isinstance(outcome, Done):
                    results.append(outcome)
        return results


def list_file(
    file: Input, *, vocabulary: Vocabulary, limits: Limits, most_bytes: int, most_functions: int
) -> Iterator[UploadedFunction | FileFacts]:
    """The task of a worker process: every function, then the facts of the file.

    What would take more memory of the server than ``most_bytes`` is left out, and so are
    functions beyond ``most_functions``.
    """
    source = open_source(file.path, with_evidence=vocabulary.reads == "evidence", limits=limits)
    first: Function | None = None
    used = 0
    for number, function in enumerate(source.functions()):
        first = first or function
        listed = _listed(file.function(function), file, vocabulary)
        used += listed.nbytes
        if used > most_bytes or number == most_functions:
            reason = (
                f"its functions take more than {most_bytes >> 20} MB of memory"
                if used > most_bytes
                else f"it has more than {most_functions:,} functions"
            )
            source.skipped.insert(0, Skipped(file.path, "", f"{reason}; the rest is left out"))
            break
        yield listed
    path = Path(file.container or file.label)
    reasons = (_local(str(file.skip(skip)), path) for skip in source.skipped[:MOST_REASONS])
    yield FileFacts(
        architecture=first.architecture if first else "",
        format=first.format if first else "",
        compiler=cut(first.compiler) if first and first.compiler else None,
        skipped=len(source.skipped),
        reasons=tuple(map(cut, reasons)),
        coverages=tuple(
            replace(item, binary=_local(file.coverage(item).binary, path))
            for item in source.coverages
        ),
    )


def _listed(function: Function, file: Input, vocabulary: Vocabulary) -> UploadedFunction:
    member = _member(function, file.container or file.label)
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
        callees=function.internal_callees,
        said=said_by(function)[:MOST_SAID],
    )


def read_function(
    file: Input, *, address: int, member: str | None, limits: Limits
) -> Iterator[Function]:
    """The task of a worker process: the function at an address, with its text."""
    target = Target(file.path, member, f"{address:#x}")
    function = choose(
        target,
        lambda wants: open_source(
            file.path, with_text=True, with_evidence=True, limits=limits, wants=wants
        ),
    )
    yield _bounded(function, Path(file.path))


def _bounded(function: Function, path: Path) -> Function:
    """A function with a name of bounded length, without folders of the server."""
    binary = _local(function.binary, path)
    return replace(function, binary=binary, name=cut(function.name), aliases=())


def _joined(facts: list[FileFacts], skipped: list[str]) -> FileFacts:
    """What is said of a file, out of what is said of its members."""
    first = next((item for item in facts if item.format), FileFacts("", "", None, 0, ()))
    reasons = [*skipped, *(reason for item in facts for reason in item.reasons)]
    return replace(
        first,
        skipped=len(skipped) + sum(item.skipped for item in facts),
        reasons=tuple(map(cut, reasons[:MOST_REASONS])),
        coverages=tuple(own for item in facts for own in item.coverages),
    )


def library_function(stored: Stored) -> LibraryFunction:
    """A function of the library, with a name of bounded length."""
    fields = stored.to_document()
    return LibraryFunction(**{**fields, "function": cut(fields["function"])})


def bounded(result: FunctionResult) -> FunctionResult:
    """A result whose hits have names and words of bounded length."""
    hits = tuple(
        hit.model_copy(
            update={
                "function": cut(hit.function),
                "shared": tuple(word._replace(text=cut(word.text)) for word in hit.shared),
            }
        )
        for hit in result.hits
    )
    return result.model_copy(update={"hits": hits})


def cut(text: str) -> str:
    """A text of bounded length."""
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}…"


def _member(function: Function, path: str) -> str | None:
    inside = function.binary.removeprefix(path)
    if inside.startswith(SEPARATOR):
        return inside
    return inside.removeprefix("(").removesuffix(")") or None


def _local(text: str, path: Path) -> str:
    """Text without the folder of the server that a file lies in."""
    return text.replace(f"{path.parent}/", "")
