"""Times the server: first paint of the page, and searches by one client and by many at once.

    python benchmarks/serve.py [--library FILE] [--entries 100000] [--clients 20] [--json]

The server runs in a process of its own, as `graphkin serve` does, on all cores; clients and the
browser take their share of the same cores. Without ``--library`` one of made-up graphs is
searched, which have as many blocks, edges and instructions as functions of ffmpeg. Queries are
functions of ``--binary``, of at least 5 blocks.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from search import made_up_graph, made_up_sizes

from graphkin import Library
from graphkin._support.progress import counter
from graphkin.binaries import samples

MIN_BLOCKS = 5
TOP = 10
PAINTS = 7
PAINT = """() => new Promise((done) => new PerformanceObserver((list) => {
  const found = list.getEntriesByName("first-contentful-paint")[0];
  if (found) done(found.startTime);
}).observe({ type: "paint", buffered: true }))"""


def made_up_library(path: Path, entries: int) -> None:
    """A library of so many graphs that no compiler made."""
    rng = np.random.default_rng(0)
    with Library.create(path) as index, counter("filling the library") as bar:
        words = index.model.embedder.config.node_input_size
        sizes = made_up_sizes(rng, entries).tolist()
        for start in range(0, entries, 1_000):
            part = [made_up_graph(rng, words, size) for size in sizes[start : start + 1_000]]
            index.add(part, [{"function": f"f{start + n}"} for n in range(len(part))])
            bar(start + len(part), entries)


@contextmanager
def served(library: Path) -> Iterator[str]:
    """The address of a server over a library."""
    program = str(Path(sys.executable).with_name("graphkin"))
    command = [program, "serve", str(library), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield json.loads(process.stdout.readline())["address"]
        finally:
            process.terminate()


class Client:
    """One connection that stays open."""

    def __init__(self, address: str) -> None:
        self._connection = HTTPConnection(urlsplit(address).netloc, timeout=120)

    def ask(self, method: str, path: str, content: bytes | None = None) -> tuple[int, Any]:
        kind = "application/json" if path == "/api/search" else "application/octet-stream"
        self._connection.request(method, path, content, {"Content-Type": kind})
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())


def queries_of(address: str, binary: Path) -> list[tuple[str, int]]:
    """References and blocks of the functions of a binary that is sent to the server."""
    client, content = Client(address), binary.read_bytes()
    status, _ = client.ask("POST", f"/api/binaries?name={binary.name}", content)
    assert status == 201, f"{binary} was refused with {status}"
    digest = hashlib.sha256(content).hexdigest()
    _, listed = client.ask("GET", f"/api/binaries/{digest}/functions")
    return [
        (f"upload:{digest}:{row['number']}", row["blocks"])
        for row in listed["functions"]
        if row["blocks"] >= MIN_BLOCKS
    ]


def timed_searches(address: str, queries: list[str], rerank: int) -> tuple[list[float], int]:
    """Milliseconds of searches one after the other, and how many went wrong."""
    client, times, errors = Client(address), [], 0
    for query in queries:
        content = json.dumps({"query": query, "top": TOP, "rerank": rerank}).encode()
        began = time.perf_counter()
        status, answer = client.ask("POST", "/api/search", content)
        times.append(1e3 * (time.perf_counter() - began))
        errors += status != 200 or not answer["hits"]
    return times, errors


def search_times(
    address: str, queries: list[str], clients: int, each: int, rerank: int
) -> dict[str, Any]:
    """Clients that all ask at once, each again as soon as it is answered."""
    rng = np.random.default_rng(clients + rerank)
    shares = [rng.choice(queries, each).tolist() for _ in range(clients)]
    began = time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        of_clients = list(pool.map(lambda share: timed_searches(address, share, rerank), shares))
    spent = time.perf_counter() - began
    times = np.concatenate([times for times, _ in of_clients])
    return {
        "clients": clients,
        "rerank": rerank,
        "searches": len(times),
        "median_ms": float(np.median(times)),
        "p95_ms": float(np.percentile(times, 95)),
        "max_ms": float(times.max()),
        "per_second": len(times) / spent,
        "errors": sum(errors for _, errors in of_clients),
    }


def first_paints(address: str) -> dict[str, Any]:
    """Milliseconds until the page shows something, each time in a browser without a cache."""
    from playwright.sync_api import sync_playwright

    browser_path = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        times = []
        for _ in range(PAINTS):
            page = browser.new_context().new_page()
            page.goto(address)
            times.append(page.evaluate(PAINT))
            page.context.close()
        browser.close()
    return {"median_ms": float(np.median(times)), "max_ms": max(times), "pages": PAINTS}


def measured(options: argparse.Namespace) -> dict[str, Any]:
    with TemporaryDirectory() as folder:
        library = options.library
        if library is None:
            library = Path(folder, "made-up.kin")
            made_up_library(library, options.entries)
        with Library.open(library) as index:
            entries = len(index)
        with served(library) as address:
            queries = queries_of(address, options.binary)
            names = [reference for reference, _ in queries]
            timed_searches(address, names[:3], 100)
            return {
                "entries": entries,
                "binary": options.binary.name,
                "query_blocks": float(np.mean([blocks for _, blocks in queries])),
                "first_paint": first_paints(address),
                "search": [
                    search_times(address, names, clients, options.each, rerank)
                    for rerank in (0, 100)
                    for clients in (1, options.clients)
                ],
            }


def shown(times: dict[str, Any]) -> str:
    paint = times["first_paint"]
    lines = [
        (
            f"library of {times['entries']:,} functions; queries of {times['binary']}, "
            f"{times['query_blocks']:.0f} blocks on average"
        ),
        (
            f"first paint: median {paint['median_ms']:.0f} ms, at most {paint['max_ms']:.0f} ms "
            f"of {paint['pages']}"
        ),
        "rerank  clients  median ms  p95 ms  max ms  searches/s  errors",
    ]
    lines += [
        f"{row['rerank']:>6}  {row['clients']:>7}  {row['median_ms']:>9.0f}  {row['p95_ms']:>6.0f}"
        f"  {row['max_ms']:>6.0f}  {row['per_second']:>10.1f}  {row['errors']:>6}"
        for row in times["search"]
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--library", type=Path, help="search this one")
    parser.add_argument("--entries", type=int, default=100_000, help="of a made-up library")
    parser.add_argument("--binary", type=Path, default=samples.FIRMWARE)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--each", type=int, default=20, help="searches of each client")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    times = measured(options)
    print(json.dumps(times) if options.json else shown(times))


if __name__ == "__main__":
    main()
