"""Asks everything of the HTTP API that its description allows, and things that it does not.

    python tools/fuzz/api.py [--seconds N] [--findings FOLDER] [--output FILE]

Requests are made by schemathesis from ``/api/openapi.json`` of a server that is started for it, on
this machine. Most names of files, functions and jobs among them are replaced by real ones, so that
what lies behind them is reached. A finding is an answer 500, one that its description does not
have, or none at all; so is a traceback in the server's log.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis.specs.openapi import checks

from graphkin import Library
from graphkin.binaries import samples
from graphkin.library.indexing.index import index_paths

EXAMPLES = 20
"""Of an operation, before the next one has its turn."""
REAL = 0.8
"""Of the names in requests."""
NEW_JOBS = 0.2
"""Requests that name a job that was started for them."""
ANSWER_SECONDS = 90.0
RIGHT_ERRORS = (503, 504)
"""Too much to do, and too long: an answer where the server is asked for too much."""
JOBS = {"scan": "scans", "diff": "diffs", "addition": "library/additions"}
"""Parameters that name a job, and where such jobs are started."""
CHECKS = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
INDEXED = ("gcc-O2/libkinbeat.so", "gcc-O2/libkinproto.so")
SENT = ("gcc-O1/libkinbeat.so", "gcc-O1/libkinproto.so")
FORMATS = ("json", "csv", "html", "table", "sarif")
HEAD_BYTES = 50_000
"""Of a request's address, above which the server may close the connection."""
MOST_LETTERS = 500


@dataclass
class OperationCounts:
    """What became of the requests to one operation."""

    requests: int = 0
    reached: int = 0
    """Answers of success."""
    statuses: dict[int, int] = field(default_factory=dict)


@dataclass
class ApiCounts:
    """What became of all."""

    seconds: float = 0.0
    operations: dict[str, OperationCounts] = field(default_factory=dict)
    findings: dict[str, str] = field(default_factory=dict)
    """A request for each kind of finding."""


class RealNames:
    """What the server has."""

    def __init__(self, address: str, library: Path) -> None:
        self._address = address
        with Library.open(library) as opened:
            self._ids = [item.id for item in opened.engine.scan()]
        self.contents = [samples.path(name).read_bytes() for name in SENT]
        self.files = [hashlib.sha256(content).hexdigest() for content in self.contents]
        self._jobs: dict[str, str] = {}
        for content in self.contents:
            self._ask("binaries?name=sent.so", content)

    def _ask(self, path: str, content: Any = None) -> Any:
        headers = {}
        if content is not None and not isinstance(content, bytes):
            headers, content = {"Content-Type": "application/json"}, json.dumps(content).encode()
        with urlopen(Request(f"{self._address}api/{path}", content, headers), timeout=60) as answer:
            return json.load(answer)

    def reference(self, chosen: random.Random) -> str:
        """A function of the library, or of a file that was sent."""
        if chosen.random() < 0.4:
            return f"library:{chosen.choice(self._ids)}"
        return f"upload:{chosen.choice(self.files)}:{chosen.randrange(20)}"

    def job(self, kind: str, chosen: random.Random) -> str:
        """A job that the server knows, or knew: a new one, unless enough of them wait."""
        file = {"binary": self.files[0]}
        body = {"left": self.files[0], "right": self.files[1]} if kind == "diff" else file
        if kind not in self._jobs or chosen.random() < NEW_JOBS:
            with suppress(HTTPError):
                self._jobs[kind] = str(self._ask(JOBS[kind], body)["id"])
        return self._jobs.get(kind, "unknown")

    def put_into(self, case: Any, chosen: random.Random) -> None:
        """Replaces names in a request by real ones."""
        for values in (case.path_parameters, case.query):
            for name in list(values or {}):
                if chosen.random() < REAL:
                    values[name] = self._named(name, values[name], chosen)
        if isinstance(case.body, dict):
            self._put_into_body(case.path, case.body, chosen)
        elif case.operation.label == "POST /api/binaries" and chosen.random() < REAL:
            case.body = chosen.choice(self.contents)

    def _named(self, name: str, old: Any, chosen: random.Random) -> Any:
        if name in JOBS:
            return self.job(name, chosen)
        if name in ("reference", "left", "right", "query"):
            return self.reference(chosen)
        if name == "format":
            return chosen.choice(FORMATS)
        if name == "binary" and not isinstance(old, int):
            return chosen.choice(self.files)
        return old

    def _put_into_body(self, path: str, body: dict[str, Any], chosen: random.Random) -> None:
        if path.endswith("/removals"):
            # One that is not there, so that the others stay.
            return
        for name in list(body):
            if name in ("binary", "query", "left", "right") and chosen.random() < REAL:
                is_file = name == "binary" or path.endswith("/diffs")
                body[name] = chosen.choice(self.files) if is_file else self.reference(chosen)
        if chosen.random() < REAL:
            # What is cut out by chance leaves nothing to do.
            body.pop("where", None)
        for name, most in (("top", 200), ("rerank", 1000)):
            if isinstance(body.get(name), int) and chosen.random() < REAL:
                body[name] = min(body[name], most)


