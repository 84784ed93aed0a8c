"""Decoded ranges of code in columns, many ranges at once: each call of numpy serves them all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.image import THUMB, ByteOrder
from graphkin.binaries.recovery.architecture import Architecture
from graphkin.binaries.recovery.decode import NUMBER_BYTES, byte_numbers, mnemonics, operands

Key = int | bytes | tuple[int, str]
"""The first bytes of an instruction as a number, or all of its bytes, or a number and its name
where bytes do not tell that."""


_BLOCKS = frozenset(
    "it" + "".join(rest) for count in range(4) for rest in product("te", repeat=count)
)
"""Thumb instructions that make those behind them conditional."""
_BLOCK_REACH = 8
"""Instructions behind, whose names may tell a condition that their bytes do not."""


class Columns(Protocol):
    """Instructions by row. Those of a range stand together, and so do their transfers."""

    addresses: list[int]
    sizes: list[int]
    mnemonics: list[str]
    transfers: Transfers

    @property
    def words(self) -> list[int]:
        """The first four bytes of each, as a number in the byte order of the file."""

    @property
    def ids(self) -> list[int]:
        """Which of the distinct instructions of these columns each one is."""

    @property
    def keys(self) -> list[Key]:
        """What tells those apart, by id."""

    @property
    def notes(self) -> dict[object, list[Any]]:
        """Room for whoever keeps something for each id."""

    def text(self, row: int) -> bytes:
        """The operands of an instruction."""

    def texts(self, rows: Sequence[int]) -> list[bytes]:
        """Those of several."""


class Transfers(NamedTuple):
    """All that is not plain.

    A transfer with a delay slot stands in the row of the slot, with its own operands: control goes
    elsewhere behind the slot, and so the block ends there.
    """

    rows: list[int]
    kinds: list[int]
    operands: list[bytes]
    targets: list[int | None]
    """The addresses of direct ones."""
    slots: list[int]
    """Rows of the delay slots."""
    are_texts: bool = False
    """Whether the operands are to be shown in place of what capstone prints."""


def in_slots(
    rows: NDArray[np.intp], delayed: NDArray[np.bool_], lasts: Sequence[int]
) -> tuple[NDArray[np.intp], NDArray[np.bool_], list[int]]:
    """(K,) the rows of transfers that may have a delay slot, (K,) which of them stay, and the rows
    of the slots.

    Args:
        rows: (K,) the rows of the transfers themselves.
        delayed: (K,) whether they have a slot.
        lasts: the last row of each range, which has nothing behind it.
    """
    delayed = delayed & ~np.isin(rows, lasts)
    moved = rows + delayed
    stays = np.ones(len(moved), dtype=bool)
    # What ends a path in the slot of a branch does nothing that the manuals define.
    stays[1:] = moved[1:] != moved[:-1]
    return moved, stays, moved[delayed].tolist()


class RecordColumns:
    """Columns of capstone's records.

    Args:
        table: the records.
        counts: how many each range has.
        architecture: the processor.
        byte_order: of instruction words.
        state: that the code runs in.
    """

    def __init__(
        self,
        table: NDArray[Any],
        counts: Sequence[int],
        architecture: Architecture,
        byte_order: ByteOrder,
        state: str,
    ) -> None:
        self._table = table
        self._is_thumb = state == THUMB
        self._word_field = "word" if byte_order == "little" else "big_word"
        self.addresses: list[int] = table["address"].tolist()
        self.sizes: list[int] = table["size"].tolist()
        self.mnemonics = mnemonics(table)
        self.transfers = _transfers(table, counts, architecture)

    @cached_property
    def words(self) -> list[int]:
        words: list[int] = self._table[self._word_field].tolist()
        return words

    @cached_property
    def ids(self) -> list[int]:
        return self._numbered[0]

    @cached_property
    def keys(self) -> list[Key]:
        return self._numbered[1]

    @cached_property
    def notes(self) -> dict[object, list[Any]]:
        return {}

    @cached_property
    def _numbered(self) -> tuple[list[int], list[Key]]:
        distinct, own = np.unique(byte_numbers(self._table), return_inverse=True)
        ids: list[int] = own.tolist()
        keys: list[Key] = distinct.tolist()
        others: dict[Key, int] = {}
        for row in np.flatnonzero(self._table["size"] > NUMBER_BYTES).tolist():
            key = self._table["bytes"][row].tobytes()[: self.sizes[row]]
            ids[row] = others.setdefault(key, len(keys) + len(others))
        if self._is_thumb:
            names = self.mnemonics
            for start in [row for row, name in enumerate(names) if name in _BLOCKS]:
                for row in range(start + 1, min(start + 1 + _BLOCK_REACH, len(names))):
                    named = (int(distinct[own[row]]), names[row])
                    ids[row] = others.setdefault(named, len(keys) + len(others))
        keys += others
        return ids, keys

    @cached_property
    def _texts(self) -> NDArray[Any]:
        column: NDArray[Any] = self._table["op_str"]
        return column

    def text(self, row: int) -> bytes:
        raw: bytes = self._texts[row]
        return raw.partition(b"\0")[0]

    def texts(self, rows: Sequence[int]) -> list[bytes]:
        return operands(self._table, np.array(rows, dtype=np.intp))


def _transfers(table: NDArray[Any], counts: Sequence[int], architecture: Architecture) -> Transfers:
    kinds = architecture.kinds(table)
    rows = np.flatnonzero(kinds)
    kinds, records = kinds[rows], table[rows]
    slots: list[int] = []
    delayed = architecture.delayed(records, kinds)
    if delayed is not None:
        lasts = np.cumsum(counts) - 1
        rows, stays, slots = in_slots(rows, delayed, lasts.tolist())
        rows, kinds, records = rows[stays], kinds[stays], records[stays]
    absolute = architecture.absolute(records)
    texts = operands(records) if absolute is None else absolute
    targets = list(map(architecture.target, texts))
    return Transfers(rows.tolist(), kinds.tolist(), texts, targets, slots, absolute is not None)
