"""What the routes share: the library, the uploaded files, the work in progress."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, cast

from fastapi import Depends, Request

from graphkin.binaries import samples
from graphkin.library.engines.open import engine_of
from graphkin.library.library import Library
from graphkin.library.model_age import age_warnings
from graphkin.library.processors import processor_warnings
from graphkin.results.drawing.layout import lay_out
from graphkin.web.diffs import DiffJob
from graphkin.web.graph_reader import GraphReader
from graphkin.web.http_errors import RequestError
from graphkin.web.index_job import IndexJob
from graphkin.web.jobs import BoundedPool, JobQueue
from graphkin.web.limits import ServerLimits
from graphkin.web.references import References
from graphkin.web.scans import ScanJob
from graphkin.web.upload_reader import Reader
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
        return engine_of(self.library).shown_name(self.library)


class Server:
    """Everything behind the API; closed when the server ends."""

    def __init__(self, library: Library, options: Options) -> None:
        limits = options.limits
        self.library = library
        self.options = options
        self.limits = limits
        self._age_warnings = age_warnings(library)
        self._processor_warnings: tuple[int, tuple[str, ...]] = (-1, ())
        self._folder = TemporaryDirectory(prefix="graphkin-serve-")
        self.reader: Reader = (
            Reader(limits, library.model.vocabulary)
            if library.model.reads_functions
            else GraphReader(limits, library.embedder)
        )
        self.uploads = Uploads(Path(self._folder.name), self.reader, limits)
        self.references = References(library, self.uploads, self.reader, limits.upload_bytes)
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 2
        # What takes long does not hold up what does not.
        self.computing = BoundedPool("computing", cores, limits.waiting)
        self.receiving = BoundedPool("receiving", limits.extractions, limits.waiting)
        self.reading = BoundedPool("reading", limits.extractions, limits.waiting)
        self.browsing = BoundedPool("browsing", limits.extractions, limits.waiting)
        self.scans: JobQueue[ScanJob] = JobQueue("scans", limits.jobs)
        self.diffs: JobQueue[DiffJob] = JobQueue("diffs", limits.jobs)
        self.index_jobs: JobQueue[IndexJob] = JobQueue("indexing", limits.jobs)

    def warnings(self) -> tuple[str, ...]:
        """Why results of this library may mean little.

        Processors are counted anew when the number of functions has changed: clients ask for the
        status often.
        """
        functions, sentences = self._processor_warnings
        if functions != len(self.library):
            functions = len(self.library)
            sentences = processor_warnings(
                self.library.model, self.library.stats()["architectures"]
            )
            self._processor_warnings = functions, sentences
        return (*self._age_warnings, *sentences)

    @property
    def uploads_folder(self) -> Path:
        """Where files that were added to the library are kept."""
        return engine_of(self.options.library).uploads_folder(self.options.library)

    def warm_up(self) -> None:
        """Reads a file, searches for a function, compares two, lays two blocks out.

        Graphs are small and quick, and their files are nobody's sample: nothing is done for them.
        """
        if not self.library.model.reads_functions:
            return
        functions, _ = self.reader.functions(samples.FIRMWARE)
        first, second = (function.graph for function in functions[:2])
        lay_out([(1.0, 1.0), (1.0, 1.0)], [(0, 1)])
        model = self.library.model
        model.vectors([first])
        if model.matcher is not None:
            model.matcher.predict([(first, second)])
            model.matcher.explain(first, second)

    def rerank(self, count: int) -> int:
        """Candidates to score again; none in a library of graphs that has no matcher."""
        model = self.library.model
        return 0 if model.matcher is None and not model.reads_functions else count

    def check_writable(self) -> None:
        if self.options.read_only:
            raise RequestError(403, "the server was started with --read-only")

    def close(self) -> None:
        self.scans.close()
        self.diffs.close()
        self.index_jobs.close()
        for pool in (self.computing, self.receiving, self.reading, self.browsing):
            pool.close()
        self._folder.cleanup()


def server_of(request: Request) -> Server:
    """The server that a request came to."""
    return cast(Server, request.app.state.server)


ServerDep = Annotated[Server, Depends(server_of)]
"""The server, for a route that asks for it."""
