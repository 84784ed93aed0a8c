"""Machine code to columns: one call of capstone for a range, read through numpy.

Capstone's own generators build Python objects for every instruction. Here the array of C
records is viewed in place, and only what control flow needs becomes Python objects: that is
twice as fast as ``disasm_lite``.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import capstone
import numpy as np
from numpy.typing import NDArray

RECORD = capstone._cs_insn
_FIELDS = {"id": "u4", "address": "u8", "size": "u2", "mnemonic": "S32", "op_str": "S160"}
RECORD_TYPE = np.dtype(
    {
        "names": [*_FIELDS, "head", "op_head", "word", "big_word", "first_bytes"],
        "formats": [*_FIELDS.values(), "<u8", "<u8", "<u4", ">u4", "<u8"],
        # From capstone's declaration, so that another version's layout is followed.
        "offsets": [
            *(getattr(RECORD, name).offset for name in _FIELDS),
            RECORD.mnemonic.offset,
            RECORD.op_str.offset,
            RECORD.bytes.offset,
            RECORD.bytes.offset,
            RECORD.bytes.offset,
        ],
        "itemsize": ctypes.sizeof(RECORD),
    }
)


NUMBER_BYTES = 8
_OWN_BYTES = np.array([(1 << 8 * size) - 1 for size in range(NUMBER_BYTES + 1)], dtype=np.uint64)
"""By the size of an instruction: which of its first bytes are its own."""


class _Words(dict[int, str]):
    """One shared string for each mnemonic of up to 7 letters, by its bytes as a number."""

    def __missing__(self, key: int) -> str:
        word = self[key] = _word(key.to_bytes(8, "little"))
        return word


WORDS = _Words()
ONES, HIGHS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)


def mnemonics(table: NDArray[Any]) -> list[str]:
    """The mnemonic of each record, as shared strings.

    Bytes behind the zero that ends a mnemonic are left over from other instructions, so they
    are masked: the lowest set bit of ``zeros`` lies in the first zero byte.
    """
    heads = table["head"]
    zeros = (heads - ONES) & ~heads & HIGHS
    keys = heads & ((zeros & (~zeros + np.uint64(1))) - np.uint64(1))
    words = list(map(WORDS.__getitem__, keys.tolist()))
    for position in np.flatnonzero(zeros == 0).tolist():
        words[position] = _word(table["mnemonic"][position])
    return words


def operands(table: NDArray[Any], rows: NDArray[np.intp] | None = None) -> list[bytes]:
    """The operands of each record, or of some of them, as text."""
    column = table["op_str"] if rows is None else table["op_str"][rows]
    return [raw.partition(b"\0")[0] for raw in column.tolist()]


def byte_numbers(table: NDArray[Any]) -> list[int]:
    """The first ``NUMBER_BYTES`` bytes of each instruction as a number.

    Zeros stand behind those of shorter ones, which cannot be taken for longer ones by that: no
    instruction begins with the bytes of another.
    """
    own = _OWN_BYTES.take(table["size"], mode="clip")
    numbers: list[int] = (table["first_bytes"] & own).tolist()
    return numbers


def _word(raw: bytes) -> str:
    return sys.intern(raw.partition(b"\0")[0].decode("ascii", "replace"))


class Records:
    """Decoded instructions, in memory that capstone owns until :meth:`close`."""

    def __init__(self, code: bytes, address: int, owner: capstone.Cs) -> None:
        self._pointer = ctypes.POINTER(RECORD)()
        self._count = capstone._cs.cs_disasm(
            owner.csh, code, len(code), address, 0, ctypes.byref(self._pointer)
        )
        self.table: NDArray[Any] = np.empty(0, dtype=RECORD_TYPE)
        """(K,) records up to the first byte that begins no instruction."""
        if self._count:
            start = ctypes.addressof(self._pointer.contents)
            array = (ctypes.c_char * (self._count * RECORD_TYPE.itemsize)).from_address(start)
            self.table = np.frombuffer(array, dtype=RECORD_TYPE)
        self._texts = self.table["op_str"]

    def text(self, position: int) -> str:
        """The operands of one instruction."""
        raw: bytes = self._texts[position]
        return raw.partition(b"\0")[0].decode("ascii", "replace")

    def close(self) -> None:
        """Gives the memory back; the table must not be used again."""
        if self._count:
            self.table = np.empty(0, dtype=RECORD_TYPE)
            self._texts = self.table["op_str"]
            capstone._cs.cs_free(self._pointer, self._count)
            self._count = 0


class Decoder:
    """Decodes ranges of code. One of these serves a whole file.

    Args:
        architecture: of capstone.
        mode: of capstone.
        resumes: whether what is not an instruction becomes a record with id 0 and the mnemonic
            ``.byte``, instead of an end. For processors whose instructions are all aligned.
    """

    def __init__(self, architecture: int, mode: int, resumes: bool = False) -> None:
        self._owner = capstone.Cs(architecture, mode)
        self._owner.skipdata = resumes

    def decode(self, code: bytes, address: int) -> Records:
        return Records(code, address, self._owner)
