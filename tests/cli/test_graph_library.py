"""One's own graphs on the command line: index, search, scan, compare."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from graphkin.graphs.converters.from_networkx import to_networkx
from tests.command_line import Graphkin, Outcome
from tests.graph_samples import molecule_models, molecules, write_molecules


def document(outcome: Outcome) -> Any:
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models, and a file of molecules."""
    folder = tmp_path_factory.mktemp("graphs")
    for model, name in zip(molecule_models(), ("gnn", "gmn"), strict=True):
        model.save_pretrained(folder / name)
    write_molecules(folder / "molecules.jsonl")
    return folder


@pytest.fixture
def library(run: Graphkin, home: Path, tmp_path: Path) -> Path:
    path = tmp_path / "library.kin"
    added = run(
        "index", path, home / "molecules.jsonl", "--model", home / "gnn", "--matcher", home / "gmn"
    )
    assert added.code == 0, added.err
    assert added.out == f"{path}: 12 graphs added, 12 in all; 0 known, 0 skipped\n"
    return path


def test_search_shows_graphs(run: Graphkin, home: Path, library: Path) -> None:
    found = run("search", library, f"{home / 'molecules.jsonl'}:m3", "--top", 2)
    assert found.code == 0, found.err
    head, titles, best, pairs, *_ = found.out.splitlines()
    assert head.startswith("m3 of ")
    assert head.endswith(" nodes")
    assert titles.split() == ["#", "before", "score", "dist.", "nodes", "graph", "label", "file"]
    assert best.split()[4:7] == ["100%", "m3", "nitro"]
    assert pairs.strip().startswith("node pairs  ")
    assert found.err == ""


def test_scan_groups_by_label(run: Graphkin, home: Path, library: Path) -> None:
    found = run("scan", library, home / "molecules.jsonl", "--rerank", 0)
    assert {"label=nitro", "label=other"} <= set(found.out.splitlines())
    assert "12 graphs, 12 with a hit" in found.out
    report = document(run("scan", library, home / "molecules.jsonl", "--json"))
    assert {result["query"]["kind"] for result in report["results"]} == {"graph"}
    rows = run("scan", library, home / "molecules.jsonl", "--format", "csv").out.splitlines()
    assert len(rows) == 1 + 3 * 12


def test_other_formats_and_attributes(
    run: Graphkin, home: Path, library: Path, tmp_path: Path
) -> None:
    """A file whose nodes have their labels under a name that the model does not know."""
    graph = to_networkx(molecules(4)[0][3])
    other = nx.Graph(graph.edges)
    nx.set_node_attributes(other, nx.get_node_attributes(graph, "label"), "element")
    nx.write_gexf(other, tmp_path / "m.gexf")
    refused = run("search", library, tmp_path / "m.gexf")
    assert refused.code == 11
    assert "--node-labels" in refused.err
    hits = document(
        run(
            "search",
            library,
            tmp_path / "m.gexf",
            "--node-labels",
            "element",
            "--rerank",
            0,
            "--json",
        )
    )["results"][0]["hits"]
    assert hits[0]["function"] == "m3"


def test_without_a_matcher(run: Graphkin, home: Path, tmp_path: Path) -> None:
    """Nothing is reranked, without a word; whoever asks for it hears why."""
    path = tmp_path / "plain.kin"
    assert run("index", path, home / "molecules.jsonl", "--model", home / "gnn").code == 0
    query = f"{home / 'molecules.jsonl'}:m3"
    found = document(run("search", path, query, "--json"))
    assert found["results"][0]["hits"][0]["score"] is None
    refused = run("search", path, query, "--rerank", 5)
    assert refused.code == 12
    assert "--matcher" in refused.err


def test_what_is_about_code_is_refused(run: Graphkin, home: Path, library: Path) -> None:
    graphs = home / "molecules.jsonl"
    assert "about code" in run("scan", library, graphs, "--format", "sarif").err
    for arguments in (["index", library.with_name("x.kin"), graphs],
                      ["compare", f"{graphs}:m1", f"{graphs}:m2"]):  # fmt: skip
        refused = run(*arguments)
        assert refused.code == 12
        assert "holds graphs, and the model functions reads functions" in refused.err
    assert not library.with_name("x.kin").exists()
    more = run("index", library, graphs, "--matcher", home / "gmn")
    assert "keeps its models" in more.err


def test_compare(run: Graphkin, home: Path, tmp_path: Path) -> None:
    graphs, page, picture = home / "molecules.jsonl", tmp_path / "c.html", tmp_path / "c.png"
    sides = [f"{graphs}:m1", f"{graphs}:m3"]
    text = run("compare", *sides, "--model", home / "gnn", "--matcher", home / "gmn",
               "--html", page, "--plot", picture)  # fmt: skip
    assert text.code == 0, text.err
    assert "nodes that have a partner" in text.out
    assert "label nitro" in text.out
    assert picture.stat().st_size > 1000
    content = page.read_text()
    assert "nodes with a partner" in content
    assert 'class="block node"' in content
    compared = document(run("compare", *sides, "--model", home / "gmn", "--json"))
    assert compared["distance"] is None
    assert compared["left"]["kind"] == "graph"
    assert compared["evidence"]["pairs"]
    several = run("compare", graphs, sides[1], "--model", home / "gnn")
    assert several.code == 12
    assert "12 graphs; name one" in several.err
