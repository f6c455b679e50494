"""One todo: what it holds, its claims as a timeline, its notes, and what its human may do with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tenure.board import endpoints, todos
from tenure.board.access import Endpoint, Human
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.board.shapes import Detail
from tenure.doors.web.forms import Filled, Form, json_value, problem_of, text
from tenure.doors.web.guard import board_of, signed_in
from tenure.doors.web.pictures.todos import attempts
from tenure.doors.web.rendering import link, render
from tenure.rules.refusal import MISSING, Refusal

Step = Callable[[Tx, Board, Human, str, Form], Any]


async def page(request: Request) -> Response:
    """The todo."""
    return await _page(request)


async def _page(request: Request, status: int = 200, problems: Filled | None = None, message: str = "") -> Response:
    board, human, id_ = board_of(request), request.state.human, request.path_params["id"]

    def read(tx: Tx) -> tuple[int, Detail, list[Endpoint]]:
        return tx.now(), todos.get(tx, board, human, id_), endpoints.list_all(tx, board, human)

    now, todo, mine = await board.database.read(read)
    home = next(one for one in mine if one.id == todo.summary.endpoint_id)
    held = todo.summary.shown in ("claimed", "lapsed")
    form = getattr(request.state, "form", None)
    return render(
        request,
        "board/todo.html",
        status=status,
        nav="board",
        path=link(request, f"/todos/{id_}"),
        live="/live/board",
        now=now,
        todo=todo,
        one=todo.summary,
        home=home,
        targets=[endpoint for endpoint in mine if endpoint.state == "active" and endpoint.id != home.id],
        attempts=attempts(todo.attempts, now) if todo.attempts else "",
        held=held,
        mine=held and todo.summary.held_on_board,
        writable=home.state == "active",
        problems=problems or Filled(),
        typed=Filled({key: text(form, key) for key in form}) if form is not None else Filled(),
        message=message,
    )


# --- what can be done -------------------------------------------------------------------------------------


def _move(tx: Tx, board: Board, human: Human, id_: str, form: Form) -> Any:
    target = endpoints.get(tx, board, human, text(form, "target"))
    return todos.move(tx, board, human, id_, target)


STEPS: Final[dict[str, Step]] = {
    "claim": lambda tx, board, human, id_, _: todos.board_claim(tx, board, human, id_),
    "extend": lambda tx, board, human, id_, _: todos.board_extend(tx, board, human, id_),
    "complete": lambda tx, board, human, id_, form: todos.board_complete(
        tx, board, human, id_, json_value(form, "result")
    ),
    "fail": lambda tx, board, human, id_, form: todos.board_fail(tx, board, human, id_, text(form, "fail_reason")),
    "release": lambda tx, board, human, id_, _: todos.board_release(tx, board, human, id_),
    "retry": lambda tx, board, human, id_, _: todos.retry(tx, board, human, id_),
    "cancel": lambda tx, board, human, id_, form: todos.cancel(tx, board, human, id_, text(form, "cancel_reason")),
    "move": _move,
    "note": lambda tx, board, human, id_, form: todos.add_note(
        tx, board, human, id_, text(form, "note").replace("\r\n", "\n")
    ),
}
# Beside which field a refusal of a step stands; the others have none, and are told above.
FIELDS: Final = {"complete": "result", "fail": "fail_reason", "cancel": "cancel_reason", "note": "note"}


async def act(request: Request) -> Response:
    """One step by the human."""
    word, id_ = request.path_params["step"], request.path_params["id"]
    if word not in STEPS:
        raise Refused(MISSING)
    board, human, form = board_of(request), request.state.human, request.state.form

    def case(tx: Tx) -> Any:
        todos.get(tx, board, human, id_)  # another's is missing, whatever else is wrong
        return STEPS[word](tx, board, human, id_, form)

    try:
        await board.database.write(case)
    except Refused as refused:
        return await _refused(request, word, refused.refusal)
    return RedirectResponse(link(request, f"/todos/{id_}?said=done"), 303)


async def _refused(request: Request, word: str, refusal: Refusal) -> Response:
    """The page again: a mistake stands beside its field, what has changed meanwhile above all."""
    if refusal.code == "conflict":
        return await _page(request, 409, message=refusal.message)
    if word not in FIELDS:
        raise Refused(refusal)
    return await _page(request, 400, problem_of(refusal, FIELDS[word]))


ROUTES: Final = [
    Route("/todos/{id}", signed_in(page)),
    Route("/todos/{id}/{step}", signed_in(act), methods=["POST"]),
]
