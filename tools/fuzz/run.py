"""Fuzzes every reader of files from outside, guided by coverage, and counts.

    python tools/fuzz/run.py [TARGET...] [--minutes N] [--findings FOLDER] [--output FILE]

Needs atheris. The time is shared out among the targets. An input that raises anything but
graphkin's own errors, takes more than ``TIMEOUT`` seconds or more than ``MEMORY_MB``, is written to
the folder of findings, and the target goes on with the rest of its time.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # for what the tests make

from targets import TARGETS

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
    findings: list[str] = field(default_factory=list)
    """Why, the last line of each."""


def fuzz(name: str, seconds: float, findings: Path) -> FuzzCounts:
    """Fuzzes one target for some seconds of the clock."""
    counts, end = FuzzCounts(), time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="graphkin-corpus-") as corpus:
        for number, seed in enumerate(TARGETS[name].seeds()):
            Path(corpus, f"seed-{number}").write_bytes(seed[:MOST_BYTES])
        while (left := int(end - time.monotonic())) > 0 and len(counts.findings) < MOST_FINDINGS:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            done = subprocess.run(
                [
                    sys.executable, Path(__file__).with_name("one.py"), name, corpus,
                    f"-max_total_time={left}", f"-timeout={TIMEOUT}", f"-max_len={MOST_BYTES}",
                    f"-rss_limit_mb={MEMORY_MB}", "-print_final_stats=1",
                    f"-artifact_prefix={findings}/{name}-",
                ],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            )  # fmt: skip
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            counts.seconds += after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
            _count(counts, done.stdout.decode(errors="replace"), done.returncode)
    return counts


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


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--minutes", type=float, default=10.0, help="of the clock, for all targets")
    parser.add_argument("--findings", type=Path, default=Path("fuzz-findings"))
    parser.add_argument("--output", type=Path, help="write the counts as JSON")
    options = parser.parse_args()
    names = options.targets or list(TARGETS)
    if unknown := sorted(set(names) - set(TARGETS)):
        parser.error(f"unknown target {unknown[0]}; choose among {', '.join(TARGETS)}")
    options.findings.mkdir(parents=True, exist_ok=True)
    counts = {}
    for name in names:
        counts[name] = own = fuzz(name, 60 * options.minutes / len(names), options.findings)
        print(
            f"{name:18} {own.seconds:6.0f} s {own.executions:9,} executions "
            f"{own.branches:6,} places {len(own.findings):3} findings",
            *sorted(set(own.findings)),
            sep="\n    ",
            flush=True,
        )
    if options.output is not None:
        measured = {
            "date": time.strftime("%Y-%m-%d"),
            "minutes": options.minutes,
            "targets": {name: asdict(own) for name, own in counts.items()},
        }
        options.output.write_text(json.dumps(measured, indent=1) + "\n")
    sys.exit(any(own.findings for own in counts.values()))


if __name__ == "__main__":
    main()
