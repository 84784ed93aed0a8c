"""How many entries a jump table has, from the comparison that guards the jump."""

from __future__ import annotations

from graphkin.binaries.processors.slicing.effects import (
    NONE,
    Branch,
    Call,
    Compare,
    Effect,
    Mask,
    Semantics,
    Shift,
    Sum,
)
from graphkin.binaries.processors.slicing.values import Tree, Values
from graphkin.binaries.processors.walk import Walk
from graphkin.binaries.recovery.listing import Listing

REACH = 200
"""Instructions to look back for the comparison."""
MAX_COMPARISONS = 8
MOST = 0xFFFF
REGISTER_BITS = 64
MAX_BITS = 8
"""Bits of an index for which the mask alone says how long a table is."""


class Bounds:
    """Finds the comparison of an index.

    Args:
        values: what registers hold.
        semantics: what instructions do.
        walk: how to go back through them.
    """

    def __init__(self, values: Values, semantics: Semantics, walk: Walk) -> None:
        self._values = values
        self._semantics = semantics
        self._walk = walk

    def entries(self, listing: Listing, load: int, index: int) -> int | None:
        """Entries that the code can reach, or None where no comparison with the index is found.

        Walks back from the load of an entry. The first comparison of the index, or of something
        that was computed in the same way, counts if a conditional jump depends on it.

        Args:
            listing: instructions of the function.
            load: position of the load.
            index: the register that selects an entry.
        """
        tree = self._values.tree(listing, self._walk, index, load)
        equals, bits = _unwrapped(tree)
        if bits is not None and bits < MAX_BITS:
            return 1 << bits
        tracked = {index}
        conditions: dict[int, str] = {}
        comparisons = 0
        for at in self._walk.back(listing, load, REACH):
            effect = self._semantics.effect(listing, at)
            if isinstance(effect, Branch):
                conditions[effect.condition] = effect.relation
                continue
            if isinstance(effect, Compare):
                if effect.target == NONE or effect.target in conditions:
                    relation = conditions.pop(effect.target, "") or effect.relation
                    count = self._count(listing, at, effect, relation, tracked, equals)
                    if count is not None:
                        return count
                    comparisons += 1
                    if comparisons == MAX_COMPARISONS:
                        break
                tracked.discard(effect.target)
                continue
            self._track(effect, tracked)
            if isinstance(effect, Call):
                for register in self._semantics.scratch & conditions.keys():
                    del conditions[register]
            else:
                conditions.pop(effect.target, None)
        return None if bits is None or 1 << bits > MOST else 1 << bits

    def _track(self, effect: Effect, tracked: set[int]) -> None:
        """Goes from what an instruction left in a register to what it took it from."""
        if isinstance(effect, Call):
            tracked -= self._semantics.scratch
        elif effect.target in tracked:
            tracked.discard(effect.target)
            if isinstance(effect, Shift) or (isinstance(effect, Mask) and not effect.moved):
                tracked.add(effect.source)
            elif isinstance(effect, Sum) and effect.second == NONE and not effect.constant:
                tracked |= {effect.first} - {NONE}

    def _count(
        self,
        listing: Listing,
        at: int,
        effect: Compare,
        relation: str,
        tracked: set[int],
        equals: set[Tree],
    ) -> int | None:
        """Indices for which a comparison lets the jump through; None where it is of others."""
        sides = ((effect.first, effect.second, effect.constant), (effect.second, effect.first, 0))
        for is_second, (index, other, constant) in enumerate(sides):
            if index == NONE:
                continue
            if (
                index not in tracked
                and self._values.tree(listing, self._walk, index, at) not in equals
            ):
                continue
            value = self._values.exact(listing, other, at)
            if value is None:
                value = next(self._values.constants(listing, other, at, 1), None)
            if value is not None and 0 <= value + constant <= MOST:
                allows_equal = (relation in ("gt", "le")) != bool(is_second)
                return value + constant + allows_equal
        return None


def _unwrapped(tree: Tree) -> tuple[set[Tree], int | None]:
    """The trees of an index before it was scaled and cut to its lowest bits, and how many bits."""
    trees: set[Tree] = set()
    bits: int | None = None
    while True:
        trees.add(tree)
        if tree.kind not in ("mask", "moved mask", "shift"):
            return trees, bits
        inner = tree.parts[0]
        number = tree.number
        if tree.kind == "moved mask" and inner.kind == "shift":
            # Up and down again: the lowest bits, as in a conversion from 32 bits to 64.
            number, inner = max(REGISTER_BITS - inner.number, 0), inner.parts[0]
        elif tree.kind == "moved mask":
            return trees, number if bits is None else min(bits, number)
        if tree.kind != "shift":
            bits = number if bits is None else min(bits, number)
        tree = inner
