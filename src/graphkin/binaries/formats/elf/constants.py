"""Numbers of the ELF specification and its supplements for processors; those that are used."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, IntFlag


class FileKind(IntEnum):
    """``e_type``."""

    RELOCATABLE = 1
    EXECUTABLE = 2


class Machine(IntEnum):
    """``e_machine``."""

    I386 = 3
    MIPS = 8
    PPC = 20
    PPC64 = 21
    ARM = 40
    X86_64 = 62
    AARCH64 = 183
    RISCV = 243


OTHER_MACHINES = {
    2: "SPARC",
    4: "M68K",
    15: "PARISC",
    18: "SPARC32PLUS",
    22: "S390",
    42: "SH",
    43: "SPARCV9",
    45: "ARC",
    50: "IA_64",
    75: "VAX",
    83: "AVR",
    94: "XTENSA",
    105: "MSP430",
    106: "BLACKFIN",
    164: "HEXAGON",
    189: "MICROBLAZE",
    195: "ARC_COMPACT2",
    247: "BPF",
    252: "CSKY",
    258: "LOONGARCH",
    0x9026: "ALPHA",
}
"""Processors to be named in errors."""


class SectionKind(IntEnum):
    """``sh_type``."""

    SYMBOLS = 2
    STRINGS = 3
    RELOCATIONS_WITH_ADDENDS = 4
    DYNAMIC = 6
    NOTE = 7
    NO_BYTES = 8
    RELOCATIONS = 9
    DYNAMIC_SYMBOLS = 11
    SECTION_NUMBERS = 18


class SectionFlag(IntFlag):
    """``sh_flags``."""

    WRITABLE = 1
    LOADED = 2
    EXECUTABLE = 4
    COMPRESSED = 0x800


class SegmentKind(IntEnum):
    """``p_type``."""

    LOAD = 1
    DYNAMIC = 2


class SegmentFlag(IntFlag):
    """``p_flags``."""

    EXECUTABLE = 1
    WRITABLE = 2


class SymbolKind(IntEnum):
    """The lower half of ``st_info``."""

    NONE = 0
    FUNCTION = 2
    FILE = 4
    INDIRECT_FUNCTION = 10


class Binding(IntEnum):
    """The upper half of ``st_info``."""

    LOCAL = 0
    GLOBAL = 1
    WEAK = 2


RELATIVE: Mapping[int, int] = {
    Machine.I386: 8,
    Machine.PPC: 22,
    Machine.PPC64: 22,
    Machine.ARM: 23,
    Machine.X86_64: 8,
    Machine.AARCH64: 1027,
    Machine.RISCV: 3,
}
"""Relocations of words that count from where the file is loaded. MIPS has none of its own."""
COPY: Mapping[int, int] = {
    Machine.I386: 5,
    Machine.ARM: 20,
    Machine.X86_64: 5,
    Machine.AARCH64: 1024,
}
"""Relocations of variables of other files that a program keeps in its own memory."""

UNDEFINED = 0
"""The section of a symbol that another file defines."""
ELSEWHERE = 0xFFFF
"""Stands for the number of a section that is too large for its field."""


class Tag(IntEnum):
    """``d_tag``."""

    END = 0
    PLT_RELOCATIONS_SIZE = 2
    PLT_GOT = 3
    HASH = 4
    STRINGS = 5
    SYMBOLS = 6
    RELA = 7
    RELA_SIZE = 8
    STRINGS_SIZE = 10
    INIT = 12
    FINI = 13
    REL = 17
    REL_SIZE = 18
    PLT_RELOCATIONS_KIND = 20
    PLT_RELOCATIONS = 23
    RELR_SIZE = 35
    RELR = 36
    ANDROID_REL = 0x6000000F
    ANDROID_REL_SIZE = 0x60000010
    ANDROID_RELA = 0x60000011
    ANDROID_RELA_SIZE = 0x60000012
    ANDROID_RELR = 0x6FFFE000
    ANDROID_RELR_SIZE = 0x6FFFE001
    GNU_HASH = 0x6FFFFEF5
    MIPS_LOCAL_ENTRIES = 0x7000000A
    MIPS_FIRST_GLOBAL_SYMBOL = 0x70000013
