"""The main job in one go, on bundled samples: a known function is found in a stripped firmware."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from graphkin._support.files import write_atomically
from graphkin._support.progress import counter
from graphkin.binaries import samples
from graphkin.binaries.targets import find_function, parse_target
from graphkin.library.indexing.run import index_paths
from graphkin.library.library import Library
from graphkin.library.records import Filter
from graphkin.library.scan import compare, explained, functions_of, search_functions
from graphkin.results.comparison import comparison_html
from graphkin.results.document import SearchResult
from graphkin.results.html.scan import scan_page
from graphkin.results.json_lines import to_document
from graphkin.results.tables import scan_table
from graphkin.results.text import address_text

MIN_BLOCKS = 5
MIN_PROBABILITY = 0.1
"""Of a hit that is worth a look: few functions are asked for, and each is one of many."""
RERANK = 20
TAG, IDENTIFIER = samples.TAG


@dataclass(frozen=True)
class DemoResult:
    """What was found, and where it can be looked at."""

    files: int
    """In the library."""
    functions: int
    """In the library."""
    scanned: int
    """Functions of the firmware."""
    results: tuple[SearchResult, ...]
    """Kin of the firmware's functions among those with the tag."""
    suspect: SearchResult | None
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
            "results": [to_document(result) for result in self.results],
            "suspect": None if self.suspect is None else to_document(self.suspect),
        }

    def to_text(self) -> str:
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
        query, hit = self.suspect.query, self.suspect.hits[0]
        true = samples.true_names().get(query.address or 0, "unknown")
        return [
            f"Likeliest: {address_text(query.address)}, with probability {hit.probability:.2f}.",
            f"Before it was stripped, its name was `{true}`.",
            "A hit says that the code is kin: the patched function would look much the same.",
        ]


def run_demo(output: Path) -> DemoResult:
    """Indexes the sample libraries, scans the sample firmware, and draws what was found."""
    torch.set_num_threads(1)
    output.mkdir(parents=True, exist_ok=True)
    library = output / "library.kin"
    for leftover in output.glob("library.kin*"):
        leftover.unlink()
    began = time.monotonic()
    with Library.create(library) as index:
        index_samples(index)
        functions = len(index)
        indexed = time.monotonic()
        asked = functions_of(str(samples.FIRMWARE), "auto", MIN_BLOCKS, [])
        tagged = Filter(tags={TAG: IDENTIFIER})
        with counter("scanning for the tag") as progress:
            found = search_functions(
                index, asked, 3, rerank=RERANK, where=tagged, progress=progress
            )
        results = tuple(explained(index, asked, [r.above(MIN_PROBABILITY) for r in found]))
        suspect = _likeliest(results)
        with counter("scanning for all") as progress:
            everything = search_functions(index, asked, 1, rerank=RERANK, progress=progress)
        held = {item.entry.function for item in index.engine.scan()}
        scanned = time.monotonic()
        comparison = None if suspect is None else output / "comparison.html"
        if suspect is not None and comparison is not None:
            _draw(index, suspect, comparison)
    report = output / "report.html"
    page = scan_page(results, library=library.name, title=f"Scan of {samples.FIRMWARE.name}")
    write_atomically(report, page.encode())
    names = samples.true_names()
    best = [(names.get(r.query.address or 0), r.hits[0].entry.function) for r in everything]
    shared = [(true, name) for true, name in best if true in held]
    return DemoResult(
        files=len(samples.KNOWN),
        functions=functions,
        scanned=len(asked),
        results=results,
        suspect=suspect,
        shared=len(shared),
        right=sum(true == name for true, name in shared),
        seconds={
            "index": indexed - began,
            "scan": scanned - indexed,
            "draw": time.monotonic() - scanned,
        },
        library=str(library),
        report=str(report),
        comparison=None if comparison is None else str(comparison),
    )


def index_samples(index: Library) -> None:
    """Adds the sample libraries, the vulnerable one with its tag."""
    with counter("indexing files") as progress:
        for tags, files in _by_tags():
            index_paths(index, files, tags=dict(tags), progress=progress)


def _by_tags() -> list[tuple[tuple[tuple[str, str], ...], list[Path]]]:
    """The files of the library, those with equal tags together."""
    groups: dict[tuple[tuple[str, str], ...], list[Path]] = defaultdict(list)
    for file in samples.KNOWN:
        groups[tuple(samples.tags(file).items())].append(file)
    return list(groups.items())


def _likeliest(results: tuple[SearchResult, ...]) -> SearchResult | None:
    """The function whose best hit has the highest probability."""
    found = [result for result in results if result.hits]
    return max(found, key=lambda result: result.hits[0].probability or 0.0, default=None)


def _draw(index: Library, suspect: SearchResult, file: Path) -> None:
    query, hit = suspect.query, suspect.hits[0]
    sides = [
        find_function(parse_target(f"{place.binary}:{place.address:#x}"))
        for place in (query, hit.entry)
    ]
    found = compare(index.model, *sides)
    write_atomically(file, comparison_html(found).encode())
