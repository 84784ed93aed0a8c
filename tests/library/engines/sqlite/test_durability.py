"""A library whose processes are killed, and one that several processes use at a time."""

from __future__ import annotations

import contextlib
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from graphkin.errors import StorageError
from graphkin.library.engines.sqlite import file as sqlite_file
from graphkin.library.engines.sqlite.engine import SqliteEngine
from graphkin.library.records import Filter
from tests.library.engines.sqlite.library_worker import BATCH, SPACE, binary, rows

WORKER = Path(__file__).with_name("library_worker.py")


class Worker:
    """A process, and the lines that it has printed so far."""

    def __init__(self, *arguments: object) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(WORKER), *map(str, arguments)],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.lines: list[list[str]] = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            # The kill may cut a line off, and then the call was not acknowledged.
            if line.endswith("\n"):
                self.lines.append(line.split())

    def wait_for_lines(self, count: int) -> None:
        limit = time.monotonic() + 60
        while len(self.lines) < count:
            assert self.process.poll() is None, "the worker ended"
            assert time.monotonic() < limit, f"the worker said only {self.lines}"
            time.sleep(0.002)

    def kill(self) -> list[list[str]]:
        self.process.send_signal(signal.SIGKILL)
        assert self.process.wait() == -signal.SIGKILL, "the worker ended by itself"
        self._reader.join()
        return self.lines


@contextlib.contextmanager
def working(*arguments: object) -> Iterator[Worker]:
    worker = Worker(*arguments)
    try:
        worker.wait_for_lines(1)
        yield worker
    finally:
        worker.process.kill()
        worker.process.wait()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "library.kin"
    SqliteEngine.create(path, SPACE, {"weights": bytes(5000)}).close()
    return path


def batches(engine: SqliteEngine) -> set[int]:
    """The batches that are there, each of them whole."""
    sizes = Counter(stored.entry.binary for stored in engine.scan())
    assert set(sizes.values()) <= {BATCH}, "part of an operation is visible"
    return {int(name.removeprefix("batch-")) for name in sizes}


def replay(present: set[int], lines: list[list[str]]) -> tuple[set[int], list[set[int]]]:
    """What was acknowledged, and what may be there besides: the effect of the last call."""
    after, possible = set(present), [set(present)]
    for word, number in (line for line in lines if len(line) == 2):
        before = set(after)
        if word in ("adding", "added"):
            after = before | {int(number)}
        elif word in ("removing", "removed"):
            after = before - {int(number)}
        if word in ("added", "removed", "tagged", "compacted"):
            possible = [after]
        else:
            possible = [before, after]
            after = before
    return after, possible


def check_after_kill(path: Path, before: set[int], lines: list[list[str]]) -> set[int]:
    acknowledged, possible = replay(before, lines)
    with SqliteEngine.open(path) as engine:
        present = batches(engine)
        assert present in possible, f"{lines[-3:]}: {present ^ acknowledged} differ"
        verification = engine.verify()
        assert verification.damage == []
        assert verification.entries == engine.count() == BATCH * len(present)
        finished = {name for name, _ in engine.finished_files()}
        added = {int(line[1]) for line in lines if line[0] == "added"}
        assert {binary(batch) for batch in added & present} <= finished
        assert finished <= {binary(batch) for batch in present}
        check_tags(engine, present, lines)
        for batch in sorted(present)[-2:]:
            vectors = np.stack([row.vector for row in rows(batch)])
            assert (engine.nearest(vectors, 1).distances == 0).all()
    return present


def check_tags(engine: SqliteEngine, present: set[int], lines: list[list[str]]) -> None:
    """A batch has its tag as a whole or not at all, and where that was acknowledged it has it."""
    tagged = Counter(stored.entry.binary for stored in engine.scan(Filter(tags={"batch": "*"})))
    assert set(tagged.values()) <= {BATCH}
    told = {int(line[1]) for line in lines if line[0] == "tagged"}
    assert {binary(batch) for batch in told & present} <= set(tagged)
    for batch in told & present:
        assert engine.count(Filter(tags={"batch": str(batch)})) == BATCH


