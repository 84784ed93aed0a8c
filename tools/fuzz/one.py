"""Fuzzes one target by atheris until libFuzzer's time is over, or something is found.

python tools/fuzz/one.py TARGET CORPUS [options of libFuzzer]
"""

from __future__ import annotations

import shutil
import sys
from contextlib import suppress
from pathlib import Path

import atheris

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[2])]


def main() -> None:
    name, *arguments = sys.argv[1:]
    with atheris.instrument_imports(include=["graphkin"]):
        from targets import FOLDER, TARGETS

        from graphkin.errors import GraphkinError

        target = TARGETS[name]

        def run(data: bytes) -> None:
            with suppress(GraphkinError):
                target.read(data)

        for seed in target.seeds():
            run(seed)  # imports all that it needs
        try:
            atheris.Setup([sys.argv[0], *arguments], run)
            atheris.Fuzz()
        finally:
            shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    main()
