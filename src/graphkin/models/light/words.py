"""What graphs say, as vectors, in numpy: the equations are those of ``WordBag``."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from graphkin.graphs.graph import WordArray
from graphkin.graphs.packing import PackedWords, owners_of
from graphkin.graphs.words import KINDS, kinds_of
from graphkin.models.light.run_sums import RunSums
from graphkin.models.light.weights import Floats, Weights
from graphkin.models.word_directions import direction_bits


class LightWordBag:
    """b_G = sum_w (1 + log c_w) r_w e^s_w (signs_w + u_w); see :class:`WordBag`.

    Args:
        weights: of the model.
        name: of the bag in it.
        dim: the width of the vector.
        known: words whose rarity is known.
        learned: those of them that have a scale and a direction of their own.
        kinds: which kinds of words are read.
    """

    def __init__(
        self, weights: Weights, name: str, dim: int, known: int, learned: int, kinds: Iterable[str]
    ) -> None:
        self._dim = dim
        self._hashes = weights.integers(f"{name}.hashes", known)
        self._rarity = weights.floats(f"{name}.rarity", known)
        self._rows = weights.integers(f"{name}.rows", known)
        self._unseen = weights.floats(f"{name}.unseen", 1)
        self._kind_factor = np.exp(weights.floats(f"{name}.kind_scale", len(KINDS)))
        self._is_read = np.array([kind in set(kinds) for kind in KINDS])
        self._learned = learned
        if learned:
            self._word_factor = np.exp(weights.floats(f"{name}.word_scale", learned + 1))
            self._directions = weights.floats(f"{name}.directions", learned + 1, dim)

    def totals(self, words: PackedWords) -> Floats:
        """-> (owners, dim), the longer the more and the rarer the words are."""
        kinds = kinds_of(words.hashes)
        read = self._is_read[kinds]
        hashes, kinds = words.hashes[read], kinds[read]
        rarity, rows = self._look_up(hashes)
        strengths = (1 + np.log(words.counts[read])) * rarity * self._kind_factor[kinds]
        vectors = direction_bits(hashes, self._dim).astype(np.float32)  # (M, dim) of 1 and 0
        vectors *= np.float32(2 / math.sqrt(self._dim))
        vectors -= np.float32(1 / math.sqrt(self._dim))
        own = np.flatnonzero(rows)
        if self._learned and len(own):
            strengths[own] *= self._word_factor[rows[own]]
            vectors[own] += self._directions[rows[own]]
        vectors *= strengths[:, None]
        counts = np.bincount(owners_of(words.offsets)[read], minlength=len(words.offsets) - 1)
        return RunSums(np.concatenate([[0], np.cumsum(counts)]))(vectors)

    def rarity_of(self, hashes: WordArray) -> NDArray[np.float32]:
        """(M,) how rare words are."""
        return self._look_up(hashes)[0]

    def _look_up(self, hashes: WordArray) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """(M,) the rarity of each word, and its row among the learned ones, or 0."""
        signed = hashes.view(np.int64)
        if not len(self._hashes):
            return np.repeat(self._unseen, len(signed)), np.zeros(len(signed), np.int64)
        near = np.searchsorted(self._hashes, signed).clip(max=len(self._hashes) - 1)
        is_known = self._hashes[near] == signed
        rarity = np.where(is_known, self._rarity[near], self._unseen)
        return rarity, np.where(is_known, self._rows[near], 0)
