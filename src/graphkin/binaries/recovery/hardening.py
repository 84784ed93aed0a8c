"""Blocks without what compilers add to harden code: marks, stack protectors and stack probes.

Two builds that differ by such a flag alone are the same program. What is left out is left out of
a function's words and blocks only; the text of its instructions has all of it. Every rule asks
for the exact code that compilers emit, and anything else stays as it is.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from graphkin.binaries.image import Image, Region

if TYPE_CHECKING:
    from graphkin.binaries.recovery.listing import Listing

Span = tuple[int, int, list[int]]
"""(first, behind the last, following leaders) of a block, as positions in a listing."""
MAX_FAILURE = 4
"""Instructions of a block that does nothing but report an overwritten stack."""
JUMPS = frozenset(["jmp", "b", "b.w"])


class Probes(NamedTuple):
    """Code that touches each page of a large stack frame."""

    dropped: set[int]
    """Positions of instructions."""
    loops: set[int]
    """Leaders of blocks that do nothing else, and follow themselves until done."""
    words: dict[int, str]
    """Positions of instructions that are there in place of others, and the mnemonics of those."""


class Hardening(Protocol):
    """What a processor's compilers add. Nothing here depends on names, addresses apart."""

    @property
    def words(self) -> Mapping[str, str]:
        """Mnemonics that a flag adds or changes, each with what is there without the flag, which
        is nothing for most."""

    @property
    def marks(self) -> frozenset[str]:
        """The mnemonics of ``words``."""

    def failures(self, image: Image, listing: Listing) -> Collection[int]:
        """Functions that the code calls when its stack was overwritten, as far as the code shows
        that without any names."""

    def test(self, image: Image, listing: Listing, first: int, branch: int) -> set[int]:
        """Positions of the instructions that compare the stack's guard with its original, up to a
        branch to the failure; none where that is not what the block that begins at ``first`` does.
        """

    def setup(self, image: Image, listing: Listing, tests: Iterable[int]) -> set[int]:
        """Positions of the instructions that put the guard on the stack.

        Args:
            tests: positions of the branches that test it.
        """

    def keeps_result(self, listing: Listing, before: int, behind: int) -> bool:
        """Whether one instruction puts a value aside and the other fetches it: without
        optimization, a result is not left in its register while the guard is tested."""

    def probes(self, image: Image, listing: Listing) -> Probes | None:
        """What touches the pages of large stack frames, where there may be any."""


class NoHardening:
    """For processors whose hardened code is not told from other code: all of it stays."""

    words: Mapping[str, str] = MappingProxyType({})
    marks: frozenset[str] = frozenset()

    def failures(self, image: Image, listing: Listing) -> Collection[int]:
        return ()

    def test(self, image: Image, listing: Listing, first: int, branch: int) -> set[int]:
        return set()

    def setup(self, image: Image, listing: Listing, tests: Iterable[int]) -> set[int]:
        return set()

    def keeps_result(self, listing: Listing, before: int, behind: int) -> bool:
        return False

    def probes(self, image: Image, listing: Listing) -> None:
        return None


class CodeSearch:
    """Where a few bytes lie in a binary's code. They are found at once, for few binaries have
    any, and looking into every function would cost more.

    Args:
        pattern: the bytes.
    """

    def __init__(self, pattern: bytes) -> None:
        self._pattern = pattern
        self._image: Image | None = None
        """The binary that was searched last."""
        self._addresses: list[int] = []

    def is_in(self, image: Image) -> bool:
        """Whether the code has the bytes anywhere."""
        if self._image is not image:
            self._image = image
            code = (region for region in image.regions if region.executable)
            self._addresses = [at for region in code for at in self._search(region)]
        return bool(self._addresses)

    def positions(self, image: Image, listing: Listing) -> list[int]:
        """Positions of the instructions of a function that hold the first of the bytes."""
        if not self.is_in(image):
            return []
        matches = self._addresses
        return [
            run.base + bisect_right(run.addresses, address) - 1
            for run in listing.runs
            for address in matches[bisect_left(matches, run.start) : bisect_left(matches, run.end)]
        ]

    def _search(self, region: Region) -> Iterator[int]:
        code = bytes(region.data)
        at = code.find(self._pattern)
        while at >= 0:
            yield region.start + at
            at = code.find(self._pattern, at + 1)


