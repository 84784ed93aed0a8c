"""Writes docs/reliability.md from what ``make fuzz`` and ``make torture`` measured last.

python tools/reliability.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "experiments" / "results"
PAGE = REPOSITORY / "docs" / "reliability.md"
TEMPLATE = """\
# Reliability

What was done to graphkin to break it, and what came of it. `python tools/reliability.py` writes
this page from the results of the commands below; `SECURITY.md` in the repository says what is
promised.

## Kills, full disks, cuts of the power

`make torture N={trials}` on {torture_date}. A process changes a library (create, add, tag, remove,
compact) or a graph store (append). At a random one of its changes of files it is killed, or the
disk is full from there on, or the power is cut: what was not flushed is then lost, all of it, or
each write with probability 1/2. *Lost* are trials in which an acknowledged step was gone, *halfway*
those that left a state between two steps.

{torture}

## Fuzzing

`make fuzz MINUTES={minutes:g}` on {fuzz_date}: atheris, guided by the coverage of graphkin's own
code; {cpu_minutes:.1f} minutes of the processor and {executions:,} executions in all. A finding is
an input that raises anything but graphkin's own errors, takes more than 25 s or more than 3 GB.

{fuzz}

## What others promise

| | promise | graphkin |
|---|---|---|
| SQLite | {sqlite} | {libraries} |
| faiss | none for files: `write_index` writes in place | its index is only in memory |
| capa | none that it documents: files are read in its own process | processes with limits do |
"""
SQLITE = (
    "transactions survive a crash and a cut of the power, where the disk keeps what it flushed; "
    "damage is noticed only with its extension for checksums"
)
LIBRARIES = "SQLite files, `synchronous = FULL`, with checksums of their own for each entry"


def table(head: str, rows: list[str]) -> str:
    return "\n".join((head, "|---" * (head.count("|") - 1) + "|", *rows))


def torture_table(scenarios: dict[str, Any]) -> str:
    """A row for each scenario and fault."""
    columns = ("trials", "acknowledged", "lost", "unreadable", "halfway")
    rows = [
        f"| {scenario} | {fault} | {' | '.join(str(own[name]) for name in columns)} "
        f"| {own['reopen_seconds']:.2f} s |"
        for scenario, faults in scenarios.items()
        for fault, own in faults.items()
    ]
    return table(f"| what | fault | {' | '.join(columns)} | reopened within |", rows)


def fuzz_table(targets: dict[str, Any]) -> str:
    """A row for each reader."""
    rows = [
        f"| {name} | {own['seconds']:.0f} | {own['executions']:,} | {own['branches']:,} "
        f"| {len(own['findings'])} |"
        for name, own in targets.items()
    ]
    return table("| reader | seconds | executions | places reached | findings |", rows)


def page(torture: dict[str, Any], fuzz: dict[str, Any]) -> str:
    """The page of two sets of results."""
    targets = fuzz["targets"]
    return TEMPLATE.format(
        trials=torture["trials"],
        torture_date=torture["date"],
        torture=torture_table(torture["scenarios"]),
        minutes=fuzz["minutes"],
        fuzz_date=fuzz["date"],
        cpu_minutes=sum(own["seconds"] for own in targets.values()) / 60,
        executions=sum(own["executions"] for own in targets.values()),
        fuzz=fuzz_table(targets),
        sqlite=SQLITE,
        libraries=LIBRARIES,
    )


def read(name: str) -> dict[str, Any]:
    """One set of results."""
    return dict(json.loads((RESULTS / f"{name}.json").read_text()))


if __name__ == "__main__":
    PAGE.write_text(page(read("torture"), read("fuzz")))
