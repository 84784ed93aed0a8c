"""A scan of an uploaded file: all its functions against the library, a few at a time."""

from __future__ import annotations

from graphkin import __version__
from graphkin.graphs.words import is_large
from graphkin.library.library import Library
from graphkin.library.processors import hit_processors, processor_warnings
from graphkin.library.records import SearchOptions
from graphkin.library.scan import Query, encoded_by_file, look_up
from graphkin.library.whole_files import before_context, completed
from graphkin.results.document import Component, FunctionResult, Report, Tool
from graphkin.web import api_documents as api
from graphkin.web.jobs import Job
from graphkin.web.upload_reader import bounded
from graphkin.web.uploads import Upload, Uploads

AT_ONCE = 8
"""Functions that are looked up together: few, so that progress is seen and searches get through."""


def with_probable_hits(result: FunctionResult, min_probability: float) -> FunctionResult:
    """A result without hits that are less probable."""
    left_out = [item.probability or 0.0 for item in result.hits]
    left_out = [value for value in left_out if value < min_probability]
    if not left_out:
        return result
    kept = tuple(item for item in result.hits if (item.probability or 0.0) >= min_probability)
    best = max([*left_out, result.best_left_out or 0.0])
    return result.model_copy(update={"hits": kept, "best_left_out": best})


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
        self._processors: set[str] = set()
        """Of the functions, and of all hits so far."""

    def work(self) -> None:
        queries = [
            query
            for query in self._queries()
            if (query.ref.kind == "graph" or is_large(query.graph, self._min_blocks))
            and query.ref.blocks <= self._most_blocks
        ]
        self.total = len(queries)
        self._processors.update(query.architecture for query in queries)
        self.checkpoint()
        own: list[FunctionResult] = []
        options = before_context(self._library, self._options)
        for result in look_up(self._library, queries, options, at_once=AT_ONCE):
            own.append(result)
            self._show(with_probable_hits(result, self._options.min_probability))
            self.done += 1
            self.checkpoint()
        # Rows that were shown stay as they are; the report has the whole file to go by.
        results, self.components = completed(self._library, queries, own, self._options)
        lifted = [new for new, old in zip(results, self.results, strict=True) if not old.hits]
        self.results = list(results)
        self._processors |= hit_processors(results)
        self.with_hits += [bounded(result) for result in lifted if result.hits]

    def _show(self, result: FunctionResult) -> None:
        """Adds what is known of a function before the others are."""
        self.results.append(result)
        self._processors |= hit_processors([result])
        if result.hits:
            self.with_hits.append(bounded(result))

    def _queries(self) -> list[Query]:
        """All functions of the file, encoded together where that tells more of them."""
        queries = [
            self.upload.query(function, f"upload:{self.upload.id}:{number}")
            for number, function in enumerate(self._uploads.functions(self.upload.id))
        ]
        model = self._library.model
        return queries if model.ranking is None else list(encoded_by_file(model, queries))

    def _warnings(self) -> tuple[str, ...]:
        return processor_warnings(self._library.model, set(self._processors))

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
            warnings=self._warnings(),
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
            warnings=self._warnings(),
        )
