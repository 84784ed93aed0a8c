"""What gcc and clang add to x86 code to harden it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from graphkin.binaries.image import Image
from graphkin.binaries.processors.x86.operands import family
from graphkin.binaries.recovery.hardening import CodeSearch, Probes
from graphkin.binaries.recovery.listing import Listing

WORDS = {
    "endbr64": "",
    "endbr32": "",
    "notrack jmp": "jmp",
    "notrack call": "call",
    "bnd jmp": "jmp",
    "bnd call": "call",
    "bnd ret": "ret",
}
GUARDS = {8: b"\x25\x28\0\0\0", 4: b"\x14\0\0\0"}
"""Bytes of an operand ``fs:[0x28]`` and ``gs:[0x14]``, where the C library keeps the original of
the guard."""
GUARD = re.compile(r"[fg]s:\[0x(?:28|14)\]")
COMPARES = frozenset(["sub", "xor", "cmp"])
NO_FLAGS = frozenset(["mov", "lea", "pop", "movzx", "movsx", "movsxd", "movaps", "movups", "movdqa",
                      "movdqu", "movss", "movsd", "movq", "movd"])  # fmt: skip
NEAR = 8
"""Instructions between the load of a guard and its use."""
PAGE = b"\x81\xec\0\x10\0\0"
"""``sub esp, 0x1000``, and with a prefix ``sub rsp, 0x1000``."""
CLANG_PAGES = {
    8: b"\x48" + PAGE + b"\x48\xc7\x04\x24\0\0\0\0",
    4: PAGE + b"\xc7\x04\x24\0\0\0\0",
}
"""``sub rsp, 0x1000; mov qword ptr [rsp], 0``, which clang writes and gcc does not."""
SLOTS = {8: b"\x48\x83\xec\x08", 4: b"\x83\xec\x04"}
"""``sub rsp, 8`` and ``sub esp, 4``."""
FRAME_BEGINS = frozenset(["push", "endbr64", "endbr32"])
FRAME_POINTERS = ("rbp, rsp", "ebp, esp")
PROBE = re.compile(r"(or|mov|xor) [dq]word ptr \[[re]sp\], 0$")


class X86Hardening:
    """Marks of branch targets, the stack protector, and probes of stack frames.

    Args:
        pointer: width of an address in bytes.
    """

    words = WORDS
    marks = frozenset(WORDS)

    def __init__(self, pointer: int) -> None:
        self._guard = CodeSearch(GUARDS[pointer])
        self._page = CodeSearch(PAGE)
        self._clang_page = CodeSearch(CLANG_PAGES[pointer])
        self._slot = CodeSearch(SLOTS[pointer])
        self._slot_text = f"{'rsp' if pointer == 8 else 'esp'}, {pointer}"

    def failures(self, image: Image, listing: Listing) -> Collection[int]:
        if not self._guard.is_in(image):
            return ()
        called: set[int] = set()
        for at in self._guards(image, listing):
            branch = _branch(listing, at)
            if branch is None:
                continue
            target: int | None = branch + 1
            if listing.mnemonics[branch] == "jne":
                target = listing.position(int(listing.text(branch), 16))
            if target is not None and listing.mnemonics[target] == "call":
                operand = listing.text(target)
                if operand.startswith("0x"):
                    called.add(int(operand, 16))
        return called

    def test(self, image: Image, listing: Listing, first: int, branch: int) -> set[int]:
        names = listing.mnemonics
        if names[branch] not in ("je", "jne"):
            return set()
        compare = branch - 1
        while compare >= first and names[compare] in NO_FLAGS:
            compare -= 1
        if compare < first or names[compare] not in COMPARES:
            return set()
        positions = {branch, compare}
        operands = listing.text(compare).split(", ")
        has_guard = GUARD.search(operands[-1]) is not None
        for register in operands:
            load = None if "[" in register else _load(listing, register, first, compare)
            if load is not None:
                positions.add(load)
                has_guard = has_guard or GUARD.search(listing.text(load)) is not None
        return positions if has_guard else set()

    def setup(self, image: Image, listing: Listing, tests: Iterable[int]) -> set[int]:
        names = listing.mnemonics
        positions: set[int] = set()
        for at in self._guards(image, listing):
            register, _, source = listing.text(at).partition(", ")
            if names[at] != "mov" or GUARD.search(source) is None:
                continue
            store = _store(listing, register, at)
            if store is None:
                continue
            positions |= {at, store}
            following = store + 1
            if following < len(names) and names[following] == "xor":
                cleared = listing.text(following).split(", ")
                if cleared[0] == cleared[1] and family(cleared[0]) == family(register):
                    positions.add(following)
        return positions

    def keeps_result(self, listing: Listing, before: int, behind: int) -> bool:
        slot, _, register = listing.text(before).partition(", ")
        is_store = "[" in slot and listing.text(behind) == f"{register}, {slot}"
        return is_store and listing.mnemonics[before] == listing.mnemonics[behind] == "mov"

    def probes(self, image: Image, listing: Listing) -> Probes | None:
        slots = self._slots(image, listing)
        if not slots and not self._page.is_in(image):
            return None
        names = listing.mnemonics
        probes = Probes(set(), set(), slots)
        for at in self._page.positions(image, listing):
            if listing.text(at) not in ("rsp, 0x1000", "esp, 0x1000") or at + 2 >= len(names):
                continue
            probe = PROBE.match(f"{names[at + 1]} {listing.text(at + 1)}")
            if probe is None:
                continue
            is_loop = _is_loop(listing, at)
            behind = at + (4 if is_loop else 2)
            goes_on = _shrinks(listing, behind)
            if is_loop:
                probes.loops.add(at)
                probes.dropped.update(range(at + 1, behind), _limit(listing, at))
            elif goes_on or probe[1] == "or":
                probes.dropped.add(at + 1)
            if goes_on:
                probes.dropped.add(at)
        return probes

    def _slots(self, image: Image, listing: Listing) -> dict[int, str]:
        """Frames of one slot. Without probes, clang makes them by ``push rax`` and nothing else.
        gcc never does, so that its code stays as it is."""
        if not (self._is_by_clang(image) and self._slot.is_in(image)):
            return {}
        positions = self._slot.positions(image, listing)
        return {at: "push" for at in positions if self._is_frame(listing, at)}

    def _is_by_clang(self, image: Image) -> bool:
        return "clang" in (image.compiler or "") or self._clang_page.is_in(image)

    def _is_frame(self, listing: Listing, at: int) -> bool:
        """Whether ``sub rsp, 8`` makes a frame: behind pushes, or at the begin of a block, and not
        ahead of arguments that are pushed."""
        names = listing.mnemonics
        if listing.text(at) != self._slot_text or "push" in names[at + 1 : at + 2]:
            return False
        before = names[at - 1] if at else "push"
        if before == "mov":
            return listing.text(at - 1) in FRAME_POINTERS
        is_behind_jump = at - 1 in listing.controls and not listing.is_call(at - 1)
        return before in FRAME_BEGINS or is_behind_jump

    def _guards(self, image: Image, listing: Listing) -> list[int]:
        """Positions of the instructions that read the original of the guard."""
        return [
            at
            for at in self._guard.positions(image, listing)
            if GUARD.search(listing.text(at)) is not None
        ]


def _branch(listing: Listing, at: int) -> int | None:
    """The branch that a comparison with the guard at ``at``, or just behind it, decides."""
    has_compared = False
    for position in range(at, min(at + NEAR, len(listing.mnemonics))):
        name = listing.mnemonics[position]
        if name in COMPARES and not has_compared:
            has_compared = True
        elif name in ("je", "jne"):
            return position if has_compared else None
        elif name not in NO_FLAGS:
            return None
    return None


def _load(listing: Listing, register: str, first: int, compare: int) -> int | None:
    """Where a register that is compared was loaded with the guard, from its slot or original."""
    for at in range(compare - 1, max(first - 1, compare - NEAR), -1):
        target, _, source = listing.text(at).partition(", ")
        if family(target) == family(register):
            return at if listing.mnemonics[at] == "mov" and "[" in source else None
    return None


def _store(listing: Listing, register: str, load: int) -> int | None:
    """Where a register that holds the guard is put on the stack."""
    for at in range(load + 1, min(load + NEAR, len(listing.mnemonics))):
        target, _, source = listing.text(at).partition(", ")
        if listing.mnemonics[at] == "mov" and source == register and "[" in target:
            return at
        if family(target) == family(register):
            return None
    return None


def _shrinks(listing: Listing, at: int) -> bool:
    """Whether an instruction makes the stack frame larger still."""
    if at >= len(listing.mnemonics) or listing.mnemonics[at] != "sub":
        return False
    target, _, size = listing.text(at).partition(", ")
    return family(target) == "sp" and size[:1].isdigit()


def _is_loop(listing: Listing, at: int) -> bool:
    """Whether a probe is followed by ``cmp rsp, LIMIT; jne`` back to it."""
    names = listing.mnemonics
    return (
        names[at + 2 : at + 4] == ["cmp", "jne"]
        and family(listing.text(at + 2).partition(", ")[0]) == "sp"
        and listing.text(at + 3) == f"{listing.addresses[at]:#x}"
    )


def _limit(listing: Listing, at: int) -> set[int]:
    """The instructions right ahead of a loop that compute where it ends."""
    limit = listing.text(at + 2).partition(", ")[2]
    positions: set[int] = set()
    for name, position in (("lea", at - 1), ("sub", at - 1), ("mov", at - 2)):
        if position >= 0 and listing.mnemonics[position] == name:
            target, _, source = listing.text(position).partition(", ")
            is_ours = target == limit and (name == "sub" or "sp" in source)
            if is_ours and (name != "mov" or at - 1 in positions):
                positions.add(position)
    return positions
