"""`/api/v1/schedules`: what puts todos on an endpoint by itself (B49)."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.responses import Response

from tenure.board import endpoints, schedules
from tenure.board.access import Human
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.endpoints import STALE
from tenure.board.refused import Refused, granted
from tenure.doors.rest.answers import Json, etag
from tenure.doors.rest.gate import Gate, Who, large
from tenure.doors.wire import scheduled
from tenure.rules import plans

router = APIRouter(prefix="/api/v1", tags=["schedules"], route_class=Gate)


@router.post("/endpoints/{ref}/schedules", status_code=201, response_model=scheduled.Schedule)
@large
async def add_schedule(asked: Who, ref: str, body: scheduled.Add) -> Response:
    """Give an endpoint a schedule: each slot of it makes one todo, however many servers there are."""

    def make(tx: Tx, board: Board, human: Human) -> tuple[str, scheduled.Schedule]:
        made = schedules.add(tx, board, human, ref, body.name, _fields(body))
        return made.id, scheduled.schedule(made, tx.now())

    def again(tx: Tx, board: Board, human: Human, made: str) -> scheduled.Schedule:
        return scheduled.schedule(schedules.get(tx, board, human, made), tx.now())

    told, before = await asked.create(make, again)
    return _one(told, 200 if before else 201)


@router.get("/schedules", response_model=scheduled.Schedules)
async def list_schedules(asked: Who, endpoint: Annotated[str | None, Query(max_length=200)] = None) -> Response:
    """Your schedules by name, of one endpoint or of all."""

    def case(tx: Tx, board: Board, human: Human) -> scheduled.Schedules:
        of = None if endpoint is None else endpoints.get(tx, board, human, endpoint).id
        now = tx.now()
        return {"schedules": [scheduled.schedule(one, now) for one in schedules.list_all(tx, board, human, of)]}

    return Json(await asked.read(case))


@router.post("/schedules/preview", response_model=scheduled.Coming)
async def preview(asked: Who, body: scheduled.Preview) -> Response:
    """When a timetable would be due, clock changes included; nothing is made."""

    plan = granted(plans.plan({**_fields(body), "title": "-"}))
    return Json(scheduled.coming(plan, await asked.board.database.read(Tx.now), body.count))


@router.get("/schedules/{ref}", response_model=scheduled.Schedule)
async def get_schedule(asked: Who, ref: str) -> Response:
    """One schedule, by name or id."""
    return await _read(asked, schedules.get, ref)


@router.get("/schedules/{ref}/next", response_model=scheduled.Coming)
async def next_slots(
    asked: Who, ref: str, count: Annotated[int, Query(ge=1, le=scheduled.PREVIEW_LIMIT)] = 5
) -> Response:
    """Its next slots, and what it does on the next two days of a clock change."""

    def case(tx: Tx, board: Board, human: Human) -> scheduled.Coming:
        return scheduled.coming(schedules.get(tx, board, human, ref).plan, tx.now(), count)

    return Json(await asked.read(case))


@router.get("/schedules/{ref}/slots", response_model=scheduled.Slots)
async def list_slots(
    asked: Who, ref: str, limit: Annotated[int, Query(ge=1, le=schedules.HISTORY_LIMIT)] = 20
) -> Response:
    """What its last slots became: a todo, or why none."""
    found = await asked.read(schedules.history, ref, limit=limit)
    return Json({"slots": [scheduled.fired(one) for one in found]})


@router.patch("/schedules/{ref}", response_model=scheduled.Schedule)
@large
async def edit_schedule(asked: Who, ref: str, body: scheduled.Edit) -> Response:
    """Change the fields that are given; every server goes by it from the next slot on."""
    return await _edit(asked, schedules.edit, ref, _fields(body))


@router.post("/schedules/{ref}/pause", response_model=scheduled.Schedule)
async def pause_schedule(asked: Who, ref: str) -> Response:
    """Make no todos until it is resumed."""
    return await _edit(asked, schedules.pause, ref)


@router.post("/schedules/{ref}/resume", response_model=scheduled.Schedule)
async def resume_schedule(asked: Who, ref: str) -> Response:
    """End a pause; at most one slot is caught up."""
    return await _edit(asked, schedules.resume, ref)


@router.post("/schedules/{ref}/trigger", response_model=scheduled.Fired)
async def trigger_schedule(asked: Who, ref: str) -> Response:
    """Make a todo now, out of turn, by the same rules as a slot's."""
    return Json(scheduled.fired(await asked.write(schedules.trigger, ref)))


@router.delete("/schedules/{ref}", status_code=204)
async def remove_schedule(asked: Who, ref: str) -> Response:
    """Take it away; its todos stay, and its name is free again."""
    await asked.write(schedules.remove, ref)
    return Response(status_code=204)


def _fields(body: scheduled.When) -> dict[str, Any]:
    """The fields of a plan that were given."""
    return body.model_dump(exclude_unset=True, exclude={"name", "count"})


async def _read(asked: Who, case: Any, ref: str) -> Response:
    def read(tx: Tx, board: Board, human: Human) -> scheduled.Schedule:
        return scheduled.schedule(case(tx, board, human, ref), tx.now())

    return _one(await asked.read(read))


async def _edit(asked: Who, case: Any, ref: str, *values: Any) -> Response:
    def edit(tx: Tx, board: Board, human: Human) -> scheduled.Schedule:
        revisions = asked.revisions
        if revisions is not None and schedules.get(tx, board, human, ref, lock=True).revision not in revisions:
            raise Refused(STALE)
        return scheduled.schedule(case(tx, board, human, ref, *values), tx.now())

    return _one(await asked.write(edit))


def _one(told: Any, status: int = 200) -> Response:
    headers = {"ETag": etag(told["revision"])}
    if status == 201:
        headers["Location"] = f"/api/v1/schedules/{told['id']}"
    return Json(told, status, headers)
