"""What a corpus of functions holds, in numbers."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.binaries.corpus import FunctionCorpus
from graphkin.research.tasks.functions.groups import FunctionClass, contents_of, function_classes


@dataclass(frozen=True)
class Sizes:
    """Of the graphs of some functions."""

    functions: int
    graphs: int
    mean_nodes: float
    mean_edges: float
    median_nodes: float
    p90_nodes: float
    largest: int
    mnemonics: int


@dataclass(frozen=True)
class CorpusStats:
    """Counts of a whole corpus; functions are told apart by library, source file and name."""

    digest: str
    binaries: int
    graphs: int
    builds: dict[str, int]
    """Graphs of each build."""
    in_all_builds: Sizes
    in_two_builds: Sizes
    """Functions that at least two builds have."""
    header_functions: int
    """Functions of at least two builds that debug information finds in a header."""
    shared_graphs: float
    """Share of the graphs that stand for a function in a build that are equal, mnemonics
    included, to one of another function."""
    equal_builds: dict[str, float]
    """Share of common functions with equal graphs, for the two builds of each compiler that are
    most alike."""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def to_text(self) -> str:
        lines = [
            f"{self.graphs:,} graphs of {self.binaries} binaries, data {self.digest[:12]}",
            *(f"  {build:<24}{count:>8,}" for build, count in self.builds.items()),
            f"functions in all {len(self.builds)} builds:",
            *_size_lines(self.in_all_builds),
            "functions in at least 2 builds:",
            *_size_lines(self.in_two_builds),
            f"  {'defined in headers':<24}{self.header_functions:>8,}",
            f"graphs equal to one of another function: {self.shared_graphs:.0%}",
        ]
        lines += [
            f"functions equal in {pair}: {share:.0%}" for pair, share in self.equal_builds.items()
        ]
        return "\n".join(lines)


def corpus_stats(corpus: FunctionCorpus) -> CorpusStats:
    """Counts everything once; takes some seconds for 50,000 graphs."""
    builds = Counter(entry.binary.build for entry in corpus.entries)
    anywhere = function_classes(corpus, 1)
    two = [item for item in anywhere if len(item.graphs) >= 2]
    every = [item for item in anywhere if len(item.graphs) == len(builds)]
    contents = contents_of(corpus, range(len(corpus)))
    return CorpusStats(
        digest=corpus.digest(),
        binaries=len(corpus.binaries),
        graphs=len(corpus),
        builds=dict(sorted(builds.items())),
        in_all_builds=_sizes(corpus, every),
        in_two_builds=_sizes(corpus, two),
        header_functions=sum(item.in_header for item in two),
        shared_graphs=_shared(anywhere, contents),
        equal_builds=_equal_builds(anywhere, contents),
    )


def graph_numbers(classes: list[FunctionClass]) -> NDArray[np.int64]:
    """The graphs of some functions."""
    numbers = [graph for item in classes for graph in item.graphs.values()]
    return np.array(numbers, dtype=np.int64)


def _sizes(corpus: FunctionCorpus, classes: list[FunctionClass]) -> Sizes:
    numbers = graph_numbers(classes)
    if not len(numbers):
        return Sizes(0, 0, 0.0, 0.0, 0.0, 0.0, 0, 0)
    nodes, edges = corpus.store.node_counts[numbers], corpus.store.edge_counts[numbers]
    seen = np.zeros(len(corpus.words), dtype=np.bool_)
    for number in numbers.tolist():
        tokens = corpus.store[number].node_tokens
        if tokens is not None:
            seen[tokens.ids] = True
    return Sizes(
        functions=len(classes),
        graphs=len(numbers),
        mean_nodes=float(nodes.mean()),
        mean_edges=float(edges.mean()),
        median_nodes=float(np.median(nodes)),
        p90_nodes=float(np.percentile(nodes, 90)),
        largest=int(nodes.max()),
        mnemonics=int(seen.sum()),
    )


def _shared(classes: list[FunctionClass], contents: NDArray[np.int64]) -> float:
    owners: dict[int, set[int]] = defaultdict(set)
    for number, item in enumerate(classes):
        for graph in item.graphs.values():
            owners[int(contents[graph])].add(number)
    graphs = graph_numbers(classes).tolist()
    shared = sum(len(owners[int(contents[graph])]) > 1 for graph in graphs)
    return shared / max(len(graphs), 1)


def _equal_builds(classes: list[FunctionClass], contents: NDArray[np.int64]) -> dict[str, float]:
    """For each compiler the pair of builds that have the largest share of equal graphs."""
    common: Counter[tuple[str, str]] = Counter()
    equal: Counter[tuple[str, str]] = Counter()
    for item in classes:
        builds = sorted(item.graphs)
        for position, first in enumerate(builds):
            for second in builds[position + 1 :]:
                if first.rpartition("-")[0] == second.rpartition("-")[0]:
                    common[first, second] += 1
                    left, right = contents[item.graphs[first]], contents[item.graphs[second]]
                    equal[first, second] += bool(left == right)
    best: dict[str, tuple[float, str]] = {}
    for pair, count in sorted(common.items()):
        compiler = pair[0].rpartition("-")[0]
        share = (equal[pair] / count, " and ".join(pair))
        best[compiler] = max(best.get(compiler, share), share)
    return {pair: share for share, pair in best.values()}


def _size_lines(sizes: Sizes) -> list[str]:
    rows = {
        "functions": f"{sizes.functions:,}",
        "mean nodes": f"{sizes.mean_nodes:.1f}",
        "mean edges": f"{sizes.mean_edges:.1f}",
        "median nodes": f"{sizes.median_nodes:g}",
        "90th percentile": f"{sizes.p90_nodes:g}",
        "largest": f"{sizes.largest:,}",
        "mnemonics": f"{sizes.mnemonics:,}",
    }
    return [f"  {name:<24}{value:>8}" for name, value in rows.items()]
