"""The task of meshes: splits, standardised coordinates, batches and nearest neighbours."""

from __future__ import annotations

import json
import os
import shutil
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from graphkin.errors import ConfigError, FormatError, ModelError
from graphkin.graphs import Graph, PairBatch
from graphkin.graphs.converters.tudataset.dataset import read_tudataset, write_tudataset
from graphkin.learning.datasets.splits import SHARES
from graphkin.learning.evaluation import Neighbours
from graphkin.learning.task import LIST_NEGATIVES, Mode
from graphkin.models import GraphEmbedder, ModelConfig, build_model
from graphkin.models.config import MODEL_NAMES
from graphkin.research.reproduce.plan.meshes import mesh_experiments
from graphkin.research.tasks.meshes import MeshTask, SplitBy
from tests.mesh_samples import shapes, write_meshes
from tests.paths import REPOSITORY

SHARED = Path(os.environ.get("GRAPHKIN_SHARED", REPOSITORY.parent / "shared"))
COIL_DEL = SHARED / "data" / "COIL-DEL.zip"

PARTS = ("training", "validation", "test")
SPLITS = get_args(SplitBy)
MODES = get_args(Mode)
needs_coil_del = pytest.mark.skipif(
    not COIL_DEL.exists(), reason=f"COIL-DEL.zip is not in {COIL_DEL.parent}"
)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """20 classes of 20 views each."""
    return write_meshes(tmp_path_factory.mktemp("meshes") / "MESH.zip")


def points(graph: Graph) -> NDArray[np.float32]:
    assert graph.node_features is not None
    return graph.node_features


def batch_graphs(batch: PairBatch) -> list[tuple[bytes, bytes]]:
    """The coordinates of both graphs of each pair."""
    graphs, offsets = batch.graphs, batch.graphs.node_offsets.tolist()
    assert graphs.node_features is not None
    actual = [graphs.node_features[a:b].numpy().tobytes() for a, b in pairwise(offsets)]
    sides = zip(batch.left.tolist(), batch.right.tolist(), strict=True)
    return [(actual[a], actual[b]) for a, b in sides]


def known(task: MeshTask) -> dict[bytes, tuple[int, int]]:
    """Number and class of each graph, by its coordinates."""
    numbers = {
        points(graph).tobytes(): (number, int(task.classes[number]))
        for number, graph in enumerate(task.graphs)
    }
    assert len(numbers) == len(task.graphs)
    return numbers


# --- Splits -------------------------------------------------------------------------------


@pytest.mark.parametrize("split", SPLITS)
def test_every_graph_is_in_one_part(path: Path, split: SplitBy) -> None:
    task = MeshTask(str(path), split=split)
    actual = [task.numbers(part).tolist() for part in PARTS]
    assert [len(numbers) for numbers in actual] == [320, 40, 40]
    assert sorted(chain(*actual)) == list(range(400))


def test_test_classes_are_unseen(path: Path) -> None:
    task = MeshTask(str(path))
    actual = [set(task.classes[task.numbers(part)].tolist()) for part in PARTS]
    assert [len(classes) for classes in actual] == [16, 2, 2]
    assert len(set.union(*actual)) == 20
    # Classes are those of the file.
    labels = read_tudataset(path)[1].tolist()
    assert len(set(zip(labels, task.classes.tolist(), strict=True))) == len(set(labels)) == 20


@pytest.mark.parametrize("split", SPLITS)
def test_folds_test_every_graph_once(path: Path, split: SplitBy) -> None:
    """Or nearly so, where there are no ten equal parts."""
    tasks = [MeshTask(str(path), split=split, fold=fold) for fold in range(10)]
    assert tasks[0].numbers("test").tolist() == MeshTask(str(path), split).numbers("test").tolist()
    tested = np.bincount(
        np.concatenate([task.numbers("test") for task in tasks]), minlength=len(tasks[0].graphs)
    )
    assert tested.mean() == pytest.approx(1.0, abs=0.35)
    for task in tasks:
        parts = [set(task.numbers(part).tolist()) for part in SHARES]
        assert sum(map(len, parts)) == len(set.union(*parts)) == len(task.graphs)


def test_split_by_graph_is_stratified(path: Path) -> None:
    task = MeshTask(str(path), split="graph")
    for part, count in zip(PARTS, (16, 2, 2), strict=True):
        assert np.bincount(task.classes[task.numbers(part)]).tolist() == [count] * 20


