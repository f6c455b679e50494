"""The application of `/api/v1`, and its description as OpenAPI 3.1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute, RouteContext, iter_route_contexts
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import compile_path

from tenure.board.board import Board
from tenure.doors.rest import answers, endpoints, friends, people, schedules, todos, webhooks
from tenure.doors.wire.refusals import BROKEN, PROBLEM, STATUS
from tenure.rules.refusal import MISSING

OPENAPI: Final = "/api/v1/openapi.json"


def rest_app(board: Board, version: str, origins: Sequence[str]) -> FastAPI:
    """The ASGI app of `/api/v1`. `origins`: whose pages may send requests here; programs name none."""
    app = FastAPI(
        title="Tenure board", version=version, openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False
    )
    app.state.board, app.state.origins = board, tuple(origins)
    for part in (endpoints, todos, schedules, webhooks, friends, people):
        app.include_router(part.router)
    app.add_exception_handler(HTTPException, _unrouted)
    app.add_exception_handler(Exception, _broken)
    described: list[Response] = []

    async def document(_: Request) -> Response:
        if not described:
            described.append(answers.Json(describe(app)))
        return described[0]

    app.add_route(OPENAPI, document, include_in_schema=False)
    return app


async def _unrouted(request: Request, error: Exception) -> Response:
    """What the router itself refuses. An unknown path is answered like an unknown id (B26)."""
    if isinstance(error, HTTPException) and error.status_code == 405:
        allowed = ", ".join(methods_of(request.app, request.url.path))
        detail = f"This path knows no such method; it has: {allowed}."
        return answers.unrouted(405, detail, "method_not_allowed", {"Allow": allowed})
    return answers.refused(MISSING)


async def _broken(_: Request, __: Exception) -> Response:
    """The answer to a fault of ours; it is raised on, to be logged."""
    return answers.unrouted(500, BROKEN, "broken")


def routes_of(app: FastAPI) -> Iterator[RouteContext]:
    """The routes of REST: path, method, function."""
    return (route for route in iter_route_contexts(app.routes) if isinstance(route.original_route, APIRoute))


def methods_of(app: FastAPI, path: str) -> list[str]:
    """The methods that a path knows."""
    here = (route for route in routes_of(app) if compile_path(route.path or "")[0].match(path))
    return sorted({method for route in here for method in route.methods or ()})


def describe(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document: FastAPI's, with how one signs in, and the refusals that every route may answer with."""
    document = get_openapi(
        title=app.title, version=app.version, openapi_version="3.1.0", description=_TEXT, routes=app.routes
    )
    parts = document.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"] = _PROBLEM
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer", "description": "A human's token."}}
    document["security"] = [{"token": []}]
    for path in document["paths"].values():
        for method, operation in path.items():
            _add_refusals(operation["responses"], creates=method == "post")
            _add_headers(operation, method)
    return document


def _add_refusals(responses: dict[str, Any], *, creates: bool) -> None:
    responses.pop("422", None)
    for code, status in STATUS.items():
        responses[str(status)] = {
            "description": code,
            "content": {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        }
    if creates and "201" in responses:
        responses["200"] = {**responses["201"], "description": "It was there already: the same request came before."}


def _add_headers(operation: dict[str, Any], method: str) -> None:
    parameters = operation.setdefault("parameters", [])
    if "201" in operation["responses"]:
        parameters.append(_header("Idempotency-Key", "Drawn at random: the same request again makes nothing new.", 16))
    elif method != "get" and _told(operation) in ("Endpoint", "Vended", "Schedule"):
        parameters.append(_header("If-Match", "The ETag that was read: refused with 412 if it has changed since.", 1))


def _told(operation: dict[str, Any]) -> str:
    """The name of the schema of what is answered."""
    content = operation["responses"].get("200", {}).get("content", {}).get("application/json", {})
    return str(content.get("schema", {}).get("$ref", "")).rpartition("/")[2]


def _header(name: str, text: str, least: int) -> dict[str, Any]:
    schema = {"type": "string", "minLength": least, "maxLength": 64, "pattern": "^[!-~]+$"}
    return {"in": "header", "name": name, "required": False, "description": text, "schema": schema}


_TEXT: Final = (
    "Todos that agents hold on leases, and the endpoints that work on them. Every request carries a human's token as "
    "a bearer token; what is another human's is answered like what does not exist."
)
_PROBLEM: Final = {
    "title": "Problem",
    "description": "A refusal (RFC 9457). `code` is for programs, `detail` for people; other members depend on it.",
    "type": "object",
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "code": {"type": "string", "enum": sorted(STATUS)},
        "field": {"type": "string", "description": "Which argument was refused."},
        "reason": {"type": "string", "description": "Why there is a conflict."},
    },
    "required": ["type", "title", "status", "detail", "code"],
}
