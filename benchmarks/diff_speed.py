"""Measures how long a diff of two binaries takes, step by step, and the most memory it needs.

python benchmarks/diff_speed.py OLD NEW [--ignore-names]
"""

from __future__ import annotations

import argparse
import resource
import time

from graphkin.library.diff.diff import diff
from graphkin.results.document import Verdict

VERDICTS: tuple[Verdict, ...] = ("identical", "same", "changed")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--ignore-names", action="store_true", help="pair by code alone")
    options = parser.parse_args()
    timer = Timer()
    result = diff(options.old, options.new, by_name=not options.ignore_names, on_step=timer.begin)
    timer.begin("")
    wall, cpu = (now - start for now, start in zip(timer.now, timer.start, strict=True))
    print(f"{wall:8.1f} s {cpu:8.1f} s CPU  together")
    print(f"{result.left.functions:,} x {result.right.functions:,} functions")
    counts = (f"{result.count(name):,} {name}" for name in VERDICTS)
    print(f"{', '.join(counts)}, {len(result.removed):,} removed, {len(result.added):,} added")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB")


class Timer:
    """Prints each step of a diff when it is over."""

    def __init__(self) -> None:
        self.step = "loading the model"
        self.now = self.start = time.perf_counter(), time.process_time()

    def begin(self, step: str) -> None:
        before, self.now = self.now, (time.perf_counter(), time.process_time())
        wall, cpu = (now - then for now, then in zip(self.now, before, strict=True))
        print(f"{wall:8.1f} s {cpu:8.1f} s CPU  {self.step}", flush=True)
        self.step = step


if __name__ == "__main__":
    main()
