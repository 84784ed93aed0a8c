"""What the API takes and gives, as JSON documents."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(max_length=1000)]
State = Literal["waiting", "running", "done", "failed", "cancelled"]


class Document(BaseModel):
    """A document whose fields are described by the text below each."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class Request(Document):
    """A request: an unknown key is a mistake."""

    model_config = ConfigDict(extra="forbid")


class ErrorBody(Document):
    kind: str
    """The class of the error."""
    message: str


class Error(Document):
    error: ErrorBody


class Limits(Document):
    upload_bytes: int
    extraction_seconds: float
    extraction_bytes: int
    top: int
    rerank: int


class Status(Document):
    """What the server is, and what it can do."""

    version: str
    library: str
    """Name of the library's file."""
    temporary: bool
    """The library ends with the server."""
    model: str
    functions: int
    """In the library."""
    can_rerank: bool
    calibrated: bool
    """Hits have probabilities."""
    writable: bool
    limits: Limits


class SessionRequest(Request):
    token: Text


class Binary(Document):
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


class FunctionRow(Document):
    number: int
    """Place in the file, from 0."""
    name: str
    address: str
    size: int
    blocks: int
    edges: int
    member: str | None
    """Of an archive."""
    unit: str | None
    """The source file that a static function is local to."""


class FunctionList(Document):
    binary: Binary
    functions: list[FunctionRow]


class BlockBody(Document):
    address: str
    instructions: list[str]


class EdgeBody(Document):
    source: int
    target: int
    kind: str


class FunctionBody(Document):
    """One function with its code."""

    reference: str
    name: str
    binary: str
    address: str | None
    size: int | None
    architecture: str
    compiler: str | None
    text: Literal["disassembly", "mnemonics"]
    """Mnemonics where the file of a library's entry is no longer at hand."""
    blocks: list[BlockBody]
    edges: list[EdgeBody]


class Where(Request):
    """The part of a library to search; texts take the wildcards ``*``, ``?`` and ``[...]``."""

    function: Text | None = None
    binary: Text | None = None
    architecture: Text | None = None
    compiler: Text | None = None
    build: Text | None = None
    min_nodes: Annotated[int, Field(ge=0)] = 0
    max_nodes: Annotated[int, Field(ge=0)] | None = None
    tags: Annotated[dict[Text, Text], Field(max_length=20)] = {}


class SearchRequest(Request):
    query: Text
    """``upload:BINARY:NUMBER`` or ``library:ID``."""
    top: Annotated[int, Field(ge=1)] = 10
    rerank: Annotated[int, Field(ge=0)] = 100
    """Nearest candidates that the matcher scores again; 0 for none."""
    where: Where = Where()


class QueryBody(Document):
    reference: str
    function: str
    binary: str
    address: str | None
    blocks: int


class HitBody(Document):
    rank: int
    rank_before: int
    """By distance alone."""
    probability: float | None
    score: float | None
    """Of the matcher; none without reranking."""
    distance: float
    """Bits of the codes that differ: the score before reranking."""
    function: str
    binary: str
    address: str | None
    blocks: int
    architecture: str
    compiler: str
    build: str
    tags: dict[str, str]
    reference: str
    matched_share: float | None = None
    """Blocks of the query that have a partner; only scans look."""


class SearchBody(Document):
    query: QueryBody
    seconds: float
    hits: list[HitBody]


class ResultBody(Document):
    query: QueryBody
    hits: list[HitBody]


class SideBody(Document):
    reference: str
    binary: str
    function: str
    address: str
    blocks: int


class ComparisonBody(Document):
    left: SideBody
    right: SideBody
    distance: float | None
    score: float | None
    probability: float | None
    matched_share: float | None
    pairs: list[tuple[int, int, float]]
    """Strongest first: block of the left, block of the right, weight."""


class ScanRequest(Request):
    binary: Text
    top: Annotated[int, Field(ge=1)] = 3
    rerank: Annotated[int, Field(ge=0)] = 20
    min_probability: Annotated[float, Field(ge=0, le=1)] = 0.5
    min_blocks: Annotated[int, Field(ge=1)] = 5
    where: Where = Where()


class Scan(Document):
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


class AdditionRequest(Request):
    binary: Text
    tags: Annotated[dict[Text, Text], Field(max_length=20)] = {}
    min_blocks: Annotated[int, Field(ge=1)] = 5


class Addition(Document):
    id: str
    binary: Binary
    state: State
    added: int
    known: int
    small: int
    skipped: int
    error: str | None
    seconds: float


class RemovalRequest(Request):
    """Exact texts; at least one."""

    file_hash: Text | None = None
    binary: Annotated[str, Field(max_length=10_000)] | None = None


class Removal(Document):
    removed: int
    entries: int
    """That are left."""


class LibraryBody(Document):
    path: str
    model: dict[str, str]
    entries: int
    graphs: int
    binaries: int
    bytes: dict[str, int]
    architectures: dict[str, int]
    compilers: dict[str, int]
    builds: dict[str, int]
    tags: dict[str, int]


class LibraryBinary(Document):
    binary: str
    name: str
    file_hash: str
    architecture: str
    compiler: str
    build: str
    functions: int
    tags: dict[str, int]


class LibraryBinaries(Document):
    binaries: list[LibraryBinary]


class LibraryFunction(Document):
    reference: str
    id: int
    function: str
    binary: str
    address: str | None
    size: int | None
    blocks: int
    architecture: str
    compiler: str
    build: str
    tags: dict[str, str]


class LibraryFunctions(Document):
    functions: list[LibraryFunction]
    next: int | None
    """``after`` of the next page."""
