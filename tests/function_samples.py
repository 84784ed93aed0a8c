"""Corpora of functions made by hand: random graphs that resemble each other by function."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from graphkin.binaries import Block, Function
from graphkin.binaries.corpus import CorpusWriter, FunctionCorpus, FunctionRecord

BUILDS = ("clang-O0", "clang-O2", "gcc-O2", "gcc-O3")
LEVEL_WORDS = ("mov", "add", "cmp", "jne", "lea", "call", "xor", "test", "je", "ret")

SHARED = {
    (10, "gcc-O2"): 1, (11, "gcc-O2"): 1,
    (11, "gcc-O3"): 2, (12, "gcc-O3"): 2,
    (12, "gcc-O2"): 3, (13, "gcc-O2"): 3,
}  # fmt: skip
"""Function and build to the seed of a graph that another function has too."""

Body = tuple[list[tuple[str, ...]], list[tuple[int, int]]]
"""The mnemonics of each block, and the edges."""


def function(
    name: str,
    body: Body,
    *,
    file: str = "/builds/gcc-O2/libx.so",
    binary: str | None = None,
    unit: str | None = None,
    defined_in: str | None = None,
    address: int = 0x1000,
) -> Function:
    words, edges = body
    blocks = tuple(Block(address + 16 * i, 16, block) for i, block in enumerate(words))
    size = 16 * len(blocks)
    return Function(
        name=name,
        address=address,
        size=size,
        blocks=blocks,
        edges=tuple(edges),
        architecture="x86-64",
        format="elf",
        file_hash="ab" * 32,
        binary=binary or file,
        compiler="GCC: 12",
        aliases=(),
        unit=unit,
        defined_in=defined_in,
    )


def record(
    name: str,
    body: Body,
    *,
    build: str = "gcc-O2",
    library: str = "libx.so",
    unit: str | None = None,
    defined_in: str | None = None,
    address: int = 0x1000,
) -> FunctionRecord:
    file = f"/builds/{build}/{library}"
    made = function(name, body, file=file, unit=unit, defined_in=defined_in, address=address)
    return FunctionRecord.of(made, file)


def body(seed: int, variant: int = 0, nodes: int | None = None) -> Body:
    """A random control-flow graph; variants of one seed are of similar size and words."""
    own = np.random.default_rng(seed)
    count = int(nodes or 5 + own.exponential(9))
    profile = own.dirichlet(np.full(len(LEVEL_WORDS), 0.4))
    rng = np.random.default_rng([seed, variant])
    count = max(5, count + int(rng.integers(-1, 2))) if variant else count
    words = [
        tuple(rng.choice(LEVEL_WORDS, size=rng.integers(1, 5), p=profile).tolist())
        for _ in range(count)
    ]
    jumps = {(i, int(own.integers(0, count + 1)) % count) for i in range(0, count, 2)}
    return words, sorted({(i, i + 1) for i in range(count - 1)} | jumps)


def records(functions: int = 60, builds: Iterable[str] = BUILDS) -> list[FunctionRecord]:
    """Functions f000, f001, ... in every build, some of them of a kind of their own.

    f000 and f001 are of a header; f010 shares a graph with f011, that with f012, that with f013;
    f020..f029 are equal in both gcc builds; f030 is not in gcc-O3.
    """
    made = []
    for index, build in enumerate(builds):
        for number in range(functions):
            variant, seed = index, 1000 + number
            if (number, build) in SHARED:
                seed, variant = SHARED[number, build], 9
            if 20 <= number < 30 and build == "gcc-O3":
                variant = 2
            if number == 30 and build == "gcc-O3":
                continue
            made.append(
                record(
                    f"f{number:03}",
                    body(seed, variant),
                    build=build,
                    unit=f"file{number % 7}.c" if number % 3 == 0 else None,
                    defined_in="src/inline.h" if number < 2 and index == 0 else None,
                    address=0x1000 + 0x1000 * number,
                )
            )
    return made


def write_corpus(path: Path, made: Iterable[FunctionRecord]) -> FunctionCorpus:
    CorpusWriter(path).add(made)
    return FunctionCorpus.open(path)
