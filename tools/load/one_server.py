"""`graphkin serve` with many clients: how long answers take, which there are, and what it leaves.

Each client is a thread with a connection and an address of its own on the loopback device. It
searches with reranking, looks at functions, compares, sends files now and then, and makes mistakes,
with some time between as people take it. Now and then all send more at once than the server takes
on. In the end it is told to stop while everybody asks.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPConnection, HTTPException, IncompleteRead
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import psutil
from measures import times_by_name

from graphkin import Library
from graphkin.binaries import samples
from graphkin.library.indexing.index import index_samples

CLIENTS = 50
RERANK, RERANK_IN_BURSTS, RERANK_AT_STOP = 20, 100, 400
THINK_SECONDS = 4.0
"""At most between an answer and the next request; half of it on average."""
BURST = 250
"""Searches at once, above what may wait (64), and below the connections there are (256)."""
BURST_SECONDS = 100.0
"""Between two bursts; there is one at least."""
HANG_SECONDS = 90.0
"""For any answer; the server itself ends what takes more than 60 s."""
DRAIN_SECONDS = 60.0
STOP_SECONDS = 60.0
NEW_FILES = 24
"""Different files that are sent in a run; the server keeps each, so they are not many."""
ALLOWED_GROWTH = 0.10
WARM_MINUTES = 5.0
"""A run that is shorter tells nothing of growth."""
SENT = ("gcc-O1/libkinbeat.so", "gcc-O1/libkinproto.so", "gcc-O1/libkinparse.so")
"""Known files, which are sent again and again."""
JSON = {"Content-Type": "application/json"}
BUSY = {429, 503}
LISTED = 8


@dataclass(frozen=True)
class Request:
    """What a client asks, and the statuses that are right."""

    kind: str
    method: str
    path: str
    right: frozenset[int]
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    may_be_busy: bool = True


@dataclass
class Tally:
    """What came of the requests; all threads add to it."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Of requests that were answered, by kind."""
    statuses: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    hung: int = 0
    dropped: int = 0
    """Connections that were closed without an answer."""
    cut: int = 0
    """Answers that ended before their end."""
    busy_without_hint: int = 0
    """Answers 503 that do not say when to try again."""

    @property
    def requests(self) -> int:
        return sum(self.statuses.values())


class Client:
    """One connection that stays open."""

    def __init__(self, address: str, number: int, tally: Tally, is_stopping: bool = False) -> None:
        self._netloc = urlsplit(address).netloc
        self._source = (f"127.0.1.{number + 1}", 0)
        self._tally = tally
        self._is_stopping = is_stopping
        self._connection = self._connected()

    def _connected(self) -> HTTPConnection:
        return HTTPConnection(self._netloc, timeout=HANG_SECONDS, source_address=self._source)

    def close(self) -> None:
        self._connection.close()

    def ask(self, request: Request) -> tuple[int, bytes] | None:
        """Status and content of an answer; None where there was none, which is noted."""
        tally, began = self._tally, time.perf_counter()
        try:
            self._connection.request(
                request.method, request.path, request.content, dict(request.headers)
            )
            response = self._connection.getresponse()
            content = response.read()
        except (OSError, HTTPException) as error:
            self._note(request, error, time.perf_counter() - began)
            self._connection.close()
            self._connection = self._connected()
            return None
        tally.seconds[request.kind].append(time.perf_counter() - began)
        tally.statuses[f"{request.kind} {response.status}"] += 1
        if response.status in BUSY and request.may_be_busy:
            tally.busy_without_hint += response.getheader("Retry-After") is None
        elif response.status not in request.right:
            text = content[:200].decode(errors="replace")
            tally.problems.append(f"{request.kind}: {response.status} {text}")
        return response.status, content

    def _note(self, request: Request, error: Exception, seconds: float) -> None:
        tally = self._tally
        if isinstance(error, TimeoutError):
            tally.hung += 1
        elif isinstance(error, IncompleteRead):
            tally.cut += 1
        else:
            tally.dropped += 1
        if not self._is_stopping:
            tally.problems.append(f"{request.kind}: {error!r} after {seconds:.1f} s")


