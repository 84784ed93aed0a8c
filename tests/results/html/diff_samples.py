"""Diffs made by hand."""

from __future__ import annotations

from graphkin.results.document import BlockChanges, Diff, DiffSide, FunctionPair, FunctionRef, Tool
from graphkin.results.document import Verdict as Word
from graphkin.results.side_by_side import BlockRow, CodeLine, ShownBlock


def ref(name: str, address: int) -> FunctionRef:
    return FunctionRef(function=name, binary="x.so", address=address, blocks=7)


def pair(name: str, verdict: Word, similarity: float, address: int = 0x100) -> FunctionPair:
    return FunctionPair(
        left=ref(name, address),
        right=ref(name, address + 16),
        verdict=verdict,
        probability=0.9,
        found_by="likeness",
        similarity=similarity,
        blocks=BlockChanges(equal=5, changed=((1, 1),), removed=(), added=(2,)),
        calls_added=("memcpy",),
    )


def diff_of(*pairs: FunctionPair, gone: str = "retired", fresh: str = "fresh") -> Diff:
    side = DiffSide(binary="x.so", functions=9, architecture="x86-64")
    return Diff(
        tool=Tool(version="1.2.3"),
        model="functions",
        left=side,
        right=side,
        is_one_kind_of_build=True,
        pairs=pairs,
        removed=(ref(gone, 1),),
        added=(ref(fresh, 2),),
    )


def block(*lines: CodeLine) -> ShownBlock:
    return ShownBlock(0x1000, max(len(lines), 3), lines)


ROWS = (
    BlockRow("equal", block(), block()),
    BlockRow("changed", block(CodeLine("ja 8", True)), block(CodeLine("jb 8", True))),
    BlockRow("added", None, block(CodeLine("ret", False))),
)
DIFF = diff_of(
    pair("alpha", "identical", 1.0, 0x500),
    pair("beta", "changed", 0.8, 0x300),
    pair("gamma", "changed", 0.4, 0x400),
)
