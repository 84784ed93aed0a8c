"""Search for the kin of a function, and compare two functions."""

from __future__ import annotations

import asyncio
from time import monotonic
from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import HTMLResponse

from graphkin.errors import ConfigError, ModelError
from graphkin.library.compare import ComparedFunctions, compare_functions
from graphkin.library.compare_graphs import ComparedGraphs, compare_graphs
from graphkin.library.processors import hit_processors, processor_warnings
from graphkin.library.records import SearchOptions
from graphkin.library.scan import look_up
from graphkin.results.document import Comparison
from graphkin.results.html.comparison import comparison_page, graph_comparison_page
from graphkin.web import api_documents as api
from graphkin.web.http_errors import ERRORS, text_of
from graphkin.web.server import Server, ServerDep
from graphkin.web.upload_reader import bounded

router = APIRouter(prefix="/api", tags=["search"], responses=ERRORS)

Side = Annotated[str, Query(description="upload:FILE:NUMBER or library:ID", max_length=100)]


@router.post("/search")
async def search(request: api.SearchRequest, server: ServerDep) -> api.SearchAnswer:
    """The nearest functions of the library by code, the first of them reranked by matching."""
    limits = server.limits
    for name, value, most in (
        ("top", request.top, limits.top),
        ("rerank", request.rerank, limits.rerank),
    ):
        if value > most:
            raise ConfigError(f"{name} is at most {most} here, got {value}")
    options = SearchOptions(
        request.top,
        server.rerank(request.rerank),
        request.where.filter(),
        request.min_probability,
    )

    def work() -> api.SearchAnswer:
        began = monotonic()
        query = server.references.query(request.query)
        if query.graph.num_nodes > limits.query_blocks:
            raise ModelError(
                f"the function has {query.graph.num_nodes:,} blocks; the server searches for "
                f"functions of at most {limits.query_blocks:,}, the command line for any"
            )
        query = server.references.encoded(request.query)
        (result,) = look_up(server.library, [query], options)
        seconds = round(monotonic() - began, 4)
        processors = {query.architecture, *hit_processors([result])}
        warnings = processor_warnings(server.library.model, processors)
        return api.SearchAnswer(**dict(bounded(result)), seconds=seconds, warnings=warnings)

    return await server.computing.run(work)


@router.get("/comparison")
async def comparison(left: Side, right: Side, server: ServerDep) -> Comparison:
    """How alike two functions are, and the strongest pairs of their blocks; or two graphs."""
    if not server.library.model.reads_functions:
        return (await _compared_graphs(server, left, right)).document
    return (await _compared(server, left, right)).document


@router.get("/comparison.html", response_class=Response, responses=text_of("text/html"))
async def comparison_file(
    left: Side, right: Side, server: ServerDep, download: bool = False
) -> HTMLResponse:
    """Both functions or graphs side by side, as one page that needs nothing else."""
    if server.library.model.reads_functions:
        compared = await _compared(server, left, right)
        page = await server.computing.run(
            lambda: comparison_page(compared.document, *compared.functions, compared.maps)
        )
    else:
        graphs = await _compared_graphs(server, left, right)
        page = await server.computing.run(
            lambda: graph_comparison_page(graphs.document, *graphs.sides, graphs.maps)
        )
    headers = {"Content-Disposition": 'attachment; filename="comparison.html"'} if download else {}
    return HTMLResponse(page, headers=headers)


async def _compared(server: Server, left: str, right: str) -> ComparedFunctions:
    read = server.references.with_text
    (first, _), (second, _) = await asyncio.gather(
        server.reading.run(lambda: read(left)), server.reading.run(lambda: read(right))
    )
    _check_size(server, len(first.blocks), len(second.blocks), "block")
    # As the library or the upload has them: a file that is gone has left its graphs.
    graphs = server.references.query(left).graph, server.references.query(right).graph
    return await server.computing.run(
        lambda: compare_functions(server.library.model, first, second, (left, right), graphs)
    )


async def _compared_graphs(server: Server, left: str, right: str) -> ComparedGraphs:
    def work() -> ComparedGraphs:
        first, second = map(server.references.named_graph, (left, right))
        _check_size(server, first.graph.num_nodes, second.graph.num_nodes, "node")
        return compare_graphs(first, second, server.library.model, references=(left, right))

    return await server.computing.run(work)


def _check_size(server: Server, left: int, right: int, item: str) -> None:
    if left * right > server.limits.comparison_weights:
        raise ModelError(
            f"{left:,} and {right:,} {item}s are too many to compare here; use graphkin compare"
        )
