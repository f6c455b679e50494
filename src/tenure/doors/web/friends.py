"""Friends: asking, answering, collecting the credential once, and ending."""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tenure.board import agents, friends, humans
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.doors.web.forms import LIFETIME_DAYS, Filled, lease, names, problem_of, text, texts, until
from tenure.doors.web.guard import board_of, signed_in
from tenure.doors.web.rendering import link, render
from tenure.doors.web.revealing import shown
from tenure.doors.web.vend import LEASE, SAYS
from tenure.rules.endpoints import DRAIN, GRANTABLE
from tenure.rules.refusal import MISSING


async def index(request: Request) -> Response:
    """All friendships, and the form that asks for one."""
    return await _page(request)


async def _page(
    request: Request, status: int = 200, at: str = "", problems: Filled | None = None, typed: Filled | None = None
) -> Response:
    """at: the friendship, by id, or `ask`, whose form was refused."""
    board, human = board_of(request), request.state.human

    def read(tx: Tx) -> dict[str, Any]:
        found = friends.list_all(tx, board, human)
        return {
            "now": tx.now(),
            "asked": [one for one in found if one.side == "approver" and one.state == "requested"],
            "others": [one for one in found if not (one.side == "approver" and one.state == "requested")],
            "agents": [one.name for one in agents.list_all(tx, board, human)],
            "code": humans.friend_code(tx, board, human),
        }

    return render(
        request,
        "friends.html",
        status=status,
        nav="friends",
        path=link(request, "/friends"),
        live="/live/board",
        grantable=GRANTABLE,
        offered=typed.get("verbs", DRAIN) if typed is not None and at == "ask" else DRAIN,
        says=SAYS,
        days=LIFETIME_DAYS,
        at=at,
        problems=problems or Filled(),
        typed=typed or Filled(),
        **await board.database.read(read),
    )


async def ask(request: Request) -> Response:
    """Ask for friendship."""
    board, human, form = board_of(request), request.state.human, request.state.form
    code, queues, reason = text(form, "code"), text(form, "queues"), text(form, "reason")
    verbs = texts(form, "verbs")
    try:
        await board.database.write(
            friends.request, board, human, code.strip(), queues=names(queues), verbs=verbs, reason=reason
        )
    except Refused as refused:
        typed = Filled(code=code, queues=queues, reason=reason, verbs=verbs)
        return await _page(request, 400, "ask", problem_of(refused.refusal, "code", "queues", "verbs", "reason"), typed)
    return _back(request, "asked")


async def approve(request: Request) -> Response:
    """Vend the endpoint that was asked for, or a narrower one."""
    board, human, form, id_ = board_of(request), request.state.human, request.state.form, request.path_params["id"]

    def case(tx: Tx) -> Any:
        friends.get(tx, board, human, id_)
        return friends.approve(
            tx,
            board,
            human,
            id_,
            agent=text(form, "agent"),
            name=text(form, "name").strip() or None,
            queues=texts(form, "queues"),
            verbs=texts(form, "verbs"),
            default_lease=lease(text(form, LEASE), vending=True),
            expires=until(form, tx.now()),
        )

    try:
        await board.database.write(case)
    except Refused as refused:
        problems = problem_of(refused.refusal, "agent", "name", "queues", "verbs", LEASE)
        kept = {key: text(form, key) for key in form} | {key: texts(form, key) for key in ("queues", "verbs")}
        return await _page(request, 400, id_, problems, Filled(kept))
    return _back(request, "approved")


async def collect(request: Request) -> Response:
    """The credential, shown to the requester this once. Sent again it is refused: it was collected."""
    board, human, id_ = board_of(request), request.state.human, request.path_params["id"]
    got = await board.database.write(friends.collect, board, human, id_)
    slug = got.friendship.slug or ""
    return shown(request, "collect", slug, slug, got.credential, own=False)


STEPS: Final[dict[str, Any]] = {
    "decline": friends.decline, "end": friends.end, "allow-collect": friends.allow_collect,
}  # fmt: skip


async def step(request: Request) -> Response:
    """Decline, end, or allow one more collect."""
    word = request.path_params["step"]
    if word not in STEPS:
        raise Refused(MISSING)
    board = board_of(request)
    await board.database.write(STEPS[word], board, request.state.human, request.path_params["id"])
    return _back(request, "done")


def _back(request: Request, said: str) -> Response:
    return RedirectResponse(link(request, f"/friends?said={said}"), 303)


ROUTES: Final = [
    Route("/friends", signed_in(index)),
    Route("/friends", signed_in(ask), methods=["POST"]),
    Route("/friends/{id}/approve", signed_in(approve), methods=["POST"]),
    Route("/friends/{id}/collect", signed_in(collect), methods=["POST"]),
    Route("/friends/{id}/{step}", signed_in(step), methods=["POST"]),
]
