"""Counts the functions whose graph a hardening flag of the compiler changes.

    python benchmarks/hardening.py FOLDER... [--levels O0 O2] [--cflags FLAGS] [--scan] [--json]

The C files of each folder are compiled and linked into one shared object, once without hardening
and once with each flag, by every compiler of ``TARGETS`` that is installed. Files that one of them
cannot compile are left out, and counted. A row has the functions of at least 5 blocks that both
builds have, and the share of them whose graph is equal: blocks, mnemonics and edges. ``as bags``
is that share with the order of a block's mnemonics left out, which no model reads, and the ``nop``
of aligned loops: a flag moves code, and the padding in front of a loop follows. ``blocks`` is the
share of all blocks that the other build's function has as well, compared in the same way, and
``words`` that of all mnemonics: how near the other graphs are.

With ``--scan`` the functions of the build without a flag become a library, those of the build
with it are searched for, and a row has the share of them whose best hit has a probability of 0.9
or more, and of those whose best hit is the function of that name.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

from graphkin import Library, scan
from graphkin.binaries import Function
from graphkin.binaries.backends.native import NativeSource
from graphkin.library.indexing.index import index_paths

MIN_BLOCKS = 5
SURE = 0.9
X86 = ["-fcf-protection=none"]
ARM64 = ["-mbranch-protection=none"]
TARGETS = {
    "x86-64 gcc": (["gcc"], X86),
    "x86-64 clang": (["clang"], X86),
    "x86 gcc": (["i686-linux-gnu-gcc"], X86),
    "aarch64 gcc": (["aarch64-linux-gnu-gcc"], ARM64),
    "aarch64 clang": (["clang", "--target=aarch64-linux-gnu"], ARM64),
    "arm gcc": (["arm-linux-gnueabihf-gcc"], []),
}
PLAIN = ["-fno-stack-protector", "-fno-stack-clash-protection", "-U_FORTIFY_SOURCE"]
BRANCHES = {"x86": ["-fcf-protection"], "aarch64": ["-mbranch-protection=standard"], "arm": []}
STACK = ["-fstack-protector-strong", "-fstack-clash-protection"]
COMMON = ["-fPIC", "-w", "-fno-common"]
LINK = ["-shared", "-Wl,-z,muldefs"]

Graph = tuple[tuple[tuple[str, ...], ...], tuple[tuple[int, int], ...]]


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    target: str
    level: str
    flag: str
    functions: int
    equal: float
    equal_as_bags: float
    equal_blocks: float
    equal_words: float
    sure_hits: float | None = None
    right_hits: float | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    parser.add_argument("--builds", type=Path, help="keep what is compiled here, and reuse it")
    parser.add_argument("--levels", nargs="+", default=["O2"], help="levels of optimization")
    parser.add_argument("--targets", nargs="+", default=list(TARGETS), choices=list(TARGETS))
    parser.add_argument("--cflags", default="", help="more flags for every file")
    parser.add_argument("--scan", action="store_true", help="search for the functions as well")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="graphkin-hardening-") as name:
        builds = Builds(options.builds or Path(name), options.folders, options.cflags)
        rows = []
        if not options.json:
            line = (
                f"{'target':<16}{'level':<7}{'flag':<30}{'functions':>10}{'equal':>9}{'as bags':>9}"
                f"{'blocks':>9}{'words':>9}"
            )
            print(line + (f"{'sure':>9}{'right':>9}" if options.scan else ""))
        for target in options.targets:
            if shutil.which(TARGETS[target][0][0]) is None:
                continue
            for level in options.levels:
                for row in measure(builds, target, level, options.scan):
                    rows.append(row)
                    if not options.json:
                        print(_line(row), flush=True)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    elif builds.left_out:
        print(f"left out: {' '.join(sorted(builds.left_out))}")


def _line(row: Row) -> str:
    line = f"{row.target:<16}{row.level:<7}{row.flag:<30}{row.functions:>10}"
    line += (
        f"{row.equal:>9.1%}{row.equal_as_bags:>9.1%}{row.equal_blocks:>9.1%}{row.equal_words:>9.1%}"
    )
    if row.sure_hits is not None and row.right_hits is not None:
        line += f"{row.sure_hits:>9.1%}{row.right_hits:>9.1%}"
    return line


class Builds:
    """Shared objects, one for each folder of sources, compiled when they are asked for."""

    def __init__(self, place: Path, folders: Sequence[Path], cflags: str) -> None:
        self._place = place
        self._folders = folders
        self._cflags = shlex.split(cflags)
        self.left_out: set[str] = set()

    def files(self, target: str, level: str, flags: Sequence[str]) -> list[Path]:
        """The shared objects of one build."""
        compiler, off = TARGETS[target]
        own = "".join(flags).replace("-f", "_").replace("-m", "_") or "_plain"
        build = self._place / f"{target.replace(' ', '-')}-{level}{own}"
        made = []
        for folder in self._folders:
            name = "-".join(folder.absolute().parts[-2:])
            file = build / f"lib{name}.so"
            if not file.exists():
                command = [*compiler, f"-{level}", *COMMON, *PLAIN, *off, *flags, *self._cflags]
                self._make(file, folder.absolute(), command)
            made.append(file)
        return made

    def _make(self, file: Path, folder: Path, command: list[str]) -> None:
        objects = file.parent / f"{file.name}.objects"
        objects.mkdir(parents=True, exist_ok=True)
        for source in sorted(folder.glob("*.c")):
            output = objects / f"{source.stem}.o"
            include = [f"-I{folder}", f"-I{folder.parent / 'include'}"]
            call = [*command, *include, "-c", str(source), "-o", str(output)]
            if subprocess.run(call, capture_output=True).returncode != 0:
                self.left_out.add(f"{folder.name}/{source.name}")
        link = [*command, *LINK, *map(str, sorted(objects.glob("*.o"))), "-o", str(file)]
        subprocess.run(link, check=True)
        shutil.rmtree(objects)


def measure(builds: Builds, target: str, level: str, with_scan: bool) -> Iterator[Row]:
    """A row for each flag that the processor has, and one for all of them."""
    own = BRANCHES["x86" if "x86" in target else target.partition(" ")[0]]
    plain = builds.files(target, level, [])
    for flags in [*([flag] for flag in [*own, *STACK]), [*own, *STACK]]:
        hardened = builds.files(target, level, flags)
        before, after = _functions(plain), _functions(hardened)
        both = [key for key, value in before.items()
                if key in after and len(value.blocks) >= MIN_BLOCKS]  # fmt: skip
        equal = sum(_graph(before[key]) == _graph(after[key]) for key in both)
        bags = [(_bags(before[key]), _bags(after[key])) for key in both]
        as_bags = sum(one == other for one, other in bags)
        blocks = _share((Counter(one[0]), Counter(other[0])) for one, other in bags)
        words = _share((_words(one), _words(other)) for one, other in bags)
        count = max(1, len(both))
        sure = right = None
        if with_scan:
            sure, right = _hits(plain, hardened)
        label = "all of them" if len(flags) > 1 else flags[0]
        yield Row(
            target, level, label, len(both),
            equal / count, as_bags / count, blocks, words, sure, right,
        )  # fmt: skip


def _functions(files: Sequence[Path]) -> dict[tuple[str, str, str | None], Function]:
    """Functions by file and name; names that a file has twice are left out."""
    functions: dict[tuple[str, str, str | None], Function] = {}
    twice = set()
    for file in files:
        for function in NativeSource(file).functions():
            key = (file.name, function.name, function.unit)
            if key in functions:
                twice.add(key)
            functions[key] = function
    return {key: function for key, function in functions.items() if key not in twice}


def _graph(function: Function) -> Graph:
    return tuple(block.mnemonics for block in function.blocks), function.edges


def _bags(function: Function) -> Graph:
    blocks, edges = _graph(function)
    return tuple(tuple(sorted(word for word in block if word != "nop")) for block in blocks), edges


def _words(graph: Graph) -> Counter[Any]:
    return Counter(word for block in graph[0] for word in block)


def _share(pairs: Iterable[tuple[Counter[Any], Counter[Any]]]) -> float:
    """How much of the larger of two collections is in the smaller one, of all pairs together."""
    shared = total = 0
    for one, other in pairs:
        shared += (one & other).total()
        total += max(one.total(), other.total())
    return shared / max(1, total)


def _hits(plain: Sequence[Path], hardened: Sequence[Path]) -> tuple[float, float]:
    """Shares of the searched functions with a sure hit, and with the right one."""
    with tempfile.TemporaryDirectory(prefix="graphkin-hardening-") as name:
        path = Path(name) / "library.kin"
        with Library.create(path) as library:
            index_paths(library, plain, min_blocks=MIN_BLOCKS)
        results = list(scan(path, hardened, top=1, min_probability=0.0, min_blocks=MIN_BLOCKS))
    best = [(result.query, result.hits[0]) for result in results if result.hits]
    sure = sum((hit.probability or 0) >= SURE for _, hit in best)
    right = sum(query.function == hit.function for query, hit in best)
    return sure / max(1, len(results)), right / max(1, len(results))


if __name__ == "__main__":
    main()
