"""Basic blocks and edges of one function: leaders, jump tables, calls that never return."""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Callable

from graphkin.binaries.function import Block
from graphkin.binaries.image import Image
from graphkin.binaries.recovery.architecture import (
    BRANCH,
    CALL,
    CUT,
    JUMP,
    SELECT,
    STOP,
    Architecture,
)
from graphkin.binaries.recovery.hardening import Span, without_hardening
from graphkin.binaries.recovery.listing import Listing

STEPS_PER_CHECK = 256
Edges = tuple[tuple[int, int], ...]


class TooManyBlocks(Exception):
    """A function has more blocks than it may."""


class Flow:
    """Recovers the control flow of one function from where it starts.

    Args:
        image: the binary.
        listing: the function's instructions, with at least its first range.
        architecture: the processor.
        check: called now and then; raises when a budget is spent.
        most_blocks: above which ``recover`` raises TooManyBlocks.
    """

    def __init__(
        self,
        image: Image,
        listing: Listing,
        architecture: Architecture,
        check: Callable[[], None],
        most_blocks: int = sys.maxsize,
    ) -> None:
        self._image = image
        self._most_blocks = most_blocks
        self._listing = listing
        self._architecture = architecture
        self._tables = architecture.tables(image)
        self._padding = architecture.padding
        self._marks = architecture.hardening.marks
        self._check = check
        self.spans: list[tuple[int, int]] = []
        """For each block, positions of its first instruction and behind its last."""
        learned = architecture.hardening.failures(image, listing)
        self._stack_failures, self._noreturn = image.stack_failures, image.noreturn
        if learned:
            self._stack_failures = self._stack_failures.union(learned)
            self._noreturn = self._noreturn.union(learned)
        self._failed: set[int] = set()
        """Positions of the calls that report an overwritten stack."""
        self.dropped: set[int] = set()
        """Positions of instructions that harden the code, and are no words of it."""
        self._replaced: dict[int, str] = {}
        """Positions of instructions that harden the code in place of others, with the mnemonics of
        those."""
        self._leaders: set[int] = {0}
        self._ends: dict[int, list[int]] = {}
        """Position of the last instruction of a block to the leaders that follow it."""
        self._unsure: list[int] = []
        """Indirect jumps whose table has no known length yet."""
        self._bounded: list[int] = []
        """Indirect jumps whose table ends where a comparison says."""

    def recover(self, with_text: bool = False) -> tuple[tuple[Block, ...], Edges]:
        todo = [0]
        steps = 0
        while todo:
            steps += 1
            if steps % STEPS_PER_CHECK == 0:
                self._check()
            self._walk(todo.pop(), todo)
            # Once all else is known, a table without bounds can stop at its neighbours.
            while not todo and self._unsure:
                position = self._unsure.pop()
                self._add(position, self._switch(position, todo, guess=True) or [])
            # Code that nothing reaches: some comparison was not the one of its table.
            if not todo and self._bounded and self._has_gaps():
                for position in self._bounded:
                    self._ends[position].clear()
                    self._add(position, self._switch(position, todo, guess=True) or [])
                self._bounded.clear()
        return self._assemble(with_text)

    def _walk(self, leader: int, todo: list[int]) -> None:
        """Follows the straight line from a leader to its first control transfer."""
        image, listing, ends = self._image, self._listing, self._ends
        called, targets_of = self._architecture.called, listing.targets
        index = bisect_left(listing.controls, leader)
        while True:
            position = listing.controls[index]
            if position in ends:
                return
            kind = listing.kinds[index]
            if kind == CALL:
                target = called(image, listing, index)
                if target in self._noreturn:
                    if target in self._stack_failures:
                        self._failed.add(position)
                    ends[position] = []
                    return
                if position in listing.lasts:
                    # Behind the last call of a function lies what belongs to others: such a call
                    # does not come back, whatever it is called.
                    if not listing.covers(listing.addresses[position] + listing.sizes[position]):
                        ends[position] = []
                        return
                    kind = CUT
                else:
                    index += 1
                    continue
            if kind == CUT:
                ends[position] = []
                self._run_on(position, todo)
            elif kind == BRANCH:
                ends[position] = []
                self._run_on(position, todo)
                self._follow(position, targets_of[index], todo)
            elif kind in (JUMP, SELECT):
                ends[position] = []
                if kind == SELECT:
                    self._run_on(position, todo)
                target = targets_of[index]
                if target is not None:
                    self._follow(position, target, todo)
                else:
                    targets = self._switch(position, todo, guess=False)
                    if targets is None:
                        self._unsure.append(position)
                    else:
                        self._add(position, targets)
                        if targets and self._architecture.doubts_bounds:
                            self._bounded.append(position)
            else:
                assert kind == STOP
                ends[position] = []
            return

    def _run_on(self, position: int, todo: list[int]) -> None:
        """Adds the edge to the instruction behind."""
        listing = self._listing
        if position in listing.lasts:
            self._follow(position, listing.addresses[position] + listing.sizes[position], todo)
            return
        # Within a run that is the next one, which need not be searched for.
        self._ends[position].append(position + 1)
        self._mark(position + 1, todo)

    def _follow(self, position: int, address: int | None, todo: list[int]) -> None:
        """Adds an edge where the address is code of this function; elsewhere it is a tail call."""
        leader = None if address is None else self._lead(address, todo)
        if leader is not None and leader not in self._ends[position]:
            self._ends[position].append(leader)

    def _add(self, position: int, leaders: list[int]) -> None:
        """Adds edges to leaders."""
        self._ends[position] = list(dict.fromkeys([*self._ends[position], *leaders]))

    def _lead(self, address: int, todo: list[int]) -> int | None:
        listing = self._listing
        leader = listing.locate(address)
        if leader is None:
            part = None if listing.covers(address) else self._image.fragment(address)
            if part is None or part in listing.ranges:
                return None
            self._check()
            listing.add_range(*part)
            leader = listing.locate(address)
            if leader is None:
                return None
        self._mark(leader, todo)
        return leader

    def _mark(self, leader: int, todo: list[int]) -> None:
        if leader not in self._leaders:
            if len(self._leaders) >= self._most_blocks:
                raise TooManyBlocks
            self._leaders.add(leader)
            todo.append(leader)

    def _switch(self, position: int, todo: list[int], guess: bool) -> list[int] | None:
        self._check()
        targets = self._tables(self._listing, position, guess)
        if targets is None:
            return None
        leaders = (self._lead(address, todo) for address in dict.fromkeys(targets))
        return [leader for leader in leaders if leader is not None]

    def _assemble(self, with_text: bool) -> tuple[tuple[Block, ...], Edges]:
        spans, self.dropped, self._replaced = without_hardening(
            self._architecture.hardening,
            self._padding,
            self._image,
            self._listing,
            self._spans(),
            self._failed,
        )
        forward = self._skip_padding(spans)
        kept = [span for span in spans if span[0] not in forward]
        if 0 in forward:
            # The entry was padding before a loop: where it led is the entry, and comes first.
            entry = forward[0]
            kept.sort(key=lambda span: span[0] != entry)
        number_of = {span[0]: number for number, span in enumerate(kept)}
        edges = {
            (number, number_of[forward.get(target, target)])
            for number, (_, _, targets) in enumerate(kept)
            for target in targets
        }
        self.spans = [(first, last) for first, last, _ in kept]
        self._changed = self.dropped | self._replaced.keys()
        self._is_marked = bool(self._changed) or not self._marks.isdisjoint(self._listing.mnemonics)
        blocks = tuple(self._block(first, last, with_text) for first, last, _ in kept)
        return blocks, tuple(sorted(edges))

    def _has_gaps(self) -> bool:
        """Whether the function has instructions, padding aside, that nothing reaches."""
        names, padding, at = self._listing.mnemonics, self._padding, 0
        for first, last, _ in [*self._spans(), (len(names), 0, [])]:
            if any(name not in padding for name in names[at:first]):
                return True
            at = last
        return False

    def _spans(self) -> list[Span]:
        """(first, behind the last, following leaders) of every block, as positions."""
        leaders = sorted(self._leaders)
        stops = sorted(self._ends)
        spans: list[Span] = []
        index = 0
        for number, leader in enumerate(leaders):
            while stops[index] < leader:
                index += 1
            stop = stops[index]
            following = leaders[number + 1] if number + 1 < len(leaders) else stop + 1
            if following <= stop:
                spans.append((leader, following, [following]))
            else:
                spans.append((leader, stop + 1, self._ends[stop]))
        return spans

    def _skip_padding(self, spans: list[Span]) -> dict[int, int]:
        """Blocks of nothing but padding, each with the first real block behind it."""
        names, padding, dropped = self._listing.mnemonics, self._padding, self.dropped
        forward: dict[int, int] = {}
        for first, last, targets in reversed(spans):
            if (
                (names[first] in padding or (dropped and first in dropped))
                and len(targets) == 1
                and targets[0] == last
                and all(names[at] in padding or at in dropped for at in range(first, last))
            ):
                forward[first] = forward.get(last, last)
        return forward

    def _block(self, first: int, last: int, with_text: bool) -> Block:
        listing = self._listing
        start, final = listing.addresses[first], last - 1
        size = listing.addresses[final] + listing.sizes[final] - start
        names = tuple(listing.mnemonics[first:last])
        if self._is_marked and (
            not self._marks.isdisjoint(names)
            or (self._changed and not self._changed.isdisjoint(range(first, last)))
        ):
            names = self._words(first, last) or names
        if not with_text:
            return Block(start, size, names)
        text = tuple(
            f"{listing.mnemonics[i]} {listing.text(i)}".rstrip() for i in range(first, last)
        )
        return Block(start, size, names, text)

    def _words(self, first: int, last: int) -> tuple[str, ...]:
        """The mnemonics of a block, without those that only harden it."""
        names, words = self._listing.mnemonics, self._architecture.hardening.words
        kept = [at for at in range(first, last) if at not in self.dropped]
        plain = [self._replaced.get(at) or words.get(names[at], names[at]) for at in kept]
        return tuple([word for word in plain if word])
