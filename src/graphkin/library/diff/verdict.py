"""What became of a function: is it identical, likely the same source, or changed, and by what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

import numpy as np

from graphkin.graphs import Graph
from graphkin.graphs.words import KIND_SHIFT, KINDS, OFFSETS
from graphkin.library.diff.line_shifts import functions_that_shift, shifts_of
from graphkin.library.diff.pairs import Paired
from graphkin.library.diff.side import Side
from graphkin.library.line_numbers import line_numbers
from graphkin.library.signals import cosines
from graphkin.results.document import BlockChanges, Verdict

SURE, LARGE = 0.9, 5
"""Pairs as probable as this, of as many blocks, tell whether two builds are of one kind."""
ONE_KIND = 0.25
"""Share of them that is identical between builds of one kind, at least; between compilers and
levels hardly any is."""
ONE_COMPILER = 0.99
"""Share of the functions of equal mnemonics that have equal registers too, at least, where another
register is a change. One compiler with the same options takes the same for the same source: in
versions of five libraries 99.6% and more; between gcc 11 and 12 84.5% had, and between -O2 and -O3
of one gcc 98.0 and 98.9%."""
LIKELY = 0.5
"""Probability from which on two functions of different builds are said to be the same."""
SAME_WORDS = 0.5
"""Cosine of what two functions say, below which they are not the same source any more."""
TELLING = 10.0
"""Strength of what a function says, from which on it tells."""


class Judged(NamedTuple):
    """A verdict, and what it goes by."""

    verdict: Verdict
    similarity: float
    blocks: BlockChanges | None
    calls_removed: tuple[str, ...]
    calls_added: tuple[str, ...]


class Judge:
    """Judges the pairs of two binaries, all of which must be known: calls are compared by them."""

    def __init__(self, left: Side, right: Side, paired: Sequence[Paired]) -> None:
        self._left, self._right = left, right
        self._partner = {item.row: item.column for item in paired}
        self._taken = set(self._partner.values())
        self.is_one_kind = _is_one_kind(left, right, paired)
        """Whether equal source gives equal code in both."""
        self._has_one_compiler = _has_one_compiler(left, right, paired)
        self._shifting = functions_that_shift(
            {
                item.row: shifts_of(left.functions[item.row], right.functions[item.column])
                for item in paired
                if self.is_one_kind and self._has_other_words(item)
            }
        )
        """Functions of the left side that only lines tell from their partners."""

    def judge(self, item: Paired) -> Judged:
        """The verdict on one pair."""
        removed, added = self._calls(item)
        left, right = self._left.code[item.row], self._right.code[item.column]
        if left.digest == right.digest and not removed and not added:
            return Judged("identical", 1.0, None, (), ())
        if not self.is_one_kind:
            similarity = self._likeness(item)
            is_likely = item.probability >= LIKELY and self._says_the_same(item)
            verdict: Verdict = "same" if is_likely else "changed"
            return Judged(verdict, similarity, None, removed, added)
        is_same = left.mnemonics == right.mnemonics or self._differs_in_lines(item)
        is_same = is_same and (left.registers == right.registers or not self._has_one_compiler)
        is_same = is_same and not removed and not added
        blocks = block_changes(left.blocks, right.blocks)
        similarity = 2 * blocks.equal / (len(left.blocks) + len(right.blocks))
        return Judged("same" if is_same else "changed", similarity, blocks, removed, added)

    def _differs_in_lines(self, item: Paired) -> bool:
        """Whether nothing but lines of the source tells two functions apart, as assertions pass
        them on: somebody added a line above."""
        if not self._has_other_words(item):
            return False
        if item.row in self._shifting:
            return True
        left, right = self._left.graphs[item.row], self._right.graphs[item.column]
        lines = line_numbers(left, right)
        return bool(lines) and _said(left, lines) == _said(right, lines)

    def _has_other_words(self, item: Paired) -> bool:
        """Whether what their blocks say tells two functions apart, but not their control flow."""
        left, right = self._left.code[item.row], self._right.code[item.column]
        return left.shape == right.shape and left.mnemonics != right.mnemonics

    def _calls(self, item: Paired) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of what only the left function calls, and only the right one.

        What has no partner may be there under another name: then it is no change.
        """
        ours, theirs = self._left.calls[item.row], self._right.calls[item.column]
        expected = {self._partner[row] for row in ours if row in self._partner}
        known = {column for column in theirs if column in self._taken}
        removed = [row for row in ours if self._partner.get(row, -1) in expected - known]
        added = known - expected
        imports = [
            {callee for callee in side.functions[row].callees or () if isinstance(callee, str)}
            for side, row in ((self._left, item.row), (self._right, item.column))
        ]
        return (
            (
                *(self._left.functions[row].name for row in removed),
                *sorted(imports[0] - imports[1]),
            ),
            (
                *(self._right.functions[column].name for column in sorted(added)),
                *sorted(imports[1] - imports[0]),
            ),
        )

    def _signals(self, item: Paired) -> tuple[np.void, np.ndarray]:
        return self._left.signals[item.row], self._right.signals[item.column : item.column + 1]

    def _likeness(self, item: Paired) -> float:
        ours, theirs = self._signals(item)
        parts = [float(cosines(ours, theirs, name)[0]) for name in ("graph", "words")]
        says = ours["strength"] > 0 or theirs["strength"][0] > 0
        return float(np.clip(np.mean(parts) if says else parts[0], 0, 1))

    def _says_the_same(self, item: Paired) -> bool:
        ours, theirs = self._signals(item)
        if min(ours["strength"], theirs["strength"][0]) < TELLING:
            return True
        return float(cosines(ours, theirs, "words")[0]) >= SAME_WORDS


