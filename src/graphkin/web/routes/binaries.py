"""Files that a client sends, and their functions."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from graphkin.web import schema as api
from graphkin.web.bodies import binary_body, function_body, row_body
from graphkin.web.errors import RequestError
from graphkin.web.routes.shared import ERRORS, Here

router = APIRouter(prefix="/api", tags=["functions"], responses=ERRORS)

BYTES = {
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
}


@router.post(
    "/binaries",
    status_code=201,
    response_model=api.Binary,
    openapi_extra={"requestBody": {**BYTES, "required": True}},
    responses={413: {"model": api.Error, "description": "The file is too large."}},
)
async def send_binary(
    request: Request, here: Here, name: Annotated[str, Query(max_length=1000)] = ""
) -> api.Binary:
    """Send a binary as the body, ``name`` is that of its file; the answer comes when it is read."""
    try:
        async with asyncio.timeout(here.limits.upload_seconds):
            path, digest = await here.uploads.receive(request.stream())
    except TimeoutError:
        seconds = here.limits.upload_seconds
        raise RequestError(408, f"the file did not arrive within {seconds:g} s") from None
    upload = await here.receiving.run(lambda: here.uploads.take(path, digest, name))
    return binary_body(upload)


@router.get("/binaries")
async def list_binaries(here: Here) -> list[api.Binary]:
    """The files that the server still has, the newest first."""
    return [binary_body(upload) for upload in here.uploads.newest_first()]


@router.get("/binaries/{binary}")
async def get_binary(binary: str, here: Here) -> api.Binary:
    """One of them."""
    return binary_body(here.uploads.get(binary))


@router.get("/binaries/{binary}/functions", response_model=api.FunctionList)
async def list_functions(binary: str, here: Here) -> Response:
    """All its functions, in the order of the file."""

    def written() -> bytes:
        upload = here.uploads.get(binary)
        rows = [row_body(number, one) for number, one in enumerate(here.uploads.functions(binary))]
        document = {"binary": binary_body(upload).model_dump(), "functions": rows}
        return json.dumps(document, separators=(",", ":")).encode()

    return Response(await here.reading.run(written), media_type="application/json")


@router.get("/functions/{reference}")
async def get_function(reference: str, here: Here) -> api.FunctionBody:
    """One function with its code: ``upload:FILE:NUMBER`` or ``library:ID``."""

    def read() -> api.FunctionBody:
        return function_body(reference, *here.references.with_text(reference))

    return await here.reading.run(read)
