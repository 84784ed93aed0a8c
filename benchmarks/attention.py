"""Time and memory of scoring one pair of large graphs, by three ways of computing its attention.

    python benchmarks/attention.py [--nodes 5000 20000] [--rounds 2] [--json]

``softmax each way`` holds slices of the scores and computes them twice, once for each direction;
``one exponential`` holds slices and computes them once; ``tiles`` is what graphkin does where numba
is installed. All ways take turns, each time in a fresh process, on one thread; the shortest time
counts, in seconds of the processor, and the largest peak of memory above the idle process.
``difference`` is the largest of what nodes attend to, from the first way, where values are of
size 1. Only scoring differs: the backward pass computes the weights anew in slices.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from unittest import mock

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", NUMBA_NUM_THREADS="1")

import numpy as np
from scaling import MEAN_DEGREE, peak_mb, resident_mb, restart_peak, scorer, sparse_edges

WAYS = {
    "softmax each way": ["runs_in_tiles", "_joint_slices"],
    "one exponential": ["runs_in_tiles"],
    "tiles": [],
}
"""What each does without."""
LITERAL = "softmax each way"
NODES = (5_000, 20_000)
SECONDS = 4.0
"""Of repeats in each process."""


@dataclass(frozen=True)
class Row:
    """One way at one size."""

    nodes: int
    """Of each of the two graphs."""
    way: str
    seconds: float
    peak_mb: float
    difference: float


@contextmanager
def computed_by(way: str) -> Iterator[None]:
    """Attention is computed this way."""
    from graphkin.models.kernels import attention_blocks

    def never(*_: object) -> bool:
        return False

    with ExitStack() as stack:
        for name in WAYS[way]:
            stack.enter_context(mock.patch.object(attention_blocks, name, never))
        yield


def run_case(nodes: int, way: str) -> Row:
    """Measures one case; needs a process to itself."""
    import torch

    torch.set_num_threads(1)
    score = scorer("gmn")
    rng = np.random.default_rng(0)
    with computed_by(way):
        for count in (10, 300):
            edges = round(count * MEAN_DEGREE / 2)
            score(sparse_edges(rng, count, edges), sparse_edges(rng, count, edges), count)
        idle = resident_mb()
        restart_peak()
        edges = round(nodes * MEAN_DEGREE / 2)
        left, right = sparse_edges(rng, nodes, edges), sparse_edges(rng, nodes, edges)
        score(left, right, nodes)
        peak = peak_mb() - idle
        times: list[float] = []
        while not times or sum(times) < SECONDS:
            began = time.process_time()
            score(left, right, nodes)
            times.append(time.process_time() - began)
    return Row(nodes, way, min(times), peak, difference(nodes, way))


def difference(nodes: int, way: str) -> float:
    """The largest from the first way, of what the nodes of two graphs attend to."""
    import torch

    from graphkin.graphs import Graph, PairBatch
    from graphkin.models.kernels.attend import attend
    from graphkin.models.kernels.attention_blocks import EUCLIDEAN

    generator = torch.Generator().manual_seed(0)
    pair = PairBatch.pack([(Graph(nodes), Graph(nodes))])
    states = 0.3 * torch.randn(2 * nodes, 32, generator=generator)
    values = torch.nn.functional.normalize(states, dim=1)
    bias = -torch.linalg.vecdot(states, states)
    outs = []
    for each in (LITERAL, way):
        with computed_by(each), torch.no_grad():
            outs.append(attend(None, states, values, bias, pair.groups, EUCLIDEAN))
    return float((outs[0] - outs[1]).abs().max())


def in_new_process(nodes: int, way: str) -> Row:
    print(f"{nodes:,} nodes, {way} ...", file=sys.stderr)
    command = [sys.executable, __file__, "--case", json.dumps([nodes, way])]
    return Row(**json.loads(subprocess.check_output(command, text=True)))


def measured(sizes: list[int], rounds: int) -> list[Row]:
    """All ways in turns, by size."""
    rows = []
    for nodes in sizes:
        tries = [[in_new_process(nodes, way) for way in WAYS] for _ in range(rounds)]
        for same in zip(*tries, strict=True):
            seconds, peak = min(row.seconds for row in same), max(row.peak_mb for row in same)
            rows.append(Row(nodes, same[0].way, seconds, peak, same[0].difference))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, nargs="+", default=list(NODES))
    parser.add_argument("--rounds", type=int, default=2, help="processes for each case")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(asdict(run_case(*json.loads(options.case)))))
        return
    rows = measured(options.nodes, options.rounds)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(f"{'nodes':>7}  {'way':<18}{'seconds':>9}{'ratio':>8}{'peak MB':>9}{'difference':>13}")
    first = {row.nodes: row.seconds for row in rows if row.way == LITERAL}
    for row in rows:
        print(
            f"{row.nodes:>7,}  {row.way:<18}{row.seconds:>9.3f}"
            f"{first[row.nodes] / row.seconds:>8.2f}{row.peak_mb:>9.1f}{row.difference:>13.1e}"
        )


if __name__ == "__main__":
    main()
