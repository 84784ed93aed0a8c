"""GraphML: round trips, files of other tools, and files that are refused."""

from __future__ import annotations

import tempfile
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given

from graphkin.errors import FormatError, StorageError
from graphkin.graphs import Graph
from graphkin.graphs.converters.graphml import read_graphml, write_graphml
from tests.graphs.graph_strategies import graphs

FULL = Graph(
    3, [(2, 0), (0, 1), (0, 1), (1, 1)], node_tokens=[[5, 6], [], [7]], edge_types=[0, 1, 2, 3]
)


@given(graphs())
def test_round_trip_is_exact(graph: Graph) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.graphml"
        write_graphml(path, graph)
        assert read_graphml(str(path)) == graph
        assert [entry.name for entry in path.parent.iterdir()] == ["graph.graphml"]


def test_networkx_reads_what_is_written(tmp_path: Path) -> None:
    path = tmp_path / "graph.graphml"
    write_graphml(path, FULL)
    read_back = nx.read_graphml(path, node_type=int, force_multigraph=True)
    assert sorted(read_back.edges(data="type")) == [(0, 1, 1), (0, 1, 2), (0, 2, 0), (1, 1, 3)]
    assert read_back.nodes[0]["tokens"] == "5 6"


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph])
def test_reads_what_networkx_writes(kind: type[nx.Graph], tmp_path: Path) -> None:
    foreign = kind([("a", "b"), ("b", "c"), ("a", "b")])
    nx.set_node_attributes(foreign, {"a": 1.5, "b": 2.5, "c": -1e-30}, "weight")
    nx.set_edge_attributes(foreign, 4, "label")
    path = tmp_path / "foreign.graphml"
    nx.write_graphml(foreign, path)
    plain = read_graphml(path)
    assert (plain.node_kind, plain.edge_kind) == ("constant", "constant")
    assert plain.directed == foreign.is_directed()
    assert plain.num_edges == foreign.number_of_edges()
    named = read_graphml(path, node_features="weight", edge_type="label")
    assert named.node_features is not None
    assert named.node_features[:, 0].tolist() == [1.5, 2.5, np.float32(-1e-30)]
    assert named.edge_types is not None
    assert set(named.edge_types.tolist()) == {4}


YED = """<?xml version="1.0" encoding="UTF-8" standalone="no"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:y="http://www.yworks.com/xml/graphml">
  <key for="node" id="d6" yfiles.type="nodegraphics"/>
  <key attr.name="size" attr.type="double" for="node" id="d7"><default>2</default></key>
  <graph edgedefault="directed" id="G">
    <node id="n0"><data key="d6"><y:ShapeNode><y:NodeLabel>x<y:node/></y:NodeLabel></y:ShapeNode>
      </data><data key="d7">7</data></node>
    <node id="n1" yfiles.foldertype="group">
      <graph edgedefault="directed" id="n1:"><node id="n1::n0"/><node id="n1::n1"/>
        <edge id="e0" source="n1::n0" target="n1::n1"/></graph>
    </node>
    <edge id="e1" source="n0" target="n1::n0"/>
  </graph>
</graphml>
"""


def test_groups_foreign_elements_and_defaults(tmp_path: Path) -> None:
    path = tmp_path / "yed.graphml"
    path.write_text(YED)
    assert read_graphml(path) == Graph(4, [(2, 3), (0, 2)], directed=True)
    sized = read_graphml(path, node_features="size")
    assert sized.node_features is not None
    assert sized.node_features[:, 0].tolist() == [7, 2, 2, 2]


BOMB = '<!DOCTYPE g [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><graphml>&b;</graphml>'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize(
    "text",
    [
        BOMB,
        '<!DOCTYPE g [<!ENTITY x SYSTEM "file:///etc/passwd">]><graphml>&x;</graphml>',
        '<!DOCTYPE graphml SYSTEM "http://example.org/graphml.dtd"><graphml/>',
        "\n\n<!-- <graphml> -->\n<!DOCTYPE graphml><graphml/>",
    ],
)
def test_document_type_declarations_are_refused(text: str, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "bomb.graphml"
    path.write_bytes(text.encode(encoding))
    with pytest.raises(FormatError, match=r"bomb.graphml, line \d: a document type declaration"):
        read_graphml(path)


def body(text: str, direction: str = "undirected") -> str:
    return (
        f'<graphml>\n<key id="k"/>\n<graph edgedefault="{direction}">\n{text}\n</graph></graphml>'
    )


NODE = '<node id="a"/>'
REFUSED = {
    "empty": ("", "not well-formed"),
    "text": ("hello", "not well-formed.*line 1"),
    "binary": ("\x00\x01", "not well-formed"),
    "entity": ("<graphml>&b;</graphml>", "undefined entity"),
    "other root": ("<html></html>", "root element is <html>"),
    "no graph": ("<graphml></graphml>", "no <graph>"),
    "no nodes": (body(""), "num_nodes"),
    "two graphs": (body(NODE).replace("</graphml>", "<graph/></graphml>"), "second graph"),
    "direction": (body(NODE, "mixed"), "line 3: edgedefault .* 'mixed'"),
    "node without id": (body("<node/>"), "line 4: <node> has no attribute 'id'"),
    "node twice": (body(NODE + "\n" + NODE), "line 5: node 'a' is listed twice"),
    "edge without end": (body(NODE + '<edge source="a"/>'), "<edge> has no attribute 'target'"),
    "unknown end": (body(NODE + '\n<edge source="a" target="z"/>'), "line 5: .* node 'z'"),
    "mixed": (
        body(NODE + '<edge directed="true" source="a" target="a"/>'),
        "directed='true' in a graph that is undirected",
    ),
    "hyperedge": (body(NODE + "<hyperedge/>"), "hyperedges"),
    "undeclared key": (body('<node id="a"><data key="q">1</data></node>'), "no <key> declares"),
    "data without key": (body('<node id="a"><data>1</data></node>'), "<data> has no attribute"),
    "unknown encoding": ('<?xml version="1.0" encoding="klingon"?><graphml/>', "not well-formed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_name_file_and_line(case: str, tmp_path: Path) -> None:
    text, message = REFUSED[case]
    path = tmp_path / "bad.graphml"
    path.write_text(text)
    with pytest.raises(FormatError, match=f"bad.graphml.*{message}"):
        read_graphml(path)


def test_bad_values_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "bad.graphml"
    path.write_text(body('<node id="a"><data key="k">red</data></node>'))
    with pytest.raises(FormatError, match=r"bad.graphml: node 'a' has k='red'"):
        read_graphml(path, node_features="k")
    with pytest.raises(FormatError, match=r"bad.graphml: node 'a' has no attribute 'size'"):
        read_graphml(path, node_features="size")


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.graphml"
    write_graphml(path, FULL)
    whole = path.read_bytes()
    for length in range(0, len(whole) - 1, 7):
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError, match="not well-formed"):
            read_graphml(path)


def test_missing_files_and_failed_writes(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"cannot read .*none.graphml: No such file"):
        read_graphml(tmp_path / "none.graphml")
    with pytest.raises(FormatError, match="cannot read"):
        read_graphml(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"cannot write .*g.graphml: "):
        write_graphml(tmp_path / "file" / "g.graphml", FULL)
    (tmp_path / "taken").mkdir()
    with pytest.raises(StorageError, match=r"cannot write .*taken"):
        write_graphml(tmp_path / "taken", FULL)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "taken"]
