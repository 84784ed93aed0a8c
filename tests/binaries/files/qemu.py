"""Runs functions of a ppc64le sample in QEMU, which Unicorn cannot. Used by build.py.

A program is made of the sample and of a few instructions that call its functions one by one; QEMU
logs the address of every instruction.
"""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection

BIAS = 0x400000
"""Where a shared object is loaded: nothing can be at 0."""
DRIVER, HEAP, STACK = 0x1000000, 0x60000000, 0x50000000
OUT, ASK, NEXT = DRIVER, DRIVER + 16, DRIVER + 64
JUMP_NEXT = 0x48000002 | NEXT
"""``ba NEXT``, which goes to an absolute address."""
RELATIVE = 22
KNOWN = {"out": OUT, "ask": ASK, "abort": NEXT}
PROGRAM = """
    .abiversion 2
    .section .driver, "awx"
    .globl _start
    blr
    .balign 16
    lis 11, asked@ha
    lwz 10, asked@l(11)
    addi 10, 10, 1
    stw 10, asked@l(11)
    clrlslwi 10, 10, 29, 2
    lis 11, answers@ha
    addi 11, 11, answers@l
    lwzx 3, 11, 10
    blr
    .balign 64
_start:
    lis 11, cursor@ha
    ld 10, cursor@l(11)
    addi 9, 10, 40
    std 9, cursor@l(11)
    ld 12, 0(10)
    cmpdi 12, 0
    beq 1f
    ld 3, 8(10)
    ld 4, 16(10)
    ld 5, 24(10)
    ld 1, 32(10)
    mtctr 12
    bctrl
    b _start
1:  li 0, 1
    li 3, 0
    sc
    .balign 8
cursor: .quad rows
asked: .long 0
answers: .long 5, 0, 0x3456789a, 7, -3, 11, 2, 1
    .balign 8
rows: .incbin "rows"
    .section .stack, "aw", @nobits
    .space 1 << 20
    .section .heap, "aw"
    .incbin "heap"
    .section .sample, "awx"
    .incbin "sample"
"""
LOGGED = re.compile(r"\[[0-9a-f]+/([0-9a-f]+)/")


class QemuMachine:
    """One sample in memory; it has the methods of ``emulator.Machine``."""

    def __init__(self, path: Path) -> None:
        self._heap = bytearray()
        with path.open("rb") as file:
            elf = ELFFile(file)
            self._bias = BIAS if elf["e_type"] == "ET_DYN" else 0
            loads = [segment for segment in elf.iter_segments() if segment["p_type"] == "PT_LOAD"]
            self._low = min(segment["p_vaddr"] for segment in loads) & ~0xFFFF
            self._memory = bytearray(max(o["p_vaddr"] + o["p_memsz"] for o in loads) - self._low)
            for segment in loads:
                at = segment["p_vaddr"] - self._low
                self._memory[at : at + segment["p_filesz"]] = segment.data()
            for section in elf.iter_sections():
                if isinstance(section, RelocationSection):
                    for entry in section.iter_relocations():
                        self._relocate(entry, elf.get_section(section["sh_link"]))
            self._symbols = {
                symbol.name: (symbol["st_value"], symbol["st_size"])
                for symbol in elf.get_section_by_name(".symtab").iter_symbols()
                if symbol["st_info"]["type"] == "STT_FUNC"
            }
        start, size = self._symbols.get("abort", (self._low, 0))
        for at in range(start - self._low, start - self._low + size, 4):
            struct.pack_into("<I", self._memory, at, JUMP_NEXT)

    def _relocate(self, entry: object, names: object) -> None:
        value = self._bias + entry["r_addend"]
        if entry["r_info_type"] != RELATIVE:
            symbol = names.get_symbol(entry["r_info_sym"])
            value = KNOWN.get(symbol.name, value + symbol["st_value"])
        struct.pack_into("<Q", self._memory, entry["r_offset"] - self._low, value)

    def data(self, content: bytes) -> int:
        """The address of a copy of some bytes."""
        place = HEAP + len(self._heap)
        self._heap += content + bytes(-len(content) % 16)
        return place

    def words(self, values: list[int]) -> int:
        """The address of an array of int."""
        return self.data(struct.pack(f"<{len(values)}i", *values) or bytes(4))

    def calls(self, name: str, rows: list[list[int]]) -> Iterator[list[tuple[int, int]]]:
        """(address behind the jump, target) of the jumps taken inside a function, for each row of
        arguments."""
        start, size = self._symbols[name]
        taken: list[tuple[int, int]] = []
        last = 0
        for address in self._run(start, rows):
            if address == NEXT - self._bias:
                yield taken
                taken, last = [], 0
            elif start <= address < start + size:
                if last and address != last:
                    taken.append((last, address))
                last = address + 4

    def _run(self, start: int, rows: list[list[int]]) -> Iterator[int]:
        """Addresses of the instructions that ran, as the sample has them."""
        records = b""
        for row in rows:
            numbers = [start + self._bias, *row, *[0] * (3 - len(row)), STACK + (1 << 19)]
            records += struct.pack("<5Q", *(number % (1 << 64) for number in numbers))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "rows").write_bytes(records + bytes(40))
            (folder / "heap").write_bytes(self._heap + bytes(16))
            (folder / "sample").write_bytes(self._memory)
            (folder / "program.s").write_text(PROGRAM)
            places = {
                "driver": DRIVER,
                "heap": HEAP,
                "stack": STACK,
                "sample": self._low + self._bias,
            }
            link = [f"-Wl,--section-start=.{key}={value:#x}" for key, value in places.items()]
            link += ["-nostdlib", "-static", "-Wl,--build-id=none", "-Wl,--no-warn-rwx-segments"]
            command = ["powerpc64le-linux-gnu-gcc", *link, "program.s", "-o", "program"]
            subprocess.run(command, check=True, cwd=folder)
            end = self._low + self._bias + len(self._memory)
            ranges = f"{self._low + self._bias:#x}..{end:#x},{NEXT:#x}+1"
            log = ["-singlestep", "-d", "exec,nochain", "-dfilter", ranges, "-D", "log"]
            subprocess.run(["qemu-ppc64le-static", *log, "program"], check=True, cwd=folder)
            for line in (folder / "log").read_text().splitlines():
                match = LOGGED.search(line)
                if match:
                    yield int(match[1], 16) - self._bias