class Requests:
    """Makes requests at random, right ones and wrong ones."""

    def __init__(self, library: Path, uploaded: dict[str, int]) -> None:
        self._uploaded = uploaded
        """Functions of each uploaded file, by its id."""
        with Library.open(library) as opened:
            self._ids = [item.id for item in opened.engine.scan()]
        self._known = [samples.path(name).read_bytes() for name in SENT]
        self._lock = threading.Lock()
        self._new = 0

    def any(self, chosen: random.Random) -> Request:
        kinds: list[tuple[Callable[[random.Random], Request], int]] = [
            (self.search, 60),
            (self._function, 8),
            (self._comparison, 4),
            (self._list, 4),
            (self._library_functions, 4),
            (self._known_file, 2),
            (self._broken_file, 1),
            (self._scan, 1),
            (self._wrong, 16),
        ]
        (make,) = chosen.choices([make for make, _ in kinds], [often for _, often in kinds])
        return make(chosen)

    def reference(self, chosen: random.Random) -> str:
        if chosen.random() < 0.3:
            return f"library:{chosen.choice(self._ids)}"
        binary, count = chosen.choice([*self._uploaded.items()])
        return f"upload:{binary}:{chosen.randrange(count)}"

    def search(self, chosen: random.Random, rerank: int = RERANK) -> Request:
        document = {"query": self.reference(chosen), "rerank": rerank, "min_probability": 0.0}
        return _posted("search", "/api/search", document, 200)

    def _function(self, chosen: random.Random) -> Request:
        return _got("function", f"/api/functions/{self.reference(chosen)}", 200)

    def _comparison(self, chosen: random.Random) -> Request:
        left, right = self.reference(chosen), self.reference(chosen)
        return _got("comparison", f"/api/comparison?left={left}&right={right}", 200)

    def _list(self, chosen: random.Random) -> Request:
        binary = chosen.choice([*self._uploaded])
        return _got("list", f"/api/binaries/{binary}/functions", 200)

    def _library_functions(self, chosen: random.Random) -> Request:
        return _got("library", f"/api/library/functions?limit={chosen.randint(1, 100)}", 200)

    def _known_file(self, chosen: random.Random) -> Request:
        return _sent("upload", chosen.choice(self._known), 201)

    def new_file(self) -> Request:
        """A file that the server has not seen."""
        with self._lock:
            self._new += 1
            return _sent("new upload", self._known[0] + b"%d" % self._new, 201)

    def _broken_file(self, chosen: random.Random) -> Request:
        content = chosen.choice(self._known)
        return _sent("broken upload", content[: chosen.randrange(64, 700)], 422)

    def _scan(self, chosen: random.Random) -> Request:
        binary = chosen.choice([*self._uploaded])
        return _posted("scan", "/api/scans", {"binary": binary, "min_blocks": 12}, 202)

    def _wrong(self, chosen: random.Random) -> Request:
        query = {"query": self.reference(chosen)}
        return chosen.choice(
            [
                _posted("wrong", "/api/search", query | {"unknown": 1}, 400),
                _posted("wrong", "/api/search", query | {"rerank": 10**9}, 400),
                _posted("wrong", "/api/search", query | {"top": -1}, 400),
                _posted("wrong", "/api/search", {"query": "library:999999999"}, 404),
                _posted("wrong", "/api/search", {"query": f"upload:{'0' * 64}:0"}, 404),
                _posted("wrong", "/api/search", {"query": "\ud800" * 9}, 400),
                _posted("wrong", "/api/search", {"query": "x" * 70_000}, 413),
                _posted("wrong", "/api/scans", {"binary": "0" * 64}, 404),
                Request(
                    "wrong", "POST", "/api/search", frozenset({400}), b"{not JSON", JSON, False
                ),
                _got("wrong", "/api/functions/nothing", 400),
                _got("wrong", "/api/library/functions?limit=0", 400),
                _got("wrong", "/api/nothing", 404),
                Request("wrong", "DELETE", "/api/search", frozenset({405})),
                Request(
                    "wrong", "GET", "/api/status", frozenset({403}), None,
                    {"Origin": "https://evil.example"},
                ),
                Request(
                    "wrong", "GET", "/api/status", frozenset({403}), None,
                    {"Host": "evil.example"},
                ),
            ]
        )  # fmt: skip


def _posted(kind: str, path: str, document: object, right: int) -> Request:
    content = json.dumps(document).encode()
    return Request(kind, "POST", path, frozenset({right}), content, JSON)


def _got(kind: str, path: str, right: int) -> Request:
    return Request(kind, "GET", path, frozenset({right}))


def _sent(kind: str, content: bytes, right: int) -> Request:
    return Request(kind, "POST", "/api/binaries?name=sent.so", frozenset({right}), content)


