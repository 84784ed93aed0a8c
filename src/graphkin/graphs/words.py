"""Words of an open vocabulary as 64-bit hashes: what graphs say in strings, names and numbers.

No list of words is kept, so that a word that nobody has met yet is as good as any other: equal
words have equal hashes, on every machine, and 60 bits leave no room for accidents. The top four
bits are the kind of the word.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from graphkin.graphs.graph import Graph, WordArray

KINDS = ("str", "imp", "num", "flt", "dat", "off")
"""Strings, imported names, integer constants, float constants, first bytes of constant tables,
field offsets. Files store positions in this list, so kinds are only added at the end."""
OFFSETS = "off"
"""The kind of words that says nothing between pointers of different widths."""
KIND_SHIFT = 60
HASH_MASK = (1 << KIND_SHIFT) - 1
WORDS_KEPT = 1 << 16
MOST_EXCEPTED = 5
"""Least number of nodes up to which smaller graphs that say enough count as well: who asks for more
means it."""


@lru_cache(maxsize=WORDS_KEPT)
def word_hash(kind: str, text: str) -> int:
    """The hash of a word: its kind, and 60 bits of BLAKE2b of its text.

    Example:
        >>> word_hash("imp", "malloc") >> KIND_SHIFT == KINDS.index("imp")
        True
    """
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return KINDS.index(kind) << KIND_SHIFT | int.from_bytes(digest, "little") & HASH_MASK


def is_telling(kinds: Iterable[str]) -> bool:
    """Whether words of some kinds are enough to know a graph by that is too small otherwise.

    A string, a float or a table is; of imports and integers it takes two.
    """
    counts = Counter(kinds)
    return counts["str"] + counts["flt"] + counts["dat"] > 0 or counts["imp"] + counts["num"] > 1


def kinds_of(hashes: WordArray) -> NDArray[np.int64]:
    """(M,) the position in ``KINDS`` of each word."""
    return (hashes >> np.uint64(KIND_SHIFT)).astype(np.int64)


def is_large(graph: Graph, min_blocks: int) -> bool:
    """As :meth:`graphkin.binaries.function.Function.is_large`, of the graph of a function."""
    if graph.num_nodes >= min_blocks or min_blocks > MOST_EXCEPTED:
        return graph.num_nodes >= min_blocks
    words = graph.node_words
    return words is not None and is_telling(KINDS[kind] for kind in kinds_of(words.hashes))
