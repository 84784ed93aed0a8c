"""The code of a function in a form in which addresses do not count.

A linker decides where code and data lie, and with them the numbers in calls, in jumps and in what
loads an address. Two functions are *identical* when all else is equal: every instruction with its
registers and constants, the order of the blocks, and what they say.
"""

from __future__ import annotations

import hashlib
import re
from typing import NamedTuple

from graphkin.binaries.function import Block, Function, Token

NUMBER = re.compile(r"(?<![\w.])#?-?(?:0x[0-9a-f]+|\d+)\b")
HEXADECIMAL = re.compile(r"0x[0-9a-f]+")
X86_PC = re.compile(r"\[rip(?: [+-] 0x[0-9a-f]+| [+-] \d+)?\]")
ARM_PC = re.compile(r"\[pc, #-?(?:0x[0-9a-f]+|\d+)\]")
GLOBAL_POINTER = re.compile(r"-?(?:0x[0-9a-f]+|\d+)\(\$gp\)")
PAGE = re.compile(r"^(?:adrp|adr|auipc|lui|movw|movt|addis|lis)\s")
"""Instructions that load a part of an address; what they load is said in the evidence, if it is a
constant."""
CONDITION = r"(?:eq|ne|cs|hs|cc|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le|al|dnz|dz)"
BRANCH = re.compile(
    r"^(?:notrack |bnd )?(?:call|j\w*|loop\w*|bal|bl?x?|b\.\w+|[ct]bn?z|c\.j\w*|c\.b\w+"
    rf"|bl?{CONDITION}l?|b(?:eq|ne|le|gt|lt|ge)z?(?:al)?l?u?|bc1[tf]l?)(?:\.[nw])?[+-]?\s"
)
DISPLACEMENT = re.compile(r"(?: [+-] |, )[@](?=\])|@(?=\(\$?\w+\))")
"""Where a field lies; the first field has none. As it is without numbers."""
LAST_NUMBER = re.compile(r"#?(0x[0-9a-f]+|\d+)$")
FIRST_REGISTER = re.compile(r"^\S+\s+(\$?\w+)")
COMPLETING = ("add", "ori", "ldr", "lw", "ld")
"""Instructions that add the other part of an address, or load from it: the register holds no part
of one any more."""
HERE = "@"
"""Stands for an address."""
LOWEST_FIXED = 0x10000
"""Files whose code lies higher may be for a fixed place, so that their instructions hold whole
addresses; no address is lower."""
FIXED_SPAN = 1 << 28


class CodeForm(NamedTuple):
    """The code of a function where addresses do not count."""

    blocks: tuple[bytes, ...]
    """A hash of each block: all but addresses. Where it leads is not in it, but in the edges."""
    digest: bytes
    """Of all blocks and edges: equal for identical functions."""
    mnemonics: bytes
    """Of mnemonics, edges and what blocks say: equal where only registers, places on the stack and
    offsets of fields differ."""
    registers: bytes
    """Of mnemonics, registers and edges: equal where only numbers differ."""
    shape: bytes
    """Of mnemonics and edges alone."""


def code_form(function: Function) -> CodeForm:
    """The form of a function that was read with the text of its instructions."""
    pages: set[str] = set()
    texts = [_block_text(function, block, pages) for block in function.blocks]
    said = [repr(block.evidence).encode() for block in function.blocks]
    shape = repr((function.architecture, function.edges)).encode()
    blocks = tuple(_hash(text.encode(), own) for text, own in zip(texts, said, strict=True))
    mnemonics = repr([block.mnemonics for block in function.blocks]).encode()
    words = repr([_without_offsets(block) for block in function.blocks]).encode()
    registers = _without_places("\n\n".join(texts)).encode()
    return CodeForm(
        blocks=blocks,
        digest=_hash(shape, *blocks),
        mnemonics=_hash(shape, mnemonics, words),
        registers=_hash(shape, registers),
        shape=_hash(shape, mnemonics),
    )


def _without_places(text: str) -> str:
    """Instructions without numbers: where fields lie, and what is on the stack."""
    return DISPLACEMENT.sub("", NUMBER.sub(HERE, text))


def _without_offsets(block: Block) -> list[Token]:
    return [token for token in block.evidence or () if token.kind != "off"]


def _hash(*parts: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        digest.update(len(part).to_bytes(4, "little"))
        digest.update(part)
    return digest.digest()


def _block_text(function: Function, block: Block, pages: set[str]) -> str:
    """The instructions of a block without addresses.

    Args:
        function: whose block it is.
        block: one of its blocks.
        pages: registers that hold a part of an address; is brought up to date.
    """
    lines = []
    after_call = False
    for line in block.instructions or block.mnemonics:
        lines.append(_line(function, line, pages, after_call))
        after_call = line.startswith("call ")
    return "\n".join(lines)


def _line(function: Function, line: str, pages: set[str], after_call: bool) -> str:
    mnemonic, _, operands = line.partition(" ")
    first = FIRST_REGISTER.match(line)
    register = first[1] if first else ""
    # On x86, what calls the next instruction adds the distance to the table of addresses.
    if PAGE.match(line) or (after_call and mnemonic == "add" and function.architecture == "x86"):
        pages.add(register)
        return NUMBER.sub(HERE, line)
    masked = X86_PC.sub(f"[rip {HERE}]", ARM_PC.sub(f"[pc {HERE}]", line))
    masked = GLOBAL_POINTER.sub(f"{HERE}($gp)", masked)
    if BRANCH.match(line):
        return LAST_NUMBER.sub(HERE, masked)
    if any(_uses(operands, page) for page in pages):
        masked = NUMBER.sub(HERE, masked)
        is_complete = mnemonic.startswith(COMPLETING)
        if is_complete or not _uses(operands.partition(",")[2], register):
            pages.discard(register)
    return HEXADECIMAL.sub(lambda number: _without_address(function, number[0]), masked)


def _uses(operands: str, register: str) -> bool:
    return re.search(rf"(?<![\w$]){re.escape(register)}(?!\w)", operands) is not None


def _without_address(function: Function, text: str) -> str:
    """A number as it is, unless it is an address."""
    value = int(text, 16)
    start, end = function.address, function.address + max(function.size, 1)
    is_fixed = min(start, value) >= LOWEST_FIXED and abs(value - start) < FIXED_SPAN
    return HERE if is_fixed or start <= value < end else text
