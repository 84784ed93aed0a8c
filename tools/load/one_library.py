"""Readers and writers on one library, each a process: what they see, and how long it takes.

Writers add, tag, remove and compact; readers search with reranking, list binaries, scan, verify,
and open the library anew. See :mod:`history` for how a read is judged.
"""

from __future__ import annotations

import random
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from history import (
    ADD,
    BATCHES,
    ROWS,
    STEP,
    TAG,
    Span,
    batch_of,
    is_state,
    is_version,
    kind_of,
    seen_version,
    version,
)
from measures import times_by_name

from graphkin import Library
from graphkin._support.threads import take_one_thread
from graphkin.binaries import samples
from graphkin.errors import GraphkinError, StorageError
from graphkin.library.indexing.index import index_paths
from graphkin.library.records import Filter, Row

READERS, WRITERS = 4, 2
MODEL = "functions"
COMPACT_EVERY = 60
"""Steps of a writer, on average."""
REOPEN_EVERY = 40
RERANK = 20
KEPT = ("gcc-O2/libkinbeat.so", "gcc-O2/libkinproto.so", "gcc-O2/libkinparse.so")
"""What is in the library from the beginning to the end."""
CHANGING = ("gcc-O1/libkinmedia.so", "gcc-O0/libkinmedia.so", "clang-O1/libkinmedia.so")
"""Where the functions of the batches are from."""
BUSY = "another process is writing"
START_SECONDS = 300.0
SLOWEST_REST = 2.0
LISTED = 5
"""Problems that a result lists; a count stands for the others."""


