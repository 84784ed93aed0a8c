"""Messages of BinExport files, read in place: the wire format, and the numbers of the fields.

The numbers are those of ``binexport2.proto`` in google/binexport.
"""

from __future__ import annotations

from collections.abc import Iterator

from graphkin.binaries.cursor import leb128

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MASK = 0xFFFFFFFFFFFFFFFF
Field = tuple[int, int, int]
"""(number of the field, value, -1) or (number of the field, first byte, behind the last)."""


class File:
    """Fields of the file itself, each a message."""

    META, EXPRESSION, OPERAND, MNEMONIC, INSTRUCTION, BASIC_BLOCK, FLOW_GRAPH, CALL_GRAPH = range(
        1, 9
    )


class Meta:
    NAME, EXECUTABLE_ID, ARCHITECTURE, TIMESTAMP, LAST = range(1, 6)


class Expression:
    TYPE, SYMBOL, IMMEDIATE, PARENT = range(1, 5)


class Operand:
    EXPRESSIONS = 1


class Mnemonic:
    NAME = 1


class Instruction:
    ADDRESS, MNEMONIC, OPERANDS, RAW_BYTES = 1, 3, 4, 5


class BasicBlock:
    INSTRUCTIONS = 1


class IndexRange:
    BEGIN, END = 1, 2


class FlowGraph:
    BLOCKS, EDGE, ENTRY = 1, 2, 3


class Edge:
    SOURCE, TARGET = 1, 2


class CallGraph:
    VERTEX = 1


class Vertex:
    ADDRESS, TYPE, NAME = 1, 2, 3


class WireError(ValueError):
    """Bytes that are not a message."""

    def __init__(self, offset: int) -> None:
        super().__init__(f"no field at byte {offset}")


def fields(data: bytes, start: int, end: int) -> Iterator[Field]:
    """Every field of the message in ``data[start:end]``; nothing is copied.

    Raises:
        WireError: for a field that is cut off, or of a kind that messages no longer have.
    """
    at = start
    try:
        while at < end:
            first = at
            key = data[at]
            at += 1
            if key >= 0x80:
                key, at = leb128(data, first)
            kind = key & 7
            if kind == FIXED64:
                at += 8
                value, behind = int.from_bytes(data[at - 8 : at], "little"), -1
            elif kind == FIXED32:
                at += 4
                value, behind = int.from_bytes(data[at - 4 : at], "little"), -1
            elif kind in (VARINT, BYTES):
                value, behind = data[at], -1
                at += 1
                if value >= 0x80:
                    value, at = leb128(data, at - 1)
                    value &= MASK
                if kind == BYTES:
                    value, behind = at, at + value
                    at = behind
            else:
                raise WireError(first)
            if at > end or not key >> 3:
                raise WireError(first)
            yield key >> 3, value, behind
    except IndexError:
        raise WireError(at) from None


def numbers(data: bytes, value: int, behind: int) -> Iterator[int]:
    """Numbers of a repeated field: one, or many that are packed into bytes."""
    if behind < 0:
        yield value
        return
    at = value
    while at < behind:
        number = data[at]
        at += 1
        if number >= 0x80:
            try:
                number, at = leb128(data, at - 1)
            except IndexError:
                raise WireError(at) from None
            number &= MASK
        if at > behind:
            raise WireError(at)
        yield number


def signed(value: int) -> int:
    """A number as the type int32 means it."""
    value &= 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value
