"""What a jump table holds, once it is known where it may lie and how long it may be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from graphkin.binaries.image import Image
from graphkin.binaries.recovery.listing import Listing

MAX_ENTRIES = 1 << 16
MAX_CANDIDATES = 16

Register = TypeVar("Register", str, int)


class Table(NamedTuple, Generic[Register]):
    """A jump table; the target of an entry is ``origin + (entry << shift)``."""

    address: int
    width: int
    """Bytes of an entry; 0 for a row of branches, which are the targets themselves."""
    signed: bool
    shift: int
    origin: int
    selector: Register
    """The register that holds the index."""
    load: int
    """Position of the load."""
    condition: str = ""


class TableEntries:
    """Reads the jump tables of one function, and remembers whose they are.

    Args:
        image: the binary.
        pointer: width of an address in bytes.
        step: what the address of an instruction is a multiple of.
    """

    def __init__(self, image: Image, pointer: int, step: int) -> None:
        self._image = image
        self._pointer = pointer
        self._step = step
        self._owners: dict[int, int] = {}
        """Table to the jump that reads it."""

    def targets(
        self,
        listing: Listing,
        position: int,
        tables: Iterable[Table[Register]],
        length_of: Callable[[Table[Register]], int | None],
        guess: bool,
    ) -> list[int] | None:
        """Targets of the best of several tables; None when only a guess could tell how many.

        Args:
            position: of the jump.
            tables: those that the jump may read, the likeliest first.
            length_of: how many entries the code can reach, or None.
            guess: whether to read a table of unknown length.
        """
        best: list[int] = []
        chosen, rank = 0, (False, 0)
        for table in islice(tables, MAX_CANDIDATES):
            length = length_of(table)
            if length is None and not guess:
                return None
            targets = self._read(listing, table, length)
            is_free = self._owners.get(table.address, position) == position
            if (is_free, len(targets)) > rank and targets:
                rank, best, chosen = (is_free, len(targets)), targets, table.address
            if is_free and best and len(targets) == (length or len(targets)):
                break
        if best:
            self._owners.setdefault(chosen, position)
        return best

    def _read(self, listing: Listing, table: Table[Register], length: int | None) -> list[int]:
        """Targets up to a known length; otherwise up to the first that is not code of the
        function, the next table, or the code that follows a table inside the function."""
        if not table.width:
            return [table.address + 4 * number for number in range(length or 0)]
        if length is None and table.width < 4 and not listing.covers(table.address):
            # Any byte is a short distance to somewhere in the function.
            return []
        targets: list[int] = []
        stop = (1 << 64) if length is None else table.address + length * table.width
        for entry in range(min(length or MAX_ENTRIES, MAX_ENTRIES)):
            address = table.address + entry * table.width
            word = self._image.word(address, table.width)
            if word is None or address >= stop or (entry and address in self._owners):
                break
            target = self._target(table, word)
            if not self._is_code(listing, target):
                if length is None:
                    break
                continue
            targets.append(target)
            if length is None and target > table.address and listing.covers(table.address):
                stop = min(stop, target)
        return targets

    def _target(self, table: Table[Register], word: int) -> int:
        if table.signed:
            sign = 1 << (8 * table.width - 1)
            word = (word ^ sign) - sign
        target = (table.origin + (word << table.shift)) & ((1 << 8 * self._pointer) - 1)
        # The lowest bit selects Thumb.
        return target & ~1 if self._step == 2 else target

    def _is_code(self, listing: Listing, target: int) -> bool:
        if target % self._step:
            return False
        return listing.covers(target) or self._image.fragment(target) is not None
