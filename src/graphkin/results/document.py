"""The result document: what a search, a scan or a comparison says, the same for every reader.

Tables, JSON, CSV, SARIF, pages and the HTTP API are renderings of these records, and
``graphkin schema`` prints their JSON schema. Inside, an address is a number and a name is whatever
bytes a binary holds; in JSON an address is text such as ``"0x4f10"``, a byte of a name that is not
UTF-8 is written ``\\xff``, and a number that is not finite is null.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    SkipValidation,
    computed_field,
    model_validator,
)
from pydantic.json_schema import models_json_schema

from graphkin.binaries.demangling import demangled, shown_name, spelled_imports
from graphkin.results.text import address_text, encodable

VERSION = 1
"""Of the documents; it changes when a field is renamed or removed, not when one is added."""


def _parsed(address: Any) -> Any:
    return int(address, 16) if isinstance(address, str) else address


def _finite(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def _tags(tags: dict[str, str]) -> dict[str, str]:
    return {encodable(key): encodable(value) for key, value in tags.items()}


Name = Annotated[str, PlainSerializer(encodable, return_type=str, when_used="json")]
Address = Annotated[
    int,
    BeforeValidator(_parsed, json_schema_input_type=str),
    PlainSerializer(address_text, return_type=str, when_used="json"),
]
Number = Annotated[
    float | None, PlainSerializer(_finite, return_type=float | None, when_used="json")
]
Tags = Annotated[
    dict[str, str], PlainSerializer(_tags, return_type=dict[str, str], when_used="json")
]


class Document(BaseModel):
    """A frozen record whose fields are described by the text below each."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", use_attribute_docstrings=True, defer_build=True
    )

    @model_validator(mode="before")
    @classmethod
    def _without_computed(cls, data: Any) -> Any:
        """Documents that were written have fields that follow from others."""
        if not isinstance(data, dict) or cls.model_computed_fields.keys().isdisjoint(data):
            return data
        return {name: data[name] for name in data if name not in cls.model_computed_fields}

    def to_dict(self) -> dict[str, Any]:
        """The document as JSON has it."""
        return self.model_dump(mode="json")


class NamedFunction(Document):
    """A function by its name."""

    function: Name
    """Its name in the file; in a stripped file one made from its address."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def demangled(self) -> Name | None:
        """The name as C++ or Rust sources spell it; null where that is the name itself."""
        return demangled(self.function)

    @property
    def shown(self) -> str:
        """The name for people."""
        return shown_name(self.function)


class FunctionRef(NamedFunction):
    """Which function is meant, or which graph of somebody's own."""

    kind: Literal["function", "graph"] = "function"
    """Of a ``graph``, ``function`` is its name, ``binary`` the file that it was read from, and
    ``blocks`` counts its nodes."""
    binary: Name
    """The file; a member of an archive is ``path(member)``."""
    address: Address | None = None
    """Where it starts."""
    blocks: int
    """Basic blocks."""
    reference: str | None = None
    """What the HTTP API calls it: ``upload:FILE:NUMBER`` or ``library:ID``."""
    code_hash: Annotated[str, Field(exclude=True)] = ""
    """Of its code, wherever that lies; see :meth:`graphkin.binaries.Function.code_hash`."""


class LibraryFunction(FunctionRef):
    """A function of a library, and what the library knows of it."""

    id: int
    """Unique in its library, and stable."""
    size: int | None = None
    """Bytes of code."""
    architecture: Name = ""
    compiler: Name = ""
    build: Name = ""
    """The configuration that made the binary, such as ``gcc-12-O2``."""
    tags: Tags = {}
    """Whatever somebody wants to find it by, such as ``cve: CVE-2014-0160``."""

    def to_ref(self) -> FunctionRef:
        """Which function is meant, and no more."""
        return FunctionRef(**{name: getattr(self, name) for name in FunctionRef.model_fields})


class EvidenceToken(NamedTuple):
    """One thing that a block says."""

    kind: str
    """``str``, ``imp``, ``num``, ``off``, ``flt`` or ``dat``; see :class:`CodeBlock`."""
    text: Name


