"""How well could any model do on functions? Counts what no comparison of two graphs can tell apart.

    python experiments/functions_ceiling.py --corpus corpus.graphs

In pools of test functions, an answer that has k twins among the other candidates is found first by
chance alone, once in k + 1 times. Twins have equal graphs; or, less strictly, the same numbers of
blocks and edges and the same degrees, and mnemonics that differ by a small share. Between builds
mnemonics differ by far more, which is printed beside it. The result is also written to
``experiments/results/functions-ceiling.json``.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from graphkin import Graph
from graphkin._support.files import write_atomically
from graphkin.learning.task import RetrievalPool
from graphkin.research.reproduce.table_layout import HARDEST, HARDEST_POOLS
from graphkin.research.tasks.functions.pools import build_named, pools_between
from graphkin.research.tasks.functions.task import FunctionTask

RESULT = Path(__file__).parent / "results" / "functions-ceiling.json"
SHARES = (0.0, 0.02, 0.05, 0.1)
"""Of mnemonics that may differ between twins."""


def mnemonics(graph: Graph, words: int) -> np.ndarray:
    """(W,) how often each occurs."""
    assert graph.node_tokens is not None
    return np.bincount(graph.node_tokens.ids, minlength=words)


def shape(graph: Graph) -> tuple[Any, ...]:
    """Equal for graphs with the same numbers of nodes, edges, and degrees."""
    leaving, entering = (np.bincount(ends, minlength=graph.num_nodes) for ends in graph.edges.T)
    return graph.num_nodes, *sorted(zip(leaving.tolist(), entering.tolist(), strict=True))


def difference(bag: np.ndarray, other: np.ndarray) -> float:
    """Share of mnemonics that differ."""
    return float(np.abs(bag - other).sum() / (bag.sum() + other.sum()))


def twins(block: RetrievalPool, words: int) -> dict[str, np.ndarray]:
    """(Q,) numbers of twins of each answer, by how alike they must be."""
    bags = [mnemonics(graph, words) for graph in block.pool]
    shapes = [shape(graph) for graph in block.pool]
    digests = [graph.digest() for graph in block.pool]
    twins = {name: [] for name in ("equal", *map(str, SHARES))}  # type: dict[str, list[int]]
    for answer in range(len(block.queries)):
        others = [n for n in range(len(block.pool)) if n != answer]
        alike = [n for n in others if shapes[n] == shapes[answer]]
        distances = np.array([difference(bags[answer], bags[n]) for n in alike])
        twins["equal"].append(sum(digests[n] == digests[answer] for n in alike))
        for share in SHARES:
            twins[str(share)].append(int((distances <= share).sum()))
    return {name: np.array(counts) for name, counts in twins.items()}


def ceiling(blocks: Sequence[RetrievalPool], words: int) -> dict[str, Any]:
    """The best recall at 1 that is to be expected, by how alike twins must be."""
    of_blocks = [twins(block, words) for block in blocks]
    together = {name: np.concatenate([part[name] for part in of_blocks]) for name in of_blocks[0]}
    distances = [
        difference(mnemonics(query, words), mnemonics(answer, words))
        for block in blocks
        for query, answer in zip(block.queries, block.pool, strict=False)
    ]
    return {
        "queries": len(distances),
        "pool": max(len(block.pool) for block in blocks),
        "with_twins": {name: float((counts > 0).mean()) for name, counts in together.items()},
        "recall_at_1": {
            name: float((1 / (1 + counts)).mean()) for name, counts in together.items()
        },
        "mnemonics_between_builds": float(np.median(distances)),
    }


def table(measured: dict[str, dict[str, Any]]) -> str:
    head = ["equal graphs", *(f"{100 * share:.0f}%" for share in SHARES)]
    what = "recall@1 at best, twins with mnemonics apart by at most"
    lines = [
        f"| {what} | {' | '.join(head)} | between builds |",
        "|---" * (len(head) + 2) + "|",
    ]
    for name, measures in measured.items():
        cells = [f"{100 * value:.1f}" for value in measures["recall_at_1"].values()]
        cells.append(f"{100 * measures['mnemonics_between_builds']:.0f}%")
        lines.append(
            f"| {name} ({measures['queries']} in {measures['pool']}) | {' | '.join(cells)} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, required=True)
    options = parser.parse_args()
    measured = {}
    for protocol in ("paper", "clean"):
        task = FunctionTask(str(options.corpus), protocol=protocol)
        words = len(task.vocabulary)
        pools = {
            "pools of 100": task.retrieval("test"),
            "all functions": replace(task, pool=0).retrieval("test"),
        }
        queries, known = (build_named(task, name) for name in HARDEST)
        if queries is not None and known is not None:
            for size, name in HARDEST_POOLS.items():
                pools[name] = pools_between(replace(task, pool=size), "test", queries, known)
        for name, blocks in pools.items():
            measured[f"{protocol}, {name}"] = ceiling(blocks, words)
    digest = task.data.digest
    document = {"corpus": digest, "searches": measured}
    write_atomically(RESULT, json.dumps(document, indent=1).encode())
    print(table(measured))


if __name__ == "__main__":
    main()
