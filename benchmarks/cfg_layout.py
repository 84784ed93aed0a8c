"""Times drawings of control flow: the layout, the comparison page, and the page in a browser.

    python benchmarks/cfg_layout.py BINARY:FUNCTION... [--json] [--repeats N] [--no-browser]
    python benchmarks/cfg_layout.py BINARY:FUNCTION... --export FOLDER

Each function is compared with itself, so that both sides of the page are of its size. ``layout`` is
``lay_out`` alone, for one side; ``models`` what the models say of the pair; ``page`` the whole HTML
file, which holds two layouts. These are CPU seconds of this process. The rest is by the clock, in
Chromium, from the opening of that file: ``first paint`` is the browser's first contentful paint,
``drawn`` the end of the frame in which the blocks are there, and ``step`` the time from a move of
the step slider to the end of the frame that shows it. The fastest of the repeats counts, for other
programs on the machine only ever slow one down; the models run once, after a first pair that loads
them.

``--export`` writes the boxes and edges for benchmarks/dagre_layout.mjs and times nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

os.environ.update(OMP_NUM_THREADS="1", MKL_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

from graphkin.binaries.function import Function
from graphkin.binaries.targets import find_function, parse_target
from graphkin.results.drawing.layout import lay_out
from graphkin.results.html.comparison import comparison_page
from graphkin.results.html.function import SPACING, draw

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from graphkin.library.models import SearchModel

TITLES = ("layout", "models", "page", "size", "first paint", "drawn", "step")
HEAD = f"{'function':<44}{'blocks':>7}{'edges':>7}" + "".join(f"{title:>12}" for title in TITLES)
WINDOW = (1440, 900)
PATIENCE = 120_000
"""Milliseconds for one page."""
# The first contentful paint, and the frame after the one in which blocks were put into the page.
WATCH = """
window.watched = Promise.all([
  new Promise((resolve) =>
    new PerformanceObserver((list) =>
      list.getEntriesByName("first-contentful-paint").forEach((entry) => resolve(entry.startTime)),
    ).observe({ type: "paint", buffered: true }),
  ),
  new Promise((resolve) => {
    const watch = () => {
      if (!document.querySelector(".canvas > .block")) return requestAnimationFrame(watch);
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now())));
    };
    requestAnimationFrame(watch);
  }),
]);
"""
MOVE_SLIDER = """
() => new Promise((resolve) => {
  const slider = document.getElementById("step");
  slider.value = Number(slider.value) ? 0 : slider.max;
  const began = performance.now();
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  const frame = () => setTimeout(() => resolve(performance.now() - began));
  requestAnimationFrame(() => requestAnimationFrame(frame));
})
"""


@dataclass(frozen=True)
class Row:
    """One line of the table; times in seconds."""

    target: str
    blocks: int
    edges: int
    layout: float
    models: float
    page: float
    page_bytes: int
    first_paint: float | None = None
    drawn: float | None = None
    step: float | None = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("targets", nargs="+", metavar="BINARY:FUNCTION")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each")
    parser.add_argument("--no-browser", action="store_true", help="do not open the pages")
    parser.add_argument("--export", type=Path, metavar="FOLDER", help="write boxes and edges only")
    options = parser.parse_args()
    targets = [parse_target(target) for target in options.targets]
    if any(target.function is None for target in targets):
        parser.error("name one function of each binary: BINARY:FUNCTION or BINARY:0x1234")
    functions = [find_function(target) for target in targets]
    if options.export is not None:
        export(options.targets, functions, options.export)
        return
    rows = []
    with browser(not options.no_browser) as chromium:
        if not options.json:
            print(HEAD)
        for row in measured(options.targets, functions, max(1, options.repeats), chromium):
            rows.append(row)
            if not options.json:
                print(line_of(row), flush=True)
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))


def export(targets: list[str], functions: list[Function], folder: Path) -> None:
    """One file of JSON for each function: its boxes in pixels, and its edges."""
    folder.mkdir(parents=True, exist_ok=True)
    for target, function in zip(targets, functions, strict=True):
        document = {"target": target, "sizes": sizes_of(function), "edges": function.edges}
        name = re.sub(r"\W+", "_", f"{len(function.blocks)}_{function.name}")
        path = folder / f"{name}.json"
        path.write_text(json.dumps(document), encoding="utf-8")
        print(path)


def sizes_of(function: Function) -> list[tuple[int, int]]:
    """(width, height) of each block of the comparison page."""
    return [(width, height) for _, _, width, height in draw(function).boxes]


@contextmanager
def browser(is_wanted: bool) -> Iterator[Browser | None]:
    """Chromium without a window."""
    if not is_wanted:
        yield None
        return
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        sys.exit("no Chromium to open pages with; install it, or add --no-browser")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


def measured(
    targets: list[str], functions: list[Function], repeats: int, chromium: Browser | None
) -> Iterator[Row]:
    from graphkin.library.compare import compare_functions
    from graphkin.library.models import SearchModel

    model = SearchModel.load("functions")
    smallest = min(functions, key=lambda function: len(function.blocks))
    compare_functions(model, smallest, smallest)
    for target, function in zip(targets, functions, strict=True):
        yield measure(target, function, model, repeats, chromium)


def measure(
    target: str, function: Function, model: SearchModel, repeats: int, chromium: Browser | None
) -> Row:
    """Times one function."""
    from graphkin.library.compare import compare_functions

    sizes = sizes_of(function)
    layout, _ = fastest(lambda: lay_out(sizes, function.edges, SPACING), repeats)
    models, compared = fastest(lambda: compare_functions(model, function, function), 1)
    seconds, content = fastest(
        lambda: comparison_page(compared.document, *compared.functions, compared.maps), repeats
    )
    blocks, edges = len(function.blocks), len(function.edges)
    row = Row(target, blocks, edges, layout, models, seconds, len(content.encode()))
    if chromium is None:
        return row
    opened = [open_page(chromium, content) for _ in range(repeats)]
    first, drawn, step = (min(times) / 1000 for times in zip(*opened, strict=True))
    return replace(row, first_paint=first, drawn=drawn, step=step)


def fastest(call: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """CPU seconds of the fastest call, and what the last one returned."""
    spent = []
    for _ in range(repeats):
        began = time.process_time()
        result = call()
        spent.append(time.process_time() - began)
    return min(spent), result


def open_page(chromium: Browser, content: str) -> tuple[float, float, float]:
    """Milliseconds to the first paint, to the drawn blocks, and for a move of the slider."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "comparison.html")
        path.write_text(content, encoding="utf-8")
        width, height = WINDOW
        page = chromium.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(PATIENCE)
        page.add_init_script(WATCH)
        page.goto(path.as_uri())
        first, drawn = page.evaluate("window.watched")
        step = page.evaluate(MOVE_SLIDER)
        page.close()
    return first, drawn, step


def line_of(row: Row) -> str:
    cells = [f"{row.layout:.3f} s", f"{row.models:.2f} s", f"{row.page:.2f} s"]
    cells.append(f"{row.page_bytes / 1e6:.1f} MB")
    for seconds in (row.first_paint, row.drawn, row.step):
        cells.append("" if seconds is None else f"{seconds:.2f} s")
    start = f"{row.target[-43:]:<44}{row.blocks:>7}{row.edges:>7}"
    return (start + "".join(f"{cell:>12}" for cell in cells)).rstrip()


if __name__ == "__main__":
    main()
