"""How much a Milvus library holds, and of what."""

from __future__ import annotations

from collections import Counter
from typing import Any

from graphkin.library.engines.base import TOP_BINARIES
from graphkin.library.engines.milvus.bundles import BundleStore
from graphkin.library.engines.milvus.client import Collection
from graphkin.library.engines.milvus.schema import TAG, Values, read_entry
from graphkin.library.records import BinarySummary

COUNTED = ("architecture", "compiler", "build", "binary")
BINARY_FIELDS = ("binary", "file_hash", "architecture", "compiler", "build")


def library_stats(rows: Collection, store: BundleStore) -> dict[str, Any]:
    """Reads some fields of every row: about a minute for a million."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in COUNTED}
    tags: Counter[str] = Counter()
    graphs: set[bytes] = set()
    entries = 0
    for row in rows.scan("", [*COUNTED, TAG, "graph_hash"], after=0):
        entries += 1
        graphs.add(bytes.fromhex(row["graph_hash"]))
        entry = read_entry(row)
        for name in COUNTED:
            counts[name][getattr(entry, name)] += 1
        tags.update(f"{tag}={value}" for tag, value in entry.tags.items())
    bundles = [bundle.size for bundle in store]
    return {
        "entries": entries,
        "graphs": len(graphs),
        "binaries": len(counts["binary"]),
        "bundles": len(bundles),
        "bytes": {"bundles": sum(bundles)},
        "architectures": dict(counts["architecture"].most_common()),
        "compilers": dict(counts["compiler"].most_common()),
        "builds": dict(counts["build"].most_common()),
        "tags": dict(tags.most_common()),
        "top_binaries": dict(counts["binary"].most_common(TOP_BINARIES)),
    }


def count_binaries(rows: Collection) -> list[BinarySummary]:
    """Every binary, in no order. Milvus cannot group: some fields of every row are read."""
    firsts: dict[tuple[str, str], Values] = {}
    functions: Counter[tuple[str, str]] = Counter()
    tags: dict[tuple[str, str], Counter[tuple[str, ...]]] = {}
    for row in rows.scan("", [*BINARY_FIELDS, TAG], after=0):
        pair = row["binary"], row["file_hash"]
        firsts.setdefault(pair, row)
        functions[pair] += 1
        tags.setdefault(pair, Counter())[tuple(row[TAG])] += 1
    return [_summary(row, functions[pair], tags[pair]) for pair, row in firsts.items()]


def _summary(first: Values, functions: int, tags: Counter[tuple[str, ...]]) -> BinarySummary:
    counts: Counter[str] = Counter()
    for written, count in tags.items():
        for tag, value in read_entry({**first, TAG: written}).tags.items():
            counts[f"{tag}={value}"] += count
    entry = read_entry(first)
    return BinarySummary(
        **{name: getattr(entry, name) for name in BINARY_FIELDS},
        functions=functions,
        tags=dict(counts.most_common()),
    )
