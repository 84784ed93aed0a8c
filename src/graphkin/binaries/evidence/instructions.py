"""Instructions that were taken apart, by their bytes: code repeats itself, and so do compilers."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar, cast

from graphkin.binaries.evidence.collect import Body

KEPT = 1 << 18
"""Instructions that are kept for a processor; then all are forgotten."""
Key = int | bytes | tuple[int | bytes, str]
"""The bytes of an instruction, and its name where they do not tell it."""


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
        self._kept: dict[Key, SomeInstruction] = {}

    def look_up(
        self, body: Body, keys: Sequence[Key], parse: Callable[[int, str, bytes], SomeInstruction]
    ) -> list[SomeInstruction]:
        """What the instructions mean that need a look at their operands, whose operations are
        completed.

        Args:
            body: the function.
            keys: of the instructions at ``body.positions``.
            parse: takes the one at a position apart, given its mnemonic and its operands.
        """
        kept = self._kept
        if len(kept) > KEPT:
            kept.clear()
        known = list(map(kept.get, keys))
        if None in known:
            names, positions = body.listing.mnemonics, body.positions
            missing = [number for number, item in enumerate(known) if item is None]
            texts = body.texts([positions[number] for number in missing])
            for number, text in zip(missing, texts, strict=True):
                key, position = keys[number], positions[number]
                item = kept.get(key)
                if item is None:
                    item = parse(position, names[position], text)
                    if not item.is_relative:
                        kept[key] = item
                known[number] = item
        items, codes = cast("list[SomeInstruction]", known), body.codes
        for position, item in zip(body.positions, items, strict=True):
            codes[position] = item.code
        return items


class Frames:
    """Finds the register that holds the frame of a function.

    Args:
        find: gives the register that an instruction with some operands makes the frame, or "".
        reach: instructions in which a function sets up its frame.
    """

    def __init__(self, find: Callable[[str], str], reach: int) -> None:
        self._find = find
        self._reach = reach
        self._kept: dict[Key, str] = {}

    def register(self, body: Body, keys: Sequence[Key]) -> str:
        """That of a function, given the keys of the instructions at ``body.positions``."""
        kept = self._kept
        if len(kept) > KEPT:
            kept.clear()
        near = bisect_left(body.positions, self._reach)
        for number, register in enumerate(map(kept.get, keys[:near])):
            if register is None:
                text = body.listing.text(body.positions[number])
                register = kept[keys[number]] = self._find(text)
            if register:
                return register
        return ""
