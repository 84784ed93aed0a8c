"""A scan of an uploaded file: all its functions against the library, a few at a time."""

from __future__ import annotations

from graphkin import __version__
from graphkin.graphs.words import is_large
from graphkin.library.library import Library
from graphkin.library.processors import processor_warnings
from graphkin.library.records import SearchOptions
from graphkin.library.scan import Query, encoded_by_file, look_up
from graphkin.library.whole_files import with_components
from graphkin.results.document import Component, FunctionResult, Report, Tool
from graphkin.web import api_documents as api
from graphkin.web.jobs import Job
from graphkin.web.upload_reader import bounded
from graphkin.web.uploads import Upload, Uploads

AT_ONCE = 8
"""Functions that are looked up together: few, so that progress is seen and searches get through."""


class ScanJob(Job):
    """A scan, and what it has found so far."""

    def __init__(
        self,
        library: Library,
        uploads: Uploads,
        upload: Upload,
        request: api.ScanRequest,
        most_blocks: int,
    ) -> None:
        super().__init__()
        self._library = library
        self._uploads = uploads
        self.upload = upload
        self._min_blocks = request.min_blocks
        self._options = SearchOptions(
            request.top,
            request.rerank,
            request.where.filter(),
            request.min_probability,
            evidence=request.rerank > 0,
        )
        self._most_blocks = most_blocks
        self.done = 0
        self.total = 0
        self.results: list[FunctionResult] = []
        """Of every function, in order."""
        self.with_hits: list[FunctionResult] = []
        """Those with a hit, as watchers see them; it only grows."""
        self.components: tuple[Component, ...] = ()
        """Known at the end."""
        self._warnings: tuple[str, ...] = ()

    def work(self) -> None:
        queries = [
            query
            for query in self._queries()
            if (query.ref.kind == "graph" or is_large(query.graph, self._min_blocks))
            and query.ref.blocks <= self._most_blocks
        ]
        self.total = len(queries)
        architectures = (query.architecture for query in queries)
        self._warnings = processor_warnings(self._library.model, architectures)
        self.checkpoint()
        for result in look_up(self._library, queries, self._options, at_once=AT_ONCE):
            self.results.append(result)
            self.done += 1
            if result.hits:
                self.with_hits.append(bounded(result))
            self.checkpoint()
        # Rows that were shown stay as they are; the components have the whole file to go by.
        self.components = with_components(self._library, self.results).components

    def _queries(self) -> list[Query]:
        """All functions of the file, encoded together where that tells more of them."""
        queries = [
            self.upload.query(function, f"upload:{self.upload.id}:{number}")
            for number, function in enumerate(self._uploads.functions(self.upload.id))
        ]
        model = self._library.model
        return queries if model.ranking is None else list(encoded_by_file(model, queries))

    def body(self) -> api.Scan:
        """How far it is."""
        return api.Scan(
            id=self.id,
            binary=self.upload.document(),
            state=self.state,
            done=self.done,
            total=self.total,
            found=len(self.with_hits),
            error=self.error,
            seconds=round(self.seconds, 3),
            warnings=self._warnings,
            components=self.components,
        )

    def report(self, library: str) -> Report:
        """What was found so far."""
        return Report(
            tool=Tool(version=__version__),
            library=library,
            model=str(self._library.model_id),
            options={**self._options.to_dict(), "min_blocks": self._min_blocks},
            results=tuple(self.results),
            components=self.components,
            skipped=tuple(self.upload.facts.reasons),
            warnings=self._warnings,
        )
