"""The graph record: what it refuses, renumbering, content digests, immutability."""

from __future__ import annotations

import copy
import dataclasses
import doctest
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphkin.errors import GraphError
from graphkin.graphs import Graph, TokenBags, WordBags, graph
from tests.graphs.graph_strategies import graphs

PAIR = [(0, 1)]

BAD = {
    "no nodes": ({"num_nodes": 0}, "num_nodes"),
    "negative nodes": ({"num_nodes": -1}, "-1"),
    "float nodes": ({"num_nodes": 2.0}, "integer"),
    "bool nodes": ({"num_nodes": True}, "integer"),
    "text nodes": ({"num_nodes": "3"}, "'3'"),
    "too many nodes": ({"num_nodes": 2**31}, str(2**31)),
    "text direction": ({"directed": "no"}, "'no'"),
    "no direction": ({"directed": None}, "None"),
    "edge past the end": ({"edges": [(0, 1), (1, 2)]}, r"edge 1 is \(1, 2\), but nodes are 0..1"),
    "negative edge": ({"edges": [(0, -1)]}, "edge 0"),
    "flat edges": ({"edges": [0, 1]}, r"\(E, 2\)"),
    "edges of three": ({"edges": [(0, 1, 1)]}, r"\(1, 3\)"),
    "transposed edges": ({"edges": [[0, 0, 1], [1, 1, 0]]}, r"\(2, 3\)"),
    "ragged edges": ({"edges": [(0, 1), (0,)]}, "regular"),
    "float edges": ({"edges": [(0.0, 1.0)]}, "float64"),
    "bool edges": ({"edges": [(False, True)]}, "bool"),
    "text edges": ({"edges": [("0", "1")]}, "integers"),
    "set of edges": ({"edges": {(0, 1)}}, "integers"),
    "edge past int32": ({"edges": [(0, 2**40)]}, str(2**40)),
    "edge past int64": ({"edges": [(0, 2**80)]}, "integers"),
    "both node inputs": (
        {"node_features": [[1.0], [2.0]], "node_tokens": [[1], [2]]},
        "node_features or node_tokens",
    ),
    "both edge inputs": (
        {"edges": PAIR, "edge_features": [[1.0]], "edge_types": [0]},
        "edge_features or edge_types",
    ),
    "too few feature rows": ({"node_features": [[1.0]]}, "1 rows for 2 nodes"),
    "flat features": ({"node_features": [1.0, 2.0]}, r"\(2, F\)"),
    "ragged features": ({"node_features": [[1.0], [1.0, 2.0]]}, "regular"),
    "features of no columns": ({"node_features": [[], []]}, "no columns"),
    "nan": ({"node_features": [[1.0, 2.0], [3.0, np.nan]]}, r"node_features\[1, 1\] is nan"),
    "infinity": ({"node_features": [[np.inf], [1.0]]}, "finite"),
    "past float32": ({"node_features": [[1e300], [1.0]]}, "finite"),
    "text features": ({"node_features": [["a"], ["b"]]}, "numbers"),
    "objects": ({"node_features": [[None], [1.0]]}, "object"),
    "complex": ({"node_features": [[1j], [1j]]}, "complex"),
    "tensor with gradient": ({"node_features": torch.ones(2, 1, requires_grad=True)}, "detach"),
    "too few bags": ({"node_tokens": [[1]]}, "1 bags for 2 nodes"),
    "no bags": ({"node_tokens": []}, "0 bags for 2 nodes"),
    "tokens without bags": ({"node_tokens": [1, 2]}, "one list of token ids"),
    "one number": ({"node_tokens": 3}, "one list of token ids"),
    "missing bag": ({"node_tokens": [None, [1]]}, "one list of token ids"),
    "nested bags": ({"node_tokens": [[[1, 2]], [[3, 4]]]}, "flat"),
    "negative token": ({"node_tokens": [[1], [-2]]}, "-2"),
    "float token": ({"node_tokens": [[1.5], [2]]}, "float64"),
    "text token": ({"node_tokens": ["ab", "c"]}, "integers"),
    "token past int32": ({"node_tokens": [[2**31], []]}, str(2**31)),
    "offsets fall": (
        {"node_tokens": TokenBags(np.arange(2), np.array([0, 3, 2]))},
        "rise from 0 to 2",
    ),
    "offsets start late": (
        {"node_tokens": TokenBags(np.arange(2), np.array([1, 1, 2]))},
        "rise from 0 to 2",
    ),
    "offsets end early": (
        {"node_tokens": TokenBags(np.arange(2), np.array([0, 1, 1]))},
        "rise from 0 to 2",
    ),
    "offsets in two dimensions": (
        {"node_tokens": TokenBags(np.arange(2), np.array([[0], [1], [2]]))},
        "flat",
    ),
    "edge features without edges": ({"edge_features": [[1.0]]}, "1 rows for 0 edges"),
    "too few edge features": ({"edges": PAIR * 2, "edge_features": [[1.0]]}, "1 rows for 2 edges"),
    "too many types": ({"edges": PAIR, "edge_types": [1, 2]}, r"\(1,\)"),
    "types in two dimensions": ({"edges": PAIR, "edge_types": [[1]]}, r"\(1, 1\)"),
    "negative type": ({"edges": PAIR, "edge_types": [-1]}, "-1"),
    "float type": ({"edges": PAIR, "edge_types": [1.0]}, "float64"),
}


