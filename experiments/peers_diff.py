"""Compares how radare2, MCRIT and graphkin pair the functions of two builds of a program.

    python experiments/peers_diff.py FOLDER --peers PYTHON [--projects NAME,...]
        [--directions NAME,...] [--json FILE]

The folder holds ``PROJECT/CONFIGURATION.so``, unstripped; the new file is stripped by
``llvm-strip``, and the names of the functions that it exports are overwritten: tools pair by them.
The old one keeps its names. PYTHON is that of an environment with ``r2libr`` and
``mcrit``, which are no dependencies of graphkin. radare2 is ``radiff2 -A -C``; MCRIT is its memory
storage over reports of SMDA, of each function the partner with the best score. Every tool
pairs as it does by itself; of two pairs of one function the better one counts.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from elftools.elf.elffile import ELFFile
from project_search import DIRECTIONS
from whole_binaries import NAMED, stripped

from graphkin._support.files import write_atomically
from graphkin.binaries.function import is_unnamed
from graphkin.binaries.reading import read_functions
from graphkin.binaries.targets import parse_target
from graphkin.library.diff.diff import diff
from graphkin.library.models import SearchModel
from graphkin.research.tasks.projects import TEST

CHOSEN = "same level,XO+XC,XA 64"
SECONDS = 1800
"""That a peer may take for a pair of files."""
RADIFF = """
import ctypes, importlib.util, pathlib, sys
folder = pathlib.Path(importlib.util.find_spec("libr").submodule_search_locations[0]) / "libr"
sys.path.insert(0, str(folder))
texts = [text.encode() for text in ["radiff2", "-A", "-C", *sys.argv[1:]]]
ctypes.CDLL(str(folder / "libr_main.so")).r_main_radiff2(
    len(texts), (ctypes.c_char_p * len(texts))(*texts)
)
"""
MATCHED = re.compile(r"(0x[0-9a-f]+) \|\s+(?:UN)?MATCH\s+\(([\d.]+)\) \| (0x[0-9a-f]+)")
MCRIT = """
import json, logging, sys
from mcrit.config.McritConfig import McritConfig
from mcrit.config.QueueConfig import QueueConfig
from mcrit.config.StorageConfig import StorageConfig
from mcrit.index.MinHashIndex import MinHashIndex
from smda.Disassembler import Disassembler

def main():
    logging.disable(logging.CRITICAL)
    config = McritConfig()
    config.STORAGE_CONFIG = StorageConfig(STORAGE_METHOD="memory")
    config.QUEUE_CONFIG = QueueConfig(QUEUE_METHOD="fake")
    index = MinHashIndex(config)
    offsets, samples = {}, []
    for path in sys.argv[1:]:
        report = Disassembler().disassembleFile(path)
        sample = index.addReport(report)["sample_info"]["sample_id"]
        samples.append(sample)
        for item in index.getStorage().getFunctionsBySampleId(sample):
            offsets[item.function_id] = item.offset
    result = index.getResultForJob(index.getMatchesForSampleVs(*samples))
    matches = [
        [offsets[function["fid"]], offsets[match[2]], match[3]]
        for function in result["matches"]["functions"]
        for match in function["matches"]
    ]
    print(json.dumps(matches))

if __name__ == "__main__":  # it starts processes
    main()
