"""What instructions of MIPS say, of 32 and 64 bits and in both byte orders.

Constants are ``lui`` and what completes them. Addresses come through ``$gp``: an entry of the
global offset table is a symbol's address, or that of a page to which the rest is added later.
``$gp`` itself, which functions compute from their own address and restore behind calls, says
nothing. Branches have a delay slot, and comparisons leave their result in a register.
"""

from __future__ import annotations

from graphkin.binaries.evidence.collect import Body
from graphkin.binaries.evidence.instructions import Instructions
from graphkin.binaries.evidence.mips.constant_tables import swap_tables
from graphkin.binaries.evidence.mips.global_pointer import find_global_pointer
from graphkin.binaries.evidence.mips.syntax import COMPARES, SCALES, parse
from graphkin.binaries.evidence.operations import UNKNOWN, Codes, pack, parse_table
from graphkin.binaries.evidence.register_steps import MEMORY, SUM, Step
from graphkin.binaries.evidence.registers import follow
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
_STACK = frozenset(["sp"])
_CLOBBERED = frozenset(
    ["at", "v0", "v1", "ra", *(f"a{n}" for n in range(8)), *(f"t{n}" for n in range(10))]
)
_FRAME_REACH = 64
"""Instructions in which a function sets up its frame."""
_FRAMES = frozenset([0x03A0F021, 0x03A0F025, 0x03A0F02D])
"""``move $fp, $sp``: with addu, or and daddu."""
_COMPARE_REACH = 4
"""Instructions behind a comparison, in which the branch on it is."""
_SCALE_REACH = 8
"""Instructions behind the shift of an index, in which it is added, and in which that is used."""


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
        self._known: dict[bool, Instructions[Step]] = {False: Instructions(), True: Instructions()}
        """By whether there is a frame."""

    def read(self, body: Body) -> None:
        """Finds what the instructions say, and completes their operations."""
        words = body.listing.words()
        has_frame = not _FRAMES.isdisjoint(words[:_FRAME_REACH])
        stack = _STACK | {"fp"} if has_frame else _STACK

        def take_apart(position: int, name: str, text: bytes) -> Step:
            return parse(name, text, stack, self._first_half)

        steps = self._known[has_frame].look_up(body, take_apart)
        marked = [number for number, step in enumerate(steps) if step.marks]
        _join_scales(body, steps, [number for number in marked if steps[number].marks & SCALES])
        table = find_global_pointer(body, steps, marked)
        branches, transfers = _read_controls(body)
        follow(
            body,
            steps,
            clobbered=_CLOBBERED,
            conditions={},
            counter=body.listing.addresses.__getitem__,
            known={"gp": table} if table is not None else None,
            table=table,
            branches=branches,
        )
        if body.places.is_big:
            swap_tables(body, steps)
        _join_branches(body, [(at, steps[at]) for at in marked if steps[at].marks & COMPARES])
        for position, address in transfers:
            body.go(position, address)


def _join_scales(body: Body, steps: list[Step], shifts: list[int]) -> None:
    """An index is shifted and added where other processors have it in the operand of the access;
    both instructions are replaced by such that say nothing."""
    positions = body.positions
    for number in shifts:
        step = steps[number]
        near = range(number + 1, min(number + 1 + _SCALE_REACH, len(steps)))
        added = next((at for at in near if step.dst in (steps[at].base, steps[at].index)), None)
        if added is None or steps[added].action != SUM:
            continue
        total = steps[added].dst
        near = range(added + 1, min(added + 1 + _SCALE_REACH, len(steps)))
        used = next((at for at in near if steps[at].base == total), None)
        if used is not None and steps[used].action == MEMORY:
            steps[number] = Step(dst=step.dst).settled()
            body.codes[positions[number]] = body.codes[positions[added]] = 0


def _join_branches(body: Body, comparisons: list[tuple[int, Step]]) -> None:
    """A branch on the result of a comparison is that comparison's."""
    names, codes = body.listing.mnemonics, body.codes
    for number, step in comparisons:
        position = body.positions[number]
        for at in range(position + 1, min(position + 1 + _COMPARE_REACH, len(names))):
            if names[at] in ("beqz", "bnez", "beqzl", "bnezl"):
                if body.listing.text(at).startswith(f"${step.dst},"):
                    codes[position], codes[at] = _COMPARE, _ON_RESULT[names[position]]
                break


def _read_controls(body: Body) -> tuple[list[tuple[int, int, bool]], list[tuple[int, int]]]:
    """(position, position of the target, whether the next one may follow) of what branches, and
    (position, target) of calls and jumps."""
    listing = body.listing
    branches: list[tuple[int, int, bool]] = []
    transfers: list[tuple[int, int]] = []
    for position, kind, address in zip(
        listing.controls, listing.kinds, listing.targets, strict=True
    ):
        if kind == STOP:
            branches.append((position, -1, False))
        elif kind in (BRANCH, JUMP, CALL):
            if kind != BRANCH and address is not None:
                transfers.append((position, address))
            if kind != CALL:
                target = None if address is None else listing.position(address)
                branches.append((position, -1 if target is None else target, kind == BRANCH))
    return branches, transfers