@dataclass
class Seen:
    """What one process did, and what was wrong."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    busy: int = 0
    """Writes that were refused because another one took too long."""
    errors: list[str] = field(default_factory=list)
    inconsistent: list[str] = field(default_factory=list)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[name].append(time.perf_counter() - began)


@dataclass(frozen=True)
class Task:
    """What every process needs to know."""

    path: Path
    rows: list[list[list[Row]]]
    """Of each batch of each writer."""
    kept: list[Row]
    seconds: float
    share: float
    """Of a core that a process takes at most, on average."""


def loaded_library(minutes: float, share: float) -> dict[str, Any]:
    """Puts a new library under load, and tells what came of it."""
    with TemporaryDirectory(prefix="graphkin-load-") as folder:
        path = Path(folder, "library.kin")
        kept, rows = _prepared(path, Path(folder, "scratch.kin"))
        context = get_context("spawn")
        steps: Any = context.Array("q", 2 * WRITERS, lock=False)
        results: Any = context.Queue()
        task = Task(path, rows, kept, 60 * minutes, share)
        works = [(_write, number) for number in range(WRITERS)]
        works += [(_read, number) for number in range(READERS)]
        start = context.Barrier(len(works) + 1)
        processes = [
            context.Process(
                target=_work, args=(work, number, task, steps, start, results), daemon=True
            )
            for work, number in works
        ]
        for process in processes:
            process.start()
        start.wait(START_SECONDS)
        began = time.monotonic()
        seen = [results.get(timeout=60 * minutes + 300) for _ in processes]
        for process in processes:
            process.join(60)
        spent = time.monotonic() - began
        lost, damage = _final(task, steps)
    return _summary(seen, lost, damage, minutes, spent, [p.exitcode for p in processes])


def _summary(
    seen: Sequence[Seen],
    lost: list[str],
    damage: list[str],
    minutes: float,
    spent: float,
    codes: Sequence[int | None],
) -> dict[str, Any]:
    seconds: dict[str, list[float]] = defaultdict(list)
    for own in seen:
        for name, taken in own.seconds.items():
            seconds[name] += taken
    errors = [error for own in seen for error in own.errors]
    errors += [f"a process ended with {code}" for code in codes if code]
    inconsistent = [text for own in seen for text in own.inconsistent]
    return {
        "minutes": minutes,
        "seconds": spent,
        "readers": READERS,
        "writers": WRITERS,
        "operations": times_by_name(seconds),
        "busy": sum(own.busy for own in seen),
        "errors": len(errors),
        "inconsistent": len(inconsistent),
        "lost": len(lost),
        "damage": len(damage),
        "problems": [
            *(f"{count} times: {error}" for error, count in Counter(errors).most_common(LISTED)),
            *inconsistent[:LISTED],
            *lost[:LISTED],
            *damage[:LISTED],
        ],
    }


def is_sound(result: dict[str, Any]) -> bool:
    """Whether nothing went wrong that must not."""
    return not any(result[name] for name in ("errors", "inconsistent", "lost", "damage"))


def _prepared(path: Path, scratch: Path) -> tuple[list[Row], list[list[list[Row]]]]:
    """Fills the library with what stays; rows of it, and those of each batch of each writer."""
    with Library.create(path, MODEL) as library:
        index_paths(library, [samples.path(name) for name in KEPT])
        library.compact()
        kept = _rows_of(library)
    with Library.create(scratch, MODEL) as library:
        index_paths(library, [samples.path(name) for name in CHANGING])
        pool = _rows_of(library)
    batches = [
        [_batch(pool, writer, number) for number in range(BATCHES)] for writer in range(WRITERS)
    ]
    return kept, batches


def _rows_of(library: Library) -> list[Row]:
    engine, rows = library.engine, []
    for item in engine.scan():
        ids = [item.id]
        (graph,), (signals,), (words,) = engine.graphs(ids), engine.signals(ids), engine.words(ids)
        (vector,), key = engine.vectors(ids), item.entry.key(item.graph_hash)
        rows.append(Row(key, item.entry, item.graph_hash, graph, vector, signals, words))
    return rows


def binary_of(writer: int, batch: int) -> str:
    """What the binary of a batch is called."""
    return f"/writer-{writer}/batch-{batch}.so"


def _batch(pool: Sequence[Row], writer: int, number: int) -> list[Row]:
    """Rows of the pool under names of their own; batches overlap in their graphs."""
    first, rows = (writer * BATCHES + number) * (ROWS // 2), []
    for place in range(ROWS):
        row = pool[(first + place) % len(pool)]
        old = row.entry
        entry = type(old).from_mapping(
            old.to_dict()
            | {"function": f"f{place}", "binary": binary_of(writer, number), "file_hash": ""}
        )
        rows.append(row._replace(key=entry.key(row.graph_hash), entry=entry))
    return rows


def _tagged(rows: Sequence[Row], step: int) -> list[Row]:
    """Rows of a batch that a step adds."""
    return [
        row._replace(
            entry=type(row.entry).from_mapping(row.entry.to_dict() | {"tags": {STEP: str(step)}})
        )
        for row in rows
    ]


def _work(
    work: Callable[..., None], number: int, task: Task, steps: Any, start: Any, results: Any
) -> None:
    """A process: works when all are ready, and hands in what it saw."""
    take_one_thread()
    seen = Seen()
    try:
        work(number, task, steps, start, seen)
    except Exception as error:
        seen.errors.append(f"{work.__name__.strip('_')}: {type(error).__name__}: {error}")
    results.put(seen)


def _turns(task: Task, start: Any) -> Iterator[None]:
    """Yields as long as there is time, once at least, with the rests that a share asks for."""
    start.wait(START_SECONDS)
    end = time.monotonic() + task.seconds
    while True:
        before = time.process_time()
        yield
        if time.monotonic() > end:
            return
        used = time.process_time() - before
        time.sleep(min(SLOWEST_REST, used * (1 - task.share) / task.share))


def _write(writer: int, task: Task, steps: Any, start: Any, seen: Seen) -> None:
    chosen = random.Random(f"writer {writer}")
    library, step = Library.open(task.path), 0
    try:
        for _ in _turns(task, start):
            if chosen.random() < 1 / REOPEN_EVERY:
                library.close()
                library = Library.open(task.path)
            if chosen.random() < 1 / COMPACT_EVERY:
                _acknowledged(seen, "compact", library.compact)
            step += 1
            steps[2 * writer + 1] = step
            kind, rows = kind_of(step), task.rows[writer][batch_of(step)]
            changed = _acknowledged(seen, kind, partial(_change, library, kind, rows, step))
            if changed != ROWS:
                seen.inconsistent.append(f"step {step} ({kind}) changed {changed} of {ROWS}")
            steps[2 * writer] = step
    finally:
        library.close()


def _change(library: Library, kind: str, rows: Sequence[Row], step: int) -> int:
    """Does a step to a batch; how many functions it changed."""
    where = Filter(binary=rows[0].entry.binary)
    if kind == ADD:
        return library.add_rows(_tagged(rows, step))
    if kind == TAG:
        return library.tag(where, {STEP: str(step)})
    return library.remove(where)


def _acknowledged(seen: Seen, name: str, write: Callable[[], Any]) -> Any:
    """The result of a write, which is tried again as long as others write."""
    while True:
        try:
            with seen.timed(name):
                return write()
        except StorageError as error:
            if BUSY not in str(error):
                raise
            seen.busy += 1


def _read(reader: int, task: Task, steps: Any, start: Any, seen: Seen) -> None:
    own = Reader(reader, task, steps, seen)
    try:
        for _ in _turns(task, start):
            own.read()
    finally:
        own.library.close()


class Reader:
    """One reader, and all that it looks at."""

    def __init__(self, number: int, task: Task, steps: Any, seen: Seen) -> None:
        self.library = Library.open(task.path)
        self._task, self._steps, self._seen = task, steps, seen
        self._chosen = random.Random(f"reader {number}")
        self._kept = Counter(row.entry.binary for row in task.kept)
        self._batches = {
            binary_of(writer, batch): (writer, batch)
            for writer in range(WRITERS)
            for batch in range(BATCHES)
        }
        _ = self.library.model

    def read(self) -> None:
        """One operation; an error of graphkin is noted, and the next one follows."""
        kinds: list[tuple[Callable[[], None], int]] = [
            (self._search_kept, 6),
            (self._search_batch, 6),
            (self._list, 6),
            (self._scan, 3),
            (self._open, 1),
            (self._verify, 1),
        ]
        (kind,) = self._chosen.choices([kind for kind, _ in kinds], [often for _, often in kinds])
        try:
            kind()
        except GraphkinError as error:
            self._seen.errors.append(f"{kind.__name__[1:]}: {type(error).__name__}: {error}")

    @contextmanager
    def _spans(self, name: str) -> Iterator[list[Span]]:
        """The steps between which a timed read was, for each writer; filled when it has ended."""
        acknowledged = [self._steps[2 * writer] for writer in range(WRITERS)]
        spans: list[Span] = []
        with self._seen.timed(name):
            yield spans
        spans += [
            Span(acknowledged[writer], self._steps[2 * writer + 1]) for writer in range(WRITERS)
        ]

    def _wrong(self, what: str, spans: Sequence[Span]) -> None:
        self._seen.inconsistent.append(f"{what}; steps {[tuple(span) for span in spans]}")

    def _search_kept(self) -> None:
        """A function that is always there is found, whatever else comes and goes."""
        row = self._chosen.choice(self._task.kept)
        with self._spans("search") as spans:
            hits = self.library.search(row.graph, 10, rerank=RERANK)
            nearest = self.library.engine.nearest(row.vector[None], 1)
        if nearest.distances[0, 0] != 0 or not hits:
            self._wrong(f"{row.entry.function} of {row.entry.binary} is not found", spans)
        for hit in hits:
            self._check(hit.binary, hit.tags, spans)

    def _search_batch(self) -> None:
        """A search in one batch finds its functions as they are, all the time that they are."""
        binary, (writer, batch) = self._chosen.choice([*self._batches.items()])
        row = self._chosen.choice(self._task.rows[writer][batch])
        with self._spans("search") as spans:
            hits = self.library.search(row.graph, ROWS, rerank=RERANK, where=Filter(binary=binary))
        for hit in hits:
            self._check(hit.binary, hit.tags, spans)
        if not hits and not is_version(batch, None, spans[writer]):
            self._wrong(f"{binary} is not found", spans)

    def _check(self, binary: str, tags: Any, spans: Sequence[Span]) -> None:
        if binary in self._kept:
            return
        writer, batch = self._batches[binary]
        if not is_version(batch, int(tags[STEP]), spans[writer]):
            self._wrong(f"{binary} is of step {tags[STEP]}", spans)

    def _list(self) -> None:
        """All binaries at once are those after one step of each writer."""
        with self._spans("list") as spans:
            summaries = {item.binary: item for item in self.library.engine.binaries()}
        kept = {name: item.functions for name, item in summaries.items() if name in self._kept}
        if kept != self._kept or not set(summaries) <= {*self._kept, *self._batches}:
            self._wrong(f"binaries {sorted(summaries)}", spans)
        for writer in range(WRITERS):
            names = [binary_of(writer, batch) for batch in range(BATCHES)]
            try:
                versions = [
                    seen_version(summaries[name].functions, summaries[name].tags)
                    if name in summaries
                    else None
                    for name in names
                ]
            except ValueError as error:
                self._wrong(f"a batch of writer {writer} has {error}", spans)
                continue
            if not is_state(versions, spans[writer]):
                self._wrong(f"writer {writer} is at {versions}", spans)

    def _scan(self) -> None:
        """The entries of a writer, page by page, with their graphs."""
        writer = self._chosen.randrange(WRITERS)
        with self._spans("scan") as spans:
            items = list(self.library.engine.scan(Filter(binary=f"/writer-{writer}/*")))
        for item in items:
            self._check(item.entry.binary, item.entry.tags, spans)
            if not item.entry.function.startswith("f"):
                self._wrong(f"a function is called {item.entry.function}", spans)

    def _open(self) -> None:
        self.library.close()
        with self._seen.timed("open"):
            self.library = Library.open(self._task.path)
            self.library.engine.count()
        _ = self.library.model

    def _verify(self) -> None:
        with self._seen.timed("verify"):
            damage = self.library.engine.verify().damage
        self._seen.inconsistent += [f"verify: {sentence}" for sentence in damage]


def _final(task: Task, steps: Any) -> tuple[list[str], list[str]]:
    """Acknowledged writes that are not in the library at the end, and damage of it."""
    with Library.open(task.path) as library:
        summaries = {item.binary: item for item in library.engine.binaries()}
        damage = list(library.verify().damage)
    lost = [
        f"{row.entry.function} of {row.entry.binary} is gone"
        for row in task.kept
        if row.entry.binary not in summaries
    ]
    for writer in range(WRITERS):
        for batch in range(BATCHES):
            item = summaries.get(binary_of(writer, batch))
            expected = version(batch, steps[2 * writer])
            try:
                actual = None if item is None else seen_version(item.functions, item.tags)
            except ValueError as error:
                lost.append(f"{binary_of(writer, batch)} has {error}")
                continue
            if actual != expected:
                lost.append(f"{binary_of(writer, batch)} is of step {actual}, not {expected}")
    return lost, damage
