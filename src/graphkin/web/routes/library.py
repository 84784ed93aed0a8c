"""The library: what is in it, what is added to it and removed."""

from __future__ import annotations

from glob import escape
from itertools import islice
from pathlib import PurePath
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from graphkin.errors import ConfigError
from graphkin.library.processors import processor_warnings
from graphkin.library.records import BinarySummary, Filter
from graphkin.results.document import LibraryBinary, LibraryContent
from graphkin.results.text import encodable
from graphkin.web import api_documents as api
from graphkin.web.http_errors import ERRORS
from graphkin.web.index_job import IndexJob
from graphkin.web.jobs import stream
from graphkin.web.server import ServerDep
from graphkin.web.upload_reader import library_function

router = APIRouter(prefix="/api/library", tags=["library"], responses=ERRORS)

MOST_COUNTS = 200
Condition = Annotated[str, Query(max_length=10_000)]


@router.get("")
async def library_summary(server: ServerDep) -> LibraryContent:
    """How much the library holds, and of what; the largest counts first."""
    stats = await server.browsing.run(server.library.stats)
    counts = {
        name: {encodable(key): count for key, count in islice(stats[name].items(), MOST_COUNTS)}
        for name in ("architectures", "compilers", "builds", "tags", "top_binaries")
    }
    warnings = processor_warnings(server.library.model, stats["architectures"])
    return LibraryContent(
        library=server.options.shown_name, warnings=warnings, **{**stats, **counts}
    )


@router.get("/binaries")
async def library_binaries(server: ServerDep) -> api.LibraryBinaries:
    """Its binaries, by name."""
    summaries = await server.browsing.run(server.library.engine.binaries)
    binaries = [_binary(summary) for summary in summaries]
    binaries.sort(key=lambda binary: (binary.name.lower(), binary.binary))
    return api.LibraryBinaries(binaries=binaries)


def _binary(summary: BinarySummary) -> LibraryBinary:
    return LibraryBinary(
        binary=encodable(summary.binary),
        name=encodable(PurePath(summary.binary).name or summary.binary),
        file_hash=summary.file_hash,
        architecture=encodable(summary.architecture),
        compiler=encodable(summary.compiler),
        build=encodable(summary.build),
        functions=summary.functions,
        tags={encodable(tag): count for tag, count in summary.tags.items()},
    )


@router.get("/functions")
async def library_functions(
    server: ServerDep,
    function: Condition = "",
    binary: Condition = "",
    file_hash: Condition = "",
    architecture: Condition = "",
    compiler: Condition = "",
    after: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> api.LibraryFunctions:
    """Its functions, page by page; texts take the wildcards ``*``, ``?`` and ``[...]``."""
    where = Filter(
        function=function or None,
        binary=binary or None,
        file_hash=file_hash or None,
        architecture=architecture or None,
        compiler=compiler or None,
    )

    def page() -> api.LibraryFunctions:
        functions = list(islice(server.library.engine.scan(where, after), limit + 1))
        more = functions[limit - 1].id if len(functions) > limit else None
        return api.LibraryFunctions(
            functions=[library_function(stored) for stored in functions[:limit]], next=more
        )

    return await server.browsing.run(page)


@router.post("/additions", status_code=202)
async def add_binary(request: api.AdditionRequest, server: ServerDep) -> api.Addition:
    """Add the functions of an uploaded file; it waits for those before it."""
    server.check_writable()
    upload = server.uploads.get(request.binary)
    job = IndexJob(server.library, upload, request, server.uploads_folder, server.limits)
    return server.index_jobs.add(job).body()


@router.get("/additions/{addition}")
async def get_addition(addition: str, server: ServerDep) -> api.Addition:
    """How far an addition is."""
    return server.index_jobs.get(addition).body()


@router.get("/additions/{addition}/events", response_class=StreamingResponse)
async def addition_events(addition: str, server: ServerDep) -> StreamingResponse:
    """Server-sent events: ``progress``, and at last ``end``."""
    job = server.index_jobs.get(addition)
    return stream(job, job.body)


@router.post("/removals")
async def remove_binary(request: api.RemovalRequest, server: ServerDep) -> api.Removal:
    """Remove all functions of a binary, by its path, its hash or both."""
    server.check_writable()
    if not (request.file_hash or request.binary):
        raise ConfigError("name what to remove: file_hash, or binary")
    where = Filter(
        file_hash=escape(request.file_hash) if request.file_hash else None,
        binary=escape(request.binary) if request.binary else None,
    )

    def work() -> api.Removal:
        removed = server.library.remove(where)
        return api.Removal(removed=removed, entries=len(server.library))

    return await server.browsing.run(work)
