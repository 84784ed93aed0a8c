"""Lists the files that a command walks through: those whose functions run, in the order of calls.

    python tools/walk.py search LIBRARY BINARY:FUNCTION [OPTION...]

takes the words of any graphkin command. What runs while modules are imported does not count. Work
of worker processes is done in this one, so that it is seen; files that only it walks through are
marked.
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
    """Which files have had a function called; a hook for ``sys.setprofile``."""

    def __init__(self) -> None:
        self.is_work = False
        """Whether a worker process would do what is done now."""
        self._files: dict[str, bool] = {}
        """Whether only workers walk through a file; in the order of first calls."""
        self._imports = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if event not in ("call", "return"):
            return
        if frame.f_code.co_name == "<module>":
            self._imports += 1 if event == "call" else -1
        elif event == "call" and not self._imports:
            file = frame.f_code.co_filename
            self._files[file] = self._files.get(file, True) and self.is_work

    def run_here(self, pool: workers.WorkerPool[Any, Any], items: Iterable[Any]) -> Iterator[Any]:
        """Does the work of a pool in this process."""
        for item in items:
            self.is_work = True
            results = list(pool.task(item))
            self.is_work = False
            yield from ((item, result) for result in results)
            yield item, workers.Done()

    def text(self) -> str:
        """The files of the package, and how many they are."""
        paths = {Path(file): is_work for file, is_work in self._files.items()}
        own = {path: work for path, work in paths.items() if path.is_relative_to(PACKAGE)}
        lines = [f"{path.relative_to(PACKAGE)}{' (worker)' * work}" for path, work in own.items()]
        total = f"{len(own)} files, {sum(own.values())} of them in workers only"
        return "\n".join([*lines, total])


def main() -> None:
    walk = Walk()
    workers.WorkerPool.run = lambda pool, items: walk.run_here(pool, items)  # type: ignore
    from graphkin.cli.main import main as graphkin_main

    sys.argv[0] = "graphkin"
    sys.setprofile(walk)
    try:
        graphkin_main()
    finally:
        sys.setprofile(None)
        print(walk.text(), file=sys.stderr)


if __name__ == "__main__":
    main()
