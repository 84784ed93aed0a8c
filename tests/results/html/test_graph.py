"""Graphs on a page: labels are text, whatever they hold, and partners are told."""

from __future__ import annotations

import json
import re

import numpy as np

from graphkin.graphs import Graph
from graphkin.graphs.converters.named import NamedGraph
from graphkin.models import AttentionMaps
from graphkin.results.document import Comparison, FunctionRef
from graphkin.results.drawing.force import force_layout
from graphkin.results.evidence import node_evidence
from graphkin.results.graph import ShownGraph
from graphkin.results.graph_text import graph_comparison_text
from graphkin.results.html.comparison import graph_comparison_page
from graphkin.results.html.graph import graph_picture

HOSTILE = "</script><b>\x1b"
GRAPH = Graph(
    4,
    [(0, 1), (1, 2), (2, 2), (2, 3)],
    directed=True,
    node_labels=["C", HOSTILE, "", "O"],
    edge_labels=["single", "<i>", "loop", "double"],
)
SHOWN = ShownGraph.of(NamedGraph("g <1>", GRAPH, "nitro", source="f.jsonl"), GRAPH, None)


def comparison(maps: AttentionMaps) -> Comparison:
    ref = FunctionRef(kind="graph", function="g", binary="f", blocks=4)
    evidence = node_evidence(maps, most=None)
    return Comparison(
        left=ref, right=ref, distance=0.5, score=1.0, probability=None, evidence=evidence
    )


def test_a_page_of_two_graphs() -> None:
    sharp = np.eye(4, dtype=np.float32)
    maps = AttentionMaps([sharp], [sharp], 1.0)
    page = graph_comparison_page(comparison(maps), SHOWN, SHOWN, maps)
    assert page.count('class="block node"') == 8
    assert HOSTILE not in page
    assert "<b>\x1b" not in page
    assert "100% (4 of 4)" in page
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    assert data["steps"][0]["pairs"] == [[node, node, 1000] for node in range(4)]
    assert data["left"]["boxes"] == data["right"]["boxes"]
    assert "least weight <output" in page


def test_a_picture() -> None:
    picture = graph_picture(SHOWN, force_layout(GRAPH))
    assert picture.startswith("<svg ")
    assert picture.count('class="n"') == 4
    assert picture.count('class="l"') == 4
    assert "C 0" in picture
    assert "double" in picture
    assert "<i>" not in picture
    assert "\x1b" not in picture


def test_nodes_that_nothing_tells_apart_are_partners() -> None:
    """Two of three nodes are alike, and share the attention that they get."""
    shared = np.array([[1, 0, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]], dtype=np.float32)
    evidence = node_evidence(AttentionMaps([shared], [shared], 0.0))
    assert evidence.matched_share == 1.0
    assert sorted(pair.left for pair in evidence.pairs) == [0, 1, 2]
    assert sorted(pair.right for pair in evidence.pairs) == [0, 1, 2]


def test_a_node_that_looks_elsewhere_has_no_partner() -> None:
    ahead = np.array([[0.9, 0.1], [0.8, 0.2]], dtype=np.float32)
    back = np.array([[0.9, 0.1], [0.1, 0.9]], dtype=np.float32)
    evidence = node_evidence(AttentionMaps([ahead], [back], 0.0))
    assert [(pair.left, pair.right) for pair in evidence.pairs] == [(0, 0)]
    assert evidence.matched_share == 0.5


def test_text() -> None:
    sharp = np.eye(4, dtype=np.float32)
    maps = AttentionMaps([sharp], [sharp], 1.0)
    text = graph_comparison_text(comparison(maps), SHOWN, SHOWN)
    assert "g <1> of f.jsonl: 4 nodes · 4 edges · directed · label nitro" in text
    assert "\x1b" not in text
    assert "1.00  0 C" in text


def test_neighbours_and_document() -> None:
    assert SHOWN.neighbours()[0] == f"1 {HOSTILE}"
    assert SHOWN.document("library:1").to_dict()["edges"][2] == [2, 2]
    assert SHOWN.document().edge_labels == GRAPH.edge_labels
