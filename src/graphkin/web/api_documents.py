"""What the API takes, and what it gives beside the documents of results/: status, uploads, jobs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from graphkin.library.diff.diff import MIN_PROBABILITY as DIFF_MIN_PROBABILITY
from graphkin.library.records import Filter
from graphkin.library.scan import MIN_BLOCKS, MIN_PROBABILITY, RERANK, TOP
from graphkin.results.document import (
    CodeCoverage,
    Component,
    FunctionResult,
    FunctionSummary,
    LibraryBinary,
    LibraryFunction,
)

Text = Annotated[str, Field(max_length=1000)]
State = Literal["waiting", "running", "done", "failed", "cancelled"]


class ApiDocument(BaseModel):
    """A document whose fields are described by the text below each."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Request(ApiDocument):
    """A request: an unknown key is a mistake."""

    model_config = ConfigDict(extra="forbid")


class SearchAnswer(FunctionResult):
    """The hits of one function."""

    seconds: float
    """That the search took."""
    warnings: tuple[str, ...] = ()
    """Why the hits may mean little: the model was not trained on the processor."""


class ErrorBody(ApiDocument):
    kind: str
    """The class of the error."""
    message: str


class Error(ApiDocument):
    error: ErrorBody


class ServerLimits(ApiDocument):
    upload_bytes: int
    extraction_seconds: float
    extraction_bytes: int
    top: int
    rerank: int


class Status(ApiDocument):
    """What the server is, and what it can do."""

    version: str
    library: str
    """Name of the library's file."""
    temporary: bool
    """The library ends with the server."""
    model: str
    kind: Literal["functions", "graphs"]
    """What the library holds."""
    functions: int
    """In the library; or graphs."""
    can_rerank: bool
    calibrated: bool
    """Hits have probabilities."""
    writable: bool
    warnings: tuple[str, ...] = ()
    """Why answers may be worse than they could be: the library carries an earlier model."""
    limits: ServerLimits


class SessionRequest(Request):
    token: Text


class Binary(ApiDocument):
    """An uploaded file."""

    id: str
    """SHA-256 of the file, in hexadecimal."""
    name: str
    bytes: int
    architecture: str
    format: str
    compiler: str | None
    functions: int
    skipped: int
    skipped_reasons: list[str]
    """The first of them."""
    coverage: list[CodeCoverage] = []
    """How much of the code is inside functions: of the file, or of each file of an archive."""


class FunctionRow(FunctionSummary):
    """A function of an uploaded file."""

    number: int
    """In the order of the file, from 0."""
    member: str | None
    """Of an archive, or of a container."""
    label: str | None = None
    """The class of a graph."""


class UploadedFunctionList(ApiDocument):
    binary: Binary
    functions: list[FunctionRow]


class Where(Request):
    """The part of a library to search; texts take the wildcards ``*``, ``?`` and ``[...]``."""

    function: Text | None = None
    binary: Text | None = None
    architecture: Text | None = None
    compiler: Text | None = None
    build: Text | None = None
    min_blocks: Annotated[int, Field(ge=0)] = 0
    max_blocks: Annotated[int, Field(ge=0)] | None = None
    tags: Annotated[dict[Text, Text], Field(max_length=20)] = {}

    def filter(self) -> Filter:
        """The part as a library takes it; an empty text is no condition."""
        return Filter(
            function=self.function or None,
            binary=self.binary or None,
            architecture=self.architecture or None,
            compiler=self.compiler or None,
            build=self.build or None,
            min_blocks=self.min_blocks,
            max_blocks=self.max_blocks,
            tags=self.tags,
        )


class SearchRequest(Request):
    query: Text
    """``upload:BINARY:NUMBER`` or ``library:ID``."""
    top: Annotated[int, Field(ge=1)] = 10
    rerank: Annotated[int, Field(ge=0)] = RERANK
    """Nearest candidates that the matcher scores again; 0 for none."""
    min_probability: Annotated[float, Field(ge=0, le=1)] = MIN_PROBABILITY
    """Hits that are less probable are left out."""
    where: Where = Where()


class ScanRequest(Request):
    binary: Text
    top: Annotated[int, Field(ge=1)] = TOP
    rerank: Annotated[int, Field(ge=0)] = RERANK
    min_probability: Annotated[float, Field(ge=0, le=1)] = MIN_PROBABILITY
    min_blocks: Annotated[int, Field(ge=1)] = MIN_BLOCKS
    where: Where = Where()


class Scan(ApiDocument):
    id: str
    binary: Binary
    state: State
    done: int
    total: int
    """Functions to look up."""
    found: int
    """Functions with a hit."""
    error: str | None
    seconds: float
    warnings: tuple[str, ...] = ()
    """Why the results may mean little, as in a report."""
    components: tuple[Component, ...] = ()
    """Which binaries of the library are inside the file, once it is scanned."""


class DiffRequest(Request):
    left: Text
    """The old file."""
    right: Text
    """The new one."""
    min_probability: Annotated[float, Field(ge=0, le=1)] = DIFF_MIN_PROBABILITY
    """Functions whose best partner is less probable have none."""
    by_name: bool = True
    """Functions whose name both files have once are pairs; else names do not count."""


class DiffCounts(ApiDocument):
    """Functions that have each verdict."""

    identical: int
    same: int
    changed: int
    removed: int
    added: int


class DiffState(ApiDocument):
    id: str
    left: Binary
    right: Binary
    state: State
    step: str
    """What it does right now."""
    done: int
    """Functions that were read."""
    total: int
    counts: DiffCounts | None
    """When it is done."""
    error: str | None
    seconds: float


class AdditionRequest(Request):
    binary: Text
    tags: Annotated[dict[Text, Text], Field(max_length=20)] = {}
    min_blocks: Annotated[int, Field(ge=1)] = 5


class Addition(ApiDocument):
    id: str
    binary: Binary
    state: State
    added: int
    known: int
    small: int
    skipped: int
    error: str | None
    seconds: float
    warnings: tuple[str, ...] = ()
    """Why the functions may not be found, as in a report."""


class RemovalRequest(Request):
    """Exact texts; at least one."""

    file_hash: Text | None = None
    binary: Annotated[str, Field(max_length=10_000)] | None = None


class Removal(ApiDocument):
    removed: int
    entries: int
    """That are left."""


class LibraryBinaries(ApiDocument):
    binaries: list[LibraryBinary]


class LibraryFunctions(ApiDocument):
    functions: list[LibraryFunction]
    next: int | None
    """``after`` of the next page."""
