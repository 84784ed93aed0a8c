"""How much a library holds, and of what: counted over the columns in memory."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.library.engines.base import TOP_BINARIES
from graphkin.library.engines.sqlite.cache import ColumnCache, side_file
from graphkin.library.engines.sqlite.columns import Columns
from graphkin.library.engines.sqlite.interned import InternedStrings
from graphkin.library.records import BinarySummary


def library_stats(path: Path, cache: ColumnCache, strings: InternedStrings) -> dict[str, Any]:
    """All of it can be written as JSON; what is counted comes with the largest first."""
    binaries = _counts(cache.columns, strings, "binary")
    return {
        "entries": len(cache.columns),
        "graphs": len(np.unique(cache.columns["graph"])),
        "binaries": len(binaries),
        "bytes": {
            "library": _size(path) + _size(Path(f"{path}-wal")),
            "side_file": _size(side_file(path)),
            "vectors_in_memory": cache.vector_index.nbytes,
            "filters_in_memory": cache.columns.nbytes,
        },
        "architectures": dict(_counts(cache.columns, strings, "architecture").most_common()),
        "compilers": dict(_counts(cache.columns, strings, "compiler").most_common()),
        "builds": dict(_counts(cache.columns, strings, "build").most_common()),
        "tags": dict(_tags(cache.columns["tags"], strings).most_common()),
        "top_binaries": dict(binaries.most_common(TOP_BINARIES)),
    }


def count_binaries(columns: Columns, strings: InternedStrings) -> list[BinarySummary]:
    """Every binary, in no order; what its entries differ in is that of the first."""
    pairs = columns["binary"].astype(np.int64) << 32 | columns["file_hash"]
    _, firsts, groups, counts = np.unique(
        pairs, return_index=True, return_inverse=True, return_counts=True
    )
    tags = [
        _tags(columns["tags"][rows], strings)
        for rows in np.split(np.argsort(groups, kind="stable"), np.cumsum(counts))[:-1]
    ]
    names = ("binary", "file_hash", "architecture", "compiler", "build")
    return [
        BinarySummary(
            **{name: strings.text(int(columns[name][first])) for name in names},
            functions=count,
            tags=dict(own.most_common()),
        )
        for first, count, own in zip(firsts.tolist(), counts.tolist(), tags, strict=True)
    ]


def _counts(columns: Columns, strings: InternedStrings, name: str) -> Counter[str]:
    numbers, counts = np.unique(columns[name], return_counts=True)
    return Counter(
        {
            strings.text(number): count
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
        }
    )


def _tags(column: NDArray[np.int32], strings: InternedStrings) -> Counter[str]:
    """Entries by ``tag=value``."""
    entries: Counter[str] = Counter()
    numbers, counts = np.unique(column, return_counts=True)
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        for tag, value in strings.tags(number).items():
            entries[f"{tag}={value}"] += count
    return entries


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
