"""Datasets of one's own graphs: splits, batches, inputs of models, and what is refused."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphkin.errors import ConfigError, GraphError
from graphkin.graphs import Graph
from graphkin.graphs.converters.from_pyg import to_pyg
from graphkin.graphs.labels import similarity_labels
from graphkin.learning.datasets import ClassDataset, PairDataset, TargetDataset, TripletDataset
from graphkin.learning.task import LIST_NEGATIVES, EvaluationSet
from tests.graph_samples import circles, edit_pairs, molecules

PARTS = ("training", "validation", "test")


def ring(n: int) -> Graph:
    return Graph(n, [(i, (i + 1) % n) for i in range(n)])


# --- Labels -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels",
    [
        [1, 0, 1],
        [1, -1, 1],
        [True, False, True],
        np.array([1.0, 0.0, 1.0], dtype=object),
        np.array([1, 0, 1], dtype=np.uint8),
        (1.0, -1.0, 1.0),
    ],
)
def test_labels_of_either_kind_mean_the_same(labels: Any) -> None:
    assert similarity_labels(labels).tolist() == [1, -1, 1]
    pairs = [(ring(3), ring(4)), (ring(4), ring(5)), (ring(5), ring(6))]
    assert PairDataset(pairs, labels).labels.tolist() == [1, -1, 1]
    assert EvaluationSet(tuple(pairs), np.asarray(labels), ()).labels.tolist() == [1, -1, 1]


@pytest.mark.parametrize(
    "labels", [[1, 0, -1], [1, 2, 1], [0.5, 1, 0], [1, np.nan, 0], [1, np.inf, 1], ["a", "b", "a"]]
)
def test_other_labels_are_refused(labels: Any) -> None:
    with pytest.raises(GraphError, match="labels must be"):
        similarity_labels(labels)


@pytest.mark.parametrize("values", [[0.5, np.nan], [0.5, np.inf], [-1, 2], [[1], [2]], ["a", "b"]])
def test_targets_must_be_numbers_from_0_on(values: Any) -> None:
    with pytest.raises(ConfigError, match="target"):
        TargetDataset([(ring(3), ring(4)), (ring(4), ring(5))], values)


# --- Classes ------------------------------------------------------------------------------


def test_classes_are_split_by_graph_as_many_of_each() -> None:
    dataset = ClassDataset(*molecules(100))
    assert dataset.split_by == "graph"
    for part, count in zip(PARTS, (40, 5, 5), strict=True):
        assert np.bincount(dataset.classes[dataset.numbers(part)]).tolist() == [count, count]


def test_six_graphs_of_a_class_are_enough() -> None:
    graphs = [ring(n) for n in range(3, 9)] + [Graph(n, [(0, 1)]) for n in range(3, 9)]
    dataset = ClassDataset(graphs, [0] * 6 + [1] * 6)
    assert [len(dataset.numbers(part)) for part in PARTS] == [4, 4, 4]
    assert len(dataset.evaluation_set("test").pairs) == 1000


def test_six_classes_are_enough_to_split_by_class() -> None:
    graphs = [Graph(n + 3, [(0, 1)] * k) for k in range(6) for n in range(3)]
    dataset = ClassDataset(graphs, np.repeat(np.arange(6), 3), evaluation_size=10)
    assert dataset.split_by == "class"
    kinds = [set(dataset.classes[dataset.numbers(part)].tolist()) for part in PARTS]
    assert [len(kind) for kind in kinds] == [2, 2, 2]
    assert len(set.union(*kinds)) == 6


def test_splits_as_given() -> None:
    graphs, labels = circles(40)
    splits = (["train"] * 20 + ["val"] * 10 + ["test"] * 10)[::-1]
    dataset = ClassDataset(graphs, labels, splits=splits)
    assert dataset.numbers("test").tolist() == list(range(10))
    assert dataset.describe()["data"] != ClassDataset(graphs, labels).describe()["data"]
    with pytest.raises(ConfigError, match="unknown split 'rest'"):
        ClassDataset(graphs, labels, splits=["rest"] * 40)


def test_batches_are_of_the_training_graphs() -> None:
    graphs, labels = circles(60)
    dataset = ClassDataset(graphs, labels, seed=3)
    known = {dataset.graphs[n].num_edges for n in dataset.numbers("training").tolist()}
    batch = dataset.batch(5, 8, "pairs")
    assert batch.labels is not None
    assert batch.labels.tolist() == [1, -1] * 4
    assert batch.num_pairs == 8
    same = dataset.batch(5, 8, "pairs").graphs
    assert same.incoming.neighbours.tolist() == batch.graphs.incoming.neighbours.tolist()
    assert len(known) > 1
    assert dataset.batch(0, 6, "lists").num_pairs == 6 * (1 + LIST_NEGATIVES)
    other = ClassDataset(graphs, labels, seed=4).batch(5, 8, "pairs").graphs
    assert other.incoming.neighbours.tolist() != batch.graphs.incoming.neighbours.tolist()


@pytest.mark.parametrize("wrap", [tuple, iter, lambda items: np.array([*items, None])[:-1]])
def test_any_collection_of_graphs(wrap: Any) -> None:
    graphs, labels = circles(40)
    dataset = ClassDataset(wrap(graphs), np.array(labels), evaluation_size=np.int64(10))
    assert dataset.describe() == ClassDataset(graphs, labels, evaluation_size=10).describe()


def test_graphs_of_other_libraries() -> None:
    graphs, labels = circles(40)
    expected = ClassDataset(graphs, labels).digests
    networks = []
    for graph in graphs:
        network = nx.Graph()
        network.add_nodes_from(range(graph.num_nodes))
        network.add_edges_from(graph.edges.tolist())
        networks.append(network)
    assert len(ClassDataset(networks, labels).graphs) == 40
    assert ClassDataset([to_pyg(graph) for graph in graphs], labels).digests == expected
    with pytest.raises(GraphError, match="graph 1 is a int"):
        ClassDataset([graphs[0], 3], [0, 1])


@pytest.mark.parametrize("label", [None, float("nan"), [1], object()])
def test_a_class_is_text_or_a_number(label: Any) -> None:
    with pytest.raises(ConfigError, match="label 1 is"):
        ClassDataset([ring(3), ring(4)], ["a", label])


# --- Inputs of models ---------------------------------------------------------------------


def test_text_labels_get_a_vocabulary_of_the_training_graphs() -> None:
    graphs, labels = molecules(60)
    splits = ["training"] * 40 + ["validation"] * 10 + ["test"] * 10
    odd = Graph(3, [(0, 1)], node_labels=["Xe", "C", "C"])
    dataset = ClassDataset([*graphs[:-1], odd], labels, splits=splits)
    assert dataset.vocabulary is not None
    assert set(dataset.vocabulary.words) == {"C", "N", "O"}
    recipe = dataset.recipe("gnn")
    assert (recipe.model["node_input"], recipe.model["node_input_size"]) == ("tokens", 4)
    assert recipe.vocabulary == dataset.vocabulary
    tokens = dataset.graphs[-1].node_tokens
    assert tokens is not None
    assert tokens.ids.tolist() == [0, *dataset.vocabulary.encode(["C", "C"])]


def test_labels_beside_features_become_columns_of_their_own() -> None:
    rng = np.random.default_rng(0)
    graphs = [
        Graph(4, [(0, 1)], node_labels=list("abab"), node_features=rng.normal(50, 9, (4, 2)))
        for _ in range(40)
    ]
    dataset = ClassDataset(graphs, [0, 1] * 20)
    features = dataset.graphs[0].node_features
    assert features is not None
    assert features[:, 2:].tolist() == [[0, 1, 0], [0, 0, 1]] * 2
    recipe = dataset.recipe("gnn")
    assert recipe.model["node_input_size"] == 5
    assert recipe.feature_scale is not None
    mean, spread = recipe.feature_scale
    assert mean[:2] == pytest.approx([50, 50], abs=3)
    assert mean[2:].tolist() == [0, 0, 0]
    assert spread[2:].tolist() == [1, 1, 1]


# --- Pairs, triplets, targets -------------------------------------------------------------


def test_pairs_of_recurring_graphs_are_split_by_graph() -> None:
    pairs, values = edit_pairs(80)
    dataset = PairDataset(pairs, [value < 3 for value in values])
    assert dataset.split_by == "graph"
    known = set(dataset.numbers("training").tolist())
    for row in dataset.rows("test").tolist():
        assert not set(dataset.examples[row].tolist()) <= known
    batch = dataset.batch(0, 10, "pairs")
    assert batch.labels is not None
    assert sorted(batch.labels.tolist()) == [-1] * 5 + [1] * 5
    with pytest.raises(ConfigError, match="has batches of pairs, not of kin"):
        dataset.batch(0, 10, "kin")


def test_pairs_of_graphs_that_do_not_recur_are_split_by_pair() -> None:
    pairs = [(ring(2 * n), ring(2 * n + 1)) for n in range(2, 42)]
    dataset = PairDataset(pairs, [n % 2 for n in range(40)])
    assert dataset.split_by == "pair"
    assert [len(dataset.rows(part)) for part in PARTS] == [32, 4, 4]


def test_triplets() -> None:
    triplets = [(ring(n), ring(n + 1), Graph(n, [(0, 1)])) for n in range(3, 43)]
    dataset = TripletDataset(triplets)
    assert dataset.batch(0, 5, "triplets").num_pairs == 10
    parts = [len(TripletDataset(triplets, split="pair").rows(part)) for part in PARTS]
    assert parts == [32, 4, 4]
    # A ring recurs in two triplets: by default some graph of a test triplet is unseen.
    assert dataset.split_by == "graph"
    assert len(dataset.evaluation_set("test").triplets) == len(dataset.rows("test"))
    with pytest.raises(GraphError, match="example 1 of triplets holds 2 graphs, not 3"):
        TripletDataset([triplets[0], triplets[1][:2]])


def test_targets_know_their_unit() -> None:
    pairs, values = edit_pairs(80)
    distances = TargetDataset(pairs, values)
    assert distances.are_distances
    recipe = distances.recipe("gmn")
    assert (recipe.model["link"], recipe.training["loss"]) == ("root", "mse")
    similar = TargetDataset(pairs, np.exp(-np.array(values)))
    assert not similar.are_distances
    assert similar.recipe("gmn").model["link"] == "exp"
    batch = distances.batch(0, 6, "pairs")
    assert batch.labels is not None
    assert set(batch.labels.tolist()) <= set(values)


def test_queries_of_targets_are_whole() -> None:
    graphs = [ring(n) for n in range(3, 33)]
    pairs = [(a, b) for a in graphs for b in graphs]
    values = [abs(a.num_nodes - b.num_nodes) for a, b in pairs]
    dataset = TargetDataset(pairs, values, evaluation_size=60)
    test = dataset.evaluation_set("test")
    _, counts = np.unique(test.queries, return_counts=True)
    assert 50 <= counts.sum() <= 70
    assert counts.min() > 20


def test_pairs_of_a_batch_share_graphs() -> None:
    graphs = [ring(n) for n in range(3, 33)]
    pairs = [(a, b) for a in graphs for b in graphs]
    values = [abs(a.num_nodes - b.num_nodes) for a, b in pairs]
    dataset = TargetDataset(pairs, values, batch_graphs=6)
    batch = dataset.batch(0, 30, "pairs")
    sizes = batch.graphs.node_offsets.diff()
    assert (batch.graphs.num_graphs, batch.num_pairs) == (6, 30)
    assert batch.labels is not None
    assert batch.labels.tolist() == (sizes[batch.left] - sizes[batch.right]).abs().tolist()
    drawn = set(zip(batch.left.tolist(), batch.right.tolist(), strict=True))
    assert len(drawn) == 30, "no pair is there twice"
    assert set(sizes.tolist()) <= {graphs[n].num_nodes for n in dataset.numbers("training")}
    again, later = (dataset.batch(step, 30, "pairs") for step in (0, 1))
    assert again.graphs.node_offsets.tolist() == batch.graphs.node_offsets.tolist()
    assert later.graphs.node_offsets.tolist() != batch.graphs.node_offsets.tolist()
    shares = [dataset.batch(0, 30, "pairs", rank=rank, world=2) for rank in range(2)]
    assert [share.num_pairs for share in shares] == [15, 15]


def test_other_pairs_fill_a_batch_of_few_graphs() -> None:
    pairs, values = edit_pairs(80)
    dataset = TargetDataset(pairs, values, batch_graphs=4)
    batch = dataset.batch(0, 20, "pairs")
    assert batch.num_pairs == 20
    assert batch.graphs.num_graphs > 4


def test_a_dataset_without_shared_graphs_is_described_as_before_the_option() -> None:
    pairs, values = edit_pairs(80)
    assert "batch_graphs" not in TargetDataset(pairs, values).describe()
    assert TargetDataset(pairs, values, batch_graphs=4).describe()["batch_graphs"] == 4


def test_counts_must_agree() -> None:
    pairs, values = edit_pairs(10)
    with pytest.raises(ConfigError, match="9 labels for 10 pairs"):
        PairDataset(pairs, [1] * 9)
    with pytest.raises(ConfigError, match="9 values for 10 pairs"):
        TargetDataset(pairs, values[:9])
    with pytest.raises(ConfigError, match="1 labels for 2 graphs"):
        ClassDataset([ring(3), ring(4)], ["a"])
    with pytest.raises(ConfigError, match="unknown dataset option 'sed'"):
        ClassDataset([ring(3), ring(4)], ["a", "b"], sed=1)
