"""Tables that 64-bit code of PowerPC has: of contents, and behind functions, for debuggers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TOC_HIGH, TOC_LOW = (0x3C4C, 0x3C40), 0x3842
"""``addis r2, r12`` or ``lis r2``, and ``addi r2, r2``: the upper halves."""
MAX_LANGUAGE, HAS_LENGTH, HAS_NAME, KINDS, SAVED = 15, 0x20, 0x40, 0x26, 0x63
"""Of the table behind a function of 64-bit code; the last two are the flags that compilers set."""


def computed_contents(
    words: NDArray[np.int64], start: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where functions of 64-bit code compute the address of the table of contents, and what it is.

    Args:
        words: instructions.
        start: address of the first.
    """
    high, low = words[:-1] >> 16, words[1:] >> 16
    rows = np.flatnonzero(np.isin(high, TOC_HIGH) & (low == TOC_LOW))
    halves = [((words[at] & 0xFFFF) ^ 0x8000) - 0x8000 for at in (rows, rows + 1)]
    origin = np.where(high[rows] == TOC_HIGH[0], start + 4 * rows, 0)
    return rows, origin + (halves[0] << 16) + halves[1]


def guessed_contents(words: NDArray[np.int64], start: int) -> int | None:
    """The address of the table of contents that most functions compute; None without any."""
    _, values = computed_contents(words, start)
    bases, counts = np.unique(values, return_counts=True)
    return int(bases[counts.argmax()]) if len(bases) else None


def traceback_tables(words: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Tables behind functions of 64-bit code, which tell debuggers of them, as (first word, word
    behind the last).

    Each begins with a zero, which is no instruction. Eight bytes follow, and where they say so, the
    length of the function and its name.
    """
    tables: list[tuple[int, int]] = []
    is_first = words == 0
    is_first[1:] &= words[:-1] >> 26 != 0
    for at in np.flatnonzero(is_first[:-2]).tolist():
        first, second = (int(word).to_bytes(4, "little") for word in words[at + 1 : at + 3])
        # Compilers write byte by byte, glibc one number.
        version, language, kind, saved = first if any(first) else second[::-1]
        if version or language > MAX_LANGUAGE or kind & ~KINDS or saved & ~SAVED:
            continue
        has_length, has_name = bool(kind & HAS_LENGTH), bool(saved & HAS_NAME)
        end = at + 3 + has_length
        if has_name:
            if not has_length or end >= len(words):
                continue
            end += (2 + (int(words[end]) & 0xFFFF) + 3) // 4
        tables.append((at, min(end, len(words))))
    return tables
