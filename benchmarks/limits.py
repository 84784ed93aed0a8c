"""How far each stage of a search, and of training, is from what the machine could do at best.

    python benchmarks/limits.py BINARY [--codes 1000000] [--json]

What the machine can do is measured first, on one core: bytes of memory read in a second, and
operations of a large matrix product in a second. A stage's limit is the time that its bytes or its
products would take at that rate, with nothing around them; that of reading is capstone alone.
Training is a step of 20 pairs, forward, backward and Adam.
``BINARY`` is read with all its evidence. Seconds are of the processor, the fastest of several.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import faiss
import numpy as np
import torch
from rerank import BLOCKS, CANDIDATES, MODEL, made_up
from torch.utils.flop_counter import FlopCounterMode
from train_speed import MODELS, WARM_UP, our_training_step

from graphkin.binaries.backends.native import NativeSource, load, processor
from graphkin.library.models import SearchModel
from graphkin.models.config import ModelConfig
from graphkin.models.light.matcher import WIDTH
from graphkin.research.tasks.edits import EditTask

BITS = 256
NEAREST = 500
REPEATS = 7
SETTINGS = ((20, 0.2), (50, 0.5))
"""Nodes of the graphs that are trained on, and their share of edges."""
TRAINING_STEPS = 30
PAIRS = 20
LARGE = 1_024
"""Rows and columns of the product that tells what the machine can do."""
MEMORY = 1 << 28
"""Bytes that are read to tell how fast memory is: more than any cache holds."""


class Row(NamedTuple):
    """One stage."""

    stage: str
    limit_ms: float
    reached_ms: float
    limit: str
    """What it is counted from."""


def fastest(call: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Seconds of the fastest call."""
    spent = []
    for _ in range(repeats):
        began = time.process_time()
        call()
        spent.append(time.process_time() - began)
    return min(spent)


def machine() -> tuple[float, float]:
    """Bytes of memory, and operations of a matrix product, in a second."""
    numbers = np.ones(MEMORY // 8, np.uint64)
    matrix = np.ones((LARGE, LARGE), np.float32)
    bandwidth = MEMORY / fastest(lambda: np.bitwise_or.reduce(numbers))
    return bandwidth, 2 * LARGE**3 / fastest(lambda: matrix @ matrix)


def code_search(codes: int, bandwidth: float) -> Row:
    """The nearest codes of one."""
    rng = np.random.default_rng(0)
    stored = rng.integers(0, 256, (codes, BITS // 8), dtype=np.uint8)
    index = faiss.IndexBinaryFlat(BITS)
    index.add(stored)
    reached = fastest(lambda: index.search(stored[:1], NEAREST))
    text = f"{stored.nbytes / 1e6:.0f} MB of memory"
    return Row(f"nearest of {codes:,} codes", 1e3 * stored.nbytes / bandwidth, 1e3 * reached, text)


def network_operations(config: ModelConfig, nodes: int) -> int:
    """Of the products of the node encoder and the steps, for some nodes."""
    width = config.node_dim
    return 2 * nodes * width * (config.node_input_size + 3 * config.steps * width)


def vectors(model: SearchModel, rate: float) -> Row:
    """Of functions of equal size."""
    config = model.embedder.config
    rng = np.random.default_rng(0)
    graphs = [made_up(rng, BLOCKS, config.node_input_size) for _ in range(CANDIDATES)]
    nodes, size = CANDIDATES * BLOCKS, config.graph_dim
    readout = nodes * config.node_dim * 2 * size
    readout += CANDIDATES * 2 * size * (size + 2 * config.node_dim + size)
    operations = network_operations(config, nodes) + 2 * readout
    reached = fastest(lambda: model.embedder.encode(graphs))
    text = f"{operations / 1e9:.2f} billion operations of products"
    return Row(f"vectors of {CANDIDATES} functions", 1e3 * operations / rate, 1e3 * reached, text)


def rerank(model: SearchModel, rate: float) -> Row:
    """One function against others of equal size."""
    matcher = model.matcher
    assert matcher is not None, "the model has one"
    config = matcher.config
    rng = np.random.default_rng(0)
    graphs = [made_up(rng, BLOCKS, config.node_input_size) for _ in range(CANDIDATES + 1)]
    nodes, compared = (CANDIDATES + 1) * BLOCKS, WIDTH + config.word_dim
    views = nodes * WIDTH * (config.node_dim + 2 * WIDTH)
    # Scores of every node with every node, what each sees both ways, and what that makes of it.
    pairs = 3 * CANDIDATES * BLOCKS**2 * compared + 2 * CANDIDATES * BLOCKS * 2 * WIDTH**2
    operations = network_operations(config, nodes) + 2 * (views + pairs)
    queries = [(graphs[0], graph) for graph in graphs[1:]]
    reached = fastest(lambda: matcher.similarities(queries))
    text = f"{operations / 1e9:.2f} billion operations of products"
    return Row(f"rerank of {CANDIDATES} candidates", 1e3 * operations / rate, 1e3 * reached, text)


def reading(path: Path) -> Row:
    """All functions of a file, with evidence."""
    image = load(path.read_bytes(), str(path))
    pieces = [(image.read(item.start, item.end - item.start), item.start) for item in image.extents]
    decoder = processor(image.architecture).decoder("")

    def decode() -> None:
        for code, address in pieces:
            decoder.decode(code, address)

    def read() -> None:
        for _ in NativeSource(path, with_evidence=True).functions():
            pass

    text = f"{sum(len(code) for code, _ in pieces) / 1e3:,.0f} KB decoded by capstone"
    name = f"reading {len(pieces):,} functions"
    return Row(name, 1e3 * fastest(decode, 3), 1e3 * fastest(read, 3), text)


def training(model: str, nodes: int, p: float, rate: float) -> Row:
    """One step of the paper's architecture on random graphs."""
    step = our_training_step(model)
    task = EditTask(nodes=(nodes, nodes), p=(p, p))
    batches = [task.batch(number, PAIRS, "pairs") for number in range(WARM_UP + TRAINING_STEPS)]
    for batch in batches[:WARM_UP]:
        step(batch)
    with FlopCounterMode(display=False) as counter:
        step(batches[0])
    operations = counter.get_total_flops()
    reached = min(map(step, batches[WARM_UP:]))
    text = f"{operations / 1e9:.2f} billion operations of products"
    name = f"training {model}, {nodes} nodes, p={p}"
    return Row(name, 1e3 * operations / rate, 1e3 * reached, text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("binary", type=Path)
    parser.add_argument("--codes", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    torch.set_num_threads(1)
    bandwidth, rate = machine()
    model = SearchModel.load(MODEL)
    rows = [
        code_search(options.codes, bandwidth),
        vectors(model, rate),
        rerank(model, rate),
        reading(options.binary),
    ]
    rows += [training(kind, *setting, rate) for kind in MODELS for setting in SETTINGS]
    if options.json:
        document = {"bytes_per_second": bandwidth, "operations_per_second": rate}
        print(json.dumps({**document, "stages": [row._asdict() for row in rows]}, indent=2))
        return
    print(f"memory {bandwidth / 1e9:.1f} GB/s, products {rate / 1e9:.0f} billion operations/s")
    print(f"{'stage':<30}{'limit ms':>10}{'reached ms':>12}{'share':>8}  limit counted from")
    for row in rows:
        share = row.limit_ms / row.reached_ms
        times = f"{row.limit_ms:>10.1f}{row.reached_ms:>12.1f}{share:>8.0%}"
        print(f"{row.stage:<30}{times}  {row.limit}")


if __name__ == "__main__":
    main()
