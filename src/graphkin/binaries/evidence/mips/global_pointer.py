"""What ``$gp`` holds in a function of MIPS."""

from __future__ import annotations

from collections.abc import Sequence

from graphkin.binaries.evidence.collect import Body
from graphkin.binaries.evidence.mips.syntax import SETS_GP
from graphkin.binaries.evidence.paths import Value
from graphkin.binaries.evidence.register_steps import COPY, LOW, SUM, UPPER, Step

_REACH = 64
"""Instructions in which a function computes it."""
_NOTHING = Step().settled()


def find_global_pointer(body: Body, steps: list[Step], marked: Sequence[int]) -> Value | None:
    """What ``$gp`` holds; the instructions that compute it are replaced by such that say nothing.

    ``lui R, N; addiu R, R, N; addu G, R, $t9`` with the function's address in ``$t9``; code of 64
    bits adds the lower half last.

    Args:
        body: the function.
        steps: what its instructions mean.
        marked: numbers of those that have marks.
    """
    value = body.places.image.got
    parts: dict[str, tuple[int, list[int]]] = {}
    for number, step in enumerate(steps[:_REACH]):
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
                    for at in range(number + 1, min(_REACH, len(steps)))
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
    for number in marked:
        if steps[number].marks & SETS_GP:
            steps[number] = _NOTHING
            body.codes[body.positions[number]] = 0
    return None if value is None else Value(value & body.places.mask, 0, True, False)


def _copy(register: str) -> Step:
    """Has a register hold what ``$gp`` does."""
    if register == "gp":
        return _NOTHING
    return Step(action=COPY, dst=register, base="gp")
