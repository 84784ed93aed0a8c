"""What works over many machines, while one of them is killed under load.

A Milvus server (the package ``milvus`` has one) is killed while one thread adds and others search,
and started again. Machines of a Ray cluster, which are groups of processes here, are killed while
they read files; then the head of one.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from measures import times

from graphkin import Graph, Library
from graphkin.binaries import samples
from graphkin.errors import GraphkinError
from graphkin.library.engines.base import Space
from graphkin.library.indexing.index import index_paths
from graphkin.library.records import KnownFunction, Row

SPACE = Space("hamming", 64)
KILLS = 3
DOWN_SECONDS = 3.0
"""Between the death of a server and its new start."""
ROWS = 20
"""That an add takes."""
SEARCHERS = 2
PAUSE = 0.2
"""Between two calls of a thread."""
BACK_SECONDS = 240.0
"""For work to go on after a new start."""
COPIES = 4
"""Of each sample, each with another content, that a cluster reads."""
STORE_BYTES = 80 << 20
LISTED = 5


def lost_nodes(minutes: float, share: float) -> dict[str, Any]:
    """Kills one after the other.

    Args:
        minutes: of work in all between the kills of the Milvus server.
        share: not used: threads pause between calls.
    """
    del share
    return {"milvus": _milvus(60 * minutes / (KILLS + 1)), "ray": _ray()}


def is_sound(result: dict[str, Any]) -> bool:
    """Whether nothing went wrong that must not."""
    milvus, ray = result["milvus"], result["ray"]
    is_milvus = "absent" in milvus or not (
        milvus["lost"] or milvus["wrong"] or milvus["damage"] or milvus["unexpected"]
    )
    is_ray = "absent" in ray or not (
        ray["different"] or ray["head"]["different"] or ray["head"]["damage"]
    )
    return is_milvus and is_ray


# --- Milvus ---------------------------------------------------------------------------------


class Work:
    """Threads that add and search, and what they saw."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.acknowledged: list[int] = []
        """Numbers of rows."""
        self.tried = 0
        self.seconds: dict[str, list[float]] = {"add": [], "search": []}
        self.errors: list[str] = []
        """What a user would see meanwhile."""
        self.unexpected: list[str] = []
        self.wrong: list[str] = []
        self._stop = threading.Event()

    def count(self, name: str) -> int:
        return len(self.seconds[name])

    @contextmanager
    def running(self) -> Iterator[None]:
        threads = [threading.Thread(target=self._add, daemon=True)]
        threads += [
            threading.Thread(target=self._search, args=(number,), daemon=True)
            for number in range(SEARCHERS)
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(BACK_SECONDS)

    def _repeat(self, name: str, call: Callable[[Any], None]) -> None:
        from graphkin.library.engines.milvus.engine import MilvusEngine

        with MilvusEngine.open(self.url) as engine:
            while not self._stop.wait(PAUSE):
                began = time.monotonic()
                try:
                    call(engine)
                except GraphkinError as error:
                    self.errors.append(f"{name}: {type(error).__name__}: {error}")
                except Exception as error:
                    self.unexpected.append(f"{name}: not an error of graphkin: {error!r}")
                else:
                    self.seconds[name].append(time.monotonic() - began)

    def _add(self) -> None:
        def add(engine: Any) -> None:
            # After an error the same rows again, as a person would.
            start = len(self.acknowledged)
            self.tried = start + ROWS
            engine.add([_row(number) for number in range(start, start + ROWS)])
            self.acknowledged += range(start, start + ROWS)

        self._repeat("add", add)

    def _search(self, searcher: int) -> None:
        rng = np.random.default_rng(searcher)

        def search(engine: Any) -> None:
            count = len(self.acknowledged)
            if not count:
                return
            row = _row(int(rng.integers(count)))
            nearest = engine.nearest(row.vector[None], 1)
            if nearest.distances[0, 0] != 0:
                self.wrong.append(f"{row.entry.function} is not found")
                return
            (stored,) = engine.fetch(nearest.ids[0].tolist())
            if stored.entry != row.entry:
                self.wrong.append(f"{row.entry.function} is {stored.entry.function}")

        self._repeat("search", search)


def _row(number: int) -> Row:
    digest = hashlib.sha256(b"%d" % number).digest()
    graph = Graph(2 + number % 7, [(0, 1)], directed=True)
    entry = KnownFunction(f"f{number}", f"lib{number % 4}.so", number)
    vector = np.frombuffer(digest[:8], np.uint8)
    return Row(entry.key(graph.digest()), entry, graph.digest(), graph, vector)


def _milvus(seconds: float) -> dict[str, Any]:
    try:
        from tests.library.engines.milvus.server import LocalServer
    except ImportError as error:
        return {"absent": str(error)}
    with tempfile.TemporaryDirectory(prefix="graphkin-load-") as folder:
        try:
            server = LocalServer(Path(folder, "server"))
        except ImportError as error:
            return {"absent": f"the package milvus, which has a server, is not here: {error}"}
        server.start()
        try:
            return _killed_server(server, Path(folder, "graphs"), seconds)
        finally:
            server.kill()


def _killed_server(server: Any, graphs: Path, seconds: float) -> dict[str, Any]:
    from graphkin.library.engines.milvus.engine import MilvusEngine

    url = f"milvus://127.0.0.1:{server.port}/load"
    MilvusEngine.create(url, SPACE, {"config.json": b"{}"}, graphs_folder=graphs).close()
    work, back = Work(url), []
    with work.running():
        for _ in range(KILLS):
            time.sleep(seconds)
            server.kill()
            time.sleep(DOWN_SECONDS)
            began = time.monotonic()
            server.start()
            answering = time.monotonic() - began
            before = {name: work.count(name) for name in work.seconds}
            end = time.monotonic() + BACK_SECONDS
            while any(work.count(name) == before[name] for name in before):
                if time.monotonic() > end:
                    work.unexpected.append(f"no work for {BACK_SECONDS:g} s after a new start")
                    break
                time.sleep(0.1)
            back.append({"server": answering, "work": time.monotonic() - began})
        time.sleep(seconds)
    with MilvusEngine.open(url) as engine:
        keys = {number: _row(number).key for number in range(work.tried)}
        known = engine.known(keys.values())
        lost = [number for number in work.acknowledged if keys[number] not in known]
        damage, count = engine.verify().damage, engine.count()
        server.kill()
        down = {
            "search": _failure(lambda: engine.nearest(_row(0).vector[None], 1)),
            "add": _failure(lambda: engine.add([_row(0)])),
            "open": _failure(lambda: MilvusEngine.open(url).close()),
        }
    return {
        "kills": KILLS,
        "seconds_between": seconds,
        "acknowledged": len(work.acknowledged),
        "lost": len(lost),
        "rows": count,
        "wrong": len(work.wrong),
        "damage": len(damage),
        "errors": {
            text.replace(str(server.port), "PORT"): count
            for text, count in Counter(work.errors).most_common(LISTED)
        },
        "unexpected": len(work.unexpected),
        "problems": [
            *work.unexpected[:LISTED],
            *work.wrong[:LISTED],
            *damage[:LISTED],
        ],
        "calls": {name: times(own) for name, own in work.seconds.items()},
        "back_seconds": back,
        "down": down,
    }


def _failure(call: Callable[[], object]) -> dict[str, Any]:
    """What a user sees where the server stays away, and after how long."""
    began = time.monotonic()
    try:
        call()
        error = "no error"
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    return {"seconds": time.monotonic() - began, "error": error[:400]}


# --- Ray ------------------------------------------------------------------------------------


@contextmanager
def _cluster(nodes: int) -> Iterator[Any]:
    """A head that does no work, and machines that do."""
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="ray")  # paths of sockets must be short
    os.environ["RAY_TMPDIR"] = folder
    Path(folder, "ray").mkdir()
    head = {"num_cpus": 0, "include_dashboard": False, "temp_dir": folder}
    made = Cluster(initialize_head=True, head_node_args=head | {"object_store_memory": STORE_BYTES})
    for _ in range(nodes):
        made.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
    try:
        yield made
    finally:
        made.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def _ray() -> dict[str, Any]:
    # Read when Ray is imported: the cluster then listens on the loopback device only.
    os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray  # noqa: F401
    except ImportError as error:
        return {"absent": str(error)}
    with tempfile.TemporaryDirectory(prefix="graphkin-load-") as folder:
        home = Path(folder)
        files = home / "files"
        for number, source in enumerate(sorted(samples.KNOWN)):
            for copy in range(COPIES):
                target = files / f"{number}-{copy}" / source.name
                target.parent.mkdir(parents=True)
                target.write_bytes(source.read_bytes() + b"%d" % copy)
        with Library.create(home / "here.kin") as here:
            index_paths(here, [files])
            expected = _content(here)
        return {**_killed_nodes(home, files, expected), "head": _killed_head(home, files, expected)}


