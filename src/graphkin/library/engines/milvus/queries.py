"""Questions to a Milvus collection: the nearest of a vector, and how much it holds of what.

Ties are in the order of ids. A server counts no groups, so rows are read for counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphkin.errors import ConfigError
from graphkin.library.engines.base import COUNTED, Nearest, Space, counts_document
from graphkin.library.engines.milvus.bundles import BundleStore
from graphkin.library.engines.milvus.client import MOST_HITS, Collection
from graphkin.library.engines.milvus.collection import TAG, read_entry
from graphkin.library.records import BinarySummary, KnownFunction

SPARE_HITS = 64
"""Asked for beyond those wanted: a server cuts anywhere among equal distances."""

Hits = list[tuple[float, int]]
"""(distance, id) in order."""
BINARY_FIELDS = ("binary", "file_hash", "architecture", "compiler", "build")


def nearest(
    rows: Collection,
    space: Space,
    vectors: NDArray[Any],
    count: int,
    expressions: Iterable[str],
) -> Nearest:
    """The nearest ``count`` of each vector, among what matches any of some expressions."""
    if not 1 <= count <= MOST_HITS:
        raise ConfigError(f"a Milvus server finds 1 to {MOST_HITS} at a time, not {count}")
    nearest_hits: list[Hits] = [[] for _ in vectors]
    for expression in expressions if len(vectors) else ():
        for own, hits in zip(nearest_hits, _search(rows, vectors, count, expression), strict=True):
            own += hits
    ids = np.full((len(vectors), count), -1, dtype=np.int64)
    distances = np.full((len(vectors), count), np.inf, dtype=np.float32)
    for query, hits in enumerate(nearest_hits):
        measured = [(np.float32(_distance(space, value)), own) for value, own in hits]
        best = sorted(measured)[:count]
        distances[query, : len(best)] = [distance for distance, _ in best]
        ids[query, : len(best)] = [own for _, own in best]
    return Nearest(ids, distances)


def _search(rows: Collection, vectors: NDArray[Any], count: int, expression: str) -> list[Hits]:
    """At least the nearest ``count`` of each vector.

    Where the last that was asked for is as far as the last that is wanted, others as far may have
    been cut off, and more are asked for, so that ids decide among all of them.
    """
    limit = min(count + SPARE_HITS, MOST_HITS)
    nearest_hits = rows.search(vectors, limit, expression)
    cut: Sequence[int] = range(len(vectors))
    while limit < MOST_HITS:
        cut = [query for query in cut if _is_cut(nearest_hits[query], count, limit)]
        if not cut:
            break
        limit = min(8 * limit, MOST_HITS)
        again = rows.search(vectors[cut], limit, expression)
        for query, hits in zip(cut, again, strict=True):
            nearest_hits[query] = hits
    return nearest_hits


def _is_cut(hits: Hits, count: int, limit: int) -> bool:
    return len(hits) == limit and hits[-1][0] == hits[count - 1][0]


def _distance(space: Space, value: float) -> float:
    """What Milvus measured, as a distance: for cosine it returns the likeness."""
    return 1.0 - value if space.metric == "cosine" else value


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
