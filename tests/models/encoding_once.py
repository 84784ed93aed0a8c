"""Matchers that encode graphs apart encode each once, however many pairs it is in."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from graphkin import Graph, GraphMatcher


def check_graphs_are_encoded_once(
    model: GraphMatcher, graphs: Sequence[Graph], monkeypatch: pytest.MonkeyPatch, rtol: float
) -> None:
    """Scores of all pairs together are those of each alone, from one encoding of each graph."""
    pairs = [(left, right) for left in graphs for right in graphs]
    alone = [float(model.predict([pair])[0]) for pair in pairs]
    encoded: list[int] = []
    states = model.network.states

    def counting(batch: object, **options: object) -> object:
        encoded.append(batch.num_graphs)  # type: ignore[attr-defined]
        return states(batch, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(model.network, "states", counting)
    np.testing.assert_allclose(model.predict(pairs), alone, rtol=rtol)
    assert encoded == [len(graphs)]
    assert len(set(np.round(alone, 2))) > len(graphs), "scores tell pairs apart"
