"""Tables of constants in files of MIPS that begin words with their highest byte."""

from __future__ import annotations

from bisect import bisect_left

from graphkin.binaries.evidence.collect import Body
from graphkin.binaries.evidence.register_steps import COPY, LOW, MEMORY, SUM, Step
from graphkin.binaries.function import Token

_WIDTHS = {"lh": 2, "lhu": 2, "lw": 4, "lwu": 4, "lwc1": 4, "ld": 8, "ldc1": 8}
_ENTRY_REACH = 64
"""Instructions behind the address of a table, in which an entry is read."""


def swap_tables(body: Body, steps: list[Step]) -> None:
    """Has tables begin with the lowest byte of their first entry, as those of other processors;
    how wide an entry is, the code says that reads one."""
    for position, tokens in body.said.items():
        if any(token.kind == "dat" for token in tokens):
            body.said[position] = tuple(
                _swapped(token, body, steps, position) if token.kind == "dat" else token
                for token in tokens
            )


def _swapped(token: Token, body: Body, steps: list[Step], position: int) -> Token:
    raw = bytes.fromhex(token.text)
    width = _entry_bytes(body, steps, position)
    if width is None:
        width = 1 if any(raw[:2]) else 4
    entries = [raw[at : at + width][::-1] for at in range(0, len(raw), width)]
    return Token("dat", b"".join(entries).hex())


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
