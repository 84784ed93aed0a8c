"""Packed batches against plain loops, and how pairs are grouped by size."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphkin.errors import GraphError
from graphkin.graphs import Graph, GraphBatch, PairBatch
from graphkin.graphs.batch import Adjacency
from graphkin.graphs.packing import BLOCK_CELLS, pair_blocks
from graphkin.graphs.pair_groups import GROUP_OVERHEAD, MAX_PADDING, group_pairs
from tests.graphs.graph_strategies import EDGE_KINDS, NODE_KINDS, graphs

same_kind_graphs = st.tuples(
    st.sampled_from(NODE_KINDS), st.sampled_from(EDGE_KINDS), st.booleans()
).flatmap(
    lambda kinds: st.lists(
        graphs(node_kind=kinds[0], edge_kind=kinds[1], directed=kinds[2], widths=(2, 3)),
        min_size=1,
        max_size=5,
    )
)


def messages_by_loop(items: Sequence[Graph]) -> list[tuple[int, int, int]]:
    """(receiver, sender, row of the edge input) of every message, one at a time."""
    messages, first_node, row = [], 0, 0
    for item in items:
        for source, target in item.edges.tolist():
            messages.append((first_node + target, first_node + source, row))
            if not item.directed and source != target:
                messages.append((first_node + source, first_node + target, row))
            row += 1
        first_node += item.num_nodes
    return messages


def entries(adjacency: Adjacency) -> list[tuple[int, int, int]]:
    """(owner, neighbour, row), read through the offsets as a kernel does."""
    triples = []
    for owner in range(len(adjacency.offsets) - 1):
        for slot in range(int(adjacency.offsets[owner]), int(adjacency.offsets[owner + 1])):
            assert int(adjacency.owners[slot]) == owner
            triples.append((owner, int(adjacency.neighbours[slot]), int(adjacency.edge_rows[slot])))
    assert len(triples) == len(adjacency.neighbours)
    return triples


@given(same_kind_graphs)
@settings(max_examples=60)
def test_packing_equals_a_plain_loop(items: list[Graph]) -> None:
    batch = GraphBatch.pack(items)
    expected = messages_by_loop(items)
    assert sorted(entries(batch.incoming)) == sorted(expected)
    assert sorted(entries(batch.outgoing)) == sorted((s, r, row) for r, s, row in expected)
    assert batch.num_messages == len(expected)
    assert batch.in_degrees.tolist() == [
        sum(receiver == node for receiver, _, _ in expected) for node in range(batch.num_nodes)
    ]
    assert batch.node_graph.tolist() == [
        number for number, item in enumerate(items) for _ in range(item.num_nodes)
    ]
    assert batch.node_offsets.tolist() == [
        sum(item.num_nodes for item in items[:stop]) for stop in range(len(items) + 1)
    ]
    assert (batch.num_graphs, batch.directed) == (len(items), items[0].directed)
    assert (batch.node_kind, batch.edge_kind) == (items[0].node_kind, items[0].edge_kind)


@given(same_kind_graphs)
@settings(max_examples=50)
def test_packed_input_is_that_of_the_graphs_in_turn(items: list[Graph]) -> None:
    batch = GraphBatch.pack(items)
    for name in ("node_features", "edge_features", "edge_types"):
        packed = getattr(batch, name)
        arrays = [getattr(item, name) for item in items]
        assert (packed is None) == (arrays[0] is None)
        if packed is not None:
            assert packed.tolist() == [row for array in arrays for row in array.tolist()]
    if batch.token_ids is not None and batch.token_offsets is not None:
        stops = batch.token_offsets.tolist()
        bags = [batch.token_ids[a:b].tolist() for a, b in pairwise(stops)]
        assert bags == [
            item.node_tokens.bag(node)
            for item in items
            if item.node_tokens is not None
            for node in range(item.num_nodes)
        ]


def test_self_loops_give_one_message_and_parallel_edges_one_each() -> None:
    loop = Graph(1, [(0, 0)])
    parallel = Graph(2, [(0, 1), (0, 1), (1, 0)])
    lonely = Graph(1)
    batch = GraphBatch.pack([loop, parallel, lonely])
    assert batch.in_degrees.tolist() == [1, 3, 3, 0]
    assert entries(batch.incoming)[0] == (0, 0, 0)
    directed = GraphBatch.pack([Graph(2, [(0, 1), (0, 1), (1, 1)], directed=True)])
    assert directed.in_degrees.tolist() == [0, 3]
    assert directed.outgoing.offsets.tolist() == [0, 2, 3]


def test_graphs_without_edges_pack_to_no_messages() -> None:
    batch = GraphBatch.pack([Graph(1, edge_types=[]), Graph(3, edge_types=[])])
    assert batch.num_messages == 0
    assert batch.incoming.offsets.tolist() == [0] * 5
    assert batch.outgoing.offsets.tolist() == [0] * 5
    assert batch.edge_kind == "types"


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (Graph(2, directed=True), "graph 1 of the batch has directed True"),
        (Graph(2, node_features=[[1.0], [1.0]]), "node_kind 'dense'"),
        (Graph(2, node_tokens=[[1], []]), "node_kind 'tokens'"),
        (Graph(2, edge_types=[]), "edge_kind 'types'"),
        (Graph(2, edge_features=[]), "edge_kind 'dense'"),
    ],
)
def test_refuses_mixed_kinds(second: Graph, message: str) -> None:
    for pack in (GraphBatch.pack, lambda items: PairBatch.pack([tuple(items)])):
        with pytest.raises(GraphError, match=message):
            pack([Graph(2), second])


def test_refuses_mixed_widths_and_empty_batches() -> None:
    narrow, wide = Graph(1, node_features=[[1.0]]), Graph(1, node_features=[[1.0, 2.0]])
    with pytest.raises(GraphError, match="2 node_features columns, graph 0 has 1"):
        GraphBatch.pack([narrow, wide])
    with pytest.raises(GraphError, match="at least one graph"):
        GraphBatch.pack([])
    with pytest.raises(GraphError, match="at least one pair"):
        PairBatch.pack([])


@given(st.lists(graphs(node_kind="constant", edge_kind="constant", directed=False), min_size=1))
@settings(max_examples=20)
def test_sorted_messages_give_the_same_batch(items: list[Graph]) -> None:
    packed = GraphBatch.pack(items)
    sorted_in = GraphBatch.from_sorted_messages(
        packed.node_offsets.numpy(),
        packed.incoming.offsets.numpy(),
        packed.incoming.neighbours.numpy(),
    )
    for name in ("offsets", "neighbours", "owners"):
        assert torch.equal(getattr(sorted_in.incoming, name), getattr(packed.incoming, name))
    assert torch.equal(sorted_in.node_graph, packed.node_graph)


def test_moving_takes_every_tensor_along() -> None:
    item = Graph(2, [(0, 1)], node_tokens=[[1], [2]], edge_types=[3])
    pairs = PairBatch.pack([(item, item)], labels=[1.0]).to("meta")
    tensors = [pairs.left, pairs.right, pairs.labels, *_tensors(pairs.graphs)]
    tensors += _tensors(pairs.graphs.incoming)
    assert {tensor.device.type for tensor in tensors if tensor is not None} == {"meta"}


def test_pairs_and_triplets_keep_their_order() -> None:
    a, b, c = Graph(1), Graph(2), Graph(3)
    pairs = PairBatch.pack([(a, b), (c, a)], labels=[1, -1])
    sizes = pairs.graphs.node_offsets.diff()
    assert sizes[pairs.left].tolist() == [1, 3]
    assert sizes[pairs.right].tolist() == [2, 1]
    assert pairs.labels is not None
    assert pairs.labels.tolist() == [1.0, -1.0]
    triplets = PairBatch.pack_triplets([(a, b, c), (b, c, a)])
    sizes = triplets.graphs.node_offsets.diff()
    assert sizes[triplets.left].tolist() == [1, 1, 2, 2]
    assert sizes[triplets.right].tolist() == [2, 3, 3, 1]
    assert (triplets.num_pairs, triplets.labels) == (4, None)


def test_refuses_pairs_that_are_none() -> None:
    a, b = Graph(1), Graph(2)
    wrong: list[tuple[Any, str]] = [
        (lambda: PairBatch.pack([(a, b), (a, b, b)]), "pair 1 holds 3 graphs"),  # type: ignore
        (lambda: PairBatch.pack_triplets([(a, b)]), "triplet 0 holds 2 graphs"),  # type: ignore
        (lambda: PairBatch.pack([(a, b)], labels=[1, 1]), "2 labels for 1 pairs"),
        (lambda: PairBatch.interleaved(GraphBatch.pack([a])), "even number of graphs, got 1"),
        (lambda: PairBatch.interleaved(GraphBatch.pack([a, b]), []), "0 labels for 1 pairs"),
    ]
    for make, message in wrong:
        with pytest.raises(GraphError, match=message):
            make()


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=12))
def test_groups_hold_every_pair_once_with_real_nodes_first(sizes: list[tuple[int, int]]) -> None:
    batch = PairBatch.pack([(Graph(n), Graph(m)) for n, m in sizes])
    starts = batch.graphs.node_offsets.tolist()
    ranges = [list(range(start, stop)) for start, stop in pairwise(starts)]
    expected = sorted(
        sorted(pair, key=lambda nodes: (-len(nodes), nodes))
        for pair in zip(ranges[0::2], ranges[1::2], strict=True)
    )
    grouped = []
    for group in batch.groups:
        assert group.rows.shape[1] == int(group.row_sizes.max())
        assert group.columns.shape[1] == int(group.column_sizes.max())
        real = int((group.row_sizes * group.column_sizes).sum())
        assert group.padded == (real < group.cells)
        for block in range(len(group.rows)):
            sides = []
            for nodes, size in (
                (group.rows[block].tolist(), int(group.row_sizes[block])),
                (group.columns[block].tolist(), int(group.column_sizes[block])),
            ):
                assert set(nodes[size:]) <= set(nodes[:size])
                sides.append(nodes[:size])
            assert len(sides[0]) >= len(sides[1])
            grouped.append(sorted(sides, key=lambda nodes: (-len(nodes), nodes)))
    assert sorted(grouped) == expected


@given(st.lists(st.tuples(st.integers(1, 90), st.integers(1, 90)), min_size=1, max_size=10))
def test_grouping_costs_no_more_than_one_group_or_one_each(sizes: list[tuple[int, int]]) -> None:
    groups = groups_of(np.array(sizes))
    cost = sum(group.cells + GROUP_OVERHEAD for group in groups)
    large, small = np.max(sizes, axis=1), np.min(sizes, axis=1)
    in_one = len(sizes) * large.max() * small.max()
    if (large * small).sum() >= (1 - MAX_PADDING) * in_one:
        assert cost <= in_one + GROUP_OVERHEAD
    assert cost <= (large * small).sum() + len(sizes) * GROUP_OVERHEAD


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(1, 600), st.integers(1, 600)), max_size=40))
def test_blocks_hold_every_pair_once_and_few_cells(sizes: list[tuple[int, int]]) -> None:
    left, right = np.array(sizes, dtype=np.int64).reshape(-1, 2).T
    blocks = pair_blocks(left, right)
    assert sorted(number for block in blocks for number in block.tolist()) == list(
        range(len(sizes))
    )
    for block in blocks:
        cells = len(block) * int(left[block].max()) * int(right[block].max())
        assert len(block) == 1 or cells <= BLOCK_CELLS


def test_pairs_of_like_size_share_a_block() -> None:
    sizes = np.array([3, 900, 4, 800, 3])
    assert [sorted(block) for block in pair_blocks(sizes, sizes)] == [[0, 2, 4], [3], [1]]


@pytest.mark.parametrize("shape", [0.5, 0.8, 1.2, 2.0])
@pytest.mark.parametrize("count", [8, 50])
def test_padding_stays_low_where_most_graphs_are_tiny(shape: float, count: int) -> None:
    generator = np.random.default_rng(0)
    sizes = np.minimum(3 + 3 * generator.pareto(shape, size=(count, 2)), 3000).astype(np.int64)
    assert padding_share(groups_of(sizes)) < 0.25


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [16, 128])
def test_padding_stays_low_on_heavy_tailed_sizes(seed: int, count: int) -> None:
    generator = np.random.default_rng(seed)
    exponents = generator.uniform(np.log(3), np.log(3000), size=(count, 2))
    sizes = np.round(np.exp(exponents)).astype(np.int64)
    large, small = sizes.max(axis=1), sizes.min(axis=1)
    in_one_group = 1 - (large * small).sum() / (count * large.max() * small.max())
    groups = groups_of(sizes)
    assert in_one_group > 0.8
    assert padding_share(groups) < 0.25
    assert sum(len(group.rows) for group in groups) == count


def derived(batch: PairBatch) -> dict[str, Any]:
    """What models derive from a batch, computed where it is not there yet."""
    graphs = batch.graphs
    return {
        "groups": batch.groups,
        "outgoing": graphs.outgoing,
        "degree_classes": graphs.degree_classes,
        "in_degrees": graphs.in_degrees,
    }


def directed_pairs() -> PairBatch:
    item = Graph(3, [(0, 1), (1, 2), (1, 2)], directed=True, edge_types=[0, 1, 1])
    return PairBatch.pack([(item, item), (item, Graph(1, [], directed=True, edge_types=[]))])


def test_what_was_derived_stays_on_the_same_device() -> None:
    batch = directed_pairs()
    before = derived(batch)
    there = batch.to("cpu")
    assert there.groups is batch.groups
    assert all(value is before[name] for name, value in derived(there).items())


def test_what_was_derived_moves_to_another_device() -> None:
    """Nothing can be computed on the meta device: what is there must have been brought."""
    batch = directed_pairs()
    before = derived(batch)
    moved = derived(batch.to("meta"))
    assert {group.rows.device.type for group in moved["groups"]} == {"meta"}
    assert moved["outgoing"].neighbours.device.type == "meta"
    assert [tensor.device.type for tensor in moved["degree_classes"]] == ["meta", "meta"]
    assert moved["in_degrees"].shape == before["in_degrees"].shape
    assert before["groups"][0].rows.device.type == "cpu"


def test_a_graph_in_two_pairs_cannot_be_matched() -> None:
    graphs_once = GraphBatch.pack([Graph(2), Graph(2), Graph(2)])
    shared = PairBatch(graphs_once, torch.tensor([0, 0]), torch.tensor([1, 2]))
    with pytest.raises(GraphError, match="exactly one pair"):
        _ = shared.groups


def test_packing_forty_graphs_takes_under_a_millisecond() -> None:
    generator = np.random.default_rng(0)
    items = [Graph(20, generator.integers(0, 20, size=(40, 2))) for _ in range(40)]
    best = float("inf")
    for _ in range(400):
        start = time.perf_counter()
        GraphBatch.pack(items)
        best = min(best, time.perf_counter() - start)
    assert best < 1e-3


def padding_share(groups: Any) -> float:
    """The share of attention work that falls on padding."""
    real = sum(int((group.row_sizes * group.column_sizes).sum()) for group in groups)
    return 1 - real / sum(group.cells for group in groups)


def groups_of(sizes: Any) -> Any:
    offsets = np.concatenate([[0], np.cumsum(np.asarray(sizes).reshape(-1))])
    index = np.arange(len(offsets) - 1)
    return group_pairs(offsets, index[0::2], index[1::2])


def _tensors(record: Any) -> list[torch.Tensor]:
    values = [getattr(record, field.name) for field in dataclasses.fields(record)]
    return [value for value in values if isinstance(value, torch.Tensor)]


@pytest.mark.parametrize("labels", [[1, 0], [True, False], [1, -1], np.array([1.0, 0.0])])
def test_labels_become_signs(labels: Any) -> None:
    pairs = [(Graph(2), Graph(1))] * 2
    for pack in (PairBatch.pack, PairBatch.pack_distinct):
        batch = pack(pairs, labels)
        assert batch.labels is not None
        assert batch.labels.tolist() == [1, -1]
        # Target values stay what they are.
        values = pack(pairs, values=[1, 0]).labels
        assert values is not None
        assert values.tolist() == [1, 0]
        for broken in ([1, 2], [float("nan"), 1]):
            with pytest.raises(GraphError, match="labels must be"):
                pack(pairs, broken)
        with pytest.raises(GraphError, match="finite numbers"):
            pack(pairs, values=[float("nan"), 1])
