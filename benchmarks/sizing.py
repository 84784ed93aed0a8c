"""What libraries of up to a billion functions need, computed from measured costs.

    python benchmarks/search.py --binary FILE --json > costs.json
    python benchmarks/sizing.py costs.json [--codes 10000000]

Measured: the costs of one function (from costs.json), and a scan of ``--codes`` codes by one core,
which is more than its caches hold. All else is arithmetic: shards scan in parallel, each core its
part, and a query waits for the slowest; network and merging of results are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1")

import faiss
import numpy as np

WIDTH = 128
SIZES = (10**6, 10**7, 10**8, 10**9)
MACHINE_CORES = 32
MACHINE_BYTES = 128 * 2**30
USABLE = 0.6
"""Share of a machine's memory for codes and filter columns."""
FILTER_BYTES = 44
"""Of the columns that filters look at, for each function."""
QUERIES = 1_000
"""Functions of a binary that is scanned."""
RERANK = 20


def scan_seconds(count: int, repeats: int = 5) -> float:
    """Seconds of one core for one code, by faiss over codes at random."""
    rng = np.random.default_rng(0)
    index = faiss.IndexBinaryFlat(WIDTH)
    index.add(rng.integers(0, 256, (count, WIDTH // 8), dtype=np.uint8))
    faiss.omp_set_num_threads(1)
    query = rng.integers(0, 256, (1, WIDTH // 8), dtype=np.uint8)
    spent = []
    for _ in range(repeats):
        began = time.perf_counter()
        index.search(query, 10)
        spent.append(time.perf_counter() - began)
    return min(spent) / count


def sizes(costs: dict[str, Any], per_code: float) -> list[dict[str, Any]]:
    """One row for each size of library."""
    adding, scan = costs["adding"], costs["scan"]
    rerank_each = scan["stages"]["rerank"] / scan["functions"]
    rows = []
    for count in SIZES:
        memory = count * (WIDTH // 8 + FILTER_BYTES)
        machines = max(1, -(-memory // int(USABLE * MACHINE_BYTES)))
        cores = machines * MACHINE_CORES
        one_query = count * per_code / cores
        rows.append(
            {
                "functions": count,
                "memory_gb": memory / 1e9,
                "disk_gb": count * adding["bytes_per_function"] / 1e9,
                "machines": machines,
                "indexing_core_hours": count / adding["functions_per_core_second"] / 3600,
                "query_one_core_s": count * per_code,
                "query_ms": 1e3 * one_query,
                "scan_s": QUERIES * (one_query + rerank_each / cores),
            }
        )
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    titles = ["functions", "memory", "disk", "machines", "indexing, core hours"]
    titles += ["codes, one core", "codes, all cores", "scan of 1,000 functions"]
    lines = [f"| {' | '.join(titles)} |", "|---" * len(titles) + "|"]
    lines += [
        f"| {row['functions']:,} | {row['memory_gb']:.2g} GB | {row['disk_gb']:,.3g} GB "
        f"| {row['machines']} | {row['indexing_core_hours']:,.1f} "
        f"| {row['query_one_core_s']:.2g} s | {row['query_ms']:.2g} ms | {row['scan_s']:.2g} s |"
        for row in rows
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("costs", type=Path, help="what benchmarks/search.py --json printed")
    parser.add_argument("--codes", type=int, default=10_000_000)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    costs = json.loads(options.costs.read_text())
    if "adding" not in costs:
        parser.error(f"{options.costs} lacks the costs of adding; run search.py with --binary")
    per_code = scan_seconds(options.codes)
    rows = sizes(costs, per_code)
    if options.json:
        print(json.dumps({"seconds_per_code": per_code, "sizes": rows}, indent=1))
        return
    print(f"scan of {options.codes:,} codes by one core: {1e3 * per_code * options.codes:.1f} ms")
    print(f"machines of {MACHINE_CORES} cores and {MACHINE_BYTES >> 30} GiB, computed:\n")
    print(table(rows))


if __name__ == "__main__":
    main()
