"""How much of some binaries was recovered, as documents and as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphkin.binaries.coverage import Coverage, CoverageTotal, coverage_percent
from graphkin.results.document import CodeCoverage
from graphkin.results.text import plural


def coverage_of(coverage: Coverage) -> CodeCoverage:
    """The document of one file's coverage."""
    return CodeCoverage(
        binary=coverage.binary,
        functions=coverage.functions,
        code_bytes=coverage.code_bytes,
        recovered_bytes=coverage.recovered_bytes,
        share=coverage.share,
        is_low=coverage.is_low,
        tried=coverage.tried,
    )


def total_document(total: CoverageTotal) -> dict[str, Any]:
    """The sum of many files, and those of which too little was recovered."""
    return {
        "code_bytes": total.code_bytes,
        "recovered_bytes": total.recovered_bytes,
        "share": total.share,
        "low": [coverage_of(coverage).to_dict() for coverage in total.low],
    }


def coverage_text(coverages: Sequence[Coverage | CodeCoverage]) -> str:
    """``512 functions: 98.3% of 123,456 bytes of code``, of all files together."""
    code = sum(coverage.code_bytes for coverage in coverages)
    recovered = sum(coverage.recovered_bytes for coverage in coverages)
    functions = plural(sum(coverage.functions for coverage in coverages), "function")
    share = recovered / code if code else 1.0
    return f"{functions}: {coverage_percent(share)} of {code:,} bytes of code"
