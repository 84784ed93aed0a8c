"""Object files made here: with functions as large, as many and as oddly named as a test needs."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable

TEXT, SYMBOLS, STRINGS, NAMES = 1, 2, 3, 4
"""Sections, in the order of their headers; 0 is empty in every ELF file."""
PROGBITS, SYMTAB, STRTAB = 1, 2, 3
RELOCATABLE, X86_64 = 1, 62
GLOBAL_FUNCTION = 0x12
HEADER, SECTION, SYMBOL = 64, 64, 24
"""Bytes of each."""
BLOCK = 14
"""Bytes of a block of :func:`branching`."""
MOST_NESTED = 12
"""Blocks of a branch or a loop."""
LOOPS = 0.2
"""Share of the loops."""


def object_file(functions: Iterable[tuple[str, bytes]]) -> bytes:
    """An ELF object file for x86-64: the code of each function, and its name as a symbol."""
    code, symbols, strings = bytearray(), bytearray(SYMBOL), bytearray(1)
    for name, body in functions:
        code += bytes(-len(code) % 16)
        symbols += struct.pack(
            "<IBBHQQ", len(strings), GLOBAL_FUNCTION, 0, TEXT, len(code), len(body)
        )
        strings += name.encode() + b"\0"
        code += body
    names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0"
    sections = (
        (".text", PROGBITS, 6, bytes(code), 0, 0, 0),
        (".symtab", SYMTAB, 0, bytes(symbols), STRINGS, 1, SYMBOL),
        (".strtab", STRTAB, 0, bytes(strings), 0, 0, 0),
        (".shstrtab", STRTAB, 0, names, 0, 0, 0),
    )
    content, headers = bytearray(HEADER), bytearray(SECTION)
    for name, kind, flags, data, link, info, size in sections:
        content += bytes(-len(content) % 16)
        position = names.index(f"{name}\0".encode())
        headers += struct.pack(
            "<IIQQQQIIQQ", position, kind, flags, 0, len(content), len(data), link, info, 16, size
        )
        content += data
    identity = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
    content[:HEADER] = identity + struct.pack(
        "<HHIQQQIHHHHHH", RELOCATABLE, X86_64, 1, 0, 0, len(content), 0, HEADER, 0, 0, SECTION,
        1 + len(sections), NAMES,
    )  # fmt: skip
    return bytes(content + headers)


def branching(blocks: int, seed: int = 0) -> bytes:
    """A function of so many blocks, with branches and loops inside each other."""
    targets = [number + 1 for number in range(blocks - 1)]
    _nest(targets, 0, blocks - 1, random.Random(seed))
    code = bytearray()
    for number, target in enumerate(targets):
        code += b"\x05" + struct.pack("<i", number)  # add eax, number
        code += b"\x83\xff" + bytes([number % 100])  # cmp edi, ...
        code += b"\x0f\x85" + struct.pack("<i", (target - number - 1) * BLOCK)  # jne target
    return bytes(code + b"\xc3")


def _nest(targets: list[int], first: int, end: int, choose: random.Random) -> None:
    """Lets blocks of a range jump over the ones that follow, or back to where a loop begins."""
    while end - first > 1:
        last = min(first + choose.randint(2, MOST_NESTED), end) - 1
        if choose.random() < LOOPS:
            targets[last] = first
            _nest(targets, first, last, choose)
        else:
            targets[first] = last
            _nest(targets, first + 1, last, choose)
        first = last + 1
