"""SimHash of control-flow graphs: the hand-engineered competitor of the paper."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphkin._support.files import PathLike
from graphkin.errors import ConfigError, FormatError
from graphkin.graphs import Graph
from graphkin.graphs.packing import check_uniform, distinct_graphs
from graphkin.models.codes import pack_codes
from graphkin.research.baselines.simhash.features import FeatureSets, extract_features
from graphkin.research.baselines.simhash.learning import learn_weights
from graphkin.research.baselines.simhash.weights import (
    RESOLUTION,
    FeatureWeights,
    hash_bytes,
    load_weights,
    save_weights,
    signs,
)

Codes = NDArray[np.uint8]
Floats = NDArray[np.float64]

BLOCK = 1024
"""Graphs whose features are held at once."""
MAX_STEPS, STEPS_PER_ROOT = 1200, 21.2
"""Steps of learning: so many for the root of the number of groups."""


@dataclass(frozen=True)
class SimHash:
    r"""Codes of 128 bits, on which every feature of a graph votes (Charikar, 2002).

    The features are those of the paper's baseline, Google's functionsimsearch: a hash of the
    degrees around each node within 1, 2 and 3 hops, and the trigrams of each node's tokens
    (:func:`~graphkin.research.baselines.simhash.features.extract_features`). A feature f is hashed
    to votes :math:`s_f \in \{-1, 1\}^{128}`, and the code of a graph is the sign of

    .. math:: x = \sum_{f} w_f \, s_f

    with a weight for each feature, learned by :meth:`fit`. The score of a pair is the agreement
    of its codes, from -1 to 1: :math:`1 - 2 h / 128` for a Hamming distance of h.

    Graphs without tokens are compared by their structure alone. The public tool differs in
    three things: its trigrams run over the ends of blocks, it hashes constants of instructions,
    and it learns by L-BFGS over a fixed list of pairs.

    Args:
        weights: of features; without learning all weigh 1.
        bits: length of the codes, a multiple of 8.

    Example:
        >>> loop = Graph(3, [(0, 1), (1, 1), (1, 2)], directed=True)
        >>> line = Graph(3, [(0, 1), (1, 2)], directed=True)
        >>> same, other = SimHash().predict([(loop, loop), (loop, line)])
        >>> bool(same == 1 > other)
        True
    """

    weights: FeatureWeights = field(default_factory=FeatureWeights.by_kind)
    bits: int = 128

    def __post_init__(self) -> None:
        if not isinstance(self.bits, int) or self.bits < 8 or self.bits % 8:
            raise ConfigError(f"bits must be a positive multiple of 8, got {self.bits!r}")

    @classmethod
    def fit(
        cls,
        graphs: Sequence[Graph],
        groups: ArrayLike,
        *,
        bits: int = 128,
        seed: int = 0,
        steps: int | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> SimHash:
        """Learns weights that bring graphs of a group together, and others apart.

        Args:
            graphs: what to learn from: a training split.
            groups: (G,) whatever names the group of each graph; equal names are one group.
            bits: length of the codes.
            seed: of the pairs that are drawn; equal seeds give equal weights.
            steps: of 256 pairs each. By default they grow with the number of groups up to 1,200:
                thousands of groups need more than a thousand, a few hundred would be learned by
                heart in as many.
            progress: called as ``progress(done, steps)``.
        """
        plain = cls(bits=bits)
        names = np.asarray(groups)
        if names.shape != (len(graphs),):
            raise ConfigError(f"groups of shape {names.shape} for {len(graphs)} graphs")
        distinct, numbers = np.unique(names, return_inverse=True)
        if steps is None:
            steps = min(MAX_STEPS, 1 + math.floor(STEPS_PER_ROOT * math.sqrt(len(distinct))))
        if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
            raise ConfigError(f"steps must be at least 1, got {steps!r}")
        if seed < 0:
            raise ConfigError(f"seed must be at least 0, got {seed}")
        features = extract_features(graphs)
        weights = learn_weights(
            features, numbers, bits=plain.bits, seed=seed, steps=steps, progress=progress
        )
        return cls(weights, bits)

    def vectors(self, graphs: Sequence[Graph]) -> NDArray[np.float32]:
        """(N, bits) float32: the weighted sums of votes, whose signs are the codes."""
        if len(graphs):
            check_uniform(graphs)
        parts = [np.zeros((0, self.bits), dtype=np.float32)]
        for start in range(0, len(graphs), BLOCK):
            parts.append(self._votes(extract_features(graphs[start : start + BLOCK])))
        return np.concatenate(parts)

    def codes(self, graphs: Sequence[Graph]) -> Codes:
        """(N, bits / 8) uint8: the codes, packed as ``pack_codes`` does."""
        return pack_codes(self.vectors(graphs))

    def predict(self, pairs: Sequence[tuple[Graph, Graph]]) -> Floats:
        """(P,) float64: the agreement of each pair, from -1 to 1."""
        graphs, left, right = distinct_graphs(pairs)
        codes = self.codes(graphs)
        different = np.bitwise_count(codes[left] ^ codes[right]).sum(axis=1, dtype=np.int64)
        agreement: Floats = (self.bits - 2 * different) / self.bits
        return agreement

    def scores(self, queries: Sequence[Graph], pool: Sequence[Graph]) -> Floats:
        """(Q, P) float64: the agreement of every query with every graph of the pool."""
        bits = signs(self.codes([*queries, *pool]))
        query_bits, stored = bits[: len(queries)], bits[len(queries) :]
        # Sums of +-1 are whole numbers, exact in float32.
        agreement: Floats = (query_bits @ stored.T).astype(np.float64) / self.bits
        return agreement

    def save(self, folder: PathLike) -> None:
        """Writes the weights into a folder, as JSON and safetensors."""
        save_weights(Path(folder), self.weights, self.bits)

    @classmethod
    def load(cls, folder: PathLike) -> SimHash:
        """Reads what :meth:`save` wrote."""
        weights, bits = load_weights(Path(folder))
        try:
            return cls(weights, bits)
        except ConfigError as error:
            raise FormatError(f"{folder} is damaged: {error}") from error

    def _votes(self, features: FeatureSets) -> NDArray[np.float32]:
        """(G, bits) sums of votes: for each byte of the hashes, the weight of each of its values,
        and then the bits of those values. A vote for each bit alone would be 8 times the work."""
        count = len(features.offsets) - 1
        units, cells = self.weights.units(features), 256 * features.owners
        meaning = signs(np.arange(256, dtype=np.uint8)[:, None]).astype(np.float64)
        votes = np.empty((count, self.bits))
        for number, values in enumerate(hash_bytes(features.keys, self.bits).T):
            weight = np.bincount(cells + values, weights=units, minlength=256 * count)
            votes[:, 8 * number : 8 * number + 8] = weight.reshape(count, 256) @ meaning
        return (votes * RESOLUTION).astype(np.float32)
