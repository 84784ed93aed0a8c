"""Fits how much the rest of a file says of a hit, on projects that no model saw.

    python experiments/fit_context.py FOLDER [--json]

The folder holds ``PROJECT/CONFIGURATION.so``, unstripped: the names say which hits are right. A
library holds one build of each project but those of the test; the validation projects in other
builds, stripped, are looked up in it, and in another one without them. Their functions, cut into
pieces and shuffled, are the files that context is seen in: what is known, and what is not.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import lief
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from graphkin import Library
from graphkin.binaries.function import base_name
from graphkin.library.context import BOUND, FileContext, file_of
from graphkin.library.indexing.index import index_paths
from graphkin.library.records import SearchOptions
from graphkin.library.scan import look_up, read_queries
from graphkin.results.document import Kin

TEST = ("mbedtls", "libxml2", "opus", "libevent", "libarchive", "tiff")
VALIDATION = ("jansson", "c-ares", "flac", "pcre2")
KNOWN = "x86_64-gcc-O2"
SCANNED = ("x86_64-clang-O2", "aarch64-gcc-O2", "x86_64-gcc-O0", "mipsel-gcc-O2")
PIECE = (8, 60)
"""Least and most functions of a piece."""
SHUFFLES = 3


class Scanned(NamedTuple):
    """A function that was looked up."""

    project: str
    names: frozenset[str]
    kin: tuple[Kin, ...]
    is_known: bool
    """Whether its project is in the library."""


class Example(NamedTuple):
    """A candidate in its context."""

    project: str
    probability: float
    near: float
    company: float
    is_right: bool


def scanned_functions(library: Library, file: Path, *, is_known: bool) -> Iterator[Scanned]:
    """The functions of a file, stripped, in the order of their addresses."""
    names: dict[int, set[str]] = {}
    binary = lief.ELF.parse(str(file))  # its symbols do not outlive it
    for symbol in binary.symtab_symbols:
        if symbol.type == lief.ELF.Symbol.TYPE.FUNC and symbol.size:
            names.setdefault(symbol.value, set()).add(base_name(str(symbol.name)))
    with TemporaryDirectory() as folder:
        stripped = Path(folder, file.name)
        subprocess.run(["llvm-strip", "--strip-all", "-o", stripped, file], check=True)
        queries = list(read_queries(library, [str(stripped)]))
        for result in look_up(library, queries, SearchOptions(1, 20)):
            own = frozenset(names.get(result.query.address or 0, ()))
            yield Scanned(file.parent.name, own, result.kin, is_known)


def examples(pieces: list[list[Scanned]], seed: int) -> Iterator[Example]:
    """The candidates of all functions of a file of shuffled pieces."""
    shuffled = random.Random(seed).sample(pieces, len(pieces))
    functions = [function for piece in shuffled for function in piece]
    components = {
        file_of(item): Path(item.binary).parent.name
        for function in functions
        for item in function.kin
    }
    context = FileContext([function.kin for function in functions], components)
    for number, function in enumerate(functions):
        if context.is_common(function.kin):
            continue
        for item in function.kin:
            near, company = context.of(number, item)
            is_right = (
                function.is_known
                and components[file_of(item)] == function.project
                and item.function in function.names
            )
            yield Example(function.project, item.probability, near, company, is_right)


def cut(functions: list[Scanned], seed: int) -> Iterator[list[Scanned]]:
    """Pieces of a file."""
    generator, start = random.Random(seed), 0
    while start < len(functions):
        size = generator.randint(*PIECE)
        yield functions[start : start + size]
        start += size


def measure(folder: Path, work: Path) -> dict[str, object]:
    projects = sorted(path.parent.name for path in folder.glob(f"*/{KNOWN}.so"))
    rows: list[Example] = []
    with (
        Library.create(work / "known.kin") as known,
        Library.create(work / "unknown.kin") as unknown,
    ):
        for library, left_out in ((known, TEST), (unknown, TEST + VALIDATION)):
            files = [folder / name / f"{KNOWN}.so" for name in projects if name not in left_out]
            index_paths(library, files)
        for build in SCANNED:
            pieces = [
                piece
                for library in (known, unknown)
                for name in VALIDATION
                for piece in cut(
                    list(
                        scanned_functions(
                            library, folder / name / f"{build}.so", is_known=library is known
                        )
                    ),
                    seed=len(name),
                )
            ]
            for seed in range(SHUFFLES):
                rows += examples(pieces, seed)
    return fit(rows)


def fit(rows: list[Example]) -> dict[str, object]:
    """Weights, and how good probabilities are with each project left out in turn."""
    right = np.array([row.is_right for row in rows])
    own = np.clip([row.probability for row in rows], BOUND, 1 - BOUND)
    odds = np.log(own / (1 - own))
    features = np.array([[row.near, row.company, row.company * math.log(p / (1 - p))]
                         for row, p in zip(rows, own, strict=True)])  # fmt: skip
    projects = np.array([row.project for row in rows])
    predicted = np.zeros(len(rows))
    for project in VALIDATION:
        others = projects != project
        weights = _fitted(features[others], odds[others], right[others])
        predicted[~others] = 1 / (1 + np.exp(-odds[~others] - features[~others] @ weights))
    weights = _fitted(features, odds, right)
    return {
        "candidates": len(rows),
        "weights": dict(zip(("near", "company", "sharpened"), weights.round(2), strict=True)),
        "before": _quality(own, right),
        "after": _quality(predicted, right),
    }


def _fitted(
    features: NDArray[np.float64], odds: NDArray[np.float64], right: NDArray[np.bool_]
) -> NDArray[np.float64]:
    signs = 2.0 * right - 1

    def loss(weights: NDArray[np.float64]) -> float:
        margins = signs * (odds + features @ weights)
        return float(np.logaddexp(0, -margins).mean() + 1e-4 * weights @ weights)

    return np.asarray(minimize(loss, np.zeros(features.shape[1])).x)


def _quality(values: NDArray[np.float64], right: NDArray[np.bool_]) -> dict[str, float]:
    bounded = np.clip(values, BOUND, 1 - BOUND)
    likely = values >= 0.5
    return {
        "log_loss": round(float(-np.log(np.where(right, bounded, 1 - bounded)).mean()), 4),
        "brier": round(float(np.square(values - right).mean()), 4),
        "right_from_half": int((likely & right).sum()),
        "wrong_from_half": int((likely & ~right).sum()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with TemporaryDirectory() as work:
        measured = measure(options.folder, Path(work))
    if options.json:
        print(json.dumps(measured, default=float))
    else:
        for name, value in measured.items():
            print(f"{name:<12}{value}")


if __name__ == "__main__":
    main()
