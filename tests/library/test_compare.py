"""What a comparison says beside its numbers."""

from __future__ import annotations

import numpy as np

from graphkin import GraphEmbedder, ModelConfig
from graphkin.graphs.words import word_hash
from graphkin.library.compare import rarity_by
from graphkin.library.models import SearchModel
from graphkin.models.words import WordStatistics
from graphkin.results.document import EvidenceToken
from graphkin.results.shared_words import shared
from tests.library.sample_models import search_model


def test_words_that_a_model_knows_as_frequent_come_last() -> None:
    options = {"similarity": "cosine", "code_bits": 64, "word_dim": 64, "words_known": 2}
    embedder = GraphEmbedder(ModelConfig.named("gnn", **options))
    hashes = [word_hash("imp", "memcpy"), word_hash("str", "%s")]
    rarities = np.array([0.5, 2.0], dtype=np.float32)
    embedder.words.fit(WordStatistics(np.array(hashes, dtype=np.uint64), rarities, 7.0))
    said = [("imp", "memcpy"), ("num", "8"), ("str", "%s")]
    assert shared(said, said, rarity_by(SearchModel.of(embedder))) == (
        EvidenceToken("num", "8"),
        EvidenceToken("str", "%s"),
        EvidenceToken("imp", "memcpy"),
    )


def test_a_model_that_reads_no_words_knows_no_rarity() -> None:
    assert rarity_by(search_model()) is None
