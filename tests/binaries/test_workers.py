"""Work in processes that hang, crash, or eat all memory."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from graphkin._support.confinement import landlock_version
from graphkin.binaries.backends.base import Limits
from graphkin.binaries.reading import reading_pool
from graphkin.binaries.workers import STARTS, Done, Failure, WorkerPool
from graphkin.errors import FormatError, GraphkinError
from tests.paths import BINARIES, REPOSITORY

MEGABYTE = 1 << 20


def behave(item: str) -> Iterator[object]:
    """Does what the item says, after one result."""
    what, _, amount = item.partition(" ")
    number = int(amount or 0)
    yield f"begin {item}"
    time.sleep(0.3 if what in ("hang", "spin", "segfault", "kill", "exit") else 0)
    if what == "hang":
        time.sleep(60)
    elif what == "spin":
        while True:
            number += 1
    elif what == "eat":
        kept = [bytearray(64 * MEGABYTE) for _ in range(number // 64)]
        yield len(kept)
    elif what == "keep":
        KEPT.append(bytearray(number * MEGABYTE))
    elif what == "segfault":
        ctypes.string_at(0)
    elif what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "exit":
        sys.exit(3)
    elif what == "raise":
        raise FormatError("a plain reason")
    elif what == "bug":
        raise KeyError("what")
    elif what == "print":
        print("noise")
        os.write(1, b"more noise\n")
    elif what == "lock":
        yield behave.__globals__  # modules cannot be pickled
    elif what == "count":
        yield from range(number)
    elif what == "big":
        for _ in range(number):
            yield bytes(MEGABYTE)
    elif what == "pid":
        yield os.getpid()
    elif what == "modules":
        yield "torch" in sys.modules


KEPT: list[bytearray] = []


def write(item: str) -> Iterator[int]:
    """Writes a file."""
    yield Path(item).write_text("from a worker")


def pool(
    jobs: int = 1,
    *,
    task: Callable[[str], Iterator[Any]] = behave,
    seconds: float = 20.0,
    megabytes: int = 512,
) -> WorkerPool[str, Any]:
    return WorkerPool(jobs, task, seconds=seconds, memory_bytes=megabytes * MEGABYTE)


def run(workers: WorkerPool[str, Any], *items: str) -> dict[str, list[Any]]:
    outcomes: dict[str, list[Any]] = {}
    for item, outcome in workers.run(items):
        outcomes.setdefault(item, []).append(outcome)
    return outcomes


def servers() -> list[psutil.Process]:
    """What workers are forked from."""
    own = psutil.Process()
    alive = [child for child in own.children() if child.status() != psutil.STATUS_ZOMBIE]
    return [process for process in alive if "forkserver" in " ".join(process.cmdline())]


def children() -> list[psutil.Process]:
    """Workers that are alive; the server that they come from stays."""
    return [
        child
        for server in servers()
        for child in server.children()
        if child.status() != psutil.STATUS_ZOMBIE
    ]


@pytest.mark.skipif(not landlock_version(), reason="this kernel has no Landlock")
def test_workers_that_read_binaries_cannot_write(tmp_path: Path) -> None:
    path = str(tmp_path / "new")
    (outcome,) = run(reading_pool(1, write, Limits()), path)[path]
    assert isinstance(outcome, Failure)
    assert "Permission denied" in outcome.reason
    assert run(pool(task=write), path)[path] == [len("from a worker"), Done()]


@pytest.mark.parametrize("jobs", [1, 3])
def test_results_of_each_item_come_in_order_and_end_once(jobs: int) -> None:
    items = ("count 5", "count 0", "count 3000", "raise", "count 2")
    outcomes = run(pool(jobs), *items)
    assert outcomes["count 3000"] == ["begin count 3000", *range(3000), Done()]
    assert outcomes["count 0"] == ["begin count 0", Done()]
    assert outcomes["count 2"] == ["begin count 2", 0, 1, Done()]
    assert outcomes["raise"] == ["begin raise", Failure("a plain reason")]
    assert set(outcomes) == set(items)
    assert run(pool(jobs)) == {}
    assert children() == []


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ("hang", "not finished after 1.5 s"),
        ("spin", "not finished after 1.5 s"),
        ("eat 10240", "it takes more than 512 MB of memory"),
        ("segfault", "crashed with SIGSEGV"),
        ("kill", "was killed, most likely for want of memory"),
        ("exit", "ended with code 3"),
        ("bug", "KeyError: 'what'"),
        ("lock", "cannot pickle"),
    ],
)
def test_a_lost_worker_is_replaced_and_the_reason_told(item: str, reason: str) -> None:
    start = time.monotonic()
    # To fill memory takes longer than the others on a busy machine.
    seconds = 8.0 if item.startswith("eat") else 1.5
    outcomes = run(pool(seconds=seconds), "count 1", item, "count 2")
    assert outcomes["count 1"] == ["begin count 1", 0, Done()]
    assert outcomes["count 2"] == ["begin count 2", 0, 1, Done()]
    *_, end = outcomes[item]
    assert isinstance(end, Failure)
    assert reason in end.reason
    assert time.monotonic() - start < 15


def test_several_workers_are_lost_at_once() -> None:
    items = ["hang", "segfault", "count 1", "kill", "eat 10240", "count 2"]
    by_item = run(pool(3, seconds=1.5), *items)
    ends = {item: outcomes[-1] for item, outcomes in by_item.items()}
    assert {item for item, end in ends.items() if end == Done()} == {"count 1", "count 2"}
    assert set(ends) == set(items)


def test_results_before_the_end_of_time_are_kept() -> None:
    def outcomes() -> Iterator[Any]:
        for _, outcome in pool(seconds=1.0, task=trickle).run(["30"]):
            yield outcome

    *results, end = outcomes()
    assert results == list(range(len(results)))
    assert 2 <= len(results) < 15
    assert end == Failure("not finished after 1 s")


def trickle(item: str) -> Iterator[int]:
    for number in range(int(item)):
        time.sleep(0.1)
        yield number


def test_time_that_the_parent_takes_does_not_count() -> None:
    taken = []
    for _, outcome in pool(seconds=1.0).run(["big 12"]):
        time.sleep(0.2)
        taken.append(outcome)
    assert len(taken) == 14
    assert taken[-1] == Done()


def test_a_worker_waits_for_a_slow_reader() -> None:
    """A gigabyte of results, of which only a few are ever in memory."""
    outcomes = pool(megabytes=64).run(["big 1000"])
    next(outcomes)
    time.sleep(1.0)
    (worker,) = children()
    assert worker.memory_info().rss < 400 * MEGABYTE
    before = psutil.Process().memory_info().rss
    for _, _ in zip(outcomes, range(300), strict=False):
        assert psutil.Process().memory_info().rss < before + 50 * MEGABYTE
    outcomes.close()  # type: ignore[attr-defined]
    assert children() == []


def test_memory_left_behind_does_not_count_for_the_next_item() -> None:
    outcomes = run(pool(megabytes=512), "keep 400", "eat 256", "pid 1", "keep 1", "pid 2")
    assert outcomes["keep 400"][-1] == Done()
    assert outcomes["eat 256"][-2:] == [4, Done()]
    assert outcomes["pid 1"][1] == outcomes["pid 2"][1]


def test_prints_do_not_reach_stdout(capfd: pytest.CaptureFixture[str]) -> None:
    assert run(pool(), "print")["print"] == ["begin print", Done()]
    assert "noise" not in capfd.readouterr().out


def test_workers_do_without_torch() -> None:
    assert run(pool(), "modules")["modules"] == ["begin modules", False, Done()]


def test_items_are_taken_when_a_worker_is_free() -> None:
    taken = []

    def items() -> Iterator[str]:
        for number in range(10):
            taken.append(number)
            yield f"count {number}"

    outcomes = pool(2).run(items())
    next(outcomes)
    assert len(taken) <= 3
    assert sum(outcome == Done() for _, outcome in outcomes) == 10


def test_a_task_that_cannot_be_imported_is_an_error_at_once() -> None:
    with pytest.raises(GraphkinError, match="before it took any work"):
        run(pool(task=Unloadable()), "count 1", "count 2")
    assert children() == []


@pytest.mark.skipif(sys.platform == "win32", reason="processes end by signals on POSIX")
class TestAWorkerThatIsKilledAsItStarts:
    @pytest.mark.parametrize("jobs", [1, 2])
    def test_is_replaced(self, jobs: int, tmp_path: Path) -> None:
        task = KilledAtStart(tmp_path, deaths=2)
        outcomes = run(pool(jobs, task=task), "count 1", "count 2")
        assert outcomes["count 1"] == ["begin count 1", 0, Done()]
        assert outcomes["count 2"] == ["begin count 2", 0, 1, Done()]
        assert len([*tmp_path.iterdir()]) == 2
        assert children() == []

    def test_ends_the_work_where_all_are(self, tmp_path: Path) -> None:
        task = KilledAtStart(tmp_path, deaths=100)
        with pytest.raises(GraphkinError, match="code -9 before it took any work"):
            run(pool(2, task=task), "count 1", "count 2")
        assert STARTS <= len([*tmp_path.iterdir()]) <= 2 * STARTS
        assert children() == []

    def test_with_the_server_that_it_comes_from(self) -> None:
        assert run(pool(), "count 1")["count 1"][-1] == Done()
        (server,) = servers()
        server.suspend()
        killer = threading.Timer(0.5, server.kill)
        killer.start()
        try:
            outcomes = run(pool(), "count 1", "count 2")
        finally:
            killer.join()
        assert [outcomes[item][-1] for item in ("count 1", "count 2")] == [Done(), Done()]


class KilledAtStart:
    """A task whose workers are killed while they load it, the first of them."""

    def __init__(self, folder: Path, deaths: int) -> None:
        self.folder = folder
        self.deaths = deaths

    def __call__(self, item: str) -> Iterator[object]:
        yield from behave(item)

    def __reduce__(self) -> tuple[Any, ...]:
        return die_or_load, (self.folder, self.deaths)


def die_or_load(folder: Path, deaths: int) -> Callable[[str], Iterator[object]]:
    if len([*folder.iterdir()]) < deaths:
        (folder / str(os.getpid())).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return behave


class Unloadable:
    def __call__(self, item: str) -> Iterator[str]:
        yield item

    def __reduce__(self) -> tuple[Any, ...]:
        return int, ("no number",)


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_worker_outlives_the_parent(way: signal.Signals) -> None:
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(REPOSITORY)!r})\n"
        "from tests.binaries.test_workers import pool\n"
        "if __name__ == '__main__':\n"
        "    for item, outcome in pool(2, seconds=2).run(['spin', 'big 9999']):\n"
        "        print(item, flush=True)\n"
        "        if item == 'spin': print('ready', flush=True); input()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert parent.stdout is not None
    assert any("ready" in line for line in parent.stdout)
    family = psutil.Process(parent.pid).children(recursive=True)
    assert len(family) >= 3
    os.killpg(parent.pid, way) if way == signal.SIGINT else parent.send_signal(way)
    _, errors = parent.communicate(timeout=20)
    # A spinning orphan has its CPU time, and GRACE_SECONDS.
    gone, alive = psutil.wait_procs(family, timeout=30)
    assert not alive
    assert len(gone) == len(family)
    if way == signal.SIGINT:
        assert errors.count("Traceback") == 1, errors
        assert "KeyboardInterrupt" in errors


PROGRAM = Path(sysconfig.get_path("scripts")) / "graphkin"
SAMPLE = BINARIES / "show" / "shapes.o"


@pytest.mark.skipif(sys.platform == "win32", reason="sockets and signals of POSIX")
class TestACommandWithWorkers:
    def test_whose_temporary_folder_has_a_long_path(self, tmp_path: Path) -> None:
        """Longer than the path of a socket may be."""
        folder = tmp_path / ("x" * 120)
        folder.mkdir()
        environment = {**os.environ, "TMPDIR": str(folder)}
        result = subprocess.run(
            [PROGRAM, "show", SAMPLE], env=environment, capture_output=True, text=True
        )
        assert (result.returncode, "grade" in result.stdout) == (0, True), result.stderr
        assert list(folder.iterdir()) == []

    def test_that_is_interrupted_while_they_start(self) -> None:
        """Ctrl-C reaches all processes of a terminal; only the command answers."""
        command = subprocess.Popen(
            [PROGRAM, "show", SAMPLE], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        parent = psutil.Process(command.pid)
        while not any("forkserver" in " ".join(child.cmdline()) for child in parent.children()):
            assert command.poll() is None
            time.sleep(0.01)
        time.sleep(0.05)
        os.killpg(command.pid, signal.SIGINT)
        out, errors = command.communicate(timeout=60)
        assert (command.returncode, out) == (130, "")
        assert "Traceback" not in errors
