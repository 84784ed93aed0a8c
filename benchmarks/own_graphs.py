"""From zero to a model that is trained, saved and searched: three commands, timed.

    python benchmarks/own_graphs.py

The molecules are those of docs/own-graphs.md. Times are of the processor, of one thread.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import networkx as nx
import numpy as np

from graphkin import Graph
from graphkin.graphs.converters.json_lines import write_json_lines
from graphkin.graphs.converters.named import NamedGraph

COMMANDS = (
    ("train", "graphs", "molecules.jsonl", "--output", "runs/molecules"),
    ("index", "molecules.kin", "molecules.jsonl", "--model", "runs/molecules"),
    ("search", "molecules.kin", "molecules.jsonl:m3", "--top", "3"),
)


def molecules(count: int = 188) -> list[NamedGraph]:
    """Random trees of atoms with one group: N with two O, or O with N and O."""
    rng = np.random.default_rng(0)
    graphs = []
    for number in range(count):
        is_nitro = number % 2 == 1
        size = int(rng.integers(8, 16))
        tree = nx.random_labeled_tree(size, seed=int(rng.integers(1 << 30)))
        atoms = rng.choice(["C", "N", "O"], size, p=[0.7, 0.2, 0.1]).tolist()
        bonds = [*tree.edges, (int(rng.integers(size)), size), (size, size + 1), (size, size + 2)]
        graph = Graph(size + 3, bonds, node_labels=[*atoms, *("NOO" if is_nitro else "ONO")])
        graphs.append(NamedGraph(f"m{number}", graph, "nitro" if is_nitro else "other"))
    return graphs


def main() -> None:
    """Runs the commands in a folder of their own, and prints what each took."""
    with tempfile.TemporaryDirectory() as folder:
        write_json_lines(Path(folder) / "molecules.jsonl", molecules())
        for command in COMMANDS:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(
                [sys.executable, "-m", "graphkin.cli.main", *command],
                cwd=folder,
                capture_output=True,
                text=True,
                check=True,
            )
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            print(f"{spent:5.1f} s  graphkin {' '.join(command)}")
            print("\n".join(f"         {line}" for line in done.stdout.splitlines()))


if __name__ == "__main__":
    main()