"""


class Match(NamedTuple):
    """Two functions by their addresses, and how sure a tool is."""

    old: int
    new: int
    score: float


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peers", required=True, help="Python with r2libr and mcrit")
    parser.add_argument("--projects", default=",".join(TEST), help="with commas")
    parser.add_argument("--directions", default=CHOSEN, help="with commas")
    parser.add_argument("--json", type=Path, help="write the results to this file, too")
    options = parser.parse_args()
    model = SearchModel.load("functions")
    rows: dict[str, Counter[str]] = {}
    for direction in options.directions.split(","):
        for project in options.projects.split(","):
            builds = [options.folder / project / f"{name}.so" for name in DIRECTIONS[direction]]
            if not all(path.exists() for path in builds):
                continue
            for tool, counts in measured(model, options.peers, *builds):
                rows.setdefault(f"{direction} | {tool}", Counter()).update(counts)
                print(direction, project, tool, dict(counts), flush=True)
    results = {name: scores(counts) for name, counts in rows.items()}
    print(table(results))
    if options.json is not None:
        document = {"projects": options.projects.split(","), "results": results}
        write_atomically(options.json, json.dumps(document, indent=1).encode() + b"\n")


def measured(
    model: SearchModel, python: str, old: Path, new: Path
) -> Iterable[tuple[str, Counter[str]]]:
    """What each tool gets right of one pair of files, and how long it takes."""
    old_names, new_names = names_of(old), names_of(new)
    with stripped(new) as target:
        hide_exports(target)
        started = time.perf_counter()
        pairs = diff(old, target, model, by_name=False).pairs
        ours = [
            Match(pair.left.address or 0, pair.right.address or 0, pair.probability or 0.0)
            for pair in pairs
            if (pair.probability or 0.0) >= NAMED
        ]
        yield "graphkin", counted(ours, old_names, new_names, time.perf_counter() - started)
        for tool, script in (("radare2", RADIFF), ("MCRIT", MCRIT)):
            started = time.perf_counter()
            text = run(python, script, old, target)
            matches = mcrit_matches(text) if tool == "MCRIT" else radare_matches(text)
            seconds = time.perf_counter() - started
            yield tool, counted(matches, old_names, new_names, seconds)


def hide_exports(path: Path) -> None:
    """Overwrites the names of the functions that an ELF file exports, each by letters."""
    content = bytearray(path.read_bytes())
    with path.open("rb") as file:
        elf = ELFFile(file)
        symbols = elf.get_section_by_name(".dynsym")
        start = elf.get_section_by_name(".dynstr")["sh_offset"]
        for number, symbol in enumerate(symbols.iter_symbols()):
            if symbol["st_shndx"] != "SHN_UNDEF" and symbol["st_info"]["type"] == "STT_FUNC":
                at, size = start + symbol["st_name"], len(symbol.name)
                letters = "".join(chr(97 + (number // 26**digit) % 26) for digit in range(size))
                content[at : at + size] = letters.encode()
    path.write_bytes(content)


def run(python: str, script: str, old: Path, new: Path) -> str:
    """What a peer prints; nothing where it fails or takes too long."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "peer.py"
        program.write_text(script)
        command = [python, "-I", str(program), str(old), str(new)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return ""
    return done.stdout.decode("utf-8", "replace")


def radare_matches(text: str) -> list[Match]:
    plain = re.sub(r"\x1b\[[0-9;]*m", "", text)
    return [
        Match(int(old, 16), int(new, 16), float(score))
        for old, score, new in MATCHED.findall(plain)
    ]


def mcrit_matches(text: str) -> list[Match]:
    last = text.strip().rpartition("\n")[2]
    return [Match(*match) for match in json.loads(last)] if last.startswith("[") else []


def names_of(path: Path) -> dict[int, set[str]]:
    """The names of the functions of an unstripped file, by address."""
    return {
        function.address: {function.base_name, *function.aliases}
        for function in read_functions(parse_target(str(path)))
        if not is_unnamed(function.name)
    }


def counted(
    matches: Iterable[Match],
    old: dict[int, set[str]],
    new: dict[int, set[str]],
    seconds: float,
) -> Counter[str]:
    """How many names are right, each function in its best pair only."""
    counts: Counter[str] = Counter(milliseconds=round(1000 * seconds))
    taken: tuple[set[int], set[int]] = set(), set()
    for match in sorted(matches, key=lambda match: -match.score):
        if match.old in taken[0] or match.new in taken[1]:
            continue
        taken[0].add(match.old)
        taken[1].add(match.new)
        if match.old in old and match.new in new:
            counts["given"] += 1
            counts["right"] += bool(old[match.old] & new[match.new])
    there = {name for names in new.values() for name in names}
    counts["common"] = sum(bool(names & there) for names in old.values())
    return counts


def scores(counts: Counter[str]) -> dict[str, Any]:
    return {
        "common": counts["common"],
        "names_right": counts["right"] / max(counts["given"], 1),
        "names_share": counts["right"] / max(counts["common"], 1),
        "seconds": round(counts["milliseconds"] / 1000, 1),
    }


def table(results: dict[str, dict[str, Any]]) -> str:
    lines = ["| direction | tool | in both | names right | of those in both | seconds |"]
    lines.append("|---|---|---|---|---|---|")
    lines += [
        f"| {name} | {row['common']:,} | {row['names_right']:.3f} | {row['names_share']:.3f} "
        f"| {row['seconds']:,} |"
        for name, row in results.items()
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