@pytest.mark.parametrize("case", BAD)
def test_refuses_by_naming_what_is_wrong(case: str) -> None:
    fields, message = BAD[case]
    with pytest.raises(GraphError, match=message):
        Graph(**{"num_nodes": 2, **fields})


@pytest.mark.parametrize("order", [[0, 0, 1], [0, 1], [1, 2, 3], [0.0, 1.0, 2.0], [[0, 1, 2]]])
def test_refuses_an_order_that_is_no_permutation(order: Any) -> None:
    with pytest.raises(GraphError, match="order"):
        Graph(3).permuted(order)


def test_takes_the_smallest_graph_and_any_integer_dtype() -> None:
    assert Graph(1).edges.shape == (0, 2)
    assert Graph(1, [(0, 0), (0, 0)]).num_edges == 2
    assert Graph(np.int64(3), np.array([[2, 0]], dtype=np.uint8)) == Graph(3, [(2, 0)])
    assert Graph(1, edge_features=[]).edge_kind == "dense"
    assert Graph(2, node_tokens=[[], []]).node_kind == "tokens"


@given(graphs(words=None), st.data())
def test_permuted_moves_every_node_with_its_input(before: Graph, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(before.num_nodes)))
    after = before.permuted(order)
    assert after.edges.tolist() == [[order[u], order[v]] for u, v in before.edges.tolist()]
    for old, new in enumerate(order):
        if before.node_features is not None and after.node_features is not None:
            assert after.node_features[new].tobytes() == before.node_features[old].tobytes()
        if before.node_tokens is not None and after.node_tokens is not None:
            assert after.node_tokens.bag(new) == before.node_tokens.bag(old)
    for trait in ("directed", "node_kind", "edge_kind"):
        assert getattr(after, trait) == getattr(before, trait)
    for name in ("edge_features", "edge_types"):
        assert np.array_equal(after.arrays().get(name, 0), before.arrays().get(name, 0))
    assert after.permuted(np.argsort(order)) == before


@given(graphs(words=None))
def test_digest_depends_on_the_content_alone(made: Graph) -> None:
    again = remade(made)
    assert again is not made
    assert (again.digest(), hash(again)) == (made.digest(), hash(made))
    assert again == made


