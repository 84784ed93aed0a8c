"""Files read on a Ray cluster: the library of a local run, whoever dies meanwhile."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from graphkin.library.indexing import ray_cluster as ray_work
from graphkin.library.indexing.batches import Chunk
from graphkin.library.indexing.index import index_paths
from graphkin.library.library import Library
from tests.binaries.containers.making import OBJECT, zip_of
from tests.library.indexing.samples import SAMPLES, content, search_model

# Read when Ray is imported: the cluster then listens on the loopback device only.
os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
pytest.importorskip("ray", reason="pip install 'graphkin[ray]'")

STORE_BYTES = 80 << 20
GONE_SECONDS = 30


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A head that does no work, and a machine that does."""
    from ray.cluster_utils import Cluster

    folder = tempfile.mkdtemp(prefix="ray")  # paths of sockets must be short
    # Ray notes the cluster's address in its default folder, which it does not make for this.
    monkeypatch.setenv("RAY_TMPDIR", folder)
    (Path(folder) / "ray").mkdir()
    head = {"num_cpus": 0, "include_dashboard": False, "temp_dir": folder}
    made = Cluster(initialize_head=True, head_node_args=head | {"object_store_memory": STORE_BYTES})
    made.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
    try:
        yield made
    finally:
        made.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
    assert_ray_has_gone()


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Libraries of several builds, all different, and one that is none."""
    folder = tmp_path / "files"
    for level in (0, 2):
        for kind in ("static", "shared"):
            (folder / f"{kind}-O{level}").mkdir(parents=True)
            sample = SAMPLES / "x86" / f"gcc-{kind}-O{level}"
            shutil.copyfile(sample, folder / f"{kind}-O{level}" / "libshapes.so")
    (folder / "broken.so").write_bytes(b"\x7fELF" + bytes(100))
    return folder


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[[str], Library]]:
    """Makes empty libraries."""
    model = search_model()
    made: list[Library] = []

    def create(name: str) -> Library:
        made.append(Library.create(tmp_path / f"{name}.kin", model))
        return made[-1]

    yield create
    for library in made:
        library.close()


def ray_processes() -> list[str]:
    names = [child.name() for child in psutil.Process().children(recursive=True)]
    return [name for name in names if "ray" in name or "gcs" in name]


def assert_ray_has_gone() -> None:
    """Processes that were told to end may take a moment."""
    deadline = time.monotonic() + GONE_SECONDS
    while ray_processes() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert ray_processes() == []


def test_a_machine_that_dies_costs_nothing(
    cluster: Any,
    files: Path,
    tmp_path: Path,
    make: Callable[[str], Library],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It dies when it has sent half of a file, and the other machine does it all again."""
    doomed = cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
    doomed_id, half_sent = doomed.node_id, tmp_path / "half sent"
    real = ray_work._work

    def work(model: Any, reading: Any, tags: Any, jobs: Any, contents: Any) -> Iterator[Any]:
        import ray

        is_doomed = ray.get_runtime_context().get_node_id() == doomed_id
        while not (is_doomed or half_sent.exists()):
            time.sleep(0.1)
        for item in real(model, reading, tags, jobs, contents):
            if is_doomed and item.rows:
                half = len(item.rows) // 2
                yield Chunk(item.rows[:half], Counter({jobs[0].path: half}), [], 0.0)
                half_sent.touch()
                time.sleep(600)
            yield item

    def kill() -> None:
        while not half_sent.exists():
            time.sleep(0.1)
        cluster.remove_node(doomed, allow_graceful=False)

    lost: list[Any] = []
    plan = ray_work._Driver._lost

    def watched(self: Any, task: Any, error: Exception) -> Any:
        lost.append(error)
        return plan(self, task, error)

    monkeypatch.setattr(ray_work, "_work", work)
    monkeypatch.setattr(ray_work, "TASK_FILES", 1)
    monkeypatch.setattr(ray_work._Driver, "_lost", watched)
    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    over, here = make("over"), make("here")
    summary = index_paths(over, [files], ray=cluster.address, tags={"a": "b"})
    killer.join(60)
    expected = index_paths(here, [files], tags={"a": "b"})
    assert len(lost) >= 1
    assert content(over) == content(here)
    assert over.engine.finished_files() == here.engine.finished_files()
    entries, others = (
        {item.entry.key(item.graph_hash): item.entry for item in library.engine.scan()}
        for library in (over, here)
    )
    assert entries == others
    for name in ("files", "known_files", "functions", "added", "known", "small", "skipped"):
        assert getattr(summary, name) == getattr(expected, name)


def test_ray_of_one_machine(
    files: Path,
    make: Callable[[str], Library],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Workers see no file, and one file kills them: the others come through, sent as bytes.

    So does what lies in a container.

    Ray is started for the run, listens to nobody else, and is gone afterwards.
    """
    deadly = "static-O2/libshapes.so"
    elsewhere = str(files / "not mounted here")
    real = ray_work._work
    listening: set[str] = set()
    others = set(psutil.Process().children(recursive=True))

    def work(model: Any, reading: Any, tags: Any, jobs: Any, contents: Any) -> Iterator[Any]:
        if contents and any(job.path == deadly for job in jobs):
            os._exit(1)
        hidden = [job._replace(copy=elsewhere) for job in jobs]
        yield from real(model, reading, tags, hidden, contents)

    def watch(done: int, total: int) -> None:
        for process in set(psutil.Process().children(recursive=True)) - others:
            with suppress(psutil.Error):  # it has ended meanwhile
                for connection in process.net_connections(kind="tcp"):
                    if connection.status == psutil.CONN_LISTEN:
                        listening.add(connection.laddr.ip.removeprefix("::ffff:"))

    monkeypatch.setattr(ray_work, "_work", work)
    monkeypatch.setattr(ray_work, "ATTEMPTS", 2)
    monkeypatch.chdir(files)
    Path("more.zip").write_bytes(zip_of({"lib/shapes.o": OBJECT}))
    paths = ["more.zip", *sorted(str(path) for path in Path().rglob("*.so"))]
    over, here = make("over"), make("here")
    summary = index_paths(over, paths, ray="local", progress=watch)
    assert "more.zip!lib/shapes.o" in {item.entry.binary for item in over.engine.scan()}
    expected = index_paths(here, [path for path in paths if path != deadly])
    assert content(over) == content(here)
    assert over.engine.finished_files() == here.engine.finished_files()
    binaries, expected_binaries = (
        {item.entry.binary for item in library.engine.scan()} for library in (over, here)
    )
    assert binaries == expected_binaries
    reasons = {skip.binary: skip.reason for skip in summary.skipped}
    assert "given up after 2 attempts on Ray: WorkerCrashedError" in reasons.pop(deadly)
    assert reasons == {skip.binary: skip.reason for skip in expected.skipped}
    assert listening == {"127.0.0.1"}
    assert capsys.readouterr().out == ""  # which is for data
    assert_ray_has_gone()
