"""Measures how well the functions of two builds of a program are paired, and their names carried.

    python experiments/whole_binaries.py FOLDER [--projects NAME,...] [--json FILE]

The folder holds ``PROJECT/CONFIGURATION.so``, unstripped. The old file keeps its names, the new one
is stripped by ``llvm-strip`` before it is read; its own names say which pairs are right.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from project_search import DIRECTIONS

from graphkin._support.files import write_atomically
from graphkin.binaries.function import CLONE_SUFFIX, Function, is_unnamed
from graphkin.binaries.reading import read_functions
from graphkin.binaries.targets import parse_target
from graphkin.library.diff.diff import MIN_PROBABILITY
from graphkin.library.diff.pairs import Paired
from graphkin.library.diff.rounds import pair
from graphkin.library.diff.side import Side, read_side
from graphkin.library.models import SearchModel
from graphkin.research.tasks.projects import TEST

LARGE = 5
"""Blocks of a function that counts for the recall of a diff."""
NAMED = 0.5
"""Probability from which on a name is carried over."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--projects", default=",".join(TEST), help="with commas")
    parser.add_argument("--model", default="functions")
    parser.add_argument("--json", type=Path, help="write the results to this file, too")
    options = parser.parse_args()
    model = SearchModel.load(options.model)
    rows: dict[str, Counter[str]] = {name: Counter() for name in DIRECTIONS}
    started = time.process_time()
    for project in options.projects.split(","):
        for name, counts in measured(model, options.folder / project):
            rows[name] += counts
    seconds = time.process_time() - started
    results = {name: scores(counts) for name, counts in rows.items() if counts["pairs"]}
    print(table(results))
    if options.json is not None:
        document = {
            "command": f"python experiments/whole_binaries.py FOLDER --projects {options.projects}",
            "model": str(model.model_id),
            "min_probability": {"pair": MIN_PROBABILITY, "name": NAMED},
            "directions": results,
            "cpu_seconds": round(seconds),
        }
        write_atomically(options.json, json.dumps(document, indent=1).encode() + b"\n")


def measured(model: SearchModel, folder: Path) -> Iterator[tuple[str, Counter[str]]]:
    """What was right in every direction of which the project has both builds."""
    old: dict[str, Side] = {}
    new: dict[str, tuple[Side, dict[int, set[str]]]] = {}
    for name, (left, right) in DIRECTIONS.items():
        paths = {build: folder / f"{build}.so" for build in (left, right)}
        if not all(path.exists() for path in paths.values()):
            continue
        if left not in old:
            old[left] = read_side(model, parse_target(str(paths[left])))
        if right not in new:
            new[right] = stripped_side(model, paths[right])
        yield (
            name,
            counted(old[left], *new[right], pair(model, old[left], new[right][0], by_name=False)),
        )


def stripped_side(model: SearchModel, path: Path) -> tuple[Side, dict[int, set[str]]]:
    """A binary without its names, and the names that each address really has."""
    names = {
        function.address: {function.base_name, *function.aliases}
        for function in read_functions(parse_target(str(path)))
        if not is_unnamed(function.name)
    }
    with stripped(path) as copy:
        return read_side(model, parse_target(str(copy))), names


@contextmanager
def stripped(path: Path) -> Iterator[Path]:
    """A copy of a binary without symbols and debug information."""
    tool = shutil.which("llvm-strip") or shutil.which("llvm-strip-14")
    if tool is None:
        raise SystemExit("llvm-strip is needed, which comes with Debian's package llvm")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / path.name
        subprocess.run([tool, "-o", copy, path], check=True)
        yield copy


def counted(old: Side, new: Side, names: dict[int, set[str]], paired: list[Paired]) -> Counter[str]:
    """How many pairs and names are right."""
    counts: Counter[str] = Counter(pairs=len(paired))
    true = [names.get(function.address, set()) for function in new.functions]
    partner = {item.row: item for item in paired if item.probability >= MIN_PROBABILITY}
    own_names = Counter(function.base_name for function in old.functions)
    there = Counter(name for own in true for name in own)
    place = {name: row for row, own in enumerate(true) for name in own}
    for row, function in enumerate(old.functions):
        if is_unnamed(function.name):
            continue
        item = partner.get(row)
        is_right = item is not None and function.base_name in true[item.column]
        if item is not None and item.probability >= NAMED and true[item.column]:
            counts["given"] += 1
            counts["given_right"] += is_right
        name = function.base_name
        if there[name] == 0:
            continue
        counts["common"] += 1
        is_asked = own_names[name] == there[name] == 1 and not _is_clone(function)
        if is_asked and min(old.blocks[row], new.blocks[place[name]]) >= LARGE:
            counts["asked"] += 1
            counts["right"] += is_right
    return counts


def _is_clone(function: Function) -> bool:
    return CLONE_SUFFIX.search(function.name) is not None


def scores(counts: Counter[str]) -> dict[str, Any]:
    return {
        "functions": counts["asked"],
        "recall_at_1": counts["right"] / max(counts["asked"], 1),
        "common": counts["common"],
        "names_right": counts["given_right"] / max(counts["given"], 1),
        "names_share": counts["given_right"] / max(counts["common"], 1),
    }


def table(results: dict[str, dict[str, Any]]) -> str:
    lines = [
        "| direction | functions | recall@1 | in both | names right | of those in both |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in results.items():
        lines.append(
            f"| {name} | {row['functions']:,} | {row['recall_at_1']:.3f} | {row['common']:,} "
            f"| {row['names_right']:.3f} | {row['names_share']:.3f} |"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
