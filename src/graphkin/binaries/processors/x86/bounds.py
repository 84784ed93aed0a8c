"""How many entries a jump table has, from the comparison that guards the jump."""

from __future__ import annotations

from graphkin.binaries.processors.x86.operands import Memory, parse_memory, place_of
from graphkin.binaries.recovery.listing import Listing

REACH = 200
"""Instructions to look back for the comparison."""
COMPARES = ("cmp", "sub")
MOVES = ("mov", "movzx", "movsx", "movsxd", "movabs")
IGNORED = frozenset(["push", "call", "nop", "cdqe", "cdq", "endbr64"])
EXTRA = {"ja": 1, "jbe": 1, "jae": 0, "jb": 0, "jg": 1, "jle": 1, "jge": 0, "jl": 0}
"""What to add to N of ``cmp index, N`` for the number of indices that reach the table."""


def entries(listing: Listing, load: int, memory: Memory) -> int | None:
    """Entries that the code can reach, or None where no comparison with the index is found.

    Walks back from the load of an entry with the places (registers, stack slots) that hold the
    index. The first comparison of one of them that feeds a conditional jump counts; failing
    that, the comparison right ahead of the block, for -O0 code compares a copy.
    """
    tracked = {memory.scaled} if memory.scaled else {memory.base, memory.other}
    jump = ""
    guard: int | None = None
    guarded = ""
    may_guard = True
    for at in range(load - 1, max(-1, load - REACH), -1):
        name = listing.mnemonics[at]
        if name in EXTRA:
            may_guard = may_guard and not jump and name in ("ja", "jae")
            jump = name
            continue
        if name[0] == "j":
            may_guard = False
            continue
        if name in ("ret", "test"):
            jump = ""
            continue
        if name in IGNORED:
            continue
        target, _, source = listing.text(at).partition(", ")
        place = place_of(target)
        if name in COMPARES:
            limit = _number(source)
            if jump and limit is not None and limit <= 0xFFFF:
                if place in tracked:
                    return limit + EXTRA[jump]
                if may_guard:
                    guard, guarded, may_guard = limit + EXTRA[jump], place, False
            jump = ""
        if place not in tracked or name == "cmp":
            continue
        if name == "and":
            limit = _number(source)
            if limit is not None and limit <= 0xFFFF:
                return limit + 1
        if name in MOVES and not source.startswith("0x"):
            if place_of(source) == guarded:
                return guard
            tracked.discard(place)
            tracked.add(place_of(source))
        elif name == "lea":
            tracked.discard(place)
            inner = parse_memory(source)
            if inner.scaled and not inner.base:
                tracked.add(inner.scaled)
        elif name != "shl":  # only scales the index
            tracked.discard(place)
        if not tracked:
            break
    return guard


def _number(operand: str) -> int | None:
    try:
        return int(operand, 0)
    except ValueError:
        return None
