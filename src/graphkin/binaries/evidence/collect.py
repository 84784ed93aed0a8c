"""From the instructions of a function to what its blocks say."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Sequence, Set
from functools import lru_cache
from itertools import chain
from typing import NamedTuple, Protocol

from graphkin.binaries.evidence.data import NOTHING, Meaning, Places
from graphkin.binaries.evidence.operations import Codes
from graphkin.binaries.function import LINKS, Block, Callee, Token
from graphkin.binaries.image import Image
from graphkin.binaries.operations import OPERATION
from graphkin.binaries.recovery.listing import DecodedRun, Listing

CODE_BYTES = 4
_INDIRECT = OPERATION["jump_indirect"]
_CALLS = frozenset({OPERATION["call"], OPERATION["call_indirect"]})
_JUMPS = frozenset(
    number for name, number in OPERATION.items() if name.startswith(("jump", "branch"))
)
CALL, TAIL_CALL, ADDRESS = range(len(LINKS))


class Body:
    """One function while it is read: its instructions, and what was found in them so far.

    Args:
        listing: the instructions.
        places: what addresses mean.
        codes: packed operations of each instruction by position, to be completed.
        positions: of the instructions whose operands tell something, rising.
    """

    __slots__ = ("callees", "codes", "listing", "places", "positions", "said")

    def __init__(
        self,
        listing: Listing,
        places: Places,
        codes: list[int],
        positions: list[int],
    ) -> None:
        self.listing = listing
        self.places = places
        self.codes = codes
        self.positions = positions
        self.said: dict[int, tuple[Token, ...]] = {}
        """Tokens by the position at which they were said."""
        self.callees: dict[Callee, list[int]] = {}
        """Other functions, with the positions that refer to them."""

    def parts(self, positions: list[int]) -> list[tuple[DecodedRun, list[int]]]:
        """Rising positions, by what they were decoded with."""
        runs = self.listing.runs
        if len(runs) == 1:
            return [(runs[0], positions)]
        lows = [bisect_left(positions, run.base) for run in runs]
        highs = [*lows[1:], len(positions)]
        return [
            (run, positions[low:high]) for run, low, high in zip(runs, lows, highs, strict=True)
        ]

    def texts(self, positions: list[int]) -> list[bytes]:
        """Operands of the instructions at rising positions."""
        texts: list[bytes] = []
        for run, own in self.parts(positions):
            texts += run.columns.texts(run.rows(own))
        return texts

    def say(self, position: int, tokens: tuple[Token, ...]) -> None:
        """Notes what an instruction says."""
        if tokens:
            before = self.said.get(position)
            self.said[position] = tokens if before is None else before + tokens

    def refer(self, position: int, address: int, role: str, real_bytes: int = 0) -> int | None:
        """Notes an address that an instruction names; gives what a slot there holds."""
        meaning: Meaning = self.places.meaning(address, role, real_bytes)
        if meaning is NOTHING:
            return None
        self._note(position, meaning)
        return meaning.value

    def go(self, position: int, address: int) -> None:
        """Notes where a direct transfer leads, if that is another function."""
        if address in self.places.entries:
            self._note(position, self.places.transfer(address))

    def _note(self, position: int, meaning: Meaning) -> None:
        if meaning.tokens:
            self.say(position, meaning.tokens)
        if meaning.callee is not None:
            self.callees.setdefault(meaning.callee, []).append(position)


class Rules(Protocol):
    """What must be known of a processor."""

    @property
    def codes(self) -> Codes:
        """Operations by mnemonic."""

    def read(self, body: Body) -> None:
        """Finds what the instructions say, and completes their operations."""


class Evidence(NamedTuple):
    """What a function says."""

    blocks: tuple[Block, ...]
    callees: tuple[Callee, ...]
    links: bytes
    """See :attr:`graphkin.binaries.Function.links`."""


class Collector:
    """Reads the evidence of the functions of one file."""

    def __init__(self, image: Image) -> None:
        self._places = Places(image)
        self._is_mips = image.architecture.startswith("mips")
        rules = rules_of(image.architecture)
        assert rules is not None, f"{image.architecture} has no rules; see Collector.can_read"
        self._rules = rules

    @staticmethod
    def can_read(architecture: str) -> bool:
        """Whether the rules of a processor are known."""
        return rules_of(architecture) is not None

    def read(
        self,
        listing: Listing,
        blocks: Sequence[Block],
        spans: Sequence[tuple[int, int]],
        dropped: Set[int],
    ) -> Evidence:
        """The blocks with what they say, and the callees.

        Args:
            listing: all instructions of the function, still open.
            blocks: as control flow has them.
            spans: for each, positions of its first instruction and behind its last.
            dropped: positions of instructions that harden the code, and are no part of what it
                does.
        """
        codes = list(map(self._rules.codes.__getitem__, listing.mnemonics))
        positions = [position for position, code in enumerate(codes) if code < 0]
        body = Body(listing, self._places, codes, positions)
        self._rules.read(body)
        for position in dropped:
            codes[position] = 0
            body.said.pop(position, None)
        packed = array("i", codes).tobytes()
        said = body.said
        where = sorted(said)
        # The offsets of a jump table look like a table of constants.
        without_tables = _INDIRECT in packed
        told: list[Block] = []
        for block, (first, last) in zip(blocks, spans, strict=True):
            operations = packed[CODE_BYTES * first : CODE_BYTES * last].translate(None, b"\0")
            evidence: tuple[Token, ...] = ()
            low = bisect_left(where, first)
            if low < len(where) and where[low] < last:
                high = bisect_left(where, last, low)
                evidence = said[where[low]]
                if high - low > 1:
                    evidence = tuple(chain.from_iterable(map(said.__getitem__, where[low:high])))
                if without_tables:
                    evidence = tuple([token for token in evidence if token.kind != "dat"])
            address, size, mnemonics, instructions, _, _ = block
            fields = (address, size, mnemonics, instructions, operations, evidence)
            told.append(tuple.__new__(Block, fields))
        body.callees.pop(listing.addresses[0], None)
        return Evidence(tuple(told), tuple(body.callees), self._links(body))

    def _links(self, body: Body) -> bytes:
        """How each callee is referred to."""
        if not body.callees:
            return b""
        codes = body.codes
        kinds = {at: _link(codes[at]) for own in body.callees.values() for at in own}
        if self._is_mips:
            positions = sorted(at for at, kind in kinds.items() if kind != CALL)
            texts = zip(positions, body.texts(positions), strict=True)
            kinds |= {at: CALL for at, text in texts if text.startswith(b"$t9")}
        return bytes([min(map(kinds.__getitem__, own)) for own in body.callees.values()])


@lru_cache(maxsize=4096)
def _link(code: int) -> int:
    """By the packed operations of an instruction, the number of a kind of ``LINKS``."""
    operations = code.to_bytes(CODE_BYTES, "little", signed=True)
    if any(operation in _CALLS for operation in operations):
        return CALL
    return TAIL_CALL if any(operation in _JUMPS for operation in operations) else ADDRESS


@lru_cache
def rules_of(architecture: str) -> Rules | None:
    """The rules of a processor, shared by all files, for instructions repeat; its file is
    imported here. None for a processor that has none."""
    if architecture == "aarch64":
        from graphkin.binaries.evidence.arm.aarch64 import AArch64Rules

        return AArch64Rules()
    if architecture == "arm":
        from graphkin.binaries.evidence.arm.arm32 import ArmRules

        return ArmRules()
    if architecture.startswith("mips"):
        from graphkin.binaries.evidence.mips.rules import MipsRules

        return MipsRules(is_big=not architecture.endswith("el"))
    if architecture not in ("x86", "x86-64"):
        return None
    from graphkin.binaries.evidence.x86.rules import X86Rules

    return X86Rules(64 if architecture == "x86-64" else 32)
