"""Two functions block by block, as far as a reader of a diff needs them."""

from __future__ import annotations

from typing import Literal, NamedTuple

RowKind = Literal["equal", "changed", "removed", "added", "unordered"]


class CodeLine(NamedTuple):
    """An instruction."""

    text: str
    differs: bool
    """Whether the block on the other side does not have it."""


class ShownBlock(NamedTuple):
    """A basic block on one side."""

    address: int
    instructions: int
    lines: tuple[CodeLine, ...]
    """None of a block that is equal on both sides."""


class BlockRow(NamedTuple):
    """A block of the old function, one of the new, or both, beside each other."""

    kind: RowKind
    """``unordered`` where builds differ too much to say which block became which."""
    left: ShownBlock | None
    right: ShownBlock | None
