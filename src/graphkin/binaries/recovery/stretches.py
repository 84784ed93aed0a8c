"""Ranges of code, decoded for the functions of a file: many ranges at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from graphkin.binaries.image import Extent, Image
from graphkin.binaries.recovery.architecture import Architecture
from graphkin.binaries.recovery.columns import Columns, RecordColumns
from graphkin.binaries.recovery.words import BYTES, WordDecoder

Piece = tuple[int, int, str]
"""(start, end, state) of code, as :meth:`Image.pieces` has them."""
MOST_FUNCTIONS, MOST_BYTES = 128, 1 << 16
"""What is decoded at once, if it is not one large function: more would only take memory and, of a
hostile file, time between two looks at the clock."""


class Stretch(NamedTuple):
    """Instructions of a range: rows of some columns."""

    start: int
    """Address of the first byte."""
    state: str
    """As :attr:`Image.marks` has it."""
    columns: Columns
    first: int
    end: int
    """Behind the last row."""


def decode_pieces(
    image: Image, architecture: Architecture, pieces: Sequence[Piece]
) -> list[Stretch]:
    """What stands in pieces of code, each decoded for itself."""
    states: dict[str, list[int]] = {}
    for number, (_, _, state) in enumerate(pieces):
        states.setdefault(state, []).append(number)
    stretches: dict[int, Stretch] = {}
    for state, numbers in states.items():
        starts = [pieces[number][0] for number in numbers]
        ends = [pieces[number][1] for number in numbers]
        ranges = [
            (image.read(start, end - start), start) for start, end in zip(starts, ends, strict=True)
        ]
        decoder = architecture.decoder(state)
        columns: Columns
        if isinstance(decoder, WordDecoder) and not any(start % BYTES for start in starts):
            columns, counts = decoder.columns(ranges, architecture)
        else:
            table, counts = decoder.decode_all(ranges)
            columns = RecordColumns(table, counts, architecture, image.byte_order, state)
        row = 0
        for number, start, count in zip(numbers, starts, counts, strict=True):
            stretches[number] = Stretch(start, state, columns, row, row + count)
            row += count
    return [stretches[number] for number in range(len(pieces))]


class Batch:
    """The code of some functions, decoded when the first of them is asked for.

    Args:
        image: the binary.
        architecture: the processor.
        extents: where the functions lie.
    """

    def __init__(self, image: Image, architecture: Architecture, extents: Iterable[Extent]) -> None:
        self._image = image
        self._architecture = architecture
        self._ranges = [(extent.start, extent.end) for extent in extents]
        self._stretches: dict[tuple[int, int], list[Stretch]] = {}

    def stretches(self, start: int, end: int) -> list[Stretch]:
        """Those of a function."""
        if not self._stretches:
            self._decode()
        return self._stretches[start, end]

    def _decode(self) -> None:
        pieces = {key: self._image.pieces(*key) for key in self._ranges}
        everything = [piece for own in pieces.values() for piece in own]
        decoded = iter(decode_pieces(self._image, self._architecture, everything))
        for key, own in pieces.items():
            self._stretches[key] = [next(decoded) for _ in own]


Numbered = tuple[int, Extent]


def in_batches(extents: Iterable[Numbered]) -> Iterator[list[Numbered]]:
    """Functions to be decoded together."""
    batch: list[Numbered] = []
    size = 0
    for number, extent in extents:
        own = extent.end - extent.start
        if batch and (len(batch) >= MOST_FUNCTIONS or size + own > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append((number, extent))
        size += own
    if batch:
        yield batch
