"""How long operations took, in a few numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def times(seconds: Sequence[float]) -> dict[str, Any]:
    """Count, median, 99th percentile and maximum, in milliseconds."""
    if not seconds:
        return {"count": 0, "p50_ms": 0.0, "p99_ms": 0.0, "max_ms": 0.0}
    p50, p99, most = (1e3 * np.percentile(seconds, [50, 99, 100])).tolist()
    return {"count": len(seconds), "p50_ms": p50, "p99_ms": p99, "max_ms": most}


def times_by_name(seconds: Mapping[str, Sequence[float]]) -> dict[str, dict[str, Any]]:
    """:func:`times` of each operation."""
    return {name: times(own) for name, own in sorted(seconds.items())}