@given(graphs(words=None), st.data())
def test_digest_changes_with_every_part(made: Graph, data: st.DataObject) -> None:
    assert remade(made, directed=not made.directed) != made
    for name, array in made.arrays().items():
        if name in ("token_offsets", "word_offsets") or not array.size:
            continue
        changed = array.copy()
        where = data.draw(st.integers(0, array.size - 1))
        if name == "edges":
            if made.num_nodes == 1:
                continue
            changed.flat[where] = (changed.flat[where] + 1) % made.num_nodes
        else:
            changed.flat[where] = 7 if changed.flat[where] != 7 else 8
        assert remade(made, **{name: changed}) != made


def test_digest_tells_apart_graphs_with_equal_bytes() -> None:
    pairs = [
        (Graph(2), Graph(3)),
        (Graph(2, PAIR), Graph(2, PAIR * 2)),
        (Graph(2), Graph(2, node_tokens=[[], []])),
        (Graph(2, node_tokens=[[1, 2], []]), Graph(2, node_tokens=[[1], [2]])),
        (Graph(2, node_features=[[1, 2], [3, 4]]), Graph(4, node_features=[[1], [2], [3], [4]])),
        (Graph(2, PAIR, edge_types=[0]), Graph(2, PAIR, edge_features=[[0.0]])),
        (Graph(1, edge_types=[]), Graph(1)),
        (Graph(2, [(0, 1)]), Graph(2, [(1, 0)])),
    ]
    for first, second in pairs:
        assert first != second
    assert Graph(1) != "a graph"


@given(graphs(words=None))
def test_nothing_can_be_changed_after_the_making(made: Graph) -> None:
    digest = made.digest()
    for array in made.arrays().values():
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    for field in dataclasses.fields(made):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(made, field.name, None)
    assert made.digest() == digest


def test_keeps_no_hold_on_the_arrays_it_was_made_from() -> None:
    edges = np.array([[0, 1]], dtype=np.int32)
    features = np.ones((2, 1), dtype=np.float32)
    types = np.array([3], dtype=np.int32)
    bags = TokenBags(np.array([5], dtype=np.int32), np.array([0, 1, 1]))
    dense = Graph(2, edges, node_features=features, edge_types=types)
    bagged = Graph(2, edges, node_tokens=bags, edge_features=features[:1])
    digests = dense.digest(), bagged.digest()
    for array in (edges, features, types, bags.ids, bags.offsets):
        array[...] = 0
    assert (dense.digest(), bagged.digest()) == digests


def test_repr_says_what_kind_it_is() -> None:
    made = Graph(2, PAIR, directed=True, node_tokens=[[1], []], edge_types=[4])
    assert repr(made) == "Graph(num_nodes=2, num_edges=1, directed, tokens nodes, types edges)"
    assert doctest.testmod(graph).failed == 0


def remade(made: Graph, **changes: Any) -> Graph:
    """The graph built anew from plain lists, with some arrays or the direction replaced."""
    values: dict[str, Any] = made.arrays() | changes
    tokens = None
    if "token_ids" in values:
        tokens = TokenBags(np.asarray(values["token_ids"]), values["token_offsets"])
    words = None
    if "word_hashes" in values:
        words = WordBags(np.asarray(values["word_hashes"]), values["word_offsets"])
    features = values.get("node_features")
    return Graph(
        made.num_nodes,
        np.asarray(values["edges"]).tolist(),
        directed=values.get("directed", made.directed),
        node_features=None if features is None else features.astype(np.float64),
        node_tokens=tokens,
        edge_features=values.get("edge_features"),
        edge_types=values.get("edge_types"),
        node_words=words,
    )


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_copies_are_equal_and_immutable_too(copied: Callable[[Graph], Graph]) -> None:
    graph = Graph(3, [(0, 1)], directed=True, node_tokens=[[1], [], [2, 2]], edge_types=[4])
    twin = copied(graph)
    assert twin == graph
    assert all(not array.flags.writeable for array in twin.arrays().values())
