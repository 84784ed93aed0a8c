"""The benchmark of edit distances, on a small set made here; its bound against exact ones."""

from __future__ import annotations

import json
import sys
import tarfile
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

from graphkin.graphs import Graph
from tests.scripts import script

BENCHMARK = script("experiments/ged_benchmark.py")


def network(graph: Graph) -> Any:
    made = nx.Graph()
    for node, label in enumerate(graph.node_labels or ("",) * graph.num_nodes):
        made.add_node(node, label=label)
    made.add_edges_from(graph.edges.tolist())
    return made


def exact(left: Graph, right: Graph) -> int:
    same = nx.isomorphism.categorical_node_match("label", "")
    return int(nx.graph_edit_distance(network(left), network(right), node_match=same))


def molecule(rng: np.random.Generator) -> Graph:
    size = int(rng.integers(2, 6))
    tree = nx.random_labeled_tree(size, seed=int(rng.integers(1 << 30)))
    return Graph(size, list(tree.edges), node_labels=rng.choice(["C", "N"], size).tolist())


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    graphs = [molecule(rng) for _ in range(30)]
    folder = tmp_path_factory.mktemp("ged") / "AIDS700nef"
    folder.mkdir()
    rows = []
    for number, graph in enumerate(graphs):
        twin = next(n for n in range(number + 1) if exact(graphs[n], graph) == 0)
        row = {"split": "test" if number >= 24 else "train", "iso": twin, "n": graph.num_nodes}
        rows.append(row | {"labels": graph.node_labels, "edges": graph.edges.tolist()})
    (folder / "graphs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    distances = np.array([[exact(a, b) for b in graphs] for a in graphs], dtype=np.int16)
    np.save(folder / "ged_full.npy", distances)
    file = folder.parent / "ged.tar.xz"
    with tarfile.open(file, "w:xz") as tar:
        tar.add(folder, "ged/AIDS700nef")
    return file


def test_a_bound_is_never_below_the_distance() -> None:
    rng = np.random.default_rng(1)
    graphs = [molecule(rng) for _ in range(12)]
    for left in graphs:
        assert BENCHMARK.bipartite_bound(left, left.permuted(rng.permutation(left.num_nodes))) >= 0
        assert BENCHMARK.bipartite_bound(left, left) == 0
        for right in graphs:
            assert BENCHMARK.bipartite_bound(left, right) >= exact(left, right)


def test_splits(archive: Path) -> None:
    data = BENCHMARK.read(archive, "AIDS700nef")
    assert [len(data.numbers(part)) for part in ("training", "validation", "test")] == [20, 4, 6]
    assert data.numbers("validation").tolist() == [20, 21, 22, 23]
    kept = data.without_twins()
    assert not kept.has_twin().any()
    assert len(kept.numbers("test")) == 6
    perfect = BENCHMARK.measured(
        data.similarities[np.ix_(data.numbers("test"), data.numbers("training"))],
        data,
        data.numbers("test"),
        data.numbers("training"),
    )
    assert perfect["mse_1e-3"] == 0
    assert perfect["mae_distance"] == pytest.approx(0, abs=1e-6)
    assert perfect["p_at_10"] == 1


def test_a_run_and_its_resumption(
    archive: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    arguments = [str(archive), "--seeds", "1", "--steps", "3", "--runs", str(tmp_path), "--json"]
    monkeypatch.setattr(sys, "argv", ["ged_benchmark.py", *arguments, "--classical"])
    BENCHMARK.main()
    first = json.loads(capsys.readouterr().out)
    BENCHMARK.main()
    again = json.loads(capsys.readouterr().out)
    assert [result["model"] for result in first["results"]] == ["bipartite bound", "gmn", "gnn"]
    for one, other in zip(first["results"], again["results"], strict=True):
        assert one["metrics"] == other["metrics"]
        assert one["metrics"]["test x training"]["mse_1e-3"] > 0