def test_equal_graphs_stay_together(tmp_path: Path) -> None:
    """What is in the training set twice, or four times, is not in the test set as well."""
    graphs, labels = shapes(4, 20)
    write_tudataset(tmp_path, "TWICE", graphs * 4, labels * 4)
    task = MeshTask(str(tmp_path), split="graph", evaluation_size=50)
    contents = [{task.graphs[n].digest() for n in task.numbers(part).tolist()} for part in PARTS]
    assert [len(actual) for actual in contents] == [64, 8, 8]
    assert len(set.union(*contents)) == 80
    for one, other in task.evaluation_set("test").pairs:
        assert one != other


def test_splits_do_not_depend_on_seed_or_order(path: Path, tmp_path: Path) -> None:
    graphs, labels = read_tudataset(path)
    write_tudataset(tmp_path, "BACK", graphs[::-1], labels[::-1])
    for split in SPLITS:
        task = MeshTask(str(path), split=split, seed=1)
        back = MeshTask(str(tmp_path), split=split)
        for part in PARTS:
            assert sorted(len(graphs) - 1 - back.numbers(part)) == task.numbers(part).tolist()
        np.testing.assert_array_equal(task.scale, back.scale)
        assert task.describe()["data"] != back.describe()["data"]


# --- Coordinates --------------------------------------------------------------------------


@pytest.mark.parametrize("split", SPLITS)
def test_coordinates_are_standardised_by_training_graphs(path: Path, split: SplitBy) -> None:
    task = MeshTask(str(path), split=split)
    training = np.concatenate([points(task.graphs[n]) for n in task.numbers("training")])
    np.testing.assert_allclose(training.mean(axis=0), [0, 0], atol=1e-4)
    np.testing.assert_allclose(training.std(axis=0), [1, 1], rtol=1e-4)
    everything = np.concatenate([points(graph) for graph in task.graphs])
    assert np.abs(everything.mean(axis=0)).max() > 1e-3, "the test graphs had a say"
    # And the description has what turns one into the other.
    described = task.describe()["standardised"]
    for raw, graph in zip(read_tudataset(path)[0], task.graphs, strict=True):
        expected = (points(raw) - np.array(described["center"])) / described["spread"]
        np.testing.assert_allclose(points(graph), expected, atol=1e-5)
        np.testing.assert_array_equal(graph.edges, raw.edges)
        assert graph.arrays()["edge_types"].tolist() == raw.arrays()["edge_types"].tolist()
        assert not graph.directed


def test_a_column_without_spread_is_only_moved(tmp_path: Path) -> None:
    graphs, labels = shapes()
    flat = [
        Graph(g.num_nodes, g.edges, node_features=np.insert(points(g), 2, 5.0, axis=1))
        for g in graphs
    ]
    write_tudataset(tmp_path, "FLAT", flat, labels)
    task = MeshTask(str(tmp_path))
    document = task.describe()["standardised"]
    assert (document["center"][2], document["spread"][2]) == (5, 1)
    assert {float(points(graph)[:, 2].max()) for graph in task.graphs} == {0.0}


# --- Batches and evaluation sets ----------------------------------------------------------


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("mode", MODES)
def test_batches_are_of_training_graphs_and_true_to_their_labels(
    path: Path, split: SplitBy, mode: Mode
) -> None:
    task = MeshTask(str(path), split=split)
    graphs, training = known(task), set(task.numbers("training").tolist())
    for step in range(20):
        batch = task.batch(step, 16, mode)
        actual = [(graphs[a], graphs[b]) for a, b in batch_graphs(batch)]
        assert {number for pair in actual for number, _ in pair} <= training
        assert all(left[0] != right[0] for left, right in actual)
        same = [left[1] == right[1] for left, right in actual]
        if mode == "pairs":
            assert batch.labels is not None
            assert batch.labels.tolist() == [1 if similar else -1 for similar in same]
            assert same == [True, False] * 8
        elif mode == "kin":
            assert batch.labels is not None
            assert same == [True] * 16
            assert batch.labels.tolist() == [left[1] for left, _ in actual]
        else:
            others = LIST_NEGATIVES if mode == "lists" else 1
            assert batch.labels is None
            assert same == [True, *[False] * others] * 16
            firsts = [left[0] for left, _ in actual]
            assert firsts == np.repeat(firsts[:: 1 + others], 1 + others).tolist()


@pytest.mark.parametrize("mode", MODES)
def test_a_batch_follows_from_seed_and_step(path: Path, mode: Mode) -> None:
    first = batch_graphs(MeshTask(str(path)).batch(5, 12, mode))
    again = MeshTask(str(path))
    again.batch(9, 12, mode)
    assert batch_graphs(again.batch(5, 12, mode)) == first
    assert batch_graphs(again.batch(6, 12, mode)) != first
    assert batch_graphs(MeshTask(str(path), seed=1).batch(5, 12, mode)) != first


