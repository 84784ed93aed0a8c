"""Instructions that were taken apart, by their bytes: code repeats itself, and so do compilers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar, cast

from graphkin.binaries.evidence.collect import Body
from graphkin.binaries.recovery.columns import Key
from graphkin.binaries.recovery.listing import DecodedRun

KEPT = 1 << 18
"""Instructions that are kept for a processor; then all are forgotten."""


class Instruction(Protocol):
    """What the text of one instruction means."""

    @property
    def code(self) -> int:
        """Its operations."""

    @property
    def is_relative(self) -> bool:
        """Whether that depends on where the instruction is, which its bytes do not tell."""


SomeInstruction = TypeVar("SomeInstruction", bound=Instruction)


class Instructions(Generic[SomeInstruction]):
    """What instructions mean, found out once for each."""

    def __init__(self) -> None:
        self._kept: dict[str, dict[Key, SomeInstruction]] = {}
        """By the state of the processor."""

    def look_up(
        self, body: Body, parse: Callable[[int, str, bytes], SomeInstruction]
    ) -> list[SomeInstruction]:
        """What the instructions mean that need a look at their operands, whose operations are
        completed.

        Args:
            body: the function.
            parse: takes the one at a position apart, given its mnemonic and its operands.
        """
        items: list[SomeInstruction] = []
        for run, positions in body.parts(body.positions):
            items += self._look_up(body, run, positions, parse)
        codes = body.codes
        for position, item in zip(body.positions, items, strict=True):
            codes[position] = item.code
        return items

    def _look_up(
        self,
        body: Body,
        run: DecodedRun,
        positions: Sequence[int],
        parse: Callable[[int, str, bytes], SomeInstruction],
    ) -> list[SomeInstruction]:
        columns = run.columns
        # Those of neighbours first: a list of some hundred stays in the processor's cache.
        near: list[SomeInstruction | None] | None = columns.notes.get(self)
        if near is None:
            near = columns.notes[self] = [None] * len(columns.keys)
        ids = run.ids(positions)
        known = list(map(near.__getitem__, ids))
        if None in known:
            kept = self._kept.setdefault(run.state, {})
            if len(kept) > KEPT:
                kept.clear()
            missing: list[int] = []
            for number, item in enumerate(known):
                if item is None:
                    item = kept.get(columns.keys[ids[number]])
                    if item is None:
                        missing.append(number)
                    else:
                        known[number] = near[ids[number]] = item
            names = body.listing.mnemonics
            rows = [positions[number] + run.row - run.base for number in missing]
            for number, text in zip(missing, columns.texts(rows), strict=True):
                item = near[ids[number]]
                if item is None:
                    item = parse(positions[number], names[positions[number]], text)
                    if not item.is_relative:
                        kept[columns.keys[ids[number]]] = near[ids[number]] = item
                known[number] = item
        return cast("list[SomeInstruction]", known)


class Frames:
    """Finds the register that holds the frame of a function.

    Args:
        find: gives the register that an instruction with some operands makes the frame, or "".
        reach: instructions in which a function sets up its frame.
    """

    def __init__(self, find: Callable[[str], str], reach: int) -> None:
        self._find = find
        self._reach = reach
        self._kept: dict[str, dict[Key, str]] = {}
        """By the state of the processor."""

    def register(self, body: Body) -> str:
        """That of a function."""
        near = body.positions[: bisect_left(body.positions, self._reach)]
        for run, positions in body.parts(near):
            kept = self._kept.setdefault(run.state, {})
            if len(kept) > KEPT:
                kept.clear()
            for position, number in zip(positions, run.ids(positions), strict=True):
                key = run.columns.keys[number]
                register = kept.get(key)
                if register is None:
                    register = kept[key] = self._find(body.listing.text(position))
                if register:
                    return register
        return ""
