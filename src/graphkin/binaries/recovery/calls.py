"""Function starts that no table names: the targets of calls, and of pointers in data.

Leaf functions of Windows have no unwind data, and 32-bit Windows binaries have none at all. Their
code is searched for the bytes of direct calls, wherever they lie. Few of the bytes that look
like a call without being one lead into code, and hardly any to a place where a function can
begin, so that no disassembly is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import Region, UnwindRange

Addresses = NDArray[np.int64]

LIMIT = 1 << 62
"""Addresses from here on are those of damaged files, and could overflow."""
ALIGNMENT = 16
FILLERS = (0xCC, 0x90, 0xC3)
"""Bytes ahead of a function: padding, or the ``ret`` of the one before it."""
LONGER = ((2, 0xEB), (3, 0xC2), (5, 0xE9))
"""(how far ahead, opcode) of jumps and of ``ret n``, which also end a function."""


class Pointers(NamedTuple):
    """Words of the file that hold addresses."""

    slots: Addresses
    """(K,) where the words are, rising."""
    values: Addresses
    """(K,) what they hold."""
    width: int


def called_starts(
    regions: Sequence[Region],
    architecture: str,
    known: Iterable[UnwindRange],
    pointers: Pointers | None = None,
) -> list[int]:
    """Addresses outside the known ranges where functions seem to start, sorted.

    Args:
        architecture: ``x86``, ``x86-64`` or ``aarch64``; nothing is found for others.
        pointers: words that may hold the address of a function, on x86.
    """
    code = [region for region in regions if region.executable]
    search = {"x86": _x86_calls, "x86-64": _x86_calls, "aarch64": _arm64_calls}.get(architecture)
    if search is None or not code or max(region.end for region in code) >= LIMIT:
        return []
    called = np.unique(np.concatenate([search(region) for region in code]))
    candidates = [_inside(called, region) for region in code]
    if architecture == "aarch64":
        candidates = [near[near % 4 == 0] for near in candidates]
    else:
        candidates = [
            near[_may_start(near, region) | (near % ALIGNMENT == 0)]
            for near, region in zip(candidates, code, strict=True)
        ]
        if pointers is not None:
            candidates.append(_pointed(pointers, code))
    ranges = sorted(item for item in known if item.end < LIMIT)
    starts: list[int] = _outside(np.unique(np.concatenate(candidates)), ranges).tolist()
    return starts


def _pointed(pointers: Pointers, code: Sequence[Region]) -> Addresses:
    """Pointers to aligned places where functions can begin, but not those of jump tables.

    The tables of switches point into code as well. They are words in a row, and hardly one of
    them has only targets that look like functions; MSVC has them between the functions, where
    no other pointers stand in a row.
    """
    slots, values, width = pointers
    is_code, is_start = np.zeros(len(values), bool), np.zeros(len(values), bool)
    in_code = np.zeros(len(values), bool)
    for region in code:
        here = (values >= region.start) & (values < region.end)
        is_code |= here
        in_code |= (slots >= region.start) & (slots < region.end)
        is_start[here] = _may_start(values[here], region) & (values[here] % ALIGNMENT == 0)
    run = np.cumsum(np.diff(slots, prepend=slots[:1]) != width)
    lengths = np.bincount(run, minlength=1)
    bad = np.zeros(len(lengths), bool)
    bad[run[is_code & ~is_start]] = True
    bad[run[in_code & (lengths[run] > 1)]] = True
    # What begins with a pointer is a table.
    return np.asarray(values[is_start & ~bad[run] & ~np.isin(values, slots)])


def _x86_calls(region: Region) -> Addresses:
    code = np.frombuffer(region.data, dtype=np.uint8)
    at = np.flatnonzero(code[:-4] == 0xE8)
    distance = sum(code[at + 1 + byte].astype(np.uint32) << (8 * byte) for byte in range(4))
    return region.start + at + 5 + np.asarray(distance, dtype=np.uint32).view(np.int32)


def _arm64_calls(region: Region) -> Addresses:
    usable = len(region.data) & ~3
    words = np.frombuffer(region.data[:usable], dtype="<u4")
    at = np.flatnonzero(words >> 26 == 0b100101)
    distance = (words[at] << 6).view(np.int32) >> 4
    return region.start + 4 * at + distance


def _outside(addresses: Addresses, ranges: Sequence[UnwindRange]) -> Addresses:
    if not ranges:
        return addresses
    starts = np.array([item.start for item in ranges], dtype=np.int64)
    ends = np.maximum.accumulate(np.array([item.end for item in ranges], dtype=np.int64))
    before = np.searchsorted(starts, addresses, side="right") - 1
    return addresses[(before < 0) | (addresses >= ends[before])]


def _inside(addresses: Addresses, region: Region) -> Addresses:
    first, last = np.searchsorted(addresses, [region.start, region.end])
    return addresses[first:last]


def _may_start(addresses: Addresses, region: Region) -> NDArray[np.bool_]:
    """Whether what lies ahead of each address can be the end of a function, or padding."""
    code = np.frombuffer(region.data, dtype=np.uint8)
    at = addresses - region.start
    verdict = (at == 0) | np.isin(code[np.maximum(at - 1, 0)], FILLERS)
    for back, opcode in LONGER:
        verdict |= code[np.maximum(at - back, 0)] == opcode
    return np.asarray(verdict)
