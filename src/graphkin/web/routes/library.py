"""The library: what is in it, what is added to it and removed."""

from __future__ import annotations

import asyncio
from glob import escape
from itertools import islice
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from graphkin.errors import ConfigError
from graphkin.library.records import Filter
from graphkin.results.document import LibraryContent
from graphkin.results.text import encodable
from graphkin.web import schema as api
from graphkin.web.additions import AdditionJob
from graphkin.web.contents import binaries_of
from graphkin.web.events import stream
from graphkin.web.reading import library_function
from graphkin.web.routes.shared import ERRORS, Here

router = APIRouter(prefix="/api/library", tags=["library"], responses=ERRORS)

MOST_COUNTS = 200
Condition = Annotated[str, Query(max_length=10_000)]


@router.get("")
async def library_summary(here: Here) -> LibraryContent:
    """How much the library holds, and of what; the largest counts first."""
    stats = await asyncio.to_thread(here.index.stats)
    counts = {
        name: {encodable(key): count for key, count in islice(stats[name].items(), MOST_COUNTS)}
        for name in ("architectures", "compilers", "builds", "tags", "top_binaries")
    }
    return LibraryContent(library=here.options.shown_name, **{**stats, **counts})


@router.get("/binaries")
async def library_binaries(here: Here) -> api.LibraryBinaries:
    """Its binaries, by name."""
    found = await asyncio.to_thread(binaries_of, here.index)
    return api.LibraryBinaries(binaries=found)


@router.get("/functions")
async def library_functions(
    here: Here,
    function: Condition = "",
    binary: Condition = "",
    file_hash: Condition = "",
    architecture: Condition = "",
    compiler: Condition = "",
    after: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> api.LibraryFunctions:
    """Its functions, page by page; texts take the wildcards ``*``, ``?`` and ``[...]``."""
    part = Filter(
        function=function or None,
        binary=binary or None,
        file_hash=file_hash or None,
        architecture=architecture or None,
        compiler=compiler or None,
    )

    def page() -> api.LibraryFunctions:
        found = list(islice(here.index.engine.scan(part, after), limit + 1))
        more = found[limit - 1].id if len(found) > limit else None
        return api.LibraryFunctions(
            functions=[library_function(stored) for stored in found[:limit]], next=more
        )

    return await asyncio.to_thread(page)


@router.post("/additions", status_code=202)
async def add_binary(request: api.AdditionRequest, here: Here) -> api.Addition:
    """Add the functions of an uploaded file; it waits for those before it."""
    here.check_writable()
    upload = here.uploads.get(request.binary)
    job = AdditionJob(here.index, upload, request, here.kept, here.limits)
    return here.additions.add(job).body()


@router.get("/additions/{addition}")
async def get_addition(addition: str, here: Here) -> api.Addition:
    """How far an addition is."""
    return here.additions.get(addition).body()


@router.get("/additions/{addition}/events", response_class=StreamingResponse)
async def addition_events(addition: str, here: Here) -> StreamingResponse:
    """Server-sent events: ``progress``, and at last ``end``."""
    job = here.additions.get(addition)
    return stream(job, job.body)


@router.post("/removals")
async def remove_binary(request: api.RemovalRequest, here: Here) -> api.Removal:
    """Remove all functions of a binary, by its path, its hash or both."""
    here.check_writable()
    if not (request.file_hash or request.binary):
        raise ConfigError("name what to remove: file_hash, or binary")
    part = Filter(
        file_hash=escape(request.file_hash) if request.file_hash else None,
        binary=escape(request.binary) if request.binary else None,
    )

    def work() -> api.Removal:
        removed = here.index.remove(part)
        return api.Removal(removed=removed, entries=len(here.index))

    return await asyncio.to_thread(work)
