"""The contrastive losses against plain loops, and training with them."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkin import GraphEmbedder, GraphMatcher, ModelConfig
from graphkin.errors import ConfigError, FormatError, ModelError
from graphkin.learning.datasets.sampling import ClassSampler
from graphkin.learning.losses import contrastive_list_loss, contrastive_loss, scores_loss
from graphkin.learning.training import TrainConfig, train
from graphkin.models import build_model
from graphkin.research.tasks.edits import EditTask
from graphkin.research.tasks.functions.task import FunctionTask, _sampler
from graphkin.research.tasks.hard_negatives import nearest_by_codes, read_codes


def plain_contrastive(left, right, groups, scale):
    """-log of the share of the partner, for each of 2P vectors in turn; Hamming similarity."""

    def similarity(a, b):
        return scale * sum(math.tanh(x) * math.tanh(y) for x, y in zip(a, b, strict=True)) / len(a)

    vectors, all_groups, pairs = left + right, groups + groups, len(left)
    total = 0.0
    for i, vector in enumerate(vectors):
        partner = math.exp(similarity(vector, vectors[(i + pairs) % (2 * pairs)]))
        others = sum(
            math.exp(similarity(vector, other))
            for other, group in zip(vectors, all_groups, strict=True)
            if group != all_groups[i]
        )
        total -= math.log(partner / (partner + others))
    return total / len(vectors)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 5), st.integers(1, 4), st.floats(0.1, 5), st.integers(0, 10**6))
def test_contrastive_is_the_plain_loop(pairs, width, scale, seed):
    generator = torch.Generator().manual_seed(seed)
    left, right = torch.randn(2, pairs, width, dtype=torch.float64, generator=generator)
    groups = torch.randint(0, 3, (pairs,), generator=generator)
    loss = contrastive_loss(left, right, groups, scale, "hamming")
    expected = plain_contrastive(left.tolist(), right.tolist(), groups.tolist(), scale)
    assert loss.item() == pytest.approx(expected, abs=1e-9)


def test_contrastive_gradients_are_right_and_finite_where_all_are_of_one_group():
    left, right = torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True).unbind()
    one, many = torch.zeros(3), torch.tensor([0.0, 1.0, 1.0])
    assert torch.autograd.gradcheck(
        lambda a, b: contrastive_loss(a, b, many, 2.0, "cosine"), (left, right)
    )
    loss = contrastive_loss(left, right, one, 2.0, "hamming")
    assert loss.item() == pytest.approx(0)
    gradients = torch.autograd.grad(loss, [left, right])
    assert all(gradient.isfinite().all() for gradient in gradients)


def test_contrastive_triplets_by_hand():
    near, far = torch.tensor([0.5, 0.0]), torch.tensor([0.1, 0.3])
    expected = (math.log1p(math.exp(10 * -0.4)) + math.log1p(math.exp(10 * 0.3))) / 2
    both = torch.stack([near, far], dim=1)
    assert contrastive_list_loss(both, 10.0).item() == pytest.approx(expected)
    scores = both.flatten()
    loss = scores_loss(scores, None, "contrastive", 0.1, "hamming", 10.0)
    assert loss.item() == pytest.approx(expected)
    with pytest.raises(ConfigError, match="kin"):
        scores_loss(scores, torch.ones(4), "contrastive", 0.1, "hamming", 10.0)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mode": "kin"}, "needs loss"),
        ({"mode": "lists"}, "needs loss"),
        ({"loss": "contrastive"}, "needs mode"),
    ],
)
def test_settings_that_do_not_fit_each_other(values, message):
    with pytest.raises(ConfigError, match=message):
        TrainConfig(**values)


def test_batches_of_kin_hold_pairs_of_a_group(corpus_path):
    task = FunctionTask(str(corpus_path), protocol="clean", min_builds=2)
    batch = task.batch(0, 6, "kin")
    assert batch.labels is not None
    groups = {item.group for item in task.classes("training")}
    assert set(batch.labels.tolist()) <= groups
    with pytest.raises(ConfigError, match="'pairs' or 'triplets'"):
        EditTask().batch(0, 4, "kin")


def test_lists_hold_one_similar_graph_and_several_of_other_groups(corpus_path):
    task = FunctionTask(str(corpus_path), protocol="clean", min_builds=2)
    sampler = _sampler(task, task.data.digest, "training")
    group_of = {g: item.group for item in task.classes("training") for g in item.graphs.values()}
    actual = sampler.lists(np.random.default_rng(0), 50, 4)
    assert actual.shape == (50, 6)
    groups = np.vectorize(group_of.__getitem__)(actual)
    assert (groups[:, 1] == groups[:, 0]).all()
    assert (groups[:, 2:] != groups[:, :1]).all()
    assert len(np.unique(actual[:, 2:])) > 50
    batch = task.batch(0, 6, "lists")
    assert batch.labels is None
    assert batch.num_pairs % 5 == 0


def test_an_embedder_learns_from_kin_and_a_matcher_goes_on_from_it(corpus_path, tmp_path: Path):
    task = FunctionTask(str(corpus_path), protocol="clean", min_builds=2)
    recipe = task.recipe("gnn", "strong")
    config = TrainConfig(
        **{**recipe.training, "batch_size": 8, "steps": 150, "evaluate_every": 150}
    )
    embedder = build_model(ModelConfig.named("gnn", **recipe.model))
    embedder.vocabulary = task.vocabulary
    assert isinstance(embedder, GraphEmbedder)
    before = _loss(embedder, task, config)
    train(embedder, task, config, tmp_path / "embedder")
    assert _loss(embedder, task, config) < 0.9 * before

    matcher = GraphMatcher(ModelConfig.named("gmn", **recipe.model))
    matcher.vocabulary = task.vocabulary
    matcher.start_from(embedder)
    graphs, _ = task.graphs("validation")
    pairs = list(pairwise(graphs))
    torch.testing.assert_close(
        torch.tensor(matcher.predict(pairs)), torch.tensor(embedder.predict(pairs))
    )
    with pytest.raises(ConfigError, match="sees pairs"):
        train(matcher, task, config, tmp_path / "matcher")
    recipe = task.recipe("gmn", "strong")
    config = TrainConfig(**{**recipe.training, "batch_size": 4, "steps": 20, "evaluate_every": 20})
    result = train(matcher, task, config, tmp_path / "matcher")
    assert result.step == 20
    assert not np.array_equal(matcher.predict(pairs), embedder.predict(pairs))
    kept = GraphMatcher.from_pretrained(tmp_path / "matcher" / "model")
    np.testing.assert_array_equal(kept.predict(pairs), matcher.predict(pairs))


def _loss(model: GraphEmbedder, task: FunctionTask, config: TrainConfig) -> float:
    batch = task.batch(1000, 16, "kin")
    assert batch.labels is not None
    with torch.no_grad():
        output = model(batch)
    return contrastive_loss(output.left, output.right, batch.labels, config.scale, "hamming").item()


def test_a_model_of_another_shape_or_vocabulary_is_no_start(corpus_path):
    options = {"similarity": "hamming", "node_input": "tokens", "node_input_size": 5}
    matcher = GraphMatcher(ModelConfig.named("gmn", **options))
    with pytest.raises(ModelError, match="shape"):
        matcher.start_from(GraphEmbedder(ModelConfig.named("gnn", **options, node_dim=16)))
    with pytest.raises(ModelError, match="lacks"):
        matcher.start_from(GraphEmbedder(ModelConfig.named("deepset", **options)))
    other = GraphEmbedder(
        ModelConfig.named("gnn", **{**options, "node_input_size": 3}),
    )
    with pytest.raises(ModelError, match="shape"):
        matcher.start_from(other)


def test_near_graphs_by_codes(tmp_path: Path):
    codes = np.random.default_rng(0).integers(0, 256, (60, 2), dtype=np.uint8)
    groups = np.arange(60) % 15
    near = nearest_by_codes(codes, groups)
    distances = np.bitwise_count(codes[:, None] ^ codes[None]).sum(axis=2).astype(float)
    distances[groups[:, None] == groups[None]] = np.inf
    for row in range(60):
        assert (groups[near[row]] != groups[row]).all()
        assert sorted(distances[row, near[row]]) == sorted(np.sort(distances[row])[:20])
    members = [np.flatnonzero(groups == group) for group in range(15)]
    order = np.concatenate(members)
    near = nearest_by_codes(codes[order], groups[order])
    sampler = ClassSampler(members, np.full(60, 9), near_graphs=near)
    drawn = sampler.lists(np.random.default_rng(1), 100, 3, hard=1.0)
    position = np.argsort(order)
    for anchor, _, *others in drawn.tolist():
        assert {position[other] for other in others} <= set(near[position[anchor]].tolist())
    few = nearest_by_codes(codes[:4], np.array([0, 0, 0, 1]))
    assert few[0].tolist() == [3] + [-1] * 19
    with pytest.raises(ConfigError, match="too few"):
        nearest_by_codes(codes, np.zeros(60, dtype=np.int64))
    np.save(tmp_path / "codes.npy", codes)
    assert (read_codes(tmp_path / "codes.npy", 60) == codes).all()
    with pytest.raises(FormatError, match="each of 7"):
        read_codes(tmp_path / "codes.npy", 7)
    (tmp_path / "codes.npy").write_bytes(b"nothing")
    with pytest.raises(FormatError, match="not a file of codes"):
        read_codes(tmp_path / "codes.npy", 6)
