"""``fit``: from one's own graphs to a trained, saved model, in few lines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch

from graphkin import Graph, GraphEmbedder, GraphMatcher, ModelConfig, load_model
from graphkin.errors import ConfigError, GraphError, ModelError, TrainingError
from graphkin.graphs import PairBatch
from graphkin.graphs.converters.from_networkx import to_networkx
from graphkin.learning.datasets import ClassDataset, TargetDataset
from graphkin.learning.evaluation import neighbour_accuracy
from graphkin.learning.fitting import as_dataset
from graphkin.learning.recipes import assemble
from graphkin.learning.training.loop import checked_batch
from graphkin.models.model import GraphModel, PairOutput
from graphkin.research.baselines.wl import WLKernel
from tests.graph_samples import circles, edit_pairs, molecules

QUIET: dict[str, Any] = {"progress": False, "evaluate_every": 20, "batch_size": 16}
TINY: dict[str, Any] = {"node_dim": 8, "message_dim": 8, "graph_dim": 8, "steps": 2}


@pytest.mark.parametrize(("sample", "steps"), [(molecules, 100), (circles, 60)])
def test_an_embedder_beats_the_wl_kernel(sample: Any, steps: int, tmp_path: Path) -> None:
    graphs, labels = sample()
    embedder = GraphEmbedder("gnn-strong").fit(graphs, labels, steps=steps, **QUIET)
    dataset = ClassDataset(graphs, labels)
    neighbours = dataset.neighbours("test")
    ours = neighbour_accuracy(embedder, neighbours)
    assert ours > neighbour_accuracy(WLKernel(), neighbours) + 0.1
    embedder.save_pretrained(tmp_path / "model")
    again = GraphEmbedder.from_pretrained(tmp_path / "model")
    assert np.array_equal(again.encode(graphs[:9]), embedder.encode(graphs[:9]))
    assert [hit.index for hit in again.rank(graphs[3], graphs[:9], top_k=1)] == [3]
    assert embedder.history[-1]["step"] == steps
    assert {"loss", "pair_auc", "triplet_accuracy"} <= embedder.history[-1].keys()


def test_labels_are_saved_with_the_model(tmp_path: Path) -> None:
    graphs, labels = molecules(40)
    embedder = GraphEmbedder("gnn-strong").fit(graphs, labels, steps=2, **QUIET)
    embedder.save_pretrained(tmp_path)
    document = json.loads((tmp_path / "config.json").read_text())
    assert sorted(document["vocabulary"]["labels"]) == ["C", "N", "O"]
    # A label that was never met is read as the unknown one, not refused.
    strange = Graph(2, [(0, 1)], node_labels=["C", "Uuo"])
    unknown = Graph(2, [(0, 1)], node_labels=["C", "<what>"])
    restored = GraphEmbedder.from_pretrained(tmp_path)
    assert np.array_equal(restored.encode([strange]), restored.encode([unknown]))
    with pytest.raises(ModelError, match="no vocabulary of labels"):
        GraphEmbedder("gnn").encode([strange])


def test_seeds_decide() -> None:
    graphs, labels = circles(40)

    def vectors(seed: int) -> Any:
        model = GraphEmbedder("gnn").fit(graphs, labels, steps=3, seed=seed, **QUIET)
        return model.encode(graphs[:5])

    assert np.array_equal(vectors(1), vectors(1))
    assert not np.array_equal(vectors(1), vectors(2))


def test_a_config_keeps_its_options() -> None:
    graphs, labels = molecules(40)
    config = ModelConfig.named("gnn", readout="pooled", **TINY)
    model = GraphEmbedder(config).fit(graphs, labels, steps=2, **QUIET)
    assert (model.config.readout, model.config.node_dim) == ("pooled", 8)
    assert (model.config.node_input, model.config.node_input_size) == ("tokens", 4)


def test_training_goes_on_from_trained_weights() -> None:
    graphs, labels = molecules(40)
    model = GraphEmbedder("gnn-strong").fit(graphs, labels, steps=5, **QUIET)
    before = model.encode(graphs[:4])
    model.fit(graphs, labels, steps=1, learning_rate=0.0, **QUIET)
    assert np.allclose(model.encode(graphs[:4]), before)


def test_early_stopping(tmp_path: Path) -> None:
    graphs, labels = circles(40)
    model = GraphEmbedder("gnn-strong")
    options = {**QUIET, "evaluate_every": 1, "patience": 3, "learning_rate": 0.0}
    model.fit(graphs, labels, steps=50, folder=tmp_path, **options)
    # Nothing is learned, so that the first evaluation stays the best.
    assert model.history[-1]["step"] == 4
    assert (tmp_path / "model" / "config.json").exists()


@pytest.mark.parametrize("link", ["exp", "distance", "root", "sigmoid"])
def test_regression_in_the_unit_of_the_targets(link: str, tmp_path: Path) -> None:
    pairs, distances = edit_pairs(150)
    values = distances if link in ("distance", "root") else np.exp(-np.array(distances) / 4)
    dataset = TargetDataset(pairs, values, evaluation_size=100)
    run = assemble(
        "gmn",
        dataset,
        recipe="strong",
        model_options={"link": link, **TINY},
        training={"steps": 150, "batch_size": 16, "evaluate_every": 50, "learning_rate": 1e-2},
    )
    result = run.train(tmp_path / "run")
    model = load_model(tmp_path / "run")
    document = json.loads((tmp_path / "run" / "model" / "config.json").read_text())
    assert document["config"]["link"] == link
    predicted = model.predict(pairs)
    constant = float(np.var(values))
    assert float(np.mean((predicted - values) ** 2)) < 0.5 * constant
    assert result.best >= -result.validation["mse"]
    assert {"mse", "mae", "rho", "tau"} <= result.validation.keys()
    # Ranks are by similarity, whichever way the values run.
    query, pool = pairs[0][0], [pairs[0][0], pairs[5][1], pairs[9][1]]
    assert model.rank(query, pool)[0].index == 0
    matrix = model.scores([query], pool)
    assert np.allclose(matrix[0], model.predict([(query, graph) for graph in pool]), atol=1e-5)


def test_fit_tells_labels_from_targets() -> None:
    pairs, values = edit_pairs(40)
    assert as_dataset(pairs, [value < 3 for value in values]).kind == "pairs"
    assert as_dataset(pairs, values).kind == "targets"
    assert as_dataset([(a, b, a) for a, b in pairs]).kind == "triplets"
    with pytest.raises(ConfigError, match="a label or a value for each pair"):
        as_dataset(pairs)
    with pytest.raises(ConfigError, match="triplets have no answers"):
        as_dataset([(a, b, a) for a, b in pairs], values)
    matcher = GraphMatcher("gmn-strong").fit(pairs, values, steps=2, **QUIET)
    assert matcher.config.link == "root"
    assert matcher.predict(pairs[:3]).shape == (3,)


def test_a_loss_and_measures_of_ones_own(tmp_path: Path) -> None:
    graphs, labels = circles(40)
    seen = []

    def loss(output: PairOutput, batch: PairBatch) -> torch.Tensor:
        assert batch.labels is not None
        seen.append(batch.num_pairs)
        return torch.nn.functional.softplus(-batch.labels * (output.scores + 1)).mean()

    def metrics(model: GraphModel, data: Any) -> dict[str, float]:
        return {"mine": float(len(seen))}

    model = GraphEmbedder(ModelConfig.named("gnn", **TINY))
    model.fit(graphs, labels, recipe="paper", steps=40, loss=loss, metrics=metrics, **QUIET)
    assert seen == [16] * 40
    assert model.trained_on is not None
    assert model.trained_on["validation"]["metrics"] == {"mine": 40.0}


@pytest.mark.parametrize("name", ["gnn", "gmn", "gcn", "siamese-gnn"])
def test_a_model_of_the_paper_stays_one(name: str) -> None:
    graphs, labels = circles(40)
    kind = GraphMatcher if name == "gmn" else GraphEmbedder
    model = kind(name).fit(graphs, labels, steps=1, **QUIET)
    assert model.config == ModelConfig.named(name)
    assert model.trained_on is not None
    assert model.trained_on["training"]["loss"] == "margin"
    # The recipe makes it what it makes on the command line.
    if name in ("gnn", "gmn"):
        model = kind(name).fit(graphs, labels, recipe="strong", steps=1, **QUIET)
        assert model.config == ModelConfig.named(f"{name}-strong")


@pytest.mark.parametrize(
    "named",
    [
        {"link": "distance"},
        {"similarity": "edits", "link": "distance"},
        {"similarity": "alignment", "target_scale": 3.0},
        {"readout": "gated"},
    ],
)
def test_what_a_config_names_wins_over_the_data(named: dict[str, Any]) -> None:
    pairs, values = edit_pairs(40)
    config = ModelConfig.named("gmn-strong", **named, **TINY)
    matcher = GraphMatcher(config).fit(pairs, values, steps=1, **QUIET)
    assert {name: getattr(matcher.config, name) for name in named} == named
    # What it does not name is as the values need it.
    expected = {"similarity": "euclidean", "link": "root", "readout": "nodes"} | named
    assert {name: getattr(matcher.config, name) for name in expected} == expected


@pytest.mark.parametrize("messages", ["none", "shared", "separate"])
def test_a_config_decides_on_messages_against_edges(messages: str) -> None:
    rings = [Graph(n, [(i, (i + 1) % n) for i in range(n)], directed=True) for n in range(3, 23)]
    stars = [Graph(n, [(0, i) for i in range(1, n)], directed=True) for n in range(3, 23)]
    options: dict[str, Any] = {"reverse_messages": messages, **TINY}
    model = GraphEmbedder(ModelConfig(**options))
    model.fit([*rings, *stars], ["ring"] * 20 + ["star"] * 20, steps=1, **QUIET)
    assert model.config.reverse_messages == messages


def test_losses_by_name(tmp_path: Path) -> None:
    pairs, values = edit_pairs(40)
    matcher = GraphMatcher("gmn-strong").fit(pairs, values, loss="huber", steps=1, **QUIET)
    assert matcher.trained_on is not None
    assert matcher.trained_on["training"]["loss"] == "huber"
    graphs, labels = circles(40)
    for options, expected in (
        ({"mode": "pairs"}, ("pairs", "margin")),
        ({"loss": "margin"}, ("pairs", "margin")),
        ({"mode": "lists"}, ("lists", "contrastive")),
    ):
        model = GraphEmbedder("gnn-strong").fit(graphs, labels, steps=1, **options, **QUIET)
        assert model.trained_on is not None
        course = model.trained_on["training"]
        assert (course["mode"], course["loss"]) == expected
    with pytest.raises(ConfigError, match=r"loss must be one of .*; got 'hubr'"):
        GraphEmbedder("gnn").fit(graphs, labels, loss="hubr", steps=1, **QUIET)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"loss": 3}, "loss must be the name of a loss or a function, got 3"),
        ({"loss": lambda output, batch: 1.0}, "a tensor of one number.*; got float"),
        ({"loss": lambda output, batch: output.scores}, r"got shape \(16,\)"),
        ({"loss": lambda output, batch: torch.tensor(1.0)}, "nothing can be learned"),
        ({"metrics": "auc"}, "metrics must be a function, got 'auc'"),
        ({"metrics": lambda model, data: 3}, "finite numbers by name, .*; got 3"),
        ({"metrics": lambda model, data: {}}, "finite numbers by name, .*; got {}"),
        ({"metrics": lambda model, data: {"a": float("nan")}}, "finite numbers by name"),
    ],
)
def test_functions_that_give_something_else(options: dict[str, Any], problem: str) -> None:
    """They are refused at the first step, and leave the model as it was."""
    graphs, labels = circles(40)
    model = GraphEmbedder(ModelConfig.named("gnn", **TINY))
    before = model.encode(graphs[:3])
    with pytest.raises(ConfigError, match=problem):
        model.fit(graphs, labels, steps=10_000, **options, **QUIET)
    assert np.array_equal(model.encode(graphs[:3]), before)


def test_distances_in_0_to_1_are_told_by_equal_graphs(capsys: pytest.CaptureFixture[str]) -> None:
    pairs, values = edit_pairs(60)
    shares = np.array(values) / 12
    dataset = TargetDataset(pairs, shares)
    assert (dataset.are_distances, dataset.remarks) == (True, [])
    assert not TargetDataset(pairs, 1 - shares).are_distances
    # Where no pair tells, similarities are assumed, and it is said.
    different = [n for n, value in enumerate(values) if value]
    given = [pairs[n] for n in different], shares[different]
    assert not TargetDataset(*given).are_distances
    options: dict[str, Any] = {**QUIET, "progress": True, "steps": 1}
    matcher = GraphMatcher("gmn-strong").fit(*given, **options)
    assert matcher.config.link == "exp"
    assert "taken as similarities" in capsys.readouterr().err
    matcher = GraphMatcher("gmn-strong").fit(*given, distances=True, **options)
    assert matcher.config.link == "root"
    assert "taken as" not in capsys.readouterr().err
    with pytest.raises(ConfigError, match="the highest target is 11, and similarities"):
        as_dataset(pairs, np.array(values).clip(0, 11), distances=False)
    with pytest.raises(ConfigError, match="says what target values are, and these are classes"):
        as_dataset(*circles(40), distances=True)


def test_rows_of_an_array_are_pairs() -> None:
    pairs, values = edit_pairs(40)
    rows = np.empty((len(pairs), 2), dtype=object)
    rows[:] = pairs
    assert as_dataset(rows, values).describe() == as_dataset(pairs, values).describe()


@pytest.mark.parametrize("labels", [["0", "1"], [0, 1, -1], [1, -1, float("nan")]])
def test_broken_labels_are_not_taken_for_targets(labels: list[Any]) -> None:
    pairs, _ = edit_pairs(30)
    with pytest.raises(GraphError, match="labels must be"):
        as_dataset(pairs, (labels * 30)[:30])


def test_a_batch_must_hold_what_its_mode_says() -> None:
    pairs = [(Graph(2, [(0, 1)]), Graph(3, [(0, 1)]))] * 4
    labelled = PairBatch.pack(pairs, values=[1, 0, 1, 0])
    signs = checked_batch(labelled, "pairs", signed=True).labels
    assert signs is not None
    assert signs.tolist() == [1, -1, 1, -1]
    assert checked_batch(labelled, "pairs", signed=False).labels is labelled.labels
    for batch, mode in (
        (PairBatch.pack(pairs), "pairs"),
        (PairBatch.pack(pairs), "kin"),
        (PairBatch.pack(pairs), "lists"),
        (labelled, "triplets"),
        (PairBatch.pack(pairs[:3]), "triplets"),
        (PairBatch.pack(pairs, values=[1, 2, 1, 0]), "pairs"),
        (replace(labelled, labels=torch.tensor([1, float("nan"), 1, 0])), "pairs"),
    ):
        with pytest.raises(GraphError):
            checked_batch(batch, mode, signed=True)  # type: ignore[arg-type]


def test_losses_and_links_go_together(tmp_path: Path) -> None:
    pairs, values = edit_pairs(40)
    run = assemble("gnn", TargetDataset(pairs, values), recipe="strong", training={"steps": 1})
    run.model.config = ModelConfig.named("gnn")
    with pytest.raises(ConfigError, match="does not go with link='none'"):
        run.train(tmp_path)


def test_own_splits_need_no_test_set() -> None:
    graphs, labels = circles(40)
    splits = ["training"] * 30 + ["validation"] * 10
    model = GraphEmbedder("gnn-strong").fit(graphs, labels, splits=splits, steps=1, **QUIET)
    assert model.trained_on is not None


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        (["a"] * 40, "at least 2 classes are needed"),
        (["a"] * 38 + ["b"] * 2, "Give at least 6 graphs of two classes, or 6 classes"),
    ],
)
def test_too_few_classes(labels: list[str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        GraphEmbedder("gnn").fit(circles(40)[0], labels, steps=1, **QUIET)


def test_one_pair_tells_nothing_from_nothing() -> None:
    with pytest.raises(ConfigError, match="batch_size must be at least 2, got 1"):
        GraphEmbedder("gnn-strong").fit(*circles(40), **{**QUIET, "batch_size": 1})


@pytest.mark.parametrize("evaluated", [False, True])
def test_an_interrupted_fit_leaves_a_whole_model(evaluated: bool, tmp_path: Path) -> None:
    """The best so far; without an evaluation what it was before."""
    graphs, labels = molecules(40)
    model = GraphEmbedder("gnn-strong")
    before, batches = model.config, []

    def loss(output: PairOutput, batch: PairBatch) -> torch.Tensor:
        batches.append(batch)
        if len(batches) == 8:
            raise KeyboardInterrupt
        return output.scores.square().mean()

    options = {**QUIET, "evaluate_every": 5 if evaluated else 100}
    with pytest.raises(KeyboardInterrupt):
        model.fit(graphs, labels, loss=loss, steps=20, **options)
    if evaluated:
        assert model.trained_on is not None
        assert model.trained_on["step"] == 5
        assert model.encode(graphs[:2]).shape == (2, 128)
        assert model.history[-1]["step"] == 5
    else:
        assert model.config == before
        assert model.vocabulary is None


def test_a_loss_that_is_not_finite_names_no_folder_that_is_gone() -> None:
    graphs, labels = circles(40)
    model = GraphEmbedder("gnn-strong")
    with pytest.raises(TrainingError) as caught:
        model.fit(graphs, labels, loss=lambda o, b: o.scores.sum() * float("nan"), **QUIET)
    assert "checkpoint" not in str(caught.value)


def test_attributes_that_nobody_named_are_said() -> None:
    graphs, labels = molecules(40)
    others = [to_networkx(graph) for graph in graphs]
    for other in others:
        other.graph.clear()
    (remark,) = as_dataset(others, labels).remarks
    assert "the attributes label, which nobody named" in remark
    assert as_dataset(others, labels, origin={"attributes": {"node_labels": "label"}}).remarks == []


def test_numbers_are_not_taken_for_a_vocabulary() -> None:
    graphs, labels = molecules(40)
    model = GraphEmbedder("gnn-strong").fit(graphs, labels, steps=1, **QUIET)
    numbers = [Graph(3, [(0, 1)], node_tokens=[[0], [1], [2]])] * 40
    with pytest.raises(ConfigError, match="whole numbers"):
        model.fit(numbers, labels, steps=1, **QUIET)


@pytest.mark.parametrize("examples", [{1, 2}, nx.path_graph(3)])
def test_what_has_no_order_is_no_list(examples: Any) -> None:
    with pytest.raises(GraphError, match=r"must have an order|got one graph"):
        as_dataset(examples, [1, 2])
