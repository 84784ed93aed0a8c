"""What a comparison says beside its numbers."""

from __future__ import annotations

import numpy as np
import pytest

from graphkin import AttentionMaps, GraphEmbedder, ModelConfig
from graphkin.binaries import samples
from graphkin.graphs.words import word_hash
from graphkin.library.compare import compare, rarity_by
from graphkin.library.models import SearchModel
from graphkin.models import answering
from graphkin.models.node_matching import PartnerMaps
from graphkin.models.words import WordStatistics
from graphkin.results.document import EvidenceToken
from graphkin.results.html.comparison import comparison_page
from graphkin.results.shared_words import shared
from tests.library.sample_models import search_model

FUNCTION = samples.VULNERABLE[1]


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


def test_large_functions_are_compared_by_partners(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said of two functions is the same, whichever way their attention is kept."""
    sides = [f"{samples.path(f'gcc-{level}/libkinbeat.so')}:{FUNCTION}" for level in ("O1", "O2")]
    whole = compare(*sides)
    monkeypatch.setattr(answering, "MOST_WEIGHTS", 1)
    kept = compare(*sides)
    assert isinstance(whole.maps, AttentionMaps)
    assert isinstance(kept.maps, PartnerMaps)
    assert kept.document.score == pytest.approx(whole.document.score, rel=1e-5)
    assert kept.document.probability == pytest.approx(whole.document.probability, rel=1e-5)
    ours, theirs = kept.document.evidence, whole.document.evidence
    assert ours.matched_share == theirs.matched_share
    assert {pair[:2] for pair in ours.pairs} == {pair[:2] for pair in theirs.pairs}
    assert len(ours.pairs) > 2
    pages = [comparison_page(item.document, *item.functions, item.maps) for item in (kept, whole)]
    assert len(pages[0]) < len(pages[1])