class BlockPair(NamedTuple):
    """A block of the query and the block of the hit that it matches."""

    left: int
    """Number of the query's block, from 0."""
    right: int
    """Number of the hit's block, from 0."""
    weight: float
    """How much each of the two attends to the other, from 0 to 1."""


class Evidence(Document):
    """Why the matcher takes two functions for the same."""

    matched_share: Number
    """Share of the query's blocks that have a partner, from 0 to 1."""
    pairs: tuple[BlockPair, ...]
    """``[left, right, weight]``: block of the query, block of the hit, mutual attention; the
    strongest first."""
    step: int = 0
    """The propagation step after which this was seen."""
    equal: bool = False
    """Whether both functions have equal graphs: then every block has a partner, the one of its own
    number, whatever the attention."""


class Hit(LibraryFunction):
    """A hit: a function of the library that resembles the query."""

    rank: int
    """From 1."""
    rank_by_distance: int
    """Before reranking, from 1."""
    distance: Number
    """Bits of the codes that differ, or the distance of the vectors."""
    score: Number = None
    """The matcher's, higher is more alike; null without reranking."""
    probability: Number = None
    """That both are the same code; null where the model is not calibrated."""
    value: Number = None
    """What the model predicts of query and hit, in the unit of the targets that it was trained on;
    null where it was trained on none."""
    evidence: Evidence | None = None
    shared: tuple[EvidenceToken, ...] = ()
    """``[kind, text]`` of what the query and the hit both say, the rarest first."""
    note: Name | None = None
    """What to know before the hit is believed: too small to tell, or code of the compiler."""
    graph_hash: Annotated[str, Field(exclude=True)] = ""
    """Of its graph: hits of one hash are copies of each other."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def spelled_imports(self) -> dict[Name, Name]:
        """How C++ or Rust sources spell imports of ``shared``, where that is not their text."""
        return spelled_imports(self.shared)


class CodeCoverage(Document):
    """How much of a file's code lies inside the functions that were found."""

    binary: Name
    """The file; a member of an archive is ``path(member)``."""
    functions: int
    code_bytes: int
    """Bytes of executable sections, without stubs of the linker and padding."""
    recovered_bytes: int
    """Those of them that lie inside functions."""
    share: Number
    """Recovered of all code, from 0 to 1."""
    is_low: bool
    """Whether so little was recovered that functions are missing."""
    tried: tuple[str, ...]
    """What the functions were looked for by, the most certain first."""


Repair = Literal["vulnerable", "fixed", "cannot tell"]


class PatchVerdict(Document):
    """Whether a function is the vulnerable or the repaired version of a known one."""

    identifier: Name
    """Of the vulnerability: what the tags ``cve`` and ``fixed`` say."""
    verdict: Repair
    probability: Number
    """That it is repaired, if it is the known function at all."""
    vulnerable: FunctionRef
    """Of the builds that the function was compared with, the one that is most like it."""
    fixed: FunctionRef
    """The repaired version of the same build."""
    reasons: tuple[Name, ...]
    """What speaks for either."""


class Kin(NamedTuple):
    """A function of the library that may be the same as a query, shown or not."""

    id: int
    function: str
    """Of which source function it is: its name, or its graph where it has none."""
    binary: str
    file_hash: str
    address: int | None
    probability: float
    distance: float
    """Of the codes."""
    is_runtime: bool = False
    """Whether it is code that the compiler adds to every file."""


class FunctionResult(Document):
    """One query function and its hits."""

    query: FunctionRef
    hits: tuple[Hit, ...]
    """The best first."""
    best_left_out: Number = None
    """The highest probability among hits that were less probable than asked for."""
    patches: tuple[PatchVerdict, ...] = ()
    """Where the library holds a hit's vulnerable and repaired versions: which of the two it is."""
    kin: Annotated[SkipValidation[tuple[Kin, ...]], Field(exclude=True)] = ()
    """All that competed and is not out of the question, the most probable first: what tells which
    binaries of the library are in a file."""


class AddressRange(Document):
    """Functions of one component that lie together."""

    start: Address
    """Of the first of them."""
    last: Address
    """Where the last of them starts."""
    functions: int


