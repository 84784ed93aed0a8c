"""Scans: every function of a file against the library."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Header, Response
from fastapi.responses import StreamingResponse

from graphkin.errors import ConfigError
from graphkin.results.render import FORMATS, format_named
from graphkin.web import api_documents as api
from graphkin.web.http_errors import ERRORS, text_of
from graphkin.web.jobs import stream
from graphkin.web.scans import ScanJob
from graphkin.web.server import ServerDep

router = APIRouter(prefix="/api/scans", tags=["scans"], responses=ERRORS)


@router.post("", status_code=202)
async def start_scan(request: api.ScanRequest, server: ServerDep) -> api.Scan:
    """Start a scan of an uploaded file; it waits for those before it."""
    limits = server.limits
    if request.top > limits.top or request.rerank > limits.rerank:
        raise ConfigError(f"top is at most {limits.top} here, and rerank {limits.rerank}")
    upload = server.uploads.get(request.binary)
    request = request.model_copy(update={"rerank": server.rerank(request.rerank)})
    job = ScanJob(server.library, server.uploads, upload, request, limits.query_blocks)
    return server.scans.add(job).body()


@router.get("")
async def list_scans(server: ServerDep) -> list[api.Scan]:
    """The latest scans, the newest first."""
    return [job.body() for job in server.scans.newest_first()]


@router.get("/{scan}")
async def get_scan(scan: str, server: ServerDep) -> api.Scan:
    """How far a scan is."""
    return server.scans.get(scan).body()


@router.delete("/{scan}", status_code=204)
async def cancel_scan(scan: str, server: ServerDep) -> None:
    """Cancel a scan; one that is over is forgotten."""
    server.scans.drop(scan)


@router.get("/{scan}/events", response_class=StreamingResponse)
async def scan_events(
    scan: str, server: ServerDep, last_event_id: Annotated[str, Header()] = "0"
) -> StreamingResponse:
    """Server-sent events: ``progress``, ``results`` as they are found, and at last ``end``."""
    job = server.scans.get(scan)
    seen = int(last_event_id) if last_event_id.isdecimal() and len(last_event_id) < 10 else 0
    return stream(job, job.body, job.with_hits, seen)


@router.get(
    "/{scan}/report",
    response_class=Response,
    responses=text_of(*(own.media_type for own in FORMATS.values())),
)
async def scan_report(scan: str, server: ServerDep, format: str = "json") -> Response:
    """What was found so far, as a file in one of the formats of ``graphkin scan``."""
    job, chosen = server.scans.get(scan), format_named(format)
    content = await asyncio.to_thread(lambda: chosen.write(job.report(server.options.shown_name)))
    disposition = f'attachment; filename="scan-{job.id}.{chosen.suffix}"'
    headers = {"Content-Disposition": disposition}
    return Response(
        content.encode(), media_type=f"{chosen.media_type}; charset=utf-8", headers=headers
    )
