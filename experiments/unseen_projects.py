"""How well functions of projects that nobody trained on are found: recall by direction.

    python experiments/unseen_projects.py CORPUS [--model FOLDER] [--split validation] [--json FILE]

A query is a function of configuration A with at least five blocks, whose name is there once in A
and in B. The pool is every function of B of all projects of the split. Each row is one stage of a
search by itself: parts of the vectors, their sum, codes.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphkin import GraphEmbedder
from graphkin.binaries.corpus import FunctionCorpus
from graphkin.graphs.words import KINDS, kinds_of
from graphkin.research.tasks.projects import NARROW, ProjectTask

DIRECTIONS = {
    "XO+XC": ("x86_64-gcc-O0", "x86_64-clang-O3"),
    "XC": ("x86_64-clang-O1", "x86_64-gcc-O3"),
    "same level": ("x86_64-gcc-O2", "x86_64-clang-O2"),
    "XA 64": ("x86_64-gcc-O2", "aarch64-gcc-O2"),
    "XM": ("aarch64-gcc-O0", "x86_64-clang-O3"),
    "XA 32 ARM": ("x86_64-gcc-O2", "arm-gcc-O2"),
    "XB": ("x86_64-gcc-O2", "i386-gcc-O2"),
    "XA 32/64": ("arm-gcc-O0", "aarch64-gcc-O2"),
    "XA MIPS": ("x86_64-gcc-O2", "mipsel-gcc-O2"),
    "MIPS endian": ("mips-gcc-O2", "mipsel-gcc-O2"),
}
RARE = 5.0
"""Rarity above which a constant says something."""
Scores = NDArray[np.float32]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", help="what graphkin extract --evidence wrote")
    parser.add_argument("--model", default="functions", help="an embedder that reads words")
    parser.add_argument("--split", choices=("validation", "test"), default="validation")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    options = parser.parse_args()
    rows = measure(ProjectTask(options.corpus), options.model, options.split)
    print(table(rows))
    if options.json is not None:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def measure(task: ProjectTask, model: str, split: str) -> dict[str, dict[str, dict[str, float]]]:
    """{stage: {direction: measures}}."""
    embedder = GraphEmbedder.from_pretrained(model)
    corpus = FunctionCorpus.open(task.corpus)
    projects = set(task.test if split == "test" else task.validation)
    named = {
        build.number: (item.project, item.name)
        for item in task.functions(split)
        for build in item.builds
    }
    members: dict[str, list[int]] = {}
    large_enough = corpus.store.node_counts >= task.min_nodes
    for number, entry in enumerate(corpus.entries):
        if entry.binary.build in projects and large_enough[number]:
            members.setdefault(entry.binary.library, []).append(number)
    rows: dict[str, dict[str, dict[str, float]]] = {}
    encoded: dict[str, Scores] = {}
    for direction, (query_build, pool_build) in DIRECTIONS.items():
        if not {query_build, pool_build} <= members.keys():
            continue
        for build in (query_build, pool_build):
            if build not in encoded:
                encoded[build] = embedder.encode([task.graph(n) for n in members[build]])
        place = {named[n]: at for at, n in enumerate(members[pool_build]) if n in named}
        queries = [
            at for at, n in enumerate(members[query_build]) if n in named and named[n] in place
        ]
        answers = np.array([place[named[members[query_build][at]]] for at in queries])
        left, right = encoded[query_build][queries], encoded[pool_build]
        same_width = query_build.startswith(NARROW) == pool_build.startswith(NARROW)
        silent = np.array(
            [says_nothing(task, embedder, members[query_build][at]) for at in queries]
        )
        for stage, scores in stages(embedder, left, right, same_width).items():
            result = recalls(scores, answers)
            result["silent recall@1"] = recalls(scores[silent], answers[silent])["recall@1"]
            result |= {"queries": len(queries), "pool": len(right), "silent": float(silent.mean())}
            rows.setdefault(stage, {})[direction] = result
    return rows


def stages(
    embedder: GraphEmbedder, left: Scores, right: Scores, same_width: bool
) -> dict[str, Scores]:
    """(Q, P) similarities of each stage."""
    parts = {
        name: embedder.part(left, name) @ embedder.part(right, name).T
        for name in ("graph", "words", "offsets")
    }
    both = parts["graph"] + parts["words"]
    bits = [
        np.unpackbits(embedder.codes_of(side), axis=1).astype(np.float32) for side in (left, right)
    ]
    signs = [2 * side - 1 for side in bits]
    return {
        "graph": parts["graph"],
        "words": parts["words"],
        "vectors": both + parts["offsets"] if same_width else both,
        "codes": signs[0] @ signs[1].T,
    }


def recalls(scores: Scores, answers: NDArray[np.int64]) -> dict[str, float]:
    """Ties are broken by chance: a share of each tie counts."""
    right = scores[np.arange(len(answers)), answers][:, None]
    above = (scores > right).sum(axis=1)
    level = (scores == right).sum(axis=1)
    ranks = above + (level + 1) / 2
    others = scores.shape[1] - 1
    # The chance that none of 99 candidates drawn at random is above.
    beaten = 1 - (above + (level - 1) / 2) / max(others, 1)
    return {
        "recall@1": float(np.mean((above == 0) / level)),
        "MRR@10": float(np.mean(np.where(ranks <= 10, 1 / ranks, 0))),
        "recall@100": float(np.mean(ranks <= 100)),
        "recall@1 of 100": float(np.mean(beaten**99)),
    }


def says_nothing(task: ProjectTask, embedder: GraphEmbedder, number: int) -> bool:
    """Whether a function has no string, import or table, and no rare constant."""
    words = task.graph(number).node_words
    if words is None or not len(words.hashes):
        return True
    kinds = kinds_of(words.hashes)
    if np.isin(kinds, [KINDS.index(kind) for kind in ("str", "imp", "dat")]).any():
        return False
    rarity = embedder.words.rarity_of(words.hashes[kinds == KINDS.index("num")])
    return not (rarity > RARE).any()


def table(rows: dict[str, dict[str, dict[str, float]]]) -> str:
    """Recall as Markdown, one table a measure."""
    directions = list(next(iter(rows.values())))
    lines = []
    for measure_name in ("recall@1", "recall@100", "recall@1 of 100", "silent recall@1"):
        lines += [f"\n{measure_name}\n", f"| stage | {' | '.join(directions)} | mean |"]
        lines.append("|---" * (len(directions) + 2) + "|")
        for stage, cells in rows.items():
            values = [cells[direction][measure_name] for direction in directions]
            shown = " | ".join(f"{value:.3f}" for value in [*values, float(np.mean(values))])
            lines.append(f"| {stage} | {shown} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
