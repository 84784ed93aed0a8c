"""Measures what a diff says of two versions of a library, against the diff of their sources.

    python experiments/versions.py OLD.so NEW.so OLD_BUILD NEW_BUILD [more fours] [--json FILE]

Both builds are by one compiler with ``-g -save-temps=obj``; the folders hold the preprocessed
sources. The new file is stripped before it is read. A function counts as touched if its
preprocessed text changed, or that of one that the compiler put inside. Of those that are not said
to be changed, some have no trace of it: the new source with the old text of the function compiles
to the same code, so that nobody can see the change in a binary. They are counted apart.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from version_truth import Build, leaves_no_trace
from whole_binaries import stripped

from graphkin._support.files import write_atomically
from graphkin.library.diff.diff import diff

KEPT = ("identical", "same")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", type=Path, nargs="+", metavar="PATH")
    parser.add_argument("--compiler", default="gcc-12", help="that made both")
    parser.add_argument("--json", type=Path, help="write the results to this file, too")
    options = parser.parse_args()
    if len(options.paths) % 4:
        parser.error("give two builds and two build folders for each library")
    fours = [options.paths[at : at + 4] for at in range(0, len(options.paths), 4)]
    rows = {four[0].name: measured(*four, options.compiler) for four in fours}
    print(
        "| old file | untouched | said identical or same | touched | said changed "
        "| without a trace | missed |"
    )
    print("|---|---|---|---|---|---|---|")
    for name, row in rows.items():
        untouched, touched = row["untouched"], row["touched"]
        print(
            f"| {name} | {untouched['functions']} | {untouched['right']} "
            f"| {touched['functions']} | {touched['right']} | {len(row['traceless'])} "
            f"| {len(touched['others']) - len(row['traceless'])} |"
        )
    for name, row in rows.items():
        for kind in ("untouched", "touched"):
            for function, verdict in row[kind]["others"].items():
                trace = ", without a trace" if function in row["traceless"] else ""
                print(f"  {name}: {kind}{trace}, but {verdict}: {function}")
    if options.json is not None:
        write_atomically(options.json, json.dumps(rows, indent=1).encode() + b"\n")


def measured(
    old: Path, new: Path, old_folder: Path, new_folder: Path, compiler: str
) -> dict[str, Any]:
    """How many functions that no patch touched are said to be as before, and the others not."""
    before, after = Build(old, old_folder), Build(new, new_folder)
    common = before.functions.keys() & after.functions.keys()
    touched = {name for name in common if before.texts(name) != after.texts(name)}
    with stripped(new) as target:
        result = diff(old, target)
    verdicts = {pair.left.function: str(pair.verdict) for pair in result.pairs}
    verdicts |= {function.function: "removed" for function in result.removed}
    rows: dict[str, Any] = {
        kind: counted({name: verdicts[name] for name in names & verdicts.keys()}, right)
        for kind, names, right in (
            ("untouched", common - touched, KEPT),
            ("touched", touched, ("changed",)),
        )
    }
    others = rows["touched"]["others"]
    rows["traceless"] = [name for name in others if leaves_no_trace(before, after, name, compiler)]
    return rows


def counted(verdicts: dict[str, str], right: tuple[str, ...]) -> dict[str, Any]:
    """How many verdicts are right, and the others."""
    others = {name: verdict for name, verdict in sorted(verdicts.items()) if verdict not in right}
    return {"functions": len(verdicts), "right": len(verdicts) - len(others), "others": others}


if __name__ == "__main__":
    main()
