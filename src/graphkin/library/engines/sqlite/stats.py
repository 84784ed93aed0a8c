"""How much a library holds, and of what."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from graphkin.library.engines.sqlite.memory import Memory, side_file
from graphkin.library.engines.sqlite.texts import Texts

TOP_BINARIES = 20


def library_stats(path: Path, memory: Memory, texts: Texts) -> dict[str, Any]:
    """All of it can be written as JSON; what is counted comes with the largest first."""
    binaries = _counts(memory, texts, "binary")
    return {
        "entries": len(memory.columns),
        "graphs": len(np.unique(memory.columns["graph"])),
        "binaries": len(binaries),
        "bytes": {
            "library": _size(path) + _size(Path(f"{path}-wal")),
            "side_file": _size(side_file(path)),
            "vectors_in_memory": memory.scanner.nbytes,
            "filters_in_memory": memory.columns.nbytes,
        },
        "architectures": dict(_counts(memory, texts, "architecture").most_common()),
        "compilers": dict(_counts(memory, texts, "compiler").most_common()),
        "builds": dict(_counts(memory, texts, "build").most_common()),
        "tags": dict(_tags(memory, texts).most_common()),
        "top_binaries": dict(binaries.most_common(TOP_BINARIES)),
    }


def _counts(memory: Memory, texts: Texts, column: str) -> Counter[str]:
    numbers, counts = np.unique(memory.columns[column], return_counts=True)
    return Counter(
        {
            texts.text(number): count
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
        }
    )


def _tags(memory: Memory, texts: Texts) -> Counter[str]:
    """Entries by ``tag=value``."""
    found: Counter[str] = Counter()
    numbers, counts = np.unique(memory.columns["tags"], return_counts=True)
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        for tag, value in texts.tags(number).items():
            found[f"{tag}={value}"] += count
    return found


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
