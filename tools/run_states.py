"""Packs the state of unfinished training runs into small files, and unpacks them elsewhere.

    python tools/run_states.py save [--runs runs] [--states experiments/states]
    python tools/run_states.py restore [--runs runs] [--states experiments/states]

A state holds the checkpoint, the best weights and the log of a run, less than a megabyte for the
models of edit distance, so that a long run goes on on another machine. ``restore`` leaves runs
alone that are there already and have come as far, and lists the stored results of finished runs as
done, so that the queue does not train these again.
"""

from __future__ import annotations

import argparse
import io
import json
import shutil
import tarfile
from pathlib import Path

CHECKPOINT, LOG = "checkpoint.safetensors", "log.jsonl"
KEPT = (CHECKPOINT, LOG, "model/config.json", "model/model.safetensors", "model/README.md")
ENDING = ".tar.xz"
STORED = Path(__file__).parents[1] / "experiments" / "results" / "reproduce"
LONG_RUNS = "*-full-*.json"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("action", choices=("save", "restore"))
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--states", type=Path, default=Path("experiments/states"))
    options = parser.parse_args()
    {"save": save, "restore": restore}[options.action](options.runs, options.states)
    if options.action == "restore":
        restore_results(options.runs, STORED)


def save(runs: Path, states: Path) -> None:
    """Packs every run that is not finished, and forgets the states of those that are."""
    states.mkdir(parents=True, exist_ok=True)
    for folder in sorted(path.parent for path in runs.glob(f"*/{CHECKPOINT}")):
        state = states / (folder.name + ENDING)
        if (runs / "results" / "reproduce" / f"{folder.name}.json").exists():
            state.unlink(missing_ok=True)
            continue
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:xz") as tar:
            for name in KEPT:
                if (folder / name).exists():
                    tar.add(folder / name, name)
        state.write_bytes(buffer.getvalue())
        print(f"{state}: step {last_step(folder / LOG):,}, {state.stat().st_size:,} bytes")


def restore(runs: Path, states: Path) -> None:
    """Unpacks every state that is further than the run of its name."""
    for state in sorted(states.glob(f"*{ENDING}")):
        folder = runs / state.name.removesuffix(ENDING)
        with tarfile.open(state) as tar:
            log = tar.extractfile(LOG)
            assert log is not None, f"{state} has no log"
            step = step_of(log.read())
            if (folder / CHECKPOINT).exists() and last_step(folder / LOG) >= step:
                print(f"{folder}: step {last_step(folder / LOG):,}, left alone")
                continue
            folder.mkdir(parents=True, exist_ok=True)
            tar.extractall(folder, filter="data")
        print(f"{folder}: step {step:,}")


def restore_results(runs: Path, stored: Path) -> None:
    """Copies stored results of long runs to where the queue looks for them."""
    own = runs / "results" / "reproduce"
    own.mkdir(parents=True, exist_ok=True)
    for result in sorted(stored.glob(LONG_RUNS)):
        if not (own / result.name).exists():
            shutil.copy(result, own)
            print(f"{result.stem}: done")


def last_step(log: Path) -> int:
    return step_of(log.read_bytes()) if log.exists() else 0


def step_of(log: bytes) -> int:
    """The step of the last whole line."""
    lines = log.decode().splitlines()
    for line in reversed(lines):
        try:
            return int(json.loads(line)["step"])
        except ValueError:
            continue
    return 0


if __name__ == "__main__":
    main()
