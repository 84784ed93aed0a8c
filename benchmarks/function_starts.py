"""Precision and recall of function starts, against what the same files say when nothing is hidden.

    python benchmarks/function_starts.py BINARY... [--json] [--hide WHAT...] [--peers NAME...]
        [--radare2 PROGRAM]

Each file is copied with some of what it says blotted out, and read again:

    symbols   symbol tables and lists of function starts; unwind tables and exports stay
    unwind    unwind tables as well: .eh_frame, .ARM.exidx, .pdata, __unwind_info
    exports   the exported functions as well

Truth is every function symbol of an ELF file or of a PE file that has a symbol table, the list of
function starts of a Mach-O file, and the exception directory of other PE files, which leaves out
leaf functions: there, only recall tells. Parts that compilers split off (``.cold``) are not
functions. Stubs of the linker (``.plt``, ``.MIPS.stubs``) count neither way, nor do PowerPC's
routines that save and restore registers, which have an entry for each register. Files whose names
tell a processor and a compiler (``x86_64-gcc-O2.so``) are counted together; others by format and
processor.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import lief
from radare2 import Absent, Radare2

from graphkin.binaries.backends.native import load
from graphkin.binaries.formats.pe.pdata import exception_ranges
from graphkin.binaries.recovery.ranges import COLD

HIDDEN = ("symbols", "unwind", "exports")
TABLES = (".eh_frame", ".eh_frame_hdr", ".ARM.exidx", ".ARM.extab")
UNWIND_SEGMENTS = (0x6474E550, 0x70000001)
"""PT_GNU_EH_FRAME and PT_ARM_EXIDX."""
FUNCTION_KINDS = (2, 10)
SAVED_REGISTERS = re.compile(r"_(save|rest)(gpr|fpr|vr)\d?_\d+(_x)?$")
"""PowerPC's routines that save and restore registers from one on."""


@dataclass
class Row:
    """One line of the table."""

    group: str
    hidden: str
    reader: str
    files: int = 0
    functions: int = 0
    found: int = 0
    right: int = 0
    seconds: float = 0.0

    @property
    def precision(self) -> float:
        return self.right / self.found if self.found else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.functions if self.functions else 0.0

    @property
    def f1(self) -> float:
        total = self.found + self.functions
        return 2 * self.right / total if total else 0.0

    def to_dict(self) -> dict[str, object]:
        measured = {"precision": self.precision, "recall": self.recall, "f1": self.f1}
        return asdict(self) | measured


class Elf:
    """The headers of an ELF file, to blot out what they tell."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)
        self._wide = data[4] == 2
        self._order = "little" if data[5] == 1 else "big"
        at = (0x28, 0x20, 0x36, 0x3A) if self._wide else (0x20, 0x1C, 0x2A, 0x2E)
        width = 8 if self._wide else 4
        self._sections_at, self._segments_at = self._get(at[0], width), self._get(at[1], width)
        self._segment_size, self._segments = self._get(at[2], 2), self._get(at[2] + 2, 2)
        self._section_size, self._sections = self._get(at[3], 2), self._get(at[3] + 2, 2)
        self._names = self._get(at[3] + 4, 2)

    def _get(self, at: int, width: int) -> int:
        return int.from_bytes(self.data[at : at + width], self._order)

    def _section(self, number: int) -> tuple[int, int, int, int, int]:
        """(header, name, kind, offset, size)."""
        header = self._sections_at + number * self._section_size
        if self._wide:
            offset, size = self._get(header + 24, 8), self._get(header + 32, 8)
        else:
            offset, size = self._get(header + 16, 4), self._get(header + 20, 4)
        return header, self._get(header, 4), self._get(header + 4, 4), offset, size

    def _drop(self, wanted: Callable[[str, int], bool]) -> None:
        strings = self._section(self._names)[3]
        for number in range(self._sections):
            header, name, kind, offset, size = self._section(number)
            end = self.data.index(0, strings + name)
            if not wanted(self.data[strings + name : end].decode(), kind):
                continue
            self.data[offset : offset + size] = bytes(size)
            blank = self._section_size - 4
            self.data[header + 4 : header + 4 + blank] = bytes(blank)

    def hide(self, what: str) -> None:
        if what == "symbols":
            self._drop(lambda _, kind: kind == 2)
        elif what == "unwind":
            self._drop(lambda name, _: name in TABLES)
            for number in range(self._segments):
                at = self._segments_at + number * self._segment_size
                if self._get(at, 4) in UNWIND_SEGMENTS:
                    self.data[at : at + 4] = bytes(4)
        else:
            self._hide_exports()

    def _hide_exports(self) -> None:
        """Functions of the dynamic symbol table become undefined data without a name's use."""
        for number in range(self._sections):
            _, _, kind, offset, size = self._section(number)
            step, info, home = (24, 4, 6) if self._wide else (16, 12, 14)
            for at in range(offset, offset + size, step) if kind == 11 else ():
                if self.data[at + info] & 15 in FUNCTION_KINDS and self._get(at + home, 2):
                    kept = self.data[at : at + 4]
                    self.data[at : at + step] = bytes(step)
                    self.data[at : at + 4] = kept


