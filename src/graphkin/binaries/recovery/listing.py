"""The instructions of one function, decoded on demand, with their control flow in columns."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np

from graphkin.binaries.image import Image
from graphkin.binaries.recovery.architecture import CUT, Architecture
from graphkin.binaries.recovery.decode import Records, mnemonics, operands

STRAY_CHUNKS = (256, 1 << 16)
"""Bytes decoded from a target inside another instruction, or behind data: first a few, for the
known instructions are met soon, then many. Bounded, because crafted code could otherwise have
the whole function decoded from each byte of it."""


class DecodedRun(NamedTuple):
    """A stretch of instructions, each followed by the next."""

    base: int
    """Position of its first instruction in the listing."""
    start: int
    end: int
    addresses: list[int]
    records: Records
    state: str
    """As :attr:`Image.marks` has it."""


class Listing:
    """Instructions by position. A position keeps its meaning while more code is decoded.

    ``controls`` lists the positions of all that is not plain, rising, with ``kinds`` and
    ``operands`` beside it.
    """

    def __init__(self, image: Image, architecture: Architecture) -> None:
        self._image = image
        self._architecture = architecture
        self.runs: list[DecodedRun] = []
        self._main_runs: list[DecodedRun] = []
        self._strays: dict[int, int] = {}
        """Positions of the instructions that are not decoded from the start of a range."""
        self.lasts: set[int] = set()
        """Positions at which a run ends."""
        self.ranges: list[tuple[int, int]] = []
        self._pieces: list[tuple[int, int, str]] = []
        """(start, end, state) of the code in the ranges."""
        self.addresses: list[int] = []
        self.sizes: list[int] = []
        self.mnemonics: list[str] = []
        self.controls: list[int] = []
        self.kinds: list[int] = []
        self.operands: list[bytes] = []

    def add_range(self, start: int, end: int) -> None:
        """Makes a range part of the function, and decodes its code."""
        self.ranges.append((start, end))
        for piece in self._image.pieces(start, end):
            self._pieces.append(piece)
            if self._decode(*piece, is_main=True) is not None:
                self._main_runs.append(self.runs[-1])

    def covers(self, address: int) -> bool:
        """Whether an address lies inside the function, be it code or data."""
        return any(start <= address < end for start, end in self.ranges)

    def position(self, address: int) -> int | None:
        """Where the instruction at an address is listed, without decoding anything."""
        for base, start, end, addresses, _, _ in self._main_runs:
            if start <= address < end:
                position = bisect_left(addresses, address)
                if position < len(addresses) and addresses[position] == address:
                    return base + position
        return self._strays.get(address)

    def locate(self, address: int) -> int | None:
        """The same, decoding from there where needed; None for what is not code of the function."""
        position = self.position(address)
        if position is not None:
            return position
        for start, end, state in self._pieces:
            if start <= address < end:
                near, far = (min(end, address + size) for size in STRAY_CHUNKS)
                position = self._decode(address, near, state, must_meet=near < far)
                return self._decode(address, far, state) if position is None else position
        return None

    def text(self, position: int) -> str:
        """The operands of an instruction."""
        run = self._run(position)
        return run.records.text(position - run.base)

    def state(self, position: int) -> str:
        """The state that an instruction was decoded in."""
        return self._run(position).state

    def _run(self, position: int) -> DecodedRun:
        return self.runs[bisect_right(self.runs, position, key=lambda run: run.base) - 1]

    def close(self) -> None:
        for run in self.runs:
            run.records.close()

    def _decode(
        self, start: int, end: int, state: str, is_main: bool = False, must_meet: bool = False
    ) -> int | None:
        """Position of the first instruction; None where there is none, or where the known ones
        are not met though they must be.
        """
        decoder = self._architecture.decoder(state)
        records = decoder.decode(self._image.read(start, end - start), start)
        table = records.table
        if not len(table):
            records.close()
            return None
        addresses = table["address"].tolist()
        count = len(addresses)
        if self.runs:
            # Decoding from inside an instruction falls in step with the known ones soon.
            known = (i for i, address in enumerate(addresses) if self.position(address) is not None)
            count = next(known, count)
            if count == len(addresses) and must_meet:
                records.close()
                return None
            table, addresses = table[:count], addresses[:count]
        base = len(self.addresses)
        kinds = self._architecture.kinds(table)
        controls = np.flatnonzero(kinds)
        self.kinds += kinds[controls].tolist()
        self.operands += operands(table[controls])
        self.controls += (controls + base).tolist()
        sizes = table["size"].tolist()
        self.addresses += addresses
        self.sizes += sizes
        self.mnemonics += mnemonics(table)
        last = base + count - 1
        self.lasts.add(last)
        if not self.controls or self.controls[-1] != last:
            self.controls.append(last)
            self.kinds.append(CUT)
            self.operands.append(b"")
        run = DecodedRun(base, start, addresses[-1] + sizes[-1], addresses, records, state)
        self.runs.append(run)
        if not is_main:
            self._strays.update(zip(addresses, range(base, base + count), strict=True))
        return base