def _content(library: Library) -> dict[bytes, tuple[str, bytes]]:
    """Function and vector of each key."""
    items = list(library.engine.scan())
    vectors = library.engine.vectors([item.id for item in items])
    return {
        item.entry.key(item.graph_hash): (item.entry.function, vector.tobytes())
        for item, vector in zip(items, vectors, strict=True)
    }


def _differences(library: Library, expected: dict[bytes, tuple[str, bytes]]) -> int:
    actual = _content(library)
    return sum(actual.get(key) != expected.get(key) for key in {*actual, *expected})


def _killed_nodes(home: Path, files: Path, expected: Any) -> dict[str, Any]:
    """Machines and a worker die while they read; the library is that of a run without Ray."""
    killed = {"nodes": 0, "workers": 0}
    with _cluster(2) as cluster, Library.create(home / "over.kin") as over:
        waiting = iter((0.2, 0.4, 0.6, 0.8))
        due = next(waiting, None)
        nodes = list(cluster.worker_nodes)

        def kill(done: int, total: int) -> None:
            nonlocal due
            if due is None or done < due * total:
                return
            due = next(waiting, None)
            if killed["nodes"] > killed["workers"]:
                killed["workers"] += _kill_worker()
                return
            cluster.remove_node(nodes.pop(0), allow_graceful=False)
            killed["nodes"] += 1
            nodes.append(cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES))

        began = time.monotonic()
        summary = index_paths(over, [files], ray=cluster.address, progress=kill)
        return {
            "files": summary.files,
            "functions": len(expected),
            "killed": killed,
            "seconds": time.monotonic() - began,
            "skipped": len(summary.skipped),
            "different": _differences(over, expected),
        }


