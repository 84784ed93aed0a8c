"""The main job in one go, on bundled samples: a known function is found in a stripped firmware."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from graphkin.binaries import samples
from graphkin.cli.options import Json, OutputFolder

if TYPE_CHECKING:
    from graphkin.library.library import Library
    from graphkin.results.document import FunctionResult

TAG, IDENTIFIER = samples.TAG


def register(app: typer.Typer) -> None:
    """Adds the verb to the application."""
    app.command("demo")(demo)


def demo(
    output: OutputFolder = Path("demo-output"),
    as_json: Json = False,
) -> None:
    """Find a known function in a stripped firmware, on bundled samples, in less than a minute."""
    result = run_demo(output)
    typer.echo(json.dumps(result.to_dict()) if as_json else result.to_text())


@dataclass(frozen=True)
class DemoResult:
    """What was found, and where it can be looked at."""

    files: int
    """In the library."""
    functions: int
    """In the library."""
    scanned: int
    """Functions of the firmware."""
    results: tuple[FunctionResult, ...]
    """Kin of the firmware's functions among those with the tag."""
    suspect: FunctionResult | None
    """The likeliest of them."""
    shared: int
    """Functions of the firmware that the library holds, by their true names."""
    right: int
    """Those of them whose best hit in the whole library has that name."""
    seconds: dict[str, float]
    library: str
    report: str
    comparison: str | None

    def to_dict(self) -> dict[str, Any]:
        return {
            **vars(self),
            "results": [result.to_dict() for result in self.results],
            "suspect": None if self.suspect is None else self.suspect.to_dict(),
        }

    def to_text(self) -> str:
        from graphkin.results.tables import scan_table

        lines = [
            f"Library: {self.functions:,} functions of {self.files} files, by gcc and clang at",
            f"several levels. `process_heartbeat`, vulnerable, is tagged {TAG}={IDENTIFIER}.",
            f"Firmware: {samples.FIRMWARE.name}, {self.scanned} functions, stripped, made by clang",
            "at a level that the library does not have. Which of them is kin of what has the tag?",
            "",
            scan_table(self.results),
            "",
            *self._verdict(),
            f"Of {self.shared} functions that the library holds, the best hit of {self.right} has",
            "the true name.",
            "",
            f"Indexed, scanned and drawn in {sum(self.seconds.values()):.1f} s.",
            f"report: {self.report}",
        ]
        if self.comparison is not None:
            lines.append(f"which block matches which: {self.comparison}")
        return "\n".join(lines)

    def _verdict(self) -> list[str]:
        if self.suspect is None:
            return [f"No function has kin with the tag {TAG}={IDENTIFIER}: it was not found."]
        from graphkin.results.text import address_text

        query, hit = self.suspect.query, self.suspect.hits[0]
        true = samples.true_names().get(query.address or 0, "unknown")
        return [
            f"Likeliest: {address_text(query.address)}, with probability {hit.probability:.2f}.",
            f"Before it was stripped, its name was `{true}`.",
            "A hit says that the code is kin: the patched function would look much the same.",
        ]


def run_demo(output: Path) -> DemoResult:
    """Indexes the sample libraries, scans the sample firmware, and draws what was found."""
    import torch

    from graphkin import __version__
    from graphkin._support.files import write_atomically
    from graphkin._support.progress import counter
    from graphkin.library.indexing.index import index_samples
    from graphkin.library.library import Library
    from graphkin.library.records import Filter, SearchOptions
    from graphkin.library.scan import MIN_PROBABILITY, RERANK, TOP, look_up, read_queries
    from graphkin.results.document import Report, Tool
    from graphkin.results.html.scan import scan_page

    torch.set_num_threads(1)
    output.mkdir(parents=True, exist_ok=True)
    path = output / "library.kin"
    for leftover in output.glob("library.kin*"):
        leftover.unlink()
    began = time.monotonic()
    with Library.create(path) as library:
        index_samples(library)
        functions = len(library)
        indexed = time.monotonic()
        queries = list(read_queries(library, [str(samples.FIRMWARE)]))
        tagged = SearchOptions(
            TOP, RERANK, Filter(tags={TAG: IDENTIFIER}), MIN_PROBABILITY, evidence=True
        )
        with counter("scanning for the tag") as progress:
            results = tuple(look_up(library, queries, tagged, progress=progress))
        suspect = _likeliest(results)
        with counter("scanning for all") as progress:
            options = SearchOptions(1, RERANK)
            everything = list(look_up(library, queries, options, progress=progress))
        known_names = {item.entry.function for item in library.engine.scan()}
        scanned = time.monotonic()
        comparison = None if suspect is None else output / "comparison.html"
        if suspect is not None and comparison is not None:
            _draw(library, suspect, comparison)
        report = Report(
            tool=Tool(version=__version__),
            library=path.name,
            model=str(library.model_id),
            options={"tag": f"{TAG}={IDENTIFIER}", "min_probability": MIN_PROBABILITY},
            results=results,
        )
    page = scan_page(report, title=f"Scan of {samples.FIRMWARE.name}")
    write_atomically(output / "report.html", page.encode())
    names = samples.true_names()
    best = [(names.get(r.query.address or 0), r.hits[0].function) for r in everything]
    shared = [(true, name) for true, name in best if true in known_names]
    return DemoResult(
        files=len(samples.KNOWN),
        functions=functions,
        scanned=len(queries),
        results=results,
        suspect=suspect,
        shared=len(shared),
        right=sum(true == name for true, name in shared),
        seconds={
            "index": indexed - began,
            "scan": scanned - indexed,
            "draw": time.monotonic() - scanned,
        },
        library=str(path),
        report=str(output / "report.html"),
        comparison=None if comparison is None else str(comparison),
    )


def _likeliest(results: tuple[FunctionResult, ...]) -> FunctionResult | None:
    """The function whose best hit has the highest probability."""
    with_hits = [result for result in results if result.hits]
    return max(with_hits, key=lambda result: result.hits[0].probability or 0.0, default=None)


def _draw(library: Library, suspect: FunctionResult, file: Path) -> None:
    from graphkin._support.files import write_atomically
    from graphkin.library.compare import compare
    from graphkin.results.html.comparison import comparison_page

    left, right = (f"{side.binary}:{side.address:#x}" for side in (suspect.query, suspect.hits[0]))
    compared = compare(left, right, library.model)
    page = comparison_page(compared.document, *compared.functions, compared.maps)
    write_atomically(file, page.encode())
