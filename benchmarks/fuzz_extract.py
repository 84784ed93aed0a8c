"""Feeds damaged binaries to the extraction, and reports every crash, error and hang.

    python benchmarks/fuzz_extract.py [BINARY...] [--mutants N] [--seed N] [--keep FOLDER] [--json]
    python benchmarks/fuzz_extract.py [BINARY...] --only SEED --keep FOLDER

The samples are C files compiled on the spot by every gcc that is installed (also for other
processors, and for Windows), the files committed with the tests, and those named. Each mutant is
one of them with bytes flipped, numbers in its headers set to extremes, pieces cut off, or pieces
put where they do not belong. It is read in a worker process under a limit of time and memory.
A mutant may be read, or refused with graphkin's own error; anything else is a finding. The
number of a mutant is its seed: with the same samples, ``--only`` makes it again, and ``--keep``
writes the findings to files. With ``--backend auto``, what has no function starts goes to SMDA,
which is slow on damaged files; there it is enough to stop when the time is over.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from graphkin._support.progress import counter
from graphkin.binaries.backends.base import Limits
from graphkin.binaries.backends.choose import BACKENDS, Backend, looks_like_binary, open_source
from graphkin.binaries.workers import Failure, WorkerPool
from graphkin.errors import GraphkinError

SECONDS = 5.0
LIMITS = Limits(seconds=3.0)
MEMORY_BYTES = 1 << 30
MAX_SAMPLE = 1 << 20
COMMITTED = Path(__file__).parents[1] / "tests" / "binaries" / "samples"
SOURCE = """
extern void out(int);
int pick(int x, int y) {
  switch (x) { CASES default: out(-1); return y; }
  return y + 1;
}
static __attribute__((noinline)) int loop(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += i & 3 ? pick(i, n) : -n;
  return sum;
}
int also(int a) { return a ? loop(a) : pick(2, a) + 1; }
void out(int value) { static volatile int seen; seen = value; }
int main(int c, char **v) { return also(c); }
""".replace("CASES", " ".join(f"case {n}: out({n * n} + y * {n + 3}); break;" for n in range(12)))
COMPILERS = (
    "gcc",
    "clang",
    "aarch64-linux-gnu-gcc",
    "arm-linux-gnueabihf-gcc",
    "i686-linux-gnu-gcc",
    "mips-linux-gnu-gcc",
    "mipsel-linux-gnu-gcc",
    "powerpc-linux-gnu-gcc",
    "powerpc64le-linux-gnu-gcc",
    "x86_64-w64-mingw32-gcc",
    "i686-w64-mingw32-gcc",
)
EXTREMES = (0, 1, (1 << 31) - 1, (1 << 32) - 1, 1 << 60, (1 << 64) - 1)
Mutator = Callable[[random.Random, bytearray, Sequence[bytes]], None]


@dataclass(frozen=True)
class Finding:
    """A mutant that did harm."""

    seed: int
    sample: str
    problem: str


@dataclass
class Result:
    """What came out."""

    samples: int
    mutants: int = 0
    read: int = 0
    refused: int = 0
    seconds: float = 0.0
    slowest_seconds: float = 0.0
    slowest_seed: int = -1
    findings: list[Finding] = field(default_factory=list)

    @property
    def seeds(self) -> list[int]:
        return [finding.seed for finding in self.findings]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("binaries", nargs="*", type=Path, metavar="BINARY")
    parser.add_argument("--mutants", type=int, default=10_000, help="how many to make")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first one")
    parser.add_argument("--only", type=int, metavar="SEED", help="make, keep and read this one")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write findings to files")
    parser.add_argument("--backend", choices=BACKENDS, default="native", help="what reads them")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        samples = collect(options.binaries, Path(folder))
        if not samples:
            parser.error("no sample: no compiler is installed, and no BINARY was named")
        if options.only is None:
            seeds = range(options.seed, options.seed + options.mutants)
        else:
            seeds = range(options.only, options.only + 1)
        result = fuzz(samples, seeds, Path(folder), options.backend)
        kept_seeds = [options.only] if options.only is not None else result.seeds
        if options.keep is not None:
            options.keep.mkdir(parents=True, exist_ok=True)
            for seed in kept_seeds:
                name, data = mutate(seed, samples)
                (options.keep / f"{seed}-{name}").write_bytes(data)
    report(result, options.json)


def report(result: Result, as_json: bool) -> None:
    """Prints the result, and exits with 1 where something was found."""
    table = asdict(result)
    if as_json:
        print(json.dumps(table, indent=2))
    else:
        del table["findings"]
        for key, value in table.items():
            print(f"{key:<18}{value}")
        for finding in result.findings:
            print(f"seed {finding.seed} of {finding.sample}: {finding.problem}")
    sys.exit(1 if result.findings else 0)


def fuzz(samples: dict[str, bytes], seeds: range, folder: Path, backend: Backend) -> Result:
    """Reads one mutant for each seed."""
    file = folder / "samples.json"
    file.write_text(json.dumps({name: data.hex() for name, data in samples.items()}))
    pool: WorkerPool[int, tuple[bool, float]] = WorkerPool(
        1, partial(read_mutant, file, backend), seconds=SECONDS, memory_bytes=MEMORY_BYTES
    )
    result = Result(len(samples))
    start = time.monotonic()
    with counter("fuzzing") as show:
        for seed, outcome in pool.run(seeds):
            if isinstance(outcome, tuple):
                is_read, seconds = outcome
                result.read += is_read
                result.refused += not is_read
                if seconds > result.slowest_seconds:
                    result.slowest_seconds, result.slowest_seed = round(seconds, 2), seed
                continue
            if isinstance(outcome, Failure):
                finding = Finding(seed, mutate(seed, samples)[0], outcome.reason)
                result.findings.append(finding)
            result.mutants += 1
            show(result.mutants, len(seeds))
    result.seconds = round(time.monotonic() - start, 1)
    return result


def read_mutant(file: Path, backend: Backend, seed: int) -> Iterator[tuple[bool, float]]:
    """Runs in a worker: reads the mutant as ``graphkin extract`` would."""
    name, data = mutate(seed, _samples(file))
    path = file.with_name("mutant" + Path(name).suffix)
    path.write_bytes(data)
    start = time.monotonic()
    is_read = True
    try:
        source = open_source(path, backend=backend, with_files=True, limits=LIMITS)
        for function in source.functions():
            check(function.edges, len(function.blocks), function.name)
        for item in source.skipped:
            if not isinstance(item.reason, str) or not item.reason:
                raise TypeError(f"skipped without a reason: {item}")
            # Files as small as these must not need the limit.
            if backend == "native" and " s is over" in item.reason:
                raise TimeoutError(item.reason)
    except GraphkinError as error:
        is_read = False
        if path.name not in str(error):
            raise TypeError(f"an error that does not name the file: {error}") from error
    yield is_read, time.monotonic() - start


def check(edges: Sequence[tuple[int, int]], count: int, name: str) -> None:
    """A function must be a graph, whatever the file was."""
    if not count or any(not (0 <= a < count and 0 <= b < count) for a, b in edges):
        raise ValueError(f"function {name!r} has edges between blocks that it does not have")


_LOADED: dict[Path, dict[str, bytes]] = {}


def _samples(file: Path) -> dict[str, bytes]:
    if file not in _LOADED:
        texts = json.loads(file.read_text())
        _LOADED[file] = {name: bytes.fromhex(text) for name, text in texts.items()}
    return _LOADED[file]


def collect(paths: Sequence[Path], folder: Path) -> dict[str, bytes]:
    """Contents of all samples by name."""
    paths = [*paths, *compile_all(folder)]
    paths += [path for path in sorted(COMMITTED.rglob("*")) if looks_like_binary(path)]
    small = [path for path in paths if path.stat().st_size <= MAX_SAMPLE]
    return {f"{number}-{path.name}": path.read_bytes() for number, path in enumerate(small)}


def compile_all(folder: Path) -> Iterator[Path]:
    """Objects, libraries and archives of the compilers that are there.

    The same bytes each time: no folder's name and no time of day goes into them.
    """
    (folder / "sample.c").write_text(SOURCE)
    for compiler in COMPILERS:
        if shutil.which(compiler) is None:
            continue
        common = [compiler, "-w", f"-ffile-prefix-map={folder}=.", "sample.c"]
        if "mingw" in compiler:
            common.append("-Wl,--no-insert-timestamp")
        commands = {
            f"{compiler}.o": ["-O1", "-g1", "-c"],
            f"{compiler}.so": ["-O2", "-shared", "-fPIC"],
            f"{compiler}-bare.so": ["-O0", "-s", "-shared", "-fPIC"],
        }
        for name, flags in commands.items():
            command = [*common, *flags, "-o", name]
            if subprocess.run(command, capture_output=True, cwd=folder).returncode == 0:
                yield folder / name
    objects = sorted(path.name for path in folder.glob("*gcc.o"))
    if objects and shutil.which("ar"):
        subprocess.run(["ar", "rcD", "all.a", *objects], check=True, cwd=folder)
        yield folder / "all.a"


def mutate(seed: int, samples: dict[str, bytes]) -> tuple[str, bytes]:
    """The sample and the bytes of one mutant."""
    rng = random.Random(seed)
    names = sorted(samples)
    name = rng.choice(names)
    data = bytearray(samples[name])
    others = [samples[sample] for sample in names]
    for _ in range(rng.choice([1, 1, 2, 4])):
        rng.choice(MUTATORS)(rng, data, others)
    return name, bytes(data)


def flip_bytes(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    for _ in range(rng.choice([1, 3, 10, 50, 500])):
        if data:
            data[_place(rng, data, 1)] = rng.choice([0, 255, 128, 127, rng.randrange(256)])


def set_extremes(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    """Numbers of two, four or eight bytes, most of them where headers and tables are."""
    for _ in range(rng.choice([1, 2, 5])):
        form = rng.choice(["<H", "<I", "<Q", ">I"])
        width = struct.calcsize(form)
        if len(data) >= width:
            value = rng.choice(EXTREMES) & ((1 << 8 * width) - 1)
            at = _place(rng, data, width) // 2 * 2
            struct.pack_into(form, data, min(at, len(data) - width), value)


def nudge(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    """Counts and offsets that are off by a little."""
    for _ in range(rng.choice([1, 5])):
        if data:
            at = _place(rng, data, 1)
            data[at] = (data[at] + rng.choice([-8, -1, 1, 4, 16])) % 256


def truncate(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    if data:
        del data[rng.choice([rng.randrange(len(data)), len(data) - 1, rng.randrange(1, 65)]) :]


def splice(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    """A piece of some sample over a place of this one."""
    other = rng.choice(others)
    length = rng.choice([16, 64, 512, 4096])
    start = rng.randrange(max(1, len(other) - length))
    if data:
        at = _place(rng, data, 1)
        data[at : at + length] = other[start : start + length]


def insert(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    """All that follows moves."""
    at = _place(rng, data, 1) if data else 0
    data[at:at] = rng.randbytes(rng.choice([1, 8, 64]))


def repeat(rng: random.Random, data: bytearray, others: Sequence[bytes]) -> None:
    """The same table entry many times over."""
    if len(data) > 64:
        at = _place(rng, data, 64)
        length = rng.choice([16, 24, 40, 64])
        piece = bytes(data[at : at + length])
        times = rng.choice([2, 50])
        data[at : at + length * times] = piece * times


MUTATORS: tuple[Mutator, ...] = (
    flip_bytes, flip_bytes, set_extremes, set_extremes, set_extremes, nudge, truncate, splice,
    insert, repeat,
)  # fmt: skip


def _place(rng: random.Random, data: bytearray, width: int) -> int:
    """An offset: often in the headers at the beginning, or in the tables at the end."""
    room = len(data) - width + 1
    reach = min(room, rng.choice([64, 1024, 4096, room]))
    at = rng.randrange(max(1, reach))
    return rng.choice([at, room - 1 - at])


if __name__ == "__main__":
    main()
