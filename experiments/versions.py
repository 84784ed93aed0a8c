"""Measures what a diff says of two versions of a library, against the diff of their sources.

    python experiments/versions.py OLD.so NEW.so OLD_SOURCE NEW_SOURCE [more fours] [--json FILE]

Both builds are by one compiler, with ``-g``, whose lines say which functions a patch touched. The
new file is stripped before it is read.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from elftools.elf.elffile import ELFFile
from whole_binaries import stripped

from graphkin._support.files import write_atomically
from graphkin.library.diff.diff import diff


class Place(NamedTuple):
    """Where a function was written."""

    function: str
    file: str
    line: int


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", type=Path, nargs="+", metavar="PATH")
    parser.add_argument("--json", type=Path, help="write the results to this file, too")
    options = parser.parse_args()
    if len(options.paths) % 4:
        parser.error("give two builds and two source folders for each library")
    fours = [options.paths[at : at + 4] for at in range(0, len(options.paths), 4)]
    rows = {four[0].name: measured(*four) for four in fours}
    print("| old file | untouched | said identical or same | touched | said changed | missed |")
    print("|---|---|---|---|---|---|")
    for name, row in rows.items():
        missed = ", ".join(map(" ".join, row["touched_missed"].items())) or "-"
        print(
            f"| {name} | {row['untouched']} | {row['untouched_kept']} | {row['touched']} "
            f"| {row['touched_changed']} | {missed} |"
        )
        for function, verdict in row["untouched_other"].items():
            print(f"  untouched, but {verdict}: {function}")
    if options.json is not None:
        write_atomically(options.json, json.dumps(rows, indent=1).encode() + b"\n")


def measured(old: Path, new: Path, old_source: Path, new_source: Path) -> dict[str, Any]:
    """How many functions that no patch touched are said to be as before, and the others not."""
    old_lines, new_lines = function_lines(old), function_lines(new)
    touched = {
        name
        for name in old_lines.keys() & new_lines.keys()
        if texts(old_source, old_lines[name]) != texts(new_source, new_lines[name])
    }
    with stripped(new) as target:
        result = diff(old, target)
    verdicts = {pair.left.function: str(pair.verdict) for pair in result.pairs}
    verdicts |= {function.function: "removed" for function in result.removed}
    known = {
        name: verdict
        for name, verdict in verdicts.items()
        if name in old_lines.keys() & new_lines.keys()
    }
    untouched = {name: verdict for name, verdict in known.items() if name not in touched}
    kept = Counter(verdict in ("identical", "same") for verdict in untouched.values())
    own = {name: verdict for name, verdict in known.items() if name in touched}
    return {
        "untouched": len(untouched),
        "untouched_kept": kept[True],
        "untouched_other": {
            name: verdict
            for name, verdict in untouched.items()
            if verdict not in ("identical", "same")
        },
        "touched": len(own),
        "touched_changed": sum(verdict == "changed" for verdict in own.values()),
        "touched_missed": {name: verdict for name, verdict in own.items() if verdict != "changed"},
    }


def function_lines(path: Path) -> dict[str, set[Place]]:
    """Where each function was written, and those that the compiler put into it."""
    places: dict[str, set[Place]] = {}
    with path.open("rb") as file:
        dwarf = ELFFile(file).get_dwarf_info()
        for unit in dwarf.iter_CUs():
            program = dwarf.line_program_for_CU(unit)
            for entry in unit.get_top_DIE().iter_children():
                if entry.tag == "DW_TAG_subprogram" and "DW_AT_low_pc" in entry.attributes:
                    origin = _origin(entry)
                    own = places.setdefault(_name(origin), set())
                    own.update(_place(program, item) for item in (origin, *_inlined(entry)))
    return {name: {place for place in own if place.line} for name, own in places.items()}


def _origin(entry: Any) -> Any:
    """The entry that has the name and the line."""
    while "DW_AT_abstract_origin" in entry.attributes:
        entry = entry.get_DIE_from_attribute("DW_AT_abstract_origin")
    return entry


def _name(entry: Any) -> str:
    name = entry.attributes.get("DW_AT_name")
    return "" if name is None else str(name.value.decode())


def _inlined(entry: Any) -> Iterator[Any]:
    for child in entry.iter_children():
        if child.tag == "DW_TAG_inlined_subroutine":
            yield _origin(child)
        yield from _inlined(child)


def _place(program: Any, entry: Any) -> Place:
    own = entry.attributes
    if "DW_AT_decl_line" not in own or "DW_AT_decl_file" not in own:
        return Place(_name(entry), "", 0)
    file = program["file_entry"][own["DW_AT_decl_file"].value - (program["version"] < 5)]
    return Place(_name(entry), file.name.decode(), own["DW_AT_decl_line"].value)


def texts(folder: Path, places: set[Place]) -> dict[str, str]:
    """The text of a function and of what was put into it, by name."""
    return {place.function: source_text(folder, place) for place in places}


def source_text(folder: Path, place: Place) -> str:
    """From the first line of a function to the brace that ends it."""
    path = next(folder.rglob(Path(place.file).name), None)
    if path is None:
        return ""
    lines = path.read_text(errors="replace").splitlines()[place.line - 1 :]
    end = next((at for at, line in enumerate(lines) if line.startswith("}")), len(lines) - 1)
    return "\n".join(lines[: end + 1])


if __name__ == "__main__":
    main()
