"""Files that a client sends, and their functions."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from graphkin.web import schema as api
from graphkin.web.bodies import binary_body, function_body, row_body
from graphkin.web.errors import ERRORS, RequestError
from graphkin.web.server import ServerDep

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
    request: Request, server: ServerDep, name: Annotated[str, Query(max_length=1000)] = ""
) -> api.Binary:
    """Send a binary as the body, ``name`` is that of its file; the answer comes when it is read."""
    try:
        async with asyncio.timeout(server.limits.upload_seconds):
            path, digest = await server.uploads.receive(request.stream())
    except TimeoutError:
        seconds = server.limits.upload_seconds
        raise RequestError(408, f"the file did not arrive within {seconds:g} s") from None
    upload = await server.receiving.run(lambda: server.uploads.take(path, digest, name))
    return binary_body(upload)


@router.get("/binaries")
async def list_binaries(server: ServerDep) -> list[api.Binary]:
    """The files that the server still has, the newest first."""
    return [binary_body(upload) for upload in server.uploads.newest_first()]


@router.get("/binaries/{binary}")
async def get_binary(binary: str, server: ServerDep) -> api.Binary:
    """One of them."""
    return binary_body(server.uploads.get(binary))


@router.get("/binaries/{binary}/functions", response_model=api.FunctionList)
async def list_functions(binary: str, server: ServerDep) -> Response:
    """All its functions, in the order of the file."""

    def written() -> bytes:
        upload = server.uploads.get(binary)
        functions = server.uploads.functions(binary)
        rows = [row_body(number, function) for number, function in enumerate(functions)]
        document = {"binary": binary_body(upload).model_dump(), "functions": rows}
        return json.dumps(document, separators=(",", ":")).encode()

    return Response(await server.reading.run(written), media_type="application/json")


@router.get("/functions/{reference}")
async def get_function(reference: str, server: ServerDep) -> api.FunctionBody:
    """One function with its code: ``upload:FILE:NUMBER`` or ``library:ID``."""

    def read() -> api.FunctionBody:
        return function_body(reference, *server.references.with_text(reference))

    return await server.reading.run(read)
