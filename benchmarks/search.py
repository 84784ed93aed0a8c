"""Times the library: search, opening, rerank, scan of a binary, and adding from binaries.

    python benchmarks/search.py [--codes 1000000] [--library 100000] [--binary FILE] [--json]

Everything runs on one core in one process, so that ratios hold. Codes and graphs are made up, but
for those of ``--binary``, which is scanned against the library and then added to a new one:
graphs have as many blocks, edges and instructions as functions of ffmpeg. The fastest of several
repeats counts, for other programs on the machine only ever slow one down.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import faiss
import numpy as np
import torch

from graphkin import Graph, Library
from graphkin._support.progress import counter
from graphkin.graphs import TokenBags
from graphkin.library.engines.base import Space
from graphkin.library.engines.sqlite.engine import SqliteEngine
from graphkin.library.indexing.index import index_paths
from graphkin.library.models import SearchModel
from graphkin.library.records import Filter, KnownFunction, Row, SearchOptions
from graphkin.library.scan import look_up, read_queries

WIDTH = 128
BATCH = 20_000
TOP = 10


def fastest(call: Callable[[], Any], repeats: int) -> float:
    """Seconds of the fastest call."""
    spent = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        spent.append(time.perf_counter() - began)
    return min(spent)


def clustered_codes(rng: np.random.Generator, count: int) -> np.ndarray:
    """(count, 16) codes in clusters of 8 that differ by few bits, as builds of a function do."""
    centres = rng.integers(0, 256, (count // 8 + 1, WIDTH // 8), dtype=np.uint8)
    flips = np.packbits(rng.random((count, WIDTH)) < 0.06, axis=1)
    return centres[np.arange(count) // 8] ^ flips


def made_up_graph(rng: np.random.Generator, words: int, blocks: int) -> Graph:
    """A chain with jumps, 5 instructions a block."""
    jumps = rng.integers(0, blocks, (blocks // 2, 2))
    edges = np.concatenate([np.column_stack([np.arange(blocks - 1), np.arange(1, blocks)]), jumps])
    lengths = 1 + rng.poisson(4, blocks)
    ids = np.minimum(rng.geometric(0.08, lengths.sum()), words - 1).astype(np.int32)
    return Graph(
        blocks,
        edges,
        directed=True,
        node_tokens=TokenBags(ids, np.concatenate([[0], np.cumsum(lengths)])),
    )


def made_up_sizes(rng: np.random.Generator, count: int) -> np.ndarray:
    """Blocks of each graph: median 19, mean about 50, as in ffmpeg."""
    return np.clip(np.exp(rng.normal(np.log(19), 1.25, count)), 5, 3_000).astype(int)


def bandwidth() -> float:
    """Bytes that one core reads in a second: the limit of any scan."""
    numbers = np.ones(64 << 20, dtype=np.uint64)
    return numbers.nbytes / fastest(lambda: np.bitwise_or.reduce(numbers), 5)


def code_search(folder: Path, count: int, repeats: int) -> dict[str, Any]:
    """Searches a library of so many codes, beside faiss's bare scan of the same."""
    rng = np.random.default_rng(0)
    codes = clustered_codes(rng, count)
    path = folder / "codes.kin"
    graph = Graph(5, [(0, 1), (1, 2), (2, 3), (3, 4)])
    content = graph.digest()
    began = time.perf_counter()
    with SqliteEngine.create(path, Space("hamming", WIDTH), {}) as engine, counter("adding") as bar:
        for start in range(0, count, BATCH):
            entries = [
                KnownFunction(
                    f"function_{n}", f"lib{n // 1000}.so", address=16 * n, architecture=arch
                )
                for n in range(start, min(start + BATCH, count))
                for arch in (("x86-64", "aarch64")[n % 2],)
            ]
            engine.add(
                [
                    Row(entry.key(content), entry, content, graph, code)
                    for entry, code in zip(entries, codes[start : start + BATCH], strict=True)
                ]
            )
            bar(start + len(entries), count)
    adding = time.perf_counter() - began
    bare = faiss.IndexBinaryFlat(WIDTH)
    bare.add(codes)
    faiss.omp_set_num_threads(1)
    queries = codes[rng.integers(0, count, 8)] ^ np.packbits(rng.random((8, WIDTH)) < 0.05, axis=1)
    opening = fastest(lambda: SqliteEngine.open(path).count(), 3)
    with SqliteEngine.open(path) as engine:
        where = Filter(architecture="x86-64")
        engine.nearest(queries[:1], TOP, where)

        def search(part: Filter | None = None) -> None:
            for query in queries:
                engine.fetch(engine.nearest(query[None], TOP, part).ids[0].tolist())

        # In turns, so that whatever else the machine does slows both down alike.
        times = [
            (
                fastest(lambda: [bare.search(query[None], TOP) for query in queries], 1),
                fastest(search, 1),
                fastest(lambda: search(where), 1),
            )
            for _ in range(repeats)
        ]
    scan, whole, filtered = (min(column) / len(queries) for column in zip(*times, strict=True))
    return {
        "codes": count,
        "limit_ms": 1e3 * codes.nbytes / bandwidth(),
        "faiss_ms": 1e3 * scan,
        "search_ms": 1e3 * whole,
        "ratio": whole / scan,
        "filtered_ms": 1e3 * filtered,
        "open_seconds": opening,
        "rows_added_per_second": count / adding,
        "bytes_per_row": path.stat().st_size / count,
    }


