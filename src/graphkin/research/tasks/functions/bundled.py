"""A few hundred small functions that come with the package, to check a model without a corpus."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from graphkin.binaries import samples
from graphkin.graphs import Graph, TokenBags
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.learning.task import EvaluationSet

BUNDLE = Path(samples.__file__).parent / "functions.json"


def bundled_functions(vocabulary: Vocabulary) -> EvaluationSet:
    """Test functions of ffmpeg, small ones, each in two builds.

    Similar pairs are two builds of one function, dissimilar ones the first build of a function
    and the second of the next in line. ``experiments/bundle_functions.py`` chose them.

    Args:
        vocabulary: what the model calls mnemonics.
    """
    document = json.loads(BUNDLE.read_text(encoding="utf-8"))
    tokens = vocabulary.encode(document["words"])
    first, second = (
        [_graph(function[side], tokens) for function in document["functions"]] for side in (0, 1)
    )
    following = second[1:] + second[:1]
    pairs = (*zip(first, second, strict=True), *zip(first, following, strict=True))
    labels = np.repeat([1, -1], len(first)).astype(np.float32)
    return EvaluationSet(pairs, labels, tuple(zip(first, second, following, strict=True)))


def _graph(record: dict[str, list[list[int]]], tokens: np.ndarray) -> Graph:
    """A graph from its edges, and for each block the places of its mnemonics in the word list."""
    bags = TokenBags.from_lists([tokens[block].tolist() for block in record["blocks"]])
    return Graph(len(record["blocks"]), record["edges"], directed=True, node_tokens=bags)