def _kill_worker() -> int:
    """Kills a process that reads files; 0 where none does right now."""
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if process.cmdline()[:1] == ["ray::_work"]:
                process.kill()
                return 1
    return 0


def _killed_head(home: Path, files: Path, expected: Any) -> dict[str, Any]:
    """The head dies while `graphkin index` runs; then the same command on another cluster."""
    path = home / "head.kin"
    program = str(Path(sys.executable).with_name("graphkin"))
    with _cluster(2) as cluster:
        command = [program, "index", path, files, "--ray", cluster.address]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        stored = _wait_for_rows(path, len(expected) // 5, process)
        began = time.monotonic()
        cluster.head_node.kill_gcs_server(check_alive=False)
        try:
            output, _ = process.communicate(timeout=BACK_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            output = process.communicate()[0] + "\nit did not end"
        seconds = time.monotonic() - began
    with Library.open(path) as library:
        kept, damage = len(library), len(library.verify().damage)
    with _cluster(2) as cluster, Library.open(path) as library:
        index_paths(library, [files], ray=cluster.address)
        different = _differences(library, expected)
    lines = [line.strip() for line in output.replace("\r", "\n").splitlines() if line.strip()]
    return {
        "stored_before": stored,
        "stored_after": kept,
        "seconds_to_end": seconds,
        "code": process.returncode,
        "last_lines": [line[:300] for line in lines[-LISTED:]],
        "damage": damage,
        "different": different,
    }


def _wait_for_rows(path: Path, count: int, process: subprocess.Popen[str]) -> int:
    end = time.monotonic() + BACK_SECONDS
    while time.monotonic() < end and process.poll() is None:
        if path.exists():
            with Library.open(path) as library:
                if len(library) >= count:
                    return len(library)
        time.sleep(0.2)
    return 0
