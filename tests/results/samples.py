"""Results and functions made by hand, some with names that mean harm."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html.parser import HTMLParser

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries import Block, Function
from graphkin.results.document import BlockPair, Evidence, Hit, Query, SearchResult
from graphkin.results.known_function import KnownFunction

IMAGE = "<img src=x onerror=\"document.title='owned'\">"
SCRIPT = "</script><script>document.title='owned'</script>"
TERMINAL = "clear\x1b[2J\x07\u202eback\nline"
NOT_UTF8 = "caf\udce9\ud800"
HOSTILE = (IMAGE, SCRIPT, TERMINAL, NOT_UTF8, '=HYPERLINK("x")', "operator[](int){0}", "a,b'c\"d")

HEARTBEAT = Hit(
    id=1,
    entry=KnownFunction(
        function="tls1_process_heartbeat",
        binary="openssl-1.0.1f/clang-14-O3/libssl.so.1.0.0",
        address=0xFFFFFFFF81000123,
        size=900,
        architecture="x86-64",
        compiler="clang 14",
        build="clang-14-O3",
        tags={"cve": "CVE-2014-0160", "package": "openssl"},
    ),
    nodes=41,
    distance=12.0,
    rank_before=4,
    score=-1.5,
    probability=0.987,
    evidence=Evidence(0.93, (BlockPair(0, 0, 0.99), BlockPair(3, 4, 0.75))),
)
INFLATE = Hit(2, KnownFunction("inflate.part.0", "libz.so", 0x40), 90, 30.0, 1, -3.0, 0.6)
ADLER = Hit(3, KnownFunction("adler32", "libz.so"), 12, 0.125, 2)
QUERY = Query("firmware/lib one.so", "sub_1234", 0x1234, 44)


def hit_named(name: str) -> Hit:
    return replace(INFLATE, entry=KnownFunction(function=name, binary=name, tags={name: name}))


def result_named(name: str) -> SearchResult:
    """A result in which everything that can be named has a name."""
    return SearchResult(Query(name, name, 0x10, 3), (hit_named(name),))


def function(count: int, name: str = "sample", instruction: str = "mov eax, 1") -> Function:
    """A chain of blocks with a loop around it."""
    names = (instruction.partition(" ")[0], "ret")
    blocks = tuple(Block(0x1000 + 16 * n, 16, names, (instruction, "ret")) for n in range(count))
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
        if tag not in ("meta", "input"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            self.texts.setdefault(self._open[-1], []).append(data)
