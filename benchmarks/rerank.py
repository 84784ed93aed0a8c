"""Times the models of a search without torch and by torch: vectors of functions, and rerank.

    python benchmarks/rerank.py [--candidates 100] [--blocks 50] [--repeats 15] [--json]

Made-up functions of equal size, one against all others, by the matcher of the model `functions`;
and the vectors of as many functions by its embedder. Both ways take turns in one process on one
thread, and the fastest of the repeats counts, in seconds of the processor. ``difference`` is the
largest between the two ways.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np
import torch

from graphkin import Graph, GraphEmbedder, GraphMatcher
from graphkin.graphs import TokenBags, WordBags
from graphkin.graphs.words import word_hash
from graphkin.library.models import SearchModel

MODEL = "functions"
CANDIDATES, BLOCKS = 100, 50
OPERATIONS = 6
"""Of a block."""
WORDS = 400
"""That a function may say; each says every tenth block's worth of them."""


class Row(NamedTuple):
    """One line of the table."""

    what: str
    light_ms: float
    torch_ms: float
    difference: float


def made_up(rng: np.random.Generator, blocks: int, tokens: int) -> Graph:
    """A function: each block runs on into the next or branches, and some say a constant."""
    ahead = [(number, number + 1) for number in range(blocks - 1)]
    branches = [(int(a), int(b)) for a, b in rng.integers(0, blocks, (blocks // 2, 2))]
    ids = rng.integers(1, tokens, blocks * OPERATIONS).astype(np.int32)
    said = rng.random(blocks) < 0.5
    words = [word_hash("num", str(number)) for number in rng.integers(0, WORDS, said.sum())]
    return Graph(
        blocks,
        ahead + branches,
        directed=True,
        node_tokens=TokenBags.from_sizes(ids, np.full(blocks, OPERATIONS)),
        node_words=WordBags(np.array(words, np.uint64), np.cumsum([0, *said.astype(int)])),
    )


def compared(what: str, light: Callable[[], Any], slow: Callable[[], Any], repeats: int) -> Row:
    """Both ways in turns."""
    best = {light: float("inf"), slow: float("inf")}
    for _ in range(repeats):
        for way in (light, slow):
            began = time.process_time()
            way()
            best[way] = min(best[way], time.process_time() - began)
    difference = float(np.abs(light() - slow()).max())
    return Row(what, 1e3 * best[light], 1e3 * best[slow], difference)


def measured(candidates: int, blocks: int, repeats: int) -> list[Row]:
    """Both stages, each both ways."""
    model = SearchModel.load(MODEL)
    light_embedder, light_matcher = model.embedder, model.matcher
    assert light_matcher is not None, "the model has one"
    embedder = GraphEmbedder.from_pretrained(MODEL)
    matcher = GraphMatcher.from_pretrained(MODEL)
    rng = np.random.default_rng(0)
    tokens = embedder.config.node_input_size
    graphs = [made_up(rng, blocks, tokens) for _ in range(candidates + 1)]
    pairs = [(graphs[0], graph) for graph in graphs[1:]]
    return [
        compared(
            f"vectors of {candidates} functions",
            lambda: light_embedder.encode(graphs[1:]),
            lambda: embedder.encode(graphs[1:]),
            repeats,
        ),
        compared(
            f"rerank of {candidates} candidates",
            lambda: light_matcher.similarities(pairs),
            lambda: matcher.similarities(pairs),
            repeats,
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--candidates", type=int, default=CANDIDATES)
    parser.add_argument("--blocks", type=int, default=BLOCKS)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    torch.set_num_threads(1)
    rows = measured(options.candidates, options.blocks, options.repeats)
    if options.json:
        print(json.dumps([row._asdict() for row in rows], indent=2))
        return
    title = f"{options.blocks} blocks each"
    print(f"{title:<32}{'light ms':>11}{'torch ms':>11}{'ratio':>8}{'difference':>13}")
    for row in rows:
        ratio = row.torch_ms / row.light_ms
        print(
            f"{row.what:<32}{row.light_ms:>11.1f}{row.torch_ms:>11.1f}{ratio:>8.2f}"
            f"{row.difference:>13.1e}"
        )


if __name__ == "__main__":
    main()
