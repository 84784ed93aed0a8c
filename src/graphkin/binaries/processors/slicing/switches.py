"""Jump tables of processors that load an entry, perhaps add an origin, and jump.

With T the table, I the index and O the place that entries count from, all forms are
``load R, T + (I << n); [add R, R, O;] jump R``. Parts of T may be added before or in the load.
Registers are followed backwards through the instructions as they lie in memory, which is how
compilers keep these sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from graphkin.binaries.image import Image
from graphkin.binaries.processors.slicing.bounds import Bounds
from graphkin.binaries.processors.slicing.effects import NONE, Load, Mask, Semantics, Shift, Sum
from graphkin.binaries.processors.slicing.values import Values
from graphkin.binaries.processors.table_entries import MAX_CANDIDATES, Table, TableEntries
from graphkin.binaries.processors.walk import Walk
from graphkin.binaries.recovery.architecture import Architecture
from graphkin.binaries.recovery.listing import Listing

MAX_SUMS = 4
"""Additions in a row that may make the address of an entry."""

Jump = Callable[[Listing, int], "tuple[int, int] | None"]
"""(listing, position of a transfer) to the register that it jumps through, and the position of
the instruction that reads it."""


class Switches:
    """Reads the jump tables of one function.

    Args:
        image: the binary.
        architecture: the processor.
        semantics: what its instructions do.
        jump: what an indirect jump goes through.
        pointer: width of an address in bytes.
        step: what the address of an instruction is a multiple of.
    """

    def __init__(
        self,
        image: Image,
        architecture: Architecture,
        semantics: Semantics,
        jump: Jump,
        pointer: int,
        step: int,
    ) -> None:
        self._semantics = semantics
        self._jump = jump
        self._walk = Walk(architecture, image)
        self._values = Values(image, semantics, pointer)
        self._bounds = Bounds(self._values, semantics, self._walk)
        self._entries = TableEntries(image, pointer, step)

    def __call__(self, listing: Listing, position: int, guess: bool) -> list[int] | None:
        """Targets of an indirect jump; None when only a guess could tell how many there are.

        A jump through a register that comes from no table, as in a tail call, has no targets.
        """
        jump = self._jump(listing, position)
        if jump is None:
            return []
        far = self._values.exact(listing, *jump)
        if far is not None:
            # A branch out of reach of the instructions for it, or a tail call.
            return [far] if listing.covers(far) else []
        lengths: dict[tuple[int, int], int | None] = {}

        def length(table: Table[int]) -> int | None:
            key = table.load, table.selector
            if key not in lengths:
                lengths[key] = self._bounds.entries(listing, *key)
            return lengths[key]

        return self._entries.targets(listing, position, self._find(listing, *jump), length, guess)

    def _find(self, listing: Listing, register: int, position: int) -> Iterator[Table[int]]:
        """Tables that the jump may read, the likeliest first."""
        writer = self._values.writer(listing, self._walk, register, position)
        if writer is None:
            return
        at, effect = writer
        if isinstance(effect, Load):
            yield from self._tables(listing, at, effect, None)
        elif isinstance(effect, Sum):
            for entry, origin in ((effect.first, effect.second), (effect.second, effect.first)):
                loaded = self._values.writer(listing, self._walk, entry, at)
                if entry == NONE or loaded is None or not isinstance(loaded[1], Load):
                    continue
                yield from self._relative(listing, at, effect.constant, origin, loaded[0])

    def _relative(
        self, listing: Listing, at: int, constant: int, register: int, load: int
    ) -> Iterator[Table[int]]:
        """Tables whose entries count from what a register holds."""
        effect = self._semantics.effect(listing, load)
        assert isinstance(effect, Load)
        constants = islice(self._values.constants(listing, register, at), MAX_CANDIDATES)
        bases = [constant + base for base in constants]
        for table in self._tables(listing, load, effect, 0):
            if table.address in bases:
                # What counts from the table itself, as most do.
                yield table._replace(origin=table.address)
            elif bases:
                yield table._replace(origin=bases[0])

    def _tables(
        self, listing: Listing, at: int, effect: Load, origin: int | None
    ) -> Iterator[Table[int]]:
        """Tables that a load may read; its address is the sum of a table and an index."""
        displacement, first, second = effect.displacement, effect.base, effect.selector
        load = at
        for _ in range(MAX_SUMS):
            if second != NONE:
                break
            writer = self._values.writer(listing, self._walk, first, load)
            added = None if writer is None else writer[1]
            if writer is None or not isinstance(added, Sum):
                return
            load, first, second = writer[0], added.first, added.second
            displacement += added.constant
        if NONE in (first, second):
            return
        signed = origin is not None and effect.signed
        for base, index in self._by_likelihood(listing, first, second, load):
            for start in self._values.constants(listing, base, load):
                address = start + displacement
                yield Table(address, effect.width, signed, 0, origin or 0, index, load)

    def _by_likelihood(
        self, listing: Listing, first: int, second: int, position: int
    ) -> Iterator[tuple[int, int]]:
        """(table, index): an index was scaled, or cut to some bits."""
        writer = self._values.writer(listing, self._walk, first, position)
        pairs = [(first, second), (second, first)]
        if writer is not None and isinstance(writer[1], Shift | Mask):
            pairs.reverse()
            yield pairs[0]
            return
        writer = self._values.writer(listing, self._walk, second, position)
        if writer is not None and isinstance(writer[1], Shift | Mask):
            yield pairs[0]
            return
        yield from pairs