@pytest.mark.parametrize("mode", MODES)
def test_distortion_bends_training_graphs_alone(path: Path, mode: Mode) -> None:
    plain = MeshTask(str(path))
    before, shapes = plain.batch(5, 12, mode), []
    for strength in (0.01, 0.1):
        bent = MeshTask(str(path), distortion=strength)
        after = bent.batch(5, 12, mode)
        assert after.graphs.node_offsets.tolist() == before.graphs.node_offsets.tolist()
        assert torch.equal(after.graphs.incoming.neighbours, before.graphs.incoming.neighbours)
        assert before.graphs.node_features is not None
        assert after.graphs.node_features is not None
        distances = (
            (after.graphs.node_features - before.graphs.node_features).square().mean().sqrt()
        )
        # Turn and stretch, move, and tremble: together about the square root of 4 times as much.
        assert strength < float(distances) < 4 * strength
        shapes.append(batch_graphs(after))
        assert bent.evaluation_set("test").digest == plain.evaluation_set("test").digest
    assert shapes[0] != shapes[1]
    assert batch_graphs(MeshTask(str(path), distortion=0.1).batch(5, 12, mode)) == shapes[1]


@pytest.mark.parametrize("distortion", [0.0, 0.1])
@pytest.mark.parametrize("mode", MODES)
def test_shares_make_up_the_joint_batch(path: Path, mode: Mode, distortion: float) -> None:
    task = MeshTask(str(path), distortion=distortion)
    whole = task.batch(3, 7, mode)
    each = {"lists": 1 + LIST_NEGATIVES, "triplets": 2}.get(mode, 1)
    rows = [batch_graphs(whole)[i * each : (i + 1) * each] for i in range(7)]
    for rank in range(3):
        share = task.batch(3, 7, mode, rank=rank, world=3)
        assert batch_graphs(share) == list(chain(*rows[rank::3]))
        if whole.labels is not None:
            assert share.labels is not None
            assert torch.equal(share.labels, whole.labels[rank::3])


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("part", ["validation", "test"])
def test_evaluation_sets(path: Path, split: SplitBy, part: Any) -> None:
    task = MeshTask(str(path), split=split, evaluation_size=200)
    evaluation = task.evaluation_set(part)
    numbers = {task.graphs[n].digest(): n for n in task.numbers(part).tolist()}
    assert len(evaluation.pairs) == len(evaluation.triplets) == 200
    assert evaluation.labels.sum() == 0

    def same(one: Graph, other: Graph) -> bool:
        a, b = numbers[one.digest()], numbers[other.digest()]
        assert a != b
        return bool(task.classes[a] == task.classes[b])

    for pair, label in zip(evaluation.pairs, evaluation.labels, strict=True):
        assert same(*pair) == (label > 0)
    for one, close, far in evaluation.triplets:
        assert same(one, close)
        assert not same(one, far)
    assert MeshTask(str(path), split, 9, 200).evaluation_set(part).digest == evaluation.digest
    other = task.evaluation_set("test" if part == "validation" else "validation")
    assert other.digest != evaluation.digest


# --- Nearest neighbours -------------------------------------------------------------------


@pytest.mark.parametrize("split", SPLITS)
def test_neighbours(path: Path, split: SplitBy) -> None:
    task = MeshTask(str(path), split=split)
    neighbours = task.neighbours("test")
    queries = task.numbers("test")
    pool = queries if split == "class" else task.numbers("training")
    assert list(neighbours.queries) == [task.graphs[n] for n in queries.tolist()]
    assert list(neighbours.pool) == [task.graphs[n] for n in pool.tolist()]
    np.testing.assert_array_equal(
        neighbours.right, task.classes[queries][:, None] == task.classes[pool][None]
    )
    assert neighbours.own.sum() == (40 if split == "class" else 0)
    assert neighbours.own.diagonal().all() == (split == "class")


def test_accuracy_against_a_literal_version(path: Path) -> None:
    rng = np.random.default_rng(0)
    for split, ahead in (("class", 1), ("graph", 3)):
        neighbours = MeshTask(str(path), split=split).neighbours("validation")  # type: ignore[arg-type]
        scores = (
            rng.integers(0, 30, neighbours.right.shape)
            + ahead * neighbours.right
            + 100 * neighbours.own
        )
        right = 0
        for query in range(len(neighbours.queries)):
            others = [p for p in range(len(neighbours.pool)) if not neighbours.own[query, p]]
            best = max(scores[query, p] for p in others)
            winners = [p for p in others if scores[query, p] == best]
            right += all(neighbours.right[query, p] for p in winners)
        expected = right / len(neighbours.queries)
        assert 0.1 < expected < 0.95
        assert neighbours.accuracy(scores) == pytest.approx(expected)


