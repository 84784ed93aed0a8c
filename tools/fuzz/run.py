"""Fuzzes every reader of files from outside, guided by coverage, and the HTTP API, and counts.

    python tools/fuzz/run.py [TARGET...] [--minutes N] [--corpora FOLDER] [--findings FOLDER]
        [--output FILE]

Needs atheris, and schemathesis for the API. Half of the time is shared out equally; the rest goes,
turn by turn, to the reader whose last turn added most inputs to its corpus. Corpora are kept, so
that the next run begins where this one ends. An input that raises anything but graphkin's own
errors, takes more than ``TIMEOUT`` seconds or more than ``MEMORY_MB``, is written to the folder of
findings, and the target goes on with the rest of its time. libFuzzer looks at the clock, which
runs on while other programs have the processor, and at the memory of its whole process, which
grows by what it keeps itself. So what took too long or too much is read once more by a process
that reads nothing else, and what that takes decides.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # for what the tests make

from targets import FOLDER, HOME, TARGETS

API = "http-api"
SHORTEST_RUN = 10
"""Seconds; a run takes some to begin."""
TIMEOUT = 25
MEMORY_MB = 3000
MOST_BYTES = 1 << 17
MOST_FINDINGS = 20
"""Of a target, after which it ends."""
EXECUTIONS = re.compile(r"stat::number_of_executed_units:\s+(\d+)")
PROGRESS = re.compile(r"#(\d+)\s.*cov: (\d+) ft: (\d+)")


@dataclass
class FuzzCounts:
    """What became of one target."""

    seconds: float = 0.0
    """Of the processor."""
    executions: int = 0
    branches: int = 0
    """Places in graphkin's code that were reached."""
    inputs: int = 0
    """In the corpus, each of which reached something that those before it did not."""
    findings: list[str] = field(default_factory=list)
    """Why, the last line of each."""


