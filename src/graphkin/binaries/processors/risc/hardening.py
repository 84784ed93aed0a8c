"""What gcc and clang add to code of ARM and AArch64 to harden it."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping

from graphkin.binaries.image import Image
from graphkin.binaries.processors.risc.operands import family, number, parse_memory, split
from graphkin.binaries.processors.risc.values import Values, written
from graphkin.binaries.recovery.hardening import CodeSearch, Probes
from graphkin.binaries.recovery.listing import Listing

ARM64_WORDS = {
    "bti": "",
    "paciasp": "",
    "pacibsp": "",
    "autiasp": "",
    "autibsp": "",
    "retaa": "ret",
    "retab": "ret",
    "braa": "br",
    "braaz": "br",
    "brab": "br",
    "brabz": "br",
    "blraa": "blr",
    "blraaz": "blr",
    "blrab": "blr",
    "blrabz": "blr",
}
BRANCHES = frozenset(["b.eq", "b.ne", "beq", "bne", "beq.w", "bne.w"])
ZERO_BRANCHES = frozenset(["cbz", "cbnz"])
COMPARES = frozenset(["subs", "cmp", "eors", "eors.w", "cmp.w"])
DIFFERENCES = frozenset(["sub", "eor", *COMPARES])
LOADS = frozenset(["ldr", "ldur", "ldr.w"])
STORES = frozenset(["str", "stur", "str.w"])
ADDRESSES = frozenset(["adrp", "adr", "add", "ldr", "mov", "movt", "mrs"])
"""Instructions that make the address of the guard's original."""
PAGES = (b"\x4f\xf4\x80\x5c\xad\xeb\x0c\x0c\xcc\xf8", b"\x01\xca\x4d\xe2")
"""``mov.w ip, #0x1000; sub.w ip, sp, ip; str.w`` of Thumb, and ``sub ip, sp, #0x1000`` of ARM."""
PROBE = re.compile(r"r0, \[ip(?:, #0x[0-9a-f]+|, #\d)?\]$")
NEXT_PAGE = "ip, ip, #0x1000"
NEAR = 12
"""Instructions between the parts of a test, or of what puts the guard on the stack."""

Guard = tuple[int, object]
"""(displacement, address) of the original of the guard."""


class RiscHardening:
    """Marks of branch targets, signed return addresses, and the stack protector.

    Args:
        pointer: width of an address in bytes.
        words: mnemonics, each with what is there without hardening.
    """

    def __init__(self, pointer: int, words: Mapping[str, str]) -> None:
        self.words = words
        self.marks = frozenset(words)
        self._pointer = pointer
        self._pages = [CodeSearch(pattern) for pattern in PAGES] if pointer == 4 else []

    def failures(self, image: Image, listing: Listing) -> Collection[int]:
        return ()

    def probes(self, image: Image, listing: Listing) -> Probes | None:
        if not any(search.is_in(image) for search in self._pages):
            return None
        probes = Probes(set(), set(), {})
        for search in self._pages:
            for at in search.positions(image, listing):
                probes.dropped.update(_probe(listing, at))
        return probes

    def test(self, image: Image, listing: Listing, first: int, branch: int) -> set[int]:
        load = self._test_loads(listing, first, branch)
        if load is None:
            return set()
        compare, slot, original = load
        positions = {branch, compare, slot, original}
        compared = {family(part) for part in split(listing.text(compare))}
        for at in range(compare + 1, branch):
            # Nothing of the guard stays in a register.
            if _cleared(listing, at) in compared:
                positions.add(at)
        return positions | _chain(listing, first, original, positions)

    def keeps_result(self, listing: Listing, before: int, behind: int) -> bool:
        names = listing.mnemonics[before], listing.mnemonics[behind]
        stored, fetched = split(listing.text(before)), split(listing.text(behind))
        if names == ("mov", "mov"):
            return stored == fetched[::-1]
        is_pair = names[0] in STORES and names[1] in LOADS
        return is_pair and stored[1:] == fetched[1:] and parse_memory(stored[1]).is_stack

    def setup(self, image: Image, listing: Listing, tests: Iterable[int]) -> set[int]:
        guards = {guard for branch in tests if (guard := self._tested(image, listing, branch))}
        names = listing.mnemonics
        for at in range(len(names) if guards else 0):
            if names[at] not in STORES:
                continue
            register, memory = split(listing.text(at))[:2]
            if not parse_memory(memory).is_stack:
                continue
            load = _writer(listing, register, at, max(0, at - NEAR))
            if load is None or names[load] not in LOADS:
                continue
            if self._guard(image, listing, load) not in guards:
                continue
            positions = {at, load}
            if at + 1 < len(names) and _cleared(listing, at + 1) == family(register):
                positions.add(at + 1)
            return positions | _chain(listing, max(0, load - 3 * NEAR), load, positions)
        return set()

    def _test_loads(self, listing: Listing, first: int, branch: int) -> tuple[int, int, int] | None:
        """Positions of the comparison, and of the loads of both of its values."""
        names = listing.mnemonics
        start = max(first, branch - NEAR)
        compare: int | None = branch - 1
        if names[branch] in BRANCHES:
            while compare is not None and names[compare] not in COMPARES:
                compare = compare - 1 if compare > start else None
        elif names[branch] in ZERO_BRANCHES:
            compare = _writer(listing, split(listing.text(branch))[0], branch, start)
        else:
            return None
        if compare is None or names[compare] not in DIFFERENCES or compare < start:
            return None
        slots: list[int] = []
        originals: list[int] = []
        for register in dict.fromkeys(split(listing.text(compare))[-2:]):
            load = _writer(listing, register, compare, max(first, compare - NEAR))
            if load is not None and names[load] in LOADS:
                memory = parse_memory(split(listing.text(load))[-1])
                (slots if memory.is_stack else originals).append(load)
        if len(slots) != 1 or len(originals) != 1:
            return None
        return compare, slots[0], originals[0]

    def _tested(self, image: Image, listing: Listing, branch: int) -> Guard | None:
        loads = self._test_loads(listing, max(0, branch - 3 * NEAR), branch)
        return None if loads is None else self._guard(image, listing, loads[2])

    def _guard(self, image: Image, listing: Listing, load: int) -> Guard | None:
        """Where a load reads the original of the guard; None where that cannot be told."""
        memory = parse_memory(split(listing.text(load))[-1])
        if not memory.base or memory.selector:
            return None
        register = memory.base
        source = _writer(listing, register, load, max(0, load - 3 * NEAR))
        if source is None:
            return None
        if listing.mnemonics[source] == "mrs":
            return memory.displacement, split(listing.text(source))[-1]
        copied = split(listing.text(source))[-1]
        if listing.mnemonics[source] == "mov" and number(copied) is None:
            register, load = family(copied), source
        values = Values(image, self._pointer)
        address: object = values.slot(listing, register, load, depth=1)
        if address is None:
            address = next(values.constants(listing, register, load), None)
        return None if address is None else (memory.displacement, address)


