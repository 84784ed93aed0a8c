"""What the routes share: the library, the uploaded files, the work in progress."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from fastapi import Request

from graphkin.binaries import samples
from graphkin.library.library import MILVUS, Library
from graphkin.library.models import vocabulary_of
from graphkin.results.drawing.layout import lay_out
from graphkin.web.additions import AdditionJob
from graphkin.web.errors import RequestError
from graphkin.web.jobs import JobQueue
from graphkin.web.limits import ServerLimits
from graphkin.web.reading import Reader
from graphkin.web.references import References
from graphkin.web.scans import ScanJob
from graphkin.web.turns import Turns
from graphkin.web.uploads import Uploads


@dataclass(frozen=True)
class Options:
    """How a server was started."""

    library: str
    """The library's file, or the address of a Milvus collection."""
    temporary: bool = False
    """The library ends with the server."""
    read_only: bool = False
    token: str | None = None
    warm: bool = False
    """Begin with one of everything, so that what is loaded or compiled at its first use costs no
    client seconds."""
    limits: ServerLimits = field(default_factory=ServerLimits)

    @property
    def shown_name(self) -> str:
        return self.library if self.library.startswith(MILVUS) else Path(self.library).name


class Server:
    """Everything behind the API; closed when the server ends."""

    def __init__(self, index: Library, options: Options) -> None:
        limits = options.limits
        self.index = index
        self.options = options
        self.limits = limits
        self._folder = TemporaryDirectory(prefix="graphkin-serve-")
        self.reader = Reader(limits, vocabulary_of(index.model))
        self.uploads = Uploads(Path(self._folder.name), self.reader, limits)
        self.references = References(index, self.uploads, self.reader)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
        # What takes long does not hold up what does not.
        self.computing = Turns("computing", cores, limits.waiting)
        self.receiving = Turns("receiving", limits.extractions, limits.waiting)
        self.reading = Turns("reading", limits.extractions, limits.waiting)
        self.scans: JobQueue[ScanJob] = JobQueue("scans", limits.jobs)
        self.additions: JobQueue[AdditionJob] = JobQueue("additions", limits.jobs)

    @property
    def kept(self) -> Path:
        """Where files that were added to the library are kept."""
        library = self.options.library
        if library.startswith(MILVUS):
            library = library.removeprefix(MILVUS).replace("/", "-").replace(":", "-")
        return Path(f"{library}.files").absolute()

    def warm_up(self) -> None:
        """Reads a file, searches for a function, compares two, lays two blocks out."""
        listed, _ = self.reader.functions(samples.FIRMWARE)
        first, second = (one.graph for one in listed[:2])
        lay_out([(1.0, 1.0), (1.0, 1.0)], [(0, 1)])
        model = self.index.model
        model.vectors([first])
        if model.matcher is not None:
            model.matcher.predict([(first, second)])
            model.matcher.explain(first, second)

    def check_writable(self) -> None:
        if self.options.read_only:
            raise RequestError(403, "the server was started with --read-only")

    def close(self) -> None:
        self.scans.close()
        self.additions.close()
        for turns in (self.computing, self.receiving, self.reading):
            turns.close()
        self._folder.cleanup()


def server_of(request: Request) -> Server:
    """The server that a request came to."""
    return cast(Server, request.app.state.server)
