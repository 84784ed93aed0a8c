"""How much of the code was recovered: shares, sums, and what is said of files with little."""

from __future__ import annotations

from pathlib import Path

import pytest

from graphkin.binaries.coverage import Coverage, CoverageTotal, coverage_percent
from graphkin.binaries.extraction import extract
from graphkin.binaries.reading import read_functions
from graphkin.binaries.targets import parse_target
from graphkin.results.coverage import coverage_of, coverage_text, total_document
from tests.binaries.compiling import Compile

LITTLE = Coverage("a.so", 1000, 849, 12, ("symbols", "calls"))
ENOUGH = Coverage("b.so", 1000, 850, 1)


def test_a_bound_tells_where_functions_are_missing() -> None:
    assert (LITTLE.is_low, ENOUGH.is_low) == (True, False)
    assert Coverage("empty", 0, 0, 0).share == 1.0
    assert LITTLE.warning() == (
        "a.so: only 84.9% of 1,000 bytes of code lie inside the 12 functions found, so others are "
        "missing; tried: symbols, calls"
    )


def test_files_are_summed_and_those_with_little_are_listed() -> None:
    total = CoverageTotal()
    assert total.share == 1.0
    total.add([LITTLE, ENOUGH])
    assert (total.code_bytes, total.share, total.low) == (2000, 0.8495, [LITTLE])
    assert total_document(total)["low"] == [coverage_of(LITTLE).to_dict()]
    assert coverage_text([LITTLE, ENOUGH]) == "13 functions: 84.9% of 2,000 bytes of code"


@pytest.mark.parametrize(
    ("share", "text"),
    [(1.0, "100%"), (0.99999, "99.9%"), (0.9999, "99.9%"), (0.573, "57.3%"), (0.0, "0.0%")],
)
def test_all_means_all(share: float, text: str) -> None:
    assert coverage_percent(share) == text
    code, read = 100_000, round(100_000 * share)
    assert f" {text} of 100,000" in coverage_text([Coverage("a", code, read, 1)])


def test_coverage_comes_through_worker_processes(compile_c: Compile, tmp_path: Path) -> None:
    """Code that no symbol names and nothing reaches is missing."""
    source = 'int f(int x) { return x; } __asm__(".fill 1000, 1, 0xf4");'
    path = compile_c(source, "-O1", "-c")
    coverages: list[Coverage] = []
    assert [
        function.name for function in read_functions(parse_target(str(path)), coverages=coverages)
    ] == ["f"]
    (coverage,) = coverages
    assert (coverage.binary, coverage.is_low) == (str(path), True)
    summary = extract([path], tmp_path / "corpus", min_blocks=1)
    assert summary.coverage.low == coverages
