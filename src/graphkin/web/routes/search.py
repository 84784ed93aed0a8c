"""Search for the kin of a function, and compare two functions."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from graphkin.errors import ConfigError, ModelError
from graphkin.library.compare import ComparedFunctions, compare
from graphkin.library.records import SearchOptions
from graphkin.library.scan import look_up
from graphkin.results.document import Comparison
from graphkin.results.html.comparison import comparison_page
from graphkin.web import schema as api
from graphkin.web.reading import bounded
from graphkin.web.routes.shared import ERRORS, Here
from graphkin.web.server import Server

router = APIRouter(prefix="/api", tags=["search"], responses=ERRORS)

Side = Annotated[str, Query(description="upload:FILE:NUMBER or library:ID", max_length=100)]


@router.post("/search")
async def search(request: api.SearchRequest, here: Here) -> api.SearchAnswer:
    """The nearest functions of the library by code, the first of them reranked by matching."""
    limits = here.limits
    for name, value, most in (
        ("top", request.top, limits.top),
        ("rerank", request.rerank, limits.rerank),
    ):
        if value > most:
            raise ConfigError(f"{name} is at most {most} here, got {value}")
    options = SearchOptions(request.top, request.rerank, request.where.filter())

    def work() -> api.SearchAnswer:
        began = monotonic()
        query = here.references.query(request.query)
        if query.graph.num_nodes > limits.query_blocks:
            raise ModelError(
                f"the function has {query.graph.num_nodes:,} blocks; the server searches for "
                f"functions of at most {limits.query_blocks:,}, the command line for any"
            )
        (result,) = look_up(here.index, [query], options)
        seconds = round(monotonic() - began, 4)
        return api.SearchAnswer(**dict(bounded(result)), seconds=seconds)

    return await here.computing.run(work)


@router.get("/comparison")
async def compare_functions(left: Side, right: Side, here: Here) -> Comparison:
    """How alike two functions are, and the strongest pairs of their blocks."""
    return (await _compared(here, left, right)).document


@router.get("/comparison.html", response_class=HTMLResponse)
async def comparison_file(
    left: Side, right: Side, here: Here, download: bool = False
) -> HTMLResponse:
    """Both functions side by side, as one page that needs nothing else."""
    compared = await _compared(here, left, right)
    page = await here.computing.run(
        lambda: comparison_page(compared.document, *compared.functions, compared.maps)
    )
    headers = {"Content-Disposition": 'attachment; filename="comparison.html"'} if download else {}
    return HTMLResponse(page, headers=headers)


async def _compared(here: Server, left: str, right: str) -> ComparedFunctions:
    read = here.references.with_text
    (first, _), (second, _) = await asyncio.gather(
        here.reading.run(lambda: read(left)), here.reading.run(lambda: read(right))
    )
    weights = len(first.blocks) * len(second.blocks)
    if weights > here.limits.comparison_weights:
        raise ModelError(
            f"functions of {len(first.blocks):,} and {len(second.blocks):,} blocks are too large "
            "to compare here; use graphkin compare"
        )
    return await here.computing.run(lambda: compare(here.index.model, first, second, (left, right)))
