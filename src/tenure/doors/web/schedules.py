"""Schedules: todos that come by the clock. Made, edited, paused, triggered; what their last slots became."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tenure.board import endpoints, schedules
from tenure.board.access import Human
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.board.schedules import Fired, Schedule
from tenure.doors.web.forms import Filled, Form, json_value, problem_of, text, whole_number
from tenure.doors.web.guard import board_of, signed_in
from tenure.doors.web.rendering import link, render
from tenure.rules.instant import span_words
from tenure.rules.nights import change_words, nights, shift_words, upcoming
from tenure.rules.refusal import MISSING

FIELDS: Final = ("name", "endpoint", "expression", "tz", "title", "body", "payload", "queue", "priority", "catch_up")
SLOTS: Final = 5
LAST: Final = 30


class Row(NamedTuple):
    """A schedule in the list: its next slot, and what the last one became."""

    schedule: Schedule
    words: str
    next: int | None
    last: Fired | None


async def index(request: Request) -> Response:
    """All schedules, and the form that adds one."""
    return await _index(request)


async def _index(
    request: Request, status: int = 200, problems: Filled | None = None, typed: Filled | None = None
) -> Response:
    board, human = board_of(request), request.state.human

    def read(tx: Tx) -> dict[str, Any]:
        now = tx.now()
        active = [one for one in endpoints.list_all(tx, board, human) if one.state == "active"]
        rows = [_row(tx, board, human, one, now) for one in schedules.list_all(tx, board, human)]
        return {"now": now, "rows": rows, "active": active}

    values = await board.database.read(read)
    typed = Filled(tz="UTC", overlap="skip") if typed is None else typed
    return render(
        request,
        "schedules/index.html",
        status=status,
        nav="schedules",
        path=link(request, "/schedules"),
        live="/live/board",
        problems=problems or Filled(),
        typed=typed,
        **values,
    )


def _row(tx: Tx, board: Board, human: Human, one: Schedule, now: int) -> Row:
    timetable = one.plan.schedule
    coming = timetable.next(now) if one.paused is None else None
    last = schedules.history(tx, board, human, one.id, limit=1)
    return Row(one, timetable.words(), coming.at_ms if coming else None, last[0] if last else None)


async def page(request: Request) -> Response:
    """One schedule."""
    return await _page(request)


async def _page(request: Request, status: int = 200, problems: Filled | None = None) -> Response:
    board, human, ref = board_of(request), request.state.human, request.path_params["ref"]

    def read(tx: Tx) -> dict[str, Any]:
        one = schedules.get(tx, board, human, ref)
        return {
            "now": tx.now(),
            "one": one,
            "home": endpoints.get(tx, board, human, one.endpoint_id),
            "fired": schedules.history(tx, board, human, ref, limit=LAST),
        }

    values = await board.database.read(read)
    plan, now = values["one"].plan, values["now"]
    timetable = plan.schedule
    form = getattr(request.state, "form", None)
    typed = Filled({key: text(form, key) for key in form}) if form is not None else _as_typed(values["one"])
    return render(
        request,
        "schedules/page.html",
        status=status,
        nav="schedules",
        path=link(request, f"/schedules/{ref}"),
        live="/live/board",
        plan=plan,
        words=timetable.words(),
        warnings=timetable.warnings(),
        slots=[(slot, shift_words(slot)) for slot in upcoming(timetable, now + 1, SLOTS)],
        nights=[(change_words(change), says) for change, _, says in nights(timetable, now)],
        problems=problems or Filled(),
        typed=typed,
        steered="schedules" in request.app.state.sources,
        **values,
    )


def _as_typed(one: Schedule) -> Filled:
    """A schedule as it would be typed into its form."""
    from tenure.doors.web.rendering import pretty

    plan = one.plan
    catch_up = span_words(plan.catch_up_ms) if plan.catch_up_ms else ""
    payload = "" if plan.payload is None else pretty(plan.payload)
    return Filled(
        expression=plan.expression, tz=plan.tz, title=plan.title, body=plan.body, payload=payload,
        queue=plan.queue or "", priority=str(plan.priority), overlap=plan.overlap, catch_up=catch_up,
    )  # fmt: skip


def _raw(form: Form) -> dict[str, Any]:
    """The fields of a plan."""
    return {
        "expression": text(form, "expression").strip(),
        "tz": text(form, "tz").strip() or "UTC",
        "title": text(form, "title"),
        "body": text(form, "body").replace("\r\n", "\n"),
        "payload": json_value(form, "payload"),
        "queue": text(form, "queue").strip() or None,
        "priority": whole_number(form, "priority", 0),
        "overlap": text(form, "overlap") or "skip",
        "catch_up": text(form, "catch_up").strip() or 0,
    }


async def add(request: Request) -> Response:
    """A new schedule."""
    board, human, form = board_of(request), request.state.human, request.state.form

    def case(tx: Tx) -> Schedule:
        return schedules.add(tx, board, human, text(form, "endpoint"), text(form, "name"), _raw(form))

    try:
        made = await board.database.write(case)
    except Refused as refused:
        problems = problem_of(refused.refusal, *FIELDS)
        return await _index(request, 400, problems, Filled({key: text(form, key) for key in form}))
    return RedirectResponse(link(request, f"/schedules/{made.id}?said=added"), 303)


async def edit(request: Request) -> Response:
    """Another plan for it."""
    board, human, form, ref = board_of(request), request.state.human, request.state.form, request.path_params["ref"]

    def case(tx: Tx) -> Schedule:
        schedules.get(tx, board, human, ref)  # another's is missing, whatever else is wrong
        return schedules.edit(tx, board, human, ref, _raw(form))

    try:
        await board.database.write(case)
    except Refused as refused:
        return await _page(request, 400, problem_of(refused.refusal, *FIELDS[2:]))
    return RedirectResponse(link(request, f"/schedules/{ref}?said=saved"), 303)


STEPS: Final[dict[str, Callable[[Tx, Board, Human, str], object]]] = {
    "pause": schedules.pause, "resume": schedules.resume, "remove": schedules.remove, "trigger": schedules.trigger,
}  # fmt: skip


async def step(request: Request) -> Response:
    """Pause, resume, remove, or make a todo now."""
    word, ref = request.path_params["step"], request.path_params["ref"]
    if word not in STEPS:
        raise Refused(MISSING)
    board = board_of(request)
    await board.database.write(STEPS[word], board, request.state.human, ref)
    back = "/schedules" if word == "remove" else f"/schedules/{ref}"
    return RedirectResponse(link(request, f"{back}?said=done"), 303)


ROUTES: Final = [
    Route("/schedules", signed_in(index)),
    Route("/schedules", signed_in(add), methods=["POST"]),
    Route("/schedules/{ref}", signed_in(page)),
    Route("/schedules/{ref}/edit", signed_in(edit), methods=["POST"]),
    Route("/schedules/{ref}/{step}", signed_in(step), methods=["POST"]),
]
