"""Function starts on 32-bit ARM: two instruction sets, and constants between the functions.

Which set some code is in is told by who calls it (``bl`` keeps the state, ``blx`` changes it), by
the lowest bit of a pointer to it, and where neither is known, by its looks: ARM instructions are
words whose top four bits, the condition, nearly always say: always.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import Image, Region, UnwindRange
from graphkin.binaries.processors.arm import Arm
from graphkin.binaries.recovery.architecture import CALL
from graphkin.binaries.starts.arm_instructions import ALWAYS, read_arm
from graphkin.binaries.starts.sweep import Sweep, empty, joined, words
from graphkin.binaries.starts.thumb_instructions import NOP, THUMB_ENTRIES, read_thumb

Values = NDArray[np.int64]
Flags = NDArray[np.bool_]

WINDOW = 16
"""Words whose looks are judged together."""
MOSTLY_ARM, SOME_ARM, SOME_THUMB = 0.3, 0.6, 0.1
"""Shares of words that begin like common ARM instructions: above the first, a program is ARM, else
Thumb, with a stretch of ARM above the second. ARM code has about 0.7 of them, Thumb code 0.05.
Below the last share of words without a condition, a stretch of an ARM program is Thumb."""
ROUNDS = 3
CHANGES_STATE = 15
"""In place of a condition: ``blx`` to an address, and the like."""
JUMP = 0xEA
"""The first byte of an unconditional ``b`` of ARM."""


class ArmFacts:
    """ARM and Thumb, little-endian."""

    alignment = 4
    padded = 4

    def __init__(self) -> None:
        self.architecture = Arm()

    def sweep(self, image: Image, regions: Sequence[Region]) -> Sweep:
        regions = [region for region in regions if len(region.data) >= 8]
        if not regions:
            return empty()
        commons = np.concatenate([_is_common(words(region.data, 4)) for region in regions])
        is_arm = bool(commons.mean() > MOSTLY_ARM)
        code = [_Code.of(region, is_arm) for region in regions]
        hints = {address: state == "t" for address, state in image.marks}
        for bridge in bridges(regions):
            hints |= {bridge.start: True, bridge.start + 4: False}
        called: dict[int, bool] = {}
        for _ in range(ROUNDS):
            for piece in code:
                piece.settle(called | hints)
            sweep = joined([piece.decoded() for piece in code])
            before, called = called, _called(sweep)
            if called == before:
                break
        return sweep


@dataclass(frozen=True)
class _Code:
    """A region, read both ways."""

    start: int
    word: Values
    half: Values
    is_thumb: Flags
    """(W,) for each word, whether it is Thumb."""

    @classmethod
    def of(cls, region: Region, is_arm: bool) -> _Code:
        """By the looks.

        Args:
            region: the code.
            is_arm: whether most of the program is.
        """
        lead = -region.start % 4
        word, half = words(region.data[lead:], 4), words(region.data[lead:], 2)
        if is_arm:
            # Tables of addresses look like neither, so that more is looked at together.
            is_thumb = _share(word >> 28 == ALWAYS, 4 * WINDOW) < SOME_THUMB
        else:
            is_thumb = ~_widened(_share(_is_common(word), WINDOW) >= SOME_ARM, word)
        return cls(region.start + lead, word, half, is_thumb)

    def settle(self, states: Mapping[int, bool]) -> None:
        """Writes what is known of single functions over the looks, up to the next of them."""
        is_thumb = self.is_thumb
        end = self.start + 4 * len(self.word)
        rising = sorted(address for address in states if self.start <= address < end)
        for number, address in enumerate(rising):
            first, state = (address - self.start) // 4, states[address]
            if is_thumb[first] == state:
                continue
            following = rising[number + 1] if number + 1 < len(rising) else end
            last = max(first + 1, min((following - self.start) // 4, first + WINDOW))
            # The looks change where the function ends, if not at the next known one.
            changes = np.flatnonzero(is_thumb[first:last] == state)
            is_thumb[first : first + int(changes[0]) if len(changes) else last] = state

    def decoded(self) -> Sweep:
        edges = (np.flatnonzero(np.diff(self.is_thumb)) + 1).tolist()
        parts = []
        for first, last in zip([0, *edges], [*edges, len(self.word)], strict=True):
            here = self.start + 4 * first
            if self.is_thumb[first]:
                end = len(self.half) if last == len(self.word) else 2 * last
                parts.append(read_thumb(self.half[2 * first : end], here))
            else:
                parts.append(read_arm(self.word[first:last], here))
        return joined(parts)


def _widened(is_arm: Flags, word: Values) -> Flags:
    """Stretches of ARM up to where they begin and end: the looks of words near an edge are those of
    their neighbours as well, so the words themselves decide, by their condition."""
    wide = is_arm.copy()
    edges = np.flatnonzero(np.diff(is_arm))
    for edge in edges.tolist():
        step, at = (1, edge + 1) if is_arm[edge] else (-1, edge)
        for row in range(at, at + step * WINDOW // 2, step):
            if not 0 <= row < len(word) or word[row] >> 28 not in (ALWAYS, CHANGES_STATE):
                break
            wide[row] = True
    return wide


def bridges(regions: Sequence[Region]) -> Iterator[UnwindRange]:
    """What linkers put between Thumb code and an ARM function that it jumps to: ``bx pc``, which
    goes on in ARM two instructions later, and there a jump."""
    for region in regions:
        lead = -region.start % 4
        word = words(region.data[lead:], 4)
        is_entry = np.isin(word[:-1], THUMB_ENTRIES) & (word[1:] >> 24 == JUMP)
        for start in (region.start + lead + 4 * np.flatnonzero(is_entry)).tolist():
            yield UnwindRange(start, start + 8, False)


def _is_common(word: Values) -> Flags:
    """Whether words begin like the common instructions of ARM, as those of Thumb hardly do; but
    ``nop; b`` does, of which code for a switch that is not optimised has many."""
    return np.asarray((word >> 27 == 0b11100) & (word & 0xFFFF != NOP))


def _share(flags: Flags, window: int) -> NDArray[np.float64]:
    """(W,) the share of flags that are set among so many around each."""
    ones = np.ones(window)
    middle = slice(window // 2, window // 2 + len(flags))
    return np.convolve(flags, ones)[middle] / np.convolve(np.ones(len(flags)), ones)[middle]


def _called(sweep: Sweep) -> dict[int, bool]:
    """The state in which each target is called, where all calls agree."""
    rows = np.flatnonzero((sweep.kind == CALL) & (sweep.target >= 0))
    # The lowest bit of a call's pointer says whether it changes the state.
    is_thumb = (sweep.state[rows] == ord("t")) ^ (sweep.pointer[rows] == 1)
    votes: dict[int, int] = {}
    for target, state in zip(sweep.target[rows].tolist(), is_thumb.tolist(), strict=True):
        votes[target] = votes.get(target, 0) + (1 if state else -1)
    return {target: vote > 0 for target, vote in votes.items() if vote}
