"""Token ids for what instructions are, with one id for everything not seen in training.

A vocabulary also says what is read of a function: its mnemonics, as in the paper, or its operations
and beside them what it says, as hashed words (:mod:`graphkin.graphs.words`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from graphkin.errors import FormatError
from graphkin.graphs.graph import IntArray
from graphkin.graphs.words import KIND_SHIFT, KINDS

UNKNOWN = "<unknown>"
Reads = Literal["mnemonics", "evidence"]
"""Mnemonics of the processor; or operations, the same on all processors, and hashed words."""
HASHED = {"kinds": list(KINDS), "bits": KIND_SHIFT}
"""How words of an open vocabulary are hashed; a graph that was made otherwise does not fit."""


@dataclass(frozen=True)
class Vocabulary:
    """Token ``i + 1`` is ``words[i]``; token 0 stands for any other word."""

    words: tuple[str, ...]
    reads: Reads = "mnemonics"
    _ids: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        ids = {word: token for token, word in enumerate(self.words, start=1)}
        if len(ids) != len(self.words):
            raise FormatError("a vocabulary lists a word twice")
        if UNKNOWN in ids:
            raise FormatError(f"{UNKNOWN} is token 0 of every vocabulary; leave it out of words")
        object.__setattr__(self, "_ids", ids)

    @classmethod
    def from_counts(
        cls, counts: Mapping[str, int], *, min_count: int = 1, size: int | None = None
    ) -> Vocabulary:
        """The words seen at least ``min_count`` times, most frequent first, at most ``size``."""
        kept = [word for word, count in counts.items() if count >= min_count and word != UNKNOWN]
        kept.sort(key=lambda word: (-counts[word], word))
        return cls(tuple(kept if size is None else kept[:size]))

    @classmethod
    def from_json(cls, words: object) -> Vocabulary:
        """Reads what :meth:`to_json` wrote."""
        reads: Reads = "mnemonics"
        if isinstance(words, dict):
            if words.keys() != {"operations", "hashed"} or words["hashed"] != HASHED:
                raise FormatError(
                    f"a vocabulary of operations and hashed words has {HASHED}; this one is of "
                    "another graphkin"
                )
            reads, words = "evidence", words["operations"]
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise FormatError(f"a vocabulary is a JSON list of strings, got {str(words)[:60]!r}")
        return cls(tuple(words), reads)

    def to_json(self) -> list[str] | dict[str, Any]:
        if self.reads == "mnemonics":
            return list(self.words)
        return {"operations": list(self.words), "hashed": HASHED}

    def encode(self, words: Iterable[str]) -> IntArray:
        """(M,) int32, the token of each word."""
        get = self._ids.get
        return np.array([get(word, 0) for word in words], dtype=np.int32)

    def decode(self, token: int) -> str:
        """The word of a token."""
        return UNKNOWN if token == 0 else self.words[token - 1]

    def __len__(self) -> int:
        """Number of tokens, the unknown one included."""
        return len(self.words) + 1
