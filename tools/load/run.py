"""Puts a library, a server, and what works over many machines under load, and counts.

    python tools/load/run.py [PART...] [--minutes N] [--share S] [--note TEXT]
        [--output FILE]

Parts are ``library`` (readers and writers on one file), ``server`` (clients of `graphkin serve`),
and ``nodes`` (a Milvus server and machines of a Ray cluster that are killed). Everything talks over
the loopback device, and ends by itself. A part that is left out keeps its last result in FILE.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))  # for what the tests make

Part = tuple[Callable[[float, float], dict[str, Any]], Callable[[dict[str, Any]], bool]]


def _part(name: str) -> Part:
    """What runs a part, and what tells whether all went well."""
    if name == "library":
        from one_library import is_sound, loaded_library

        return loaded_library, is_sound
    if name == "server":
        from one_server import is_sound, loaded_server

        return loaded_server, is_sound
    from lost_nodes import is_sound, lost_nodes

    return lost_nodes, is_sound


PARTS = ("library", "server", "nodes")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--minutes", type=float, default=10.0, help="of each part")
    parser.add_argument("--share", type=float, default=0.2, help="of a core, for each process")
    parser.add_argument("--note", default="", help="on the machine, for whoever reads the times")
    parser.add_argument("--output", type=Path, help="write the results as JSON")
    options = parser.parse_args()
    if unknown := sorted(set(options.parts) - set(PARTS)):
        parser.error(f"unknown part {unknown[0]}; choose among {', '.join(PARTS)}")
    results: dict[str, Any] = {}
    if options.output is not None and options.output.exists():
        results = json.loads(options.output.read_text())
    is_well = True
    for name in options.parts or PARTS:
        run, is_sound = _part(name)
        about = {"date": time.strftime("%Y-%m-%d"), "note": options.note}
        result = {**about, **run(options.minutes, options.share)}
        results[name] = result
        is_well = is_well and is_sound(result)
        print(json.dumps({name: result}, indent=1), flush=True)
        if options.output is not None:
            options.output.write_text(json.dumps(results, indent=1) + "\n")
    sys.exit(not is_well)


if __name__ == "__main__":
    main()