def rerank_time(model: SearchModel, blocks: int, candidates: int, repeats: int) -> dict[str, Any]:
    """The matcher on one query with many candidates of about the same size."""
    rng = np.random.default_rng(1)
    words = model.embedder.config.node_input_size
    sizes = np.clip(rng.normal(blocks, blocks / 6, candidates + 1), 5, None).astype(int)
    query, *others = (made_up_graph(rng, words, size) for size in sizes.tolist())
    assert model.matcher is not None
    pairs = [(query, other) for other in others]
    model.matcher.predict(pairs)
    seconds = fastest(lambda: model.matcher.predict(pairs), repeats)  # type: ignore[union-attr]
    return {"candidates": candidates, "blocks": float(sizes.mean()), "ms": 1e3 * seconds}


def scan_time(folder: Path, model: SearchModel, size: int, binary: Path) -> dict[str, Any]:
    """A whole binary against a library of made-up graphs, with rerank of 20."""
    rng = np.random.default_rng(2)
    words = model.embedder.config.node_input_size
    sizes = made_up_sizes(rng, size).tolist()
    with Library.create(folder / "scan.kin", model) as library:
        with counter("filling the library") as bar:
            for start in range(0, size, 1_000):
                part = [made_up_graph(rng, words, n) for n in sizes[start : start + 1_000]]
                library.add(part, [{"function": f"f{start + n}"} for n in range(len(part))])
                bar(start + len(part), size)
        stages: dict[str, float] = {}
        began = time.perf_counter()
        queries = list(read_queries(library, [str(binary)]))
        stages["read"] = time.perf_counter() - began
        _timed(model.embedder, "encode", stages, "embed")
        _timed(library.engine, "nearest", stages, "scan")
        _timed(library.engine, "fetch", stages, "fetch")
        _timed(library.engine, "graphs", stages, "graphs")
        _timed(model.matcher, "predict", stages, "rerank")
        list(look_up(library, queries, SearchOptions(3, 20)))
        total = time.perf_counter() - began
    blocks = float(np.mean([query.ref.blocks for query in queries]))
    stages["other"] = total - sum(stages.values())
    return {
        "binary": binary.name,
        "functions": len(queries),
        "blocks": blocks,
        "library": size,
        "seconds": total,
        "seconds_for_1000": 1000 * total / len(queries),
        "stages": stages,
    }


