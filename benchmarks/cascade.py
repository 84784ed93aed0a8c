"""Times a search with all its stages, in a library of a million functions.

    python benchmarks/cascade.py FILES... --query BINARY [--functions 1000000] [--scanned 100000]
        [--keep FOLDER]

The library holds the functions of the files and, until it is full, copies of them under other
names, whose codes and vectors differ from theirs at random. Functions of the query, best another
build of the same projects, are looked up one by one; then all of them together, as a scan does, in
a library of ``--scanned`` functions. All of it runs on one core, in one process. Seconds are of
the processor, but those of opening; medians count. Memory is the most that the process had: where
a folder keeps libraries, a second run with ``--scanned`` equal to ``--functions`` tells what
searching alone takes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import torch

from graphkin import Library
from graphkin._support.progress import counter
from graphkin.library.engines.sqlite.cache import side_file
from graphkin.library.models import SearchModel
from graphkin.library.records import KnownFunction, Row, SearchOptions
from graphkin.library.scan import RERANK, TOP, Query, look_up, read_queries
from graphkin.library.signals import AROUND, OWN, rare_words

BATCH = 10_000
FLIPPED = 0.25
"""Share of the bits of a code in which a copy differs."""
NOISE = 12
"""Of the 8-bit numbers of a vector, at most."""
SINGLE = 50
"""Functions that are looked up one by one."""


def rows_of(model: SearchModel, queries: Sequence[Query], first: int, count: int) -> Iterator[Row]:
    """Functions as a library has them, and copies that differ: those from one number to another."""
    encoded = [query.encoded for query in queries if query.encoded is not None]
    words = [rare_words(model.embedder, item.graph)[0] for item in encoded]
    known = np.array([item.signals for item in encoded])
    codes = np.stack([item.vector for item in encoded])
    for start in range(first, count, BATCH):
        rng = np.random.default_rng(start)
        numbers = np.arange(start, min(start + BATCH, count))
        bases = numbers % len(encoded)
        signals, is_copy = known[bases], (numbers >= len(encoded))[:, None]
        for name in OWN + AROUND:
            noise = rng.integers(-NOISE, NOISE + 1, signals[name].shape, dtype=np.int8)
            changed = signals[name].astype(np.int16) + is_copy * noise
            signals[name] = np.clip(changed, -127, 127)
        bits = rng.random((len(numbers), 8 * codes.shape[1]), dtype=np.float32) < FLIPPED
        flipped = codes[bases] ^ np.packbits(bits & is_copy, axis=1)
        for row, (number, base) in enumerate(zip(numbers.tolist(), bases.tolist(), strict=True)):
            entry = KnownFunction(
                f"{queries[base].ref.function}_{number}",
                f"lib{number // 1000}.so",
                address=16 * number,
                architecture=queries[base].architecture,
            )
            content = hashlib.sha256(number.to_bytes(8)).hexdigest()
            key, graph = entry.key(content), encoded[base].graph
            said = signals[row].tobytes(), words[base]
            yield Row(key, entry, content, graph, flipped[row], *said)


def fill(library: Library, queries: Sequence[Query], count: int) -> None:
    """Adds functions to a library until it has so many."""
    done = len(library)
    rows = rows_of(library.model, queries, done, count)
    with counter("filling the library") as progress:
        while batch := list(islice(rows, BATCH)):
            done += library.add_rows(batch)
            progress(done, count)


def peak_mb() -> float:
    """The most memory that the process had; of files that are mapped, what was read."""
    status = Path("/proc/self/status").read_text()
    return float(status.partition("VmHWM:")[2].split()[0]) / 1024


def seconds(call: Callable[[], Any]) -> float:
    """Of the processor."""
    began = time.process_time()
    call()
    return time.process_time() - began


def measure(
    folder: Path, model: SearchModel, known: Sequence[Query], asked: Sequence[Query], count: int
) -> dict[str, Any]:
    """Searches one by one, and all together."""
    options = SearchOptions(TOP, RERANK, evidence=True)
    path = folder / f"{count}.kin"
    with Library.open(path) if path.exists() else Library.create(path, model) as library:
        fill(library, known, count)
    opening = time.perf_counter(), time.process_time()
    with Library.open(path) as library:
        count = len(library)
        opening = time.perf_counter() - opening[0], time.process_time() - opening[1]
        list(look_up(library, asked[:1], options))  # reads what the first search needs
        alone = [query._replace(encoded=None) for query in asked[:: max(1, len(asked) // SINGLE)]]
        single = [
            seconds(lambda query=query: list(look_up(library, [query], options)))  # type: ignore[misc]
            for query in alone
        ]
        scan = seconds(lambda: list(look_up(library, asked, options)))
    return {
        "functions": count,
        "bytes": path.stat().st_size,
        "side_file_bytes": side_file(path).stat().st_size,
        "open_seconds": opening[0],
        "open_core_seconds": opening[1],
        "peak_mb": peak_mb(),
        "queries": len(single),
        "search_ms": 1e3 * float(np.median(single)),
        "search_ms_95": 1e3 * float(np.quantile(single, 0.95)),
        "scanned": len(asked),
        "scan_seconds_for_1000": 1000 * scan / len(asked),
    }


def read(library: Library, files: Sequence[Path]) -> list[Query]:
    """The functions of files, encoded with all others of theirs."""
    return list(read_queries(library, map(str, files)))


def text(measured: dict[str, Any]) -> str:
    size, side = measured["bytes"] / 1e6, measured["side_file_bytes"] / 1e6
    return (
        f"among {measured['functions']:,} functions ({size:,.0f} MB, side file {side:,.0f} MB): "
        f"opened in {measured['open_seconds']:.2f} s, memory {measured['peak_mb']:,.0f} MB, "
        f"one search {measured['search_ms']:.0f} ms (95%: {measured['search_ms_95']:.0f} ms), "
        f"a scan of 1,000 functions {measured['scan_seconds_for_1000']:.1f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--query", type=Path, required=True)
    parser.add_argument("--functions", type=int, default=1_000_000)
    parser.add_argument("--scanned", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="a folder for the libraries, for other runs")
    parser.add_argument("--model", default="functions")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = SearchModel.load(options.model)
    with TemporaryDirectory() as name:
        folder = options.keep or Path(name)
        folder.mkdir(exist_ok=True)
        with Library.create(Path(name) / "empty.kin", model) as library:
            known, asked = read(library, options.files), read(library, [options.query])
        sizes = dict.fromkeys((options.scanned, options.functions))
        measured = [measure(folder, model, known, asked, size) for size in sizes]
    print(json.dumps(measured, indent=1) if options.json else "\n".join(map(text, measured)))


if __name__ == "__main__":
    main()
