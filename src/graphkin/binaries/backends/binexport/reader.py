"""BinExport files, version 2: what Ghidra, IDA or Binary Ninja found in a binary.

The format is a protocol buffer in which every instruction, block and name is stored once, and
referred to by its index.
"""

from __future__ import annotations

import hashlib
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from graphkin._support.files import PathLike
from graphkin.binaries.backends.base import (
    Deadline,
    FunctionSource,
    OutOfTime,
    extent_of,
    read_binary,
)
from graphkin.binaries.backends.binexport.operands import OperandText, canonical
from graphkin.binaries.backends.binexport.wire import (
    BasicBlock,
    CallGraph,
    Edge,
    File,
    FlowGraph,
    IndexRange,
    Instruction,
    Meta,
    Mnemonic,
    Vertex,
    WireError,
    fields,
    numbers,
    signed,
)
from graphkin.binaries.function import Block, Function
from graphkin.errors import FormatError

SUFFIX = ".binexport"
IMPORTED, THUNK, INVALID = 2, 3, 4
"""Types of functions."""
SHA256 = re.compile(r"[0-9a-fA-F]{64}")
ARCHITECTURES = {"x86-32": "x86", "aarch64-64": "aarch64", "arm-64": "aarch64", "arm-32": "arm"}
STEPS_PER_CHECK = 1 << 14


def is_binexport(path: PathLike, head: bytes) -> bool:
    """Whether a file is a BinExport file, by its name or its first bytes (1,000 or so).

    Such a file begins with the description of the executable, which begins with texts.
    """
    if Path(path).suffix.lower() == SUFFIX:
        return True
    try:
        number, start, end = next(fields(head, 0, len(head)), (0, 0, 0))
        if number != File.META or end < 0:
            return False
        inside = list(fields(head, start, end))
    except WireError:
        return False
    texts = [head[a:b] for number, a, b in inside if number <= Meta.ARCHITECTURE and b >= 0]
    return (
        bool(texts)
        and all(number <= Meta.LAST for number, _, _ in inside)
        and all(text.isascii() and text.decode("ascii").isprintable() for text in texts[1:])
    )


@dataclass
class BinExportSource(FunctionSource):
    """Functions of one BinExport file.

    Mnemonics are spelled as capstone does: ``je`` for IDA's ``jz`` and Ghidra's ``JZ``.
    Imported functions, and thunks that only jump on, are left out, as they are not code of the
    binary. The size of a function is that of its blocks.
    """

    path: PathLike

    def functions(self) -> Iterator[Function]:
        """Every function in the order of addresses.

        Raises:
            FormatError: for a file that cannot be read, or is damaged.
        """
        data = read_binary(self.path, self.limits.file_bytes)
        label = str(self.path)
        deadline = Deadline(self.limits)
        try:
            tables = _Tables(data)
            tables.read(self.with_text, deadline)
            yield from self._functions(tables, label, deadline)
        except WireError as error:
            raise FormatError(
                f"{label} is not a BinExport file, or it is damaged: {error}"
            ) from error
        except OutOfTime:
            self.skip(label, "", f"the time of {self.limits.seconds:g} s is over")

    def _functions(self, tables: _Tables, label: str, deadline: Deadline) -> Iterator[Function]:
        if not tables.graphs:
            self.skip(label, "", "it has no flow graph of any function")
        for address, start, end in tables.sorted_graphs():
            deadline.check()
            name, kind = tables.vertices.get(address, ("", 0))
            if kind in (IMPORTED, THUNK):
                continue
            name = name or f"sub_{address:x}"
            members, edges = tables.graph(start, end)
            count = sum(tables.length(number) for number in members)
            if kind == INVALID or count > self.limits.function_bytes:
                reason = f"{count} instructions, over the limit of {self.limits.function_bytes}"
                reason = "its maker marked it as invalid" if kind == INVALID else reason
                self.skip(label, name, reason)
                continue
            blocks = {number: tables.block(number) for number in members}
            order = sorted(blocks, key=lambda number: blocks[number].address)
            # The entry comes first; the sort leaves the others in their order.
            order.sort(key=lambda number: blocks[number].address != address)
            rank = {number: position for position, number in enumerate(order)}
            function = Function(
                name=name,
                address=address,
                size=sum(block.size for block in blocks.values()),
                blocks=tuple(blocks[number] for number in order),
                edges=tuple(sorted((rank[a], rank[b]) for a, b in edges)),
                architecture=tables.architecture,
                format="binexport",
                file_hash=tables.executable_id,
                binary=label,
            )
            if self.is_wanted(extent_of(function)):
                yield function


