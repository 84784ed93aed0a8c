"""Times the extraction of control-flow graphs, graphkin against SMDA, on one core.

    python benchmarks/extract_speed.py BINARY... [--json] [--repeats N] [--no-smda] [--evidence]

Both read the same file in the same process, one after the other, and the numbers are CPU
seconds of this process: from the path of the file to the last function, imports aside. The
fastest of the repeats counts, for other programs on the machine only ever slow one down.
``agreement`` is the share of the functions known to both that have equal block starts; blocks
of nothing but padding are left out on both sides. The last line is the sum of all files.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

from graphkin.binaries.backends.native import NativeSource
from graphkin.binaries.evidence.collect import rules_of
from graphkin.binaries.recovery.words import known_words

PADDING = {"nop", "endbr64", "endbr32"}


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    binary: str
    functions: int
    blocks: int
    instructions: int
    seconds: float
    functions_per_second: float
    smda_functions: int | None = None
    smda_seconds: float | None = None
    smda_functions_per_second: float | None = None
    agreement: float | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("binaries", nargs="+", type=Path, metavar="BINARY")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--repeats", type=int, default=3, help="runs of graphkin")
    parser.add_argument("--no-smda", action="store_true", help="time graphkin alone")
    parser.add_argument("--evidence", action="store_true", help="collect evidence as well")
    options = parser.parse_args()
    times: dict[Path, list[float]] = {path: [] for path in options.binaries}
    for _ in range(max(1, options.repeats)):
        # Instructions that were met are remembered from file to file, but not from run to run.
        rules_of.cache_clear()
        known_words.cache_clear()
        for path in options.binaries:
            times[path].append(seconds_of(path, options.evidence))
    rows = [measure(path, min(times[path]), not options.no_smda) for path in options.binaries]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(f"{'binary':<40}{'functions':>10}{'ours/s':>9}{'SMDA/s':>9}{'ratio':>7}{'agreement':>11}")
    for row in rows:
        line = f"{row.binary[-39:]:<40}{row.functions:>10}{row.functions_per_second:>9.0f}"
        if row.smda_functions_per_second and row.agreement is not None:
            ratio = row.functions_per_second / row.smda_functions_per_second
            line += f"{row.smda_functions_per_second:>9.0f}{ratio:>7.1f}{row.agreement:>11.2%}"
        print(line)
    functions, seconds = sum(row.functions for row in rows), sum(row.seconds for row in rows)
    print(f"{'all':<40}{functions:>10}{functions / seconds:>9.0f}")


def seconds_of(path: Path, with_evidence: bool) -> float:
    """CPU time of reading one file."""
    start = time.process_time()
    for _ in NativeSource(path, with_evidence=with_evidence).functions():
        pass
    return time.process_time() - start


def measure(path: Path, seconds: float, with_smda: bool) -> Row:
    """What one file holds, beside the time that it took."""
    functions = blocks = instructions = 0
    for function in NativeSource(path).functions():
        functions += 1
        blocks += len(function.blocks)
        instructions += sum(len(block.mnemonics) for block in function.blocks)
    row = Row(str(path), functions, blocks, instructions, seconds, functions / seconds)
    if not with_smda:
        return row
    from smda.Disassembler import Disassembler

    logging.disable(logging.CRITICAL)
    start = time.process_time()
    report = Disassembler().disassembleFile(str(path))
    smda_seconds = time.process_time() - start
    theirs = {function.offset: _starts(function) for function in report.getFunctions()}
    ours = {
        function.address: {block.address for block in function.blocks}
        for function in NativeSource(path).functions()
    }
    both = ours.keys() & theirs.keys()
    return Row(
        **{
            **asdict(row),
            "smda_functions": len(theirs),
            "smda_seconds": smda_seconds,
            "smda_functions_per_second": len(theirs) / smda_seconds,
            "agreement": sum(ours[key] == theirs[key] for key in both) / max(1, len(both)),
        }
    )


def _starts(function: Any) -> set[int]:
    """Starts of SMDA's blocks that hold more than padding."""
    return {
        block.offset
        for block in function.getBlocks()
        if not all(
            instruction.mnemonic in PADDING
            or (instruction.mnemonic == "xchg" and instruction.operands == "ax, ax")
            for instruction in block.getInstructions()
        )
    }


if __name__ == "__main__":
    main()
