"""BinExport files, version 2: what Ghidra, IDA or Binary Ninja found in a binary.

The format is a protocol buffer in which every instruction, block and name is stored once, and
referred to by its index. The layout is that of ``binexport2.proto`` in google/binexport.
"""

from __future__ import annotations

import hashlib
import re
import time
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from graphkin._support.files import PathLike
from graphkin.binaries.backends.binexport.operands import OperandText, canonical
from graphkin.binaries.backends.binexport.wire import WireError, fields, numbers, signed
from graphkin.binaries.backends.native import Limits, read_binary
from graphkin.binaries.function import Block, Function, FunctionSource, Skipped
from graphkin.errors import FormatError

SUFFIX = ".binexport"
META, EXPRESSION, OPERAND, MNEMONIC, INSTRUCTION, BASIC_BLOCK, FLOW_GRAPH, CALL_GRAPH = range(1, 9)
IMPORTED, THUNK, INVALID = 2, 3, 4
SHA256 = re.compile(r"[0-9a-fA-F]{64}")
ARCHITECTURES = {"x86-32": "x86", "aarch64-64": "aarch64", "arm-64": "aarch64", "arm-32": "arm"}
STEPS_PER_CHECK = 1 << 14
Check = Callable[[], None]


class _OutOfTime(Exception):
    pass


