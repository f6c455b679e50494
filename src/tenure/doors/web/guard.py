"""Who may: sessions, forms that come from our own pages, sizes, rates; and the headers that every answer carries.

Two checks stand before every form, each enough by itself (B46, B51): the browser says that the request comes from our
own page (Sec-Fetch-Site, else Origin), and the form carries what only that session's pages know.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import parse_qsl, quote, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tenure.board import access, buckets
from tenure.board.access import Human
from tenure.board.board import Board
from tenure.board.refused import Refused
from tenure.board.secrets import digest
from tenure.doors.web.forms import Form, text
from tenure.doors.web.rendering import link, render
from tenure.rules.bounds import JSON_BYTES
from tenure.rules.refusal import Refusal

Page = Callable[[Request], Awaitable[Response]]

FORM_BYTES: Final = 64 * 1024
TODO_BYTES: Final = 2 * JSON_BYTES
FIELDS: Final = 200
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
FORGED: Final = Refusal(
    "forbidden",
    "This form did not come from a page of this sign-in, so nothing was changed. Open the page again and send it anew.",
)
NO_FORM: Final = Refusal("invalid_argument", "What was sent is no form of this page, so nothing was changed.")
TOO_LARGE: Final = Refusal("payload_too_large", "The form is larger than this page takes, so nothing was changed.")


class Headers:
    """Puts the security headers on every answer; pages are kept by nobody, for they show what is a human's own."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                protect(scope, MutableHeaders(scope=message))
            await send(message)

        await self.app(scope, receive, with_headers if scope["type"] == "http" else send)


def protect(scope: Scope, headers: MutableHeaders) -> None:
    """Put on what every answer carries."""
    if "/login/" in scope["path"]:  # the address holds a secret: no other page is told of it
        headers["Referrer-Policy"] = "no-referrer"
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    headers.setdefault("Cache-Control", "no-store")


# --- sessions ---------------------------------------------------------------------------------------------


def encrypted(request: Request) -> bool:
    """Whether the browser speaks https to us, by ourselves or by what stands before us under the public address."""
    public = urlsplit(board_of(request).settings.public_url)
    called, known = (name.lower().removesuffix(":443") for name in (request.headers.get("host", ""), public.netloc))
    before_us = public.scheme == "https" and called == known
    return before_us or request.url.scheme == "https"


def cookie_name(request: Request, name: str = "session") -> str:
    """A cookie's name; over https one that the browser takes from this very host alone."""
    return f"__Host-tenure-{name}" if encrypted(request) else f"tenure-{name}"


def set_cookie(request: Request, response: Response, name: str, value: str, seconds: int | None) -> None:
    """Give a cookie that no script reads."""
    response.set_cookie(
        cookie_name(request, name),
        value,
        max_age=seconds,
        path="/",
        httponly=True,
        secure=encrypted(request),
        samesite="lax",
    )


def drop_cookie(request: Request, response: Response, name: str) -> None:
    """Take a cookie away."""
    response.delete_cookie(
        cookie_name(request, name), path="/", httponly=True, secure=encrypted(request), samesite="lax"
    )


def board_of(request: Request) -> Board:
    """The board that this page is of."""
    board: Board = request.app.state.board
    return board


async def whose(request: Request) -> Human | None:
    """The human whose session this is; None without one. Raises Refused when the database can't tell (B16)."""
    board = board_of(request)
    cookie = request.cookies.get(cookie_name(request), "")
    # Forms write down that the session is in use; pages that refresh themselves don't.
    ask = board.database.write if request.method == "POST" else board.database.read
    try:
        human = await ask(access.human_by_session, board, cookie)
    except Refused as refused:
        if refused.refusal.code == "unauthenticated":
            return None
        raise
    request.state.human, request.state.csrf = human, human.csrf
    return human


def signed_in(page: Page) -> Page:
    """For signed-in humans; others are sent to sign in, and come back here after it."""

    async def guarded(request: Request) -> Response:
        human = await whose(request)
        if human is None and "hx-request" in request.headers:
            return Response(status_code=401)  # a page that refreshes itself stays as it is until its stream tells it
        if human is None:
            here = str(request.url.replace(scheme="", netloc="")) if request.method == "GET" else "/"
            return RedirectResponse(link(request, "/login") + (f"?to={quote(here)}" if here != "/" else ""), 303)
        await buckets.spend(board_of(request), "writes" if request.method == "POST" else "reads", human.id)
        if request.method == "POST":
            await read_form(request)
        return await page(request)

    return guarded


def inner(request: Request, path: str) -> str:
    """Where to go next: the path that was asked for if it is one of this host, else the overview."""
    ours = path.startswith("/") and not path.startswith(("//", "/\\")) and path.isprintable()
    return path if ours else link(request, "/")


# --- forms ------------------------------------------------------------------------------------------------


def from_here(request: Request) -> bool:
    """Whether the browser says that this request was made by a page of ours."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc == request.headers.get("host", "")


async def fields(request: Request) -> Form:
    """What a form of ours carries. Raises Refused: sent from elsewhere, too large, or no form."""
    if not from_here(request):
        raise Refused(FORGED)
    if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
        raise Refused(Refusal("unsupported_media_type", "This page takes forms, and nothing else."))
    body, most = bytearray(), TODO_BYTES if request.url.path.endswith(_LARGE) else FORM_BYTES
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise Refused(TOO_LARGE)
    except ClientDisconnect:  # nobody is there to be told
        raise Refused(NO_FORM) from None
    try:
        told = bytes(body).decode("ascii")  # what is not is sent in percents
        return Form(parse_qsl(told, keep_blank_values=True, errors="strict", max_num_fields=FIELDS))
    except ValueError:
        raise Refused(NO_FORM) from None


async def read_form(request: Request) -> Form:
    """A form with its session's token, kept in `request.state.form` too. Raises Refused."""
    form = await fields(request)
    expected: str = request.state.csrf
    if not hmac.compare_digest(text(form, "csrf").encode(), expected.encode()):
        raise Refused(FORGED)
    request.state.form = form
    return form


# Where a todo or a result is sent: these may be as large as what they carry.
_LARGE: Final = ("/todos", "/complete")


def before_sign_in(request: Request) -> str:
    """A form before any session: its token is made from a cookie of its own. Returns the cookie to give."""
    cookie = request.cookies.get(cookie_name(request, "form"), "") or secrets.token_hex(32)
    request.state.csrf = digest(f"form:{cookie}")
    return cookie


def refused_page(request: Request, refusal: Refusal) -> Response:
    """The page for what was refused as a whole. It repeats nothing of what was asked."""
    from tenure.doors.wire.refusals import STATUS

    headline = "There is nothing here" if refusal.code == "not_found" else "That did not work"
    status, home = STATUS[refusal.code], link(request, "/")
    response = render(
        request, "refused.html", status=status, headline=headline, message=refusal.message, nav="", path=home, query=""
    )
    if refusal.code == "rate_limited":
        response.headers["Retry-After"] = str(refusal.details.get("retry_after_seconds", 1))
    return response
