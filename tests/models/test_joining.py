"""A matcher joined with an embedder: its distance is the sum of theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphkin import GraphEmbedder, GraphMatcher, ModelConfig
from graphkin.errors import ConfigError, ModelError
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.learning.task import EvaluationSet
from graphkin.learning.training import TrainConfig, train
from graphkin.models import build_model
from graphkin.models.joining import join
from graphkin.models.model import GraphModel
from graphkin.models.similarity import cosine_similarity
from graphkin.research.tasks.edits import EditTask

SMALL: dict[str, Any] = {"node_dim": 8, "graph_dim": 16, "message_dim": 8, "steps": 2}
TASK = EditTask(nodes=(8, 12), p=(0.3, 0.3), evaluation_size=300)


def made(name: str, **options: Any) -> Any:
    return build_model(ModelConfig.named(name, **{**SMALL, **options}), seed=3)


@pytest.fixture
def parts() -> tuple[GraphMatcher, GraphEmbedder]:
    different = {"similarity": "cosine", "readout": "nodes", "message_norm": "graph"}
    return made("gmn", similarity="alignment"), made("gnn", **different)


@pytest.fixture
def data() -> EvaluationSet:
    return TASK.evaluation_set("validation")


@pytest.mark.parametrize("weight", [0.0, 0.5, 20.0])
def test_distances_add_up(parts: Any, data: EvaluationSet, weight: float) -> None:
    matcher, embedder = parts
    left, right = (torch.tensor(embedder.encode(side)) for side in zip(*data.pairs, strict=True))
    whole = cosine_similarity(left, right).numpy() - 1
    scores = matcher.joined(embedder, weight).predict(data.pairs)
    np.testing.assert_allclose(scores, matcher.predict(data.pairs) + weight * whole, atol=1e-5)


@pytest.mark.parametrize("weight", [0, 3, True])
def test_a_weight_may_be_a_whole_number(parts: Any, data: EvaluationSet, weight: int) -> None:
    matcher, embedder = parts
    scores = matcher.joined(embedder, weight).predict(data.pairs[:5])
    expected = matcher.joined(embedder, float(weight)).predict(data.pairs[:5])
    np.testing.assert_array_equal(scores, expected)


@pytest.mark.parametrize(
    ("option", "value"), [("steps", 3), ("steps", 0), ("message_scale", 1.0), ("graph_dim", 24)]
)
def test_an_embedder_that_computes_otherwise(parts: Any, option: str, value: float) -> None:
    """Inside the matcher it would run with the matcher's options."""
    matcher, _ = parts
    with pytest.raises(ModelError, match=f"the embedder has {option}="):
        matcher.joined(made("gnn", **{option: value}), 1.0)


def test_a_siamese_embedder(parts: Any) -> None:
    with pytest.raises(ModelError, match="not by distance"):
        parts[0].joined(made("siamese-gnn"), 1.0)


def test_pairs_of_one_kind(parts: Any, data: EvaluationSet) -> None:
    with pytest.raises(ConfigError, match="similar and dissimilar pairs"):
        join(*parts, data.pairs[:4], np.ones(4))
    with pytest.raises(ConfigError, match="one for each"):
        join(*parts, data.pairs[:4], data.labels)


def test_attention_is_that_of_the_matcher(parts: Any, data: EvaluationSet) -> None:
    matcher, embedder = parts
    joined = matcher.joined(embedder, 2.0)
    ours, theirs = (model.explain(*data.pairs[0]) for model in (joined, matcher))
    for one, other in zip(ours.left_to_right, theirs.left_to_right, strict=True):
        np.testing.assert_array_equal(one, other)
    assert ours.score == pytest.approx(float(joined.predict(data.pairs[:1])[0]), abs=1e-6)


def test_a_joined_matcher_is_saved_and_loaded(
    parts: Any, data: EvaluationSet, tmp_path: Path
) -> None:
    matcher, embedder = parts
    joined = matcher.joined(embedder, 3.0)
    joined.save_pretrained(tmp_path)
    again = GraphMatcher.from_pretrained(tmp_path)
    assert again.config == joined.config
    np.testing.assert_array_equal(again.predict(data.pairs), joined.predict(data.pairs))


def test_the_weight_is_that_of_a_logistic_regression() -> None:
    """Of all weights it makes the likeliest probabilities, on the pairs that it was fitted on."""
    matcher, embedder = (kind.from_pretrained("edits") for kind in (GraphMatcher, GraphEmbedder))
    data = EditTask(nodes=(20, 20), p=(0.2, 0.2), evaluation_size=200).evaluation_set("validation")
    joined = join(matcher, embedder, data.pairs, data.labels)
    weight = float(joined.head.weight)
    assert weight > 0
    losses = [_log_loss(matcher.joined(embedder, f * weight), data) for f in (0.0, 0.5, 1, 2, 4)]
    assert min(losses) == losses[2]
    assert losses[2] < min(_log_loss(matcher, data), _log_loss(embedder, data))


def _log_loss(model: GraphModel, data: EvaluationSet) -> float:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    scores, similar = model.predict(data.pairs)[:, None], data.labels > 0
    fitted = LogisticRegression(C=1e6).fit(scores, similar)
    return float(log_loss(similar, fitted.predict_proba(scores)[:, 1]))


@pytest.mark.parametrize(("wrong", "weight"), [(0, 1000), (1, 0)])
def test_a_part_that_is_wrong_is_ignored(
    parts: Any, data: EvaluationSet, wrong: int, weight: float
) -> None:
    ranks = [model.predict(data.pairs).argsort().argsort() for model in parts]
    labels = np.where(ranks[1 - wrong] > ranks[wrong], 1, -1).astype(np.float32)
    joined = join(*parts, data.pairs, labels)
    assert float(joined.head.weight) == weight


def test_what_does_not_fit_is_not_joined(parts: Any) -> None:
    matcher, embedder = parts
    with pytest.raises(ModelError, match="'euclidean' and matching=False"):
        made("gmn").joined(embedder, 1.0)
    with pytest.raises(ModelError, match="'alignment' and matching=True"):
        matcher.joined(matcher, 1.0)
    with pytest.raises(ModelError, match="has node_update='mlp', and the matcher 'gru'"):
        matcher.joined(made("gnn", node_update="mlp"), 1.0)
    for weight in (-1.0, np.inf, np.nan):
        with pytest.raises(ModelError, match="weight must be at least 0"):
            matcher.joined(embedder, weight)
    tokens = {"node_input": "tokens", "node_input_size": 3}
    one, other = made("gmn", similarity="alignment", **tokens), made("gnn", **tokens)
    one.vocabulary = Vocabulary(("mov", "add"))
    with pytest.raises(ModelError, match="another vocabulary"):
        one.joined(other, 1.0)


def test_a_joined_matcher_is_not_trained(parts: Any, tmp_path: Path) -> None:
    matcher, embedder = parts
    with pytest.raises(ConfigError, match="train one with similarity='alignment'"):
        train(matcher.joined(embedder, 1.0), TASK, TrainConfig(steps=1), tmp_path)
