"""A matcher and an embedder, trained apart, as one matcher."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphkin.errors import ModelError
from graphkin.models.calibration import Logistic
from graphkin.models.embedder import GraphEmbedder
from graphkin.models.matcher import GraphMatcher
from graphkin.tasks.pairs import EvaluationSet


def join(
    matcher: GraphMatcher,
    embedder: GraphEmbedder,
    evaluation_set: EvaluationSet,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> GraphMatcher:
    """The matcher with the distance of the embedder's vectors added.

    Trained together, the alignment would learn little: on training graphs the vectors leave
    nothing to do, which on others they do. So the weight of the two comes from graphs that neither
    has seen, by logistic regression.

    Args:
        matcher: one with ``similarity="alignment"``.
        embedder: one of the same widths.
        evaluation_set: the pairs; take the validation split.
        progress: called as ``progress(done, total)`` while pairs are compared.
    """
    pairs, similar = evaluation_set.pairs, evaluation_set.labels > 0
    alone = matcher.joined(embedder, 0.0)
    aligned = alone.predict(pairs, progress=progress).astype(np.float64)
    both = matcher.joined(embedder, 1.0).predict(pairs, progress=progress).astype(np.float64)
    line = Logistic.fit(np.column_stack([aligned, both - aligned]), similar)
    of_nodes, of_vectors = line.weights
    if min(of_nodes, of_vectors) <= 0:
        raise ModelError(
            f"the weights of alignment and vectors are {of_nodes:.3g} and {of_vectors:.3g}: one of "
            "the two models does not tell similar pairs from dissimilar ones"
        )
    return matcher.joined(embedder, of_vectors / of_nodes)
