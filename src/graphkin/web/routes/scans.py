"""Scans: every function of a file against the library."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Header, Response
from fastapi.responses import StreamingResponse

from graphkin.errors import ConfigError
from graphkin.results.render import format_named
from graphkin.web import schema as api
from graphkin.web.events import stream
from graphkin.web.routes.shared import ERRORS, Here
from graphkin.web.scans import ScanJob

router = APIRouter(prefix="/api/scans", tags=["scans"], responses=ERRORS)


@router.post("", status_code=202)
async def start_scan(request: api.ScanRequest, here: Here) -> api.Scan:
    """Start a scan of an uploaded file; it waits for those before it."""
    limits = here.limits
    if request.top > limits.top or request.rerank > limits.rerank:
        raise ConfigError(f"top is at most {limits.top} here, and rerank {limits.rerank}")
    upload = here.uploads.get(request.binary)
    job = ScanJob(here.index, here.uploads, upload, request, limits.query_blocks)
    return here.scans.add(job).body()


@router.get("")
async def list_scans(here: Here) -> list[api.Scan]:
    """The latest scans, the newest first."""
    return [job.body() for job in here.scans.newest_first()]


@router.get("/{scan}")
async def get_scan(scan: str, here: Here) -> api.Scan:
    """How far a scan is."""
    return here.scans.get(scan).body()


@router.delete("/{scan}", status_code=204)
async def cancel_scan(scan: str, here: Here) -> None:
    """Cancel a scan; one that is over is forgotten."""
    here.scans.drop(scan)


@router.get("/{scan}/events", response_class=StreamingResponse)
async def scan_events(
    scan: str, here: Here, last_event_id: Annotated[str, Header()] = "0"
) -> StreamingResponse:
    """Server-sent events: ``progress``, ``results`` as they are found, and at last ``end``."""
    job = here.scans.get(scan)
    seen = int(last_event_id) if last_event_id.isdecimal() and len(last_event_id) < 10 else 0
    return stream(job, job.body, job.with_hits, seen)


@router.get("/{scan}/report")
async def scan_report(scan: str, here: Here, format: str = "json") -> Response:
    """What was found so far, as a file: ``json``, ``jsonl``, ``csv``, ``sarif`` or ``html``."""
    job, chosen = here.scans.get(scan), format_named(format)
    content = await asyncio.to_thread(lambda: chosen.write(job.report(here.options.shown_name)))
    disposition = f'attachment; filename="scan-{job.id}.{format}"'
    headers = {"Content-Disposition": disposition}
    return Response(
        content.encode(), media_type=f"{chosen.media_type}; charset=utf-8", headers=headers
    )
