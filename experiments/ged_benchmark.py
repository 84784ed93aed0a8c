"""Graph edit distance as a number: our models on AIDS700nef and LINUX, and what bounds give.

    python experiments/ged_benchmark.py DATA [--dataset LINUX] [--model gmn] [--seeds 3] [--json]

DATA is a folder, or a tar archive, that holds ``AIDS700nef/graphs.jsonl`` and
``AIDS700nef/ged_full.npy``: in each line of the first a graph with its ``split``, its number of
nodes ``n``, its ``edges``, its ``labels`` and its isomorphism class ``iso``; the second holds exact
distances. A run is resumed where it stopped, from ``--runs``; one that is finished is measured
again.

Models predict the distance itself: the GMN as the cost of an assignment of nodes, embedders as the
Euclidean distance of two graph vectors. They are trained and chosen by the error of
exp(-2 GED / (n1 + n2)), a loss of this script's own. Each test graph is
compared with all training graphs, of which the last fifth are for validation: they pick the
weights, and training never sees their distances.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
import tarfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from graphkin.graphs import Graph, PairBatch
from graphkin.learning.datasets import TargetDataset
from graphkin.learning.recipes import assemble
from graphkin.learning.target_metrics import target_metrics
from graphkin.learning.training.log import TrainingProgress
from graphkin.models import GraphEmbedder, load_model
from graphkin.models.model import GraphModel, PairOutput

Floats = NDArray[np.float64]

RULES = (
    "MSE plain, x 1e-3, of exp(-2 GED / (n1 + n2)); MAE of the distance; rho and tau-b of the "
    "similarity, ties as scipy has them; p@k by the distance, ties of the truth included; rho, tau "
    "and p@k are means over queries"
)
WIDTHS: dict[str, Any] = {"node_dim": 64, "message_dim": 128, "target_scale": 1.0}
MODEL: dict[str, tuple[str, dict[str, Any]]] = {
    "gmn": ("gmn", {"similarity": "edits", "link": "distance"}),
    "gmn-vectors": ("gmn", {"message_norm": "graph", "link": "root"}),
    "gnn": (
        "gnn",
        {
            "readout": "nodes",
            "link": "root",
            "steps": 3,
            "shared": False,
            "node_update": "mlp",
            "residual": True,
            "state_norm": "layer",
            "message_scale": 1.0,
        },
    ),
}
"""The name and the options of each model. ``gmn`` compares nodes after the last step, through the
cost of an assignment; ``gmn-vectors`` attends in every step, and compares graph vectors."""
TRAINING: dict[str, Any] = {"clip": 1.0, "patience": 0, "regularizer": 0.0}
COURSE: dict[str, dict[str, Any]] = {
    "gmn": {"batch_size": 1024, "learning_rate": 5e-3, "evaluate_every": 200, "steps": 1_600},
    "gmn-vectors": {
        "batch_size": 64,
        "learning_rate": 1e-3,
        "evaluate_every": 500,
        "steps": 30_000,
    },
    "gnn": {"batch_size": 1024, "learning_rate": 2e-3, "evaluate_every": 200, "steps": 2_000},
}
BATCH_GRAPHS = {"gmn": 48, "gmn-vectors": 0, "gnn": 48}
"""Graphs that the pairs of a batch are drawn from; with attention in every step it gains nothing
to have a graph in several pairs."""
VALIDATION_PAIRS = 5_000
TIMED_PAIRS = 2_000


@dataclass(frozen=True, eq=False)
class GedData:
    """Graphs with their exact distances."""

    graphs: list[Graph]
    distances: Floats
    """(G, G)"""
    splits: NDArray[np.str_]
    """(G,) training, validation or test."""
    classes: NDArray[np.int64]
    """(G,) equal for isomorphic graphs."""

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.array([graph.num_nodes for graph in self.graphs])

    @property
    def similarities(self) -> Floats:
        """(G, G) exp(-2 GED / (n1 + n2))"""
        return np.exp(-2 * self.distances / (self.sizes[:, None] + self.sizes))

    def numbers(self, *splits: str) -> NDArray[np.int64]:
        return np.flatnonzero(np.isin(self.splits, splits))

    def has_twin(self) -> NDArray[np.bool_]:
        """(test,) whether training, validation included, has an isomorphic graph."""
        known = self.classes[self.numbers("training", "validation")]
        return np.isin(self.classes[self.numbers("test")], known)

    def without_twins(self) -> GedData:
        """The data without training graphs that are isomorphic to a test graph."""
        is_test = self.splits == "test"
        kept = np.flatnonzero(is_test | ~np.isin(self.classes, self.classes[is_test]))
        return GedData(
            [self.graphs[n] for n in kept.tolist()],
            self.distances[np.ix_(kept, kept)],
            self.splits[kept],
            self.classes[kept],
        )


def read(path: Path, name: str) -> GedData:
    """One of the sets in a folder or an archive."""
    if path.is_dir():
        homes = [file.parent for file in path.rglob("graphs.jsonl") if file.parent.name == name]
        if not homes:
            sys.exit(f"{path} has no folder {name} with graphs.jsonl")
        lines = (homes[0] / "graphs.jsonl").read_text().splitlines()
        distances = np.load(homes[0] / "ged_full.npy")
    else:
        with tarfile.open(path) as archive:
            members = {"/".join(m.name.split("/")[-2:]): m for m in archive.getmembers()}
            contents = [
                archive.extractfile(members[f"{name}/{part}"]).read()  # type: ignore[union-attr]
                for part in ("graphs.jsonl", "ged_full.npy")
            ]
        lines, distances = contents[0].decode().splitlines(), np.load(io.BytesIO(contents[1]))
    rows = [json.loads(line) for line in lines]
    graphs = [Graph(row["n"], row["edges"], node_labels=row["labels"]) for row in rows]
    splits = np.array(["test" if row["split"] == "test" else "training" for row in rows], "U10")
    known = np.flatnonzero(splits == "training")
    splits[known[len(known) - len(known) // 5 :]] = "validation"
    classes = np.array([row["iso"] for row in rows])
    return GedData(graphs, distances.astype(np.float64), splits, classes)


def dataset(data: GedData, seed: int, batch_graphs: int = 0) -> TargetDataset:
    """Training pairs, and pairs of validation with training graphs; the test is measured apart."""
    training, validation = data.numbers("training"), data.numbers("validation")
    within = [(a, b) for place, a in enumerate(training) for b in training[place:]]
    across = [(a, b) for a in validation for b in training]
    test = [(a, b) for a in data.numbers("test")[:1] for b in training]
    numbers = np.array([*within, *across, *test])
    splits = ["training"] * len(within) + ["validation"] * len(across) + ["test"] * len(test)
    return TargetDataset(
        [(data.graphs[a], data.graphs[b]) for a, b in numbers.tolist()],
        data.distances[numbers[:, 0], numbers[:, 1]],
        distances=True,
        splits=splits,
        seed=seed,
        evaluation_size=VALIDATION_PAIRS,
        batch_graphs=batch_graphs,
    )


def similarity_loss(model: GraphModel, output: PairOutput, batch: PairBatch) -> torch.Tensor:
    """The mean squared error of exp(-2 GED / (n1 + n2))."""
    assert batch.labels is not None
    sizes = batch.graphs.node_offsets.diff().float()
    means = (sizes[batch.left] + sizes[batch.right]) / 2
    predicted, true = model.link(output.scores.float()), batch.labels
    return (torch.exp(-predicted / means) - torch.exp(-true / means)).square().mean()


def similarity_error(model: GraphModel, data: Any) -> dict[str, float]:
    """Minus the same error, x 1e-3, of a validation set: higher is better."""
    means = np.array([(a.num_nodes + b.num_nodes) / 2 for a, b in data.pairs])
    errors = np.exp(-model.predict(data.pairs) / means) - np.exp(-data.values / means)
    return {"minus_mse_1e-3": -1e3 * float(np.mean(errors**2))}


def trained(data: GedData, kind: str, seed: int, folder: Path, options: argparse.Namespace) -> Any:
    """The best weights of a run, which goes on where it stopped."""
    name, model_options = MODEL[kind]
    run = assemble(
        name,
        dataset(data, seed, BATCH_GRAPHS[kind]),
        recipe="paper",
        model_options={**WIDTHS, **model_options},
        training={**TRAINING, **COURSE[kind], **_given_steps(options), "seed": seed},
    )
    with TrainingProgress(run.config.steps) as progress:
        result = run.train(
            folder,
            resume=True,
            on_report=progress,
            loss=partial(similarity_loss, run.model),
            metrics=similarity_error,
        )
    return load_model(folder), result


def _given_steps(options: argparse.Namespace) -> dict[str, int]:
    return {} if options.steps is None else {"steps": options.steps}


def measured(
    similarities: Floats, data: GedData, queries: NDArray[np.int64], pool: NDArray[np.int64]
) -> dict[str, float]:
    """How far similarities, (Q, P), are from the truth.

    Args:
        similarities: as predicted.
        data: the truth.
        queries: numbers of graphs.
        pool: numbers of graphs.
    """
    block = np.ix_(queries, pool)
    true, distances = data.similarities[block], data.distances[block]
    means = (data.sizes[queries][:, None] + data.sizes[pool]) / 2
    guessed = -np.log(np.clip(similarities, 1e-9, 1.0)) * means
    asks = np.repeat(np.arange(len(queries)), len(pool))
    by_similarity = target_metrics(similarities.ravel(), true.ravel(), asks)
    by_distance = target_metrics(guessed.ravel(), distances.ravel(), asks, is_distance=True)
    return {
        "mse_1e-3": 1e3 * by_similarity["mse"],
        "mae_distance": by_distance["mae"],
        **{name: by_similarity[name] for name in ("rho", "tau")},
        **{name: by_distance[name] for name in ("p_at_10", "p_at_20") if name in by_distance},
    }


def report(predict: Any, data: GedData) -> dict[str, Any]:
    """All numbers of one model, whose ``predict`` gives (Q, P) similarities."""
    test, known = data.numbers("test"), data.numbers("training", "validation")
    values = predict(test, known)
    twins = data.has_twin()
    rows: dict[str, Any] = {"test x training": measured(values, data, test, known)}
    for name, chosen in (("with a twin", twins), ("without a twin", ~twins)):
        if chosen.any():
            part = measured(values[chosen], data, test[chosen], known)
            rows[f"test x training, {name} ({chosen.sum()} queries)"] = part
    rows["test x test"] = measured(predict(test, test), data, test, test)
    return rows


def timings(model: GraphModel, data: GedData) -> dict[str, float]:
    """Milliseconds on one thread: for a pair in a batch, and for a query against the pool."""
    query = data.graphs[int(data.numbers("test")[0])]
    pool = [data.graphs[n] for n in data.numbers("training", "validation").tolist()]
    pairs = [(query, graph) for graph in (pool * 4)[:TIMED_PAIRS]]
    model.predict(pairs[:64])
    times = {"pair_ms": 1e3 * _seconds(lambda: model.predict(pairs)) / len(pairs)}
    if isinstance(model, GraphEmbedder):
        vectors = model.encode(pool)
        seconds = _seconds(lambda: model.similarity(model.encode([query]), vectors))
        times[f"query_against_{len(pool)}_ms"] = 1e3 * seconds
    else:
        seconds = _seconds(lambda: model.predict([(query, graph) for graph in pool]))
        times[f"query_against_{len(pool)}_ms"] = 1e3 * seconds
    return times


def _seconds(work: Any, repeats: int = 3) -> float:
    """The least CPU time of a few repeats."""
    taken = []
    for _ in range(repeats):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def bipartite_bound(left: Graph, right: Graph) -> int:
    """The cost of the edit path that a bipartite assignment of nodes gives (Riesen & Bunke, 2009).

    An upper bound of the distance: nodes cost 1 to insert, delete or relabel, edges 1 to insert or
    delete; the assignment knows of edges only how many a node has.
    """
    n, m = left.num_nodes, right.num_nodes
    degrees = [np.bincount(g.edges.ravel(), minlength=g.num_nodes) for g in (left, right)]
    labels = [g.node_labels or ("",) * g.num_nodes for g in (left, right)]
    cost = np.full((n + m, n + m), 1e9)
    relabel = np.array([[a != b for b in labels[1]] for a in labels[0]], dtype=float)
    cost[:n, :m] = relabel + np.abs(degrees[0][:, None] - degrees[1]) / 2
    cost[np.arange(n), m + np.arange(n)] = 1 + degrees[0] / 2
    cost[n + np.arange(m), np.arange(m)] = 1 + degrees[1] / 2
    cost[n:, m:] = 0
    rows, columns = linear_sum_assignment(cost)
    to = {a: b for a, b in zip(rows.tolist(), columns.tolist(), strict=True) if a < n and b < m}
    nodes = n + m - 2 * len(to) + sum(labels[0][a] != labels[1][b] for a, b in to.items())
    ends = {frozenset(edge) for edge in right.edges.tolist()}
    moved = [frozenset((to.get(a, -1), to.get(b, -1))) for a, b in left.edges.tolist()]
    shared = sum(edge in ends for edge in moved)
    return nodes + left.num_edges + right.num_edges - 2 * shared


def classical(data: GedData) -> dict[str, Any]:
    """What the bipartite bound gives, and its time."""
    spent = [0.0, 0]

    def predict(queries: NDArray[np.int64], pool: NDArray[np.int64]) -> Floats:
        began = time.process_time()
        bounds = [
            [bipartite_bound(data.graphs[a], data.graphs[b]) for b in pool.tolist()]
            for a in queries.tolist()
        ]
        spent[0] += time.process_time() - began
        spent[1] += len(queries) * len(pool)
        return np.exp(-2 * np.array(bounds) / (data.sizes[queries][:, None] + data.sizes[pool]))

    rows = report(predict, data)
    return {"model": "bipartite bound", "metrics": rows, "pair_ms": 1e3 * spent[0] / spent[1]}


def run_model(
    data: GedData, kind: str, seed: int, folder: Path, options: argparse.Namespace
) -> dict[str, Any]:
    """Trains and measures one model of one seed."""
    model, result = trained(data, kind, seed, folder, options)

    def predict(queries: NDArray[np.int64], pool: NDArray[np.int64]) -> Floats:
        graphs = [[data.graphs[n] for n in numbers.tolist()] for numbers in (queries, pool)]
        means = (data.sizes[queries][:, None] + data.sizes[pool]) / 2
        similarities: Floats = np.exp(-np.asarray(model.scores(*graphs), dtype=np.float64) / means)
        return similarities

    return {
        "model": kind,
        "seed": seed,
        "steps": result.step,
        "seconds": round(result.seconds),
        "validation": result.validation,
        "metrics": report(predict, data),
        **timings(model, data),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("data", type=Path, help="folder or tar archive of the sets")
    parser.add_argument("--dataset", default="AIDS700nef", choices=("AIDS700nef", "LINUX"))
    parser.add_argument("--model", nargs="*", default=["gmn", "gnn"], choices=tuple(MODEL))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="of each training; by default its model's own")
    parser.add_argument("--runs", type=Path, default=Path("runs/ged"), help="where runs are kept")
    twins_help = "leave training graphs out that a test graph is isomorphic to"
    parser.add_argument("--without-twins", action="store_true", help=twins_help)
    parser.add_argument("--classical", action="store_true", help="measure the bipartite bound too")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = read(options.data, options.dataset)
    data = data.without_twins() if options.without_twins else data
    results = [classical(data)] if options.classical else []
    for seed in range(options.seeds):
        for kind in options.model:
            twins = "-without-twins" if options.without_twins else ""
            steps = (COURSE[kind] | _given_steps(options))["steps"]
            folder = options.runs / f"{options.dataset}{twins}-{kind}-{steps}-seed{seed}"
            results.append(run_model(data, kind, seed, folder, options))
    document = {"dataset": options.dataset, "without_twins": options.without_twins, "rules": RULES,
                "test graphs with a twin in training": int(data.has_twin().sum()),
                "test graphs": len(data.numbers("test")), "results": results}  # fmt: skip
    if options.json:
        print(json.dumps(document, indent=2))
        return
    print(f"{options.dataset}: {RULES}")
    for result in results:
        print(
            f"{result['model']} seed {result.get('seed', '-')}, {result['pair_ms']:.3f} ms a pair"
        )
        for name, metrics in result["metrics"].items():
            print(f"  {name:<50}" + "  ".join(f"{k} {v:.4f}" for k, v in metrics.items()))


if __name__ == "__main__":
    main()
