"""A matcher and an embedder, trained apart, as one matcher."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike

from graphkin.errors import ConfigError
from graphkin.graphs import Graph
from graphkin.models.calibration import Logistic
from graphkin.models.embedder import GraphEmbedder
from graphkin.models.matcher import GraphMatcher

MAX_WEIGHT = 1_000.0
"""With this only the vectors count: their distances lie in 0..2."""


def join(
    matcher: GraphMatcher,
    embedder: GraphEmbedder,
    pairs: Sequence[tuple[Graph, Graph]],
    labels: ArrayLike,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> GraphMatcher:
    """The matcher with the distance of the embedder's vectors added.

    Trained together, the alignment would learn little: on training graphs the vectors leave
    nothing to do, which on others they do. So the weight of the two comes from graphs that neither
    has seen, by logistic regression, from 0 to 1,000.

    Args:
        matcher: one with ``similarity="alignment"``.
        embedder: one of the same widths.
        pairs: what the weight is fitted on; take those of the validation split.
        labels: (P,) +1 similar, -1 dissimilar.
        progress: called as ``progress(done, total)`` while pairs are compared.
    """
    similar = np.asarray(labels) > 0
    if similar.shape != (len(pairs),):
        raise ConfigError(f"{similar.shape} labels for {len(pairs)} pairs; give one for each")
    if len(set(similar.tolist())) < 2:
        raise ConfigError("a weight needs similar and dissimilar pairs to be fitted on")
    alone = matcher.joined(embedder, 0.0)
    aligned = alone.predict(pairs, progress=progress).astype(np.float64)
    both = matcher.joined(embedder, 1.0).predict(pairs, progress=progress).astype(np.float64)
    line = Logistic.fit(np.column_stack([aligned, both - aligned]), similar)
    of_nodes, of_vectors = line.weights
    # A part that tells similar pairs from others backwards is ignored.
    most = of_vectors >= MAX_WEIGHT * of_nodes
    weight = MAX_WEIGHT if most else of_vectors / of_nodes
    return matcher.joined(embedder, weight if of_vectors > 0 else 0.0)
