"""How much a library holds, and of what: counted over the columns in memory."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.library.engines.base import COUNTED, counts_document
from graphkin.library.engines.sqlite.cache import ColumnCache, side_file
from graphkin.library.engines.sqlite.columns import Columns
from graphkin.library.engines.sqlite.interned import InternedStrings
from graphkin.library.records import BinarySummary


def library_stats(path: Path, cache: ColumnCache, strings: InternedStrings) -> dict[str, Any]:
    """All of it can be written as JSON; what is counted comes with the largest first."""
    counts = {name: _counts(cache.columns[name], strings, name) for name in COUNTED}
    return {
        "entries": len(cache.columns),
        "graphs": len(np.unique(cache.columns["graph"])),
        "binaries": len(counts["binary"]),
        "bytes": {
            "library": _size(path) + _size(Path(f"{path}-wal")),
            "side_file": _size(side_file(path)),
            "vectors_in_memory": cache.vector_index.nbytes,
            "filters_in_memory": cache.columns.nbytes,
        },
        **counts_document(counts),
    }


def count_binaries(columns: Columns, strings: InternedStrings) -> list[BinarySummary]:
    """Every binary, in no order; what its entries differ in is that of the first."""
    pairs = columns["binary"].astype(np.int64) << 32 | columns["file_hash"]
    _, firsts, groups, counts = np.unique(
        pairs, return_index=True, return_inverse=True, return_counts=True
    )
    tags = [
        _counts(columns["tags"][rows], strings, "tags")
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


def _counts(column: NDArray[np.int32], strings: InternedStrings, name: str) -> Counter[str]:
    """Entries by the text of a column, or by ``tag=value``."""
    entries: Counter[str] = Counter()
    numbers, counts = np.unique(column, return_counts=True)
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        texts = [strings.text(number)]
        if name == "tags":
            texts = [f"{tag}={value}" for tag, value in strings.tags(number).items()]
        entries.update(dict.fromkeys(texts, count))
    return entries


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
