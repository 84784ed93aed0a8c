"""One's own graphs on the command line: train, eval, calibrate, encode, predict, rank."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphkin.graphs.converters.graphml import write_graphml
from graphkin.graphs.converters.json_lines import write_json_lines
from graphkin.graphs.converters.named import NamedGraph
from graphkin.graphs.converters.tudataset.dataset import write_tudataset
from graphkin.learning.evaluation import WithSteps, evaluate, pair_auc
from graphkin.learning.task import EvaluationSet
from graphkin.models import load_model
from tests.command_line import Graphkin, Outcome
from tests.graph_samples import circles, edit_pairs, molecules

SMALL = ["node_dim=8", "message_dim=8", "graph_dim=8", "model.steps=2", "evaluation_size=100"]
SETTINGS = [word for setting in SMALL for word in ("--set", setting)]


def document(outcome: Outcome) -> Any:
    assert outcome.code == 0, outcome.err
    return json.loads(outcome.out)


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Molecules with labels at their nodes and a class each."""
    file = tmp_path_factory.mktemp("molecules") / "molecules.jsonl"
    graphs = zip(*molecules(80), strict=True)
    write_json_lines(file, [NamedGraph(f"m{n}", g, c) for n, (g, c) in enumerate(graphs)])
    return file


def test_a_dataset_and_nothing_else(run: Graphkin, tmp_path: Path) -> None:
    """As a TUDataset without data at its nodes, of two classes."""
    graphs, labels = circles(60)
    write_tudataset(tmp_path / "IMDB", "IMDB", graphs, labels)
    out = tmp_path / "run"
    trained = document(
        run("train", "graphs", tmp_path / "IMDB", "-o", out, "--steps", 60, "--json")
    )
    assert trained["best"] > 0.9
    ours = document(run("eval", "graphs", out, tmp_path / "IMDB", "--json"))
    kernel = document(run("eval", "graphs", "wl", tmp_path / "IMDB", "--json"))
    assert ours["data"] == kernel["data"]
    assert ours["metrics"]["nearest_neighbour"] >= kernel["metrics"]["nearest_neighbour"]
    text = run("eval", "graphs", out, tmp_path / "IMDB", "--size", 20)
    assert "nearest_neighbour" in text.out