@contextmanager
def _served(library: Path) -> Iterator[tuple[str, subprocess.Popen[bytes], Path]]:
    """A server's address, its process, and its log."""
    program, log = str(Path(sys.executable).with_name("graphkin")), library.with_suffix(".log")
    environment = {name: text for name, text in os.environ.items() if name != "GRAPHKIN_TOKEN"}
    with open(log, "wb") as errors:
        process = subprocess.Popen(
            [program, "serve", str(library), "--port", "0", "--json"],
            stdout=subprocess.PIPE, stderr=errors, env=environment,
        )  # fmt: skip
    try:
        assert process.stdout is not None
        yield str(json.loads(process.stdout.readline())["address"]), process, log
    finally:
        process.terminate()
        process.wait(60)


def fuzz_api(seconds: float, findings: Path | None = None) -> ApiCounts:
    """Asks a new server for some seconds of the clock."""
    counts, began = ApiCounts(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="graphkin-fuzz-") as folder:
        library = Path(folder, "library.kin")
        with Library.create(library) as made:
            index_paths(made, [samples.path(name) for name in INDEXED])
        with _served(library) as (address, process, log):
            schema = schemathesis.openapi.from_url(f"{address}api/openapi.json")
            operations = [result.ok() for result in schema.get_all_operations()]
            names, turn = RealNames(address, library), 0
            while time.monotonic() - began < seconds or turn < len(operations):
                round_, place = divmod(turn, len(operations))
                _ask_operation(operations[place], names, counts, turn, wrong=round_ % 3 == 2)
                turn += 1
                if process.poll() is not None:
                    counts.findings["the server"] = f"ended with {process.returncode}"
                    break
        text = log.read_text(errors="replace")
    if "Traceback" in text:
        counts.findings["the log"] = text[text.index("Traceback") :][:4000]
    counts.seconds = time.monotonic() - began
    if findings is not None:
        findings.mkdir(parents=True, exist_ok=True)
        for name, request in counts.findings.items():
            digest = hashlib.sha256(name.encode()).hexdigest()[:16]
            (findings / f"http-api-{digest}").write_text(f"{name}\n{request}\n")
    return counts


def _ask_operation(
    operation: Any, names: RealNames, counts: ApiCounts, turn: int, *, wrong: bool
) -> None:
    """Some requests to one operation: as it is described, or otherwise."""
    mode = schemathesis.GenerationMode
    own = counts.operations.setdefault(operation.label, OperationCounts())
    chosen = random.Random(turn)
    kind = mode.NEGATIVE if wrong else mode.POSITIVE

    @seed(turn)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=kind))
    def ask(case: Any) -> None:
        names.put_into(case, chosen)
        own.requests += 1
        try:
            response = case.call(timeout=ANSWER_SECONDS)
        except Exception as error:
            if len(urlencode(case.query or {}, doseq=True)) < HEAD_BYTES:
                _note(counts, case, f"no answer: {type(error).__name__}")
            return
        own.statuses[response.status_code] = own.statuses.get(response.status_code, 0) + 1
        own.reached += 200 <= response.status_code < 300
        if response.status_code in RIGHT_ERRORS:
            return
        if response.status_code >= 500:
            _note(counts, case, f"status {response.status_code}")
            return
        try:
            case.validate_response(response, checks=CHECKS)
        except BaseExceptionGroup as group:
            for error in group.exceptions:
                _note(counts, case, f"{response.status_code}: {_said(error)}")
        except AssertionError as error:
            _note(counts, case, f"{response.status_code}: {_said(error)}")

    try:
        ask()
    except Exception as error:
        # Nothing that a description says can be turned round, for some.
        if "Unsatisfiable" not in type(error).__name__:
            raise


def _said(error: BaseException) -> str:
    title = getattr(error, "title", type(error).__name__)
    return f"{title}: {str(getattr(error, 'message', error)).strip().partition(chr(10))[0]}"


def _note(counts: ApiCounts, case: Any, what: str) -> None:
    name = f"{case.operation.label}: {what[:MOST_LETTERS]}"
    if name not in counts.findings:
        try:
            counts.findings[name] = str(case.as_curl_command())[:4000]
        except Exception as error:
            counts.findings[name] = f"{case!r}, {error!r}"[:4000]


def shown(counts: Mapping[str, OperationCounts]) -> str:
    """A line for each operation."""
    return "\n".join(
        f"{name:48} {own.requests:6,} requests {own.reached:6,} of success  "
        + " ".join(f"{status}: {count}" for status, count in sorted(own.statuses.items()))
        for name, own in counts.items()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="of the clock")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--output", type=Path, help="write the counts as JSON")
    options = parser.parse_args()
    counts = fuzz_api(options.seconds, options.findings)
    print(shown(counts.operations))
    for name, request in counts.findings.items():
        print(f"    {name}\n        {request.strip()[:MOST_LETTERS]}")
    if options.output is not None:
        options.output.write_text(json.dumps(asdict(counts), indent=1) + "\n")
    sys.exit(bool(counts.findings))


if __name__ == "__main__":
    main()
