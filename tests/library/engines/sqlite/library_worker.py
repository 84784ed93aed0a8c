"""Processes that work on a library until they are killed: run as ``python library_worker.py``.

Each call is announced by a line before it begins and by one after it returned, so that whoever
reads the lines knows what was acknowledged, and which call was under way.
"""

from __future__ import annotations

import random
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np

from graphkin.errors import ConfigError
from graphkin.graphs import Graph
from graphkin.library.engines.base import Space
from graphkin.library.engines.sqlite import cache as sqlite_cache
from graphkin.library.engines.sqlite.engine import SqliteEngine
from graphkin.library.records import Filter, KnownFunction, Row, WordArray

SPACE = Space("hamming", 64)
BATCH = 40


def rows(batch: int) -> list[Row]:
    """A batch that can be told from every other by its binary, and shares graphs with them."""
    random_bytes = random.Random(batch).randbytes
    made = []
    for position in range(BATCH):
        nodes = 1 + (batch * BATCH + position) % 97
        graph = Graph(nodes, [(i, i + 1) for i in range(nodes - 1)], directed=True)
        entry = KnownFunction(
            function=f"f{position}", binary=binary(batch), file_hash=binary(batch)
        )
        vector = np.frombuffer(random_bytes(8), np.uint8)
        content = graph.digest(), graph, vector, random_bytes(100), words(nodes)
        made.append(Row(entry.key(graph.digest()), entry, *content))
    return made


def words(nodes: int) -> WordArray:
    """Those of a graph: one that no other has, and one that many have."""
    return np.array([nodes, 1_000 + nodes % 7], np.uint64)


def binary(batch: int) -> str:
    return f"batch-{batch}"


def say(*words: object) -> None:
    print(*words, flush=True)


def change(path: Path, first: int) -> None:
    """Adds batches, and tags, removes and compacts now and then, for ever."""
    rng = random.Random(first)
    with SqliteEngine.open(path) as engine:
        known = [int(name.removeprefix("batch-")) for name in engine.stats()["top_binaries"]]
        say("ready")
        batch = first
        while True:
            act = rng.random()
            if act < 0.55 or len(known) < 3:
                say("adding", batch)
                engine.add(rows(batch))
                engine.finish_files([(binary(batch), "worker")])
                say("added", batch)
                known.append(batch)
                batch += 1
            elif act < 0.7:
                chosen = rng.choice(known)
                say("tagging", chosen)
                engine.tag(Filter(binary=binary(chosen)), {"batch": str(chosen)})
                say("tagged", chosen)
            elif act < 0.85:
                gone = known.pop(rng.randrange(len(known)))
                say("removing", gone)
                engine.remove(Filter(binary=binary(gone)))
                say("removed", gone)
            else:
                say("compacting", 0)
                engine.compact()
                say("compacted", 0)


def read(path: Path) -> None:
    """Searches for ever, and says how many entries each search saw."""
    with SqliteEngine.open(path) as engine:
        say("ready")
        query = rows(0)[0].vector[None]
        while True:
            nearest = engine.nearest(query, 50).ids[0]
            # What was found may be removed before it is fetched, and then a person asks again.
            with suppress(ConfigError):
                engine.fetch([int(number) for number in nearest if number >= 0])
                shared = engine.sharing(words(5), np.ones(2, np.float32), 50)
                engine.signals([number for number, _ in shared])
            say("saw", engine.count(), engine.count(Filter(function="f0")))


if __name__ == "__main__":
    sqlite_cache.SAVED_ROWS = 100  # So that side files are written all the time.
    if sys.argv[1] == "change":
        change(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        read(Path(sys.argv[2]))
