"""The generator of edit pairs, against plain checks on the graphs that it makes."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, pairwise

import networkx as nx
import numpy as np
import pytest
import torch

from graphkin.errors import ConfigError, GraphError
from graphkin.graphs import Graph, GraphBatch, PairBatch
from graphkin.learning.task import EvaluationSet
from graphkin.research.tasks import edits
from graphkin.research.tasks.edits import EditTask

MIXED = EditTask(nodes=(6, 12), p=(0.3, 0.6), positive_edits=1, negative_edits=3, seed=5)


def graphs_of(batch: GraphBatch) -> list[Graph]:
    """The graphs of a batch, each undirected edge listed once."""
    offsets = batch.node_offsets.numpy()
    senders, receivers = batch.incoming.neighbours.numpy(), batch.incoming.owners.numpy()
    graphs = []
    for first, last in pairwise(offsets.tolist()):
        mine = (receivers >= first) & (receivers < last) & (senders > receivers)
        edges = np.stack([receivers[mine], senders[mine]], axis=1) - first
        graphs.append(Graph(last - first, edges))
    return graphs


def networkx_graph(graph: Graph) -> nx.Graph:
    result = nx.empty_graph(graph.num_nodes)
    result.add_edges_from(graph.edges.tolist())
    return result


def same(a: PairBatch, b: PairBatch) -> bool:
    if (a.labels is None) != (b.labels is None):
        return False
    labels = a.labels is None or b.labels is None or torch.equal(a.labels, b.labels)
    return (
        labels
        and torch.equal(a.graphs.node_offsets, b.graphs.node_offsets)
        and torch.equal(a.graphs.incoming.owners, b.graphs.incoming.owners)
        and torch.equal(a.graphs.incoming.neighbours, b.graphs.incoming.neighbours)
    )


@pytest.fixture
def fresh_chunks():
    edits._chunk.cache_clear()
    yield edits._chunk.cache_clear
    edits._chunk.cache_clear()


@pytest.mark.parametrize("task", [EditTask(), EditTask(nodes=(50, 50), p=(0.5, 0.5)), MIXED])
@pytest.mark.parametrize("mode", ["pairs", "triplets"])
def test_batch_is_what_packing_its_graphs_gives(task, mode):
    batch = task.batch(3, 10, mode)
    packed = GraphBatch.pack(graphs_of(batch.graphs))
    assert torch.equal(batch.graphs.node_offsets, packed.node_offsets)
    assert torch.equal(batch.graphs.node_graph, packed.node_graph)
    assert torch.equal(batch.graphs.incoming.offsets, packed.incoming.offsets)
    assert torch.equal(batch.graphs.incoming.owners, packed.incoming.owners)
    messages = [
        set(zip(x.incoming.owners.tolist(), x.incoming.neighbours.tolist(), strict=True))
        for x in (batch.graphs, packed)
    ]
    assert messages[0] == messages[1]
    assert batch.graphs.edge_kind == batch.graphs.node_kind == "constant"


@pytest.mark.parametrize("task", [EditTask(), MIXED])
def test_first_graphs_are_connected_and_in_range(task):
    low, high = task.nodes
    graphs = [g for step in range(5) for g in graphs_of(task.batch(step, 20, "pairs").graphs)]
    for first, second in zip(graphs[0::2], graphs[1::2], strict=True):
        assert low <= first.num_nodes <= high
        assert nx.is_connected(networkx_graph(first))
        assert second.num_nodes == first.num_nodes
        assert second.num_edges == first.num_edges


def test_pairs_alternate_and_are_half_similar():
    labels = torch.stack([MIXED.batch(step, 10, "pairs").labels for step in range(4)])
    assert labels.dtype == torch.float32
    assert (labels[:, 0::2] == 1).all()
    assert (labels[:, 1::2] == -1).all()
    odd = torch.cat([MIXED.batch(step, 1, "pairs").labels for step in range(10)])
    assert odd.sum() == 0


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_exactly_k_edges_are_substituted(count):
    rng = np.random.default_rng(count)
    nodes = rng.integers(6, 13, size=60)
    slots, before = edits._connected_graphs(rng, nodes, np.full(60, 0.4), 12, 3)
    after, origin = edits._edited(rng, slots, before, nodes, np.full(60, count))
    moved = 0
    for old, new, order, n in zip(before, after, origin, nodes, strict=True):
        assert sorted(order[:n]) == list(range(n))
        assert not new[n:].any()
        assert not new[:, n:].any()
        undone = np.zeros_like(new)
        undone[np.ix_(order, order)] = new
        removed, added = np.triu(old & ~undone), np.triu(undone & ~old)
        assert removed.sum() == added.sum() == count
        assert (undone == undone.T).all()
        moved += (order[:n] != np.arange(n)).sum()
    assert moved > 0.8 * nodes.sum()


def test_edits_follow_the_label_in_a_batch():
    """With k_p = 0 a similar pair is isomorphic, and dissimilar pairs mostly are not."""
    task = EditTask(nodes=(8, 14), p=(0.3, 0.5), positive_edits=0, negative_edits=3)
    graphs = [networkx_graph(g) for g in graphs_of(task.batch(0, 60, "pairs").graphs)]
    alike = [nx.is_isomorphic(a, b) for a, b in zip(graphs[0::2], graphs[1::2], strict=True)]
    assert all(alike[0::2])
    assert sum(alike[1::2]) <= 2


def test_triplets_hold_the_first_graph_twice_and_the_close_one_first():
    task = EditTask(nodes=(8, 14), p=(0.3, 0.5), positive_edits=0, negative_edits=3)
    batch = task.batch(0, 40, "triplets")
    assert batch.labels is None
    assert batch.num_pairs == 80
    graphs = graphs_of(batch.graphs)
    far = 0
    for first, close, again, distant in zip(*(graphs[i::4] for i in range(4)), strict=True):
        assert first == again
        assert nx.is_isomorphic(networkx_graph(first), networkx_graph(close))
        far += not nx.is_isomorphic(networkx_graph(first), networkx_graph(distant))
    assert far >= 38


def test_choice_is_uniform_over_subsets():
    positions = np.tile([True, False, True, True, False, True], (6000, 1))
    rows, columns = edits._choose(np.random.default_rng(0), positions, np.full(6000, 2))
    assert (np.bincount(rows) == 2).all()
    chosen = np.sort(columns.reshape(-1, 2), axis=1)
    counts = [(chosen == pair).all(axis=1).sum() for pair in combinations((0, 2, 3, 5), 2)]
    assert sum(counts) == 6000
    assert np.abs(np.array(counts) - 1000).max() < 5 * np.sqrt(1000 * 5 / 6)


def test_density_and_sizes_follow_the_ranges():
    dense = EditTask(nodes=(30, 30), p=(0.5, 0.5))
    edges = [
        g.num_edges for step in range(10) for g in graphs_of(dense.batch(step, 20, "pairs").graphs)
    ]
    # 200 independent graphs (each twice) of 435 places: five standard errors.
    assert abs(np.mean(edges) / 435 - 0.5) < 5 * 0.5 / np.sqrt(435 * 200)
    wide = EditTask(nodes=(20, 29), p=(0.3, 0.7))
    graphs = [g for step in range(20) for g in graphs_of(wide.batch(step, 50, "pairs").graphs)][::2]
    sizes = np.bincount([g.num_nodes for g in graphs])[20:]
    assert len(sizes) == 10
    assert np.abs(sizes - 100).max() < 5 * np.sqrt(100 * 0.9)
    density = [2 * g.num_edges / (g.num_nodes * (g.num_nodes - 1)) for g in graphs]
    assert abs(np.mean(density) - 0.5) < 0.02
    assert abs(np.std(density) - np.sqrt(0.4**2 / 12 + 0.25 / 300)) < 0.02


def test_seldom_connected_graphs_keep_the_conditional_distribution():
    """Connected graphs of 4 nodes at p = 0.3, against all 64 graphs counted one by one."""
    weights: dict[int, float] = {}
    positions = list(combinations(range(4), 2))
    for present in range(64):
        chosen = [number for bit, number in enumerate(positions) if present >> bit & 1]
        graph = nx.empty_graph(4)
        graph.add_edges_from(chosen)
        if nx.is_connected(graph) and len(chosen) <= 5:  # one place must be absent
            weights[len(chosen)] = weights.get(len(chosen), 0) + 0.3 ** len(chosen) * 0.7 ** (
                6 - len(chosen)
            )
    rng = np.random.default_rng(0)
    slots, _ = edits._connected_graphs(rng, np.full(4000, 4), np.full(4000, 0.3), 4, 1)
    actual = np.bincount(slots.sum(axis=1), minlength=6) / 4000
    for edges, weight in weights.items():
        expected = weight / sum(weights.values())
        assert abs(actual[edges] - expected) < 5 * np.sqrt(expected * (1 - expected) / 4000)


@pytest.mark.parametrize("width", [5, 20, 64, 70, 130])
def test_connectivity_agrees_with_networkx(width):
    rng = np.random.default_rng(width)
    nodes = rng.integers(2, width + 1, size=60)
    matrices = np.zeros((60, width, width), dtype=bool)
    for matrix, n in zip(matrices, nodes, strict=True):
        upper = np.triu(rng.random((n, n)) < np.log(n) / n, 1)
        matrix[:n, :n] = upper | upper.T
    expected = [
        nx.is_connected(nx.from_numpy_array(m[:n, :n]))
        for m, n in zip(matrices, nodes, strict=True)
    ]
    assert 0 < sum(expected) < 60
    assert edits._connected(matrices, nodes).tolist() == expected


def test_a_long_path_is_connected():
    path = np.zeros((1, 100, 100), dtype=bool)
    path[0, np.arange(99), np.arange(1, 100)] = True
    path |= path.transpose(0, 2, 1)
    assert edits._connected(path, np.array([100])).all()


@pytest.mark.parametrize("mode", ["pairs", "triplets"])
def test_same_batches_in_any_order_of_steps(mode, fresh_chunks):
    steps = [0, 1, 150, 7, 149, 10_000]
    first = [EditTask(seed=3).batch(step, 20, mode) for step in steps]
    fresh_chunks()
    again = [EditTask(seed=3).batch(step, 20, mode) for step in reversed(steps)]
    assert all(same(a, b) for a, b in zip(first, reversed(again), strict=True))
    assert not any(same(a, b) for a, b in combinations(first, 2))


def test_no_batch_comes_twice():
    """Over more steps than are drawn at once."""
    task = EditTask(nodes=(40, 40), p=(0.3, 0.3))
    batches = [task.batch(step, 20, "pairs") for step in range(60)]
    assert len({batch.graphs.incoming.neighbours.numpy().tobytes() for batch in batches}) == 60


def test_seeds_give_other_data():
    assert not same(EditTask(seed=1).batch(0, 20, "pairs"), EditTask(seed=2).batch(0, 20, "pairs"))


@pytest.mark.parametrize("mode", ["pairs", "triplets"])
@pytest.mark.parametrize("world", [2, 3])
def test_ranks_share_the_joint_batch(mode, world):
    joint = MIXED.batch(4, 10, mode)
    count = 2 if mode == "pairs" else 4
    graphs = graphs_of(joint.graphs)
    examples = [graphs[i : i + count] for i in range(0, len(graphs), count)]
    for rank in range(world):
        part = MIXED.batch(4, 10, mode, rank=rank, world=world)
        expected = [graph for example in examples[rank::world] for graph in example]
        assert graphs_of(part.graphs) == expected
        if joint.labels is not None:
            assert torch.equal(part.labels, joint.labels[rank::world])


def test_threads_see_the_same_batches(fresh_chunks):
    steps = [step * 37 for step in range(24)]
    serial = [MIXED.batch(step, 20, "pairs") for step in steps]
    fresh_chunks()
    with ThreadPoolExecutor(4) as pool:
        parallel = list(pool.map(lambda step: MIXED.batch(step, 20, "pairs"), steps))
    assert all(same(a, b) for a, b in zip(serial, parallel, strict=True))


def test_changing_a_batch_leaves_the_next_alone():
    first = EditTask(seed=9).batch(0, 4, "pairs")
    first.graphs.incoming.neighbours.zero_()
    first.labels.zero_()
    again = EditTask(seed=9).batch(0, 4, "pairs")
    assert again.graphs.incoming.neighbours.any()
    assert again.labels.tolist() == [1, -1, 1, -1]


def test_evaluation_sets_are_fixed_and_apart():
    task = EditTask(nodes=(8, 12), p=(0.3, 0.5), evaluation_size=150)
    test = task.evaluation_set("test")
    assert len(test.pairs) == len(test.triplets) == 150
    assert test.labels.sum() == 0
    for first, second in test.pairs:
        assert nx.is_connected(networkx_graph(first))
        assert first.num_edges == second.num_edges
    other_seed = EditTask(nodes=(8, 12), p=(0.3, 0.5), evaluation_size=150, seed=1)
    assert other_seed.evaluation_set("test").digest == test.digest
    validation = task.evaluation_set("validation")
    assert validation.digest != test.digest
    seen = {graph for group in (*test.pairs, *test.triplets) for graph in group}
    assert not seen & {g for group in (*validation.pairs, *validation.triplets) for g in group}
    assert not seen & set(graphs_of(task.batch(0, 150, "pairs").graphs))


def test_a_larger_evaluation_set_begins_with_the_smaller():
    small = EditTask(evaluation_size=30).evaluation_set("test")
    large = EditTask(evaluation_size=130).evaluation_set("test")
    assert large.pairs[:30] == small.pairs
    assert large.triplets[:30] == small.triplets
    assert len(large.pairs) == 130


def test_triplets_of_the_evaluation_set_are_close_then_far():
    task = EditTask(nodes=(10, 14), p=(0.3, 0.5), positive_edits=0, evaluation_size=40)
    for first, close, _ in task.evaluation_set("validation").triplets:
        assert nx.is_isomorphic(networkx_graph(first), networkx_graph(close))


def test_digest_depends_on_order_and_labels():
    a, b = Graph(2, [(0, 1)]), Graph(3, [(0, 1), (1, 2)])
    labels = np.array([1, -1], dtype=np.float32)
    sets = [
        EvaluationSet(((a, b), (a, a)), labels, ()),
        EvaluationSet(((b, a), (a, a)), labels, ()),
        EvaluationSet(((a, a), (a, b)), labels, ()),
        EvaluationSet(((a, b), (a, a)), -labels, ()),
        EvaluationSet(((a, b), (a, a)), labels, ((a, a, b),)),
    ]
    assert len({s.digest for s in sets}) == len(sets)
    assert EvaluationSet(((a, b), (a, a)), labels.copy(), ()).digest == sets[0].digest


def test_evaluation_set_refuses_labels_that_do_not_fit():
    a = Graph(1)
    with pytest.raises(GraphError, match=r"shape \(1,\)"):
        EvaluationSet(((a, a),), np.ones(2, dtype=np.float32), ())
    with pytest.raises(GraphError, match=r"\+1 and -1, 1 and 0, or booleans.* got 2"):
        EvaluationSet(((a, a),), np.full(1, 2, dtype=np.float32), ())


def test_description_rebuilds_the_task():
    description = json.loads(json.dumps(MIXED.describe()))
    assert description.pop("task") == "edits"
    assert EditTask(**description) == MIXED


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"nodes": (1, 5)}, "nodes must be an integer of at least 2, got 1"),
        ({"nodes": (30, 20)}, r"low <= high, got \(30, 20\)"),
        ({"nodes": (20.5, 30)}, "got 20.5"),
        ({"nodes": 20}, r"range \(low, high\), got 20"),
        ({"p": (0.0, 0.5)}, r"between 0 and 1, got \(0.0, 0.5\)"),
        ({"p": (0.5, 1.0)}, r"between 0 and 1, got \(0.5, 1.0\)"),
        ({"p": ("a", "b")}, "must hold numbers"),
        ({"p": (float("nan"), 0.5)}, "low <= high"),
        ({"positive_edits": -1}, "positive_edits .* at least 0, got -1"),
        ({"positive_edits": 2, "negative_edits": 2}, "negative_edits .* at least 3, got 2"),
        ({"nodes": (4, 4), "negative_edits": 4}, "negative_edits=4 is impossible at nodes=4"),
        ({"nodes": (2, 30)}, "negative_edits=2 is impossible at nodes=2"),
        ({"seed": -1}, "seed .* at least 0, got -1"),
        ({"evaluation_size": 0}, "evaluation_size .* at least 1, got 0"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        EditTask(**settings)


def test_the_fewest_nodes_that_serve_are_accepted():
    batch = EditTask(nodes=(4, 4), p=(0.5, 0.5)).batch(0, 10, "pairs")
    assert {graph.num_edges for graph in graphs_of(batch.graphs)} <= {3, 4}


def test_graphs_that_are_never_connected_end_in_an_error():
    with pytest.raises(ConfigError, match=r"30 nodes and p=0.01 .*raise p"):
        EditTask(nodes=(30, 30), p=(0.01, 0.01)).batch(0, 20, "pairs")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"step": -1}, "step .* at least 0, got -1"),
        ({"size": 0}, "size .* at least 1, got 0"),
        ({"size": 2, "world": 3}, "size .* at least 3, got 2"),
        ({"rank": 2, "world": 2}, r"rank must lie in 0\.\.1, got 2"),
        ({"mode": "quads"}, "mode must be 'pairs' or 'triplets', got 'quads'"),
    ],
)
def test_impossible_batches_are_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        EditTask().batch(**{"step": 0, "size": 4, "mode": "pairs", **arguments})


def test_unknown_split_is_refused():
    with pytest.raises(ConfigError, match="got 'train'"):
        EditTask().evaluation_set("train")


def test_degrees_past_a_byte_are_packed_right():
    task = EditTask(nodes=(300, 300), p=(0.95, 0.95))
    batch = task.batch(0, 2, "pairs").graphs
    assert batch.in_degrees.max() > 255
    assert torch.equal(batch.in_degrees, torch.bincount(batch.incoming.neighbours))
