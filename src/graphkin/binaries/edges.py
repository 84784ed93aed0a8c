"""What each edge of a function means: a branch taken or not, a jump, a case of a switch."""

from __future__ import annotations

import re
from typing import Literal

from graphkin.binaries.function import Function

EdgeKind = Literal["taken", "not taken", "next", "jump", "case"]

TARGET = re.compile(r"(?:^|[\s,#])(0x[0-9a-f]+)$")
"""An address as the last operand."""


def edge_kinds(function: Function) -> tuple[EdgeKind, ...]:
    """The kind of each edge, in the order of ``function.edges``.

    Of two successors, the one that the last instruction names is where a branch goes when it is
    taken; without the text of instructions, the one that does not follow in memory.
    """
    following: dict[int, list[int]] = {}
    for source, target in function.edges:
        following.setdefault(source, []).append(target)
    kinds: dict[tuple[int, int], EdgeKind] = {}
    for source, targets in following.items():
        if len(targets) == 2:
            named = _taken(function, source, targets)
            for target in targets:
                kinds[source, target] = "taken" if target == named else "not taken"
        elif len(targets) > 2:
            kinds.update({(source, target): "case" for target in targets})
        else:
            kinds[source, targets[0]] = _single(function, source, targets[0])
    return tuple(kinds[edge] for edge in function.edges)


def _taken(function: Function, source: int, targets: list[int]) -> int:
    named = _named_address(function, source)
    for target in targets:
        if function.blocks[target].address == named:
            return target
    first, second = targets
    # Padding may lie between a block and the one that it runs on into.
    end = function.blocks[source].address + function.blocks[source].size
    gaps = [function.blocks[target].address - end for target in targets]
    if gaps[0] >= 0 and (gaps[1] < 0 or gaps[0] < gaps[1]):
        return second
    return first


def _single(function: Function, source: int, target: int) -> EdgeKind:
    if _named_address(function, source) == function.blocks[target].address:
        return "jump"
    end = function.blocks[source].address + function.blocks[source].size
    return "next" if function.blocks[target].address >= end else "jump"


def _named_address(function: Function, source: int) -> int | None:
    instructions = function.blocks[source].instructions
    match = TARGET.search(instructions[-1]) if instructions else None
    return int(match[1], 16) if match else None
