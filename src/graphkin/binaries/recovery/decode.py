"""Machine code to records: one call of capstone for a range, read through numpy.

Capstone's own generators build Python objects for every instruction. Here the C records are
copied as they are, and only what control flow needs becomes Python objects: that is twice as
fast as ``disasm_lite``.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import capstone
import numpy as np
from numpy.typing import NDArray

RECORD = capstone._cs_insn
_FIELDS = {"id": "u4", "address": "u8", "size": "u2", "bytes": "V16", "mnemonic": "S32",
           "op_str": "S160"}  # fmt: skip
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


USUAL_BYTES = 3
"""Fewer than most instructions have, to make room for those of a range."""
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


def byte_numbers(table: NDArray[Any]) -> NDArray[np.uint64]:
    """(K,) the first ``NUMBER_BYTES`` bytes of each instruction as a number.

    Zeros stand behind those of shorter ones, which cannot be taken for longer ones by that: no
    instruction begins with the bytes of another.
    """
    own = _OWN_BYTES.take(table["size"], mode="clip")
    return np.asarray(table["first_bytes"] & own, dtype=np.uint64)


def _word(raw: bytes) -> str:
    return sys.intern(raw.partition(b"\0")[0].decode("ascii", "replace"))


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

    def decode(self, code: bytes, address: int) -> NDArray[Any]:
        """(K,) records up to the first byte that begins no instruction."""
        return self.decode_all([(code, address)])[0]

    def decode_all(self, ranges: Sequence[tuple[bytes, int]]) -> tuple[NDArray[Any], list[int]]:
        """(K,) the records of several ranges, each decoded for itself; and how many each has.

        Args:
            ranges: bytes, and the address of the first.
        """
        handle, size = self._owner.csh, RECORD_TYPE.itemsize
        room = np.empty(sum(len(code) for code, _ in ranges) // USUAL_BYTES * size, dtype=np.uint8)
        counts: list[int] = []
        used = 0
        for code, address in ranges:
            records = ctypes.POINTER(RECORD)()
            count = capstone._cs.cs_disasm(
                handle, code, len(code), address, 0, ctypes.byref(records)
            )
            counts.append(count)
            if count:
                end = used + count * size
                if end > len(room):
                    larger = np.empty(max(end, 2 * len(room)), dtype=np.uint8)
                    larger[:used] = room[:used]
                    room = larger
                ctypes.memmove(room.ctypes.data + used, records, end - used)
                # At once, for capstone keeps more memory than it uses.
                capstone._cs.cs_free(records, count)
                used = end
        return room[:used].view(RECORD_TYPE), counts
