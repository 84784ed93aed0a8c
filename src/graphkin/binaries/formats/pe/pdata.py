"""Function ranges of Windows binaries: the exception directory (``.pdata``), x64 and ARM64."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from graphkin.binaries.image import MAX_RANGES, UnwindRange

Read = Callable[[int, int], bytes]
"""(relative address, size) to at most so many bytes."""

CHAINED = 4
EPILOG, MACHINE_FRAME = 6, 10
END_OF_PROLOG = 0xE5
"""ARM64's ``end_c``: ahead of all other codes, it says that the prolog is in another part."""


def exception_ranges(
    directory: bytes, read: Read, architecture: str, base: int
) -> list[UnwindRange]:
    """Every range of the directory, sorted; parts that continue a function are joined to it.

    Args:
        directory: content of the exception directory.
        read: reads the image by relative address, for the unwind data.
        architecture: ``x86-64`` or ``aarch64``; others have no such directory here.
        base: address at which the image is loaded.
    """
    readers = {"x86-64": _x64, "aarch64": _arm64}
    reader = readers.get(architecture)
    if reader is None:
        return []
    ranges = {item.start: item for item in islice(reader(directory, read), MAX_RANGES)}
    return [
        UnwindRange(base + start, base + end, is_part)
        for start, end, is_part in _joined(sorted(ranges.values()))
    ]


def _joined(ranges: Iterable[UnwindRange]) -> list[UnwindRange]:
    """MSVC cuts a function where its frame changes: such parts lie right behind each other."""
    joined: list[UnwindRange] = []
    for item in ranges:
        if item.is_part and joined and joined[-1].end == item.start:
            joined[-1] = joined[-1]._replace(end=item.end)
        else:
            joined.append(item)
    return joined


def _x64(directory: bytes, read: Read) -> Iterator[UnwindRange]:
    """RUNTIME_FUNCTION: begin, end, unwind data."""
    for at in range(0, len(directory) - 11, 12):
        begin, end, unwind = (
            int.from_bytes(directory[field : field + 4], "little") for field in (at, at + 4, at + 8)
        )
        if begin < end:
            # An odd address is that of another entry, which describes the same function.
            yield UnwindRange(begin, end, bool(unwind & 1) or _is_part_x64(read(unwind, 516)))


def _is_part_x64(info: bytes) -> bool:
    """Chained to another entry, or with a frame ahead of the first instruction, as gcc has it."""
    if len(info) < 4:
        return False
    if info[0] >> 3 & CHAINED:
        return True
    prolog, count = info[1], info[2]
    codes = [info[at] & 15 for at in range(5, min(len(info), 4 + 2 * count), 2)]
    return prolog == 0 and bool(codes) and codes[0] not in (EPILOG, MACHINE_FRAME)


def _arm64(directory: bytes, read: Read) -> Iterator[UnwindRange]:
    """Begin, and either the packed description or where the full one is."""
    for at in range(0, len(directory) - 7, 8):
        begin = int.from_bytes(directory[at : at + 4], "little")
        data = int.from_bytes(directory[at + 4 : at + 8], "little")
        packed = data & 3
        if packed:
            size, is_part = (data >> 2 & 0x7FF) * 4, packed == 2
        else:
            size, is_part = _full_arm64(read(data, 8), data, read)
        if size:
            yield UnwindRange(begin, begin + size, is_part)


def _full_arm64(header: bytes, address: int, read: Read) -> tuple[int, bool]:
    """Length in bytes, and whether the range has no prolog of its own."""
    if len(header) < 4:
        return 0, False
    word = int.from_bytes(header[:4], "little")
    single, epilogs, words = word >> 21 & 1, word >> 22 & 31, word >> 27
    codes = address + 4
    if not epilogs and not words:
        codes += 4
        epilogs = int.from_bytes(header[4:6], "little")
    if not single:
        codes += 4 * epilogs
    return (word & 0x3FFFF) * 4, read(codes, 1) == bytes([END_OF_PROLOG])
