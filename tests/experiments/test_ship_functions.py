"""Models on their way into the package."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest

from graphkin.graphs import Graph, WordBags
from graphkin.graphs.words import KINDS, word_hash
from graphkin.models.words import WordStatistics
from tests.library.sample_models import evidence_embedder
from tests.paths import REPOSITORY
from tests.scripts import script


@pytest.fixture(autouse=True)
def importable() -> Iterator[None]:
    """The scripts import each other by name."""
    folder = str(REPOSITORY / "experiments")
    sys.path.insert(0, folder)
    yield
    sys.path.remove(folder)


def test_words_of_kinds_that_a_bag_does_not_read_are_left_out() -> None:
    """The vectors stay as they were where the kept words are all that a bag reads."""
    hashes = np.array(
        [word_hash(kind, str(text)) for text in range(8) for kind in ("str", "num", "off")],
        dtype=np.uint64,
    )
    rarity = np.linspace(1, 4, len(hashes), dtype=np.float32)
    config = evidence_embedder().config
    embedder = type(evidence_embedder())(
        type(config).from_dict({**config.to_dict(), "words_known": len(hashes)})
    )
    embedder.vocabulary = evidence_embedder().vocabulary
    embedder.fit_words(WordStatistics(hashes, rarity, 6.0))
    smaller = script("experiments/ship_functions.py").with_fewer_words(embedder, len(hashes))
    assert smaller.config.words_known == 16
    kinds = smaller.words.hashes.numpy().view(np.uint64) >> np.uint64(60)
    assert KINDS.index("off") not in kinds.tolist()
    said = WordBags(hashes, np.array([0, len(hashes)]))
    graph = Graph(1, [], directed=True, node_tokens=[[1]], node_words=said)
    np.testing.assert_array_equal(smaller.encode([graph]), embedder.encode([graph]))
    fewer = script("experiments/ship_functions.py").with_fewer_words(embedder, 6)
    assert fewer.config.words_known == 4
