"""Files that a client sends, and their functions."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from graphkin.results.document import FunctionCode, GraphContent
from graphkin.results.function import code_of
from graphkin.results.text import address_text, encodable
from graphkin.web import api_documents as api
from graphkin.web.http_errors import ERRORS, RequestError
from graphkin.web.server import ServerDep
from graphkin.web.upload_reader import UploadedFunction
from graphkin.web.uploads import Upload

router = APIRouter(prefix="/api", tags=["functions"], responses=ERRORS)

BYTES = {
    "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
}


@router.post(
    "/binaries",
    status_code=201,
    response_model=api.Binary,
    openapi_extra={"requestBody": {**BYTES, "required": True}},
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
    try:
        upload = await server.receiving.run(lambda: server.uploads.take(path, digest, name))
    finally:
        # It may have been refused, or the client gone, before anybody took the file.
        server.uploads.discard(path)
    return upload.document()


@router.get("/binaries")
async def list_binaries(server: ServerDep) -> list[api.Binary]:
    """The files that the server still has, the newest first."""
    return [upload.document() for upload in server.uploads.newest_first()]


@router.get("/binaries/{binary}")
async def get_binary(binary: str, server: ServerDep) -> api.Binary:
    """One of them."""
    return server.uploads.get(binary).document()


@router.get("/binaries/{binary}/functions", response_model=api.UploadedFunctionList)
async def list_functions(binary: str, server: ServerDep) -> Response:
    """All its functions, in the order of the file."""

    def written() -> bytes:
        upload = server.uploads.get(binary)
        functions = server.uploads.functions(binary)
        rows = [_row(number, function, upload) for number, function in enumerate(functions)]
        document = {"binary": upload.document().model_dump(), "functions": rows}
        return json.dumps(document, separators=(",", ":")).encode()

    return Response(await server.reading.run(written), media_type="application/json")


@router.get("/functions/{reference}")
async def get_function(reference: str, server: ServerDep) -> FunctionCode | GraphContent:
    """One function with its code, or one graph: ``upload:FILE:NUMBER`` or ``library:ID``."""

    def read() -> FunctionCode | GraphContent:
        if not server.library.model.reads_functions:
            return server.references.graph(reference).document(reference)
        function, has_text = server.references.with_text(reference)
        return code_of(function, reference, has_text=has_text)

    return await server.reading.run(read)


def _row(number: int, function: UploadedFunction, upload: Upload) -> dict[str, Any]:
    """A row of :class:`api.FunctionRow`; there may be many thousands, so they are not checked."""
    return {
        "number": number,
        "function": encodable(function.name),
        "demangled": None if function.demangled is None else encodable(function.demangled),
        "binary": encodable(upload.label(function)),
        "address": None if function.address is None else address_text(function.address),
        "size": function.size,
        "blocks": function.blocks,
        "edges": function.edges,
        "member": None if function.member is None else encodable(function.member.removeprefix("!")),
        "unit": None if function.unit is None else encodable(function.unit),
        "label": None if function.label is None else encodable(function.label),
    }
