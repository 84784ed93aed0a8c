"""The instructions of one function, decoded on demand, with their control flow in columns."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from graphkin.binaries.image import Image
from graphkin.binaries.recovery.architecture import CALL, CUT, Architecture
from graphkin.binaries.recovery.columns import Columns, RecordColumns
from graphkin.binaries.recovery.stretches import Piece, Stretch, decode_pieces

STRAY_CHUNKS = (256, 1 << 16)
"""Bytes decoded from a target inside another instruction, or behind data: first a few, for the
known instructions are met soon, then many. Bounded, because crafted code could otherwise have
the whole function decoded from each byte of it."""

SLOT_BYTES = 4


class DecodedRun(NamedTuple):
    """A stretch of instructions, each followed by the next."""

    base: int
    """Position of its first instruction in the listing."""
    start: int
    end: int
    addresses: list[int]
    columns: Columns
    row: int
    """That of its first instruction in the columns."""
    state: str
    """As :attr:`Image.marks` has it."""

    def rows(self, positions: Sequence[int]) -> list[int]:
        """Rows of instructions in the columns."""
        moved = self.row - self.base
        return [position + moved for position in positions] if moved else list(positions)

    def ids(self, positions: Sequence[int]) -> list[int]:
        """What tells instructions apart from others of the columns."""
        return list(map(self.columns.ids.__getitem__, self.rows(positions)))


class Listing:
    """Instructions by position. A position keeps its meaning while more code is decoded.

    ``controls`` lists the positions of all that is not plain, rising, with ``kinds``, ``operands``
    and, for direct transfers, ``targets`` beside it. A branch with a delay slot is listed at the
    position of the slot, with the operands of the branch: control goes elsewhere behind the slot,
    and so the block ends there.
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
        self._pieces: list[Piece] = []
        """The code in the ranges."""
        self.addresses: list[int] = []
        self.sizes: list[int] = []
        self.mnemonics: list[str] = []
        self.controls: list[int] = []
        self.kinds: list[int] = []
        self.operands: list[bytes] = []
        self.targets: list[int | None] = []
        self.bases: dict[str, dict[int, tuple[int, int | None]]] = {}
        """For registers of 32-bit x86, then positions: where it was found out whether they hold
        the base of the global offset table, and the base."""
        self.base_spans: dict[str, tuple[int, int, int | None]] = {}
        """For registers of 32-bit x86, where that was last asked: behind the first position, and
        up to the second one, they hold the same."""
        self.writes: dict[int, tuple[str, str]] = {}
        """For instructions of 32-bit x86: what is written, and from what."""
        self._texts: dict[int, str] = {}
        """Operands that were asked for, and those that had to be changed."""
        self._words: list[int] = []
        self._worded_runs = 0
        self._slots: set[int] = set()
        """Positions of delay slots."""
        self._lone_slots: dict[int, int] = {}
        """Addresses of delay slots that code jumps to, without the branch ahead: positions."""

    def add_range(self, start: int, end: int, stretches: Sequence[Stretch] | None = None) -> None:
        """Makes a range part of the function.

        Args:
            start: address of its first byte.
            end: address behind its last one.
            stretches: its code, where that was decoded already.
        """
        self.ranges.append((start, end))
        pieces = self._image.pieces(start, end)
        self._pieces += pieces
        if stretches is None:
            stretches = decode_pieces(self._image, self._architecture, pieces)
        for stretch in stretches:
            if stretch.end > stretch.first:
                self._append(stretch)
                self._main_runs.append(self.runs[-1])

    def covers(self, address: int) -> bool:
        """Whether an address lies inside the function, be it code or data."""
        return any(start <= address < end for start, end in self.ranges)

    def position(self, address: int) -> int | None:
        """Where the instruction at an address is listed, without decoding anything."""
        for base, start, end, addresses, _, _, _ in self._main_runs:
            if start <= address < end:
                position = bisect_left(addresses, address)
                if position < len(addresses) and addresses[position] == address:
                    return base + position
        return self._strays.get(address)

    def locate(self, address: int) -> int | None:
        """The same, decoding from there where needed; None for what is not code of the function."""
        position = self.position(address)
        if position is not None:
            return self._lone_slot(address) if position in self._slots else position
        for start, end, state in self._pieces:
            if start <= address < end:
                near, far = (min(end, address + size) for size in STRAY_CHUNKS)
                position = self._decode(address, near, state, must_meet=near < far)
                return self._decode(address, far, state) if position is None else position
        return None

    def is_call(self, position: int) -> bool:
        """Whether an instruction calls a function."""
        at = bisect_left(self.controls, position)
        return self.controls[at] == position and self.kinds[at] == CALL

    def word(self, position: int) -> int:
        """The first four bytes of an instruction, as a number."""
        return self._words[position] if position < len(self._words) else self.words()[position]

    def words(self) -> list[int]:
        """Those of all instructions, by position."""
        for _, _, _, addresses, columns, row, _ in self.runs[self._worded_runs :]:
            self._words += columns.words[row : row + len(addresses)]
        self._worded_runs = len(self.runs)
        return self._words

    def text(self, position: int) -> str:
        """The operands of an instruction."""
        text = self._texts.get(position)
        if text is None:
            run = self.runs[0] if len(self.runs) == 1 else self._run(position)
            raw = run.columns.text(run.row + position - run.base)
            text = self._texts[position] = raw.decode("ascii", "replace")
        return text

    def state(self, position: int) -> str:
        """The state that an instruction was decoded in."""
        return self._run(position).state

    def _run(self, position: int) -> DecodedRun:
        return self.runs[bisect_right(self.runs, position, key=lambda run: run.base) - 1]

    def _lone_slot(self, address: int) -> int:
        """A second copy of a delay slot, which goes on to what follows it in memory."""
        position = self._lone_slots.get(address)
        if position is None:
            known = self._run(self.position(address) or 0)
            piece = (address, address + SLOT_BYTES, known.state)
            stretch = decode_pieces(self._image, self._architecture, [piece])[0]
            position = self._lone_slots[address] = self._append(stretch, is_slot=True)
        return position

    def _decode(self, start: int, end: int, state: str, must_meet: bool = False) -> int | None:
        """Position of the first instruction; None where there is none, or where the known ones
        are not met though they must be.
        """
        table = self._architecture.decoder(state).decode(
            self._image.read(start, end - start), start
        )
        if not len(table):
            return None
        addresses = table["address"].tolist()
        # Decoding from inside an instruction falls in step with the known ones soon.
        known = (i for i, address in enumerate(addresses) if self.position(address) is not None)
        count = next(known, len(addresses))
        if count == len(addresses) and must_meet:
            return None
        columns = RecordColumns(
            table[:count], [count], self._architecture, self._image.byte_order, state
        )
        base = self._append(Stretch(start, state, columns, 0, count))
        self._strays.update(zip(addresses[:count], range(base, base + count), strict=True))
        return base

    def _append(self, stretch: Stretch, is_slot: bool = False) -> int:
        """Lists instructions as a run, and gives the position of the first."""
        start, state, columns, first, end = stretch
        base = len(self.addresses)
        last = base + end - first - 1
        if not is_slot:
            self._list_controls(stretch, base - first)
        if not self.controls or self.controls[-1] != last:
            self.controls.append(last)
            self.kinds.append(CUT)
            self.operands.append(b"")
            self.targets.append(None)
        addresses, sizes = columns.addresses[first:end], columns.sizes[first:end]
        self.addresses += addresses
        self.sizes += sizes
        self.mnemonics += columns.mnemonics[first:end]
        self.lasts.add(last)
        behind = addresses[-1] + sizes[-1]
        self.runs.append(DecodedRun(base, start, behind, addresses, columns, first, state))
        return base

    def _list_controls(self, stretch: Stretch, moved: int) -> None:
        """Lists what is not plain; positions are rows moved by so many."""
        _, _, columns, first, end = stretch
        rows, kinds, operands, targets, slots, are_texts = columns.transfers
        low, high = bisect_left(rows, first), bisect_left(rows, end)
        positions = [row + moved for row in rows[low:high]]
        self.controls += positions
        self.kinds += kinds[low:high]
        self.operands += operands[low:high]
        self.targets += targets[low:high]
        if slots:
            self._slots.update(
                [row + moved for row in slots[bisect_left(slots, first) : bisect_left(slots, end)]]
            )
        if are_texts:
            texts = (text.decode("ascii", "replace") for text in operands[low:high])
            self._texts.update(zip(positions, texts, strict=True))