@dataclass
class _Tables:
    """The file's tables; what is large stays in the file's bytes until it is needed."""

    data: bytes
    executable_id: str = ""
    architecture: str = "unknown"
    mnemonics: list[str] = field(default_factory=list)
    addresses: array[int] = field(default_factory=lambda: array("Q"))
    sizes: array[int] = field(default_factory=lambda: array("I"))
    names: array[int] = field(default_factory=lambda: array("I"))
    """Index of each instruction's mnemonic."""
    blocks: array[int] = field(default_factory=lambda: array("Q"))
    """First byte, and the one behind the last, of each block's message."""
    graphs: array[int] = field(default_factory=lambda: array("Q"))
    """The same for flow graphs."""
    vertices: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Address to name and type of each function."""
    text: OperandText | None = None

    def read(self, with_text: bool, deadline: Deadline) -> None:
        """Fills the tables.

        Raises:
            WireError: where the bytes are not a message.
        """
        data = self.data
        self.text = OperandText(data) if with_text else None
        for step, (number, start, end) in enumerate(fields(data, 0, len(data))):
            if step % STEPS_PER_CHECK == 0:
                deadline.check()
            if end < 0:
                continue
            if number == File.INSTRUCTION:
                self._instruction(start, end)
            elif number == File.BASIC_BLOCK:
                self.blocks.extend((start, end))
            elif number == File.FLOW_GRAPH:
                self.graphs.extend((start, end))
            elif number == File.MNEMONIC:
                self._mnemonic(start, end)
            elif number == File.CALL_GRAPH:
                self._call_graph(start, end)
            elif number == File.META:
                self._meta(start, end)
            elif number == File.EXPRESSION and self.text is not None:
                self.text.expressions.extend((start, end))
            elif number == File.OPERAND and self.text is not None:
                self.text.operands.extend((start, end))
        if self.names and max(self.names) >= len(self.mnemonics):
            raise WireError(len(data))
        if not SHA256.fullmatch(self.executable_id):
            self.executable_id = hashlib.sha256(data).hexdigest()

    def sorted_graphs(self) -> list[tuple[int, int, int]]:
        """Address of the entry, and the range of the message, of every flow graph with code."""
        graphs = []
        for start, end in zip(self.graphs[::2], self.graphs[1::2], strict=True):
            entry, first = None, None
            for number, value, behind in fields(self.data, start, end):
                if number == FlowGraph.ENTRY and behind < 0:
                    entry = signed(value)
                elif number == FlowGraph.BLOCKS and first is None:
                    first = next(numbers(self.data, value, behind), None)
            index = first if entry is None else entry
            if index is not None:
                instruction = next(self._positions(index), None)
                if instruction is not None:
                    graphs.append((self.addresses[instruction], start, end))
        return sorted(graphs)

    def graph(self, start: int, end: int) -> tuple[list[int], set[tuple[int, int]]]:
        """Blocks with code, and edges between them, of the flow graph in a range."""
        blocks: dict[int, None] = {}
        edges: list[tuple[int, int]] = []
        for number, value, behind in fields(self.data, start, end):
            if number == FlowGraph.BLOCKS:
                blocks.update(dict.fromkeys(numbers(self.data, value, behind)))
            elif number == FlowGraph.EDGE and behind >= 0:
                ends = dict.fromkeys((Edge.SOURCE, Edge.TARGET), -1)
                ends.update((key, at) for key, at, b in fields(self.data, value, behind) if b < 0)
                # Ghidra writes edges without a target for jumps that it could not resolve.
                edges.append((max(ends[Edge.SOURCE], 0), ends[Edge.TARGET]))
        kept = [index for index in blocks if self.length(index)]
        known = set(kept)
        return kept, {(a, b) for a, b in edges if a in known and b in known}

    def length(self, index: int) -> int:
        """How many instructions a block has."""
        return sum(max(0, last - first) for first, last in self._ranges(index))

    def block(self, index: int) -> Block:
        positions = list(self._positions(index))
        names = tuple(self.mnemonics[self.names[at]] for at in positions)
        size = sum(self.sizes[at] for at in positions)
        start = self.addresses[positions[0]]
        if self.text is None:
            return Block(start, size, names)
        return Block(start, size, names, tuple(map(self.text.line, positions, names)))

    def _positions(self, index: int) -> Iterator[int]:
        for first, last in self._ranges(index):
            yield from range(first, last)

    def _ranges(self, index: int) -> Iterator[tuple[int, int]]:
        """First instruction, and the one behind the last, of each stretch of a block.

        An end that is left out means one instruction. Ghidra gives a block without instructions
        a beginning of -1.
        """
        if not 0 <= 2 * index < len(self.blocks):
            raise WireError(len(self.data))
        for number, start, end in fields(self.data, *self.blocks[2 * index : 2 * index + 2]):
            if number != BasicBlock.INSTRUCTIONS or end < 0:
                continue
            values = {key: signed(v) for key, v, b in fields(self.data, start, end) if b < 0}
            first = values.get(IndexRange.BEGIN, 0)
            last = values.get(IndexRange.END, first + 1)
            if first < 0:
                continue
            if last > len(self.addresses):
                raise WireError(start)
            yield first, last

    def _instruction(self, start: int, end: int) -> None:
        # An address is left out where the instruction follows directly on the one before.
        address = self.addresses[-1] + self.sizes[-1] if self.addresses else 0
        size = name = 0
        for number, value, behind in fields(self.data, start, end):
            if number == Instruction.ADDRESS and behind < 0:
                address = value
            elif number == Instruction.RAW_BYTES and behind >= 0:
                size = behind - value
            elif number == Instruction.MNEMONIC and behind < 0:
                name = value
        if size >> 16 or name >> 31:
            raise WireError(start)
        self.addresses.append(address & 0xFFFFFFFFFFFFFFFF)
        self.sizes.append(size)
        self.names.append(name)
        if self.text is not None:
            self.text.instructions.extend((start, end))

    def _mnemonic(self, start: int, end: int) -> None:
        name = b""
        for number, value, behind in fields(self.data, start, end):
            if number == Mnemonic.NAME and behind >= 0:
                name = self.data[value:behind]
        self.mnemonics.append(canonical(_string(name)))

    def _call_graph(self, start: int, end: int) -> None:
        for number, vertex, behind in fields(self.data, start, end):
            if number != CallGraph.VERTEX or behind < 0:
                continue
            address, kind, name = 0, 0, ""
            for key, value, last in fields(self.data, vertex, behind):
                if key == Vertex.ADDRESS and last < 0:
                    address = value
                elif key == Vertex.TYPE and last < 0:
                    kind = value
                elif key == Vertex.NAME and last >= 0:
                    name = _string(self.data[value:last])
            self.vertices[address] = name, kind

    def _meta(self, start: int, end: int) -> None:
        for number, value, behind in fields(self.data, start, end):
            if number == Meta.EXECUTABLE_ID and behind >= 0:
                self.executable_id = _string(self.data[value:behind]).lower()
            elif number == Meta.ARCHITECTURE and behind >= 0:
                name = _string(self.data[value:behind]).lower()
                self.architecture = ARCHITECTURES.get(name, name)


def _string(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
