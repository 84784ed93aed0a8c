"""How much of what a function says is the same in another build of it.

    python experiments/evidence_agreement.py PROJECTS [--projects NAME...] [--search] [--json]

PROJECTS is a folder ``<project>/<configuration>.so`` with ``projects.tsv`` beside it. Prints, for
each configuration, the share of the distinct tokens of x86-64 gcc -O2 that the same function
has there, by kind of evidence, and the cosine of their counts of operations. ``--search`` adds
recall@1 of a search without learning: the cosine of the tokens, each weighted by its inverse
document frequency in the training projects. Files are read with symbols, for the names of the
functions tell which are the same; no symbol is evidence. Test projects are refused.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from graphkin.binaries.backends.native import NativeSource
from graphkin.binaries.evidence.operations import operation_names
from graphkin.binaries.function import CLONE_SUFFIX
from graphkin.errors import GraphkinError

KINDS = ("str", "imp", "num", "flt", "off", "dat")
REFERENCE = "x86_64-gcc-O2"
NARROW = ("i386", "arm", "mips")
DIRECTIONS = (
    ("XO+XC", "x86_64-gcc-O0", "x86_64-clang-O3"),
    ("XC", "x86_64-clang-O1", "x86_64-gcc-O3"),
    ("same level", "x86_64-gcc-O2", "x86_64-clang-O2"),
    ("XA 64", "x86_64-gcc-O2", "aarch64-gcc-O2"),
    ("XM", "aarch64-gcc-O0", "x86_64-clang-O3"),
    ("XA 32 ARM", "x86_64-gcc-O2", "arm-gcc-O2"),
    ("XB", "x86_64-gcc-O2", "i386-gcc-O2"),
    ("XA 32/64", "arm-gcc-O0", "aarch64-gcc-O2"),
    ("XA MIPS", "x86_64-gcc-O2", "mipsel-gcc-O2"),
    ("MIPS endian", "mips-gcc-O2", "mipsel-gcc-O2"),
)
MIN_BLOCKS = 5


class Speech(NamedTuple):
    """What a function says."""

    project: str
    name: str
    tokens: Counter[tuple[str, str]]
    operations: Counter[str]


class Reader:
    """Functions by project and configuration, read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._kept: dict[tuple[str, str], list[Speech]] = {}

    def functions(self, project: str, configuration: str) -> list[Speech]:
        key = project, configuration
        if key not in self._kept:
            self._kept[key] = self._read(*key)
        return self._kept[key]

    def _read(self, project: str, configuration: str) -> list[Speech]:
        path = self._folder / project / f"{configuration}.so"
        functions = []
        try:
            for function in NativeSource(path, with_evidence=True).functions():
                if len(function.blocks) < MIN_BLOCKS or CLONE_SUFFIX.search(function.name):
                    continue
                tokens: Counter[tuple[str, str]] = Counter()
                operations: Counter[str] = Counter()
                for block in function.blocks:
                    tokens.update(tuple(token) for token in block.evidence or ())
                    operations.update(operation_names(block.operations or b""))
                functions.append(Speech(project, function.name, tokens, operations))
        except GraphkinError as error:
            print(f"{path}: {error}", file=sys.stderr)
        return functions


def once(functions: Iterable[Speech]) -> dict[tuple[str, str], Speech]:
    """By project and name, those whose name is there once."""
    functions = list(functions)
    counts = Counter((item.project, item.name) for item in functions)
    return {
        (item.project, item.name): item
        for item in functions
        if counts[item.project, item.name] == 1
    }


def agreement(reader: Reader, projects: list[str], configuration: str) -> dict[str, float]:
    """By kind, the share of the reference's distinct tokens that the same functions have."""
    shared, total = Counter[str](), Counter[str]()
    cosines = []
    for project in projects:
        left = once(reader.functions(project, REFERENCE))
        right = once(reader.functions(project, configuration))
        for key in left.keys() & right.keys():
            for token in left[key].tokens:
                total[token[0]] += 1
                shared[token[0]] += token in right[key].tokens
            cosines.append(cosine(left[key].operations, right[key].operations))
    shares = {kind: shared[kind] / total[kind] if total[kind] else math.nan for kind in KINDS}
    return {**shares, "operations": float(np.mean(cosines)) if cosines else math.nan}


def cosine(left: Counter[str], right: Counter[str]) -> float:
    """Of two counts."""
    dot = sum(count * right[name] for name, count in left.items())
    norms = math.hypot(*left.values()) * math.hypot(*right.values())
    return dot / norms if norms else 0.0


