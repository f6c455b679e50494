"""The page's routes, and what stands around them: headers, theme, refusals as pages."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from tenure.board.board import Board
from tenure.board.refused import Refused
from tenure.doors.web import account, assets, endpoints, friends, home, lanes, runs, schedules, todo, vend
from tenure.doors.web.forms import text
from tenure.doors.web.guard import Headers, inner, protect, refused_page, signed_in, whose
from tenure.doors.web.live import Live
from tenure.doors.web.rendering import THEMES
from tenure.doors.web.sources import Source
from tenure.errors import NotFound, TenureError
from tenure.rules.refusal import MISSING, Refusal

log = logging.getLogger("tenure.board")
YEAR = 365 * 86_400


def web_app(board: Board, sources: Sequence[Source] = ()) -> Starlette:
    """The page as an ASGI app. `app.state.live.close()` ends its streams before a server stops."""
    known = {source.key: source for source in sources}
    live = Live(board, known)
    routes: list[BaseRoute] = [
        Route("/static/{version}/{name}", assets.serve),
        Route("/theme", signed_in(theme), methods=["POST"]),
        Route("/live/board", live.stream),
        Route("/live/runs/{source}", live.stream),
        *home.ROUTES,
        *lanes.ROUTES,
        *todo.ROUTES,
        *friends.ROUTES,
        *schedules.ROUTES,
        *account.ROUTES,
        *vend.ROUTES,
        *endpoints.ROUTES,
        *runs.ROUTES,
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Headers)],
        exception_handlers={Refused: _refused, TenureError: _failed, HTTPException: _http, Exception: _broken},
    )
    app.router.redirect_slashes = False  # its redirects name a scheme, and know nothing of the https before us
    app.state.board, app.state.sources, app.state.live = board, known, live
    return app


async def theme(request: Request) -> Response:
    """Keep light, dark, or what the system says; the next page is the one that was left."""
    form = request.state.form
    chosen = text(form, "theme")
    response = RedirectResponse(inner(request, text(form, "back")), 303)
    if chosen in THEMES:
        response.set_cookie("tenure_theme", chosen, max_age=YEAR, path="/", samesite="lax")
    return response


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)  # noqa: S101 - by the table above
    return refused_page(request, error.refusal)


async def _failed(request: Request, error: Exception) -> Response:
    """What a scheduler's store says. An unknown name is a missing page; its words would repeat what was asked."""
    if isinstance(error, NotFound):
        return refused_page(request, MISSING)
    return refused_page(request, Refusal("unavailable", str(error)))


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - by the table above
    if error.status_code == 404:
        try:
            await _known(request)
        except Refused as refused:  # whether it is there can't be told (B16)
            return refused_page(request, refused.refusal)
        return refused_page(request, MISSING)
    response = refused_page(request, Refusal("invalid_argument", "This address is not asked in that way."))
    response.status_code = error.status_code
    response.headers.update(error.headers or {})
    return response


async def _known(request: Request) -> None:
    """Whose page it is, so that one address that never was looks like one that is another's."""
    if not hasattr(request.state, "human"):
        await whose(request)


async def _broken(request: Request, error: Exception) -> Response:
    log.error("a page failed", exc_info=error)  # not which: an address may hold a sign-in link
    response = refused_page(request, Refusal("unavailable", "This page is broken: a fault of ours. It is in the log."))
    response.status_code = 500
    protect(request.scope, response.headers)  # it is answered outside of what does so for all others
    return response
