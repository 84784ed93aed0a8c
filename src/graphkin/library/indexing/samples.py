"""The bundled sample libraries, for the demo and for a server that is tried out."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from graphkin._support.progress import counter
from graphkin.binaries import samples
from graphkin.library.indexing.run import index_paths
from graphkin.library.library import Library


def index_samples(library: Library) -> None:
    """Adds the sample libraries, the vulnerable one with its tag."""
    by_tags: dict[tuple[tuple[str, str], ...], list[Path]] = defaultdict(list)
    for file in samples.KNOWN:
        by_tags[tuple(samples.tags(file).items())].append(file)
    with counter("indexing files") as progress:
        for tags, files in by_tags.items():
            index_paths(library, files, tags=dict(tags), progress=progress)
