"""The Board: a human's todos in lanes, live; and the form that adds one."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tenure.board import depth, endpoints, todos
from tenure.board.access import Endpoint, Human
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.board.shapes import Filters, Summary
from tenure.doors.web.forms import Filled, json_value, problem_of, text, whole_number
from tenure.doors.web.guard import board_of, signed_in
from tenure.doors.web.pictures.statistics import ring
from tenure.doors.web.pictures.todos import depth as depth_picture
from tenure.doors.web.rendering import link, render
from tenure.rules.instant import instant
from tenure.rules.refusal import MISSING, invalid
from tenure.rules.todo_content import NewTodo

SHOWN: Final = 50
# Each lane: its title, what it says of itself when empty, the stored states asked for, and what of them it shows.
LANES: Final = (
    ("Ready", "Nothing waits for a worker.", ("pending",), ("pending",)),
    ("Waiting", "Nothing waits for its time, a retry or another todo.", ("waiting", "blocked", "retrying"),
     ("waiting", "blocked", "retrying")),
    ("Claimed", "No lease is held.", ("claimed",), ("claimed", "lapsed")),
    ("Dead letters", "Nothing has failed for good.", ("dead",), ("dead",)),
    ("Done", "Nothing was finished yet.", ("done", "cancelled"), ("done", "cancelled")),
)  # fmt: skip
FIELDS: Final = ("title", "body", "payload", "priority", "queue", "not_before", "idempotency_key", "endpoint")


class Lane(NamedTuple):
    """One lane: how many there are, since when the oldest is there, and the newest of them; of the ready the next."""

    title: str
    empty: str
    total: int
    oldest: int | None
    cards: tuple[Summary, ...]


async def index(request: Request) -> Response:
    """The lanes."""
    return await lanes(request)


async def lanes(
    request: Request, status: int = 200, problems: Filled | None = None, typed: Filled | None = None
) -> Response:
    """The page, with what was typed into the form of a new todo where that was refused."""
    board, human, query = board_of(request), request.state.human, request.query_params

    def read(tx: Tx) -> dict[str, Any]:
        mine = endpoints.list_all(tx, board, human)
        chosen = next((one for one in mine if query.get("endpoint") in (one.slug, one.id)), None)
        found = _lanes(tx, board, human, chosen, query.get("queue") or None)
        return {"now": tx.now(), "mine": mine, "chosen": chosen, "lanes": found}

    values = await board.database.read(read)
    return render(
        request,
        "board/lanes.html",
        status=status,
        nav="board",
        path=link(request, "/board"),
        live="/live/board",
        queue=query.get("queue", ""),
        active=[one for one in values["mine"] if one.state == "active"],
        left=lambda todo: ring((todo.expires - values["now"]) / 1000 / max(1, lease_seconds(todo, values["mine"]))),
        problems=problems or Filled(),
        typed=typed or Filled(),
        **values,
    )


async def depth_page(request: Request) -> Response:
    """How deep the board was; a page of its own, for it counts more than the lanes show."""
    board = board_of(request)
    points = await board.database.read(depth.over_time, board, request.state.human)
    drawn = depth_picture(points) if any(one.live for one in points) else ""
    return render(request, "board/depth.html", nav="board", points=points, depth=drawn)


def lease_seconds(todo: Summary, mine: list[Endpoint]) -> int:
    """How long the lease of a claimed todo may be taken to be, to draw how much of it is left."""
    if todo.held_on_board:
        return 300
    return next((one.effective.seconds for one in mine if one.id == todo.endpoint_id), 300)


def _lanes(tx: Tx, board: Board, human: Human, chosen: Endpoint | None, queue: str | None) -> list[Lane]:
    counted = [one for one in todos.counts(tx, board, human) if chosen is None or one.endpoint_id == chosen.id]
    found = []
    for title, empty, states, shown in LANES:
        where = Filters(endpoint_id=chosen.id if chosen else None, queue=queue, states=states)
        ready = title == "Ready"
        page = todos.list_page(tx, board, human, where, limit=4 * SHOWN if ready else SHOWN, in_turn=ready)
        cards = tuple(one for one in page.items if one.shown in shown)[:SHOWN]
        here = [one for one in counted if one.shown in shown and not queue]  # which are not counted by queue
        oldest = min((one.oldest for one in here if one.oldest is not None), default=None)
        found.append(Lane(title, empty, max(len(cards), sum(one.total for one in here)), oldest, cards))
    return found


async def add(request: Request) -> Response:
    """A new todo."""
    board, human, form = board_of(request), request.state.human, request.state.form

    def case(tx: Tx) -> str:
        now, ref = tx.now(), text(form, "endpoint")
        if not ref:
            raise Refused(invalid("endpoint", "must be chosen; vend one first if there is none."))
        target = endpoints.get(tx, board, human, ref)
        not_before = text(form, "not_before").strip()
        try:
            due = instant(not_before, now) if not_before else None
        except (ValueError, OverflowError):
            raise Refused(invalid("not_before", "is no time; write 2026-12-01T06:00:00Z or now+2h.")) from None
        new = NewTodo(
            title=text(form, "title"),
            queue=text(form, "queue").strip() or None,
            body=text(form, "body").replace("\r\n", "\n"),
            payload=json_value(form, "payload"),
            priority=whole_number(form, "priority", 0),
            not_before=due,
            idempotency_key=text(form, "idempotency_key").strip() or None,
        )
        return todos.create(tx, board, human, target, new).todo.summary.id

    try:
        todo_id = await board.database.write(case)
    except Refused as refused:
        if refused.refusal == MISSING:
            raise
        problems = problem_of(refused.refusal, *FIELDS)
        return await lanes(request, 400, problems, Filled({key: text(form, key) for key in form}))
    return RedirectResponse(link(request, f"/todos/{todo_id}?said=added"), 303)


ROUTES: Final = [
    Route("/board", signed_in(index)),
    Route("/board/depth", signed_in(depth_page)),
    Route("/todos", signed_in(add), methods=["POST"]),
]