def is_binexport(path: PathLike, head: bytes) -> bool:
    """Whether a file is a BinExport file, by its name or its first bytes (1,000 or so).

    Such a file begins with the description of the executable: texts in the fields 1 to 3.
    """
    if Path(path).suffix.lower() == SUFFIX:
        return True
    try:
        number, start, end = next(fields(head, 0, len(head)), (0, 0, 0))
        if number != META or end < 0:
            return False
        inside = list(fields(head, start, end))
    except WireError:
        return False
    texts = [head[a:b] for number, a, b in inside if number <= 3 and b >= 0]
    return (
        bool(texts)
        and all(number <= 5 for number, _, _ in inside)
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
    with_text: bool = False
    """Keeps the text of every instruction, for pictures."""
    limits: Limits = field(default_factory=Limits)

    def functions(self) -> Iterator[Function]:
        """Every function in the order of addresses.

        Raises:
            FormatError: for a file that cannot be read, or is damaged.
        """
        data = read_binary(self.path, self.limits.file_bytes)
        label = str(self.path)
        deadline = time.monotonic() + self.limits.seconds

        def check() -> None:
            if time.monotonic() > deadline:
                raise _OutOfTime

        try:
            tables = _Tables(data)
            tables.read(self.with_text, check)
            yield from self._functions(tables, label, check)
        except WireError as error:
            raise FormatError(f"{label} is no BinExport file, or damaged: {error}") from error
        except _OutOfTime:
            reason = f"the time of {self.limits.seconds:g} s is over"
            self.skipped.append(Skipped(label, "", reason))

    def _functions(self, tables: _Tables, label: str, check: Check) -> Iterator[Function]:
        if not tables.graphs:
            self.skipped.append(Skipped(label, "", "it has no flow graph of any function"))
        for address, start, end in tables.sorted_graphs():
            check()
            name, kind = tables.vertices.get(address, ("", 0))
            if kind in (IMPORTED, THUNK):
                continue
            name = name or f"sub_{address:x}"
            numbers, edges = tables.graph(start, end)
            count = sum(tables.length(number) for number in numbers)
            if kind == INVALID or count > self.limits.function_bytes:
                reason = f"{count} instructions, over the limit of {self.limits.function_bytes}"
                reason = "its maker marked it as invalid" if kind == INVALID else reason
                self.skipped.append(Skipped(label, name, reason))
                continue
            blocks = {number: tables.block(number) for number in numbers}
            order = sorted(blocks, key=lambda number: blocks[number].address)
            # The entry comes first; the sort leaves the others in their order.
            order.sort(key=lambda number: blocks[number].address != address)
            place = {number: rank for rank, number in enumerate(order)}
            yield Function(
                name,
                address,
                sum(block.size for block in blocks.values()),
                tuple(blocks[number] for number in order),
                tuple(sorted((place[a], place[b]) for a, b in edges)),
                tables.architecture,
                "binexport",
                tables.executable_id,
                label,
            )


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

    def read(self, with_text: bool, check: Check) -> None:
        """Fills the tables.

        Raises:
            WireError: where the bytes are no message.
        """
        data = self.data
        self.text = OperandText(data) if with_text else None
        for step, (number, start, end) in enumerate(fields(data, 0, len(data))):
            if step % STEPS_PER_CHECK == 0:
                check()
            if end < 0:
                continue
            if number == INSTRUCTION:
                self._instruction(start, end)
            elif number == BASIC_BLOCK:
                self.blocks.extend((start, end))
            elif number == FLOW_GRAPH:
                self.graphs.extend((start, end))
            elif number == MNEMONIC:
                names = [data[a:b] for key, a, b in fields(data, start, end) if key == 1 and b >= 0]
                self.mnemonics.append(canonical(_string(names[-1] if names else b"")))
            elif number == CALL_GRAPH:
                self._call_graph(start, end)
            elif number == META:
                self._meta(start, end)
            elif number == EXPRESSION and self.text is not None:
                self.text.expressions.extend((start, end))
            elif number == OPERAND and self.text is not None:
                self.text.operands.extend((start, end))
        if self.names and max(self.names) >= len(self.mnemonics):
            raise WireError(len(data))
        if not SHA256.fullmatch(self.executable_id):
            self.executable_id = hashlib.sha256(data).hexdigest()

    def sorted_graphs(self) -> list[tuple[int, int, int]]:
        """Address of the entry, and the range of the message, of every flow graph with code."""
        found = []
        for start, end in zip(self.graphs[::2], self.graphs[1::2], strict=True):
            entry, first = None, None
            for number, value, behind in fields(self.data, start, end):
                if number == 3 and behind < 0:
                    entry = signed(value)
                elif number == 1 and first is None:
                    first = next(numbers(self.data, value, behind), None)
            index = first if entry is None else entry
            if index is not None:
                instruction = next(self._positions(index), None)
                if instruction is not None:
                    found.append((self.addresses[instruction], start, end))
        return sorted(found)

    def graph(self, start: int, end: int) -> tuple[list[int], set[tuple[int, int]]]:
        """Blocks with code, and edges between them, of the flow graph in a range."""
        found: dict[int, None] = {}
        edges: list[tuple[int, int]] = []
        for number, value, behind in fields(self.data, start, end):
            if number == 1:
                found.update(dict.fromkeys(numbers(self.data, value, behind)))
            elif number == 2 and behind >= 0:
                ends = dict.fromkeys((1, 2), -1)
                ends.update((key, at) for key, at, b in fields(self.data, value, behind) if b < 0)
                # Ghidra writes edges without a target for jumps that it could not resolve.
                edges.append((max(ends[1], 0), ends[2]))
        kept = [index for index in found if self.length(index)]
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
            if number != 1 or end < 0:
                continue
            values = {key: signed(v) for key, v, b in fields(self.data, start, end) if b < 0}
            first = values.get(1, 0)
            last = values.get(2, first + 1)
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
            if number == 1 and behind < 0:
                address = value
            elif number == 5 and behind >= 0:
                size = behind - value
            elif number == 3 and behind < 0:
                name = value
        if size >> 16 or name >> 31:
            raise WireError(start)
        self.addresses.append(address & 0xFFFFFFFFFFFFFFFF)
        self.sizes.append(size)
        self.names.append(name)
        if self.text is not None:
            self.text.instructions.extend((start, end))

    def _call_graph(self, start: int, end: int) -> None:
        for number, vertex, behind in fields(self.data, start, end):
            if number != 1 or behind < 0:
                continue
            address, kind, name = 0, 0, ""
            for key, value, last in fields(self.data, vertex, behind):
                if key == 1 and last < 0:
                    address = value
                elif key == 2 and last < 0:
                    kind = value
                elif key == 3 and last >= 0:
                    name = _string(self.data[value:last])
            self.vertices[address] = name, kind

    def _meta(self, start: int, end: int) -> None:
        for number, value, behind in fields(self.data, start, end):
            if number == 2 and behind >= 0:
                self.executable_id = _string(self.data[value:behind]).lower()
            elif number == 3 and behind >= 0:
                name = _string(self.data[value:behind]).lower()
                self.architecture = ARCHITECTURES.get(name, name)


def _string(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
