"""What a graph says, as a vector: a weighted sum of directions, one for each of its words.

The direction of a word is made of the bits of its hash, so that a word that no training has met
has one of its own, and no table is stored. Rare words weigh more than frequent ones. For the most
frequent words of the training, direction and weight are learned on top.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from graphkin.errors import GraphError
from graphkin.graphs.batch import WordBatch
from graphkin.graphs.graph import Graph, WordArray
from graphkin.graphs.words import KIND_SHIFT, KINDS
from graphkin.models.layers import zeros
from graphkin.models.word_directions import NO_WORDS, direction_bits


@dataclass(frozen=True, eq=False)
class WordStatistics:
    """How rare words are, as a training corpus has them."""

    hashes: WordArray
    """(K,) words that are known, the most frequent first."""
    rarity: NDArray[np.float32]
    """(K,) inverse document frequency: log(1 + graphs / graphs that have the word)."""
    unseen: float
    """Rarity of any other word."""

    @classmethod
    def count(cls, graphs: Iterable[Graph], known: int, copies: int) -> WordStatistics:
        """Counts the words of graphs.

        Args:
            graphs: all with words.
            known: how many words to keep, the most frequent ones.
            copies: graphs of one function, about; a word that was never met counts as met in
                one function.
        """
        total, words = 0, []
        for graph in graphs:
            total += 1
            if graph.node_words is not None:
                words.append(np.unique(graph.node_words.hashes))
        everything = np.concatenate(words) if words else np.zeros(0, np.uint64)
        hashes, counts = np.unique(everything, return_counts=True)
        order = np.lexsort((hashes, -counts))[:known]
        rarity = np.log1p(total / (counts[order] + copies)).astype(np.float32)
        return cls(hashes[order], rarity, math.log1p(total / copies))


class WordBag(nn.Module):
    """b_G = sum_w (1 + log c_w) r_w e^s_w (signs_w + u_w), brought to length 1.

    c_w is how often the graph has word w, r_w its rarity, signs_w its direction of
    +-1 / sqrt(dim). The scale s_w = s_kind + s_own and the learned direction u_w are 0 at first;
    s_own and u_w stay so but for ``learned`` frequent words. A graph without words has the
    vector 0.

    Args:
        dim: the width of the vector, a multiple of 64.
        known: words whose rarity is known.
        learned: those of them, the first, that have a scale and a direction of their own.
        kinds: which kinds of words are read.
    """

    hashes: Tensor
    rarity: Tensor
    rows: Tensor
    unseen: Tensor
    is_read: Tensor

    def __init__(self, dim: int, known: int, learned: int, kinds: Iterable[str] = KINDS) -> None:
        super().__init__()
        self.dim, self.learned = dim, learned
        self.register_buffer("hashes", torch.arange(known))  # (K,) int64, rising
        self.register_buffer("rarity", torch.ones(known))  # (K,)
        self.register_buffer("rows", torch.zeros(known, dtype=torch.int64))  # (K,), 0 for none
        self.register_buffer("unseen", torch.ones(1))
        read = torch.tensor([kind in set(kinds) for kind in KINDS])
        self.register_buffer("is_read", read, persistent=False)
        self.kind_scale = zeros(len(KINDS))
        if learned:
            self.word_scale = zeros(learned + 1)
            self.directions = nn.Parameter(torch.zeros(learned + 1, dim))

    def fit(self, statistics: WordStatistics) -> None:
        """Takes over how rare words are; what is learned begins anew."""
        count = len(self.hashes)
        if len(statistics.hashes) != count:
            raise ValueError(f"{len(statistics.hashes)} words for a model that knows {count}")
        rows = np.zeros(count, dtype=np.int64)
        rows[: self.learned] = np.arange(1, min(count, self.learned) + 1)
        hashes = statistics.hashes.view(np.int64)
        order = np.argsort(hashes)
        self.hashes.copy_(torch.from_numpy(hashes[order]))
        self.rarity.copy_(torch.from_numpy(statistics.rarity[order]))
        self.rows.copy_(torch.from_numpy(rows[order]))
        self.unseen.fill_(statistics.unseen)

    def forward(self, words: WordBatch) -> Tensor:
        """-> (G, dim), each of length 1 or 0."""
        return functional.normalize(self.totals(words), dim=1)

    def totals(self, words: WordBatch) -> Tensor:
        """-> (G, dim), the longer the more and the rarer the words are."""
        graphs = len(words.offsets) - 1
        owners = torch.repeat_interleave(words.offsets.diff())  # (M,) the graph of each word
        kinds = (words.hashes >> KIND_SHIFT) & 0xF
        read = self.is_read[kinds]
        hashes, counts = words.hashes[read], words.counts[read]
        owners, kinds = owners[read], kinds[read]
        rarity, rows = self._look_up(hashes)
        scale = self.kind_scale[kinds]
        vectors = signs(hashes, self.dim).to(scale.dtype) / math.sqrt(self.dim)  # (M, dim)
        if self.learned:
            own = (rows > 0).to(scale.dtype)
            scale = scale + own * self.word_scale[rows]
            vectors = vectors + own[:, None] * self.directions[rows]
        weights = (1 + counts.log()) * rarity * scale.exp()
        total = vectors.new_zeros(graphs, self.dim)
        return total.index_add(0, owners, weights[:, None] * vectors)

    def rarity_of(self, hashes: WordArray) -> NDArray[np.float32]:
        """(M,) how rare words are."""
        rarity, _ = self._look_up(torch.from_numpy(hashes.view(np.int64)))
        return rarity.cpu().numpy()

    def _look_up(self, hashes: Tensor) -> tuple[Tensor, Tensor]:
        """(M,) the rarity of each word, and its row among the learned ones, or 0."""
        if not len(self.hashes):
            return self.unseen.expand(len(hashes)), torch.zeros_like(hashes)
        near = torch.searchsorted(self.hashes, hashes).clamp(max=len(self.hashes) - 1)
        is_known = self.hashes[near] == hashes
        rarity = torch.where(is_known, self.rarity[near], self.unseen)
        return rarity, torch.where(is_known, self.rows[near], 0)


def checked_words(words: WordBatch | None) -> WordBatch:
    """Refuses graphs without words."""
    if words is None:
        raise GraphError(NO_WORDS)
    return words


def signs(hashes: Tensor, dim: int) -> Tensor:
    """(M,) hashes -> (M, dim) int8 of 1 and -1."""
    bits = direction_bits(hashes.cpu().numpy().view(np.uint64), dim)
    return torch.from_numpy(2 * bits.astype(np.int8) - 1).to(hashes.device)