class ComponentBuild(Document):
    """A binary of the library, compared with what is in a scanned file."""

    binary: Name
    file_hash: str
    architecture: Name = ""
    compiler: Name = ""
    build: Name = ""
    version: Name | None = None
    """What the tag ``version`` says."""
    known: int
    """Functions that the library holds of it."""
    functions: int
    """Those of the scanned file that are like one of it."""
    nearest: int
    """Those of them to which no other build is nearer."""


class Component(Document):
    """Code of the library that is inside a scanned file."""

    binary: Name
    """The scanned file."""
    name: Name
    """What the tag ``component`` says, or what its binaries, or their folder, are called."""
    probability: Number
    """That it is there."""
    functions: int
    """Functions of the scanned file that are its."""
    builds: tuple[ComponentBuild, ...]
    """Its binaries in the library, the one that fits best first."""
    ranges: tuple[AddressRange, ...]
    """Where they lie, in the order of addresses."""


class Tool(Document):
    """What made a document."""

    name: Literal["graphkin"] = "graphkin"
    version: str


class SearchedFile(Document):
    """A file whose functions were looked up, or a single function that was named."""

    binary: Name
    functions: int
    """That were looked up."""
    small: int = 0
    """That were not, because they have too few basic blocks."""


class Report(Document):
    """The results of a search or a scan."""

    version: int = VERSION
    """Of the document's form."""
    tool: Tool
    library: Name
    """The library that was searched: its file, or its address."""
    model: str
    """The library's model: name, version and hash."""
    options: dict[str, Any]
    """What was asked for: ``top``, ``rerank``, ``min_probability``, filters."""
    results: tuple[FunctionResult, ...]
    """One for each query function, in the order of the files."""
    files: tuple[SearchedFile, ...] = ()
    """Those that could be read, in the order in which they were named."""
    components: tuple[Component, ...] = ()
    """Which binaries of the library are inside each file."""
    skipped: tuple[Name, ...] = ()
    """Files and functions that could not be read, and why."""
    coverage: tuple[CodeCoverage, ...] = ()
    """Of each file that was read whole, where the backend knows."""
    warnings: tuple[Name, ...] = ()
    """Why the results may mean little: functions for processors that the model was not trained
    on."""


class Comparison(Document):
    """What the models say of two functions, or of two graphs."""

    left: FunctionRef
    right: FunctionRef
    distance: Number
    """Of their codes or vectors."""
    score: Number
    """The matcher's."""
    probability: Number
    """That they are the same function, as if one had been found by the other in a library; of
    graphs, that they are similar, where such pairs are as many as others."""
    note: Name | None = None
    """What to know before it is believed: too small to tell."""
    value: Number = None
    """Of graphs: what the model predicts, in the unit of the targets that it was trained on."""
    evidence: Evidence
    shared: tuple[EvidenceToken, ...] | None = None
    """``[kind, text]`` of what both say: the rarest first, if the model knows which are rare; else
    strings first, without constants that many functions have. Null where it is not known what one
    of them says."""
    only_left: tuple[EvidenceToken, ...] | None = None
    """What the left one says and the right one does not, likewise; the first few."""
    only_right: tuple[EvidenceToken, ...] | None = None
    """The other way round."""
    warnings: tuple[Name, ...] = ()
    """Why the numbers may mean little, as in a report."""


Verdict = Literal["identical", "same", "changed"]
FoundBy = Literal["name", "identical code", "likeness", "surroundings"]


class BlockChanges(Document):
    """What became of the basic blocks of a function, in two builds of one kind."""

    equal: int
    """Blocks that both have."""
    changed: tuple[tuple[int, int], ...]
    """``[left, right]`` numbers of blocks that stand for each other, from 0."""
    removed: tuple[int, ...]
    """Numbers of the left blocks that the right function has not."""
    added: tuple[int, ...]
    """Numbers of the right blocks that the left function has not."""