def _said(graph: Graph, without: Collection[int]) -> list[list[int]]:
    """The words of each block, but for some, and for offsets of fields."""
    words = graph.node_words
    assert words is not None, "graphs with lines have words"
    return [
        [
            word
            for word in words.bag(node).tolist()
            if word not in without and KINDS[word >> KIND_SHIFT] != OFFSETS
        ]
        for node in range(graph.num_nodes)
    ]


def _is_one_kind(left: Side, right: Side, paired: Sequence[Paired]) -> bool:
    sure = [
        left.code[item.row].digest == right.code[item.column].digest
        for item in paired
        if item.probability >= SURE and left.blocks[item.row] >= LARGE
    ]
    return bool(sure) and float(np.mean(sure)) >= ONE_KIND


def _has_one_compiler(left: Side, right: Side, paired: Sequence[Paired]) -> bool:
    forms = [(left.code[item.row], right.code[item.column]) for item in paired]
    alike = [
        ours.registers == theirs.registers
        for ours, theirs in forms
        if ours.mnemonics == theirs.mnemonics
    ]
    return bool(alike) and float(np.mean(alike)) >= ONE_COMPILER


def block_changes(left: Sequence[bytes], right: Sequence[bytes]) -> BlockChanges:
    """Aligns blocks, given as hashes, in their order; what has moved counts as equal."""
    steps = [
        (range(first, last), range(start, end))
        for tag, first, last, start, end in SequenceMatcher(
            None, left, right, autojunk=False
        ).get_opcodes()
        if tag != "equal"
    ]
    ours = Counter(left[number] for own, _ in steps for number in own)
    theirs = Counter(right[number] for _, others in steps for number in others)
    moved = ours & theirs
    changed: list[tuple[int, int]] = []
    removed: list[int] = []
    added: list[int] = []
    left_moved, right_moved = moved.copy(), moved.copy()
    for own, others in steps:
        old = [number for number in own if not _took(left_moved, left[number])]
        new = [number for number in others if not _took(right_moved, right[number])]
        count = min(len(old), len(new))
        changed += zip(old[:count], new[:count], strict=True)
        removed += old[count:]
        added += new[count:]
    return BlockChanges(
        equal=len(left) - len(changed) - len(removed),
        changed=tuple(changed),
        removed=tuple(removed),
        added=tuple(added),
    )


def _took(counts: Counter[bytes], block: bytes) -> bool:
    """Whether there was one left of a block, which is taken."""
    counts[block] -= 1
    return counts[block] >= 0
