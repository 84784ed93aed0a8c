"""Times ``graphkin index`` from files to a library, with one core and with two.

    python benchmarks/indexing.py FILES... [--cores 1 2] [--repeats 3] [--json]

Each run is the whole command, with as many processes that read as it has cores, and kept on these
cores: readers, what embeds and stores, and their starts share them. Functions a second are of the
run without the start of Python, as ``index --json`` says it, and of all processor time that the
command and its processes took. The fastest of the repeats counts, for other programs on the machine
only ever slow one down. Memory is what all processes have together at most, pages that several of
them share counted once.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

PR_SET_CHILD_SUBREAPER = 36
MEMORY_SECONDS = 0.05
"""Between two looks at the memory."""


class Run(NamedTuple):
    """What one run took."""

    cores: int
    functions: int
    """Those that are kept."""
    small: int
    """Those that are read and embedded as well, for the sake of their callers."""
    seconds: float
    """Of the run."""
    command_seconds: float
    """With the start of Python, and the end."""
    cpu_seconds: float
    """Of all processes, from the start of the command to its end."""
    read_cpu_seconds: float
    embed_cpu_seconds: float
    store_seconds: float
    """With the waits for the disk."""
    peak_mb: float

    @property
    def functions_per_second(self) -> float:
        return self.functions / self.seconds

    @property
    def functions_per_cpu_second(self) -> float:
        return self.functions / self.cpu_seconds


class Memory(threading.Thread):
    """Looks at the memory of a process and of all that it started, until it is stopped."""

    def __init__(self, group: int) -> None:
        super().__init__(daemon=True)
        self._group = group
        self._is_over = threading.Event()
        self.peak_mb = 0.0

    def run(self) -> None:
        while not self._is_over.wait(MEMORY_SECONDS):
            used = sum(map(_proportional_kb, _members(self._group))) / 1024
            self.peak_mb = max(self.peak_mb, used)

    def stop(self) -> None:
        self._is_over.set()
        self.join()


def _members(group: int) -> list[str]:
    """The processes of a group."""
    pids = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError, ProcessLookupError):
            if os.getpgid(int(pid)) == group:
                pids.append(pid)
    return pids


def _proportional_kb(pid: str) -> int:
    """Memory of a process, with its part of what it shares."""
    with suppress(OSError):
        content = Path(f"/proc/{pid}/smaps_rollup").read_text()
        return int(content.partition("\nPss:")[2].split()[0])
    return 0


def index(files: Sequence[Path], cores: int) -> Run:
    """One run, into a new library."""
    with tempfile.TemporaryDirectory() as folder:
        library = str(Path(folder) / "library.kin")
        command = [sys.executable, "-m", "graphkin.cli.main", "index", library, *map(str, files)]
        own = set(sorted(os.sched_getaffinity(0))[:cores])
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        process = subprocess.Popen(
            [*command, "--jobs", str(cores), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=lambda: os.sched_setaffinity(0, own),
        )
        memory = Memory(process.pid)
        memory.start()
        output, _ = process.communicate()
        seconds = time.perf_counter() - began
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} ended with code {process.returncode}")
        memory.stop()
        with suppress(ChildProcessError):
            while True:
                os.wait()  # what the command started, and left to this process
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = json.loads(output)
    spent = said["seconds"]
    return Run(
        cores,
        said["functions"],
        said["small"],
        spent["total"],
        seconds,
        after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        spent["extract"],
        spent["embed"],
        spent["store"],
        memory.peak_mb,
    )


def document(run: Run) -> dict[str, Any]:
    return {
        **run._asdict(),
        "functions_per_second": run.functions_per_second,
        "functions_per_cpu_second": run.functions_per_cpu_second,
    }


def text(runs: Sequence[Run]) -> str:
    """A table, a line for each number of cores."""
    lines = [
        f"{runs[0].functions} functions, and {runs[0].small} smaller ones",
        "cores  functions/s  functions/CPU s  run s  CPU s  read  embed  store  peak MB",
    ]
    lines += [
        f"{run.cores:5}  {run.functions_per_second:11.0f}  {run.functions_per_cpu_second:15.0f}  "
        f"{run.seconds:5.2f}  {run.cpu_seconds:5.2f}  {run.read_cpu_seconds:4.2f}  "
        f"{run.embed_cpu_seconds:5.2f}  {run.store_seconds:5.2f}  {run.peak_mb:7.0f}"
        for run in runs
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--cores", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    # Processes whose parent has ended become this one's, so that their time is counted.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1)
    runs = [
        [index(options.files, cores) for _ in range(options.repeats)] for cores in options.cores
    ]
    best = [min(own, key=lambda run: run.seconds) for own in runs]
    print(json.dumps([document(run) for run in best], indent=1) if options.json else text(best))


if __name__ == "__main__":
    main()