def test_a_model_and_its_vectors_agree(path: Path) -> None:
    task = MeshTask(str(path), split="graph")
    model = GraphEmbedder(ModelConfig.named("gnn", **task.recipe("gnn").model))
    neighbours = task.neighbours("test")
    told: list[tuple[int, int]] = []
    by_pairs = neighbours.scores(model.predict, lambda done, total: told.append((done, total)))
    by_vectors = model.similarity(model.encode(neighbours.queries), model.encode(neighbours.pool))
    np.testing.assert_allclose(by_pairs, by_vectors, atol=1e-4)
    assert told[-1] == (40 * 320, 40 * 320)
    assert [done for done, _ in told] == sorted({done for done, _ in told})


def test_coordinates_find_neighbours_and_sizes_do_not(path: Path) -> None:
    """Shapes of one class lie close together: anything that looks at coordinates finds them."""

    def alike(pairs: Any) -> list[float]:
        return [-float(np.square(points(a)[:4] - points(b)[:4]).sum()) for a, b in pairs]

    neighbours = MeshTask(str(path), split="graph").neighbours("test")
    assert neighbours.accuracy(neighbours.scores(alike)) > 0.9
    assert neighbours.accuracy(neighbours.scores(lambda pairs: np.zeros(len(pairs)))) == 0


def test_scores_that_are_refused() -> None:
    graph = Graph(1, node_features=[[0.0]])
    mask = np.array([[True, False]])
    neighbours = Neighbours((graph,), (graph, graph), mask, ~mask & mask)
    for scores in ([1.0, 2.0], [[1.0]], [[1.0, np.nan]], [[np.inf, 0.0]]):
        with pytest.raises(ModelError, match=r"\(1, 2\)"):
            neighbours.accuracy(scores)


# --- Description, recipes, refusals -------------------------------------------------------


def test_description_is_of_the_content(path: Path, tmp_path: Path) -> None:
    task = MeshTask(str(path), seed=4)
    described = task.describe()
    assert described["task"] == "meshes"
    assert described["seed"] == 4
    assert json.loads(json.dumps(described)) == described
    assert str(path) not in json.dumps(described)
    shutil.copyfile(path, tmp_path / "moved.zip")
    assert MeshTask(str(tmp_path / "moved.zip"), seed=4).describe() == described
    folder = path.with_suffix("")
    assert MeshTask(str(folder), seed=4).describe() == described
    graphs, labels = read_tudataset(path)
    labels[0] = labels[labels != labels[0]][0]
    write_tudataset(tmp_path / "other", "MESH", graphs, labels)
    assert MeshTask(str(tmp_path / "other"), seed=4).describe()["data"] != described["data"]


@pytest.mark.parametrize("name", MODEL_NAMES)
def test_recipes_fit_the_data(path: Path, name: str) -> None:
    from graphkin.learning.training import TrainConfig

    task = MeshTask(str(path))
    recipe = task.recipe(name)
    model = build_model(ModelConfig.named(name, **recipe.model))
    config = TrainConfig.from_dict(dict(recipe.training))
    output = model(task.batch(0, 4, config.mode))
    assert output.scores.isfinite().all()
    assert model.config.node_input_size == model.config.edge_input_size == 2


def test_recipes_for_other_edges(tmp_path: Path) -> None:
    graphs, labels = shapes()
    plain = [Graph(g.num_nodes, g.edges, node_features=g.node_features) for g in graphs]
    write_tudataset(tmp_path / "plain", "P", plain, labels)
    assert "edge_input" not in MeshTask(str(tmp_path / "plain")).recipe("gnn").model
    dense = [
        Graph(g.num_nodes, g.edges, node_features=g.node_features,
              edge_features=np.ones((g.num_edges, 3)))
        for g in graphs
    ]  # fmt: skip
    write_tudataset(tmp_path / "dense", "D", dense, labels)
    options = MeshTask(str(tmp_path / "dense")).recipe("gnn").model
    assert (options["edge_input"], options["edge_input_size"]) == ("dense", 3)
    with pytest.raises(ConfigError, match="unknown recipe 'weak'; choose one of paper, strong"):
        MeshTask(str(tmp_path / "dense")).recipe("gnn", "weak")


