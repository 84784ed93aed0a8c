"""What ELF files for MIPS have of their own: a global offset table that the symbols describe.

Its first entries belong to the file (addresses of pages, and of local functions); one entry for
each of the last dynamic symbols follows. There are no relocations for them. A symbol of another
file has the address of its stub as value, which has the loader find the function at its first call.
"""

from __future__ import annotations

from graphkin.binaries.formats.elf.constants import UNDEFINED, FileKind, SymbolKind, Tag
from graphkin.binaries.formats.elf.reader import ElfFile
from graphkin.binaries.formats.elf.symbol_table import ElfSymbol
from graphkin.binaries.formats.elf.symbols import defined_functions
from graphkin.errors import FormatError

GP_OFFSET = 0x7FF0
"""How far ``$gp`` points behind the start of the table, so that signed offsets reach all of it."""
N32 = 0x20
RELEASE = 0xF0000000
RELEASE_6 = (0x90000000, 0xA0000000)
MIPS16, MICROMIPS, COMPRESSED = 0xF0, 0x80, 0xF0
STUBS = "_MIPS_STUBS_"
MAX_SYMBOLS = 1 << 22


def check(binary: ElfFile, label: str) -> None:
    """Refuses code that is not read.

    Raises:
        FormatError: for release 6, whose branches differ, for the n32 ABI, and for objects of
            64 bits, whose relocations are of another kind.
    """
    flags = binary.header.flags
    if flags & RELEASE in RELEASE_6:
        raise FormatError(f"{label} is code for MIPS release 6; graphkin reads releases 1 to 5")
    is_wide = binary.header.is_wide
    if is_wide and binary.header.kind == FileKind.RELOCATABLE:
        raise FormatError(f"{label} is an object of MIPS64; graphkin reads it once it is linked")
    if flags & N32 and not is_wide:
        raise FormatError(f"{label} is MIPS code of the ABI n32; graphkin reads o32 and n64")


def global_pointer(binary: ElfFile) -> int | None:
    """What ``$gp`` holds in most functions."""
    for section in binary.sections:
        if section.name == ".got" and section.address:
            return section.address + GP_OFFSET
    start = binary.dynamic.get(Tag.PLT_GOT)
    return start + GP_OFFSET if start else None


def global_slots(binary: ElfFile, pointer: int) -> list[tuple[int, str, int, bool]]:
    """(address, name, value, whether another file defines it) of the entries for symbols; the
    value is 0 where it is not known.

    Args:
        pointer: width of an entry in bytes.
    """
    start = binary.dynamic.get(Tag.PLT_GOT)
    first = binary.dynamic.get(Tag.MIPS_FIRST_GLOBAL_SYMBOL)
    local = binary.dynamic.get(Tag.MIPS_LOCAL_ENTRIES) or 0
    if not start or not first or max(first, local) > MAX_SYMBOLS:
        return []
    symbols = list(binary.dynamic_symbols)[first:]
    return [
        (
            start + pointer * (local + number),
            symbol.name,
            symbol.value,
            symbol.section == UNDEFINED and bool(symbol.name),
        )
        for number, symbol in enumerate(symbols)
    ]


def imports(binary: ElfFile) -> dict[int, str]:
    """Stubs of functions of other files: address to name."""
    return {
        symbol.value: symbol.name
        for symbol in binary.dynamic_symbols.of_kinds(SymbolKind.FUNCTION)
        if symbol.section == UNDEFINED and symbol.value
    }


def is_read(symbol: ElfSymbol) -> bool:
    """Whether a symbol can be one of a function to read: no stubs of the linker, whose symbol
    looks like a function, and none of MIPS16 and microMIPS code."""
    return symbol.name != STUBS and not _is_compressed(symbol)


def compressed(binary: ElfFile) -> set[int]:
    """Where functions of MIPS16 and microMIPS code are."""
    return {
        symbol.value & ~1
        for table in (binary.symbols, binary.dynamic_symbols)
        for symbol in defined_functions(table)
        if _is_compressed(symbol)
    }


def compressed_note(count: int) -> str | None:
    """What to say of a file with functions that are not read."""
    if not count:
        return None
    return f"{count} functions are MIPS16 or microMIPS code, which graphkin does not read"


def _is_compressed(symbol: ElfSymbol) -> bool:
    return symbol.other & COMPRESSED in (MIPS16, MICROMIPS) or bool(symbol.value & 1)
