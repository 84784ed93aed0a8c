"""Mach-O files to images: programs, libraries and objects of macOS and iOS, x86-64 and ARM64."""

from __future__ import annotations

import struct
import warnings
from collections.abc import Iterable, Iterator

import lief

from graphkin.binaries.formats.eh_frame import unwind_ranges
from graphkin.binaries.formats.golang.symbols import go_functions, go_ranges, with_go_functions
from graphkin.binaries.formats.macho.objects import EMPTY_KINDS, resolve
from graphkin.binaries.formats.macho.symbols import LOCAL, SymbolTable
from graphkin.binaries.formats.names import is_noreturn, stack_failures
from graphkin.binaries.formats.truncation import cut_note
from graphkin.binaries.image import Image, Region, disjoint
from graphkin.binaries.recovery.ranges import Symbol
from graphkin.binaries.starts.clues import Clues
from graphkin.binaries.starts.locate import locate
from graphkin.errors import FormatError

ARCHITECTURES = {
    lief.MachO.Header.CPU_TYPE.X86_64: "x86-64",
    lief.MachO.Header.CPU_TYPE.ARM64: "aarch64",
}
INSTRUCTIONS = (
    lief.MachO.Section.FLAGS.PURE_INSTRUCTIONS,
    lief.MachO.Section.FLAGS.SOME_INSTRUCTIONS,
)
"""Flags of sections that hold nothing but code, or some."""
POINTER_KINDS = (6, 7, 16)
STUB_KIND = 8
POINTER = 8
UNWIND_HEADER = struct.Struct("<7I")
UNWIND_INDEX = struct.Struct("<3I")
UNWIND_PAGE = struct.Struct("<IHH")
REGULAR, COMPRESSED = 2, 3

lief.logging.disable()


def load_macho(data: bytes, label: str) -> Image:
    """Reads a Mach-O file of one architecture.

    Raises:
        FormatError: for a file that LIEF cannot read, an architecture that we do not, or
            encrypted code.
    """
    with warnings.catch_warnings():
        # LIEF warns of numbers that its enumerations lack; damaged files are full of them.
        warnings.simplefilter("ignore")
        parsed = lief.MachO.parse(data, lief.MachO.ParserConfig.quick)
        binary = parsed.at(0) if parsed is not None and parsed.size else None
        if binary is None:
            raise FormatError(f"{label} is a damaged Mach-O file: its headers cannot be read")
        architecture = ARCHITECTURES.get(binary.header.cpu_type)
        if architecture is None:
            name = str(binary.header.cpu_type).rpartition(".")[2]
            known = ", ".join(ARCHITECTURES.values())
            raise FormatError(f"{label} is code for {name}; graphkin reads {known}")
        encryption = binary.encryption_info
        if encryption is not None and encryption.crypt_id:
            raise FormatError(
                f"{label} is encrypted (cryptid {encryption.crypt_id}); "
                "read a copy that was decrypted on a device"
            )
        image = _Reader(binary, data, architecture).image()
        image.note = image.note or cut_note(max(_ends(binary)), len(data))
        return image


def _ends(binary: lief.MachO.Binary) -> Iterator[int]:
    """Where segments and the names of symbols end in the file."""
    yield 0
    for segment in binary.segments:
        yield segment.file_offset + segment.file_size
    symbols = binary.symbol_command
    if symbols is not None:
        yield symbols.strings_offset + symbols.strings_size


