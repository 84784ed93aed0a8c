"""A scan of an uploaded file: all its functions against the library, a few at a time."""

from __future__ import annotations

import json
from collections.abc import Callable

from graphkin import __version__
from graphkin.errors import ConfigError
from graphkin.library.library import Library
from graphkin.library.records import Filter
from graphkin.results.csv_rows import csv_rows
from graphkin.results.document import Query, SearchResult
from graphkin.results.html.scan import scan_page
from graphkin.results.json_lines import to_json_line
from graphkin.results.sarif.log import sarif
from graphkin.web import schema as api
from graphkin.web.bodies import binary_body, hit_body, query_body
from graphkin.web.jobs import Job
from graphkin.web.reading import UploadedFunction
from graphkin.web.references import Named
from graphkin.web.uploads import Upload, Uploads

AT_ONCE = 8
"""Functions that are looked up together: few, so that progress is seen and searches get through."""


class ScanJob(Job):
    """A scan, and what it has found so far."""

    def __init__(
        self,
        index: Library,
        uploads: Uploads,
        upload: Upload,
        request: api.ScanRequest,
        where: Filter,
        most_blocks: int,
    ) -> None:
        super().__init__()
        self._index = index
        self._uploads = uploads
        self.upload = upload
        self._request = request
        self._where = where
        self._most_blocks = most_blocks
        self.done = 0
        self.total = 0
        self.results: list[SearchResult] = []
        """Of every function, in order."""
        self.found: list[api.ResultBody] = []
        """Of those with a hit, as watchers see them; it only grows."""

    def work(self) -> None:
        listed = self._uploads.functions(self.upload.id)
        least, most = self._request.min_blocks, self._most_blocks
        asked = [(number, one) for number, one in enumerate(listed) if least <= one.blocks <= most]
        self.total = len(asked)
        for start in range(0, len(asked), AT_ONCE):
            self.checkpoint()
            self._look_up(asked[start : start + AT_ONCE])
        self.checkpoint()

    def _look_up(self, asked: list[tuple[int, UploadedFunction]]) -> None:
        request, index = self._request, self._index
        graphs = [one.graph for _, one in asked]
        found = index.search_many(graphs, request.top, rerank=request.rerank, where=self._where)
        for (number, one), hits in zip(asked, found, strict=True):
            query = self._named(number, one)
            known = Query(query.binary, query.function, query.address, one.blocks)
            result = SearchResult(known, tuple(hits)).above(request.min_probability)
            if result.hits and request.rerank:
                explained = tuple(index.explained(one.graph, result.hits))
                result = SearchResult(known, explained)
            self.results.append(result)
            self.done += 1
            if result.hits:
                bodies = [hit_body(hit, rank) for rank, hit in enumerate(result.hits, start=1)]
                self.found.append(api.ResultBody(query=query_body(query), hits=bodies))

    def _named(self, number: int, one: UploadedFunction) -> Named:
        reference = f"upload:{self.upload.id}:{number}"
        return Named(reference, one.name, self.upload.label(one), one.address, one.graph)

    def body(self) -> api.Scan:
        return api.Scan(
            id=self.id,
            binary=binary_body(self.upload),
            state=self.state,
            done=self.done,
            total=self.total,
            found=len(self.found),
            error=self.error,
            seconds=round(self.seconds, 3),
        )


def report(scan: ScanJob, form: str, library: str) -> tuple[str, str]:
    """The type and the text of a file with what a scan has found."""
    if form not in FORMS:
        raise ConfigError(f"unknown format {form!r}; choose one of {', '.join(FORMS)}")
    kind, write = FORMS[form]
    return kind, write(list(scan.results), library)


def _json(results: list[SearchResult], _: str) -> str:
    return "[" + ",\n".join(map(to_json_line, results)) + "]\n"


def _csv(results: list[SearchResult], _: str) -> str:
    return "".join(csv_rows(results))


def _sarif(results: list[SearchResult], library: str) -> str:
    return json.dumps(sarif(results, tool_version=__version__, library=library), indent=1) + "\n"


def _html(results: list[SearchResult], library: str) -> str:
    return scan_page(results, library=library)


FORMS: dict[str, tuple[str, Callable[[list[SearchResult], str], str]]] = {
    "json": ("application/json", _json),
    "csv": ("text/csv", _csv),
    "sarif": ("application/sarif+json", _sarif),
    "html": ("text/html", _html),
}
"""Forms of a report: those of ``graphkin scan --format``, but for JSON, which is one list."""