class Reader:
    """One target with its corpus, and what became of it."""

    def __init__(self, name: str, corpora: Path, findings: Path) -> None:
        self.name, self._findings, self._corpus = name, findings, corpora / name
        self.counts = FuzzCounts()
        self.yield_ = 0.0
        """Inputs that the last turn added to the corpus, for each second of it."""
        self._corpus.mkdir(parents=True, exist_ok=True)
        for seed in TARGETS[name].seeds():
            content = seed[:MOST_BYTES]
            (self._corpus / f"seed-{hashlib.sha256(content).hexdigest()[:16]}").write_bytes(content)

    @property
    def is_over(self) -> bool:
        return len(self.counts.findings) >= MOST_FINDINGS

    def turn(self, seconds: float) -> None:
        """Fuzzes for some seconds of the processor, or a little more."""
        counts, before = self.counts, len(list(self._corpus.iterdir()))
        began, end = counts.seconds, counts.seconds + seconds
        while counts.seconds < end and not self.is_over:
            self._run(max(SHORTEST_RUN, int(end - counts.seconds)))
        added = len(list(self._corpus.iterdir())) - before
        self.yield_ = added / max(counts.seconds - began, 1.0)

    def _run(self, seconds: int) -> None:
        counts, prefix = self.counts, f"{self._findings}/{self.name}-"
        known = self._greedy()
        spent, log, code = self._libfuzzer(
            self._corpus,
            f"-max_total_time={seconds}",
            f"-timeout={TIMEOUT}",
            f"-max_len={MOST_BYTES}",
            f"-artifact_prefix={prefix}",
            "-print_final_stats=1",
        )
        counts.seconds += spent
        counts.inputs = len(list(self._corpus.iterdir()))
        greedy = self._greedy() - known
        if greedy and not any(map(self._takes_too_much, greedy)):
            code = 0
            for path in greedy:
                path.unlink()
        _count(counts, log, code)

    def _greedy(self) -> set[Path]:
        """Inputs that are said to have taken too long or too much memory."""
        return {
            path
            for kind in ("timeout", "oom")
            for path in self._findings.glob(f"{self.name}-{kind}-*")
        }

    def _takes_too_much(self, path: Path) -> bool:
        """Whether one input does so alone, too."""
        spent, _, code = self._libfuzzer(path, f"-timeout={10 * TIMEOUT}")
        return code != 0 or spent > TIMEOUT

    def _libfuzzer(self, what: Path, *options: str) -> tuple[float, str, int]:
        """Seconds of the processor, what was printed, and the code of one process."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(
            [
                sys.executable, Path(__file__).with_name("one.py"), self.name, what,
                f"-rss_limit_mb={MEMORY_MB}", *options,
            ],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            env=os.environ | {HOME: str(FOLDER)},
        )  # fmt: skip
        for left in FOLDER.glob("graphkin-fuzz-*"):
            shutil.rmtree(left, ignore_errors=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return spent, done.stdout.decode(errors="replace"), done.returncode


def fuzz(readers: Sequence[Reader], seconds: float) -> None:
    """Shares some seconds of the processor among readers."""
    share = seconds / 2 / len(readers)
    for reader in readers:
        reader.turn(share)
        print(shown(reader), flush=True)
    while sum(reader.counts.seconds for reader in readers) < seconds:
        going = [reader for reader in readers if not reader.is_over]
        if not going:
            break
        best = max(going, key=lambda reader: reader.yield_)
        best.turn(max(share / 2, SHORTEST_RUN))
        print(shown(best), flush=True)


def shown(reader: Reader) -> str:
    """A line for a target, and one for each of its findings."""
    own = reader.counts
    line = (
        f"{reader.name:18} {own.seconds:6.0f} s {own.executions:9,} executions "
        f"{own.branches:6,} places {own.inputs:6,} inputs {len(own.findings):3} findings"
    )
    return "\n    ".join((line, *sorted(set(own.findings))))


def _count(counts: FuzzCounts, log: str, code: int) -> None:
    progress = PROGRESS.findall(log)
    finals = EXECUTIONS.findall(log)
    last = int(progress[-1][0]) if progress else 0
    counts.executions += int(finals[-1]) if finals else last
    counts.branches = max([counts.branches, *(int(found) for _, found, _ in progress)])
    if code:
        lines = [line.strip() for line in log.splitlines() if line.strip()]
        errors = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Warning)\b", line)]
        summary = [line for line in lines if line.startswith(("SUMMARY", "==", "ALARM"))]
        counts.findings.append(
            next(iter([*errors[-1:], *summary[-1:], *lines[-1:]]), f"code {code}")
        )


def _fuzz_api(seconds: float, findings: Path) -> dict[str, Any]:
    from api import fuzz_api, shown

    counts = fuzz_api(seconds, findings)
    print(shown(counts.operations), *counts.findings, sep="\n    ", flush=True)
    return asdict(counts)


def main() -> None:
    names = [*TARGETS, API]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(names))
    parser.add_argument("--minutes", type=float, default=10.0, help="of the processor, for all")
    parser.add_argument("--corpora", type=Path, default=Path("fuzz-corpora"), help="kept inputs")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--output", type=Path, help="write the counts as JSON")
    options = parser.parse_args()
    chosen = options.targets or names
    if unknown := sorted(set(chosen) - set(names)):
        parser.error(f"unknown target {unknown[0]}; choose among {', '.join(names)}")
    options.findings.mkdir(parents=True, exist_ok=True)
    seconds = 60 * options.minutes
    measured: dict[str, Any] = {"date": time.strftime("%Y-%m-%d"), "minutes": options.minutes}
    if API in chosen:
        measured["api"] = _fuzz_api(seconds / len(chosen), options.findings)
    readers = [
        Reader(name, options.corpora, options.findings) for name in chosen if name in TARGETS
    ]
    if readers:
        fuzz(readers, seconds * len(readers) / len(chosen))
        measured["targets"] = {reader.name: asdict(reader.counts) for reader in readers}
    if options.output is not None:
        options.output.write_text(json.dumps(measured, indent=1) + "\n")
    has_findings = any(reader.counts.findings for reader in readers)
    sys.exit(has_findings or bool(measured.get("api", {}).get("findings")))


if __name__ == "__main__":
    main()
