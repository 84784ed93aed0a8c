"""The functions of an image: tables first, then what the code between them tells."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from graphkin.binaries.entropy import entropy
from graphkin.binaries.image import Image, Region, UnwindRange
from graphkin.binaries.recovery.ranges import arrange
from graphkin.binaries.starts.clues import Clues
from graphkin.binaries.starts.straight_through import Search, StartRows
from graphkin.binaries.starts.sweep import FILLER, MAX_ADDRESS, NOT_CODE, CodeFacts, Sweep, marks_of

Ranges = list[tuple[int, int]]

MAX_SWEEP = 256 << 20
"""Bytes of code to read straight through; of larger files only the tables count."""
MAX_ENTROPY = 7.6
"""Bits for each byte, above which it is not code but packed: there are no functions in it."""
FEW = 0.05
"""With this share of code outside the tables, only that is read."""
PADDING = bytes.fromhex(
    "00 90 cc 66 2e 0f 1f 40 44 80 84 8d 74 26 b4 b6 bf d5 03 20 f0 e3 a0 e1 60 42"
)
"""Bytes of the instructions that do nothing, of all processors."""
SEARCHED = ("calls", "tail calls", "pointers", "ends of functions")


def locate(image: Image, clues: Clues) -> Image:
    """The image with its functions, the parts split off from them, and where it is known what
    is data.

    Args:
        image: without functions; the marks are those of the symbol table.
        clues: what the file says of them.
    """
    code = [region for region in image.regions if region.executable and region.end < MAX_ADDRESS]
    code = list(_without(code, clues.stubs))
    unwind = _with_parts(image, clues, code)
    clues = replace(clues, unwind=tuple(unwind))
    tried = clues.tables
    facts = None if clues.is_complete else facts_of(image.architecture)
    marks = image.marks
    is_sane = sum(len(region.data) for region in code) <= MAX_SWEEP
    is_sane = is_sane and entropy(region.data for region in code) < MAX_ENTROPY
    if facts is not None and is_sane:
        ranges, states = _search(image, clues, code, facts)
        unwind += ranges
        marks = states or marks
        tried += SEARCHED
    extents, parts = arrange(clues.symbols, unwind, image.regions)
    stubs = sorted(clues.stubs)
    extents = [extent for extent in extents if not _is_inside(extent.start, stubs)]
    spans = [(extent.start, extent.end) for extent in extents] + parts
    code_bytes, recovered = measure(list(_without(code, clues.notes)), spans)
    return replace(
        image,
        extents=extents,
        fragments=parts,
        marks=marks,
        code_bytes=code_bytes,
        recovered_bytes=recovered,
        tried=tried,
    )


def _with_parts(image: Image, clues: Clues, code: Sequence[Region]) -> list[UnwindRange]:
    """What unwind tables tell, with the parts of functions that they leave out or do not mark."""
    if image.architecture == "aarch64":
        from graphkin.binaries.starts.aarch64 import veneers

        return [*clues.unwind, *veneers(code)]
    if image.architecture == "arm":
        from graphkin.binaries.starts.arm import bridges

        return [*clues.unwind, *bridges(code)]
    if image.architecture.startswith("mips"):
        from graphkin.binaries.starts.mips import is_error_exit

        return [
            item._replace(is_part=item.is_part or is_error_exit(image, item))
            for item in clues.unwind
        ]
    return list(clues.unwind)


def facts_of(architecture: str) -> CodeFacts | None:
    """What is known of a processor; its file is imported here. None for one without a search."""
    if architecture in ("x86", "x86-64"):
        from graphkin.binaries.starts.x86 import X86Facts

        return X86Facts(64 if architecture == "x86-64" else 32)
    if architecture == "aarch64":
        from graphkin.binaries.starts.aarch64 import AArch64Facts

        return AArch64Facts()
    if architecture == "arm":
        from graphkin.binaries.starts.arm import ArmFacts

        return ArmFacts()
    if architecture.startswith("mips"):
        from graphkin.binaries.starts.mips import MipsFacts

        bits = 64 if "64" in architecture else 32
        return MipsFacts(bits, "little" if architecture.endswith("el") else "big")
    if architecture == "riscv64":
        from graphkin.binaries.starts.riscv import RiscVFacts

        return RiscVFacts()
    if architecture.startswith("ppc"):
        from graphkin.binaries.starts.powerpc import PowerPcFacts

        return PowerPcFacts(64, "little") if architecture == "ppc64le" else PowerPcFacts(32, "big")
    return None


def _search(
    image: Image, clues: Clues, code: Sequence[Region], facts: CodeFacts
) -> tuple[list[UnwindRange], list[tuple[int, str]]]:
    """Ranges of what the code tells, and what is code and what data."""
    spans = [(item.start, item.end) for item in clues.unwind]
    spans += [(symbol.address, symbol.address + symbol.size) for symbol in clues.symbols]
    known = _merged([*spans, *clues.closed])
    gaps = [gap for gap in _without(code, known) if not _is_padding(gap)]
    if not gaps:
        return [], []
    total = sum(len(region.data) for region in code)
    # Processors with data between functions are read whole, to know it.
    has_states = image.architecture == "arm"
    few = sum(len(gap.data) for gap in gaps) < FEW * total and not has_states
    sweep = facts.sweep(image, gaps if few else code)
    if not len(sweep):
        return [], []
    marks = marks_of(sweep)
    image = replace(image, marks=marks or image.marks)
    starts = [symbol.address for symbol in clues.symbols] + list(clues.entries)
    starts += [item.start for item in clues.unwind if not item.is_part]
    functions = Search(image, facts, sweep, starts, clues.pointers).run()
    ranges = _ranges(sweep, functions)
    return [item for item in ranges if not _is_inside(item.start, known)], marks


def _ranges(sweep: Sweep, functions: StartRows) -> list[UnwindRange]:
    """Each start with the end of the last instruction ahead of the next."""
    rows = np.sort(np.concatenate([functions.starts, functions.parts]))
    if not len(rows):
        return []
    # Constants between functions belong to the one ahead of them.
    is_real = (sweep.kind != FILLER) & ((sweep.kind != NOT_CODE) | (sweep.state != 0))
    last_real = np.maximum.accumulate(np.where(is_real, np.arange(len(sweep)), -1))
    breaks = np.flatnonzero(sweep.address[1:] != sweep.end[:-1]) + 1
    bounds = np.unique(np.concatenate([rows, breaks, [len(sweep)]]))
    following = bounds[np.searchsorted(bounds, rows, side="right")]
    last = np.maximum(last_real[following - 1], rows)
    parts = np.isin(rows, functions.parts)
    columns = (sweep.address[rows].tolist(), sweep.end[last].tolist(), parts.tolist())
    return [UnwindRange(*item) for item in zip(*columns, strict=True)]


def measure(code: Sequence[Region], spans: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """Bytes of the code without padding, and those of them inside some spans."""
    total = sum(len(region.data) for region in code)
    gaps = list(_without(code, _merged(spans)))
    padding = sum(len(gap.data) for gap in gaps if _is_padding(gap))
    missing = sum(len(gap.data) for gap in gaps) - padding
    return total - padding, total - padding - missing


def _is_padding(gap: Region) -> bool:
    return not bytes(gap.data).strip(PADDING)


def _merged(spans: Iterable[tuple[int, int]]) -> Ranges:
    merged: Ranges = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        elif end > start:
            merged.append((start, end))
    return merged


def _without(regions: Iterable[Region], spans: Sequence[tuple[int, int]]) -> Iterable[Region]:
    """What is left of some regions outside of spans, which are sorted and do not overlap."""
    spans = _merged(spans)
    starts = np.array([start for start, _ in spans], dtype=np.float64)
    for region in regions:
        at = region.start
        first = max(0, int(np.searchsorted(starts, region.start, side="right")) - 1)
        for start, end in spans[first:]:
            if start >= region.end:
                break
            if start > at:
                yield region._replace(start=at, data=_slice(region, at, start))
            at = max(at, end)
        if at < region.end:
            yield region._replace(start=at, data=_slice(region, at, region.end))


def _slice(region: Region, start: int, end: int) -> bytes | memoryview | bytearray:
    return region.data[start - region.start : end - region.start]


def _is_inside(address: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether an address lies in one of sorted spans, its first byte aside."""
    number = bisect_right(spans, (address, MAX_ADDRESS)) - 1
    return number >= 0 and spans[number][0] <= address < spans[number][1]
