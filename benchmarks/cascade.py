"""Times a search with all its stages, in a library of a million functions.

    python benchmarks/cascade.py FILES... --query BINARY [--functions 1000000] [--scanned 100000]

The library holds the functions of the files and, until it is full, copies of them under other
names, whose codes and vectors differ from theirs at random. Functions of the query, best another
build of the same projects, are looked up one by one; then all of them together, as a scan does, in
a library of ``--scanned`` functions. All of it runs on one core, in one process. Seconds are of
the processor; medians count.
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


def rows_of(model: SearchModel, queries: Sequence[Query], count: int) -> Iterator[Row]:
    """Functions as a library has them, and copies that differ, until there are enough."""
    rng = np.random.default_rng(0)
    encoded = [query.encoded for query in queries if query.encoded is not None]
    words = [rare_words(model.embedder, item.graph)[0] for item in encoded]
    for number in range(count):
        base = number % len(encoded)
        item, code, signals = encoded[base], encoded[base].vector, encoded[base].signals
        assert signals is not None
        if number >= len(encoded):
            signals = signals.copy()
            for name in OWN + AROUND:
                noise = rng.integers(-NOISE, NOISE + 1, len(signals[name]))
                signals[name] = np.clip(signals[name] + noise, -127, 127)
            code = code ^ np.packbits(rng.random(8 * len(code)) < FLIPPED)
        entry = KnownFunction(
            f"{queries[base].ref.function}_{number}",
            f"lib{number // 1000}.so",
            address=16 * number,
            architecture=queries[base].architecture,
        )
        content = hashlib.sha256(number.to_bytes(8)).hexdigest()
        key = entry.key(content)
        yield Row(key, entry, content, item.graph, code, signals.tobytes(), words[base])


def fill(library: Library, queries: Sequence[Query], count: int) -> None:
    """Makes a library of so many functions."""
    rows, done = rows_of(library.model, queries, count), 0
    with counter("filling the library") as progress:
        while batch := list(islice(rows, BATCH)):
            done += library.add_rows(batch)
            progress(done, count)


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
    with Library.create(path, model) as library:
        fill(library, known, count)
    with Library.open(path) as library:
        list(look_up(library, asked[:1], options))  # reads what the first search needs
        alone = [query._replace(encoded=None) for query in asked[:: max(1, len(asked) // SINGLE)]]
        single = [
            seconds(lambda query=query: list(look_up(library, [query], options)))  # type: ignore[misc]
            for query in alone
        ]
        scan = seconds(lambda: list(look_up(library, asked, options)))
    return {
        "functions": count,
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
    return (
        f"among {measured['functions']:,} functions: one search {measured['search_ms']:.0f} ms "
        f"(95%: {measured['search_ms_95']:.0f} ms), a scan of 1,000 functions "
        f"{measured['scan_seconds_for_1000']:.1f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--query", type=Path, required=True)
    parser.add_argument("--functions", type=int, default=1_000_000)
    parser.add_argument("--scanned", type=int, default=100_000)
    parser.add_argument("--model", default="functions")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    torch.set_num_threads(1)
    model = SearchModel.load(options.model)
    with TemporaryDirectory() as name:
        folder = Path(name)
        with Library.create(folder / "empty.kin", model) as library:
            known, asked = read(library, options.files), read(library, [options.query])
        sizes = dict.fromkeys((options.scanned, options.functions))
        measured = [measure(folder, model, known, asked, size) for size in sizes]
    print(json.dumps(measured, indent=1) if options.json else "\n".join(map(text, measured)))


if __name__ == "__main__":
    main()
