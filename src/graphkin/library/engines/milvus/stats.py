"""How much a Milvus library holds, and of what."""

from __future__ import annotations

from collections import Counter
from typing import Any

from graphkin.library.engines.milvus.bundles import PayloadStore
from graphkin.library.engines.milvus.client import Collection
from graphkin.library.engines.milvus.schema import TAG, read_entry

COUNTED = ("architecture", "compiler", "build", "binary")
TOP_BINARIES = 20


def library_stats(rows: Collection, store: PayloadStore) -> dict[str, Any]:
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
    bundles = [bundle.size for bundle in store.bundles()]
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
