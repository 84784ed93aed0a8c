"""Where functions of 32-bit ARM start, and in which state: from symbols, ``.ARM.exidx`` and calls.

Stripped files keep a table of function starts for unwinding, but the linker folds neighbours
that unwind alike, and nothing says whether a function is ARM or Thumb. Both come from the calls:
``bl`` keeps the state, ``blx`` changes it. What nobody calls is told by its looks.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from graphkin.binaries.image import Region, UnwindRange
from graphkin.binaries.processors.arm import Arm
from graphkin.binaries.recovery.architecture import CALL
from graphkin.binaries.recovery.decode import mnemonics, operands
from graphkin.binaries.recovery.ranges import Symbol

CHUNK = 1 << 16
ROUNDS = 3
"""Times to look through the code again, with the starts and states found before."""
MAX_CODE = 64 << 20
"""Bytes of code to look for calls in; of larger files, only the looks of functions count."""
OTHER = {"a": "t", "t": "a"}


def without_thumb_bit(symbols: Iterable[Symbol]) -> tuple[list[Symbol], dict[int, str]]:
    """Symbols at the addresses of their first instructions, and the state of each address."""
    plain: list[Symbol] = []
    states: dict[int, str] = {}
    for symbol in symbols:
        address = symbol.address & ~1
        plain.append(symbol._replace(address=address))
        states[address] = "t" if symbol.address & 1 else "a"
    return plain, states


def index_starts(data: bytes, address: int) -> list[int]:
    """Function starts in a section ``.ARM.exidx`` that lies at ``address``."""
    words = np.frombuffer(data[: len(data) & ~7], dtype="<u4")[::2].astype(np.int64)
    addresses = address + 8 * np.arange(len(words))
    distances = ((words & 0x7FFFFFFF) ^ 0x40000000) - 0x40000000
    starts: list[int] = ((addresses + distances) & 0xFFFFFFFE).tolist()
    return starts


def survey(
    regions: Sequence[Region], starts: Iterable[int], known: Mapping[int, str]
) -> dict[int, str]:
    """Every function start and its state.

    Args:
        regions: the code in which functions are looked for.
        starts: addresses where something begins, be it a function or data.
        known: starts whose state is certain.
    """
    states = dict(known)
    processor = Arm()
    pending = {start for start in starts if _region(regions, start)} - known.keys()
    called: dict[int, str] = {}
    is_small = sum(len(region.data) for region in regions) <= MAX_CODE
    for _ in range(ROUNDS if is_small else 1):
        for start, end in _ranges(regions, pending | states.keys()):
            if start in pending:
                states[start] = called.get(start) or _looks(regions, start, end)
        if not is_small:
            break
        for start, end in _ranges(regions, states):
            for target, state in _calls(processor, regions, start, end, states[start]):
                if _region(regions, target) and target not in known:
                    called[target] = state
        pending = {target for target, state in called.items() if states.get(target) != state}
        if not pending:
            break
    return states | called


def ranges(regions: Sequence[Region], starts: Iterable[int]) -> list[UnwindRange]:
    """Each start with the next one, or the end of its region, as its end."""
    return [UnwindRange(start, end, False) for start, end in _ranges(regions, starts)]


def _ranges(regions: Sequence[Region], starts: Iterable[int]) -> Iterator[tuple[int, int]]:
    rising = sorted(starts)
    for region in regions:
        inside = rising[bisect_left(rising, region.start) : bisect_left(rising, region.end)]
        yield from zip(inside, [*inside[1:], region.end], strict=False)


def _region(regions: Sequence[Region], address: int) -> Region | None:
    number = bisect_right(regions, address, key=lambda region: region.start) - 1
    return regions[number] if number >= 0 and address < regions[number].end else None


def _looks(regions: Sequence[Region], start: int, end: int) -> str:
    """ARM instructions are words whose top four bits, the condition, nearly always say: always."""
    if start % 4:
        return "t"
    region = _region(regions, start)
    assert region is not None
    code = bytes(region.data[start - region.start : min(end, start + CHUNK) - region.start])
    tops = np.frombuffer(code[: len(code) & ~3], dtype="<u4") >> 28
    return "a" if len(tops) and np.mean(tops == 0xE) > 0.5 else "t"


def _calls(
    processor: Arm, regions: Sequence[Region], start: int, end: int, state: str
) -> Iterator[tuple[int, str]]:
    """Targets of the direct calls in a range, and the state that they are called in."""
    region = _region(regions, start)
    assert region is not None
    for at in range(start, end, CHUNK):
        code = bytes(region.data[at - region.start : min(end, at + CHUNK) - region.start])
        records = processor.decoder(state).decode(code, at)
        table = records.table
        table = table[processor.kinds(table) == CALL]
        for name, operand in zip(mnemonics(table), operands(table), strict=True):
            target = processor.target(operand)
            if target is not None:
                yield target, OTHER[state] if name.startswith("blx") else state
        records.close()
