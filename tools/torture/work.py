"""What is tortured: steps over a folder, each acknowledged in the file ``acknowledged``.

    python tools/torture/work.py SCENARIO FOLDER [--states]

With ``--states`` the states before and after each step are printed, by which a torture is judged.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

from graphkin import Graph
from graphkin.graphs.store import GraphStore
from graphkin.library.engines.base import Space
from graphkin.library.engines.sqlite.engine import SqliteEngine
from graphkin.library.records import Filter, KnownFunction, Row

SPACE = Space("hamming", 64)
FIRST, BATCH = 40, 15
Step = Callable[[], object]


def rows(start: int, count: int) -> list[Row]:
    made = []
    for number in range(start, start + count):
        rng = np.random.default_rng(number)
        graph = Graph(2 + number % 7, [(0, 1)], directed=True)
        entry = KnownFunction(f"f{number}", f"lib{number % 4}.so", number, tags={"n": str(number)})
        content, words = graph.digest(), np.array([number % 9, 100 + number], np.uint64)
        vector = rng.integers(0, 256, 8, dtype=np.uint8)
        key = hashlib.blake2b(b"%d" % number, digest_size=16).digest()
        made.append(Row(key, entry, content, graph, vector, rng.bytes(64), words))
    return made


def library_steps(folder: Path) -> Iterator[Step]:
    """Add, tag, remove, compact; then a new library, and all of it once more."""
    with SqliteEngine.open(folder / "library.kin") as engine:
        yield lambda: engine.add(rows(1000, BATCH))
        yield lambda: engine.tag(Filter(binary="lib1.so"), {"seen": "yes"})
        yield lambda: engine.remove(Filter(binary="lib2.so"))
        yield lambda: engine.add(rows(2000, BATCH))
        yield engine.compact
        yield lambda: engine.add(rows(3000, BATCH))

    new = folder / "new.kin"
    yield lambda: SqliteEngine.create(new, SPACE, {"config.json": b"{}"}).close()
    with SqliteEngine.open(new) as engine:
        yield lambda: engine.add(rows(0, BATCH))


def store_steps(folder: Path) -> Iterator[Step]:
    """Appends to a graph store."""
    store = GraphStore.open(folder / "corpus.graphs")
    for start in range(0, 30, 5):
        graphs = [row.graph for row in rows(start, 5)]
        yield lambda graphs=graphs: store.append(graphs)  # type: ignore[misc]


def prepare(folder: Path) -> None:
    """What there is before the first step."""
    with SqliteEngine.create(folder / "library.kin", SPACE, {"config.json": b"{}"}) as engine:
        engine.add(rows(0, FIRST))
        engine.compact()
    GraphStore.create(folder / "corpus.graphs").append([row.graph for row in rows(0, FIRST)])


def state(folder: Path) -> str:
    """A digest of all that a folder holds; raises where something cannot be read."""
    text = []
    for name in ("library.kin", "new.kin"):
        if not (folder / name).exists():
            continue
        with SqliteEngine.open(folder / name) as engine:
            if damage := engine.verify().damage:
                raise ValueError(f"{name}: {damage[0]}")
            items = list(engine.scan())
            ids = [item.id for item in items]
            entries = [(item.entry, item.nodes, item.graph_hash) for item in items]
            signals = [hashlib.sha256(own).hexdigest() for own in engine.signals(ids)]
            text.append(repr((name, entries, engine.vectors(ids).tolist(), signals)))
    store = GraphStore.open(folder / "corpus.graphs")
    store.verify()
    text.append(repr([graph.digest() for graph in store]))
    return hashlib.sha256("".join(text).encode()).hexdigest()


SCENARIOS = {"library": library_steps, "store": store_steps}


def main() -> None:
    scenario, folder = sys.argv[1], Path(sys.argv[2])
    shows = "--states" in sys.argv
    if shows:
        print(state(folder))
    with open(folder / "acknowledged", "ab", buffering=0) as acknowledged:
        for step in SCENARIOS[scenario](folder):
            step()
            acknowledged.write(b".")
            if shows:
                print(state(folder))


if __name__ == "__main__":
    main()
