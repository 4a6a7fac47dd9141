"""Puts the page's server together: the API, the built page, and the guard around both."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from topos_web import api, static, tracing
from topos_web.events import Hub
from topos_web.plans import Plans
from topos_web.security import Guard
from topos_web.static import StaticFile
from topos_web.tracing import Tracer


def build(plans: Plans, hub: Hub, token: str, files: dict[str, StaticFile], *, framed: bool = False) -> ASGIApp:
    """Builds the guarded application; `framed` lets VS Code show its page in a panel."""
    app = FastAPI(title="topos viewer", version="1", docs_url=None, redoc_url=None, openapi_url="/api/v1/openapi.json")
    app.include_router(api.router(plans, hub))
    app.include_router(tracing.router(Tracer(plans, hub), api.PROBLEMS, api.answer, api.only_known))
    app.add_exception_handler(api.Refused, api.refused)
    app.add_exception_handler(RequestValidationError, api.unreadable)
    app.add_exception_handler(HTTPException, api.refused_by_framework)
    index = static.page(files, token)

    @app.get("/", include_in_schema=False)
    @app.head("/", include_in_schema=False)
    def page() -> Response:
        return Response(index, media_type="text/html; charset=utf-8", headers={"cache-control": "no-store"})

    @app.get("/{name}", include_in_schema=False)
    @app.head("/{name}", include_in_schema=False)
    def file(request: Request, name: str) -> Response:
        found = files.get(name)
        if found is None or name == "index.html":
            return Response(f"no file {name} here\n", status_code=404, media_type="text/plain")
        headers = {"etag": found.etag, "cache-control": "no-cache"}
        if found.etag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(found.body, media_type=found.media_type, headers=headers)

    return Guard(app, token, frozenset(files), framed=framed)