class FunctionPair(Document):
    """A function of the left binary and the one of the right that it became."""

    left: FunctionRef
    right: FunctionRef
    verdict: Verdict
    """``identical``: the same instructions but for addresses, and the same callees. ``same``:
    likely the same source. ``changed``: kin, but not the same any more."""
    probability: Number
    """That they are the same function."""
    found_by: FoundBy
    """``name`` where both files have it once; else by themselves, or by their ``surroundings``:
    what calls them, what they call and what lies beside them."""
    similarity: Number
    """How much of the one is in the other, from 0 to 1."""
    blocks: BlockChanges | None = None
    """Where both files are builds of one kind."""
    calls_removed: tuple[Name, ...] = ()
    """Functions that only the left one calls; of two that are a pair, neither counts."""
    calls_added: tuple[Name, ...] = ()
    """Functions that only the right one calls."""


class DiffSide(Document):
    """One of the two files of a diff."""

    binary: Name
    functions: int
    architecture: Name
    compiler: Name | None = None
    coverage: tuple[CodeCoverage, ...] = ()


class Diff(Document):
    """Two binaries, function by function."""

    version: int = VERSION
    """Of the document's form."""
    tool: Tool
    model: str
    """Name, version and hash."""
    left: DiffSide
    right: DiffSide
    is_one_kind_of_build: bool
    """Whether equal source gives equal code: then whatever differs has changed. Else, for other
    compilers, levels or processors, only what functions say tells."""
    pairs: tuple[FunctionPair, ...]
    """In the order of the left file; no function is in two of them."""
    removed: tuple[FunctionRef, ...]
    """Functions of the left file without a partner."""
    added: tuple[FunctionRef, ...]
    """Functions of the right file without a partner."""
    skipped: tuple[Name, ...] = ()
    """Functions that could not be read, and why."""
    warnings: tuple[Name, ...] = ()
    """Why the numbers may mean little, as in a report."""

    def count(self, verdict: Verdict) -> int:
        """How many pairs have a verdict."""
        return sum(pair.verdict == verdict for pair in self.pairs)


class CarriedName(Document):
    """A name for a function that has none, and where it comes from."""

    target: FunctionRef
    """The function to name."""
    name: Name
    probability: Number
    """That both are the same function."""
    origin: FunctionRef
    """The function that has the name."""
    source_file: Name | None = None
    """Where that was written, as its debug information or its symbol table says."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def demangled(self) -> Name | None:
        """The name as C++ or Rust sources spell it; null where that is the name itself."""
        return demangled(self.name)


class Names(Document):
    """Names for the functions of a binary."""

    version: int = VERSION
    """Of the document's form."""
    tool: Tool
    model: str
    """Name, version and hash."""
    source: Name
    """Where the names come from: a file, or a library."""
    target: Name
    """The file whose functions get names."""
    file_hash: str | None = None
    """SHA-256 of the target, in hexadecimal; null where it holds several files."""
    functions: int
    """Of the target."""
    named_before: int
    """Those that have names of their own, and keep them."""
    min_probability: float
    """Names that are less probable are left out."""
    names: tuple[CarriedName, ...]
    """In the order of the target; no function is named twice, and none gives its name twice."""
    skipped: tuple[Name, ...] = ()
    """Functions that could not be read, and why."""
    warnings: tuple[Name, ...] = ()
    """Why the numbers may mean little, as in a report."""


class FunctionSummary(NamedFunction):
    """A function in a list of functions."""

    binary: Name
    address: Address | None
    """Null for a graph."""
    size: int | None
    """Bytes of code; null for a graph."""
    blocks: int
    edges: int
    unit: Name | None = None
    """The source file that a static function is local to."""


class FunctionList(Document):
    """The functions of a file."""

    binary: Name
    functions: tuple[FunctionSummary, ...]
    """In the order of the file."""
    coverage: tuple[CodeCoverage, ...] = ()
    """Of the file, or of each file of an archive, where the backend knows."""


