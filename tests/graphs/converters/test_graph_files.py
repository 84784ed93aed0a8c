"""Graph files of every format, alone and in folders, with names, labels and splits."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest

from graphkin.errors import FormatError, GraphError
from graphkin.graphs import Graph
from graphkin.graphs.converters.attributes import AttributeNames
from graphkin.graphs.converters.dot import write_dot
from graphkin.graphs.converters.graph_files import read_graphs
from graphkin.graphs.converters.graphml import read_graphml, write_graphml
from graphkin.graphs.converters.json_lines import read_json_lines, write_json_lines
from graphkin.graphs.converters.named import NamedGraph
from graphkin.graphs.converters.tudataset.dataset import write_tudataset
from graphkin.graphs.encoding import dump_graph
from graphkin.graphs.store import GraphStore
from tests.graph_samples import circles, molecules

WATER = Graph(3, [(0, 1), (0, 2)], node_labels=["O", "H", "H"])
ODD = Graph(2, [(0, 1)], node_labels=['a "b" <c> & d', "é"], node_features=[[1.5], [2.0]])


@pytest.mark.parametrize("graph", [WATER, ODD, circles(1)[0][0]])
@pytest.mark.parametrize("ending", ["graphml", "dot", "jsonl"])
def test_text_labels_survive(tmp_path: Path, ending: str, graph: Graph) -> None:
    file = tmp_path / f"one.{ending}"
    if ending == "graphml":
        write_graphml(file, graph)
    elif ending == "dot":
        write_dot(file, graph)
    else:
        write_json_lines(file, [NamedGraph("one", graph)])
    (named,) = read_graphs(file)
    assert named.graph == graph
    assert named.graph.node_labels == graph.node_labels


@pytest.mark.parametrize(("ending", "write"), [("gexf", nx.write_gexf), ("gml", nx.write_gml)])
def test_formats_of_networkx(tmp_path: Path, ending: str, write: object) -> None:
    network = nx.Graph()
    network.add_node("x", atom="O", charge=1.5)
    network.add_node("y", atom="H", charge=0.5)
    network.add_edge("x", "y", bond=2)
    write(network, tmp_path / f"water.{ending}")  # type: ignore[operator]
    names = AttributeNames(node_labels="atom", node_features="charge", edge_type="bond")
    (named,) = read_graphs(tmp_path, names)
    assert named.name == f"water.{ending}"
    assert named.graph.node_labels == ("O", "H")
    assert named.graph.node_features is not None
    assert named.graph.node_features.tolist() == [[1.5], [0.5]]
    assert named.graph.edge_types is not None
    assert named.graph.edge_types.tolist() == [2]
    (constant,) = read_graphs(tmp_path)
    assert constant.graph.node_kind == "constant"
    with pytest.raises(FormatError, match="has no attribute 'colour'"):
        read_graphs(tmp_path, AttributeNames(node_labels="colour"))


def test_a_folder_for_each_class(tmp_path: Path) -> None:
    for kind in ("acid", "base"):
        (tmp_path / kind).mkdir()
        for number in range(2):
            write_graphml(tmp_path / kind / f"{number}.graphml", WATER)
    graphs = read_graphs(tmp_path)
    assert [named.label for named in graphs] == ["acid", "acid", "base", "base"]
    assert graphs[0].name == "acid/0.graphml"


def test_tudatasets_and_stores(tmp_path: Path) -> None:
    graphs, labels = circles(6)
    write_tudataset(tmp_path / "TU", "TU", graphs, labels)
    read = read_graphs(tmp_path / "TU")
    assert [(named.name, named.label) for named in read] == [(str(n), n % 2) for n in range(6)]
    store = GraphStore.create(tmp_path / "all.graphs")
    metadata = [{"label": label, "split": "test"} for label in labels]
    store.append(graphs, names=[f"g{n}" for n in range(6)], metadata=metadata)
    (first, *_) = read_graphs(str(tmp_path / "all.graphs"))
    assert (first.name, first.label, first.split, first.graph) == ("g0", 0, "test", graphs[0])


def test_lines(tmp_path: Path) -> None:
    graphs, labels = molecules(4)
    file = tmp_path / "all.jsonl"
    named = [NamedGraph(f"m{n}", g, labels[n], "training") for n, g in enumerate(graphs)]
    write_json_lines(file, named)
    read = read_json_lines(file)
    assert [(n.name, n.graph, n.label, n.split) for n in read] == [
        (n.name, n.graph, n.label, n.split) for n in named
    ]
    file.write_text('{"edges": [[0, 1]], "node_labels": ["a", "b"]}\n\n{"num_nodes": 3}\n')
    assert [(n.name, n.graph.num_nodes) for n in read_json_lines(file)] == [("0", 2), ("2", 3)]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "line 1: it is not JSON"),
        ("[1]", "line 1: it must be an object"),
        ('{"nodes": 3}', "unknown key 'nodes'"),
        ('{"edges": [[0, 1]]}', "num_nodes must lie in"),
        ('{"num_nodes": 2, "edges": [[0, 2]]}', "edge 0 is"),
        ('{"num_nodes": 2, "node_labels": ["a"]}', "1 labels for 2 nodes"),
        ('{"num_nodes": 1, "node_labels": [3]}', r"node_labels\[0\] is 3"),
    ],
)
def test_broken_lines(tmp_path: Path, line: str, problem: str) -> None:
    file = tmp_path / "broken.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(FormatError, match=problem):
        read_json_lines(file)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="does not exist"):
        read_graphs(tmp_path / "none.graphml")
    with pytest.raises(FormatError, match="holds neither a TUDataset"):
        read_graphs(tmp_path)
    (tmp_path / "x.txt").write_text("")
    with pytest.raises(FormatError, match="not of a format that graphkin reads"):
        read_graphs(tmp_path / "x.txt")
    (tmp_path / "x.gexf").write_text('<!DOCTYPE x [<!ENTITY a "b">]><gexf/>')
    with pytest.raises(FormatError, match="DTD"):
        read_graphs(tmp_path / "x.gexf")
    (tmp_path / "x.gml").write_text("graph [")
    with pytest.raises(FormatError, match="is not GML"):
        read_graphs(tmp_path / "x.gml")
    write_json_lines(tmp_path / "a.jsonl", [NamedGraph("same", WATER), NamedGraph("same", WATER)])
    with pytest.raises(FormatError, match="two graphs are called 'same'"):
        read_graphs(tmp_path / "a.jsonl")


def test_labels_are_kept_where_text_is_kept(tmp_path: Path) -> None:
    with pytest.raises(GraphError, match="GraphML or JSON lines"):
        dump_graph(WATER)
    with pytest.raises(GraphError, match="GraphML or JSON lines"):
        GraphStore.create(tmp_path / "s.graphs").append([WATER])
    with pytest.raises(GraphError, match="GraphML or JSON lines"):
        write_tudataset(tmp_path, "W", [WATER], [0])
    write_graphml(tmp_path / "w.graphml", WATER.permuted([2, 0, 1]))
    assert read_graphml(tmp_path / "w.graphml").node_labels == ("H", "H", "O")


@pytest.mark.parametrize("line", ['{"node_features": 5}', '{"node_tokens": true}'])
def test_a_line_whose_nodes_cannot_be_counted(tmp_path: Path, line: str) -> None:
    (tmp_path / "all.jsonl").write_text(line)
    with pytest.raises(FormatError, match="line 1: "):
        read_json_lines(tmp_path / "all.jsonl")
