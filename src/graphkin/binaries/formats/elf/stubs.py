"""Stubs of the procedure linkage table: each jumps through a slot that has a name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from graphkin.binaries.image import ByteOrder
from graphkin.binaries.starts.thumb_instructions import THUMB_ENTRIES

Stubs = Iterator[tuple[int, str]]
"""(address, name) of each stub; one that can be entered at two addresses is there twice."""


def stubs(
    architecture: str, code: bytes, start: int, slots: Mapping[int, str], got: int | None
) -> Stubs:
    """The stubs in a section.

    Args:
        architecture: name of the processor.
        code: content of the section, which begins at ``start``.
        slots: words that the loader fills with the address of a named function.
        got: base of the global offset table, which 32-bit x86 counts from.
    """
    if architecture == "x86":
        return _x86(code, start, slots, got)
    if architecture.startswith("mips"):
        return _mips(code, start, slots, "little" if architecture.endswith("el") else "big")
    return _READERS[architecture](code, start, slots)


def _entries(start: int, at: int, name: str) -> Stubs:
    """The stub may begin with endbr or a bnd prefix; entries are 8 or 16 bytes."""
    yield start + (at & ~7), name
    yield start + (at & ~15), name


def _x86_64(code: bytes, start: int, slots: Mapping[int, str]) -> Stubs:
    at = code.find(b"\xff\x25")
    while at >= 0:
        displacement = int.from_bytes(code[at + 2 : at + 6], "little", signed=True)
        name = slots.get(start + at + 6 + displacement)
        if name is not None:
            yield from _entries(start, at, name)
        at = code.find(b"\xff\x25", at + 1)


def _x86(code: bytes, start: int, slots: Mapping[int, str], got: int | None) -> Stubs:
    """``jmp [slot]``, and ``jmp [ebx + slot]`` with the base of the table in ebx."""
    for opcode, base in ((b"\xff\x25", 0), (b"\xff\xa3", got)):
        at = code.find(opcode)
        while at >= 0 and base is not None:
            displacement = int.from_bytes(code[at + 2 : at + 6], "little", signed=bool(base))
            name = slots.get(base + displacement)
            if name is not None:
                yield from _entries(start, at, name)
            at = code.find(opcode, at + 1)


def _words(code: bytes, order: ByteOrder = "little") -> list[int]:
    whole = len(code) & ~3
    return [int.from_bytes(code[at : at + 4], order) for at in range(0, whole, 4)]


def _mips(code: bytes, start: int, slots: Mapping[int, str], order: ByteOrder) -> Stubs:
    """``lui $t7, slot; lw $t9, slot($t7); addiu $t8, ...; jr $t9``, of executables that are not
    position independent."""
    for number, (first, second) in enumerate(pairwise(_words(code, order))):
        if first >> 16 != 0x3C0F or second >> 16 not in (0x8DF9, 0xDDF9):
            continue
        low = (second & 0x7FFF) - (second & 0x8000)
        name = slots.get(((first & 0xFFFF) << 16) + low)
        if name is not None:
            yield start + 4 * number, name


def _aarch64(code: bytes, start: int, slots: Mapping[int, str]) -> Stubs:
    """``adrp x16, slot; ldr x17, [x16, slot]; add x16, ...; br x17``, perhaps behind ``bti c``."""
    words = _words(code)
    for number, (first, second) in enumerate(pairwise(words)):
        if first & 0x9F00001F != 0x90000010 or second & 0xFFC003FF != 0xF9400211:
            continue
        address = start + 4 * number
        pages = (first >> 5 & 0x7FFFF) << 2 | first >> 29 & 3
        pages -= (pages & 1 << 20) << 1
        name = slots.get((address & ~0xFFF) + (pages << 12) + (second >> 10 & 0xFFF) * 8)
        if name is not None:
            yield address, name
            if number and words[number - 1] == 0xD503245F:
                yield address - 4, name


def _arm(code: bytes, start: int, slots: Mapping[int, str]) -> Stubs:
    """``add ip, pc, #N; add ip, ip, #N; ldr pc, [ip, #N]!``, perhaps behind a Thumb entry, and
    lld's ``ldr ip, [pc, #4]; add ip, ip, pc; ldr pc, [ip]; .word N``."""
    words = _words(code)
    for number, first in enumerate(words):
        address = start + 4 * number
        if first & 0xFFFFF000 == 0xE28FC000:
            slot = _short_slot(words[number : number + 5], address + 8)
        elif words[number : number + 3] == [0xE59FC004, 0xE08CC00F, 0xE59CF000]:
            slot = (address + 12 + words[number + 3]) & 0xFFFFFFFF if number + 3 < len(words) else 0
        else:
            continue
        name = slots.get(slot)
        if name is not None:
            yield address, name
            if number and words[number - 1] in THUMB_ENTRIES:
                yield address - 4, name


def _riscv(code: bytes, start: int, slots: Mapping[int, str]) -> Stubs:
    """``auipc t3, slot; ld t3, slot(t3); jalr t1, t3``."""
    for number, (first, second) in enumerate(pairwise(_words(code))):
        if first & 0xFFF != 0xE17 or second & 0xFFFFF != 0xE3E03:
            continue
        address = start + 4 * number
        upper = (first & 0x7FFFF000) - (first & 0x80000000)
        lower = (second >> 20 & 0x7FF) - (second >> 20 & 0x800)
        name = slots.get(address + upper + lower)
        if name is not None:
            yield address, name


def _short_slot(words: list[int], pc: int) -> int:
    """What a chain of additions to ``pc`` reads; 0 for something else."""
    slot = pc + _rotated(words[0])
    for word in words[1:]:
        if word & 0xFFFFF000 == 0xE28CC000:
            slot += _rotated(word)
        elif word & 0xFFDFF000 == 0xE59CF000:
            return (slot + (word & 0xFFF)) & 0xFFFFFFFF
        else:
            break
    return 0


def _rotated(word: int) -> int:
    """The immediate of an ARM instruction: 8 bits, rotated right by an even number."""
    by, value = (word >> 8 & 0xF) * 2, word & 0xFF
    return (value >> by | value << (32 - by)) & 0xFFFFFFFF


_READERS: dict[str, Callable[[bytes, int, Mapping[int, str]], Stubs]] = {
    "x86-64": _x86_64,
    "aarch64": _aarch64,
    "arm": _arm,
    "riscv64": _riscv,
}
