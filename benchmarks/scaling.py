"""Time and peak memory of scoring ONE pair of sparse graphs, as the graphs grow.

    python benchmarks/scaling.py [--json] [--output scaling.png] [--literal]

Every case runs in a fresh process. Idle is the process with its libraries loaded, the model
built and a tiny pair scored; the peak is the most resident memory at any moment from then on,
while two random graphs are made and scored. Attention looks at every node of the other
graph, so that time grows with n^2 for the matching model; its memory should grow with n.
The second half fixes n and adds edges: time should grow linearly with them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

# The parent imports neither torch nor matplotlib ahead of the cases: a child process starts
# with its parent's peak on its own account.

SIZES = [500, 1_000, 2_000, 5_000, 10_000, 20_000]
MEAN_DEGREE = 3.0
EDGE_SERIES_NODES = 2_000
EDGE_SERIES_DEGREES = [3.0, 8.0, 16.0, 32.0, 64.0, 128.0]
LITERAL_LIMIT = 5_000
"""The literal network holds several n x n matrices at a time."""
MEMORY_LIMIT_MB = 300.0
"""What a pair of 5,000-node graphs may take above idle."""
TIME_BUDGET = 20.0
"""Seconds of repeats for a case, after which its median is taken."""
MAX_REPEATS = 15


@dataclass(frozen=True)
class Row:
    """One case."""

    series: str
    """``nodes`` (growing n at a fixed degree) or ``edges`` (growing degree at a fixed n)."""
    model: str
    """``gnn``, ``gmn``, or ``gmn-literal``."""
    nodes: int
    """Nodes of each of the two graphs."""
    edges: int
    """Edges of each of the two graphs."""
    seconds: float
    """Median time to score the pair."""
    min_seconds: float
    """Shortest time."""
    peak_mb: float
    """Peak memory above idle, in MB (1e6 bytes)."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Time and peak memory of scoring one pair of sparse graphs."
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of tables")
    parser.add_argument(
        "--output", type=Path, default=Path("scaling.png"), help="the plot (default %(default)s)"
    )
    parser.add_argument(
        "--literal",
        action="store_true",
        help=f"also a literal port of the matching model, up to {LITERAL_LIMIT} nodes",
    )
    parser.add_argument("--case", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.case:
        print(json.dumps(asdict(run_case(**json.loads(arguments.case)))))
        return

    rows = [run_in_new_process(*case) for case in cases(arguments.literal)]
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        print_tables(rows)
    if arguments.output:
        plot(rows, arguments.output)


def cases(literal: bool) -> list[tuple[str, str, int, float]]:
    """(series, model, nodes, mean degree) of every case."""
    cases = [("nodes", model, n, MEAN_DEGREE) for model in ("gnn", "gmn") for n in SIZES]
    if literal:
        small = [n for n in SIZES if n <= LITERAL_LIMIT]
        cases += [("nodes", "gmn-literal", n, MEAN_DEGREE) for n in small]
    cases += [
        ("edges", model, EDGE_SERIES_NODES, degree)
        for model in ("gnn", "gmn")
        for degree in EDGE_SERIES_DEGREES
    ]
    return cases


def run_in_new_process(series: str, model: str, nodes: int, degree: float) -> Row:
    print(f"{model} {nodes} nodes, mean degree {degree:g} ...", file=sys.stderr)
    case = json.dumps({"series": series, "model": model, "nodes": nodes, "degree": degree})
    one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, __file__, "--case", case],
        env={**os.environ, **one_thread},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return Row(**json.loads(result.stdout))


def run_case(series: str, model: str, nodes: int, degree: float) -> Row:
    """Measures one case; needs a process to itself."""
    score = scorer(model)
    rng = np.random.default_rng(0)
    for _ in range(2):
        score(sparse_edges(rng, 10, 15), sparse_edges(rng, 10, 15), 10)
    idle = resident_mb()
    restart_peak()

    edges = round(nodes * degree / 2)
    left, right = sparse_edges(rng, nodes, edges), sparse_edges(rng, nodes, edges)
    score(left, right, nodes)
    peak = peak_mb() - idle

    times: list[float] = []
    while len(times) < MAX_REPEATS and sum(times) < TIME_BUDGET:
        start = time.perf_counter()
        score(left, right, nodes)
        times.append(time.perf_counter() - start)
    return Row(series, model, nodes, edges, statistics.median(times), min(times), peak)


Scorer = Callable[[np.ndarray, np.ndarray, int], float]
"""Scores the pair given by two (E, 2) edge lists over n nodes."""


