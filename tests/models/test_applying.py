"""What trained models do with graphs: states of nodes, matrices of scores, assignments, uploads."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.loader import DataLoader

from graphkin import Graph, GraphBatch, GraphEmbedder, GraphMatcher, ModelConfig
from graphkin.errors import GraphError, MissingDependencyError, ModelError
from graphkin.graphs.converters.from_pyg import to_pyg
from tests.graph_samples import circles

GRAPHS = circles(8)[0]


def test_states_of_nodes() -> None:
    embedder = GraphEmbedder("gnn")
    states = embedder.encode_nodes(iter(GRAPHS))
    assert [len(part) for part in states] == [graph.num_nodes for graph in GRAPHS]
    batch = GraphBatch.pack(GRAPHS[:1])
    with torch.no_grad():
        assert torch.allclose(embedder.network.states(batch), torch.from_numpy(states[0]))
        vector = embedder.network.aggregator(torch.from_numpy(states[0]), batch)
    assert np.allclose(vector.numpy(), embedder.encode(GRAPHS[:1]), atol=1e-5)


@pytest.mark.parametrize("model", [GraphEmbedder("gnn"), GraphMatcher("gmn")])
def test_scores_are_those_of_all_pairs(model: Any) -> None:
    matrix = model.scores(np.array([*GRAPHS[:3], None])[:-1], tuple(GRAPHS))
    pairs = [(query, graph) for query in GRAPHS[:3] for graph in GRAPHS]
    assert np.allclose(matrix.ravel(), model.predict(pairs), rtol=1e-4, atol=1e-5)
    assert model.predict(np.array(pairs, dtype=object)).shape == (24,)


def test_nodes_of_an_isomorphic_graph_are_found() -> None:
    """With labels that tell nodes apart, the assignment is the permutation."""
    graph = Graph(6, [(i, i + 1) for i in range(5)], node_tokens=[[n] for n in range(6)])
    order = [3, 1, 5, 0, 2, 4]
    config = ModelConfig.named("gmn", node_input="tokens", node_input_size=6)
    torch.manual_seed(0)
    matcher = GraphMatcher(config)
    with torch.no_grad():
        matcher.network.nodes.tokens.mul_(30)
    matches = matcher.match(graph, graph.permuted(order), steps=0)
    assert [(match.left, match.right) for match in matches] == list(enumerate(order))
    assert all(0 < match.weight <= 1 for match in matches)
    smaller = Graph(3, [(0, 1)], node_tokens=[[0], [1], [2]])
    matches = matcher.match(smaller, graph)
    assert len(matches) == 3
    assert len({match.right for match in matches}) == 3


def test_models_by_name() -> None:
    assert GraphEmbedder("gnn-strong").config == ModelConfig.named("gnn-strong")
    assert GraphMatcher("gmn-strong").config.similarity == "alignment"
    with pytest.raises(ModelError, match="makes a GraphMatcher"):
        GraphEmbedder("gmn")
    assert ModelConfig.named("gnn", steps=np.int64(3)).steps == 3
    assert type(ModelConfig.named("gnn", steps=np.int64(3)).steps) is int


@pytest.mark.parametrize("directed", [False, True])
def test_batches_of_pyg(directed: bool) -> None:
    rng = np.random.default_rng(0)
    graphs = [
        Graph(
            5,
            [(0, 1), (1, 2), (3, 4)],
            directed=directed,
            node_features=rng.normal(size=(5, 2)),
            edge_types=[0, 1, 1],
        )
        for _ in range(6)
    ]
    (batch,) = DataLoader([to_pyg(graph) for graph in graphs], batch_size=6)
    ours, expected = GraphBatch.from_pyg(batch), GraphBatch.pack(graphs)
    config = ModelConfig.named(
        "gnn", node_input="dense", node_input_size=2, edge_input="types", edge_input_size=2
    )
    embedder = GraphEmbedder(config)
    assert ours.directed == directed
    with torch.no_grad():
        assert torch.allclose(embedder.vectors(ours), embedder.vectors(expected), atol=1e-6)
    with pytest.raises(GraphError, match="takes a torch_geometric Batch"):
        GraphBatch.from_pyg(to_pyg(graphs[0]))


def test_uploads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder stands for the hub, so that nothing leaves the machine."""

    class FolderApi:
        def __init__(self, token: str | None = None) -> None:
            self.token = token

        def create_repo(self, repository: str, **options: Any) -> str:
            assert options == {"repo_type": "model", "exist_ok": True}
            (tmp_path / repository).mkdir(parents=True, exist_ok=True)
            return f"file://{tmp_path / repository}"

        def upload_folder(self, *, repo_id: str, folder_path: str, repo_type: str) -> None:
            assert repo_type == "model"
            shutil.copytree(folder_path, tmp_path / repo_id, dirs_exist_ok=True)

    hub = ModuleType("huggingface_hub")
    hub.HfApi = FolderApi  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    embedder = GraphEmbedder("gnn")
    address = embedder.push_to_hub("me/shapes")
    assert address.endswith("me/shapes")
    restored = GraphEmbedder.from_pretrained(tmp_path / "me" / "shapes")
    assert np.array_equal(restored.encode(GRAPHS), embedder.encode(GRAPHS))
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingDependencyError, match=r"graphkin\[hub\]"):
        embedder.push_to_hub("me/shapes")
