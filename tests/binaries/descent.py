"""Block starts the slow way: capstone's own description of each instruction, one at a time.

An oracle for functions without jump tables and without calls that never return.
"""

from __future__ import annotations

import capstone

from graphkin.binaries.image import Image

MODES = {
    "x86": (capstone.CS_ARCH_X86, capstone.CS_MODE_32),
    "x86-64": (capstone.CS_ARCH_X86, capstone.CS_MODE_64),
    "aarch64": (capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM),
}
FILLERS = ("nop", "endbr64", "endbr32")


def block_starts(image: Image, start: int, end: int) -> set[int]:
    """Where the blocks of a function begin; padding in front of a block does not count."""
    reader = capstone.Cs(*MODES[image.architecture])
    reader.detail = True
    leaders, seen, todo = {start}, set[int](), [start]
    while todo:
        address = todo.pop()
        while start <= address < end and address not in seen:
            seen.add(address)
            instruction = next(reader.disasm(image.read(address, 16), address))
            following = instruction.address + instruction.size
            if instruction.group(capstone.CS_GRP_JUMP) and not instruction.mnemonic.startswith(
                "bl"
            ):
                immediate = [
                    item.imm for item in instruction.operands if item.type == capstone.CS_OP_IMM
                ][-1:]
                conditional = instruction.mnemonic not in ("jmp", "b", "br")
                targets = immediate + [following] * conditional
                inside = [target for target in targets if start <= target < end]
                leaders.update(inside)
                todo += inside
                break
            if instruction.group(capstone.CS_GRP_RET) or instruction.mnemonic in (
                "ud2",
                "int3",
                "brk",
                "hlt",
            ):
                break
            address = following
    return {_behind_padding(image, reader, leader) for leader in leaders}


def _behind_padding(image: Image, reader: capstone.Cs, address: int) -> int:
    instruction = next(reader.disasm(image.read(address, 16), address))
    is_filler = instruction.mnemonic in FILLERS or (instruction.mnemonic, instruction.op_str) == (
        "xchg",
        "ax, ax",
    )
    return _behind_padding(image, reader, address + instruction.size) if is_filler else address