def without_hardening(
    hardening: Hardening,
    padding: frozenset[str],
    image: Image,
    listing: Listing,
    spans: list[Span],
    failed: Collection[int],
) -> tuple[list[Span], set[int], dict[int, str]]:
    """Blocks without tests of the stack, positions of the instructions that are no code, and those
    of instructions in place of others, with the mnemonics of these.

    Args:
        hardening: what to look for.
        padding: mnemonics that only fill space.
        image: the binary.
        listing: the function's instructions.
        spans: its blocks, in the order of their positions.
        failed: positions of the calls that report an overwritten stack.
    """
    dropped: set[int] = set()
    if failed:
        spans = _without_tests(hardening, padding, image, listing, spans, failed, dropped)
    probes = hardening.probes(image, listing)
    if probes is None:
        return spans, dropped, {}
    if probes.dropped:
        dropped |= probes.dropped
        spans = _without_loops(spans, probes.loops, dropped)
    return spans, dropped, probes.words


def _without_tests(
    hardening: Hardening,
    padding: frozenset[str],
    image: Image,
    listing: Listing,
    spans: list[Span],
    failed: Collection[int],
    dropped: set[int],
) -> list[Span]:
    failures = _failure_blocks(listing, spans, failed)
    tests: dict[int, set[int]] = {}
    tested: set[int] = set()
    run_into: dict[int, int] = {}
    """Blocks whose last call has nothing but a failure behind it: that call does not come back."""
    kept_failures: set[int] = set()
    for first, last, targets in spans:
        ends = [target for target in targets if target in failures]
        if not ends or first in failures:
            continue
        test = hardening.test(image, listing, first, last - 1) if len(targets) == 2 else set()
        if test and len(ends) == 1:
            tests[first] = test
            tested.update(ends)
        elif targets == [last] and listing.is_call(last - 1):
            run_into[first] = last
        else:
            kept_failures.update(ends)
    kept_failures.update(set(run_into.values()) - tested)
    gone = {
        first: last
        for first, last, targets in spans
        if first in failures and first not in kept_failures and not kept_failures & set(targets)
    }
    rest: list[Span] = []
    branches: dict[int, int] = {}
    """Position behind a test to that of its first instruction."""
    for first, last, targets in spans:
        if first in gone:
            continue
        if first in tests and any(target in gone for target in targets):
            dropped |= tests[first]
            branches[last] = min(tests[first])
            targets = [target for target in targets if target not in gone]
        elif run_into.get(first) in gone:
            targets = []
        rest.append((first, last, targets))
    if not branches:
        return spans
    dropped |= hardening.setup(image, listing, [behind - 1 for behind in branches])
    names = listing.mnemonics
    unused = {at for first, last in gone.items() for at in range(first, last)}

    def is_gap(start: int, end: int) -> bool:
        return all(at in unused or names[at] in padding for at in range(start, end))

    preceding = Counter(target for _, _, targets in rest for target in targets)
    joined: list[Span] = []
    for first, last, targets in rest:
        if joined and preceding[first] == 1:
            head, behind, heads = joined[-1]
            if behind in branches and heads == [first] and is_gap(behind, first):
                # What lies between them still shows in the text of the block.
                dropped.update(range(behind, first))
                before = branches[behind] - 1
                if before >= head and hardening.keeps_result(listing, before, first):
                    dropped |= {before, first}
                joined[-1] = (head, last, targets)
                continue
        joined.append((first, last, targets))
    return joined


def _failure_blocks(listing: Listing, spans: list[Span], failed: Collection[int]) -> set[int]:
    """Leaders of the blocks that report an overwritten stack, or jump to one that does."""
    failures = {
        first for first, last, _ in spans if last - 1 in failed and last - first <= MAX_FAILURE
    }
    failures |= {
        first
        for first, last, targets in spans
        if last - first == 1
        and len(targets) == 1
        and targets[0] in failures
        and listing.mnemonics[first] in JUMPS
    }
    return failures


def _without_loops(spans: list[Span], loops: set[int], dropped: set[int]) -> list[Span]:
    """Joins what lies ahead of each loop of probes with what lies behind it."""
    preceding = Counter(target for _, _, targets in spans for target in targets)
    joined: list[Span] = []
    number = 0
    while number < len(spans):
        first, last, targets = spans[number]
        if (
            first in loops
            and joined
            and number + 1 < len(spans)
            and joined[-1][1:] == (first, [first])
            and preceding[first] == 2
            and set(targets) == {first, last}
            and spans[number + 1][0] == last
            and preceding[last] == 1
        ):
            joined[-1] = (joined[-1][0], *spans[number + 1][1:])
            number += 2
            continue
        if first in loops:
            # Not the shape that was expected: all of it is code.
            dropped.difference_update(range(first, last))
        joined.append((first, last, targets))
        number += 1
    return joined
