"""Times one training step, graphkin against a literal port, on one thread.

    python benchmarks/train_speed.py [--json] [--repeats N] [--pairs P]

A training step is zero_grad, forward, margin loss, backward, clipping and Adam; the two
networks take turns on the same graphs, each laid out for it beforehand, and every step gets a
batch that neither has seen. graphkin's step is that of its training loop, the literal one is
written the usual way. ``data`` is the time to make a batch and lay it out, as a share of our
step. The last rows score pairs: forward only, without gradients.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", NUMBA_NUM_THREADS="1")

import torch
from literal import (
    LiteralGraphNetwork,
    LiteralInputs,
    split_pairs,
    squared_distance,
    training_loss,
)
from torch import Tensor, nn

from graphkin.graphs.batch import PairBatch
from graphkin.learning.training.config import TrainConfig
from graphkin.learning.training.optimizer import FlatOptimizer
from graphkin.models.config import ModelConfig
from graphkin.models.embedder import GraphEmbedder
from graphkin.models.matcher import GraphMatcher
from graphkin.research.tasks.edits import EditTask

TRAIN_SETTINGS = [(20, 0.2), (20, 0.5), (50, 0.2), (50, 0.5)]
SCORE_SETTINGS = [(100, 0.2)]
MODELS = ["gnn", "gmn"]
WARM_UP = 3
"""Steps ahead of the timed ones: kernels are compiled and the allocator fills its caches."""
DATA_STEPS = 150
"""Batches over which the time to make one is averaged."""

Step = Callable[[PairBatch], float]
"""Runs one step on a batch and returns its seconds."""
Prepare = Callable[[PairBatch], PairBatch | LiteralInputs]
Forward = Callable[[PairBatch | LiteralInputs], tuple[Tensor, Tensor, Tensor]]
"""The vectors of both sides and their squared distances."""


@dataclass(frozen=True)
class Row:
    """One line of the table. Times are medians over the repeats, in milliseconds a batch."""

    mode: str
    """``train`` or ``score``."""
    model: str
    n: int
    p: float
    pairs: int
    ours_ms: float
    literal_ms: float
    ratio: float
    """literal_ms / ours_ms: how many times faster graphkin is."""
    ours_min_ms: float
    literal_min_ms: float
    ratio_min: float
    """The ratio of the shortest times: steadier where other programs share the machine."""
    data_ms: float
    """Time to generate one batch, averaged."""
    data_share: float
    """data_ms / ours_ms."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Times a training step, graphkin against a literal port, on one thread."
    )
    parser.add_argument("--json", action="store_true", help="print a JSON list instead of a table")
    parser.add_argument("--repeats", type=int, default=20, help="timed steps of each (default 20)")
    parser.add_argument("--pairs", type=int, default=20, help="pairs in a batch (default 20)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)

    cases = [("train", model, n, p) for model in MODELS for n, p in TRAIN_SETTINGS]
    cases += [("score", model, n, p) for model in MODELS for n, p in SCORE_SETTINGS]
    rows = []
    for mode, model, n, p in cases:
        print(f"{mode} {model} n={n} p={p} ...", file=sys.stderr)
        rows.append(measure(mode, model, n, p, arguments.pairs, arguments.repeats))
    if arguments.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        print_table(rows, arguments.repeats)


def measure(mode: str, model: str, n: int, p: float, pairs: int, repeats: int) -> Row:
    """Times both networks in turn: ours, literal, ours, literal, ..."""
    task = EditTask(nodes=(n, n), p=(p, p))
    torch.manual_seed(0)
    if mode == "train":
        ours_step = our_training_step(model)
        literal_step = literal_training_step(*literal_network(model))
    else:
        ours_step = scoring_step(*our_network(model))
        literal_step = scoring_step(*literal_network(model))
    ours, literal = [], []
    for step in range(WARM_UP + repeats):
        batch = task.batch(step, pairs, "pairs")
        ours.append(1e3 * ours_step(batch))
        literal.append(1e3 * literal_step(batch))
    ours, literal = ours[WARM_UP:], literal[WARM_UP:]
    ours_ms, literal_ms = statistics.median(ours), statistics.median(literal)
    data_ms = 1e3 * data_time(replace(task, seed=1), pairs, our_network(model)[1])
    return Row(
        mode=mode,
        model=model,
        n=n,
        p=p,
        pairs=pairs,
        ours_ms=ours_ms,
        literal_ms=literal_ms,
        ratio=literal_ms / ours_ms,
        ours_min_ms=min(ours),
        literal_min_ms=min(literal),
        ratio_min=min(literal) / min(ours),
        data_ms=data_ms,
        data_share=data_ms / ours_ms,
    )


def data_time(task: EditTask, pairs: int, prepare: Prepare) -> float:
    """Mean seconds for a batch; a mean, as the task draws many batches at once."""
    start = time.perf_counter()
    for step in range(DATA_STEPS):
        prepare(task.batch(step, pairs, "pairs"))
    return (time.perf_counter() - start) / DATA_STEPS


def our_network(model: str) -> tuple[nn.Module, Prepare, Forward]:
    config = ModelConfig.named(model)
    network = GraphEmbedder(config) if model == "gnn" else GraphMatcher(config)

    def forward(batch: PairBatch) -> tuple[Tensor, Tensor, Tensor]:
        output = network(batch)
        return output.left, output.right, -output.scores

    return network, network.prepare, forward


def literal_network(model: str) -> tuple[nn.Module, Prepare, Forward]:
    network = LiteralGraphNetwork(matching=model == "gmn")

    def forward(inputs: LiteralInputs) -> tuple[Tensor, Tensor, Tensor]:
        left, right = split_pairs(network(inputs))
        return left, right, squared_distance(left, right)

    return network, LiteralInputs.from_pairs, forward


def our_training_step(model: str) -> Step:
    """The step of graphkin's training loop."""
    network, prepare, forward = our_network(model)
    config = TrainConfig(learning_rate=1e-3, clip=10.0)
    optimizer = FlatOptimizer(network, config)
    network.train()

    def step(batch: PairBatch) -> float:
        inputs, labels = prepare(batch), batch.labels
        start = time.perf_counter()
        optimizer.zero_grad()
        left, right, distances = forward(inputs)
        training_loss(left, right, distances, labels).backward()
        optimizer.step(config.learning_rate)
        return time.perf_counter() - start

    return step


def literal_training_step(network: nn.Module, prepare: Prepare, forward: Forward) -> Step:
    """The usual step: clipping and Adam over the list of parameters."""
    parameters = list(network.parameters())
    optimizer = torch.optim.Adam(parameters, lr=1e-3)
    network.train()

    def step(batch: PairBatch) -> float:
        inputs, labels = prepare(batch), batch.labels
        start = time.perf_counter()
        optimizer.zero_grad()
        left, right, distances = forward(inputs)
        training_loss(left, right, distances, labels).backward()
        nn.utils.clip_grad_norm_(parameters, 10.0)
        optimizer.step()
        return time.perf_counter() - start

    return step


def scoring_step(network: nn.Module, prepare: Prepare, forward: Forward) -> Step:
    """Forward only."""
    network.eval()

    def step(batch: PairBatch) -> float:
        inputs = prepare(batch)
        start = time.perf_counter()
        with torch.no_grad():
            forward(inputs)
        return time.perf_counter() - start

    return step


def print_table(rows: list[Row], repeats: int) -> None:
    pairs = rows[0].pairs
    print(f"Milliseconds for {pairs} pairs, one thread: median (min) of {repeats} steps\n")
    header = f"{'mode':5} {'model':5} {'n':>4} {'p':>4} {'graphkin':>18} {'literal':>18}"
    print(f"{header} {'ratio':>7} {'data':>6}")
    for row in rows:
        ours = f"{row.ours_ms:.2f} ({row.ours_min_ms:.2f})"
        literal = f"{row.literal_ms:.2f} ({row.literal_min_ms:.2f})"
        print(
            f"{row.mode:5} {row.model:5} {row.n:>4} {row.p:>4} {ours:>18} {literal:>18} "
            f"{row.ratio:>6.1f}x {row.data_share:>6.0%}"
        )


if __name__ == "__main__":
    main()
