"""What instructions of MIPS say, of 32 and 64 bits and in both byte orders.

Constants are ``lui`` and what completes them. Addresses come through ``$gp``: an entry of the
global offset table is a symbol's address, or that of a page to which the rest is added later.
``$gp`` itself, which functions compute from their own address and restore behind calls, says
nothing. Branches have a delay slot, and comparisons leave their result in a register.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import cast

from graphkin.binaries.evidence import tokens as said
from graphkin.binaries.evidence.collect import CACHE, Body
from graphkin.binaries.evidence.mips_syntax import parse
from graphkin.binaries.evidence.operations import UNKNOWN, Codes, pack, parse_table
from graphkin.binaries.evidence.registers import (
    COPY,
    LOW,
    MEMORY,
    SUM,
    UPPER,
    Step,
    Value,
    follow,
)
from graphkin.binaries.function import Token
from graphkin.binaries.recovery.architecture import BRANCH, CALL, JUMP, STOP

_WITHOUT_OPERANDS = parse_table("""
nop ssnop ehb pref prefx cache teq tge tgeu tlt tltu tne teqi tnei: none
mtlo mthi mthc1 ctc1 pause: none
beq beql: compare branch_eq
bne bnel: compare branch_ne
bltz bgez blez bgtz bltzl bgezl blezl bgtzl: compare branch_signed
bc1t bc1f bc1tl bc1fl: branch_signed
b j: jump
bal jal jalx bgezal bltzal: call
sync synci: fence
break sdbbp: trap
syscall mtc0 eret deret di ei wait: system
""")
_WIDTHS = {"lh": 2, "lhu": 2, "lw": 4, "lwu": 4, "lwc1": 4, "ld": 8, "ldc1": 8}
_ENTRY_REACH = 64
"""Instructions behind the address of a table, in which an entry is read."""
_STACK = frozenset(["sp"])
_CLOBBERED = frozenset(
    ["at", "v0", "v1", "ra", *(f"a{n}" for n in range(8)), *(f"t{n}" for n in range(10))]
)
_FRAME_REACH = 64
"""Instructions in which a function sets up its frame and ``$gp``."""
_FRAMES = frozenset([0x03A0F021, 0x03A0F025, 0x03A0F02D])
"""``move $fp, $sp``: with addu, or and daddu."""
_NOTHING = Step().settled()
_COMPARE_REACH = 4
"""Instructions behind a comparison, in which the branch on it is."""
_SCALES = frozenset(said.shift(amount) for amount in (1, 2, 3))
_SCALE_REACH = 8
"""Instructions behind the shift of an index, in which it is added, and in which that is used."""
_TARGET = re.compile(rb"(?:^|, )(0x[0-9a-f]+|\d+)$")


def _find(mnemonic: str) -> int:
    names = _WITHOUT_OPERANDS.get(mnemonic)
    return UNKNOWN if names is None else pack(*names)


_CODES = Codes(_find)
_COMPARE = pack("compare")
_ON_RESULT = {"slt": pack("branch_signed"), "slti": pack("branch_signed"),
              "sltu": pack("branch_unsigned"), "sltiu": pack("branch_unsigned")}  # fmt: skip


class MipsRules:
    """MIPS.

    Args:
        is_big: whether words begin with their highest byte.
    """

    codes = _CODES

    def __init__(self, is_big: bool) -> None:
        self._first_half = "l" if is_big else "r"
        """How the half of an unaligned access ends that names the word's first byte."""
        self._caches: dict[bool, dict[int, Step]] = {False: {}, True: {}}
        """By whether there is a frame, and by the word of the instruction."""

    def read(self, body: Body) -> None:
        """Finds what the instructions say, and completes their operations."""
        has_frame = _has_frame(body)
        cache = self._caches[has_frame]
        if len(cache) > CACHE:
            cache.clear()
        stack = _STACK | {"fp"} if has_frame else _STACK
        words, positions = body.listing.words(), body.positions
        known = list(map(cache.get, map(words.__getitem__, positions)))
        if None in known:
            names = body.listing.mnemonics
            missing = [number for number, step in enumerate(known) if step is None]
            texts = body.texts([positions[number] for number in missing])
            for number, text in zip(missing, texts, strict=True):
                position = positions[number]
                step = parse(names[position], text, stack, self._first_half)
                known[number] = cache[words[position]] = step
        steps, codes = cast("list[Step]", known), body.codes
        for position, step in zip(positions, steps, strict=True):
            codes[position] = step.code
        _scale(body, steps)
        table = _global_pointer(body, steps)
        follow(
            body,
            zip(body.positions, steps, strict=True),
            clobbered=_CLOBBERED,
            compared=_compared,
            counter=body.listing.addresses.__getitem__,
            known={"gp": table} if table is not None else None,
            table=table,
            branches=_branches(body),
        )
        if body.places.is_big:
            _swap_tables(body, steps)
        _conditions(body, steps)
        _transfers(body)


def _compared(body: Body, position: int, value: int) -> int:
    return value


def _has_frame(body: Body) -> bool:
    """Whether ``$fp`` holds the frame: it is set from ``$sp`` near the start."""
    words = body.listing.words()
    return not _FRAMES.isdisjoint(words[:_FRAME_REACH])


