"""Results and functions made by hand, some with names that mean harm."""

from __future__ import annotations

from dataclasses import dataclass
from html.parser import HTMLParser
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries import Block, Function
from graphkin.binaries.function import Token
from graphkin.results.document import (
    BlockPair,
    Comparison,
    Document,
    Evidence,
    EvidenceToken,
    FunctionRef,
    FunctionResult,
    Hit,
    Report,
    Tool,
)
from graphkin.results.evidence import Attention, best_evidence
from graphkin.results.function import ref_of, said_by
from graphkin.results.html.comparison import comparison_page
from graphkin.results.shared_words import said_words

IMAGE = "<img src=x onerror=\"document.title='owned'\">"
SCRIPT = "</script><script>document.title='owned'</script>"
TERMINAL = "clear\x1b[2J\x07\u202eback\nline"
NOT_UTF8 = "caf\udce9\ud800"
HOSTILE = (IMAGE, SCRIPT, TERMINAL, NOT_UTF8, '=HYPERLINK("x")', "operator[](int){0}", "a,b'c\"d")

HEARTBEAT = Hit(
    id=1,
    reference="library:1",
    function="tls1_process_heartbeat",
    binary="openssl-1.0.1f/clang-14-O3/libssl.so.1.0.0",
    address=0xFFFFFFFF81000123,
    size=900,
    architecture="x86-64",
    compiler="clang 14",
    build="clang-14-O3",
    tags={"cve": "CVE-2014-0160", "package": "openssl"},
    blocks=41,
    rank=1,
    rank_by_distance=4,
    distance=12.0,
    score=-1.5,
    probability=0.987,
    evidence=Evidence(matched_share=0.93, pairs=(BlockPair(0, 0, 0.99), BlockPair(3, 4, 0.75))),
)
TALKING = HEARTBEAT.model_copy(
    update={
        "shared": (
            EvidenceToken("str", "heartbeat of %d bytes"),
            EvidenceToken("num", "2654435769"),
            EvidenceToken("imp", "memcpy"),
        ),
        "note": "one of 3 equal copies",
    }
)
"""A hit with all that a hit can have."""
INFLATE = Hit(
    id=2,
    function="inflate.part.0",
    binary="libz.so",
    address=0x40,
    blocks=90,
    rank=1,
    rank_by_distance=1,
    distance=30.0,
    score=-3.0,
    probability=0.6,
)
ADLER = Hit(
    id=3,
    function="adler32",
    binary="libz.so",
    blocks=12,
    rank=2,
    rank_by_distance=2,
    distance=0.125,
)
QUERY = FunctionRef(function="sub_1234", binary="firmware/lib one.so", address=0x1234, blocks=44)


D = TypeVar("D", bound=Document)


def changed(document: D, **fields: object) -> D:
    """A document with other values."""
    return document.model_copy(update=fields)


def result(*hits: Hit, query: FunctionRef = QUERY) -> FunctionResult:
    """Hits in this order."""
    ranked = (changed(hit, rank=rank) for rank, hit in enumerate(hits, start=1))
    return FunctionResult(query=query, hits=tuple(ranked))


def report(*results: FunctionResult, library: str = "library.kin") -> Report:
    return Report(
        tool=Tool(version="1.2.3"),
        library=library,
        model="functions 1.2.3 (0123456789ab)",
        options={"top": 3},
        results=results,
    )


def hit_named(name: str) -> Hit:
    said = (EvidenceToken("str", name), EvidenceToken("imp", name))
    words = {"tags": {name: name}, "shared": said, "note": name}
    return changed(INFLATE, function=name, binary=name, address=None, **words)


def result_named(name: str) -> FunctionResult:
    """A result in which everything that can be named has a name."""
    query = FunctionRef(function=name, binary=name, address=0x10, blocks=3)
    return result(hit_named(name), query=query)


def function(count: int, name: str = "sample", instruction: str = "mov eax, 1") -> Function:
    """A chain of blocks with a loop around it, each of which says its name."""
    names, said = (instruction.partition(" ")[0], "ret"), (Token("str", name),)
    blocks = tuple(
        Block(0x1000 + 16 * n, 16, names, (instruction, "ret"), evidence=said) for n in range(count)
    )
    edges = sorted({(n, n + 1) for n in range(count - 1)} | {(count - 1, 0)})
    return Function(
        name=name,
        address=0x1000,
        size=16 * count,
        blocks=blocks,
        edges=tuple(edges),
        architecture="x86-64",
        format="elf",
        file_hash="0",
        binary=name,
    )


@dataclass
class Maps:
    """Attention both ways."""

    left_to_right: list[NDArray[np.float32]]
    right_to_left: list[NDArray[np.float32]]


def attention(left: int, right: int, steps: int = 2, seed: int = 0) -> Maps:
    """Random weights that get sharper from step to step; rows sum to 1."""
    random = np.random.default_rng(seed)
    maps = Maps([], [])
    for step in range(steps + 1):
        scores = random.normal(size=(left, right)) * (1 + 3 * step)
        maps.left_to_right.append(_softmax(scores))
        maps.right_to_left.append(_softmax(scores.T))
    return maps


def compared_page(
    left: Function,
    right: Function,
    maps: Attention,
    *,
    score: float | None = None,
    probability: float | None = None,
    distance: float | None = None,
) -> str:
    """The page of two functions, with numbers made up."""
    comparison = Comparison(
        left=ref_of(left),
        right=ref_of(right),
        distance=distance,
        score=score,
        probability=probability,
        evidence=best_evidence(maps),
        **said_words(said_by(left), said_by(right))._asdict(),
    )
    return comparison_page(comparison, left, right, maps)


def _softmax(scores: NDArray[np.float64]) -> NDArray[np.float32]:
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights: NDArray[np.float64] = raised / raised.sum(axis=1, keepdims=True)
    return weights.astype(np.float32)


class Parsed(HTMLParser):
    """What a browser would make of a page: its elements, their attributes, and its scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in ("meta", "input", "wbr"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)
