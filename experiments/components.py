"""Which components a scan finds in files that hold two projects each.

    python experiments/components.py FOLDER -o OUTPUT [--cache FOLDER] [--json]

The six test projects are built from Debian's sources for two configurations, and linked in pairs:
six stripped files, twelve builds. FOLDER holds ``PROJECT/CONFIGURATION.so``; a library of 26
projects, the six and twenty others, has the build x86_64-gcc-O2 of each. Every project of a pair
should be found, and no other.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path
from typing import Any

from graphkin import Library
from graphkin.binaries.building.projects import (
    Package,
    PackageList,
    build_projects,
    cross_compiling,
)
from graphkin.library.indexing.index import index_paths
from graphkin.library.records import SearchOptions
from graphkin.library.scan import MIN_PROBABILITY, RERANK, TOP, read_queries
from graphkin.library.whole_files import look_up_files

TEST = ("mbedtls", "libxml2", "opus", "libevent", "libarchive", "tiff")
LINKERS = {"x86_64-clang-O2": "clang-14", "aarch64-gcc-O2": "aarch64-linux-gnu-gcc"}
PAIRS = {
    "x86_64-clang-O2": (("mbedtls", "libxml2"), ("opus", "libevent"), ("libarchive", "tiff")),
    "aarch64-gcc-O2": (("libxml2", "opus"), ("libevent", "libarchive"), ("tiff", "mbedtls")),
}
KNOWN = "x86_64-gcc-O2"
OTHERS = 20


def link_pairs(output: Path, cache: Path | None) -> dict[Path, set[str]]:
    """The stripped files, and the projects in each."""
    # One object of each project, instead of a library that could not be linked any further.
    cross_compiling.LINK_FLAGS = ("-r", "-nostdlib", "-Wl,-z,muldefs")
    objects = output / "objects"
    packages = PackageList([Package(name, list(LINKERS)) for name in TEST])
    build_projects(packages, objects, cache=cache)
    files = {}
    for configuration, pairs in PAIRS.items():
        for names in pairs:
            file = output / f"{'-'.join(names)}-{configuration}.so"
            parts = [str(objects / name / f"{configuration}.so") for name in names]
            flags = ["-shared", "-Wl,-z,muldefs", "-Wl,--unresolved-symbols=ignore-all"]
            command = [LINKERS[configuration], *flags, *parts, "-o", str(file)]
            subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
            subprocess.run(["llvm-strip", "--strip-all", str(file)], check=True)
            files[file] = set(names)
    return files


def measure(library: Library, files: dict[Path, set[str]]) -> list[dict[str, Any]]:
    rows = []
    options = SearchOptions(TOP, RERANK, min_probability=MIN_PROBABILITY)
    for file, names in files.items():
        queries = list(read_queries(library, [str(file)]))
        components = look_up_files(library, queries, options).components
        found = {item.name: item for item in components}
        rows.append(
            {
                "file": file.name,
                "functions": len(queries),
                "found": {
                    name: [item.functions, item.builds[0].known, len(item.ranges)]
                    for name, item in found.items()
                },
                "missing": sorted(names - found.keys()),
                "invented": sorted(found.keys() - names),
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    files = link_pairs(options.output, options.cache)
    names = sorted(path.parent.name for path in options.folder.glob(f"*/{KNOWN}.so"))
    others = [name for name in names if name not in TEST][:OTHERS]
    path = options.output / "library.kin"
    path.unlink(missing_ok=True)
    with Library.create(path) as library:
        index_paths(library, [options.folder / name / f"{KNOWN}.so" for name in (*TEST, *others)])
        rows = measure(library, files)
    missing, invented = (sum(len(row[key]) for row in rows) for key in ("missing", "invented"))
    expected = sum(len(own) for own in files.values())
    if options.json:
        print(json.dumps({"files": rows, "expected": expected, "missing": missing,
                          "invented": invented}))  # fmt: skip
        return
    for row in rows:
        found = ", ".join(
            f"{name} {own} of {known} in {ranges} ranges"
            for name, (own, known, ranges) in row["found"].items()
        )
        print(f"{row['file']}: {row['functions']} functions; {found}")
        for key in ("missing", "invented"):
            if row[key]:
                print(f"  {key}: {', '.join(row[key])}")
    print(f"{expected - missing} of {expected} found, {invented} invented")


if __name__ == "__main__":
    main()