def _probe(listing: Listing, at: int) -> set[int]:
    """The instructions from ``at`` on that store something into each page of a stack frame."""
    names = listing.mnemonics
    probe = {at} if names[at] == "sub" else {at, at + 1}
    at = max(probe) + 1
    while at < len(names) and names[at] in STORES and PROBE.match(listing.text(at)):
        probe.add(at)
        if at + 2 < len(names) and listing.text(at + 1) == NEXT_PAGE:
            probe.add(at + 1)
            at += 2
        else:
            return probe
    return set()


def _cleared(listing: Listing, at: int) -> str | None:
    """The register that an instruction sets to 0."""
    if not listing.mnemonics[at].startswith("mov"):
        return None
    parts = split(listing.text(at))
    return family(parts[0]) if number(parts[-1]) == 0 else None


def _writer(listing: Listing, register: str, position: int, start: int) -> int | None:
    """The nearest instruction ahead of a position that writes a register."""
    own = family(register)
    for at in range(position - 1, start - 1, -1):
        if written(listing, own, at) is not None:
            return at
    return None


def _chain(listing: Listing, start: int, load: int, guarded: Collection[int]) -> set[int]:
    """The instructions that make the address that a load reads, where nothing else uses it."""
    chain: set[int] = set()
    todo = [(load, parse_memory(split(listing.text(load))[-1]).base)]
    while todo:
        position, register = todo.pop()
        at = _writer(listing, register, position, start)
        if at is None or at in chain:
            continue
        text = written(listing, family(register), at)
        if text is None or text[0] not in ADDRESSES:
            continue
        if _is_used(listing, register, at, {*guarded, *chain, position}):
            continue
        chain.add(at)
        todo += [(at, source) for source in _sources(*text)]
    return chain


def _sources(name: str, parts: list[str]) -> list[str]:
    """The registers that an instruction makes an address of."""
    if name == "ldr":
        memory = parse_memory(parts[-1])
        registers = [memory.base, memory.selector]
    else:
        # With two operands, an addition is to the first.
        is_own = name == "movt" or (name == "add" and len(parts) == 2)
        registers = [family(part) for part in (parts if is_own else parts[1:])]
    return [register for register in registers if register[:1] in ("r", "x")]


def _is_used(listing: Listing, register: str, at: int, known: Collection[int]) -> bool:
    """Whether a register that ``at`` writes is read by other instructions than the known ones."""
    own = family(register)
    pattern = re.compile(rf"\b[{'xw' if own[0] == 'x' else 'r'}]{own[1:]}\b")
    # The last instruction of a run always is in the list.
    end = listing.controls[bisect_left(listing.controls, at + 1)]
    for position in range(at + 1, end + 1):
        text = listing.text(position)
        if position not in known and pattern.search(text):
            is_new = written(listing, own, position) is not None
            return not is_new or pattern.search(text.partition(", ")[2]) is not None
        if position in known and written(listing, own, position) is not None:
            return False
    return False