class Served:
    """A server process, and what it takes."""

    def __init__(self, library: Path, temporary: Path) -> None:
        program = str(Path(sys.executable).with_name("graphkin"))
        environment = {name: value for name, value in os.environ.items() if name[:9] != "GRAPHKIN_"}
        self.process = subprocess.Popen(
            [program, "serve", str(library), "--port", "0", "--json"],
            env=environment | {"TMPDIR": str(temporary)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        self.address = str(json.loads(self.process.stdout.readline())["address"])
        self._watched = psutil.Process(self.process.pid)
        self.memory: list[tuple[float, int]] = []
        """When, and resident bytes."""

    def sample(self) -> None:
        with contextlib.suppress(psutil.Error):
            self.memory.append((time.monotonic(), self._watched.memory_info().rss))

    def level(self, begin: float, end: float) -> int:
        """Median of the memory within a time."""
        within = [used for when, used in self.memory if begin <= when <= end]
        return int(np.median(within or [used for _, used in self.memory]))

    def files(self) -> int:
        """Open files and connections."""
        return int(self._watched.num_fds())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def loaded_server(minutes: float, share: float) -> dict[str, Any]:
    """Puts a new server under load, stops it, and tells what came of it.

    Args:
        minutes: of load, before it is told to stop.
        share: not used: clients wait between requests.
    """
    del share
    with TemporaryDirectory(prefix="graphkin-load-") as folder:
        library, temporary = Path(folder, "library.kin"), Path(folder, "tmp")
        temporary.mkdir()
        with Library.create(library) as made:
            index_samples(made)
        served = Served(library, temporary)
        try:
            load = Load(served, library, temporary, 60 * minutes)
            about = {"clients": CLIENTS, "burst_size": BURST - CLIENTS, "rerank": RERANK}
            return {"minutes": minutes, **about, **load.run()}
        finally:
            served.kill()


class Load:
    """One run."""

    def __init__(self, served: Served, library: Path, temporary: Path, seconds: float) -> None:
        self._served, self._library, self._temporary = served, library, temporary
        self._seconds = seconds
        self._end = 0.0
        self._uploaded: dict[str, int] = {}

    def run(self) -> dict[str, Any]:
        self._send_files()
        requests, steady, bursts = Requests(self._library, self._uploaded), Tally(), Tally()
        served, began = self._served, time.monotonic()
        served.sample()
        self._end = began + self._seconds
        warm_at = began + self._seconds / 5
        files = 0
        count = max(1, int(self._seconds / BURST_SECONDS))
        with (
            _threads(1, lambda _: self._sample()),
            _threads(CLIENTS, lambda number: self._client(number, requests, steady)),
        ):
            # The first is before the server counts as warm.
            after_bursts = [began + self._seconds * (n + 0.1) / count for n in range(count)]
            new_files = [began + self._seconds * n / NEW_FILES for n in range(NEW_FILES)]
            while time.monotonic() < self._end:
                now = time.monotonic()
                if after_bursts and now > after_bursts[0]:
                    del after_bursts[0]
                    self._burst(requests, bursts)
                if new_files and now > new_files[0]:
                    del new_files[0]
                    # A connection of its own: one that rests for 30 s is closed.
                    client = Client(served.address, CLIENTS, steady)
                    client.ask(requests.new_file())
                    client.close()
                if not files and now > warm_at:
                    files = served.files()
                time.sleep(0.1)
        window = self._seconds / 10
        warm, level = (
            served.level(end - window, end + 1) for end in (warm_at + window / 2, self._end)
        )
        incoming = self._incoming()
        return {
            "requests": steady.requests,
            "answers": times_by_name(steady.seconds),
            "statuses": _by_status(steady),
            "bursts": {"requests": bursts.requests, "statuses": _by_status(bursts)}
            | {"answers": times_by_name(bursts.seconds)["search in a burst"]},
            "busy_without_hint": steady.busy_without_hint + bursts.busy_without_hint,
            "hung": steady.hung + bursts.hung,
            "dropped": steady.dropped + bursts.dropped,
            "cut": steady.cut + bursts.cut,
            "memory": {"warm_mb": warm / 1e6, "end_mb": level / 1e6, "growth": level / warm - 1},
            "open_files": {"warm": files, "end": served.files()},
            "incoming_left": incoming,
            "problems": [
                f"{count} times: {problem}"
                for problem, count in Counter(steady.problems + bursts.problems).most_common(LISTED)
            ],
            "stop": self._stopped(requests),
        }

    def _send_files(self) -> None:
        """The first files, whose functions are then asked for."""
        client = Client(self._served.address, 0, Tally())
        for name in SENT:
            content = samples.path(name).read_bytes()
            answer = client.ask(_sent("upload", content, 201))
            assert answer is not None
            self._uploaded[hashlib.sha256(content).hexdigest()] = json.loads(answer[1])["functions"]
        client.close()

    def _sample(self) -> None:
        while time.monotonic() < self._end:
            self._served.sample()
            time.sleep(min(0.5, self._seconds / 100))

    def _client(self, number: int, requests: Requests, tally: Tally) -> None:
        chosen = random.Random(f"client {number}")
        client = Client(self._served.address, number, tally)
        while (left := self._end - time.monotonic()) > 0:
            # One that has just begun does not wait for the whole of it.
            time.sleep(min(left, chosen.random() * min(THINK_SECONDS, self._seconds / 10)))
            client.ask(requests.any(chosen))
        client.close()

    def _burst(self, requests: Requests, tally: Tally) -> None:
        """Everybody at once, each with several connections."""

        def one(number: int) -> None:
            chosen = random.Random(number)
            client = Client(self._served.address, number % CLIENTS, tally)
            search = requests.search(chosen, RERANK_IN_BURSTS)
            client.ask(replace(search, kind="search in a burst"))
            client.close()

        with _threads(BURST - CLIENTS, one):
            pass

    def _incoming(self) -> int:
        """Files of uploads that nobody takes any more."""
        end = time.monotonic() + 5
        while (count := len([*self._temporary.rglob("incoming-*")])) and time.monotonic() < end:
            time.sleep(0.1)
        return count

    def _stopped(self, requests: Requests) -> dict[str, Any]:
        """Everybody asks as fast as answers come; meanwhile the server is told to stop."""
        tally, process = Tally(), self._served.process
        stopping = threading.Event()
        in_flight, after = Counter[str](), Counter[str]()
        parent = psutil.Process(process.pid)

        def ask(number: int) -> None:
            chosen = random.Random(f"last {number}")
            client = Client(self._served.address, number, tally, is_stopping=True)
            end = time.monotonic() + STOP_SECONDS
            while time.monotonic() < end:
                began_before = not stopping.is_set()
                answer = client.ask(requests.search(chosen, RERANK_AT_STOP))
                if stopping.is_set():
                    what = "refused" if answer is None else str(answer[0])
                    (in_flight if began_before else after)[what] += 1
                    if answer is None:
                        break
            client.close()

        with _threads(CLIENTS, ask):
            time.sleep(min(3.0, self._seconds / 5))
            children = parent.children(recursive=True)
            stopping.set()
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            try:
                _, errors = process.communicate(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                errors = "it did not end"
            seconds = time.monotonic() - began
        _, alive = psutil.wait_procs(children, timeout=5)
        with Library.open(self._library) as library:
            damage = len(library.verify().damage)
        beside = {path.name for path in self._library.parent.iterdir()} - {"tmp"}
        left = [path.name for path in self._temporary.iterdir()]
        left += sorted(beside - {self._library.name, f"{self._library.name}.cache"})
        return {
            "seconds": seconds,
            "code": process.returncode,
            "in_flight": dict(in_flight),
            "after": dict(after),
            "hung": tally.hung,
            "cut": tally.cut,
            "left_behind": left,
            "processes_left": len(alive),
            "damage": damage,
            "log": errors.strip().splitlines()[-LISTED:],
        }


def is_sound(result: dict[str, Any]) -> bool:
    """Whether nothing went wrong that must not."""
    stop = result["stop"]
    failed = any(status.startswith("5") and int(status) != 503 for status in result["statuses"])
    return not (
        failed
        or result["problems"]
        or result["busy_without_hint"]
        or result["hung"]
        or result["cut"]
        or result["incoming_left"]
        or (result["minutes"] >= WARM_MINUTES and result["memory"]["growth"] > ALLOWED_GROWTH)
        or stop["code"] != 128 + signal.SIGTERM
        or stop["hung"]
        or stop["cut"]
        or stop["left_behind"]
        or stop["processes_left"]
        or stop["damage"]
        or {"500", "504"} & set(stop["in_flight"])
    )


def _by_status(tally: Tally) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for name, count in tally.statuses.items():
        counts[name.rpartition(" ")[2]] += count
    return dict(sorted(counts.items()))


@contextmanager
def _threads(count: int, work: Callable[[int], None]) -> Iterator[None]:
    """Runs threads; all have ended when the block has."""
    threads = [
        threading.Thread(target=work, args=(number,), daemon=True) for number in range(count)
    ]
    for thread in threads:
        thread.start()
    yield
    end = time.monotonic() + HANG_SECONDS + DRAIN_SECONDS
    for thread in threads:
        thread.join(max(0.0, end - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        raise TimeoutError("a client did not end")
