"""PE files to images: programs and libraries of Windows, for x86-64, x86 and ARM64."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import lief
import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.formats.eh_frame import unwind_ranges
from graphkin.binaries.formats.golang.symbols import go_ranges, with_go_functions
from graphkin.binaries.formats.names import is_noreturn, text
from graphkin.binaries.formats.pe.pdata import exception_ranges
from graphkin.binaries.formats.truncation import cut_note
from graphkin.binaries.image import Image, Region, UnwindRange, disjoint
from graphkin.binaries.recovery.ranges import Symbol
from graphkin.binaries.starts.clues import Clues
from graphkin.binaries.starts.locate import locate
from graphkin.binaries.starts.sweep import MAX_ADDRESS
from graphkin.errors import FormatError

ARCHITECTURES = {
    lief.PE.Header.MACHINE_TYPES.AMD64: "x86-64",
    lief.PE.Header.MACHINE_TYPES.I386: "x86",
    lief.PE.Header.MACHINE_TYPES.ARM64: "aarch64",
}
EXECUTE = int(lief.PE.Section.CHARACTERISTICS.MEM_EXECUTE)
WRITE = int(lief.PE.Section.CHARACTERISTICS.MEM_WRITE)
DECORATED = re.compile(r"[_@]?([^@?]+)@\d+")
"""32-bit names with the bytes of their arguments behind them, ``_WinMain@16``."""
IDENT = re.compile(rb"GCC: \([ -~]{1,150}")
IL_ONLY = 1
HIGHLOW, DIR64 = 3, 10
PAGE = 0x1000
SYMBOL_BYTES = 18
DIRECTORY = lief.PE.DataDirectory.TYPES

lief.logging.disable()
JUMP = re.compile(rb"\xff\x25(?=(.{4}))", re.DOTALL)
"""``jmp [slot]``."""
BRANCH = 0xD61F0000
"""``br x0``; the register is in bits 5 to 9."""


def load_pe(data: bytes, label: str) -> Image:
    """Reads a PE file.

    Raises:
        FormatError: for a file that LIEF cannot read, an architecture that we do not, or
            a program that holds no machine code.
    """
    with warnings.catch_warnings():
        # LIEF warns of numbers that its enumerations lack; damaged files are full of them.
        warnings.simplefilter("ignore")
        config = lief.PE.ParserConfig()
        config.parse_signature = config.parse_rsrc = config.parse_reloc = False
        config.parse_exceptions = config.parse_arm64x_binary = False
        binary = lief.PE.parse(data, config)
        if binary is None:
            raise FormatError(
                f"{label} is a damaged PE file, or a program for DOS: its headers cannot be read"
            )
        architecture = ARCHITECTURES.get(binary.header.machine)
        if architecture is None:
            name = str(binary.header.machine).rpartition(".")[2]
            known = ", ".join(ARCHITECTURES.values())
            raise FormatError(f"{label} is code for {name}; graphkin reads {known}")
        image = _Reader(binary, data, label, architecture).image()
        ends = [_symbols_end(binary.header, data), *map(_end, binary.sections)]
        image.note = image.note or cut_note(max(ends), len(data))
        return image


def _symbols_end(header: lief.PE.Header, data: bytes) -> int:
    """Where the symbols end in the file, and their names behind them, whose size comes first."""
    if not header.pointerto_symbol_table:
        return 0
    names = header.pointerto_symbol_table + header.numberof_symbols * SYMBOL_BYTES
    return names + int.from_bytes(data[names : names + 4], "little")


def _end(section: lief.PE.Section) -> int:
    """Where a section ends in the file; what is behind its size in memory is padding."""
    size = min(section.sizeof_raw_data, section.virtual_size or section.sizeof_raw_data)
    return section.pointerto_raw_data + size if size else 0


class _Reader:
    """One file, and the regions that its sections become."""

    def __init__(self, binary: lief.PE.Binary, data: bytes, label: str, architecture: str) -> None:
        self._binary = binary
        self._label = label
        self._base = binary.optional_header.imagebase
        self._sections = list(binary.sections)
        regions = disjoint(_regions(self._sections, self._base, data))
        self._memory = Image("pe", architecture, regions, [], [], frozenset())
        self._architecture = architecture

    def image(self) -> Image:
        if self._is_il_only():
            raise FormatError(
                f"{self._label} is a .NET assembly: its code is made for a virtual machine"
            )
        regions = self._memory.regions
        named = self._symbols()
        exports = list(self._exports())
        unwind = self._unwind()
        slots = self._slots()
        stubs = _import_stubs(regions, slots, self._architecture)
        symbols = with_go_functions([*named, *exports], regions, self._architecture)
        entries = list(self._entries())
        width = 12 if self._architecture == "aarch64" else 6
        noreturn = {address for address, name in (slots | stubs).items() if is_noreturn(name)}
        noreturn |= {symbol.address for symbol in symbols if is_noreturn(symbol.name)}
        image = replace(
            self._memory,
            noreturn=frozenset(noreturn),
            compiler=self._compiler(),
            imports=slots | stubs,
        )
        tables = {
            "symbols": named,
            "exported symbols": exports,
            "unwind tables": unwind,
            "entry points": entries,
        }
        clues = Clues(
            symbols,
            bool(named),
            unwind,
            entries,
            self._pointers(),
            [(stub, stub + width) for stub in stubs] if not named else (),
            tuple(name for name, has in tables.items() if has),
            [(item.start, item.end) for item in go_ranges(symbols)],
        )
        return locate(image, clues)

    def _read(self, address: int, size: int) -> bytes:
        """Bytes at an address relative to the base of the image."""
        return self._memory.read(self._base + address, size)

    def _directory(self, kind: lief.PE.DataDirectory.TYPES) -> bytes:
        """Content of a data directory."""
        entry = self._binary.data_directory(kind)
        return b"" if entry is None or not entry.rva else self._read(entry.rva, entry.size)

    def _is_il_only(self) -> bool:
        header = self._directory(DIRECTORY.CLR_RUNTIME_HEADER)
        return len(header) >= 20 and bool(header[16] & IL_ONLY)

    def _symbols(self) -> list[Symbol]:
        """Functions of the COFF symbol table, which MinGW's linker keeps."""
        symbols = []
        unit = None
        for symbol in self._binary.symbols:
            if symbol.is_file_record:
                unit = _file_name(symbol)
            if symbol.complex_type != lief.COFF.Symbol.COMPLEX_TYPE.FUNCTION:
                continue
            if 0 < symbol.section_idx <= len(self._sections):
                section = self._sections[symbol.section_idx - 1]
                is_local = symbol.storage_class == lief.COFF.Symbol.STORAGE_CLASS.STATIC
                name = text(symbol.name)
                if self._architecture == "x86":
                    name = _undecorated(name, "_")
                address = self._base + section.virtual_address + symbol.value
                symbols.append(Symbol(address, 0, name, int(is_local), unit if is_local else None))
        return symbols

    def _exports(self) -> Iterator[Symbol]:
        table = self._binary.get_export()
        for entry in table.entries if table is not None else ():
            if not entry.is_forwarded and entry.address:
                name = text(entry.name)
                if self._architecture == "x86":
                    name = _undecorated(name, "")
                yield Symbol(self._base + entry.address, 0, name)

    def _entries(self) -> Iterator[int]:
        """Where the loader enters."""
        if self._binary.optional_header.addressof_entrypoint:
            yield self._base + self._binary.optional_header.addressof_entrypoint
        tls = self._binary.tls
        yield from tls.callbacks if tls is not None else ()

    def _unwind(self) -> list[UnwindRange]:
        directory = self._directory(DIRECTORY.EXCEPTION_TABLE)
        ranges = exception_ranges(directory, self._read, self._architecture, self._base)
        for section in self._sections:
            # The name is cut to 8 letters in stripped files.
            if not ranges and text(section.name).startswith(".eh_fram"):
                content = self._read(section.virtual_address, section.virtual_size)
                pointer = 4 if self._architecture == "x86" else 8
                ranges = unwind_ranges(content, self._base + section.virtual_address, pointer)
        return ranges

    def _slots(self) -> dict[int, str]:
        """Words that the loader fills with addresses of other libraries' functions."""
        return {
            self._base + entry.iat_address: text(entry.name)
            for library in self._binary.imports
            for entry in library.entries
            if not entry.is_ordinal
        }

    def _pointers(self) -> NDArray[np.int64]:
        """The words that move with the image: the base relocations list them."""
        table = self._directory(DIRECTORY.BASE_RELOCATION_TABLE)
        values = [np.empty(0, dtype=np.int64)]
        kind, width = (HIGHLOW, 4) if self._architecture == "x86" else (DIR64, 8)
        at = 0
        while at + 8 <= len(table):
            page = int.from_bytes(table[at : at + 4], "little")
            size = int.from_bytes(table[at + 4 : at + 8], "little")
            if size < 8:
                break
            listed = table[at + 8 : at + size]
            entries = np.frombuffer(listed[: len(listed) & ~1], dtype="<u2")
            offsets = np.unique(entries[entries >> 12 == kind] & 0xFFF).astype(np.int64)
            content = np.frombuffer(self._read(page, PAGE + width), dtype=np.uint8)
            offsets = offsets[offsets + width <= len(content)]
            words = content[offsets[:, None] + np.arange(width)].view(f"<u{width}").ravel()
            values.append(words[words < MAX_ADDRESS].astype(np.int64))
            at += size
        return np.unique(np.concatenate(values))

    def _compiler(self) -> str | None:
        for region in self._memory.regions:
            ident = None if region.executable else IDENT.search(region.data)
            if ident:
                return ident[0].decode("ascii")
        header = self._binary.optional_header
        linker = f"linker {header.major_linker_version}.{header.minor_linker_version}"
        return f"MSVC, {linker}" if self._binary.has_rich_header else linker