def _global_pointer(body: Body, steps: list[Step]) -> Value | None:
    """What ``$gp`` holds; the instructions that compute it are replaced by such that say nothing.

    ``lui R, N; addiu R, R, N; addu G, R, $t9`` with the function's address in ``$t9``; code of 64
    bits adds the lower half last.
    """
    value = body.places.image.got
    parts: dict[str, tuple[int, list[int]]] = {}
    for number, step in enumerate(steps[:_FRAME_REACH]):
        if step.dst == "t9":
            break
        if step.action == UPPER:
            parts[step.dst] = (step.value, [number])
        elif step.action == LOW and step.dst == step.base and step.dst in parts:
            parts[step.dst] = (parts[step.dst][0] + step.value, [*parts[step.dst][1], number])
        elif step.action == SUM and "t9" in (step.base, step.index):
            source = step.index if step.base == "t9" else step.base
            if source not in parts:
                break
            value, numbers = parts[source]
            low = next(
                (
                    at
                    for at in range(number + 1, min(_FRAME_REACH, len(steps)))
                    if steps[at].action == LOW and steps[at].dst == steps[at].base == step.dst
                ),
                None,
            )
            if len(numbers) == 1 and low is not None:
                value += steps[low].value
                numbers = [*numbers, low]
            value += body.listing.addresses[0]
            for at in numbers:
                steps[at] = _NOTHING
            steps[number] = _copy(step.dst)
            for at in (*numbers, number):
                body.codes[body.positions[at]] = 0
            break
    for number, step in enumerate(steps):
        if step.dst == "gp":
            steps[number] = _NOTHING
            body.codes[body.positions[number]] = 0
    return None if value is None else _address(value & body.places.mask)


def _scale(body: Body, steps: list[Step]) -> None:
    """An index is shifted and added where other processors have it in the operand of the access;
    both instructions are replaced by such that say nothing."""
    names, positions = body.listing.mnemonics, body.positions
    for number, step in enumerate(steps):
        if step.tokens not in _SCALES or names[positions[number]] not in ("sll", "dsll"):
            continue
        near = range(number + 1, min(number + 1 + _SCALE_REACH, len(steps)))
        added = next((at for at in near if step.dst in (steps[at].base, steps[at].index)), None)
        if added is None or steps[added].action != SUM:
            continue
        total = steps[added].dst
        near = range(added + 1, min(added + 1 + _SCALE_REACH, len(steps)))
        used = next((at for at in near if steps[at].base == total), None)
        if used is not None and steps[used].action == MEMORY:
            steps[number] = _plain(step.dst)
            body.codes[positions[number]] = body.codes[positions[added]] = 0


def _plain(register: str) -> Step:
    """Overwrites a register, and says nothing."""
    step = Step()
    step.dst = register
    return step.settled()


def _address(value: int) -> Value:
    return Value(value, 0, True, False)


def _copy(register: str) -> Step:
    """Has a register hold what ``$gp`` does."""
    if register == "gp":
        return _NOTHING
    step = Step()
    step.action, step.dst, step.base = COPY, register, "gp"
    return step


def _swap_tables(body: Body, steps: list[Step]) -> None:
    """Has tables begin with the lowest byte of their first entry, as those of other processors;
    how wide an entry is, the code says that reads one."""
    for number, token in enumerate(body.said):
        if token.kind == "dat":
            raw = bytes.fromhex(token.text)
            width = _entry_bytes(body, steps, body.where[number])
            if width is None:
                width = 1 if any(raw[:2]) else 4
            entries = [raw[at : at + width][::-1] for at in range(0, len(raw), width)]
            body.said[number] = Token("dat", b"".join(entries).hex())


def _entry_bytes(body: Body, steps: list[Step], position: int) -> int | None:
    """Bytes that are read at an address which the instruction at a position makes; None where
    none are."""
    names = body.listing.mnemonics
    first = bisect_left(body.positions, position)
    holders = {steps[first].dst}
    for at in range(first + 1, min(first + _ENTRY_REACH, len(steps))):
        step = steps[at]
        if step.action == MEMORY and step.base in holders:
            return _WIDTHS.get(names[body.positions[at]], 1)
        if step.action in (SUM, COPY, LOW) and not holders.isdisjoint((step.base, step.index)):
            holders.add(step.dst)
        else:
            holders.discard(step.dst)
    return None


def _conditions(body: Body, steps: list[Step]) -> None:
    """A branch on the result of a comparison is that comparison's."""
    names, codes = body.listing.mnemonics, body.codes
    count = len(names)
    for position, step in zip(body.positions, steps, strict=True):
        branch = _ON_RESULT.get(names[position])
        if branch is None:
            continue
        for at in range(position + 1, min(position + 1 + _COMPARE_REACH, count)):
            if names[at] in ("beqz", "bnez", "beqzl", "bnezl"):
                if body.listing.text(at).startswith(f"${step.dst},"):
                    codes[position], codes[at] = _COMPARE, branch
                break


def _branches(body: Body) -> list[tuple[int, int, bool]]:
    """(position, position of the target, whether the next one may follow) of what branches."""
    listing = body.listing
    found: list[tuple[int, int, bool]] = []
    for position, kind, operand in zip(
        listing.controls, listing.kinds, listing.operands, strict=True
    ):
        if kind in (BRANCH, JUMP, STOP):
            match = _TARGET.search(operand) if kind != STOP else None
            target = None if match is None else listing.position(int(match[1], 0))
            found.append((position, -1 if target is None else target, kind == BRANCH))
    return found


def _transfers(body: Body) -> None:
    """Where calls and jumps go."""
    listing = body.listing
    for position, kind, operand in zip(
        listing.controls, listing.kinds, listing.operands, strict=True
    ):
        if kind in (CALL, JUMP):
            match = _TARGET.search(operand)
            if match is not None:
                body.go(position, int(match[1], 0))