def kill_again_and_again(path: Path, times: int) -> None:
    known: set[int] = set()
    calls = 0
    for kill in range(times):
        with working("change", path, 1000 * kill) as worker:
            time.sleep(random.uniform(0, 0.25))
            lines = worker.kill()
        known = check_after_kill(path, known, lines)
        calls += len(lines)
    assert calls > 4 * times, "the workers did too little between the kills"


def test_kills_lose_nothing(path: Path) -> None:
    kill_again_and_again(path, 10)


@pytest.mark.slow
def test_many_kills_lose_nothing(path: Path) -> None:
    kill_again_and_again(path, 100)


OLD_ANSWERS = 200
"""Of a reader, that may not have been read yet."""


def test_two_readers_and_a_writer(path: Path) -> None:
    with working("read", path) as first, working("read", path) as second:
        with SqliteEngine.open(path) as engine:
            for batch in range(12):
                engine.add(rows(batch))
                if batch % 4 == 3:
                    engine.remove(Filter(binary=binary(batch - 1)))
                entries = engine.count()
                # Whoever asks after the call returned sees it; answers of before may be on the way.
                for reader in (first, second):
                    for _ in range(OLD_ANSWERS):
                        reader.wait_for_lines(len(reader.lines) + 1)
                        if int(reader.lines[-1][1]) == entries:
                            break
                    assert int(reader.lines[-1][1]) == entries
        for reader in (first, second):
            counts = [int(line[1]) for line in reader.kill()[1:]]
            assert {count % BATCH for count in counts} == {0}, "part of an add was seen"
            assert counts[-1] == entries
            assert len(set(counts)) > 3


def test_a_second_writer_waits_and_then_says_why(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "WAIT_SECONDS", 0.3)
    other = sqlite3.connect(path, isolation_level=None)
    with SqliteEngine.open(path) as engine:
        other.execute("BEGIN IMMEDIATE")
        for call in (
            lambda: engine.add(rows(0)),
            lambda: engine.remove(Filter()),
            lambda: engine.tag(Filter(), {"a": "b"}),
            lambda: engine.finish_files([("a", "b")]),
            engine.compact,
        ):
            with pytest.raises(StorageError, match="another process is writing"):
                call()
        assert engine.count() == 0, "reading goes on"
        other.execute("ROLLBACK")
        assert engine.add(rows(0)) == BATCH
    other.close()


def test_two_engines_see_what_the_other_did(path: Path) -> None:
    with SqliteEngine.open(path) as first, SqliteEngine.open(path) as second:
        assert first.add(rows(1)) == BATCH
        assert second.add(rows(1)) == 0
        assert second.count() == BATCH
        assert second.add(rows(2)) == BATCH
        query = rows(2)[5].vector[None]
        assert first.nearest(query, 1).distances[0, 0] == 0
        assert first.remove(Filter(binary=binary(2))) == BATCH
        assert second.nearest(query, 1).distances[0, 0] > 0
        first.compact()
        assert second.add(rows(3)) == BATCH
        assert first.count(Filter(binary=binary(3))) == BATCH
        assert first.tag(Filter(binary=binary(3)), {"seen": "yes"}) == BATCH
        assert second.count(Filter(tags={"seen": "yes"})) == BATCH
        assert second.tag(Filter(tags={"seen": "yes"}), {"seen": "twice"}) == BATCH
        assert first.count(Filter(tags={"seen": "yes"})) == 0
        assert {item.entry.tags["seen"] for item in first.scan(Filter(tags={"seen": "*"}))} == {
            "twice"
        }
        # The name of this batch was in the library when the second last looked, and then gone.
        assert second.add(rows(2)) == BATCH
        assert first.count(Filter(binary=binary(2))) == BATCH
        assert first.verify().damage == []
