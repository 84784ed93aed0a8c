"""Diffs: two uploaded files, function by function."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import StreamingResponse

from graphkin.errors import ConfigError
from graphkin.results.diff_formats import DIFF_FORMATS
from graphkin.web import api_documents as api
from graphkin.web.diffs import DiffJob
from graphkin.web.http_errors import ERRORS, text_of
from graphkin.web.jobs import stream
from graphkin.web.server import ServerDep

router = APIRouter(prefix="/api/diffs", tags=["diffs"], responses=ERRORS)
KINDS = {
    "json": ("json", "application/json"),
    "csv": ("csv", "text/csv"),
    "html": ("html", "text/html"),
    "table": ("txt", "text/plain"),
}
"""Suffix and media type of each format."""


@router.post("", status_code=202)
async def start_diff(request: api.DiffRequest, server: ServerDep) -> api.DiffState:
    """Start a diff of two uploaded files; it waits for those before it."""
    if not server.library.model.reads_functions:
        raise ConfigError("a diff is of binaries, and this server has a library of graphs")
    job = DiffJob(server.reader, server.uploads, request, server.limits.diff_functions)
    return server.diffs.add(job).body()


@router.get("")
async def list_diffs(server: ServerDep) -> list[api.DiffState]:
    """The latest diffs, the newest first."""
    return [job.body() for job in server.diffs.newest_first()]


@router.get("/{diff}")
async def get_diff(diff: str, server: ServerDep) -> api.DiffState:
    """How far a diff is."""
    return server.diffs.get(diff).body()


@router.delete("/{diff}", status_code=204)
async def cancel_diff(diff: str, server: ServerDep) -> None:
    """Cancel a diff; one that is over is forgotten."""
    server.diffs.drop(diff)


@router.get("/{diff}/events", response_class=StreamingResponse)
async def diff_events(diff: str, server: ServerDep) -> StreamingResponse:
    """Server-sent events: ``progress``, and at last ``end``."""
    job = server.diffs.get(diff)
    return stream(job, job.body)


@router.get(
    "/{diff}/report",
    response_class=Response,
    responses=text_of(*(media_type for _, media_type in KINDS.values())),
)
async def diff_report(diff: str, server: ServerDep, format: str = "json") -> Response:
    """What became of every function, as a file in one of the formats of ``graphkin diff``."""
    job = server.diffs.get(diff)
    if format not in DIFF_FORMATS:
        raise ConfigError(f"unknown format {format!r}; choose one of {', '.join(DIFF_FORMATS)}")
    suffix, media_type = KINDS[format]
    content = await server.reading.run(lambda: job.report(format).encode())
    headers = {"Content-Disposition": f'attachment; filename="diff-{job.id}.{suffix}"'}
    return Response(content, media_type=f"{media_type}; charset=utf-8", headers=headers)
