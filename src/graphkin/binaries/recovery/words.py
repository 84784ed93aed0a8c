"""Instructions of one size, found out once for each word: most words of a file were met before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import ByteOrder
from graphkin.binaries.recovery.architecture import PLAIN, Architecture
from graphkin.binaries.recovery.columns import Key, Transfers, in_slots
from graphkin.binaries.recovery.decode import Decoder, mnemonics, operands

BYTES = 4
"""Of an instruction."""
KEPT = 1 << 17
"""Words that are kept for a processor; then all are forgotten."""
_PROBE = 0x10000000
"""An address that words are decoded at, to learn what does not depend on it."""
_DELAYED = 0x80
_SMALLEST = 16
"""Capstone writes smaller numbers in decimal."""
_NO_TEXT, _TEXT, _ADDRESS = range(3)
"""How to write operands: by asking capstone, as they are, or with an address behind them."""
RelativeTo = Callable[
    [NDArray[np.int64], NDArray[np.uint64]], tuple[NDArray[np.int64], NDArray[np.uint64]]
]
"""(K,) words and (K,) their addresses to (K,) the bits of each word that say how far away another
address is, which is 0 for most; and (K,) that address."""


class Word(NamedTuple):
    """What one word means, wherever it stands; those that differ in a distance are one."""

    mnemonic: str
    kind: int
    """What it does to control flow, with a bit for those that have a delay slot."""
    text: bytes
    """Its operands, without the address."""
    form: int
    """How to write them."""


KnownWords = dict[int, Word]


def read_words(
    words: Sequence[int],
    architecture: Architecture,
    decoder: Decoder,
    order: str,
    relative: Callable[[NDArray[np.int64]], NDArray[np.bool_]],
) -> KnownWords:
    """Has capstone tell what words mean.

    Args:
        words: each once, without distances.
        architecture: the processor.
        decoder: of its instructions.
        order: numpy's sign for the byte order.
        relative: tells which words have a distance.
    """
    own = np.array(words, dtype=f"{order}u4")
    table = decoder.decode(own.tobytes(), _PROBE)
    kinds = np.asarray(architecture.kinds(table), dtype=np.uint8)
    delayed = architecture.delayed(table, kinds)
    if delayed is not None:
        kinds = kinds | np.where(delayed & (kinds != PLAIN), _DELAYED, 0).astype(np.uint8)
    texts = operands(table)
    forms = [_TEXT] * len(words)
    for number in np.flatnonzero(relative(own.astype(np.int64))).tolist():
        # What is not an instruction shows all of its bytes.
        texts[number], sign, _ = texts[number].rpartition(b"0x")
        forms[number] = _ADDRESS if sign and table["id"][number] else _NO_TEXT
    return dict(zip(words, map(Word, mnemonics(table), kinds.tolist(), texts, forms), strict=True))


@lru_cache
def known_words(name: str) -> KnownWords:
    """The words of a processor that all files share, by a name of its own for it."""
    return {}


class WordDecoder(Decoder):
    """Decodes instructions that all have one size and stand at its multiples.

    Args:
        name: of the processor and its mode.
        architecture: of capstone.
        mode: of capstone.
        byte_order: of the words.
        bits: of an address.
        relative_to: finds distances in the words.
    """

    def __init__(
        self,
        name: str,
        architecture: int,
        mode: int,
        byte_order: ByteOrder,
        bits: int,
        relative_to: RelativeTo,
    ) -> None:
        super().__init__(architecture, mode, resumes=True)
        self._known = known_words(name)
        self.order = "<" if byte_order == "little" else ">"
        self.largest = 1 << (bits - 1)
        """Below, there is no address that is written as anything but itself."""
        self._relative_to = relative_to

    def columns(
        self, ranges: Sequence[tuple[bytes, int]], architecture: Architecture
    ) -> tuple[WordColumns, list[int]]:
        """What stands in some ranges, and how many instructions each has.

        Args:
            ranges: bytes, and the address of the first, which is a multiple of the size.
            architecture: the processor.
        """
        counts = [len(code) // BYTES for code, _ in ranges]
        raw = b"".join([code[: len(code) // BYTES * BYTES] for code, _ in ranges])
        addresses: list[int] = []
        for count, (_, start) in zip(counts, ranges, strict=True):
            addresses += range(start, start + BYTES * count, BYTES)
        words = np.frombuffer(raw, dtype=f"{self.order}u4").astype(np.int64)
        fields, targets = self._relative_to(words, np.array(addresses, dtype=np.uint64))
        distinct, ids = np.unique(words & ~fields, return_inverse=True)
        keys: list[int] = distinct.tolist()
        known = self._look_up(keys, architecture)
        columns = WordColumns(
            words, keys, known, ids, addresses, targets, counts, self, architecture
        )
        return columns, counts

    def _look_up(self, words: list[int], architecture: Architecture) -> list[Word]:
        meanings = list(map(self._known.get, words))
        missing = [word for word, meaning in zip(words, meanings, strict=True) if meaning is None]
        if not missing:
            return cast("list[Word]", meanings)
        read = read_words(missing, architecture, self, self.order, self._has_distance)
        if len(self._known) > KEPT:
            self._known.clear()
        self._known.update(read)
        pairs = zip(words, meanings, strict=True)
        return [read[word] if meaning is None else meaning for word, meaning in pairs]

    def _has_distance(self, words: NDArray[np.int64]) -> NDArray[np.bool_]:
        fields, _ = self._relative_to(words, np.zeros(len(words), dtype=np.uint64))
        return np.asarray(fields != 0)


class WordColumns:
    """Columns of known words.

    Args:
        words: (K,) all of them.
        keys: the distinct ones, without distances.
        known: what these mean.
        ids: (K,) which of them each instruction is.
        addresses: of the instructions.
        targets: (K,) the addresses that they name by their distance.
        counts: how many each range has.
        decoder: for what must be decoded after all.
        architecture: the processor.
    """

    def __init__(
        self,
        words: NDArray[np.int64],
        keys: Sequence[int],
        known: Sequence[Word],
        ids: NDArray[np.intp],
        addresses: list[int],
        targets: NDArray[np.uint64],
        counts: Sequence[int],
        decoder: WordDecoder,
        architecture: Architecture,
    ) -> None:
        self._all_words = words
        self._known = known
        self._decoder = decoder
        self.keys: list[Key] = list(keys)
        self.ids: list[int] = ids.tolist()
        self.notes: dict[object, list[Any]] = {}
        self.addresses = addresses
        self._targets: list[int] = targets.tolist()
        self.sizes = [BYTES] * len(addresses)
        names = [word.mnemonic for word in known]
        self.mnemonics = list(map(names.__getitem__, self.ids))
        kinds = np.array([word.kind for word in known], dtype=np.uint8)[ids]
        self.transfers = self._find_transfers(kinds, counts, architecture)

    @cached_property
    def words(self) -> list[int]:
        words: list[int] = self._all_words.tolist()
        return words

    def text(self, row: int) -> bytes:
        _, _, text, form = self._known[self.ids[row]]
        if form == _TEXT:
            return text
        if self._has_target(row):
            return b"%b%#x" % (text, self._targets[row])
        code = np.array([self.words[row]], dtype=f"{self._decoder.order}u4").tobytes()
        return operands(self._decoder.decode(code, self.addresses[row]))[0]

    def texts(self, rows: Sequence[int]) -> list[bytes]:
        return list(map(self.text, rows))

    def _has_target(self, row: int) -> bool:
        """Whether the operands end in an address that is written as it is."""
        is_address = self._known[self.ids[row]].form == _ADDRESS
        return is_address and _SMALLEST <= self._targets[row] < self._decoder.largest

    def _find_transfers(
        self, kinds: NDArray[np.uint8], counts: Sequence[int], architecture: Architecture
    ) -> Transfers:
        rows = np.flatnonzero(kinds)
        kinds = kinds[rows]
        own, slots = rows, list[int]()
        delayed = kinds >= _DELAYED
        if delayed.any():
            lasts = np.cumsum(counts) - 1
            rows, stays, slots = in_slots(rows, delayed, lasts.tolist())
            own, rows, kinds = own[stays], rows[stays], kinds[stays]
        texts = self.texts(own.tolist())
        targets = [
            self._targets[row] if self._has_target(row) else architecture.target(text)
            for row, text in zip(own.tolist(), texts, strict=True)
        ]
        return Transfers(rows.tolist(), (kinds % _DELAYED).tolist(), texts, targets, slots)
