"""Signing in and out, and what is a human's own: password, tokens, sessions, friend code, and their audit."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tenure.board import audit, humans, signing_in, tokens
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.board.secrets import Secret
from tenure.board.signing_in import SignedIn
from tenure.doors.web.forms import LIFETIME_DAYS, Filled, problem_of, text, until
from tenure.doors.web.guard import (
    before_sign_in,
    board_of,
    drop_cookie,
    inner,
    read_form,
    set_cookie,
    signed_in,
    whose,
)
from tenure.doors.web.rendering import link, render
from tenure.doors.web.revealing import fresh, once

PAGE: Final = 50


# --- signing in -------------------------------------------------------------------------------------------


async def login(request: Request) -> Response:
    """Name and password."""
    if request.method == "GET":
        if await whose(request) is not None:
            return RedirectResponse(link(request, "/"), 303)
        return _form(request, to=inner(request, request.query_params.get("to", "")))
    before_sign_in(request)
    form = await read_form(request)
    name, to = text(form, "name"), inner(request, text(form, "to"))
    try:
        address = request.client.host if request.client else ""
        entered = await signing_in.by_password(
            board_of(request), name, text(form, "password"), address=address, agent=_agent(request)
        )
    except Refused as refused:
        if refused.refusal.code == "unavailable":
            raise
        status = 429 if refused.refusal.code == "rate_limited" else 401
        return _form(request, status=status, to=to, name=name, problem=refused.refusal.message)
    return _enter(request, entered, to)


def _form(request: Request, *, to: str, name: str = "", problem: str = "", status: int = 200) -> Response:
    cookie = before_sign_in(request)
    response = render(request, "account/login.html", status=status, nav="", to=to, name=name, problem=problem)
    set_cookie(request, response, "form", cookie, None)
    return response


async def by_link(request: Request) -> Response:
    """A one-time link. Looking at it uses nothing up, for programs look at links too; the button does."""
    secret = request.path_params["secret"]
    board = board_of(request)
    status, problem = 200, ""
    if request.method == "POST":
        before_sign_in(request)
        await read_form(request)
        try:
            entered = await board.database.write(signing_in.by_link, board, secret, _agent(request))
            return _enter(request, entered, link(request, "/"))
        except Refused as refused:
            if refused.refusal.code != "unauthenticated":
                raise
            status, problem = 401, refused.refusal.message
    cookie = before_sign_in(request)
    response = render(request, "account/link.html", status=status, nav="", problem=problem)
    set_cookie(request, response, "form", cookie, None)
    return response


def _agent(request: Request) -> str:
    return request.headers.get("user-agent", "")


def _enter(request: Request, entered: SignedIn, to: str) -> Response:
    board = board_of(request)
    response = RedirectResponse(to, 303)
    set_cookie(request, response, "session", entered.cookie.reveal(), board.settings.session_hours * 3600)
    drop_cookie(request, response, "form")
    return response


async def logout(request: Request) -> Response:
    """End this session."""
    board = board_of(request)
    human = request.state.human
    await board.database.write(signing_in.end_session, board, human, human.via_id)
    response = RedirectResponse(link(request, "/login"), 303)
    drop_cookie(request, response, "session")
    return response


# --- settings ---------------------------------------------------------------------------------------------


async def settings(request: Request) -> Response:
    """Password, tokens, sessions, friend code."""
    return await _settings(request)


async def _settings(request: Request, status: int = 200, minted: Secret | None = None, **more: Any) -> Response:
    board = board_of(request)
    human = request.state.human

    def read(tx: Tx) -> dict[str, Any]:
        return {
            "now": tx.now(),
            "tokens": tokens.list_all(tx, board, human),
            "sessions": signing_in.sessions(tx, board, human),
            "code": humans.friend_code(tx, board, human),
        }

    known = {"problems": Filled(), "typed": Filled(), "days": LIFETIME_DAYS, "once": fresh()}
    secret = None if minted is None else minted.reveal()
    values = {**known, **more, **await board.database.read(read), "minted": secret}
    return render(
        request, "account/settings.html", status=status, nav="settings", path=link(request, "/settings"), **values
    )


async def password(request: Request) -> Response:
    """Another password; other sessions end."""
    form, board = request.state.form, board_of(request)
    new = text(form, "password")
    if new != text(form, "again"):
        return await _settings(request, 400, problems=Filled(again="The two are not the same; type both anew."))
    try:
        await signing_in.set_password(board, request.state.human, new)
    except Refused as refused:
        return await _settings(request, 400, problems=problem_of(refused.refusal, "password", "again"))
    return _back(request, "saved")


async def add_token(request: Request) -> Response:
    """A new token, which is shown once, here."""
    form, board = request.state.form, board_of(request)
    name = text(form, "token_name")

    def make(tx: Tx) -> Secret:
        return tokens.create(tx, board, request.state.human, name, until(form, tx.now())).secret

    try:
        minted = await once(request, "token", make, lambda _: "/settings")
    except Refused as refused:
        problems = Filled(token_name=problem_of(refused.refusal, "name")["name"])
        typed = Filled(token_name=name, days=text(form, "days"))
        return await _settings(request, 400, problems=problems, typed=typed)
    return minted if isinstance(minted, Response) else await _settings(request, minted=minted)


async def revoke_token(request: Request) -> Response:
    """End a token."""
    board = board_of(request)
    await board.database.write(tokens.revoke, board, request.state.human, request.path_params["id"])
    return _back(request, "ended")


async def end_session(request: Request) -> Response:
    """End a session."""
    board = board_of(request)
    await board.database.write(signing_in.end_session, board, request.state.human, request.path_params["id"])
    return _back(request, "ended")


async def new_code(request: Request) -> Response:
    """Another friend code; the old one finds nobody any more."""
    board = board_of(request)
    await board.database.write(humans.new_friend_code, board, request.state.human)
    return _back(request, "saved")


def _back(request: Request, said: str) -> Response:
    return RedirectResponse(link(request, f"/settings?said={said}"), 303)


# --- activity ---------------------------------------------------------------------------------------------


async def activity(request: Request) -> Response:
    """Who did what, newest first."""
    board = board_of(request)
    before = request.query_params.get("before") or None
    if before is not None and not before.isalnum() and not before.replace("_", "").isalnum():
        before = None

    def read(tx: Tx) -> tuple[int, list[audit.Entry]]:
        return tx.now(), audit.list_page(tx, board, request.state.human, before=before, limit=PAGE + 1)

    now, found = await board.database.read(read)
    older = found[PAGE - 1].id if len(found) > PAGE else None
    live = "/live/board" if before is None else ""
    return render(
        request, "account/activity.html", nav="activity", live=live, now=now, entries=found[:PAGE], older=older
    )


ROUTES: Final = [
    Route("/login", login, methods=["GET", "POST"]),
    Route("/login/{secret}", by_link, methods=["GET", "POST"]),
    Route("/logout", signed_in(logout), methods=["POST"]),
    Route("/settings", signed_in(settings)),
    Route("/settings/password", signed_in(password), methods=["POST"]),
    Route("/settings/tokens", signed_in(add_token), methods=["POST"]),
    Route("/settings/tokens/{id}/revoke", signed_in(revoke_token), methods=["POST"]),
    Route("/settings/sessions/{id}/end", signed_in(end_session), methods=["POST"]),
    Route("/settings/friend-code", signed_in(new_code), methods=["POST"]),
    Route("/activity", signed_in(activity)),
]
