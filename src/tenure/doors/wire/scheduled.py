"""How schedules are asked for and spelled: one model and one spelling for every door."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field
from typing_extensions import TypedDict

from tenure.board import schedules
from tenure.doors.wire.arguments import Arguments, Json, Queue
from tenure.doors.wire.spelling import at
from tenure.rules import bounds
from tenure.rules.instant import span_words
from tenure.rules.nights import change_words, nights, upcoming
from tenure.rules.plans import EXPRESSION_CHARS, Plan
from tenure.rules.times import local

PREVIEW_LIMIT = 100

Text = Annotated[str | None, Field(description="With fields: {slot}, {slot:%Y-%m-%d}, {name}; {{ is a brace.")]


class When(Arguments):
    """When it is due. What is left out is as it was, or the default."""

    expression: Annotated[
        str | None,
        Field(max_length=EXPRESSION_CHARS, description="Cron, five fields or six; or a length of time such as 10m."),
    ] = None
    tz: Annotated[str | None, Field(max_length=bounds.NAME_CHARS, description="Default: UTC.")] = None
    dst_gap: Annotated[str | None, Field(description="shift (default), asap or skip: for times that are skipped.")] = (
        None
    )
    dst_overlap: Annotated[str | None, Field(description="first (default), second or both: for double times.")] = None


class Edit(When):
    """What a schedule says of its todos."""

    title: Text = None
    body: Text = None
    payload: Json = None
    queue: Queue | None = None
    priority: Annotated[int | None, Field(ge=-bounds.PRIORITY_LIMIT, le=bounds.PRIORITY_LIMIT)] = None
    overlap: Annotated[
        str | None, Field(description="skip (default): no todo while the last one has not ended; or allow.")
    ] = None
    catch_up: Annotated[
        str | int | None, Field(description="How late a missed slot is still made up for: 2h. Default: 0.")
    ] = None


class Add(Edit):
    name: Annotated[str, Field(min_length=1, max_length=bounds.NAME_CHARS)]


class Preview(When):
    count: Annotated[int, Field(ge=1, le=PREVIEW_LIMIT)] = 5


class Slot(TypedDict):
    """A coming slot: in UTC, and on the wall clock of the schedule's zone."""

    slot_at: str
    local: str


class Night(TypedDict):
    """What a schedule does on a day on which the clocks of its zone are changed."""

    change: str
    does: str


class Coming(TypedDict):
    """A timetable in words, its next slots, and the next two clock changes of its zone."""

    words: str
    tz: str
    next: list[Slot]
    clock_changes: list[Night]
    warnings: list[str]


def coming(plan: Plan, now: int, count: int) -> Coming:
    timetable = plan.schedule
    return {
        "words": timetable.words(),
        "tz": timetable.tz,
        "next": [{"slot_at": at(one.at_ms), "local": local(one.at_ms, timetable.tz)} for one in
                 upcoming(timetable, now, count)],
        "clock_changes": [{"change": change_words(one), "does": does} for one, _, does in nights(timetable, now)],
        "warnings": list(timetable.warnings()),
    }  # fmt: skip


class Schedule(TypedDict):
    """A schedule. `paused` says why it makes nothing at the moment, or is null."""

    id: str
    name: str
    endpoint: str
    expression: str
    words: str
    tz: str
    dst_gap: str
    dst_overlap: str
    title: str
    body: str
    payload: Any
    queue: str | None
    priority: int
    overlap: str
    catch_up: str
    paused: str | None
    next_at: str | None
    revision: int
    created_at: str


def schedule(one: schedules.Schedule, now: int) -> Schedule:
    plan, timetable = one.plan, one.plan.schedule
    following = timetable.next(now) if one.paused is None else None
    return {
        "id": one.id,
        "name": one.name,
        "endpoint": one.endpoint_slug,
        "expression": plan.expression,
        "words": timetable.words(),
        "tz": timetable.tz,
        "dst_gap": plan.dst_gap,
        "dst_overlap": plan.dst_overlap,
        "title": plan.title,
        "body": plan.body,
        "payload": plan.payload,
        "queue": plan.queue,
        "priority": plan.priority,
        "overlap": plan.overlap,
        "catch_up": span_words(plan.catch_up_ms),
        "paused": one.paused,
        "next_at": at(following.at_ms) if following is not None else None,
        "revision": one.revision,
        "created_at": at(one.created),
    }


class Schedules(TypedDict):
    """A human's schedules, by name."""

    schedules: list[Schedule]


class Fired(TypedDict):
    """What a slot became: `todo`, `skipped` or `refused`, and why."""

    slot_at: str
    outcome: str
    todo_id: str | None
    todo_state: str | None
    reason: str | None
    at: str


def fired(one: schedules.Fired) -> Fired:
    return {
        "slot_at": at(one.slot),
        "outcome": one.outcome,
        "todo_id": one.todo_id,
        "todo_state": one.state,
        "reason": one.reason,
        "at": at(one.at),
    }


class Slots(TypedDict):
    """What the last slots became, the newest first."""

    slots: list[Fired]
