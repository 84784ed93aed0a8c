"""Runs functions of a sample in Unicorn, and tells which jumps were taken. Used by build.py."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import unicorn
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from unicorn import arm64_const, arm_const, mips_const, ppc_const, riscv_const, x86_const

STACK, HEAP, MAGIC = 0x5000_0000, 0x6000_0000, 0x7000_0000
PAGES = 1 << 20
OUT, ASK, ABORT, END = MAGIC, MAGIC + 64, MAGIC + 128, MAGIC + 192
ANSWERS = (5, 0, 0x3456789A, 7, -3, 11, 2, 1)
MAX_STEPS = 20_000
MODES = {
    "x86": (unicorn.UC_ARCH_X86, unicorn.UC_MODE_32),
    "aarch64": (unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_LITTLE_ENDIAN),
    "arm": (unicorn.UC_ARCH_ARM, unicorn.UC_MODE_ARM),
    "mips": (unicorn.UC_ARCH_MIPS, unicorn.UC_MODE_MIPS32 | unicorn.UC_MODE_BIG_ENDIAN),
    "mipsel": (unicorn.UC_ARCH_MIPS, unicorn.UC_MODE_MIPS32),
    "mips64el": (unicorn.UC_ARCH_MIPS, unicorn.UC_MODE_MIPS64),
    "riscv64": (unicorn.UC_ARCH_RISCV, unicorn.UC_MODE_RISCV64),
    "ppc": (unicorn.UC_ARCH_PPC, unicorn.UC_MODE_PPC32 | unicorn.UC_MODE_BIG_ENDIAN),
}
RETURNS = {
    "x86": "c3",
    "aarch64": "c0035fd6",
    "arm": "1eff2fe1",
    "mips": "03e0000800000000",
    "mipsel": "0800e00300000000",
    "mips64el": "0800e00300000000",
    "riscv64": "67800000",
    "ppc": "4e800020",
}
RESULTS = {
    "x86": x86_const.UC_X86_REG_EAX,
    "aarch64": arm64_const.UC_ARM64_REG_X0,
    "arm": arm_const.UC_ARM_REG_R0,
    "mips": mips_const.UC_MIPS_REG_V0,
    "mipsel": mips_const.UC_MIPS_REG_V0,
    "mips64el": mips_const.UC_MIPS_REG_V0,
    "riscv64": riscv_const.UC_RISCV_REG_A0,
    "ppc": ppc_const.UC_PPC_REG_3,
}
RELATIVE = {8, 23, 1027}
"""R_386_RELATIVE, R_ARM_RELATIVE and R_AARCH64_RELATIVE."""
OWN_RELATIVE = {"riscv64": {3}, "ppc": {22}}
KNOWN = {"out": OUT, "ask": ASK, "abort": ABORT}


class Machine:
    """One sample in memory, at the addresses that it names itself."""

    def __init__(self, path: Path, architecture: str) -> None:
        self._architecture = architecture
        self._uc = unicorn.Uc(*MODES[architecture])
        if architecture == "mips64el":
            self._uc.ctl_set_cpu_model(mips_const.UC_CPU_MIPS64_MIPS64R2_GENERIC)
        self._wide = architecture in ("aarch64", "mips64el", "riscv64")
        self._is_mips = architecture.startswith("mips")
        is_big = architecture in ("mips", "ppc")
        self._order: Literal["little", "big"] = "big" if is_big else "little"
        for start in (STACK, HEAP, MAGIC):
            self._uc.mem_map(start, PAGES)
        for position in (OUT, ASK, ABORT, END):
            self._uc.mem_write(position, bytes.fromhex(RETURNS[architecture]))
        self._free = HEAP
        self._asked = 0
        self._conditional_end = 0
        with path.open("rb") as file:
            elf = ELFFile(file)
            self._load(elf)
            table = elf.get_section_by_name(".symtab")
            pointers = table.get_symbol_by_name("__global_pointer$")
            self._global_pointer = pointers[0]["st_value"] if pointers else 0
            self._symbols = {
                symbol.name: (symbol["st_value"], symbol["st_size"])
                for symbol in table.iter_symbols()
                if symbol["st_info"]["type"] == "STT_FUNC"
            }
        abort = self._symbols.get("abort", (ABORT, 0))[0]
        self._aborts = {ABORT, abort & ~1 if architecture == "arm" else abort}
        if architecture != "x86":
            self._enable_floats()

    def _load(self, elf: ELFFile) -> None:
        loads = [s for s in elf.iter_segments() if s["p_type"] == "PT_LOAD"]
        low = min(s["p_vaddr"] for s in loads) & ~0xFFFF
        high = (max(s["p_vaddr"] + s["p_memsz"] for s in loads) | 0xFFFF) + 1
        self._uc.mem_map(low, high - low)
        for segment in loads:
            self._uc.mem_write(segment["p_vaddr"], segment.data())
        for section in elf.iter_sections():
            if isinstance(section, RelocationSection):
                names = elf.get_section(section["sh_link"])
                for entry in section.iter_relocations():
                    self._relocate(entry, names)
        if self._is_mips:
            self._fill_global_table(elf)

    def _fill_global_table(self, elf: ELFFile) -> None:
        """MIPS has no relocations for the entries of the last symbols."""
        dynamic = elf.get_section_by_name(".dynamic")
        if dynamic is None:
            return
        tags = {tag.entry.d_tag: tag.entry.d_val for tag in dynamic.iter_tags()}
        symbols = elf.get_section_by_name(".dynsym")
        first = tags["DT_MIPS_GOTSYM"]
        for number in range(first, symbols.num_symbols()):
            symbol = symbols.get_symbol(number)
            position = tags["DT_PLTGOT"] + (8 if self._wide else 4) * (
                tags["DT_MIPS_LOCAL_GOTNO"] + number - first
            )
            self._write_word(position, KNOWN.get(symbol.name, symbol["st_value"]))

    def _relocate(self, entry: object, names: object) -> None:
        if entry["r_info_type"] in OWN_RELATIVE.get(self._architecture, RELATIVE):
            if entry.is_RELA():
                self._write_word(entry["r_offset"], entry["r_addend"])
            return
        symbol = names.get_symbol(entry["r_info_sym"])
        if not symbol.name:
            return
        value = KNOWN.get(symbol.name, symbol["st_value"])
        self._write_word(entry["r_offset"], value)

    def _write_word(self, address: int, value: int) -> None:
        width = 8 if self._wide else 4
        self._uc.mem_write(address, (value % (1 << 8 * width)).to_bytes(width, self._order))

    def _enable_floats(self) -> None:
        if self._architecture == "riscv64":
            self._uc.reg_write(riscv_const.UC_RISCV_REG_MSTATUS, 0x6000)
            return
        if self._architecture == "ppc":
            self._uc.reg_write(ppc_const.UC_PPC_REG_MSR, 1 << 13)
            return
        if self._is_mips:
            status = self._uc.reg_read(mips_const.UC_MIPS_REG_CP0_STATUS)
            # 64 bits are for the kernel alone, and for floats not at all, unless it says otherwise.
            wide = 0xE0 | 1 << 26 if self._wide else 0
            self._uc.reg_write(mips_const.UC_MIPS_REG_CP0_STATUS, status | 1 << 29 | wide)
            return
        if self._wide:
            self._uc.reg_write(arm64_const.UC_ARM64_REG_CPACR_EL1, 3 << 20)
            return
        self._uc.reg_write(arm_const.UC_ARM_REG_C1_C0_2, 0xF << 20)
        self._uc.reg_write(arm_const.UC_ARM_REG_FPEXC, 1 << 30)

    def data(self, content: bytes) -> int:
        """The address of a copy of some bytes."""
        position = self._free
        self._uc.mem_write(position, content)
        self._free += -(-len(content) // 16) * 16
        return position

    def words(self, values: list[int]) -> int:
        """The address of an array of int."""
        order = "<" if self._order == "little" else ">"
        return self.data(struct.pack(f"{order}{len(values)}i", *values) or bytes(4))

    def calls(self, name: str, rows: list[list[int]]) -> Iterator[list[tuple[int, int]]]:
        """The same for each row of arguments."""
        return (self.call(name, row) for row in rows)

    def call(self, name: str, arguments: list[int]) -> list[tuple[int, int]]:
        """(address behind the jump, target) of the jumps taken inside a function."""
        start, size = self._symbols[name]
        low = start & ~1 if self._architecture == "arm" else start
        taken: list[tuple[int, int]] = []
        last = [0]

        def step(uc: unicorn.Uc, address: int, length: int, _: object) -> None:
            if address == ASK:
                self._asked += 1
                answer = ANSWERS[self._asked % len(ANSWERS)] & 0xFFFFFFFF
                uc.reg_write(RESULTS[self._architecture], answer)
            if address in self._aborts:
                uc.emu_stop()
            if low <= address < low + size:
                skips = last[0] < address <= self._conditional_end
                if last[0] and address != last[0] and not skips:
                    taken.append((last[0], address))
                last[0] = address + length
                if length == 2 and self._is_thumb():
                    self._note_conditional(address)

        self._prepare(arguments, start)
        self._conditional_end = 0
        hook = self._uc.hook_add(unicorn.UC_HOOK_CODE, step)
        try:
            self._uc.emu_start(start, END, count=MAX_STEPS)
        finally:
            self._uc.hook_del(hook)
        return taken

    def _is_thumb(self) -> bool:
        if self._architecture != "arm":
            return False
        return bool(self._uc.reg_read(arm_const.UC_ARM_REG_CPSR) & 0x20)

    def _note_conditional(self, address: int) -> None:
        """Where the instructions behind ``it`` end, which do not run when their condition fails."""
        code = bytes(self._uc.mem_read(address, 20))
        mask = code[0] & 0xF
        if code[1] != 0xBF or not mask:
            return
        at = 2
        for _ in range(5 - (mask & -mask).bit_length()):
            at += 4 if code[at + 1] >> 3 in (0b11101, 0b11110, 0b11111) else 2
        self._conditional_end = address + at

    def _prepare(self, arguments: list[int], start: int) -> None:
        top = STACK + PAGES // 2
        if self._architecture == "x86":
            stack = [END, *arguments]
            self._uc.mem_write(top, b"".join((n % (1 << 32)).to_bytes(4, "little") for n in stack))
            self._uc.reg_write(x86_const.UC_X86_REG_ESP, top)
            return
        if self._is_mips:
            # Four arguments are in registers, and have their place on the stack all the same.
            for number, value in enumerate(arguments):
                bits = 64 if self._wide else 32
                self._uc.reg_write(mips_const.UC_MIPS_REG_A0 + number, value % (1 << bits))
            self._uc.reg_write(mips_const.UC_MIPS_REG_SP, top)
            self._uc.reg_write(mips_const.UC_MIPS_REG_RA, END)
            self._uc.reg_write(mips_const.UC_MIPS_REG_T9, start)
            return
        if self._architecture == "riscv64":
            for number, value in enumerate(arguments):
                self._uc.reg_write(riscv_const.UC_RISCV_REG_A0 + number, value % (1 << 64))
            self._uc.reg_write(riscv_const.UC_RISCV_REG_SP, top)
            self._uc.reg_write(riscv_const.UC_RISCV_REG_RA, END)
            self._uc.reg_write(riscv_const.UC_RISCV_REG_GP, self._global_pointer)
            return
        if self._architecture == "ppc":
            for number, value in enumerate(arguments):
                self._uc.reg_write(ppc_const.UC_PPC_REG_3 + number, value % (1 << 32))
            self._uc.reg_write(ppc_const.UC_PPC_REG_1, top)
            self._uc.reg_write(ppc_const.UC_PPC_REG_LR, END)
            return
        names, prefix, bits = (
            (arm64_const, "UC_ARM64_REG_", 64) if self._wide else (arm_const, "UC_ARM_REG_", 32)
        )
        first = getattr(names, f"{prefix}{'X' if self._wide else 'R'}0")
        for number, value in enumerate(arguments):
            self._uc.reg_write(first + number, value % (1 << bits))
        self._uc.reg_write(getattr(names, f"{prefix}SP"), top)
        self._uc.reg_write(getattr(names, f"{prefix}LR"), END)
