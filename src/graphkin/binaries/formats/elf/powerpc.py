"""What ELF files for PowerPC have of their own: two entries of a function, and stubs amid the code.

Code of 64 bits finds its data by the table of contents, whose address is in r2. A function that
needs it computes it first, from its own address in r12. Callers that have the same table enter
behind that, at the *local* entry; the symbol has the *global* one, and says how far it is.

The linker puts its stubs into ``.text``. Each loads the address of a function of another file from
a slot of ``.plt``, and jumps there. At first, the slots lead to the resolver of the linker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.formats.elf.constants import FileKind
from graphkin.binaries.formats.elf.reader import ElfFile
from graphkin.binaries.formats.elf.symbols import defined_functions
from graphkin.binaries.image import ByteOrder, Region
from graphkin.binaries.processors.powerpc.abi_tables import guessed_contents, traceback_tables
from graphkin.binaries.starts.sweep import MAX_ADDRESS
from graphkin.errors import FormatError

Words = NDArray[np.int64]

TOC_OFFSET = 0x8000
"""How far r2 points behind the start of the table, so that signed offsets reach all of it."""
ABI = 3
ELF_V1 = 1
MTCTR, BCTR, BLR = (0x7D6903A6, 0x7D8903A6), 0x4E800420, 0x4E800020
"""``mtctr r11`` and ``mtctr r12``."""
SAVE_TOC = 0xF8410018
"""``std r2, 24(r1)``."""
MFLR, BCL, MTLR, NOP = 0x7C0802A6, 0x429F0005, 0x7C0803A6, 0x60000000
RESOLVER_REACH = 20
"""Instructions of the resolver."""


def check(binary: ElfFile, label: str) -> None:
    """Refuses code that is not read.

    Raises:
        FormatError: for 32-bit code that is little-endian, 64-bit code that is big-endian or of the
            first ABI, whose symbols are not addresses of code, and objects.
    """
    header = binary.header
    is_wide, is_little = header.is_wide, header.order == "little"
    if is_wide != is_little or (is_wide and header.flags & ABI == ELF_V1):
        bits, order = (64 if is_wide else 32), ("little" if is_little else "big")
        abi = " of the ABI ELFv1" if is_wide and header.flags & ABI == ELF_V1 else ""
        raise FormatError(
            f"{label} is {order}-endian code for PowerPC of {bits} bits{abi}; graphkin reads "
            "big-endian code of 32 bits, and little-endian code of 64 bits of the ABI ELFv2"
        )
    if header.kind == FileKind.RELOCATABLE:
        raise FormatError(f"{label} is an object of PowerPC; graphkin reads it once it is linked")


def without_writable_code(regions: Iterable[Region]) -> list[Region]:
    """Older files run an instruction ahead of their global offset table, which is no function."""
    return [region._replace(executable=region.executable and not region.writable)
            for region in regions]  # fmt: skip


def table_of_contents(binary: ElfFile, regions: Iterable[Region], order: ByteOrder) -> int | None:
    """What r2 holds in 64-bit code."""
    for symbol in binary.symbols:
        if symbol.name == ".TOC." and 0 < symbol.value < MAX_ADDRESS:
            return symbol.value
    sections = {section.name: section.address for section in binary.sections}
    start = sections.get(".got", sections.get(".toc"))
    if start is not None and start < MAX_ADDRESS:
        return start + TOC_OFFSET
    guesses = (guessed_contents(words, base) for base, words in _code(regions, order))
    return next((guess for guess in guesses if guess is not None), None)


def local_entries(binaries: Iterable[ElfFile]) -> dict[int, int]:
    """Local entries of functions, each with the global one, as the symbols of files tell."""
    return {
        symbol.value + (1 << size): symbol.value
        for binary in binaries
        for table in (binary.symbols, binary.dynamic_symbols)
        for symbol in defined_functions(table)
        if 2 <= (size := symbol.other >> 5) <= 6
    }


class Stubs(NamedTuple):
    """The code that the linker made."""

    names: dict[int, str]
    """Stubs that lead to a named function, each with its name."""
    ranges: list[tuple[int, int]]
    """All of it."""


def stubs(
    regions: Sequence[Region],
    slots: Mapping[int, str],
    tables: Sequence[tuple[int, int]],
    pointer: int,
    got: int | None,
    order: ByteOrder,
) -> Stubs:
    """The stubs of a file.

    Args:
        regions: those with code are searched.
        slots: words that the loader fills with the address of a named function.
        tables: (start, size) of the sections with slots; stubs also lead to those without a name.
        pointer: width of an address in bytes.
        got: what r2 holds in 64-bit code.
        order: of the bytes of a word.
    """
    toc = got if pointer == 8 else None
    names: dict[int, str] = {}
    ranges: list[tuple[int, int]] = []
    for base, words in _code(regions, order):
        for jump in np.flatnonzero(words == BCTR).tolist():
            stub = _stub(words[max(0, jump - 4) : jump].tolist(), toc)
            if stub is None:
                continue
            count, slot = stub
            start = base + 4 * (jump - count)
            if slot is not None and slot in slots:
                names[start] = slots[slot]
            elif slot is not None and not any(at <= slot < at + size for at, size in tables):
                continue
            ranges.append((start, base + 4 * (jump + 1)))
        ranges += ((base + 4 * first, base + 4 * end) for first, end in _resolvers(words))
    return Stubs(names, sorted(ranges))


def notes(regions: Iterable[Region], order: ByteOrder) -> list[tuple[int, int]]:
    """Ranges of the tables behind functions of 64-bit code."""
    return [
        (base + 4 * first, base + 4 * end)
        for base, words in _code(regions, order)
        for first, end in traceback_tables(words)
    ]


def _code(regions: Iterable[Region], order: ByteOrder) -> Iterator[tuple[int, Words]]:
    """The words of regions with code, each with the address of the first."""
    for region in regions:
        if region.executable and region.end < MAX_ADDRESS:
            lead = -region.start % 4
            data = region.data[lead : lead + (len(region.data) - lead) // 4 * 4]
            words = np.frombuffer(data, dtype="<u4" if order == "little" else ">u4")
            yield region.start + lead, words.astype(np.int64)


def _stub(before: list[int], toc: int | None) -> tuple[int, int | None] | None:
    """Instructions of a stub ahead of its jump, and the slot that it jumps through.

    The slot is None where it counts from r30, and so depends on who calls the stub.
    """
    if len(before) < 2 or before.pop() not in MTCTR:
        return None
    load = before.pop()
    count, target, base = 2, load >> 21 & 31, load >> 16 & 31
    low = (load & 0x7FFF) - (load & 0x8000)
    if target not in (11, 12) or load >> 26 != (32 if toc is None else 58):
        return None
    upper = before[-1] if before else 0
    high = 0
    if base == target and upper >> 26 == 15 and upper >> 21 & 31 == target:
        before.pop()
        count, base = 3, upper >> 16 & 31
        high = ((upper & 0x7FFF) - (upper & 0x8000)) << 16
    if toc is None:
        if base == 30:
            return count, None
        return (count, (high + low) & 0xFFFFFFFF) if base == 0 and count == 3 else None
    if base != 2 or not before or before[-1] != SAVE_TOC:
        return None
    return count + 1, toc + high + low


def _resolvers(words: Words) -> Iterator[tuple[int, int]]:
    """First word of each resolver with its table of jumps, and the word behind them."""
    is_start = (words[:-1] == MFLR) & (words[1:] == BCL)
    for at in np.flatnonzero(is_start).tolist():
        row = words[at : at + RESOLVER_REACH].tolist()
        end = row.index(BCTR) if BCTR in row else 0
        if MTLR not in row[:6] or BLR in row[:end] or not end:
            continue
        first, behind = at, at + end + 1
        if first and words[first - 1] >> 16 == 0x3D6B:  # addis r11, r11, as 32-bit code has it
            first -= 1
        entry = first
        while first and (words[first - 1] == NOP or _goes_to(words, first - 1, entry)):
            first -= 1
        # How far the slots are is a number in the code of 64 bits, ahead of it or behind it.
        numbers = behind
        while numbers < min(behind + 2, len(words)) and not words[numbers] >> 26:
            numbers += 1
        while numbers < len(words) and _goes_to(words, numbers, entry):
            numbers += 1
            behind = numbers
        yield first, behind


def _goes_to(words: Words, at: int, target: int) -> bool:
    """Whether a word is a jump to another."""
    word = int(words[at])
    distance = (word & 0x1FFFFFC) - (word & 0x2000000)
    return word & 0xFC000003 == 0x48000000 and 4 * at + distance == 4 * target
