"""What a library holds, binary by binary."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import PurePath

from graphkin.library.library import Library
from graphkin.results.document import LibraryBinary
from graphkin.results.known_function import KnownFunction
from graphkin.results.text import encodable


@dataclass
class _Tally:
    first: KnownFunction
    functions: int = 0
    tags: Counter[str] = field(default_factory=Counter)


def binaries_of(index: Library) -> list[LibraryBinary]:
    """Every binary with the number of its functions, by name."""
    tallies: dict[tuple[str, str], _Tally] = {}
    for item in index.engine.scan():
        entry = item.entry
        tally = tallies.setdefault((entry.binary, entry.file_hash), _Tally(entry))
        tally.functions += 1
        for tag, value in entry.tags.items():
            tally.tags[f"{tag}={value}"] += 1
    found = [_body(tally) for tally in tallies.values()]
    return sorted(found, key=lambda one: (one.name.lower(), one.binary))


def _body(tally: _Tally) -> LibraryBinary:
    entry = tally.first
    return LibraryBinary(
        binary=encodable(entry.binary),
        name=encodable(PurePath(entry.binary).name or entry.binary),
        file_hash=entry.file_hash,
        architecture=encodable(entry.architecture),
        compiler=encodable(entry.compiler),
        build=encodable(entry.build),
        functions=tally.functions,
        tags={encodable(tag): count for tag, count in tally.tags.most_common()},
    )