def _regions(sections: list[lief.PE.Section], base: int, data: bytes) -> Iterator[Region]:
    view = memoryview(data)
    for section in sections:
        # The rest of the file's alignment is not part of the section.
        size = min(section.sizeof_raw_data, section.virtual_size or section.sizeof_raw_data)
        content = view[section.pointerto_raw_data : section.pointerto_raw_data + size]
        executable = bool(section.characteristics & EXECUTE)
        writable = bool(section.characteristics & WRITE)
        yield Region(base + section.virtual_address, content, executable, writable)


def _file_name(symbol: lief.COFF.Symbol) -> str | None:
    for record in symbol.auxiliary_symbols:
        if isinstance(record, lief.COFF.AuxiliaryFile):
            try:
                return record.filename or None
            except UnicodeDecodeError:
                return None
    return None


def _undecorated(name: str, prefix: str) -> str:
    """The name in the source: without what 32-bit calling conventions add."""
    match = DECORATED.fullmatch(name)
    return match[1] if match else name.removeprefix(prefix)


def _import_stubs(
    regions: Sequence[Region], slots: Mapping[int, str], architecture: str
) -> dict[int, str]:
    """Address to name, for each stub: code that does nothing but jump through one of ``slots``.

    A function that ends in such a jump is listed at the jump: a call to there also ends where
    the imported function does.
    """
    find = {"x86": _x86, "x86-64": _x64, "aarch64": _arm64}.get(architecture)
    stubs: dict[int, str] = {}
    for region in regions:
        if region.executable and find is not None and slots:
            for stub, slot in find(region):
                if slot in slots:
                    stubs[stub] = slots[slot]
    return stubs


