"""DOT: round trips, the language as Graphviz means it, and files that are refused."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pydot
import pytest
from hypothesis import given, settings

from graphkin.errors import FormatError, MissingDependencyError
from graphkin.graphs import Graph
from graphkin.graphs.converters.dot import read_dot, write_dot
from tests.graphs.graph_strategies import graphs


@given(graphs())
@settings(max_examples=30)
def test_round_trip_is_exact(graph: Graph) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.dot"
        write_dot(path, graph)
        assert read_dot(str(path)) == graph


def test_the_file_is_what_a_person_would_write(tmp_path: Path) -> None:
    path = tmp_path / "graph.dot"
    write_dot(path, Graph(2, [(1, 0)], directed=True, node_tokens=[[4, 5], []], edge_types=[3]))
    assert path.read_text().splitlines() == [
        "digraph {",
        '  graphkin_node_kind="tokens";',
        '  graphkin_edge_kind="types";',
        '  0 [tokens="4 5"];',
        '  1 [tokens=""];',
        '  1 -> 0 [type="3"];',
        "}",
    ]


def load(text: str, tmp_path: Path, **names: str) -> Graph:
    path = tmp_path / "foreign.dot"
    path.write_text(text, encoding="utf-8")
    return read_dot(path, **names)


@pytest.mark.parametrize(
    ("text", "nodes", "edges"),
    [
        ("graph { a }", 1, []),
        ("graph { a -- b -- c }", 3, [(0, 1), (1, 2)]),
        ("digraph { b -> a; c }", 3, [(0, 1)]),
        ('digraph { "a" -> b; a -> "b" }', 2, [(0, 1), (0, 1)]),
        ('strict graph { a -- b; b -- a; a -- "b" }', 2, [(0, 1)]),
        ("strict digraph { a -> b; b -> a; a -> b }", 2, [(0, 1), (1, 0)]),
        ("digraph { a:s0 -> b:s1:n; b -> a:x }", 2, [(0, 1), (1, 0)]),
        ('digraph { "a:s0" -> a:s0 }', 2, [(0, 1)]),
        ("digraph { a -> {b c} -> d }", 4, [(0, 1), (0, 2), (1, 3), (2, 3)]),
        ("digraph { a -> {b -> c} -> d }", 4, [(1, 2), (0, 1), (0, 2), (1, 3), (2, 3)]),
        ("digraph { subgraph cluster_f { x -> y } z -> x }", 3, [(0, 1), (2, 0)]),
        ("digraph { node [shape=box]; edge [color=red]; graph [label=x]; a -> a }", 1, [(0, 0)]),
        ('digraph { "node" -> "edge" }', 2, [(0, 1)]),
        ('digraph { "caf\u00e9 \\"x\\"" -> b; b -> "caf\u00e9 \\"x\\"" }', 2, [(0, 1), (1, 0)]),
        ("// note\ndigraph { /* a */ a -> b # end\n }", 2, [(0, 1)]),
    ],
)
def test_language(text: str, nodes: int, edges: list[tuple[int, int]], tmp_path: Path) -> None:
    directed = "digraph" in text
    graph = load(text, tmp_path)
    if "{b -> c}" in text:  # the group's own edge may come at either place
        assert sorted(map(tuple, graph.edges.tolist())) == sorted(edges)
    else:
        assert graph == Graph(nodes, edges, directed=directed)


def test_named_attributes_and_defaults(tmp_path: Path) -> None:
    text = """digraph {
      a [pos="1,2"]; node [pos="3,4"]; edge [kind=1]
      a -> b
      subgraph s { node [pos="5,6"]; edge [kind=2]; b -> c }
      c -> d [kind=7]
      a [pos="0.5,-1"]
    }"""
    graph = load(text, tmp_path, node_features="pos", edge_type="kind")
    assert graph == Graph(
        4,
        [(0, 1), (1, 2), (2, 3)],
        directed=True,
        node_features=[[0.5, -1], [3, 4], [5, 6], [3, 4]],
        edge_types=[1, 2, 7],
    )


def test_strict_edges_merge_their_attributes(tmp_path: Path) -> None:
    text = "strict graph { a -- b [kind=1, w=2]; b -- a [kind=5] }"
    graph = load(text, tmp_path, edge_type="kind")
    assert graph == Graph(2, [(0, 1)], edge_types=[5])
    assert load(text, tmp_path, edge_type="w") == Graph(2, [(0, 1)], edge_types=[2])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not DOT"),
        ("hello", "not DOT that pydot can read: Expected .*line:1"),
        ("digraph { a ->", r"not DOT that pydot can read: Expected .*line:1, col:13"),
        ("graph {\n  a -- b\n", "not DOT .*line:3"),
        ("graph { }", "num_nodes"),
        ("graph { a } graph { b }", "2 graphs"),
        ("graph " + "{" * 3000 + "}" * 3000, "too deeply"),
    ],
)
def test_refusals_name_the_file(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(FormatError, match=f"foreign.dot.*{message}"):
        load(text, tmp_path)
    assert capsys.readouterr().out == ""


def test_bad_values_and_bytes(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"foreign.dot: node 'a' has color='red'"):
        load("graph { a [color=red] }", tmp_path, node_features="color")
    with pytest.raises(FormatError, match=r"edge 'a' - 'b' has no attribute 'kind' .it has: none"):
        load("graph { a -- b }", tmp_path, edge_type="kind")
    path = tmp_path / "latin.dot"
    path.write_bytes("graph { é }".encode("latin-1"))
    with pytest.raises(FormatError, match=r"latin.dot is not UTF-8"):
        read_dot(path)
    with pytest.raises(FormatError, match="cannot read"):
        read_dot(tmp_path / "none.dot")


def test_a_parser_that_breaks_is_a_format_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: str) -> None:
        raise AssertionError("inside the parser")

    monkeypatch.setattr(pydot, "graph_from_dot_data", broken)
    with pytest.raises(FormatError, match="inside the parser"):
        load("graph { a }", tmp_path)


def test_pydot_missing_names_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "graph.dot"
    monkeypatch.setitem(sys.modules, "pydot", None)
    write_dot(path, Graph(1))
    with pytest.raises(MissingDependencyError, match=r"pip install 'graphkin\[dot\]'"):
        read_dot(path)
