"""Constants of comparisons in one form: compilers write ``> 7`` as ``>= 8``, or the reverse."""

from __future__ import annotations

from graphkin.binaries.evidence.collect import Body

REACH = 4
"""Instructions behind a comparison, in which its condition is."""
FLIPPED = ("gt", "le", "hi", "ls")
"""Conditions of ARM that compilers also write as the opposite one of the next number."""
IN_OPERANDS = -1


def added_by_condition(body: Body, position: int, conditions: dict[str, int | None]) -> int:
    """What to add to the constant of a comparison, so that ``> 7`` and ``>= 8`` are one.

    Args:
        body: the function.
        position: of the comparison.
        conditions: by mnemonic, what to add; None for what has no condition, and
            ``IN_OPERANDS`` for what names it in its last operand.
    """
    names = body.listing.mnemonics
    for at in range(position + 1, min(position + 1 + REACH, len(names))):
        added = conditions[names[at]]
        if added is not None:
            if added == IN_OPERANDS:
                return int(body.listing.text(at).endswith(FLIPPED))
            return added
    return 0
