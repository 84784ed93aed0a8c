"""The search for function starts in code that is read straight through.

Compilers put functions one behind the other, so that only two questions are left: what begins
behind an instruction that never goes on, and is not the inside of the function before?

A *head* is an instruction behind the end of a path: a return, a jump, a call that does not come
back, or data. It is a start where something says so that is no matter of opinion (a table, a
call), and else where no path of the function before leads to it or across it: no branch from
one side of it to the other, no case of a jump table. A jump to a head is the one thing that can
be either: a branch, or the last call of a function (a tail call). The stack tells: before a tail
call the frame is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import Image
from graphkin.binaries.recovery.architecture import (
    BRANCH,
    CALL,
    JUMP,
    PLAIN,
    SELECT,
    STOP,
)
from graphkin.binaries.starts.sweep import (
    FILLER,
    NOT_CODE,
    SAVES_LINK,
    CodeFacts,
    Sweep,
    addresses,
)
from graphkin.binaries.starts.switch_tables import SwitchTables

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]

ROUNDS = 4
"""Times to look again with what was learned of tail calls and calls that do not come back."""
TABLE_REACH = 1 << 16
"""Bytes behind an indirect jump in which the cases of its table may lie."""
WEAK_ALIGNMENT = 4


@dataclass
class StartRows:
    """What the search gives, as rows of the sweep."""

    starts: Rows
    parts: Rows
    """Starts of pieces that functions elsewhere branch to."""


class Search:
    """Looks for function starts in the code of one image.

    Args:
        image: regions, words that the loader fills in, and what never returns.
        facts: of the processor.
        sweep: all code to search.
        known: addresses of certain starts.
        pointed: addresses that data points to.
        check: called now and then; raises when a budget is spent.
    """

    def __init__(
        self,
        image: Image,
        facts: CodeFacts,
        sweep: Sweep,
        known: Iterable[int],
        pointed: NDArray[np.int64],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._image = image
        self._facts = facts
        self._sweep = sweep
        self._check = check
        self._tables = SwitchTables(image, facts, sweep.address)
        count = len(sweep)
        self._rows = np.arange(count)
        is_first = np.ones(count, dtype=bool)
        is_first[1:] = sweep.address[1:] != sweep.end[:-1]
        self._first = np.maximum.accumulate(np.where(is_first, self._rows, -1))
        """(N,) the first row of the run of addresses that a row is in."""
        is_real = sweep.kind != FILLER
        real = np.maximum.accumulate(np.where(is_real, self._rows, -1))
        self._before = np.concatenate([np.array([-1]), real[:-1]])
        """(N,) the last row ahead that is not filler; -1 for none."""
        is_code = is_real & (sweep.kind != NOT_CODE)
        self._code = np.maximum.accumulate(np.where(is_code, self._rows, -1))
        """(N,) the last row up to here that is an instruction; -1 for none."""
        # A jump to filler is one to the instruction behind it.
        following = np.minimum.accumulate(np.where(is_real, self._rows, count - 1)[::-1])[::-1]
        target = self.row(sweep.target)
        is_jump = (target >= 0) & (sweep.kind != CALL)
        self._target = np.where(is_jump, following[target], target)
        self._known = np.zeros(count, dtype=bool)
        self._mark(self._known, self.row(addresses(known)))
        called = np.zeros(count, dtype=bool)
        self._mark(called, self._target[(sweep.kind == CALL) & (sweep.target >= 0)])
        # Behind a branch that may not be taken, it is a second entry of the function.
        is_entered = (np.roll(sweep.kind, 1) == BRANCH) & (np.roll(sweep.kind, 2) == PLAIN)
        entries = np.flatnonzero(called & is_entered & (self._rows - 2 >= self._first))
        called[entries] = False
        self._known |= called
        self._enters = np.flatnonzero((sweep.kind == CALL) & np.isin(self._target, entries))
        """Calls of such entries, which only other functions have."""
        self._mark(self._known, self.row(sweep.origin))
        self._pointed = np.zeros(count, dtype=bool)
        self._mark(self._pointed, self.row(pointed))
        self._mark(self._pointed, self.row(sweep.pointer))
        self._never = sweep.kind == CALL
        self._never &= np.isin(sweep.target, addresses(image.noreturn))
        self._in_frame = np.cumsum(sweep.frame > 0)
        self._released = np.maximum.accumulate(np.where(sweep.frame < 0, self._rows, -1))
        controls = np.isin(sweep.kind, (BRANCH, JUMP, STOP, CALL, SELECT))
        controls = np.concatenate([np.array([False]), controls[:-1]])
        self._mark(controls, self._target[sweep.kind == BRANCH])
        self._block = np.maximum.accumulate(np.where(controls, self._rows, 0))
        """(N,) the first row of the straight line that a row is in."""

    def row(self, addresses: NDArray[np.int64]) -> Rows:
        """The row of each address; -1 where no instruction begins."""
        rows = np.searchsorted(self._sweep.address, addresses)
        rows = np.minimum(rows, len(self._sweep) - 1)
        return np.where(self._sweep.address[rows] == addresses, rows, -1)

    def _mark(self, flags: Flags, rows: Rows) -> None:
        rows = rows[rows >= 0]
        flags[rows[self._sweep.kind[rows] != NOT_CODE]] = True

    def run(self) -> StartRows:
        """Looks until nothing new turns up."""
        if self._code.max(initial=-1) < 0:
            return StartRows(self._rows[:0], self._rows[:0])
        for _ in range(ROUNDS):
            heads = self._heads()
            self._learn_runtime(heads)
            certain = self._known.copy()
            before = int(certain.sum()), int(self._never.sum())
            starts, tails = self._walk(heads, certain)
            self._mark(self._known, tails)
            self._learn_noreturn(starts)
            if (int(self._known.sum()), int(self._never.sum())) == before:
                break
        parts = self._parts
        return StartRows(np.flatnonzero(starts & ~parts), np.flatnonzero(parts))

    def _heads(self) -> Flags:
        sweep, before = self._sweep, self._before
        ends = np.isin(sweep.kind, (JUMP, STOP, NOT_CODE)) | self._never
        is_head = (before < self._first) | ends[before]
        is_head &= ~np.isin(sweep.kind, (FILLER, NOT_CODE))
        # A function may begin with an instruction that does nothing.
        passed = np.cumsum(self._known)
        is_head &= self._known | (before < 0) | (passed == passed[before])
        # What fills no space up to an aligned address is an instruction of the function.
        late = np.flatnonzero(is_head & (sweep.address % self._facts.padded != 0))
        late = late[(sweep.kind[np.maximum(late - 1, 0)] == FILLER) & ~self._known[late]]
        is_head[late] = False
        padded = self.row(sweep.address[late] // self._facts.padded * self._facts.padded)
        is_head[np.maximum.reduce([before[late] + 1, self._first[late], padded])] = True
        return np.asarray(is_head)

    def _learn_runtime(self, heads: Flags) -> None:
        """Starts in the runtime of gcc, by what no compiler makes of a function: a call of its own
        second entry, and a jump from its first instructions to where it saves its return."""
        sweep = self._sweep
        rows = np.flatnonzero(heads | self._known)
        if not len(rows):
            return
        self._known[self._head_of(rows, self._enters)] = True
        jumps = np.flatnonzero((sweep.kind == JUMP) & (self._target >= 0))
        jumps = jumps[sweep.frame[self._target[jumps]] == SAVES_LINK]
        starts = self._head_of(rows, jumps)
        is_line = self._block[jumps] <= starts
        self._known[self._target[jumps[is_line]]] = True

    def _head_of(self, heads: Rows, rows: Rows) -> Rows:
        """The last head up to each row."""
        return heads[np.maximum(np.searchsorted(heads, rows, side="right") - 1, 0)]

    def _learn_noreturn(self, starts: Flags) -> None:
        """A call right ahead of a certain start never comes back, nor do others to its target."""
        sweep = self._sweep
        rows = np.flatnonzero(self._known & starts)
        rows = self._before[rows[self._before[rows] >= self._first[rows]]]
        last = rows[sweep.kind[rows] == CALL]
        self._never[last] = True
        targets = sweep.target[last]
        targets = np.unique(np.concatenate([targets[targets >= 0], self._dead_ends(starts)]))
        self._never |= (sweep.kind == CALL) & np.isin(sweep.target, targets)

    def _dead_ends(self, starts: Flags) -> NDArray[np.int64]:
        """Functions that no path comes back from: they end in such a call, and never return."""
        sweep = self._sweep
        rows = np.flatnonzero(starts)
        following = np.append(rows[1:], len(sweep))
        leaves = (sweep.kind == STOP) | (sweep.kind == SELECT)
        jumps = sweep.kind == JUMP
        owner = np.cumsum(starts)
        leaves |= jumps & ((self._target < 0) | (owner[self._target] != owner))
        count = np.concatenate([np.array([0]), np.cumsum(leaves)])
        last = self._code[following - 1]
        is_dead = (count[following] == count[rows]) & self._never[last] & (last >= rows)
        return np.asarray(sweep.address[rows[is_dead]])

    def _walk(self, heads: Flags, certain: Flags) -> tuple[Flags, Rows]:
        """Starts, and targets of tail calls."""
        sweep, target = self._sweep, self._target
        certain = certain | (heads & (self._first == self._rows))
        passed = np.cumsum(certain)
        direct = np.flatnonzero(np.isin(sweep.kind, (BRANCH, JUMP, SELECT)) & (target >= 0))
        low, high = np.minimum(direct, target[direct]), np.maximum(direct, target[direct])
        # Known functions may lie between two runs, where they are left out of the sweep.
        is_near = self._first[high] == self._first[low]
        is_inside = is_near & (passed[high] == passed[low])
        is_open = is_inside & (sweep.kind[direct] == JUMP) & heads[target[direct]]
        is_span = is_inside & ~is_open & ~self._leads_back_to_dead_end(heads, direct)
        covered = self._covered(low[is_span], high[is_span])
        # Pointers lead to functions, or are the labels of a switch, which make no frame.
        certain |= self._pointed & heads & ~covered & sweep.prologue
        certain[self._taken_elsewhere(heads, passed)] = True
        passed = np.cumsum(certain)
        is_inside = is_near & (passed[high] == passed[low])
        covered = self._covered(low[is_inside & ~is_open], high[is_inside & ~is_open])
        crossing = direct[~is_inside & (sweep.kind[direct] == BRANCH)]
        is_part = np.zeros(len(sweep), dtype=bool)
        is_part[target[crossing]] = True
        is_part &= heads & ~certain
        open_rows = direct[is_open & is_inside]
        is_open_row = np.zeros(len(sweep), dtype=bool)
        is_open_row[open_rows] = True
        starts = certain.copy()
        tails: list[int] = []
        chunks = np.flatnonzero(heads | certain)
        lasts = self._code[np.append(chunks[1:], len(sweep)) - 1]
        ends = np.isin(sweep.kind[lasts], (JUMP, STOP)) | self._never[lasts]
        # What runs on into data, or out of the code, is data itself.
        beyond = np.minimum(lasts + 1, len(sweep) - 1)
        runs_out = ~ends & ((sweep.kind[beyond] == NOT_CODE) | (beyond == lasts))
        limits = np.concatenate([np.flatnonzero(certain), [len(sweep)]])
        selects: dict[int, list[int]] = {}
        for row in np.flatnonzero((sweep.kind == SELECT) & (sweep.target < 0)).tolist():
            selects.setdefault(int(np.searchsorted(chunks, row, side="right")) - 1, []).append(row)
        saved = np.concatenate([np.array([0]), np.cumsum(sweep.frame == SAVES_LINK)])
        saves = (saved[lasts + 1] > saved[chunks]) & ~self._never[lasts]
        current = reach = 0
        is_unsure = False
        kinds, targets = sweep.kind[lasts].tolist(), target[lasts].tolist()
        has_target = (sweep.target[lasts] >= 0).tolist()
        is_certain = certain[chunks].tolist()
        is_covered = (covered[chunks] | runs_out).tolist()
        for number, (head, last) in enumerate(zip(chunks.tolist(), lasts.tolist(), strict=True)):
            is_inside = (
                is_covered[number]
                or head <= reach
                or (is_unsure and not self._looks_like_start(head))
            )
            # A function saves its address of return once.
            is_second = saves[number] and saved[head] > saved[current]
            if is_certain[number] or is_second or not is_inside:
                current = reach = head
                is_unsure = False
                starts[head] = True
            for row in selects.get(number, ()):
                limit = int(limits[np.searchsorted(limits, row, side="right")])
                reach = max(reach, self._case_reach(current, row, limit))
            if kinds[number] != JUMP:
                continue
            if is_open_row[last]:
                aim = targets[number]
                # What other paths of the function lead to or across is a part of it, even if
                # the frame seems gone: x86 gives back the room of arguments behind a call.
                is_inside = current < aim and (aim <= reach or covered[aim])
                if not is_inside and self._is_tail(current, last, aim):
                    tails.append(aim)
                else:
                    reach = max(reach, aim)
            elif not has_target[number]:
                limit = int(limits[np.searchsorted(limits, last, side="right")])
                cases = self._case_reach(current, last, limit)
                reach = max(reach, cases)
                is_unsure |= cases < 0 and self._may_switch(current, last)
        self._parts = is_part & starts
        return starts, np.array(tails, dtype=np.int64)

    def _taken_elsewhere(self, heads: Flags, passed: NDArray[Any]) -> Rows:
        """Aligned heads whose address another function takes, with a certain start in between.

        Branches lead across them all the same, where assembly shares its ends.
        """
        if self._facts.alignment <= WEAK_ALIGNMENT:
            return self._rows[:0]
        takers = np.flatnonzero(self._sweep.pointer >= 0)
        taken = self.row(self._sweep.pointer[takers])
        takers, taken = takers[taken >= 0], taken[taken >= 0]
        is_other = heads[taken] & (passed[takers] != passed[taken])
        is_aligned = self._sweep.address[taken] % self._facts.alignment == 0
        return np.asarray(taken[is_other & is_aligned])

    def _leads_back_to_dead_end(self, heads: Flags, jumps: Rows) -> Flags:
        """Which jumps go back to a few instructions that never come back.

        gcc puts such parts of a function ahead of it, so that they say nothing of what is between.
        """
        rows = np.flatnonzero(heads)
        last = self._code[np.append(rows[1:], len(self._sweep)) - 1]
        is_dead = np.zeros(len(self._sweep), dtype=bool)
        is_dead[rows] = self._never[last]
        targets = self._target[jumps]
        return np.asarray((targets < jumps) & is_dead[targets])

    def _covered(self, low: Rows, high: Rows) -> Flags:
        """Rows behind the lower end of some span, up to its upper end."""
        steps = np.zeros(len(self._sweep) + 2, dtype=np.int64)
        np.add.at(steps, low + 1, 1)
        np.add.at(steps, high + 1, -1)
        return np.cumsum(steps)[: len(self._sweep)] > 0

    def _is_tail(self, start: int, jump: int, target: int) -> bool:
        """Whether a jump to a head leaves the function."""
        if target == start:
            return False
        released = int(self._released[jump - 1])
        if released >= max(int(self._block[jump]), start):
            return True
        has_frame = self._in_frame[jump] > (self._in_frame[start - 1] if start else 0)
        if has_frame:
            return False
        return self._looks_like_start(target) or self._is_aligned(target)

    def _may_switch(self, start: int, jump: int) -> bool:
        """Whether an indirect jump stays in its function, by the looks of what is ahead."""
        first = max(int(self._block[jump]), start)
        if int(self._released[jump - 1]) >= first:
            return False
        has_frame = self._in_frame[jump] > (self._in_frame[start - 1] if start else 0)
        return bool(has_frame) or bool((self._sweep.pointer[first:jump] >= 0).any())

    def _looks_like_start(self, row: int) -> bool:
        """By its first instruction, by pointers to it, or by its alignment, where that is more
        than what half of all instructions have."""
        if self._sweep.prologue[row] or self._pointed[row]:
            return True
        return self._facts.alignment > WEAK_ALIGNMENT and self._is_aligned(row)

    def _is_aligned(self, row: int) -> bool:
        alignment = self._facts.alignment
        return alignment > 1 and bool(self._sweep.address[row] % alignment == 0)

    def _case_reach(self, start: int, jump: int, limit: int) -> int:
        """The last row that the jump table of an indirect jump leads to."""
        self._check()
        sweep = self._sweep
        begin, at = int(sweep.address[start]), int(sweep.address[jump])
        end = min(int(sweep.address[limit - 1] + sweep.size[limit - 1]), at + TABLE_REACH)
        targets = self._tables.targets(begin, at, end)
        rows = self.row(np.array(targets, dtype=np.int64))
        return int(rows[rows < limit].max(initial=-1))
