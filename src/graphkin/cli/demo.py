"""The main job in one go, on bundled samples: a known function is found in stripped firmwares."""

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
    from graphkin.library.models import SearchModel
    from graphkin.library.scan import Query
    from graphkin.results.document import FunctionResult

TAG, IDENTIFIER = samples.TAG
PROCESSOR = "x86-64"
"""Of the library, and of the first firmware."""


def register(app: typer.Typer) -> None:
    """Adds the verb to the application."""
    app.command("demo")(demo)


def demo(
    output: OutputFolder = Path("demo-output"),
    as_json: Json = False,
) -> None:
    """Find a known function in stripped firmware, on bundled samples, in less than a minute."""
    result = run_demo(output)
    typer.echo(json.dumps(result.to_dict()) if as_json else result.to_text())


@dataclass(frozen=True)
class FirmwareScan:
    """What was found in one firmware."""

    firmware: str
    processor: str
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

    def to_dict(self) -> dict[str, Any]:
        return {
            **vars(self),
            "results": [result.to_dict() for result in self.results],
            "suspect": None if self.suspect is None else self.suspect.to_dict(),
        }

    def to_text(self) -> str:
        from graphkin.results.tables import scan_table

        if self.processor == PROCESSOR:
            maker = "by clang at a level that the library does not have"
        else:
            maker = "by gcc, from the same sources"
        lines = [
            f"Firmware: {self.firmware} for {self.processor}, stripped, made {maker}.",
            "",
            scan_table(self.results),
            "",
            *self._verdict(),
            f"Of {self.shared} functions that the library holds, the best hit of {self.right} has",
            "the true name.",
        ]
        return "\n".join(lines)

    def _verdict(self) -> list[str]:
        if self.suspect is None:
            return [f"No function has kin with the tag {TAG}={IDENTIFIER}: it was not found."]
        from graphkin.results.patches import short_verdict
        from graphkin.results.text import address_text

        query, hit = self.suspect.query, self.suspect.hits[0]
        true = samples.true_names(self.firmware).get(query.address or 0, "unknown")
        return [
            f"Likeliest: {address_text(query.address)}, with probability {hit.probability:.2f}.",
            f"Before it was stripped, its name was `{true}`.",
            *map(short_verdict, self.suspect.patches),
        ]


@dataclass(frozen=True)
class DemoResult:
    """What was found, and where it can be looked at."""

    files: int
    """In the library."""
    functions: int
    """In the library."""
    firmwares: tuple[FirmwareScan, ...]
    repaired: FunctionResult | None
    """The likeliest function of the firmware with the repair."""
    not_scanned: tuple[str, ...]
    """Firmwares for processors that the library's model does not know."""
    seconds: dict[str, float]
    library: str
    report: str
    comparisons: dict[str, str]
    """Firmware to the page that shows its suspect beside the best hit."""

    def to_dict(self) -> dict[str, Any]:
        return {
            **vars(self),
            "firmwares": [firmware.to_dict() for firmware in self.firmwares],
            "repaired": None if self.repaired is None else self.repaired.to_dict(),
        }

    def to_text(self) -> str:
        lines = [
            f"Library: {self.functions:,} functions of {self.files} files for {PROCESSOR}, by gcc",
            f"and clang at several levels. `{samples.VULNERABLE[1]}`, vulnerable, is tagged",
            f"{TAG}={IDENTIFIER}. Which functions of a firmware are kin of what has the tag?",
            "",
        ]
        for firmware in self.firmwares:
            lines += [firmware.to_text(), ""]
        if self.not_scanned:
            names = " and ".join(self.not_scanned)
            lines += [f"{names} are not scanned: this model knows {PROCESSOR} only.", ""]
        lines += self._repaired_lines()
        lines += [
            "A hit says that the code is kin. Whether it is repaired is told where the library has",
            f"the repaired function, too: here it is tagged fixed={IDENTIFIER}.",
            "",
            f"Indexed, scanned and drawn in {sum(self.seconds.values()):.1f} s.",
            f"report: {self.report}",
            *(f"which block matches which: {page}" for page in self.comparisons.values()),
        ]
        return "\n".join(lines)

    def _repaired_lines(self) -> list[str]:
        if self.repaired is None or not self.repaired.patches:
            return []
        from graphkin.results.patches import short_verdict
        from graphkin.results.text import address_text

        address = address_text(self.repaired.query.address)
        return [
            f"Firmware: {samples.FIXED_FIRMWARE.name}, the same with the repair, at {address}:",
            *map(short_verdict, self.repaired.patches),
            "",
        ]


