"""Lists the files that a command walks through: those whose functions run, in the order of calls.

    python tools/walk.py search LIBRARY BINARY:FUNCTION [OPTION...]

takes the words of any graphkin command. What runs while modules are imported does not count. Files
are read in this process, so that what a worker process would run is seen as well.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import graphkin
from graphkin.binaries import workers

PACKAGE = Path(graphkin.__file__).parent


class Walk:
    """Which files of the package have had a function called; a hook for ``sys.setprofile``."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self._imports = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event not in ("call", "return"):
            return
        if frame.f_code.co_name == "<module>":
            self._imports += 1 if event == "call" else -1
        elif event == "call" and not self._imports:
            self.files.setdefault(frame.f_code.co_filename)

    def of_the_package(self) -> list[str]:
        """Their paths in the package, in the order of their first calls."""
        paths = [Path(file) for file in self.files]
        return [str(path.relative_to(PACKAGE)) for path in paths if path.is_relative_to(PACKAGE)]


def run_here(pool: workers.WorkerPool[Any, Any], items: Iterable[Any]) -> Iterator[Any]:
    """Does the work of a pool in this process."""
    for item in items:
        for result in pool.task(item):
            yield item, result
        yield item, workers.Done()


def main() -> None:
    workers.WorkerPool.run = run_here  # type: ignore[method-assign, assignment]
    from graphkin.cli.main import main as graphkin_main

    walk = Walk()
    sys.argv[0] = "graphkin"
    sys.setprofile(walk)
    try:
        graphkin_main()
    finally:
        sys.setprofile(None)
        files = walk.of_the_package()
        print(*files, f"{len(files)} files", sep="\n", file=sys.stderr)


if __name__ == "__main__":
    main()