class CodeBlock(Document):
    """A basic block."""

    address: Address
    size: int
    mnemonics: tuple[str, ...]
    instructions: tuple[Name, ...]
    """With operands, where they are known; else the mnemonics."""
    operations: tuple[str, ...] | None = None
    """What the instructions do, in classes that all processors share; null where the backend
    cannot tell."""
    evidence: tuple[EvidenceToken, ...] | None = None
    """``[kind, text]`` of what the block says, in order: ``str`` for strings, ``imp`` for imports,
    ``num`` for constants, ``off`` for offsets of fields, ``flt`` for constants of floating point,
    ``dat`` for the first bytes of tables; null likewise."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def spelled_imports(self) -> dict[Name, Name]:
        """How C++ or Rust sources spell imports of ``evidence``, where that is not their text."""
        return spelled_imports(self.evidence or ())


class CodeEdge(Document):
    """Control flow from one block to another."""

    source: int
    """Number of a block, from 0."""
    target: int
    kind: str
    """``taken``, ``not taken``, ``next``, ``jump`` or ``case``."""


class FunctionCode(NamedFunction):
    """One function with its code."""

    base_name: Name
    """Without what compilers add, such as ``.part.0``."""
    aliases: tuple[Name, ...]
    binary: Name
    unit: Name | None
    address: Address
    size: int
    architecture: str
    format: str
    compiler: Name | None
    file_hash: str
    """SHA-256 of the file, in hexadecimal."""
    blocks: tuple[CodeBlock, ...]
    edges: tuple[CodeEdge, ...]
    callees: tuple[Name, ...] | None = None
    """Functions that it calls, or whose address it takes: addresses in the same file, and
    names of imports; null where the backend cannot tell."""
    reference: str | None = None
    """What the HTTP API calls it."""
    text: Literal["disassembly", "mnemonics"] = "disassembly"
    """Mnemonics where the file of a library's function is no longer at hand."""
    picture: Name | None = None
    """The file that its control flow was drawn into."""


class GraphContent(Document):
    """A graph of somebody's own, with what its nodes and edges say."""

    kind: Literal["graph"] = "graph"
    function: Name
    """Its name."""
    binary: Name
    """The file that it was read from."""
    label: Name | None = None
    """The class that it is of."""
    directed: bool
    nodes: tuple[Name, ...]
    """The label of each node; empty where it has none."""
    edges: tuple[tuple[int, int], ...]
    """``[source, target]``, numbers of nodes from 0."""
    edge_labels: tuple[Name, ...] | None = None
    """Of each edge; null where edges have none."""
    reference: str | None = None
    """What the HTTP API calls it."""


class LibraryBinary(Document):
    """A file whose functions a library holds."""

    binary: Name
    name: Name
    """Without its folder."""
    file_hash: str
    architecture: Name
    compiler: Name
    build: Name
    functions: int
    tags: dict[str, int]
    """Functions that have each tag, as ``key=value``."""


class LibraryContent(Document):
    """What a library holds; the largest counts first."""

    library: Name
    """Its file, or its address."""
    model: dict[str, str]
    """Name, version and hash of the model that made it."""
    entries: int
    """Functions."""
    graphs: int
    """Different graphs among them."""
    binaries: int
    call_graphs: int = 0
    """Files of which it holds who calls whom."""
    bytes: dict[str, int]
    architectures: dict[str, int]
    compilers: dict[str, int]
    builds: dict[str, int]
    tags: dict[str, int]
    top_binaries: dict[str, int]
    """Functions of the files with most of them."""
    warnings: tuple[Name, ...] = ()
    """Why searches may mean little: functions for processors that the model was not trained on."""


DOCUMENTS: dict[str, type[Document]] = {
    "report": Report,
    "result": FunctionResult,
    "comparison": Comparison,
    "diff": Diff,
    "names": Names,
    "function": FunctionCode,
    "functions": FunctionList,
    "graph": GraphContent,
    "library": LibraryContent,
    "library-function": LibraryFunction,
}
"""The documents that a person may ask the schema of, by name."""


def schema_of(name: str) -> dict[str, Any]:
    """The JSON schema of one document."""
    return DOCUMENTS[name].model_json_schema(mode="serialization")


def all_schemas() -> dict[str, Any]:
    """One schema that defines every document under ``$defs``; ``properties`` has their names."""
    references, definitions = models_json_schema(
        [(document, "serialization") for document in DOCUMENTS.values()],
        title=f"graphkin documents, version {VERSION}",
    )
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **definitions,
        "properties": {
            name: references[document, "serialization"] for name, document in DOCUMENTS.items()
        },
        "additionalProperties": False,
    }