def scorer(model: str) -> Scorer:
    """A network with fresh weights. What it scores makes no difference to time or memory."""
    import torch

    from graphkin.graphs.batch import PairBatch
    from graphkin.graphs.graph import Graph

    torch.set_num_threads(1)
    torch.manual_seed(0)
    if model == "gmn-literal":
        from literal import LiteralGraphNetwork, LiteralInputs, split_pairs, squared_distance

        literal = LiteralGraphNetwork(matching=True).eval()

        def score_literally(left: np.ndarray, right: np.ndarray, n: int) -> float:
            pair = PairBatch.pack([(Graph(n, left), Graph(n, right))])
            with torch.no_grad():
                vectors = literal(LiteralInputs.from_pairs(pair))
            return -float(squared_distance(*split_pairs(vectors)))

        return score_literally

    from graphkin.models.config import ModelConfig
    from graphkin.models.embedder import GraphEmbedder
    from graphkin.models.matcher import GraphMatcher

    config = ModelConfig.named(model)
    network = GraphEmbedder(config) if model == "gnn" else GraphMatcher(config)

    def score(left: np.ndarray, right: np.ndarray, n: int) -> float:
        return float(network.predict([(Graph(n, left), Graph(n, right))])[0])

    return score


def sparse_edges(rng: np.random.Generator, nodes: int, count: int) -> np.ndarray:
    """(count, 2) distinct undirected edges without self loops, drawn uniformly."""
    codes = np.zeros(0, dtype=np.int64)
    while len(codes) < count:
        ends = np.sort(rng.integers(0, nodes, size=(count, 2)), axis=1)
        ends = ends[ends[:, 0] < ends[:, 1]]
        codes = np.unique(np.concatenate([codes, ends[:, 0] * nodes + ends[:, 1]]))
    chosen = rng.choice(codes, size=count, replace=False)
    return np.stack([chosen // nodes, chosen % nodes], axis=1)


def resident_mb() -> float:
    """Resident memory now. Linux: statm counts pages."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def restart_peak() -> None:
    """Forgets the peak so far, where the system allows it; else imports may count towards it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mb() -> float:
    """The most resident memory since :func:`restart_peak`. Linux counts it in KiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def print_tables(rows: list[Row]) -> None:
    for series, title in (
        ("nodes", f"One pair, mean degree {MEAN_DEGREE:g}"),
        ("edges", f"One pair of {EDGE_SERIES_NODES:,} nodes, growing edges"),
    ):
        print(title)
        print(f"{'model':12} {'nodes':>7} {'edges':>8} {'seconds':>9} {'min':>9} {'peak MB':>9}")
        for row in (row for row in rows if row.series == series):
            print(
                f"{row.model:12} {row.nodes:>7,} {row.edges:>8,} "
                f"{row.seconds:>9.4f} {row.min_seconds:>9.4f} {row.peak_mb:>9.1f}"
            )
        print()
    for model in ("gnn", "gmn"):
        slope, fit = edge_slope(rows, model)
        print(f"{model}: {1e9 * slope:.0f} ns for each further edge, linear fit R^2 = {fit:.4f}")
    for row in rows:
        if row.series == "nodes" and row.model == "gmn" and row.nodes == 5_000:
            verdict = "within" if row.peak_mb < MEMORY_LIMIT_MB else "OVER"
            print(f"gmn, 5,000 nodes: {row.peak_mb:.0f} MB, {verdict} {MEMORY_LIMIT_MB:.0f} MB")


def edge_slope(rows: list[Row], model: str) -> tuple[float, float]:
    """Seconds for each edge of the pair, and how well a line explains the shortest times."""
    series = [row for row in rows if row.series == "edges" and row.model == model]
    edges = np.array([2 * row.edges for row in series], dtype=np.float64)
    seconds = np.array([row.min_seconds for row in series])
    slope, intercept = np.polyfit(edges, seconds, 1)
    residual = seconds - (slope * edges + intercept)
    return float(slope), float(1 - residual.var() / seconds.var())


def plot(rows: list[Row], path: Path) -> None:
    """Three panels: memory against nodes, time against nodes, time against edges."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, (memory, timing, linear) = plt.subplots(1, 3, figsize=(13, 4))
    colours = {"gnn": "tab:blue", "gmn": "tab:orange", "gmn-literal": "tab:grey"}
    for model, colour in colours.items():
        style = {"marker": "o", "color": colour, "label": model}
        series = [row for row in rows if row.series == "nodes" and row.model == model]
        if series:
            nodes = [row.nodes for row in series]
            memory.loglog(nodes, [max(row.peak_mb, 0.1) for row in series], **style)
            timing.loglog(nodes, [row.seconds for row in series], **style)
        series = [row for row in rows if row.series == "edges" and row.model == model]
        if series:
            edges = [2 * row.edges for row in series]
            linear.plot(edges, [row.min_seconds for row in series], **style)
    memory.axhline(MEMORY_LIMIT_MB, color="black", linewidth=0.8, linestyle="--")
    memory.set(xlabel="nodes of each graph", ylabel="peak MB above idle", title="Memory")
    timing.set(xlabel="nodes of each graph", ylabel="seconds", title="Time for one pair")
    linear.set(
        xlabel="edges of the pair",
        ylabel="seconds (shortest)",
        title=f"Time against edges, {EDGE_SERIES_NODES:,} nodes each",
        ylim=(0, None),
    )
    for axes in (memory, timing, linear):
        axes.grid(alpha=0.3)
    memory.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=150)
    print(f"wrote {path}", file=sys.stderr)


if __name__ == "__main__":
    main()