def test_the_strong_recipe_is_that_of_our_tables(path: Path) -> None:
    ours = {e.model: e for e in mesh_experiments() if e.variant == "ours"}
    for model, experiment in ours.items():
        recipe = MeshTask(str(path)).recipe(model, "strong")
        assert experiment.model_options.items() <= recipe.model.items()
        assert {**recipe.training, **experiment.training} == {
            **recipe.training,
            "steps": experiment.training["steps"],
        }


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"split": "views"}, ["split", "class", "views"]),
        ({"seed": -1}, ["seed", "-1"]),
        ({"distortion": -0.1}, ["distortion", "-0.1"]),
        ({"fold": 10}, ["fold", "0..9", "10"]),
        ({"evaluation_size": 1}, ["evaluation_size", "1"]),
        ({"evaluation_size": "many"}, ["evaluation_size", "many"]),
    ],
)
def test_settings_that_are_refused(path: Path, options: dict[str, Any], parts: list[str]) -> None:
    with pytest.raises(ConfigError) as caught:
        MeshTask(str(path), **options)
    assert all(part in str(caught.value) for part in parts)


def test_calls_that_are_refused(path: Path) -> None:
    task = MeshTask(str(path))
    with pytest.raises(ConfigError, match="mode must be one of pairs"):
        task.batch(0, 4, "quartets")  # type: ignore[arg-type]
    sound: dict[str, Any] = {"step": 0, "size": 4, "mode": "pairs", "world": 2}
    wrong: list[dict[str, Any]] = [{"step": -1}, {"rank": 2}, {"size": 1}, {"rank": -1}]
    for arguments in wrong:
        with pytest.raises(ConfigError, match="no batch for step"):
            task.batch(**sound | arguments)
    for call in (task.evaluation_set, task.neighbours):
        with pytest.raises(ConfigError, match="'validation' or 'test', got 'training'"):
            call("training")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="training, validation, test; got 'all'"):
        task.numbers("all")


def test_datasets_that_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"absent\.zip does not exist"):
        MeshTask(str(tmp_path / "absent.zip")).describe()
    graphs, labels = shapes(10)
    write_tudataset(tmp_path / "few", "FEW", graphs, labels)
    message = r"10 classes of 200 graphs.* test gets 1 classes.* more than 10"
    with pytest.raises(ConfigError, match=message):
        MeshTask(str(tmp_path / "few")).evaluation_set("test")
    assert MeshTask(str(tmp_path / "few"), split="graph").evaluation_set("test").pairs
    bare = [Graph(g.num_nodes, g.edges) for g in graphs]
    write_tudataset(tmp_path / "bare", "BARE", bare, labels)
    with pytest.raises(ConfigError, match="constant nodes; meshes need coordinates"):
        MeshTask(str(tmp_path / "bare")).describe()
    write_tudataset(tmp_path / "wide", "WIDE", graphs, labels)
    (tmp_path / "wide" / "WIDE_graph_labels.txt").write_text("1, 2\n" * 200)
    with pytest.raises(ConfigError, match="no single class"):
        MeshTask(str(tmp_path / "wide")).describe()


# --- The real dataset ---------------------------------------------------------------------


@needs_coil_del
@pytest.mark.parametrize(
    ("split", "graphs", "classes"),
    [("class", [3120, 390, 390], [80, 10, 10]), ("graph", [3100, 400, 400], [100, 100, 100])],
)
def test_coil_del(split: SplitBy, graphs: list[int], classes: list[int]) -> None:
    task = MeshTask(str(COIL_DEL), split=split)
    assert len(task.graphs) == 3900
    assert np.bincount(task.classes).tolist() == [39] * 100
    parts = [task.numbers(part) for part in PARTS]
    assert [len(numbers) for numbers in parts] == graphs
    assert [len(set(task.classes[numbers].tolist())) for numbers in parts] == classes
    contents = [{task.graphs[n].digest() for n in numbers.tolist()} for numbers in parts]
    assert len(set.union(*contents)) == sum(len(evaluation) for evaluation in contents) == 3899
    evaluation = task.evaluation_set("test")
    assert (len(evaluation.pairs), len(evaluation.triplets)) == (1000, 1000)
    options = task.recipe("gmn").model
    expected = {"node_input": "dense", "node_input_size": 2,
                "edge_input": "types", "edge_input_size": 2}  # fmt: skip
    assert options.items() >= expected.items()
    assert {graph.directed for graph in task.graphs} == {False}
