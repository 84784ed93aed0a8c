"""Kills, fills the disk and cuts the power at every kind of moment, and looks what is left.

    python tools/torture/run.py [--trials N] [--seed N] [--output FILE]

Steps over a library (create, add, tag, remove, compact) and over a graph store (append) run in a
process above a layer that counts its changes of files. At one of them the process is killed, or the
disk is full from then on, or the power is cut: what was not flushed is lost, all of it or at
random. Then the files are opened again. They must be readable, and hold the state after the last
step that was acknowledged, or after the one in progress. Needs gcc and Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from power import after_power_cut, read_log
from work import SCENARIOS, prepare, state

from graphkin._support.files import sweep

HERE = Path(__file__).parent
FAULTS = ("kill", "full disk", "power cut, nothing unflushed kept", "power cut, some kept")


@dataclass
class TortureCounts:
    """What became of one scenario under one fault."""

    trials: int = 0
    acknowledged: int = 0
    """Steps."""
    lost: int = 0
    """Trials after which an acknowledged step was not there."""
    unreadable: int = 0
    halfway: int = 0
    """Trials that left a state between two steps."""
    left_over: int = 0
    """Files that are of no use, after the next writer had its turn."""
    reopen_seconds: float = 0.0
    """The longest time to open, and to verify, what was left."""
    problems: list[str] = field(default_factory=list)


class Torture:
    """One scenario, and the states that its steps lead through."""

    def __init__(self, scenario: str, home: Path, layer: Path) -> None:
        self.scenario, self.home, self.layer = scenario, home, layer
        self.before = home / "before"
        self.before.mkdir()
        prepare(self.before)
        with self._folder() as folder:
            shown = self._run(folder, "--states").stdout.split()
            self.states = [str(line) for line in shown]
        with self._folder() as folder:
            self._run(folder, TORTURE_LOG=str(home / "log"))
            self.changes = read_log(home / "log")
        own = [c for c in self.changes if c.kind != "flush" and not c.path.endswith("acknowledged")]
        self.moments = len(own)

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        folder = self.home / "files"
        shutil.copytree(self.before, folder)
        try:
            yield folder
        finally:
            shutil.rmtree(folder)

    def _run(
        self, folder: Path, *arguments: str, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = dict(os.environ)
        if variables:
            environment |= {"LD_PRELOAD": str(self.layer), "TORTURE_ROOT": str(folder), **variables}
        return subprocess.run(
            [sys.executable, HERE / "work.py", self.scenario, folder, *arguments],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip

    def trial(self, fault: str, chosen: random.Random, counts: TortureCounts) -> None:
        with self._folder() as folder:
            if fault.startswith("power"):
                shutil.rmtree(folder)
                folder.mkdir()
                cut = self.changes[: chosen.randrange(1, len(self.changes) + 1)]
                kept = chosen if fault.endswith("some kept") else None
                after_power_cut(self.before, folder, cut, folder, kept)
                for path in folder.rglob("*-shm"):
                    path.unlink()
                acknowledged = sum(c.path.endswith("acknowledged") for c in cut)
            else:
                name = "TORTURE_KILL" if fault == "kill" else "TORTURE_FULL"
                done = self._run(folder, **{name: str(chosen.randrange(1, self.moments + 1))})
                if fault == "kill" and done.returncode not in (0, -signal.SIGKILL):
                    counts.problems.append(done.stderr.strip().rpartition("\n")[2])
                if fault == "full disk" and done.returncode:
                    last = done.stderr.strip().rpartition("\n")[2]
                    if (
                        not last.startswith("graphkin.errors.StorageError")
                        and "No space" not in last
                    ):
                        counts.problems.append(last)
                file = folder / "acknowledged"
                acknowledged = file.stat().st_size if file.exists() else 0
            self._judge(folder, acknowledged, counts)

    def _judge(self, folder: Path, acknowledged: int, counts: TortureCounts) -> None:
        counts.trials += 1
        counts.acknowledged += acknowledged
        began = time.perf_counter()
        try:
            actual = state(folder)
        except Exception as error:
            counts.unreadable += 1
            counts.problems.append(f"after {acknowledged} steps: {error!r}"[:300])
            return
        counts.reopen_seconds = max(counts.reopen_seconds, time.perf_counter() - began)
        places = [at for at, known in enumerate(self.states) if known == actual]
        if not places:
            counts.halfway += 1
        elif max(places) < acknowledged:
            counts.lost += 1
        sweep(folder / "new.kin")  # as the next who makes it does
        counts.left_over += sum(
            path.name.endswith(("-wal", "-journal")) for path in folder.iterdir()
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--trials", type=int, default=100, help="of each scenario and fault")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="write the counts as JSON")
    options = parser.parse_args()
    everything: dict[str, dict[str, TortureCounts]] = {}
    with tempfile.TemporaryDirectory(prefix="graphkin-torture-") as name:
        layer = Path(name) / "disk.so"
        build = [
            "gcc",
            "-shared",
            "-fPIC",
            "-O1",
            "-o",
            layer,
            HERE / "disk.c",
            "-ldl",
            "-lpthread",
        ]
        subprocess.run(build, check=True)
        for scenario in SCENARIOS:
            home = Path(name) / scenario
            home.mkdir()
            torture = Torture(scenario, home, layer)
            print(
                f"{scenario}: {len(torture.states) - 1} steps, {torture.moments} changes of files"
            )
            everything[scenario] = {}
            for fault in FAULTS:
                counts = everything[scenario][fault] = TortureCounts()
                chosen = random.Random(f"{options.seed} {scenario} {fault}")
                for _ in range(options.trials):
                    torture.trial(fault, chosen, counts)
                print(f"  {fault}: {asdict(counts)}", flush=True)
    if options.output is not None:
        measured = {
            "date": time.strftime("%Y-%m-%d"),
            "trials": options.trials,
            "scenarios": {
                name: {fault: asdict(own) for fault, own in faults.items()}
                for name, faults in everything.items()
            },
        }
        options.output.write_text(json.dumps(measured, indent=1) + "\n")
    own = [counts for faults in everything.values() for counts in faults.values()]
    sys.exit(any(c.lost or c.unreadable or c.halfway or c.problems for c in own))


if __name__ == "__main__":
    main()
