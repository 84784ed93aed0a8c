"""How many entries a jump table of ARM or AArch64 has, from the comparison that guards the jump."""

from __future__ import annotations

from graphkin.binaries.processors.risc.operands import (
    family,
    number,
    parse_memory,
    plain_name,
    split,
)
from graphkin.binaries.processors.walk import Walk
from graphkin.binaries.recovery.listing import Listing

REACH = 200
"""Instructions to look back for the comparison."""
EXTRA = {"hi": 1, "ls": 1, "hs": 0, "lo": 0, "gt": 1, "le": 1, "ge": 0, "lt": 0}
"""What to add to N of ``cmp index, #N`` for the number of indices that reach the table."""
BRANCHES = {f"b{dot}{name}": name for name in EXTRA for dot in (".", "")}
COMPARES = frozenset(["cmp", "cmpeq", "subs", "rsbs"])
MOVES = frozenset(["mov", "uxtb", "uxth", "uxtw", "sxtb", "sxth", "sxtw", "lsl"])
LOADS = frozenset(["ldr", "ldrb", "ldrh", "ldrsw", "ldrsb", "ldrsh", "ldurb", "ldurh", "ldursw"])
STORES = frozenset(["str", "strb", "strh", "sturb", "sturh"])
_TEXT = """cmn tst teq b bl blx blr br ret nop push pop stp ldp ldrd strd cbz cbnz tbz tbnz it ite
           itt itte ittt bx"""
READERS = frozenset(_TEXT.split())
"""Mnemonics that change no register that could hold an index, and compare nothing."""
CALLS = frozenset(["bl", "blx", "blr"])
MOST = 0xFFFF


def entries(listing: Listing, walk: Walk, load: int, index: str, condition: str = "") -> int | None:
    """Entries that the code can reach, or None where no comparison with the index is found.

    Walks back from the load of an entry with the locations (registers, stack slots) that hold the
    index. The first comparison of one of them that feeds a conditional jump counts; failing
    that, the comparison right ahead of the block, for -O0 code compares a copy.

    Args:
        listing: instructions of the function.
        walk: how to go back through them.
        load: position of the load.
        index: the register that selects an entry.
        condition: of the load itself.
    """
    tracked = {index}
    jump = condition if condition in EXTRA else ""
    guard: int | None = None
    guarded = ""
    may_guard = True
    bounds: dict[str, int] = {}
    """What other registers are compared with, for the index may turn out to be a copy of one."""
    mask: int | None = None
    for at in walk.back(listing, load, REACH):
        raw = listing.mnemonics[at].removesuffix(".w")
        if raw in BRANCHES:
            may_guard = may_guard and not jump and BRANCHES[raw] in ("hi", "hs")
            jump = BRANCHES[raw]
            continue
        if raw in READERS:
            if raw in ("tst", "cmn", "teq"):
                jump = ""
            elif raw in CALLS:
                bounds.clear()
            continue
        name = plain_name(raw)
        parts = split(listing.text(at))
        location = family(parts[0])
        if raw in COMPARES:
            compared, limit = _comparison(listing, at, raw, parts)
            if jump and limit is not None and 0 <= limit <= MOST:
                count = limit + (1 if raw == "rsbs" else EXTRA[jump])
                if compared in tracked:
                    return count
                bounds.setdefault(compared, count)
                if may_guard:
                    guard, guarded, may_guard = count, compared, False
            jump = ""
            if raw.startswith("cmp"):
                continue
        if name in STORES:
            if parse_memory(parts[-1]).text in tracked:
                if location == guarded:
                    return guard
                tracked.add(location)
            continue
        if raw == "adds" and jump in ("hs", "lo") and location in tracked:
            # ``adds index, x, #N`` carries for indices below N.
            limit = number(parts[-1])
            if limit is not None and 0 < limit <= MOST:
                return limit
        bounds.pop(location, None)
        if location not in tracked or len(parts) < 2:
            continue
        tracked.discard(location)
        bits = _mask(name, parts)
        if bits is not None and bits < 0xFF:
            return bits + 1
        mask = mask if bits is None else bits
        source = ""
        if name in MOVES or bits is not None:
            source = family(parts[1])
        elif name in LOADS and parse_memory(parts[1]).is_stack:
            source = parse_memory(parts[1]).text
        if source in bounds:
            return bounds[source]
        if source and source == guarded:
            return guard
        if source and not source.startswith("#"):
            tracked.add(source)
        if not tracked:
            break
    return guard if guard is not None or mask is None or mask > MOST else mask + 1


def _comparison(
    listing: Listing, position: int, name: str, parts: list[str]
) -> tuple[str, int | None]:
    """What is compared, and with which number."""
    location = family(parts[-2]) if len(parts) > 1 else ""
    limit = number(parts[-1])
    if limit is not None or name != "cmp":
        return location, limit
    # A number too large for the instruction is in a register.
    for at in range(position - 1, max(-1, position - 8), -1):
        if plain_name(listing.mnemonics[at]) == "mov":
            target, *source = split(listing.text(at))
            if family(target) == family(parts[-1]) and source:
                return location, number(source[0])
    return location, None


def _mask(name: str, parts: list[str]) -> int | None:
    """The bits that an instruction may leave set; None where they are not the lowest, or where
    there are many of them and they are not the lowest of its source."""
    last = number(parts[-1])
    if last is None:
        return None
    if name == "and":
        return last if last & (last + 1) == 0 else None
    if name == "ubfx" and len(parts) == 4:
        return (1 << last) - 1 if last < 8 or number(parts[2]) == 0 else None
    if name == "lsr":
        left = (64 if parts[0].startswith("x") else 32) - last
        return (1 << left) - 1 if 0 <= left < 8 else None
    return None
