"""Pictures of graphs of somebody's own."""

from __future__ import annotations

from fastapi import APIRouter, Response

from graphkin.errors import ModelError
from graphkin.results.drawing.force import force_layout
from graphkin.results.html.graph import graph_picture
from graphkin.web.http_errors import ERRORS, text_of
from graphkin.web.server import ServerDep

router = APIRouter(prefix="/api/graphs", tags=["functions"], responses=ERRORS)

SVG = "image/svg+xml"


@router.get("/{reference}/picture.svg", response_class=Response, responses=text_of(SVG))
async def graph_file(reference: str, server: ServerDep) -> Response:
    """A graph laid out by forces, with the labels of its nodes."""

    def drawn() -> str:
        shown = server.references.graph(reference)
        most = server.limits.query_blocks
        if shown.graph.num_nodes > most:
            raise ModelError(
                f"the graph has {shown.graph.num_nodes:,} nodes; the server draws those of at most "
                f"{most:,}"
            )
        return graph_picture(shown, force_layout(shown.graph))

    return Response(await server.computing.run(drawn), media_type=SVG)
