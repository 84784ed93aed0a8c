"""Functions found by SMDA, which needs no symbols or tables to tell where they start.

It is several times slower than the default backend and misses jump tables, so it is for files
where that one finds no starts: stripped of their symbols, and without unwind tables.
"""

from __future__ import annotations

import hashlib
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from graphkin._support.files import PathLike
from graphkin.binaries.backends.base import FunctionSource, extent_of, format_of, read_binary
from graphkin.binaries.formats.archive import FAT
from graphkin.binaries.function import Block, Function
from graphkin.errors import FormatError, MissingDependencyError

HEADER_BYTES = 64
"""The shortest file that any of these formats allows; SMDA disassembles shorter ones as code."""
MADE_UP = "original_entry_point"
"""SMDA's name for the entry of any program, which would make kin of them all."""


def is_installed() -> bool:
    return find_spec("smda") is not None


def check_installed() -> None:
    """Says how to get the package smda where it is missing."""
    if not is_installed():
        raise MissingDependencyError(
            "the package smda is not installed; get it with: pip install 'graphkin[smda]'"
        )


@dataclass
class SmdaSource(FunctionSource):
    """Functions of one executable or shared object. A function's size is that of its blocks."""

    path: PathLike

    def functions(self) -> Iterator[Function]:
        """Every function in the order of addresses.

        Raises:
            FormatError: for a file that cannot be read, or is not a binary that SMDA knows.
            MissingDependencyError: without the package smda.
        """
        data = read_binary(self.path, self.limits.file_bytes)
        label = str(self.path)
        kind = "macho" if data.startswith(FAT) else format_of(data)
        if kind is None or len(data) < HEADER_BYTES:
            raise FormatError(
                f"{label} is not an ELF, PE or Mach-O file: it begins with {data[:8]!r}"
            )
        report = _disassemble(data, self.limits.seconds)
        if report.status == "error" or report.architecture is None:
            raise FormatError(f"SMDA cannot read {label}: {_last_line(report.message)}")
        architecture = _architecture(report.architecture, report.bitness)
        digest = hashlib.sha256(data).hexdigest()
        for item in sorted(report.getFunctions(), key=lambda item: int(item.offset)):
            name = item.function_name
            if not name or name == MADE_UP:
                name = f"sub_{item.offset:x}"
            blocks, edges = self._graph(item)
            size = sum(block.size for block in blocks)
            if not blocks or size > self.limits.function_bytes:
                reason = f"{size} bytes of code, over the limit of {self.limits.function_bytes}"
                self.skip(label, name, reason if blocks else "it has no blocks")
                continue
            function = Function(
                name=name,
                address=item.offset,
                size=size,
                blocks=blocks,
                edges=edges,
                architecture=architecture,
                format=kind,
                file_hash=digest,
                binary=label,
            )
            if self.is_wanted(extent_of(function)):
                yield function
        if report.status == "timeout":
            reason = f"the time of {self.limits.seconds:g} s is over, and functions may be missing"
            self.skip(label, "", reason)
        elif not report.num_functions:
            self.skip(label, "", "SMDA finds no function in it")

    def _graph(self, item: Any) -> tuple[tuple[Block, ...], tuple[tuple[int, int], ...]]:
        blocks = [self._block(block.getInstructions()) for block in item.getBlocks()]
        # The entry comes first, which is not always the lowest address.
        blocks.sort(key=lambda block: (block.address != item.offset, block.address))
        numbers = {block.address: number for number, block in enumerate(blocks)}
        edges = {
            (numbers[source], numbers[target])
            for source, targets in item.blockrefs.items()
            for target in targets
            if source in numbers and target in numbers
        }
        return tuple(blocks), tuple(sorted(edges))

    def _block(self, items: Any) -> Block:
        instructions = list(items)
        names = tuple(sys.intern(item.mnemonic) for item in instructions)
        size = sum(len(item.bytes) // 2 for item in instructions)
        if not self.with_text:
            return Block(instructions[0].offset, size, names)
        text = tuple(f"{item.mnemonic} {item.operands}".rstrip() for item in instructions)
        return Block(instructions[0].offset, size, names, text)


def _disassemble(data: bytes, seconds: float) -> Any:
    """SMDA's report, without the hashes and measures that nothing here needs."""
    check_installed()
    from smda.Disassembler import Disassembler
    from smda.SmdaConfig import SmdaConfig

    config: Any = SmdaConfig()  # type: ignore[no-untyped-call]
    config.TIMEOUT = max(1, round(seconds))
    config.CALCULATE_HASHING = config.CALCULATE_SCC = config.CALCULATE_NESTING = False
    with _silence():
        return Disassembler(config).disassembleUnmappedBuffer(data)


@contextmanager
def _silence() -> Iterator[None]:
    """SMDA and LIEF report their doubts of damaged files to the log, and as warnings."""
    logger = logging.getLogger("smda")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _architecture(name: str, bitness: int | None) -> str:
    if name == "intel":
        return "x86-64" if bitness == 64 else "x86"
    return name


def _last_line(message: str | None) -> str:
    """SMDA's message for an error is a traceback, of which the end says what happened."""
    lines = (message or "it says no more").strip().splitlines()
    return lines[-1].strip()