def _timed(owner: Any, name: str, stages: dict[str, float], stage: str) -> None:
    """Adds the time of a method of one object to a stage."""
    method = getattr(owner, name)

    def call(*arguments: Any, **options: Any) -> Any:
        began = time.perf_counter()
        try:
            return method(*arguments, **options)
        finally:
            stages[stage] = stages.get(stage, 0.0) + time.perf_counter() - began

    object.__setattr__(owner, name, call)


def adding_speed(folder: Path, model: SearchModel, binary: Path) -> dict[str, Any]:
    """Functions a second of one core, from a binary into a library; and the same once more."""
    with Library.create(folder / "adding.kin", model) as library:
        index_paths(library, [binary], jobs=1)  # imports and compiles what it needs
        library.remove(Filter(binary="*"))
        summary = index_paths(library, [binary], jobs=1)
        # CPU time of reading and of embedding, in two processes, and the time of storing.
        spent = sum(summary.seconds[stage] for stage in ("extract", "embed", "store"))
        again = fastest(lambda: index_paths(library, [binary], jobs=1), 1)
        size = (folder / "adding.kin").stat().st_size
    return {
        "functions": summary.added,
        "small": summary.small,
        "core_seconds": spent,
        "functions_per_core_second": summary.added / spent,
        "seconds": summary.seconds,
        "again_seconds": again,
        "bytes_per_function": size / summary.added,
    }


def _search_text(measured: dict[str, Any]) -> str:
    return (
        f"search of {measured['codes']:,} codes, top {TOP}, with metadata: "
        f"{measured['search_ms']:.2f} ms, {measured['ratio']:.2f}x faiss's bare scan "
        f"({measured['faiss_ms']:.2f} ms); memory bandwidth alone {measured['limit_ms']:.2f} ms; "
        f"with a filter {measured['filtered_ms']:.2f} ms"
    )


def _opening_text(measured: dict[str, Any]) -> str:
    return (
        f"opening it: {measured['open_seconds']:.2f} s; adding rows: "
        f"{measured['rows_added_per_second']:,.0f}/s, {measured['bytes_per_row']:.0f} bytes each"
    )


def text(measured: dict[str, Any]) -> str:
    search = measured["search"]
    lines = [_search_text(search), _opening_text(search)]
    if "rerank" in measured:
        row = measured["rerank"]
        lines.append(
            f"rerank of {row['candidates']} candidates, {row['blocks']:.0f} blocks each: "
            f"{row['ms']:.0f} ms"
        )
    if "scan" in measured:
        row = measured["scan"]
        stages = ", ".join(f"{name} {spent:.2f}" for name, spent in row["stages"].items())
        lines.append(
            f"scan of {row['binary']}, {row['functions']:,} functions of {row['blocks']:.0f} "
            f"blocks, against {row['library']:,}, rerank 20: {row['seconds']:.1f} s, "
            f"{row['seconds_for_1000']:.1f} s for 1,000 (seconds: {stages})"
        )
        row = measured["adding"]
        lines.append(
            f"adding it: {row['functions_per_core_second']:,.0f} functions/s on one core (and "
            f"{row['small'] / row['core_seconds']:,.0f} smaller ones read); again: "
            f"{row['again_seconds']:.2f} s; {row['bytes_per_function']:,.0f} bytes a function"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--codes", type=int, default=1_000_000)
    parser.add_argument("--library", type=int, default=100_000)
    parser.add_argument("--binary", type=Path, help="a file of some 1,000 functions to scan")
    parser.add_argument("--model", default="functions")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with TemporaryDirectory() as name:
        folder = Path(name)
        model = SearchModel.load(options.model)
        measured = {"search": code_search(folder, options.codes, options.repeats)}
        measured["rerank"] = rerank_time(model, 50, 100, options.repeats)
        if options.binary is not None:
            measured["scan"] = scan_time(folder, model, options.library, options.binary)
            measured["adding"] = adding_speed(
                folder, SearchModel.load(options.model), options.binary
            )
    print(json.dumps(measured, indent=1) if options.json else text(measured))


if __name__ == "__main__":
    main()
