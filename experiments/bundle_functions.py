"""Small test functions, to check a model without a corpus: chooses them, and reads them.

    python experiments/bundle_functions.py --corpus corpus.graphs

writes ``bundled_functions.json`` beside it: functions that no training saw, by the clean
protocol, each in two builds that differ, of at most 40 blocks.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from graphkin.graphs import Graph, TokenBags
from graphkin.graphs.vocabulary import Vocabulary
from graphkin.learning.task import EvaluationSet
from graphkin.research.tasks.functions.task import FunctionTask

BUNDLE = Path(__file__).parent / "bundled_functions.json"
COUNT = 150
LEAST_BLOCKS, MOST_BLOCKS = 5, 40
SEED = 0


def two_builds(task: FunctionTask, builds: dict[str, int], rng: np.random.Generator) -> list[Graph]:
    """Two graphs of a function, different and small; none where there are no such."""
    names = sorted(builds)
    order = [names[number] for number in rng.permutation(len(names))]
    chosen: dict[int, Graph] = {}
    for name, graph in zip(order, task.graphs_of(builds[name] for name in order), strict=True):
        if LEAST_BLOCKS <= graph.num_nodes <= MOST_BLOCKS:
            chosen.setdefault(int(task.data.contents[builds[name]]), graph)
    return list(chosen.values())[:2] if len(chosen) > 1 else []


def record(graph: Graph) -> dict[str, list[list[int]]]:
    """What the file holds of a graph."""
    assert graph.node_tokens is not None
    # Token 0 stands for words that are not in the vocabulary; the corpus's own has them all.
    bags = [graph.node_tokens.bag(node) for node in range(graph.num_nodes)]
    blocks = [[int(token) - 1 for token in bag] for bag in bags]
    return {"edges": graph.edges.tolist(), "blocks": blocks}


def bundled_functions(vocabulary: Vocabulary) -> EvaluationSet:
    """Test functions of ffmpeg, small ones, each in two builds.

    Two builds of one function are similar; the first build of a function and the second of the
    next in line are dissimilar.

    Args:
        vocabulary: what the model calls mnemonics.
    """
    document = json.loads(BUNDLE.read_text(encoding="utf-8"))
    tokens = vocabulary.encode(document["words"])
    first, second = (
        [read_graph(function[side], tokens) for function in document["functions"]]
        for side in (0, 1)
    )
    following = second[1:] + second[:1]
    pairs = (*zip(first, second, strict=True), *zip(first, following, strict=True))
    labels = np.repeat([1, -1], len(first)).astype(np.float32)
    return EvaluationSet(pairs, labels, tuple(zip(first, second, following, strict=True)))


def read_graph(stored: dict[str, list[list[int]]], tokens: np.ndarray) -> Graph:
    """A graph from its edges, and for each block the numbers of its mnemonics in the word list."""
    bags = TokenBags.from_lists([tokens[block].tolist() for block in stored["blocks"]])
    return Graph(len(stored["blocks"]), stored["edges"], directed=True, node_tokens=bags)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--corpus", type=Path, required=True)
    arguments = parser.parse_args()
    every = FunctionTask(arguments.corpus).data.corpus.words.words
    task = FunctionTask(arguments.corpus, protocol="clean", words=every)
    rng = np.random.default_rng(SEED)
    classes, seen, functions = task.classes("test"), set(), []
    for number in rng.permutation(len(classes)).tolist():
        if len(functions) == COUNT:
            break
        graphs = two_builds(task, classes[number].graphs, rng)
        if graphs and classes[number].group not in seen:
            seen.add(classes[number].group)
            functions.append([record(graph) for graph in graphs])
    document = {"words": every, "functions": functions}
    BUNDLE.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")
    print(f"{len(functions)} functions, {BUNDLE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
