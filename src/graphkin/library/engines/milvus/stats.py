"""How much a Milvus library holds, and of what. A server counts no groups: rows are read."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from graphkin.library.engines.base import COUNTED, counts_document
from graphkin.library.engines.milvus.bundles import BundleStore
from graphkin.library.engines.milvus.client import Collection
from graphkin.library.engines.milvus.schema import TAG, read_entry
from graphkin.library.records import BinarySummary
from graphkin.results.known_function import KnownFunction

BINARY_FIELDS = ("binary", "file_hash", "architecture", "compiler", "build")


def library_stats(rows: Collection, store: BundleStore) -> dict[str, Any]:
    """Reads some fields of every row: about a minute for a million."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in COUNTED}
    graphs: set[bytes] = set()
    entries = 0
    for row in rows.scan("", [*COUNTED, "graph_hash"], after=0):
        entries += 1
        graphs.add(bytes.fromhex(row["graph_hash"]))
        entry = read_entry(row)
        for name in COUNTED:
            counts[name].update(_tags(entry) if name == TAG else [getattr(entry, name)])
    bundles = [bundle.size for bundle in store]
    return {
        "entries": entries,
        "graphs": len(graphs),
        "binaries": len(counts["binary"]),
        "bundles": len(bundles),
        "bytes": {"bundles": sum(bundles)},
        **counts_document(counts),
    }


def count_binaries(rows: Collection) -> list[BinarySummary]:
    """Every binary, in no order; reads fewer fields of every row than a scan would."""
    firsts: dict[tuple[str, str], KnownFunction] = {}
    functions: Counter[tuple[str, str]] = Counter()
    tags: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in rows.scan("", [*BINARY_FIELDS, TAG], after=0):
        entry = read_entry(row)
        binary = entry.binary, entry.file_hash
        firsts.setdefault(binary, entry)
        functions[binary] += 1
        tags[binary].update(_tags(entry))
    return [
        BinarySummary(
            **{name: getattr(entry, name) for name in BINARY_FIELDS},
            functions=functions[binary],
            tags=dict(tags[binary].most_common()),
        )
        for binary, entry in firsts.items()
    ]


def _tags(entry: KnownFunction) -> list[str]:
    return [f"{tag}={value}" for tag, value in entry.tags.items()]