def bag(item: Speech, with_offsets: bool) -> dict[tuple[str, str], float]:
    """Tokens and operations with the logarithms of their counts."""
    tokens = {
        token: 1 + math.log(count)
        for token, count in item.tokens.items()
        if with_offsets or token[0] != "off"
    }
    for name, count in item.operations.items():
        tokens["op", name] = 1 + math.log(count)
    return tokens


def weights(bags: list[dict[tuple[str, str], float]]) -> tuple[dict[tuple[str, str], float], float]:
    """Inverse document frequencies, and that of a token that was never seen."""
    seen = Counter(token for items in bags for token in items)
    most = math.log(1 + len(bags))
    return {token: math.log((1 + len(bags)) / (1 + count)) for token, count in seen.items()}, most


def recall(
    queries: list[Speech],
    pool: list[Speech],
    idf: tuple[dict[tuple[str, str], float], float],
    with_offsets: bool,
) -> tuple[float, int]:
    """Share of the queries whose nearest of the pool is the right one; ties count in part."""
    targets = once(pool)
    kept = [item for item in once(queries).values() if (item.project, item.name) in targets]
    columns: dict[tuple[str, str], int] = {}

    def matrix(items: list[Speech]) -> csr_matrix:
        rows, places, values = [], [], []
        for row, item in enumerate(items):
            for token, count in bag(item, with_offsets).items():
                rows.append(row)
                places.append(columns.setdefault(token, len(columns)))
                values.append(count * idf[0].get(token, idf[1]))
        return csr_matrix((values, (rows, places)), shape=(len(items), 1 << 22))

    left, right = matrix(kept), matrix(pool)
    for part in (left, right):
        norms = np.sqrt(np.asarray(part.multiply(part).sum(axis=1)).ravel())
        part.data /= np.maximum(np.repeat(norms, np.diff(part.indptr)), 1e-9)
    scores = np.asarray((left @ right.T).todense())
    numbers = {(item.project, item.name): number for number, item in enumerate(pool)}
    truth = scores[np.arange(len(kept)), [numbers[item.project, item.name] for item in kept]]
    best = scores.max(axis=1)
    ties = (scores >= best[:, None] - 1e-9).sum(axis=1)
    return float(np.mean((truth >= best - 1e-9) / ties)), len(kept)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="PROJECTS")
    parser.add_argument("--projects", nargs="+", default=["pcre2", "jansson", "flac", "c-ares"])
    parser.add_argument("--search", action="store_true", help="measure the search as well")
    parser.add_argument("--train", nargs="+", default=["expat", "libpng1.6", "lua5.4", "lz4"])
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    with (options.folder / "projects.tsv").open() as stream:
        splits = {row["project"]: row["split"] for row in csv.DictReader(stream, delimiter="\t")}
    for project in (*options.projects, *options.train):
        if splits.get(project, "test") == "test":
            parser.error(f"{project} is not a training or validation project of {options.folder}")
    reader = Reader(options.folder)
    known = sorted(path.stem for path in (options.folder / options.projects[0]).glob("*.so"))
    shares = {name: agreement(reader, options.projects, name) for name in known}
    shares = {name: row for name, row in shares.items() if not math.isnan(row["operations"])}
    result: dict[str, object] = {"projects": options.projects, "agreement": shares}
    if options.search:
        result["recall@1"] = search(reader, options.projects, options.train)
    if options.json:
        print(json.dumps(result, indent=2))
        return
    columns = (*KINDS, "operations")
    print(f"{'agreement with ' + REFERENCE:<32}" + "".join(f"{name:>11}" for name in columns))
    for name, row in shares.items():
        print(f"{name:<32}" + "".join(f"{row[column]:>11.3f}" for column in columns))
    for name, (value, count) in result.get("recall@1", {}).items():  # type: ignore[attr-defined]
        print(f"recall@1 {name:<23}{value:>11.3f}{count:>11}")


def search(reader: Reader, projects: list[str], train: list[str]) -> dict[str, tuple[float, int]]:
    """recall@1 and the number of queries, by direction."""
    results = {}
    for name, query, target in DIRECTIONS:
        left = [item for project in projects for item in reader.functions(project, query)]
        right = [item for project in projects for item in reader.functions(project, target)]
        if not left or not right:
            continue
        with_offsets = query.startswith(NARROW) == target.startswith(NARROW)
        seen = [item for project in train for item in reader.functions(project, REFERENCE)]
        idf = weights([bag(item, with_offsets) for item in seen])
        results[name] = recall(left, right, idf, with_offsets)
    return results


if __name__ == "__main__":
    main()
