"""Speeds as ratios, each measured in one process with both sides in turns, against known ones.

    python benchmarks/ratios.py [--write] [--json]

The ratios of ``ratios.json`` are what this repository had; one that has fallen by more than a third
since is an error, and the exit code is 1. Half a minute; other work on the machine slows both sides
of a ratio. ``--write`` makes today's ratios the known ones.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import rerank
import torch
import train_speed
from extract_speed import measure, seconds_of

from graphkin.binaries.samples import bundled

KNOWN = Path(__file__).with_suffix(".json")
LEAST = 2 / 3
"""Of a known ratio."""
REPEATS = 9
TRAINING = (("gnn", 20, 0.2), ("gmn", 20, 0.2), ("gnn", 50, 0.5), ("gmn", 50, 0.5))


def training(model: str, nodes: int, p: float) -> float:
    """A literal port's training step in ours, by their fastest."""
    return train_speed.measure("train", model, nodes, p, 20, REPEATS).ratio_min


def reading(path: Path) -> float:
    """SMDA's time for a function in ours."""
    row = measure(path, min(seconds_of(path, with_evidence=False) for _ in range(3)), True)
    assert row.smda_functions_per_second is not None, "SMDA was asked"
    return row.functions_per_second / row.smda_functions_per_second


def measured() -> dict[str, float]:
    """All ratios, by name; more is better for us."""
    torch.set_num_threads(1)
    ratios = {
        f"training {model} n={nodes} p={p}, literal port / ours": training(model, nodes, p)
        for model, nodes, p in TRAINING
    }
    for row in rerank.measured(rerank.CANDIDATES, rerank.BLOCKS, REPEATS):
        ratios[f"{row.what}, torch / light"] = row.torch_ms / row.light_ms
    ratios["reading, SMDA / ours"] = reading(bundled.ELF / "gcc-O2/libkinmedia.so")
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--write", action="store_true", help="make these the known ratios")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    ratios = measured()
    if options.write:
        rounded = {name: round(ratio, 2) for name, ratio in ratios.items()}
        KNOWN.write_text(json.dumps(rounded, indent=2) + "\n")
    known = json.loads(KNOWN.read_text())
    if options.json:
        print(json.dumps(ratios, indent=2))
    else:
        print(f"{'ratio':<52}{'known':>8}{'now':>8}")
        for name, ratio in ratios.items():
            print(f"{name:<52}{known.get(name, 0):>8.2f}{ratio:>8.2f}")
    fallen = [name for name, ratio in ratios.items() if ratio < LEAST * known.get(name, 0)]
    for name in fallen:
        print(f"{name} has fallen by more than a third", file=sys.stderr)
    sys.exit(bool(fallen))


if __name__ == "__main__":
    main()
