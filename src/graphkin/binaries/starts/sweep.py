"""Code read straight through, as columns: what each instruction does to control flow, and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import ByteOrder, Image, Region
from graphkin.binaries.recovery.architecture import Architecture

FILLER, NOT_CODE = 100, 101
"""Kinds of instruction beside those of :mod:`graphkin.binaries.recovery.architecture`: padding
between functions, and bytes that are data or nothing."""
NOWHERE = -1
SAVES_LINK = 2
DECODED_WORD = np.dtype([("word", "<u4"), ("big_word", "<u4"), ("id", "<u4")])
MAX_ADDRESS = 1 << 62
"""Addresses from here on are those of damaged files, and could overflow."""


@dataclass(frozen=True)
class Sweep:
    """The instructions of some code, in the order of addresses."""

    address: NDArray[np.int64]
    """(N,)"""
    size: NDArray[np.int64]
    """(N,) bytes."""
    kind: NDArray[np.uint8]
    """(N,) as ``Architecture.kinds`` has it, or ``FILLER``, or ``NOT_CODE``."""
    target: NDArray[np.int64]
    """(N,) of a direct branch, jump or call; ``NOWHERE`` of all else."""
    pointer: NDArray[np.int64]
    """(N,) an address that the instruction computes or holds; ``NOWHERE`` of all else."""
    prologue: NDArray[np.bool_]
    """(N,) whether functions of this processor often begin with it, and other code seldom."""
    frame: NDArray[np.int8]
    """(N,) 1 where it makes room on the stack or saves a register there, ``SAVES_LINK`` where that
    is the register with the address of return, -1 where it gives back."""
    state: NDArray[np.uint8]
    """(N,) the letter of :attr:`Image.marks`; 0 where the processor has one state only."""
    origin: NDArray[np.int64]
    """(N,) where its function starts, if the instruction tells that; else ``NOWHERE``."""

    def __len__(self) -> int:
        return len(self.address)

    @property
    def end(self) -> NDArray[np.int64]:
        return self.address + self.size

    def select(self, rows: NDArray[Any]) -> Sweep:
        return Sweep(*(getattr(self, field.name)[rows] for field in fields(self)))


def joined(sweeps: Sequence[Sweep]) -> Sweep:
    """Sweeps of rising addresses, as one."""
    return Sweep(
        *(np.concatenate([getattr(item, field.name) for item in sweeps]) for field in fields(Sweep))
    )


def empty() -> Sweep:
    """Of no code."""
    none = nowhere(0)
    flags, small = none.astype(np.bool_), none.astype(np.uint8)
    return Sweep(none, none, small, none, none, flags, small.astype(np.int8), small, none)


class CodeFacts(Protocol):
    """What the search for starts must know of a processor."""

    @property
    def alignment(self) -> int:
        """Of functions, where compilers pad them; 1 where they do not."""

    @property
    def padded(self) -> int:
        """Padding ends at a multiple of this many bytes."""

    @property
    def architecture(self) -> Architecture:
        """For the jump tables."""

    def sweep(self, image: Image, regions: Sequence[Region]) -> Sweep:
        """The instructions of some code; data between them is marked where it is known."""


def words(data: bytes | memoryview | bytearray, width: int) -> NDArray[np.int64]:
    """The little-endian words of some bytes."""
    usable = len(data) // width * width
    return np.frombuffer(data[:usable], dtype=f"<u{width}").astype(np.int64)


def aligned_words(region: Region, order: ByteOrder) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Addresses and values of the words of some code whose instructions are words."""
    lead = -region.start % 4
    usable = (len(region.data) - lead) // 4 * 4
    data = region.data[lead : lead + max(0, usable)]
    word = np.frombuffer(data, dtype="<u4" if order == "little" else ">u4").astype(np.int64)
    return region.start + lead + 4 * np.arange(len(word), dtype=np.int64), word


def decoded_words(word: NDArray[np.int64]) -> NDArray[Any]:
    """Words as the records that ``Architecture.kinds`` takes, whatever the byte order."""
    table = np.ones(len(word), dtype=DECODED_WORD)
    table["word"] = table["big_word"] = word
    return table


def nowhere(count: int) -> NDArray[np.int64]:
    """(count,) no addresses."""
    return np.full(count, NOWHERE, dtype=np.int64)


def signed(values: NDArray[np.int64], bits: int) -> NDArray[np.int64]:
    """Fields of so many bits, as numbers with a sign."""
    sign = np.int64(1 << (bits - 1))
    return ((values & ((1 << bits) - 1)) ^ sign) - sign


def frame_changes(
    code: NDArray[np.int64],
    reserves: Iterable[tuple[int, int]],
    releases: Iterable[tuple[int, int]],
) -> NDArray[np.int8]:
    """:attr:`Sweep.frame` of instructions, by the (mask, bits) of those that change the stack."""
    frame = np.zeros(len(code), dtype=np.int8)
    for change, forms in ((1, reserves), (-1, releases)):
        for mask, bits in forms:
            frame[code & mask == bits] = change
    return frame


def marks_of(sweep: Sweep) -> list[tuple[int, str]]:
    """What :attr:`Image.marks` says of the swept code; none for processors with one state."""
    if not sweep.state.any():
        return []
    state = np.where(sweep.kind == NOT_CODE, ord("d"), sweep.state)
    changes = np.flatnonzero(np.diff(state, prepend=0))
    return [(int(sweep.address[row]), chr(state[row])) for row in changes.tolist()]


def addresses(values: Iterable[int]) -> NDArray[np.int64]:
    """Addresses as a rising column; those of damaged files are left out."""
    sane = (value for value in values if 0 <= value < MAX_ADDRESS)
    return np.unique(np.fromiter(sane, dtype=np.int64))
