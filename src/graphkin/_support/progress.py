"""Progress on stderr: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import rich.progress

Progress = Callable[[int, int], None]
"""Called with (done, total) as work goes on."""
LINE_SECONDS = 15.0
"""Time between lines where there is no terminal."""


@contextlib.contextmanager
def counter(what: str) -> Iterator[Progress]:
    """A bar that is told (done, total)."""
    with status_bar() as bar:
        task = bar.add_task(what, total=None, status="")
        spoken = time.monotonic()

        def show(done: int, total: int) -> None:
            nonlocal spoken
            bar.update(task, completed=done, total=total)
            # Without a terminal the bar is silent, and a line now and then stands in.
            if not sys.stderr.isatty() and time.monotonic() - spoken > LINE_SECONDS:
                spoken = time.monotonic()
                print(f"{what} {done}/{total}", file=sys.stderr, flush=True)

        yield show


@contextlib.contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """A line that is told what happens next, for work of few long steps."""
    if not sys.stderr.isatty():
        yield lambda what: print(what, file=sys.stderr, flush=True)
        return
    from rich.console import Console
    from rich.markup import escape

    with Console(stderr=True).status("starting") as status:
        yield lambda what: status.update(escape(what))


def status_bar() -> rich.progress.Progress:
    """A bar with a text ``status`` behind it, which only a terminal shows."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[status]}"),
        console=Console(stderr=True),
        disable=not sys.stderr.isatty(),
    )