class Pe:
    """The same of a PE file."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)
        self._coff = int.from_bytes(data[0x3C:0x40], "little") + 4
        optional = self._coff + 20
        wide = data[optional : optional + 2] == b"\x0b\x02"
        self._directories = optional + (112 if wide else 96)
        self._sections = optional + int.from_bytes(
            data[self._coff + 16 : self._coff + 18], "little"
        )

    def hide(self, what: str) -> None:
        if what == "symbols":
            self.data[self._coff + 8 : self._coff + 16] = bytes(8)
            return
        number = 3 if what == "unwind" else 0
        at = self._directories + 8 * number
        self.data[at : at + 8] = bytes(8)
        count = int.from_bytes(self.data[self._coff + 2 : self._coff + 4], "little")
        for header in range(self._sections, self._sections + 40 * count, 40) if number else ():
            name = bytes(self.data[header : header + 8])
            if name.startswith((b".pdata", b".xdata", b".eh_fram", b"/")):
                size = int.from_bytes(self.data[header + 16 : header + 20], "little")
                offset = int.from_bytes(self.data[header + 20 : header + 24], "little")
                self.data[offset : offset + size] = bytes(size)
                self.data[header : header + 8] = b".hidden\0"


class MachO:
    """The same of a Mach-O file of one architecture."""

    SYMBOLS, SEGMENT, STARTS, TRIE = 0x2, 0x19, 0x26, 0x80000033

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)

    def hide(self, what: str) -> None:
        at = 32
        for _ in range(int.from_bytes(self.data[16:20], "little")):
            kind = int.from_bytes(self.data[at : at + 4], "little")
            size = int.from_bytes(self.data[at + 4 : at + 8], "little")
            if what == "symbols" and kind == self.STARTS:
                self.data[at + 12 : at + 16] = bytes(4)
            elif kind == self.SYMBOLS and what in ("symbols", "exports"):
                self._hide_symbols(at, is_external=what == "exports")
            elif what == "exports" and kind == self.TRIE:
                self.data[at + 12 : at + 16] = bytes(4)
            elif what == "unwind" and kind == self.SEGMENT:
                count = int.from_bytes(self.data[at + 64 : at + 68], "little")
                for header in range(at + 72, at + 72 + 80 * count, 80):
                    if self.data[header : header + 16].rstrip(b"\0") in UNWIND_SECTIONS:
                        self.data[header : header + 16] = b"__hidden".ljust(16, b"\0")
            at += size

    def _hide_symbols(self, at: int, is_external: bool) -> None:
        """Defined symbols become debug symbols without an address."""
        first, count = (
            int.from_bytes(self.data[at + field : at + field + 4], "little") for field in (8, 12)
        )
        for entry in range(first, first + 16 * count, 16):
            kind = self.data[entry + 4]
            if kind & 0x0E == 0x0E and bool(kind & 1) == is_external:
                self.data[entry + 4] = 0xE0
                self.data[entry + 8 : entry + 16] = bytes(8)


UNWIND_SECTIONS = (b"__unwind_info", b"__eh_frame")


def editor(data: bytes) -> Elf | Pe | MachO:
    if data.startswith(b"\x7fELF"):
        return Elf(data)
    return Pe(data) if data.startswith(b"MZ") else MachO(data)


def truth(path: Path) -> set[int]:
    """Starts of the functions that a file tells of."""
    data = path.read_bytes()
    if not data.startswith(b"\x7fELF"):
        if data.startswith(b"MZ") and not lief.PE.parse(data).symbols:
            return pdata_starts(data)
        return {extent.start for extent in load(data, str(path)).extents}
    binary = lief.ELF.parse(data)
    is_arm = binary.header.machine_type == lief.ELF.ARCH.ARM
    kinds = (lief.ELF.Symbol.TYPE.FUNC, lief.ELF.Symbol.TYPE.GNU_IFUNC)
    names: dict[int, bool] = {}
    for symbol in binary.symtab_symbols:
        if symbol.type in kinds and symbol.shndx:
            address = symbol.value & ~1 if is_arm else symbol.value
            whole = not COLD.search(str(symbol.name))
            names[address] = names.get(address, False) or whole
    return {address for address, whole in names.items() if whole}


def pdata_starts(data: bytes) -> set[int]:
    """Functions of the exception directory of a PE file."""
    binary = lief.PE.parse(data)
    base = binary.optional_header.imagebase
    entry = binary.data_directory(lief.PE.DataDirectory.TYPES.EXCEPTION_TABLE)

    def read(address: int, size: int) -> bytes:
        return bytes(binary.get_content_from_virtual_address(address, size))

    architecture = "aarch64" if "ARM64" in str(binary.header.machine) else "x86-64"
    ranges = exception_ranges(read(entry.rva, entry.size), read, architecture, base)
    return {item.start for item in ranges if not item.is_part}


def stub_ranges(path: Path) -> list[tuple[int, int]]:
    """What the linker made: sections of an ELF file, and jumps through slots of a PE file."""
    binary = lief.parse(str(path))
    if isinstance(binary, lief.PE.Binary):
        image = load(path.read_bytes(), str(path))
        starts = [extent.start for extent in image.extents]
        return [(start, start + 1) for start in starts if image.read(start, 2) == b"\xff\x25"]
    ranges = [
        (section.virtual_address, section.virtual_address + section.size)
        for section in binary.sections
        if str(section.name).startswith((".plt", ".MIPS.stubs"))
    ]
    if isinstance(binary, lief.ELF.Binary):
        ranges += [
            (symbol.value, symbol.value + 1)
            for symbol in binary.symtab_symbols
            if SAVED_REGISTERS.fullmatch(str(symbol.name))
        ]
    return ranges


def _outside(starts: set[int], ranges: list[tuple[int, int]]) -> set[int]:
    return {start for start in starts if not any(first <= start < end for first, end in ranges)}


def graphkin_starts(path: Path) -> set[int]:
    return {extent.start for extent in load(path.read_bytes(), str(path)).extents}


def smda_starts(path: Path) -> set[int]:
    from graphkin.binaries.backends.smda import _disassemble

    return {int(item.offset) for item in _disassemble(path.read_bytes(), 600).getFunctions()}


Reader = Callable[[Path], set[int]]


def readers_of(peers: list[str], program: str) -> dict[str, Reader]:
    """graphkin and the peers by name, of which one may be the program radare2."""
    readers: dict[str, Reader] = {"graphkin": graphkin_starts}
    if "smda" in peers:
        if importlib.util.find_spec("smda") is None:
            raise Absent("SMDA is not installed: pip install 'graphkin[smda]'")
        readers["smda"] = smda_starts
    if "radare2" in peers:
        radare2 = Radare2.at(program)
        print(f"radare2 {radare2.version}", file=sys.stderr)
        readers["radare2"] = radare2.starts
    return readers


def cpu_seconds() -> float:
    """CPU time of this process and of the programs that it ran."""
    programs = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + programs.ru_utime + programs.ru_stime


def group_of(path: Path) -> str:
    """Processor and compiler: ``x86_64-gcc`` of ``x86_64-gcc-O2.so``."""
    named = path.stem.rpartition("-O")[0]
    if named:
        return named
    image = load(path.read_bytes(), str(path))
    compiler = "MSVC" if "MSVC" in (image.compiler or "") else ""
    return " ".join(part for part in (image.format, image.architecture, compiler) if part)


def measure(paths: Iterable[Path], hidden: list[str], readers: dict[str, Reader]) -> list[Row]:
    rows: dict[tuple[str, str, str], Row] = {}
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            stubs, group = stub_ranges(path), group_of(path)
            real = _outside(truth(path), stubs)
            edited = editor(path.read_bytes())
            for what in HIDDEN[: 1 + max(map(HIDDEN.index, hidden))]:
                edited.hide(what)
                if what not in hidden:
                    continue
                copy = Path(folder) / path.name
                copy.write_bytes(edited.data)
                for reader, starts_of in readers.items():
                    begin = cpu_seconds()
                    starts = starts_of(copy)
                    seconds = cpu_seconds() - begin
                    starts = _outside(starts, stubs)
                    key = (group, what, reader)
                    row = rows.setdefault(key, Row(*key))
                    row.files += 1
                    row.functions += len(real)
                    row.found += len(starts)
                    row.right += len(starts & real)
                    row.seconds += seconds
    return list(rows.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("binaries", nargs="+", type=Path, metavar="BINARY")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--hide", nargs="+", choices=HIDDEN, default=list(HIDDEN))
    parser.add_argument("--peers", nargs="*", choices=["smda", "radare2"], default=[])
    parser.add_argument(
        "--radare2",
        default="radare2",
        metavar="PROGRAM",
        help="the program, or the Python of an environment with the wheel r2libr (radare2)",
    )
    options = parser.parse_args()
    try:
        readers = readers_of(options.peers, options.radare2)
    except Absent as error:
        parser.error(str(error))
    rows = measure(options.binaries, options.hide, readers)
    if options.json:
        json.dump([row.to_dict() for row in rows], sys.stdout, indent=2)
        print()
        return
    print(
        f"{'processor, compiler':<22}{'hidden':<9}{'reader':<10}{'files':>6}{'functions':>10}"
        f"{'precision':>10}{'recall':>8}{'F1':>7}{'functions/s':>13}"
    )
    for row in sorted(rows, key=lambda row: (row.group, HIDDEN.index(row.hidden), row.reader)):
        print(
            f"{row.group:<22}{row.hidden:<9}{row.reader:<10}{row.files:>6}{row.functions:>10}"
            f"{row.precision:>10.4f}{row.recall:>8.4f}{row.f1:>7.4f}"
            f"{row.found / max(row.seconds, 1e-9):>13.0f}"
        )


if __name__ == "__main__":
    main()
