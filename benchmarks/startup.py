"""Times whole commands from the shell, on one small file: how long does a person wait?

    python benchmarks/startup.py [--repeats 5] [--imports] [--json]

Every verb that reads a binary runs on the bundled samples, against a library of one of them. The
median of the repeats counts, after one run that fills the page cache: wall-clock time, and the
processor time of the command with all its processes. ``--imports`` adds what the packages take
that each command imports, by Python's own account; the processes that read binaries import beside
the command, on another core.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from graphkin.binaries.samples import bundled

LIBRARY, OTHER = bundled.ELF / "gcc-O2/libkinbeat.so", bundled.ELF / "clang-O1/libkinbeat.so"
FUNCTION = bundled.VULNERABLE[1]
COMMAND = [sys.executable, "-m", "graphkin.cli.main"]
IMPORT = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\w+)")
LARGEST = 6
"""Packages that are listed."""


class Row(NamedTuple):
    """What one command took."""

    command: str
    wall_seconds: float
    cpu_seconds: float
    imports: dict[str, float]
    """Seconds by package, the slowest first."""


def commands(folder: Path) -> dict[str, list[str]]:
    """What is timed, by name; a library lies in the folder."""
    kin = str(folder / "library.kin")
    return {
        "--help": ["--help"],
        "show": ["show", f"{LIBRARY}:{FUNCTION}"],
        "index": ["index", str(folder / "new.kin"), str(LIBRARY)],
        "search": ["search", kin, f"{OTHER}:{FUNCTION}"],
        "scan": ["scan", kin, str(OTHER)],
        "compare": ["compare", f"{LIBRARY}:{FUNCTION}", f"{OTHER}:{FUNCTION}"],
        "diff": ["diff", str(LIBRARY), str(OTHER)],
        "names": ["names", str(LIBRARY), str(OTHER)],
        "library stats": ["library", kin, "stats"],
    }


def run(arguments: list[str], folder: Path) -> tuple[float, float]:
    """Wall-clock and processor seconds of one command."""
    (folder / "new.kin").unlink(missing_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run([*COMMAND, *arguments], capture_output=True, check=True)
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def imports(arguments: list[str], folder: Path) -> dict[str, float]:
    """Seconds that each package takes to import."""
    (folder / "new.kin").unlink(missing_ok=True)
    command = [COMMAND[0], "-X", "importtime", *COMMAND[1:], *arguments]
    lines = subprocess.run(command, capture_output=True, check=True, text=True).stderr
    spent: Counter[str] = Counter()
    for microseconds, package in IMPORT.findall(lines):
        spent[package] += int(microseconds)
    return {package: total / 1e6 for package, total in spent.most_common(LARGEST)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--imports", action="store_true", help="what packages take to import")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        known = ["index", str(folder / "library.kin"), str(LIBRARY)]
        subprocess.run([*COMMAND, *known], capture_output=True, check=True)
        for title, arguments in commands(folder).items():
            run(arguments, folder)
            times = [run(arguments, folder) for _ in range(options.repeats)]
            wall, cpu = map(statistics.median, zip(*times, strict=True))
            packages = imports(arguments, folder) if options.imports else {}
            rows.append(Row(title, wall, cpu, packages))
    if options.json:
        print(json.dumps([row._asdict() for row in rows], indent=2))
        return
    print(f"{'graphkin':<16}{'wall s':>8}{'CPU s':>8}  imports, seconds by package")
    for row in rows:
        packages = "  ".join(f"{package} {spent:.2f}" for package, spent in row.imports.items())
        print(f"{row.command:<16}{row.wall_seconds:>8.2f}{row.cpu_seconds:>8.2f}  {packages}")


if __name__ == "__main__":
    main()