def run_demo(output: Path, model: SearchModel | None = None) -> DemoResult:
    """Indexes the sample libraries, scans the sample firmwares, and draws what was found.

    Args:
        output: folder for the library and the pages.
        model: what the library is made by; by default, the model that ships. Where it reads
            evidence, firmwares for other processors are scanned, too.
    """
    import torch

    from graphkin import __version__
    from graphkin._support.files import write_atomically
    from graphkin.library.indexing.index import index_paths, index_samples
    from graphkin.library.library import DEFAULT_MODEL, Library
    from graphkin.library.scan import MIN_PROBABILITY
    from graphkin.results.document import Report, Tool
    from graphkin.results.html.scan import scan_page

    torch.set_num_threads(1)
    output.mkdir(parents=True, exist_ok=True)
    path = output / "library.kin"
    for leftover in output.glob("library.kin*"):
        leftover.unlink()
    began = time.monotonic()
    with Library.create(path, model or DEFAULT_MODEL) as library:
        index_samples(library)
        index_paths(library, samples.FIXED_LIBRARIES, tags={"fixed": IDENTIFIER})
        functions = len(library)
        indexed = time.monotonic()
        crosses = library.model.vocabulary.reads == "evidence"
        targets = {PROCESSOR: samples.FIRMWARE, **(samples.CROSS_FIRMWARES if crosses else {})}
        firmwares = tuple(scan_firmware(library, *target) for target in targets.items())
        repaired = _likeliest(_scan_tagged(library, samples.FIXED_FIRMWARE)[1])
        scanned = time.monotonic()
        comparisons = {}
        for firmware in firmwares:
            if firmware.suspect is not None:
                page = output / f"comparison-{firmware.firmware}.html"
                _draw(library, firmware.suspect, page)
                comparisons[firmware.firmware] = str(page)
        report = Report(
            tool=Tool(version=__version__),
            library=path.name,
            model=str(library.model_id),
            options={"tag": f"{TAG}={IDENTIFIER}", "min_probability": MIN_PROBABILITY},
            results=tuple(result for firmware in firmwares for result in firmware.results),
        )
    title = f"Scan of {', '.join(firmware.firmware for firmware in firmwares)}"
    write_atomically(output / "report.html", scan_page(report, title=title).encode())
    return DemoResult(
        files=len(samples.KNOWN) + len(samples.FIXED_LIBRARIES),
        functions=functions,
        firmwares=firmwares,
        repaired=repaired,
        not_scanned=tuple(
            file.name
            for processor, file in samples.CROSS_FIRMWARES.items()
            if processor not in targets
        ),
        seconds={
            "index": indexed - began,
            "scan": scanned - indexed,
            "draw": time.monotonic() - scanned,
        },
        library=str(path),
        report=str(output / "report.html"),
        comparisons=comparisons,
    )


def scan_firmware(library: Library, processor: str, file: Path) -> FirmwareScan:
    """Looks up a firmware's functions among those with the tag, and in the whole library."""
    from graphkin._support.progress import counter
    from graphkin.library.records import SearchOptions
    from graphkin.library.scan import RERANK, look_up

    queries, results = _scan_tagged(library, file)
    with counter(f"scanning {file.name} for all") as progress:
        everything = list(look_up(library, queries, SearchOptions(1, RERANK), progress=progress))
    known_names = {item.entry.function for item in library.engine.scan()}
    names = samples.true_names(file.name)
    best = [(names.get(r.query.address or 0), r.hits[0].function) for r in everything]
    shared = [(true, name) for true, name in best if true in known_names]
    return FirmwareScan(
        firmware=file.name,
        processor=processor,
        scanned=len(queries),
        results=results,
        suspect=_likeliest(results),
        shared=len(shared),
        right=sum(true == name for true, name in shared),
    )


def _scan_tagged(library: Library, file: Path) -> tuple[list[Query], tuple[FunctionResult, ...]]:
    """The functions of a firmware, and those of them that are kin of what has the tag."""
    from graphkin._support.progress import counter
    from graphkin.library.records import Filter, SearchOptions
    from graphkin.library.scan import MIN_PROBABILITY, RERANK, TOP, read_queries
    from graphkin.library.whole_files import look_up_files

    queries = list(read_queries(library, [str(file)]))
    where = Filter(tags={TAG: IDENTIFIER})
    tagged = SearchOptions(TOP, RERANK, where, MIN_PROBABILITY, evidence=True)
    with counter(f"scanning {file.name} for the tag") as progress:
        return queries, look_up_files(library, queries, tagged, progress=progress).results


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
