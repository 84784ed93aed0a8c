"""Small models without training, for tests of libraries."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphkin import GraphEmbedder, GraphMatcher, ModelConfig
from graphkin.binaries.operations import OPERATIONS
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.library.models import RANKING_FILE, SearchModel
from graphkin.library.odds import Odds
from graphkin.library.ranking import Ranking, variants
from graphkin.models.calibration import Calibration, Logistic
from graphkin.models.saving import model_home
from graphkin.models.words import WordStatistics

WORDS = ("mov", "add", "cmp", "jne", "lea", "call", "xor", "test", "je", "ret", "push", "pop")
CALIBRATION = Calibration(
    Logistic((-20.0, 0.2, -0.5, 1.0), 3.0),
    Logistic((-10.0, 0.2, -0.5, 1.0, 5.0), 0.0),
    pool=1000,
    queries=100,
    data="0" * 64,
)

EVIDENCE = Vocabulary(OPERATIONS, "evidence")
WEIGHTS = {"words": 2.0, "total": 1.0, "margin": 3.0, "blocks": -0.5, "equal": 2.0, "score": 0.1}
RANKING = Ranking(
    {
        "graph": 1.0,
        "words": 2.0,
        "offsets": 0.2,
        "callees": 0.5,
        "callers": 0.5,
        "neighbours": 0.3,
        "callee_count": 0.05,
        "caller_count": 0.05,
    },
    {
        variant: Odds(tuple(WEIGHTS.get(name, 0.0) for name in names), -4.0)
        for variant, names in variants().items()
    },
    {"projects": ["none"]},
)
"""Made by hand: what functions say counts most."""


def trained_on(**task: object) -> dict[str, Any]:
    """A record of training that never was."""
    validation = {"data": "0" * 64, "metrics": {"pair_auc": 0.5}}
    return {"task": task, "training": {}, "step": 0, "validation": validation}


def search_model(
    similarity: str = "hamming",
    *,
    seed: int = 0,
    matcher: bool = True,
    calibrated: bool = True,
    words: tuple[str, ...] = WORDS,
    processors: Sequence[str] | None = None,
) -> SearchModel:
    """A model whose matcher starts from its embedder, moved a little."""
    vocabulary = Vocabulary(words)
    options = {"similarity": similarity, "node_input": "tokens", "node_input_size": len(vocabulary)}
    torch.manual_seed(seed)
    embedder = GraphEmbedder(ModelConfig.named("gnn", **options))
    # Untrained vectors are small; what is larger has more different codes.
    with torch.no_grad():
        for parameter in embedder.parameters():
            parameter += 0.05 * torch.randn_like(parameter)
    embedder.vocabulary = vocabulary
    if processors is not None:
        embedder.trained_on = trained_on(processors=list(processors))
    trained = None
    if matcher:
        trained = GraphMatcher(ModelConfig.named("gmn", **options))
        trained.vocabulary = vocabulary
        trained.start_from(embedder)
        with torch.no_grad():
            for parameter in trained.parameters():
                parameter += 0.02 * torch.randn_like(parameter)
    calibration = CALIBRATION if calibrated and matcher else None
    return SearchModel.of(embedder, trained, calibration, name=f"test-{seed}")


def evidence_embedder() -> GraphEmbedder:
    """Untrained: what functions say is enough to find most of them."""
    torch.manual_seed(0)
    config = ModelConfig(
        similarity="cosine",
        node_dim=16,
        graph_dim=32,
        node_input="tokens",
        node_input_size=len(EVIDENCE),
        word_dim=256,
        offset_dim=64,
        code_bits=256,
    )
    embedder = GraphEmbedder(config)
    embedder.vocabulary = EVIDENCE
    return embedder.eval()


def evidence_model() -> SearchModel:
    """A matcher that is there to draw attention, and probabilities of distances alone."""
    embedder = evidence_embedder()
    options = {"node_input": "tokens", "node_input_size": len(EVIDENCE)}
    matcher = GraphMatcher(ModelConfig.named("gmn", **options)).eval()
    matcher.vocabulary = EVIDENCE
    calibration = Calibration(
        Logistic((-20.0, 0.0, 0.0, 0.0), 4.0),
        Logistic((-20.0, 0.0, 0.0, 0.0, 0.0), 4.0),
        pool=1000,
        queries=100,
        data="0" * 64,
    )
    return SearchModel.of(embedder, matcher, calibration, name="test-evidence")


def ranking_model() -> SearchModel:
    """Untrained, with a late matcher and a ranking; every word is rare."""
    embedder = evidence_embedder()
    embedder.fit_words(WordStatistics(np.zeros(0, np.uint64), np.zeros(0, np.float32), 6.0))
    options = {"node_input": "tokens", "node_input_size": len(EVIDENCE), "word_dim": 64}
    matcher = GraphMatcher(ModelConfig.named("late", node_dim=16, steps=2, **options)).eval()
    matcher.vocabulary = EVIDENCE
    return SearchModel.of(embedder, matcher, ranking=RANKING, name="test-ranking")


def earlier_model(folder: Path) -> SearchModel:
    """The model that ships, with another ranking: one that shipped before it."""
    home = folder / "functions"
    shutil.copytree(model_home("functions"), home)
    document = json.loads((home / RANKING_FILE).read_text())
    document["order"]["words"] += 0.1
    (home / RANKING_FILE).write_text(json.dumps(document))
    return SearchModel.load(home)
