"""Raw images: code as it lies in memory, without a header that says what it is."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from graphkin.binaries.function import pointer_bytes
from graphkin.binaries.image import ByteOrder, Image, Region
from graphkin.binaries.starts.clues import Clues
from graphkin.binaries.starts.locate import locate
from graphkin.binaries.starts.sweep import MAX_ADDRESS, words
from graphkin.errors import ConfigError, FormatError

ARM, THUMB = "arm", "thumb"
ALIASES = {
    "x86-64": "x86-64",
    "x86_64": "x86-64",
    "amd64": "x86-64",
    "x86": "x86",
    "i386": "x86",
    "aarch64": "aarch64",
    "arm64": "aarch64",
    "arm": ARM,
    "thumb": THUMB,
    "mips": "mips",
    "mipsel": "mipsel",
    "mips64": "mips64",
    "mips64el": "mips64el",
    "riscv64": "riscv64",
    "ppc": "ppc",
    "powerpc": "ppc",
    "ppc64le": "ppc64le",
}
STEPS = {
    "aarch64": 4,
    ARM: 4,
    THUMB: 2,
    "mips": 4,
    "mipsel": 4,
    "mips64": 4,
    "mips64el": 4,
    "riscv64": 2,
    "ppc": 4,
    "ppc64le": 4,
}
"""What addresses of instructions are multiples of; on x86, they can be any."""
BIG = frozenset(["mips", "mips64", "ppc"])
MOST_VECTORS = 512
"""Words of a vector table of Thumb processors, which have 16 and up to 496 more."""
VECTORS = 8
"""Words of a vector table of ARM processors."""
ARM_JUMP = 0xEA
LOAD_PC = 0xE59FF
"""The top of ``ldr pc, [pc, #n]``."""


class RawCode(NamedTuple):
    """How to read a raw image."""

    processor: str
    """One of the values of ``ALIASES``."""
    base: int
    """The address of its first byte."""


def parse_raw(text: str) -> RawCode:
    """Reads ``ARCH@BASE``: ``thumb@0x8000000``.

    Raises:
        ConfigError: for an unknown processor, an address that is none, or one that no instruction
            can have.
    """
    name, at, address = text.partition("@")
    processor = ALIASES.get(name.lower())
    if not at or processor is None:
        known = ", ".join(dict.fromkeys(ALIASES.values()))
        raise ConfigError(
            f"--raw takes ARCH@BASE, such as thumb@0x8000000, with one of {known}; got {text!r}"
        )
    try:
        base = int(address, 0)
    except ValueError:
        base = -1
    if not 0 <= base < MAX_ADDRESS:
        raise ConfigError(f"--raw takes an address behind the @, such as 0x8000; got {address!r}")
    step = STEPS.get(processor, 1)
    if base % step:
        hint = ", without the bit that marks Thumb" if processor == THUMB else ""
        raise ConfigError(
            f"--raw takes an address that instructions of {name} can have, a multiple of {step}, "
            f"such as {base - base % step:#x}{hint}; got {address!r}"
        )
    return RawCode(processor, base)


def load_raw(data: bytes, label: str, code: RawCode) -> Image:
    """One region of code; functions start at the vectors, and where the code tells."""
    end = code.base + len(data)
    is_arm = code.processor in (ARM, THUMB)
    architecture = ARM if is_arm else code.processor
    if end >= min(1 << 8 * pointer_bytes(architecture), MAX_ADDRESS):
        raise FormatError(f"{label} does not fit: {len(data)} bytes from {code.base:#x} on")
    states = dict(_vectors(data, code)) if is_arm else {}
    view, table = memoryview(data), 4 * _table_length(data, code)
    regions = [
        Region(code.base, view[:table], False),
        Region(code.base + table, view[table:], True),
    ]
    order: ByteOrder = "big" if code.processor in BIG else "little"
    image = Image(
        "raw",
        architecture,
        [region for region in regions if len(region.data)],
        [],
        [],
        frozenset(),
        got=_contents(data, code),
        marks=sorted(states.items()),
        byte_order=order,
    )
    return locate(image, Clues([], False, entries=sorted(states) or [code.base]))


def _contents(data: bytes, code: RawCode) -> int | None:
    """The address of the table of contents, which 64-bit code for PowerPC counts from."""
    if code.processor != "ppc64le":
        return None
    # Only this reads PowerPC here; what decodes it is loaded with its reader.
    from graphkin.binaries.processors.powerpc.abi_tables import guessed_contents

    return guessed_contents(words(data, 4), code.base)


def _table_length(data: bytes, code: RawCode) -> int:
    """Words of a table of addresses of Thumb code at the start of an image; 0 without one."""
    if code.processor != THUMB:
        return 0
    count = min(MOST_VECTORS, len(data) // 4)
    vectors = struct.unpack_from(f"<{count}I", data)
    length = 1
    for word in vectors[1:]:
        if word and not (word & 1 and code.base <= word < code.base + len(data)):
            break
        length += 1
    return length if any(vectors[1:length]) else 0


def _vectors(data: bytes, code: RawCode) -> Iterator[tuple[int, str]]:
    """Where an ARM processor begins and goes on interrupts, with the state of each place.

    Thumb processors have a table of addresses behind the first word, which is the stack; others
    have a table of jumps. What looks like neither begins with code.
    """
    count = min(MOST_VECTORS, len(data) // 4)
    vectors = struct.unpack_from(f"<{count}I", data)

    def is_inside(address: int) -> bool:
        return code.base <= address < code.base + len(data)

    length = _table_length(data, code)
    if code.processor == THUMB:
        if not length:
            yield code.base, "t"
        yield from ((word - 1, "t") for word in vectors[1:length] if word)
        return
    yield code.base, "a"
    for number, word in enumerate(vectors[:VECTORS]):
        address = code.base + 4 * number
        if word >> 24 == ARM_JUMP:
            distance = (word & 0xFFFFFF ^ 0x800000) - 0x800000
            target = address + 8 + 4 * distance
            if is_inside(target):
                yield target, "a"
        elif word >> 12 == LOAD_PC:
            slot = 4 * number + 8 + (word & 0xFFF)
            if slot + 4 <= len(data):
                (target,) = struct.unpack_from("<I", data, slot)
                if is_inside(target):
                    yield target & ~1, "t" if target & 1 else "a"