def _x86(region: Region) -> Iterator[tuple[int, int]]:
    for match in JUMP.finditer(region.data):
        yield region.start + match.start(), int.from_bytes(match[1], "little")


def _x64(region: Region) -> Iterator[tuple[int, int]]:
    for match in JUMP.finditer(region.data):
        stub = region.start + match.start()
        slot = stub + 6 + int.from_bytes(match[1], "little", signed=True)
        yield stub, slot
        # MSVC writes a prefix without meaning.
        if match.start() and region.data[match.start() - 1] == 0x48:
            yield stub - 1, slot


def _arm64(region: Region) -> Iterator[tuple[int, int]]:
    """``adrp X, page; ldr X, [X, offset]; br X``."""
    words = np.frombuffer(region.data[: len(region.data) & ~3], dtype="<u4")
    for at in (np.flatnonzero(words[2:] & 0xFFFFFC1F == BRANCH) + 2).tolist():
        page, load, jump = words[at - 2 : at + 1].tolist()
        register = jump >> 5 & 31
        if page & 0x9F00001F != 0x90000000 | register:
            continue
        if load & 0xFFC003FF != 0xF9400000 | register << 5 | register:
            continue
        pages = (page >> 5 & 0x7FFFF) << 2 | page >> 29 & 3
        pages -= (pages & 1 << 20) << 1
        stub = region.start + 4 * (at - 2)
        yield stub, (stub & ~0xFFF) + (pages << 12) + (load >> 10 & 0xFFF) * 8