def test_classes_of_molecules(run: Graphkin, lines: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    arguments = ["train", "graphs", lines, "-o", out, "--steps", 100, "--json"]
    trained = document(run(*arguments, "--set", "evaluate_every=50"))
    assert trained["best"] > 0.8
    model = load_model(out)
    assert model.vocabulary is not None
    assert set(model.vocabulary.words) == {"C", "N", "O"}
    calibrated = document(run("calibrate", "graphs", out, lines, "--size", 50, "--json"))
    assert calibrated["calibration"]["slope"] > 0

    vectors = tmp_path / "vectors.npy"
    assert run("encode", out, lines, "-o", vectors).code == 0
    assert np.load(vectors).shape == (80, 128)
    rows = document(run("encode", out, lines, "--json"))
    assert [row["graph"] for row in rows[:2]] == ["m0", "m1"]
    assert np.allclose(rows[1]["vector"], np.load(vectors)[1])
    table = list(csv.DictReader(run("encode", out, lines).out.splitlines()))
    assert float(table[1]["v0"]) == pytest.approx(float(np.load(vectors)[1, 0]))

    wanted = tmp_path / "wanted.csv"
    wanted.write_text("left,right\nm0,m2\nm0,m1\n")
    scored = document(run("predict", out, lines, "--of", wanted, "--json"))
    assert [(row["left"], row["right"]) for row in scored] == [("m0", "m2"), ("m0", "m1")]
    sure = document(run("predict", out, lines, "--of", wanted, "--probability", "--json"))
    assert all(0 <= row["value"] <= 1 for row in sure)
    everything = run("predict", out, lines, "-o", tmp_path / "all.csv")
    assert (everything.code, everything.out) == (0, "")
    assert len((tmp_path / "all.csv").read_text().splitlines()) == 1 + 80 * 79 // 2

    named = document(run("rank", out, f"{lines}:m5", f"{lines}:m5", f"{lines}:m7", "--json"))
    assert [hit["graph"] for hit in named] == ["m5", "m7"]
    assert len(document(run("encode", out, f"{lines}:m5", "--json"))) == 1
    strange = run("encode", out, f"{lines}:m500")
    assert "has no graph 'm500'; it has m0, m1, m2, m3, m4 and 75 more" in strange.err

    query = tmp_path / "query.jsonl"
    query.write_text(lines.read_text().splitlines()[5] + "\n")
    hits = document(run("rank", out, query, lines, "--top", 3, "--json"))
    assert [hit["rank"] for hit in hits] == [1, 2, 3]
    assert hits[0]["graph"] == "m5"


def test_labels_in_a_table(run: Graphkin, tmp_path: Path) -> None:
    graphs, labels = molecules(60)
    folder = tmp_path / "files"
    folder.mkdir()
    for number, graph in enumerate(graphs):
        write_graphml(folder / f"{number}.graphml", graph)
    table = tmp_path / "labels.csv"
    table.write_text("".join(f"{n},{label}\n" for n, label in enumerate(labels)))
    arguments = ["train", "graphs", folder, "--labels", table, "-o", tmp_path / "run", "--steps", 2]
    assert document(run(*arguments, *SETTINGS, "--json"))["steps"] == 2
    # Attributes, where files are not graphkin's own, are those of the training.
    named = tmp_path / "named"
    assert (
        run(*arguments[:-4], "-o", named, "--steps", 2, "--node-labels", "label", *SETTINGS).code
        == 0
    )
    assert load_model(named).trained_on["task"]["attributes"] == {"node_labels": "label"}  # type: ignore[index]
    assert run("eval", "graphs", named, folder, "--labels", table).code == 0


def test_targets(run: Graphkin, tmp_path: Path) -> None:
    pairs, values = edit_pairs(120)
    graphs = {graph.num_nodes: graph for pair in pairs for graph in pair}
    write_json_lines(tmp_path / "g.jsonl", [NamedGraph(f"p{n}", g) for n, g in graphs.items()])
    rows = [f"p{a.num_nodes},p{b.num_nodes},{v}" for (a, b), v in zip(pairs, values, strict=True)]
    table = tmp_path / "targets.csv"
    table.write_text("\n".join(["left,right,value", *rows]))
    given = [tmp_path / "g.jsonl", "--targets", table]
    out = tmp_path / "run"
    train = ["train", "graphs", *given, "--kind", "gmn", "-o", out, "--steps", 30, "--json"]
    trained = document(run(*train, *SETTINGS, "--set", "evaluate_every=10"))
    assert {"mse", "mae", "rho", "tau"} <= trained["validation"].keys()
    measured = document(run("eval", "graphs", out, *given, "--json"))["metrics"]
    assert measured["mse"] > 0
    assert "rho" in run("eval", "graphs", out, *given).out
    # Of classes too, it says which pairs are alike: the smaller the distance, the more.
    classes = tmp_path / "classes.csv"
    classes.write_text("".join(f"p{n},{n > 7}\n" for n in graphs))
    ordered = load_model(out)
    nearest = [graph for _, graph in sorted(graphs.items())][:6]
    sure = [(nearest[0], graph) for graph in nearest]
    labels = np.array([1, 1, 1, -1, -1, -1])
    data = EvaluationSet(tuple(sure), labels, ())
    auc = pair_auc(-ordered.predict(sure), labels)
    assert evaluate(ordered, data)["pair_auc"] == auc
    assert evaluate(WithSteps(ordered, None), data)["pair_auc"] == auc
    assert run("eval", "graphs", out, tmp_path / "g.jsonl", "--labels", classes).code in (0, 12)
    refused = run("calibrate", "graphs", out, *given)
    assert refused.code == 12
    assert "no probability to calibrate" in refused.err


def test_pairs_and_triplets(run: Graphkin, lines: Path, tmp_path: Path) -> None:
    _, labels = molecules(80)
    pairs = tmp_path / "pairs.csv"
    rows = [
        f"m{a},m{a + 1 + b},{labels[a] == labels[a + 1 + b]}" for a in range(40) for b in (0, 1)
    ]
    pairs.write_text("\n".join(rows))
    short = ["--steps", 2, *SETTINGS, "--json"]
    given = ["train", "graphs", lines, "--pairs", pairs, "-o", tmp_path / "p"]
    assert "pair_auc" in document(run(*given, *short))["validation"]
    triplets = tmp_path / "triplets.csv"
    triplets.write_text("\n".join(f"m{a},m{a + 2},m{a + 1}" for a in range(60)))
    given = [
        "train",
        "graphs",
        lines,
        "--triplets",
        triplets,
        "-o",
        tmp_path / "t",
        "--kind",
        "gmn",
    ]
    assert "triplet_accuracy" in document(run(*given, *short))["validation"]


@pytest.mark.parametrize(
    ("table", "option", "problem"),
    [
        ("m0,m1", "--pairs", "line 1: 2 columns"),
        ("m0,m999,1", "--pairs", "there is no graph 'm999'"),
        ("m0,m1,maybe", "--pairs", "label must be a number"),
        ("m0,m1,nan\nm0,m2,1", "--targets", "target 0 is nan"),
        ("m0,m1,2\nm0,m2,1", "--pairs", "labels must be"),
        ("", "--labels", "has no lines"),
        ("m0,a\nm1,\nm2,b", "--labels", "line 2: the label of m1 is ''"),
        ("m0,a\nm1,nan", "--labels", "line 2: the label of m1 is 'nan'"),
        ("m0,a\nm1,b\nm0,b", "--labels", "line 3: graph m0 is in line 1 already"),
        ("name,class\nm0,a", "--labels", "to name the columns, they are graph,label"),
    ],
)
def test_broken_tables(
    run: Graphkin, lines: Path, tmp_path: Path, table: str, option: str, problem: str
) -> None:
    file = tmp_path / "table.csv"
    file.write_text(table)
    outcome = run("train", "graphs", lines, option, file, "-o", tmp_path / "run")
    assert outcome.code in (10, 11, 12)
    assert problem in outcome.err
    assert not (tmp_path / "run").exists()


def test_what_a_table_leaves_out_is_said(run: Graphkin, lines: Path, tmp_path: Path) -> None:
    _, labels = molecules(80)
    table = tmp_path / "labels.csv"
    table.write_text("".join(f"m{n},{labels[n]}\n" for n in range(40)))
    train = ["train", "graphs", lines, "--steps", 1, *SETTINGS]
    trained = run(*train, "--labels", table, "-o", tmp_path / "run")
    assert trained.code == 0, trained.err
    assert "has classes of 40 of the 80 graphs; the others are left out" in trained.err
    # Values of 0 to 1 are similarities or distances, as it is said.
    rows = [f"m{a},m{b},{abs(a - b) / 80}" for a in range(12) for b in range(a)]
    table.write_text("\n".join([*rows, "m0,m1,0.5"]))
    train += ["--targets", table]
    unsaid = run(*train, "-o", tmp_path / "unsaid")
    assert "taken as similarities" in unsaid.err
    assert "1 of its pairs more than once" not in unsaid.err
    assert load_model(tmp_path / "unsaid").config.link == "exp"
    said = run(*train, "-o", tmp_path / "said", "--distances")
    assert "taken as similarities" not in said.err
    model = load_model(tmp_path / "said")
    assert model.config.link == "root"
    assert model.trained_on is not None
    assert model.trained_on["task"]["distances"] is True
    evaluated = run("eval", "graphs", tmp_path / "said", lines, "--targets", table)
    assert evaluated.code == 0, evaluated.err
    assert "mse" in evaluated.out
    # A model of classes has no unit to be wrong in.
    ordered = run("eval", "graphs", tmp_path / "run", lines, "--targets", table)
    assert "mse" not in ordered.out
    assert "rho" in ordered.out
    assert "errors have no unit" in ordered.err


def test_numbers_are_not_read_as_labels(run: Graphkin, lines: Path, tmp_path: Path) -> None:
    assert run("train", "graphs", lines, "--steps", 1, *SETTINGS, "-o", tmp_path / "run").code == 0
    file = tmp_path / "numbers.jsonl"
    file.write_text('{"edges": [[0, 1]], "node_tokens": [[0], [1]], "label": null}\n')
    outcome = run("encode", tmp_path / "run", file)
    assert outcome.code == 11
    assert "the nodes of 0 have whole numbers" in outcome.err
    file.write_text("")
    assert "numbers.jsonl holds no graph" in run("encode", tmp_path / "run", file).err


def test_what_is_refused(run: Graphkin, lines: Path, tmp_path: Path) -> None:
    unlabelled = tmp_path / "u.jsonl"
    unlabelled.write_text('{"num_nodes": 2}\n{"num_nodes": 3}\n')
    outcome = run("train", "graphs", unlabelled, "-o", tmp_path / "run")
    assert "has no class, and no file of labels" in outcome.err
    outcome = run("eval", "graphs", "edits", lines)
    assert outcome.code != 0
    outcome = run("train", "graphs", lines, "--recipe", "weak", "-o", tmp_path / "run")
    assert "unknown recipe 'weak'; choose one of strong, paper" in outcome.err
    assert run("encode", "edits", unlabelled).code == 12  # a matcher
    assert run("encode", "edits/embedder", unlabelled).code == 0
    outcome = run("encode", "edits/embedder", unlabelled, "-o", tmp_path / "x.txt")
    assert "must end in .npy, .csv or .json" in outcome.err
