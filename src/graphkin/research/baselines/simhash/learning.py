"""Learns the weights of SimHash's features from graphs whose kin are known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from graphkin.errors import ConfigError
from graphkin.graphs.graph import running_offsets
from graphkin.models.similarity import hamming_similarity
from graphkin.research.baselines.hashing import Hashes
from graphkin.research.baselines.simhash.features import KINDS, FeatureSets
from graphkin.research.baselines.simhash.weights import FeatureWeights, hash_bytes, signs

Index = NDArray[np.int64]

MIN_GROUPS = 3
"""Groups that must have a feature before it gets a weight of its own. The rarer ones share the
weight of their kind, which thereby is learned on the sort of feature that it will stand for."""
PAIRS = 256
"""Pairs of a step, half of them similar."""
LEARNING_RATE = 0.05
"""Of the first step; falls to zero in a straight line."""
SHARPNESS = 10.0
"""Logits are this times the similarity above the threshold. Fixed: 128 bits agree by chance to
about +-0.09, so that pairs need a distance that is large beside it, not one that is just there."""
MAX_FEATURES = 20_000
"""Graphs with more features are left out of the pairs, so that memory is bounded."""


def learn_weights(
    features: FeatureSets,
    groups: Index,
    *,
    bits: int,
    seed: int,
    steps: int,
    progress: Callable[[int, int], None] | None = None,
) -> FeatureWeights:
    r"""Adam on the real-valued vectors whose signs are the codes.

    With :math:`x` the weighted sum of the votes of a graph's features, divided by its root mean
    square, pairs (1, 2) with label t are drawn, half of them from one group and half from two,
    and the loss is the cross entropy of

    .. math:: p(t = 1) = \sigma\bigl(10 (\tfrac{1}{B} \sum_k \tanh x_{1k} \tanh x_{2k} - c)\bigr)

    in the weights, which start at 1 and may become negative, and the threshold c.

    Args:
        features: of the graphs to learn from.
        groups: (G,) int64, the group of each graph, numbered from 0 without gaps.
        bits: length of the codes.
        seed: of the pairs that are drawn.
        steps: number of steps.
        progress: called as ``progress(done, steps)``.
    """
    table = _Table.of(features, groups)
    sampler = _PairSampler.of(groups, np.diff(features.offsets) <= MAX_FEATURES)
    generator = np.random.default_rng(seed)
    weights = torch.ones(table.num_weights, requires_grad=True)
    threshold = torch.zeros((), requires_grad=True)
    optimizer = torch.optim.Adam([weights, threshold], lr=LEARNING_RATE, betas=(0.9, 0.99))
    decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / max(steps, 1))
    for step in range(steps):
        pairs, labels = sampler.draw(PAIRS, generator)
        graphs, numbers = np.unique(pairs, return_inverse=True)
        vectors = table.vectors(features.offsets, graphs, weights, bits)
        # index_select, not indexing: the gradient of the latter adds in the order of threads.
        chosen = vectors.index_select(0, torch.from_numpy(numbers.reshape(-1)))
        left, right = chosen.view(2, PAIRS, bits).unbind()
        logits = SHARPNESS * (hamming_similarity(left, right) - threshold)
        loss = functional.binary_cross_entropy_with_logits(logits, labels)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        decay.step()
        if progress is not None:
            progress(step + 1, steps)
    return table.named(weights.detach())


@dataclass(frozen=True, eq=False)
class _Table:
    """Which weight each of the features has: those of the kinds come first."""

    known: Hashes
    """(U,) uint64: every key that occurs, rising."""
    index: Index
    """(M,) int64: place of each feature's key in ``known``."""
    slots: Index
    """(U,) int64: place of each key's weight."""

    @classmethod
    def of(cls, features: FeatureSets, groups: Index) -> _Table:
        known, index = np.unique(features.keys, return_inverse=True)
        kinds = np.zeros(len(known), dtype=np.int64)
        kinds[index] = features.kinds
        in_group = np.unique(groups[features.owners] * len(known) + index)
        frequent = np.bincount(in_group % len(known), minlength=len(known)) >= MIN_GROUPS
        slots = np.where(frequent, len(KINDS) - 1 + np.cumsum(frequent), kinds)
        return cls(known, index, slots)

    @property
    def num_weights(self) -> int:
        return max(len(KINDS), int(self.slots.max()) + 1)

    def named(self, weights: Tensor) -> FeatureWeights:
        """The weights by key; equal to those of training wherever a feature was seen there."""
        values = weights.numpy()
        keys = self.known[self.slots >= len(KINDS)]
        return FeatureWeights(values[: len(KINDS)].copy(), keys, values[len(KINDS) :].copy())

    def vectors(self, offsets: Index, graphs: Index, weights: Tensor, bits: int) -> Tensor:
        """(G, bits) float32: weighted sums of votes, with a root mean square of 1."""
        counts = offsets[graphs + 1] - offsets[graphs]
        starts = running_offsets(counts)
        rows = np.arange(starts[-1]) + np.repeat(offsets[graphs] - starts[:-1], counts)
        present, numbers = np.unique(self.index[rows], return_inverse=True)
        votes = torch.from_numpy(signs(hash_bytes(self.known[present], bits)))
        own = weights.index_select(0, torch.from_numpy(self.slots[present]))
        weighted = own.unsqueeze(1) * votes
        sums = functional.embedding_bag(
            torch.from_numpy(numbers), weighted, torch.from_numpy(starts[:-1]), mode="sum"
        )
        return sums / (sums.square().mean(dim=1, keepdim=True) + 1e-12).sqrt()


@dataclass(frozen=True, eq=False)
class _PairSampler:
    """Draws pairs of one group and of two; every group is as likely as any other."""

    graphs: Index
    """(G,) int64: graph numbers, group after group."""
    starts: Index
    """(K,) int64: where each group begins."""
    sizes: Index
    """(K,) int64: graphs of each group, at least 1."""

    @classmethod
    def of(cls, groups: Index, usable: NDArray[np.bool_]) -> _PairSampler:
        graphs = np.flatnonzero(usable)
        graphs = graphs[np.argsort(groups[graphs], kind="stable")]
        sizes = np.unique(groups[graphs], return_counts=True)[1]
        if len(sizes) < 2 or sizes.max() < 2:
            raise ConfigError(
                f"{len(graphs)} graphs in {len(sizes)} groups give no similar or no dissimilar "
                "pair; learning needs two groups, one of them with two graphs"
            )
        return cls(graphs, running_offsets(sizes)[:-1], sizes)

    def draw(self, count: int, generator: np.random.Generator) -> tuple[Index, Tensor]:
        """(2, count) graphs of each pair, and (count,) float32 labels, 1 for similar pairs."""
        repeated = np.flatnonzero(self.sizes > 1)
        same = repeated[generator.integers(len(repeated), size=count // 2)]
        first = generator.integers(self.sizes[same])
        second = (first + 1 + generator.integers(self.sizes[same] - 1)) % self.sizes[same]
        left = generator.integers(len(self.sizes), size=count - len(same))
        right = (left + 1 + generator.integers(len(self.sizes) - 1, size=len(left))) % len(
            self.sizes
        )
        similar = self.starts[same] + [first, second]
        dissimilar = [self.starts[k] + generator.integers(self.sizes[k]) for k in (left, right)]
        labels = torch.cat([torch.ones(len(same)), torch.zeros(len(left))])
        return self.graphs[np.concatenate([similar, dissimilar], axis=1)], labels