class _Reader:
    """One file with its symbols."""

    def __init__(self, binary: lief.MachO.Binary, data: bytes, architecture: str) -> None:
        self._binary = binary
        self._data = data
        self._architecture = architecture
        self._sections = list(binary.sections)
        self._table = SymbolTable.of(binary, data)
        self._is_object = binary.header.file_type == lief.MachO.Header.FILE_TYPE.OBJECT

    def image(self) -> Image:
        names: dict[int, str] = {}
        bindings: dict[int, int] = {}
        if self._is_object:
            contents = resolve(self._sections, self._data, self._table, self._architecture, names)
        else:
            contents = {
                number: self._content(section) for number, section in enumerate(self._sections)
            }
            bindings.update(self._bindings())
            names = {at: self._table.name(number) for at, number in bindings.items()}
        regions = disjoint(self._regions(contents))
        code = [number for number, section in enumerate(self._sections, 1) if _is_code(section)]
        clues = self._clues(
            with_go_functions(self._table.functions(code), regions, self._architecture)
        )
        noreturn = {address: name for address, name in names.items() if is_noreturn(name)}
        named = (symbol for symbol in clues.symbols if is_noreturn(symbol.name))
        noreturn |= {symbol.address: symbol.name for symbol in named}
        own = {
            at: address
            for at, number in bindings.items()
            if (address := self._table.defined(number)) is not None
        }
        image = Image(
            "macho",
            self._architecture,
            regions,
            [],
            [],
            frozenset(noreturn),
            compiler=_compiler(self._binary),
            stack_failures=stack_failures(noreturn),
            imports={at: name for at, name in names.items() if at not in own},
            forwards=own,
        )
        return locate(image, clues)

    def _content(self, section: lief.MachO.Section) -> memoryview:
        """The bytes that the file really has of a section."""
        if _kind(section) in EMPTY_KINDS:
            return memoryview(b"")
        return memoryview(self._data)[section.offset : section.offset + section.size]

    def _regions(self, contents: dict[int, memoryview | bytearray]) -> Iterator[Region]:
        for number, content in contents.items():
            section = self._sections[number]
            is_writable = _is_writable(section)
            yield Region(section.virtual_address, content, _is_code(section), is_writable)

    def _clues(self, named: list[Symbol]) -> Clues:
        """What the file says of where functions begin."""
        go = go_functions(named)
        command = self._binary.function_starts
        listed = set(command.functions) if command is not None else set()
        if listed:
            base = self._binary.imagebase
            starts = {base + offset for offset in listed}
            # Other names inside the code are labels, or second entries.
            starts.update(symbol.address for symbol in go)
            kept = [symbol for symbol in named if symbol.address in starts]
            starts -= {symbol.address for symbol in kept}
            symbols = [*kept, *(Symbol(address, 0, "") for address in starts)]
            return Clues(symbols, True, tables=("table of function starts",))
        # Who strips a file strips the names of static functions first.
        is_complete = self._is_object or any(symbol.rank == LOCAL for symbol in named)
        if is_complete:
            return Clues(named, True, tables=("symbols",))
        entries = list(self._unwound())
        tables = {"exported symbols": named, "unwind tables": entries}
        if self._binary.main_command is not None:
            entries.append(self._binary.imagebase + self._binary.main_command.entrypoint)
        return Clues(
            named,
            False,
            entries=entries,
            closed=[(item.start, item.end) for item in go_ranges(go)],
            tables=tuple(name for name, has in tables.items() if has),
        )

    def _unwound(self) -> Iterator[int]:
        for section in self._sections:
            if section.name == "__unwind_info":
                yield from compact_unwind_starts(
                    bytes(self._content(section)), self._binary.imagebase
                )
            elif section.name == "__eh_frame":
                content = bytes(self._content(section))
                for item in unwind_ranges(content, section.virtual_address, POINTER):
                    yield item.start

    def _bindings(self) -> Iterator[tuple[int, int]]:
        """Stubs and slots, each with the number of its symbol, by the indirect table."""
        command = self._binary.dynamic_symbol_command
        if command is None:
            return
        indirect = self._table.indirect(command.indirect_symbol_offset, command.nb_indirect_symbols)
        for section in self._sections:
            kind = _kind(section)
            step = section.reserved2 if kind == STUB_KIND else POINTER
            if kind not in (*POINTER_KINDS, STUB_KIND) or not step:
                continue
            first = section.reserved1
            for number, index in enumerate(indirect[first : first + section.size // step]):
                if self._table.name(index):
                    yield section.virtual_address + number * step, index


def _kind(section: lief.MachO.Section) -> int:
    return int(section.type)


def _is_code(section: lief.MachO.Section) -> bool:
    # Asking for all flags at once fails where a damaged file has bits that mean nothing.
    has_code = any(section.has(flag) for flag in INSTRUCTIONS)
    return has_code and _kind(section) == 0 and section.name != "__stub_helper"


def _is_writable(section: lief.MachO.Section) -> bool:
    # Objects have one segment, which may do everything; the name tells where a section will go.
    try:
        return section.segment_name != "__TEXT"
    except UnicodeDecodeError:
        return True


def _compiler(binary: lief.MachO.Binary) -> str | None:
    """``MACOS SDK 13.3, LD 857.1``: what the build version says."""
    build = binary.build_version
    if build is None:
        return None
    platform = str(build.platform).rpartition(".")[2]
    parts = [f"{platform} SDK {_version(build.sdk)}"] if any(build.sdk) else [platform]
    for tool in build.tools:
        name = str(tool.tool).rpartition(".")[2]
        if not name.isdigit() and any(tool.version):
            parts.append(f"{name} {_version(tool.version)}")
    return ", ".join(parts)


def _version(numbers: Iterable[int]) -> str:
    major, minor, patch = numbers
    return f"{major}.{minor}.{patch}" if patch else f"{major}.{minor}"


def compact_unwind_starts(content: bytes, base: int) -> Iterator[int]:
    """Addresses of the entries of ``__unwind_info``.

    Linkers leave out functions that unwind like the one before.

    Args:
        base: address of the image's header, which all offsets count from.
    """
    if len(content) < UNWIND_HEADER.size:
        return
    *_, index, count = UNWIND_HEADER.unpack_from(content)
    last = min(index + count * UNWIND_INDEX.size, len(content) - UNWIND_INDEX.size + 1)
    for at in range(index, last, UNWIND_INDEX.size):
        first, page, _ = UNWIND_INDEX.unpack_from(content, at)
        # The last entry has no page: it marks the end of the code.
        if page:
            yield from (base + offset for offset in _unwind_page(content, page, first))


def _unwind_page(content: bytes, page: int, first: int) -> Iterator[int]:
    if page + UNWIND_PAGE.size > len(content):
        return
    kind, offset, count = UNWIND_PAGE.unpack_from(content, page)
    width = {REGULAR: 8, COMPRESSED: 4}.get(kind)
    if width is None:
        return
    for number in range(count):
        at = page + offset + number * width
        entry = content[at : at + 4]
        if len(entry) < 4:
            return
        value = int.from_bytes(entry, "little")
        yield value if kind == REGULAR else first + (value & 0xFFFFFF)
