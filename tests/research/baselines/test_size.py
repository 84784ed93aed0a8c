"""The number of nodes as a score."""

from __future__ import annotations

import math

import numpy as np

from graphkin.graphs import Graph
from graphkin.research.baselines.size import GraphSize


def test_predict_is_the_negative_ratio_of_sizes():
    sizes = [1, 2, 3, 50]
    pairs = [(Graph(n), Graph(m, [(0, 0)])) for n in sizes for m in sizes]
    expected = [-abs(math.log(n / m)) for n in sizes for m in sizes]
    np.testing.assert_allclose(GraphSize().predict(pairs), expected)
    assert GraphSize().predict([]).shape == (0,)


def test_equal_sizes_score_highest():
    scores = GraphSize().scores([Graph(4), Graph(9)], [Graph(n) for n in range(1, 12)])
    assert scores.argmax(axis=1).tolist() == [3, 8]
    assert scores.max(axis=1).tolist() == [0, 0]
