"""Times what a library keeps for searches beside codes: signals, and lists of rare words.

    python benchmarks/storage.py [--functions 1000000] [--signals 1536] [--words 8] [--json]

Functions are made up, eight builds of each: all have a small graph, and share some of their words.
Everything runs in one process on one core. Rows are stored 1,000 at a time, as indexing does, and
the time of making them up is left out. The fastest of several repeats counts, for other programs on
the machine only ever slow one down; opening, which is timed in a process of its own, counts once.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import numpy as np

from graphkin import Graph
from graphkin._support.progress import counter
from graphkin.library.engines.base import COMMON_WORD, Space
from graphkin.library.engines.sqlite.cache import side_file
from graphkin.library.engines.sqlite.engine import SqliteEngine
from graphkin.library.records import Filter, KnownFunction, Row, WordArray

SPACE = Space("hamming", 256)
BATCH = 1_000
BUILDS = 8
QUERY_WORDS = 20
CANDIDATES = 300


@lru_cache(1000)
def words_of(function: int, count: int) -> WordArray:
    """Half of them are the function's own, the others those of hundreds of graphs, or of
    thousands: too many to lead to one."""
    random = np.random.default_rng(function)
    own = random.integers(2**32, 2**64, count - count // 2, dtype=np.uint64)
    reach = random.choice([COMMON_WORD, 20 * COMMON_WORD], count // 2)
    return np.unique(np.append(own, (function * BUILDS // reach + (reach << 32)).astype(np.uint64)))


def made_up_rows(options: argparse.Namespace) -> Iterator[list[Row]]:
    """One small graph stands for all; by their hashes, they are different."""
    random = np.random.default_rng(0)
    graph = Graph(5, [(0, 1), (1, 2), (2, 3), (3, 4)], directed=True)
    for start in range(0, options.functions, BATCH):
        rows = []
        for number in range(start, min(start + BATCH, options.functions)):
            build = f"build-{number % BUILDS}"
            entry = KnownFunction(f"f{number}", f"lib{number // 1000}.so", number, build=build)
            content = hashlib.sha256(b"%d" % number).hexdigest()
            code = np.frombuffer(random.bytes(SPACE.columns), np.uint8)
            words = words_of(number // BUILDS, options.words)
            signals = random.bytes(options.signals)
            rows.append(Row(entry.key(content), entry, content, graph, code, signals, words))
        yield rows


def fill(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Stores rows, and says how long it took; of the last tenth on its own, too."""
    spent, batches = [], 0
    with SqliteEngine.create(path, SPACE, {}) as engine:
        with counter("storing") as bar:
            for rows in made_up_rows(options):
                began = time.perf_counter(), time.process_time()
                engine.add(rows)
                spent.append((time.perf_counter() - began[0], time.process_time() - began[1]))
                batches += 1
                bar(min(batches * BATCH, options.functions), options.functions)
        began = time.perf_counter(), time.process_time()
    closing = time.perf_counter() - began[0], time.process_time() - began[1]
    late = np.array(spent[-max(1, batches // 10) :])
    return {
        "rows_per_second": options.functions / sum(wall for wall, _ in spent),
        "rows_per_core_second": options.functions / sum(core for _, core in spent),
        "last_tenth_rows_per_second": len(late) * BATCH / late[:, 0].sum(),
        "slowest_batch_seconds": max(wall for wall, _ in spent),
        "closing_seconds": closing[0],
        "closing_core_seconds": closing[1],
        "writer_peak_mb": peak_mb(),
    }


def look(path: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Opens a library, and asks it for what a search asks for."""
    random = np.random.default_rng(1)
    before = peak_mb()
    began = time.perf_counter()
    with SqliteEngine.open(path) as engine:
        entries = engine.count()
        opening = time.perf_counter() - began
        functions = random.integers(0, entries // BUILDS, 40).tolist()
        queries = [query_words(function, options) for function in functions]
        weights = np.ones(QUERY_WORDS, np.float32)
        where = Filter(build="build-3")
        began = time.perf_counter()
        shared = engine.sharing(queries[0], weights, CANDIDATES)
        first = time.perf_counter() - began
        sharing = [fastest(lambda w=w: engine.sharing(w, weights, CANDIDATES)) for w in queries]
        engine.sharing(queries[0], weights, CANDIDATES, where)
        filtered = [
            fastest(lambda w=w: engine.sharing(w, weights, CANDIDATES, where)) for w in queries
        ]
        signals = []
        for _ in range(50):  # of other functions each time, as those of each search are
            ids = (1 + random.permutation(entries)[:CANDIDATES]).tolist()
            began = time.perf_counter(), time.thread_time()
            engine.signals(ids)
            signals.append((time.perf_counter() - began[0], time.thread_time() - began[1]))
        peak = peak_mb()
    walls, cores = np.array(signals).T
    return {
        "open_seconds": opening,
        "first_sharing_ms": 1e3 * first,
        "found": len(shared),
        "sharing_ms": 1e3 * float(np.mean(sharing)),
        "sharing_worst_ms": 1e3 * max(sharing),
        "sharing_filtered_ms": 1e3 * float(np.mean(filtered)),
        "signals_ms": 1e3 * float(np.median(walls)),
        "signals_least_ms": 1e3 * float(walls.min()),
        "signals_core_ms": 1e3 * float(np.median(cores)),
        "reader_peak_mb": peak,
        "before_opening_mb": before,
    }


def query_words(function: int, options: argparse.Namespace) -> WordArray:
    """Words of several functions: some are rare, some lead to hundreds of graphs."""
    near = [words_of(function + 100 * step, options.words) for step in range(QUERY_WORDS)]
    words = np.unique(np.concatenate(near))
    return np.random.default_rng(function).choice(words, QUERY_WORDS, replace=False)


def timed(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def fastest(call: Callable[[], Any], repeats: int = 5) -> float:
    return min(timed(call) for _ in range(repeats))


def peak_mb() -> float:
    """The most memory that the process had; of files that are mapped, what was read."""
    status = Path("/proc/self/status").read_text()  # getrusage counts the parent's, too
    return float(status.partition("VmHWM:")[2].split()[0]) / 1024


def measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    path = folder / "library.kin"
    measured = fill(path, options)
    sizes = [file.stat().st_size / options.functions for file in (path, side_file(path))]
    measured |= {"bytes_per_function": sizes[0], "side_file_bytes_per_function": sizes[1]}
    command = [sys.executable, __file__, "--look", str(path), "--words", str(options.words)]
    return measured | json.loads(subprocess.check_output(command))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--functions", type=int, default=1_000_000, help="20,000 or more")
    parser.add_argument("--signals", type=int, default=1_536, help="bytes of each function")
    parser.add_argument("--words", type=int, default=8, help="rare words of each function")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--look", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.look is not None:
        print(json.dumps(look(options.look, options)))
        return
    with TemporaryDirectory() as name:
        measured = measure(Path(name), options)
    lines = (f"{name.replace('_', ' ')}: {value:,.2f}" for name, value in measured.items())
    print(json.dumps(measured, indent=1) if options.json else "\n".join(lines))


if __name__ == "__main__":
    main()
