"""The application: the API, the page, and what they are wrapped in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from graphkin import __version__
from graphkin.errors import GraphkinError
from graphkin.library.library import Library
from graphkin.web import api_documents as api
from graphkin.web.guard import Guard, cookie_of, same, session_of
from graphkin.web.http_errors import ERRORS, RequestError, body, document, status_of
from graphkin.web.routes import binaries, diffs, graphs, library, scans, search
from graphkin.web.server import Options, Server, ServerDep

STATIC = Path(str(files("graphkin.web"))) / "static"
STYLE = Path(str(files("graphkin.results.html"))) / "pages" / "common.css"
REVALIDATE = {"Cache-Control": "no-cache"}


def create_app(opened: Library, options: Options) -> FastAPI:
    """The server of a library that is open; it is closed by whoever opened it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.server = server = Server(opened, options)
        warming = asyncio.create_task(asyncio.to_thread(server.warm_up)) if options.warm else None
        try:
            yield
        finally:
            if warming is not None:
                await warming
            server.close()

    app = FastAPI(
        title="graphkin",
        version=__version__,
        description="Finds a function's kin in a library of compiled code.",
        lifespan=lifespan,
        openapi_url="/api/openapi.json",
        docs_url=None,
        redoc_url=None,
        generate_unique_id_function=lambda route: route.name,
    )
    app.add_exception_handler(GraphkinError, _graphkin_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _unexpected)
    for routes in (binaries, graphs, search, scans, diffs, library):
        app.include_router(routes.router)
    _add_status(app)
    _add_session(app, options)
    _add_page(app)
    app.add_middleware(Guard, limits=options.limits, token=options.token)
    return app


def _add_status(app: FastAPI) -> None:
    @app.get("/api/status", tags=["server"], responses=ERRORS)
    async def status(server: ServerDep) -> api.Status:
        """What the server is, and what it can do."""
        model = server.library.model
        return api.Status(
            version=__version__,
            library=server.options.shown_name,
            temporary=server.options.temporary,
            model=str(model.model_id),
            kind="functions" if model.reads_functions else "graphs",
            functions=len(server.library),
            can_rerank=model.matcher is not None,
            calibrated=model.knows_probabilities,
            writable=not server.options.read_only,
            warnings=await asyncio.to_thread(server.warnings),
            limits=api.ServerLimits.model_validate(vars(server.limits)),
        )


def _add_session(app: FastAPI, options: Options) -> None:
    @app.post("/api/session", status_code=204, tags=["server"], responses=ERRORS)
    async def session(request: api.SessionRequest) -> Response:
        """Let a browser in: the answer sets a cookie that stands for the token."""
        token = options.token
        if token is not None and not same(request.token, token):
            raise RequestError(401, "this is not the token that the server was started with")
        response = Response(status_code=204)
        if token is not None:
            response.set_cookie(
                cookie_of(token), session_of(token), httponly=True, samesite="strict"
            )
        return response


def _add_page(app: FastAPI) -> None:
    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(STATIC / "index.html", headers=REVALIDATE)

    @app.get("/api/docs", include_in_schema=False)
    async def docs() -> FileResponse:
        return FileResponse(STATIC / "api-docs.html", headers=REVALIDATE)

    @app.get("/static/common.css", include_in_schema=False)
    async def style() -> FileResponse:
        return FileResponse(STYLE, headers=REVALIDATE)

    app.mount("/static", _Files(directory=STATIC))


class _Files(StaticFiles):
    """Files that a browser asks for again each time, and mostly hears that it has them."""

    def file_response(self, *arguments: object, **named: object) -> Response:
        response = super().file_response(*arguments, **named)  # type: ignore[arg-type]
        response.headers.update(REVALIDATE)
        return response


async def _graphkin_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, GraphkinError)
    status = status_of(error)
    headers = {"Retry-After": "5"} if status == 503 else None
    return JSONResponse(document(error), status, headers=headers)


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    field = ".".join(str(part) for part in first["loc"][1:])
    message = f"{field}: {first['msg']}" if field else str(first["msg"])
    if not field and first["type"] in ("model_attributes_type", "dict_type"):
        message = "the request must be a JSON object; send it with Content-Type: application/json"
    return JSONResponse(body("ConfigError", message), 400)


async def _http_error(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return JSONResponse(body("RequestError", error.detail), error.status_code)


async def _gone(_: Request, __: Exception) -> Response:
    """A client that hung up: nobody reads the answer, and the log need not tell."""
    return Response(status_code=400)


async def _unexpected(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse(body("InternalError", "the server failed; its log says why"), 500)
