"""Schedules that put todos on an endpoint (B49): what a human says of them, and what each slot becomes.

When a slot is due is not decided here: `tenure.bridge` runs each schedule as a job of the runs half, and calls `fire`
in the transaction that ends the slot's run. Lock order: the schedule's row, then the endpoint's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple

import sqlalchemy as sa

from tenure.board import audit, ids, tables, todos
from tenure.board.access import Endpoint, Human, endpoint_of, storable, writable
from tenure.board.board import Board
from tenure.board.database import Notice, Tx
from tenure.board.refused import Refused, granted
from tenure.board.shapes import Source
from tenure.rules import endpoints as endpoint_rules
from tenure.rules import plans
from tenure.rules.instant import iso
from tenure.rules.plans import Plan
from tenure.rules.refusal import MISSING, conflict, invalid

# Every server listens for this one: any schedule was added, edited, paused, resumed or removed.
CHANGED: Final[Notice] = ("schedule", "any")
HISTORY_LIMIT: Final = 200
TRIGGERS_AT_ONCE: Final = 1_000  # in one millisecond

Outcome = Literal["todo", "skipped", "refused"]


class Schedule(NamedTuple):
    """A schedule as its human sees it. `paused`: why it makes nothing at the moment."""

    id: str
    name: str
    human: str
    endpoint_id: str
    endpoint_slug: str
    plan: Plan
    paused: str | None
    revision: int
    created: int


class Fired(NamedTuple):
    """What a slot became; `state` is that of its todo, None once that is pruned."""

    slot: int
    outcome: Outcome
    todo_id: str | None
    state: str | None
    reason: str | None
    at: int


def add(tx: Tx, board: Board, human: Human, endpoint: str, name: str, raw: Mapping[str, Any]) -> Schedule:
    """Give the endpoint a schedule. `raw`: the fields of a Plan, `catch_up` as a length of time. Raises Refused."""
    target = endpoint_of(tx, human, endpoint, lock=True)
    now = tx.now()
    writable(target, now)
    name = granted(plans.label(name))
    plan = _plan(raw, target)
    schedule_id = ids.new("sc", now)
    values = {"id": schedule_id, "human": human.id, "endpoint": target.id, "name": name, "created": now}
    if not tx.insert_new(tables.schedules, definition=_spell(plan), **values):
        raise Refused(conflict(f"You have a schedule of the name {name} already; choose another.", "name_taken"))
    return _changed(tx, board, human, schedule_id, "add", now)


def edit(tx: Tx, board: Board, human: Human, ref: str, raw: Mapping[str, Any]) -> Schedule:
    """Change the fields that are given; the others stay. Every server goes by it from the next slot on."""
    found = get(tx, board, human, ref, lock=True)
    if not raw:
        raise Refused(invalid("fields", "are none; say what is to change."))
    target = _living(tx, human, found)
    kept = {**found.plan._asdict(), "catch_up": found.plan.catch_up_ms / 1000}
    plan = _plan({**kept, **raw}, target)
    return _update(tx, board, human, found, "edit", definition=_spell(plan))


def pause(tx: Tx, board: Board, human: Human, ref: str) -> Schedule:
    """Make no todos until it is resumed. Paused already: nothing changes."""
    found = get(tx, board, human, ref, lock=True)
    _living(tx, human, found)
    if found.paused is not None:
        return found
    return _update(tx, board, human, found, "pause", paused=f"paused by {human.name}")


def resume(tx: Tx, board: Board, human: Human, ref: str) -> Schedule:
    """End a pause; at most one slot is caught up."""
    found = get(tx, board, human, ref, lock=True)
    _living(tx, human, found)
    return found if found.paused is None else _update(tx, board, human, found, "resume", paused=None)


def remove(tx: Tx, board: Board, human: Human, ref: str) -> Schedule:
    """Take the schedule away; its todos stay, and its name is free again."""
    found = get(tx, board, human, ref, lock=True)
    now = tx.now()
    table = tables.schedules
    tx.execute(sa.update(table).where(table.c.id == found.id).values(removed=now))
    _tell(tx, human, found, "remove", now)
    return found


def trigger(tx: Tx, board: Board, human: Human, ref: str) -> Fired:
    """Make a todo now, out of turn, by the same rules as a slot's; says what became of it."""
    found = get(tx, board, human, ref, lock=True)
    _living(tx, human, found)
    now = tx.now()
    fired = fire(tx, board, found.id, _free(tx, found, now), because=f"triggered by {human.name}")
    _tell(tx, human, found, "trigger", now)
    return fired


def _free(tx: Tx, found: Schedule, now: int) -> int:
    """The first instant from now on that is neither a slot's nor another trigger's: each makes a todo of its own."""
    due, taken = found.plan.schedule.previous, sa.select(tables.slots.c.slot).where(tables.slots.c.schedule == found.id)
    for at in range(now, now + TRIGGERS_AT_ONCE):
        slot = due(at)
        if (slot is None or slot.at_ms != at) and tx.one(taken.where(tables.slots.c.slot == at)) is None:
            return at
    return now


def get(tx: Tx, board: Board, human: Human, ref: str, *, lock: bool = False) -> Schedule:
    """The human's schedule, by name or id; `lock` keeps others from changing it. Raises Refused(MISSING)."""
    table = tables.schedules
    named = sa.or_(table.c.id == ref, table.c.name == ref)
    statement = _select().where(_mine(human), named).order_by(sa.desc(table.c.id == ref))  # an id before a name
    if lock:
        statement = tx.locked(statement, of=table)
    row = tx.one(statement) if storable(ref) else None
    if row is None:
        raise Refused(MISSING)
    return _read(row, tx.now())


def list_all(tx: Tx, board: Board, human: Human, endpoint_id: str | None = None) -> list[Schedule]:
    """The human's schedules by name, of one endpoint or of all."""
    statement = _select().where(_mine(human)).order_by(tables.schedules.c.name)
    if endpoint_id is not None:
        statement = statement.where(tables.schedules.c.endpoint == endpoint_id)
    now = tx.now()
    return [_read(row, now) for row in tx.all(statement)]


def everyones(tx: Tx) -> list[Schedule]:
    """All schedules that were not removed: what the bridge runs. Not for doors."""
    now = tx.now()
    return [_read(row, now) for row in tx.all(_select().where(tables.schedules.c.removed.is_(None)))]


def history(tx: Tx, board: Board, human: Human, ref: str, *, limit: int = 20, before: int | None = None) -> list[Fired]:
    """What its last slots became, newest first; `before`: only earlier slots."""
    found = get(tx, board, human, ref)
    slots, table = tables.slots, tables.todos
    statement = (
        sa.select(slots.c.slot, slots.c.outcome, slots.c.todo, table.c.state, slots.c.reason, slots.c.created)
        .outerjoin(table, table.c.id == slots.c.todo)
        .where(slots.c.schedule == found.id)
        .order_by(slots.c.slot.desc())
        .limit(min(limit, HISTORY_LIMIT))
    )
    if before is not None:
        statement = statement.where(slots.c.slot < before)
    return [Fired._make(row) for row in tx.all(statement)]


# --- the bridge's -----------------------------------------------------------------------------------------


def fire(tx: Tx, board: Board, schedule_id: str, slot: int, because: str | None = None) -> Fired:
    """What this slot becomes: one todo, or the reason why none; the same again says what it became.

    Runs in the transaction that ends the slot's run, so that both are there or neither is. `because`: of one that is
    no slot's.
    """
    row = tx.one(tx.locked(_select().where(tables.schedules.c.id == schedule_id), of=tables.schedules))
    before = tx.one(sa.select(tables.slots).where(tables.slots.c.schedule == schedule_id, tables.slots.c.slot == slot))
    now = tx.now()
    if before is not None:
        return Fired(slot, before.outcome, before.todo, None, before.reason, before.created)
    if row is None or row.removed is not None:
        return Fired(slot, "skipped", None, None, "the schedule was removed", now)
    schedule = _read(row, now)
    fired = _outcome(tx, board, schedule, row, slot, now, because)
    tx.execute(
        sa.insert(tables.slots).values(
            schedule=schedule_id, slot=slot, todo=fired.todo_id, outcome=fired.outcome, reason=fired.reason, created=now
        )
    )
    if fired.todo_id is not None:
        last = sa.update(tables.schedules).where(tables.schedules.c.id == schedule_id)
        tx.execute(last.values(last_todo=fired.todo_id, last_slot=slot))
    tx.notify("board", schedule.human)
    return fired


def _outcome(
    tx: Tx, board: Board, schedule: Schedule, row: sa.Row[Any], slot: int, now: int, because: str | None
) -> Fired:
    if schedule.paused is not None:
        return Fired(slot, "skipped", None, None, schedule.paused, now)
    if schedule.plan.overlap == "skip" and _unended(tx, row):
        reason = f"{row.last_todo} of {iso(row.last_slot)} has not ended"
        return Fired(slot, "skipped", None, None, reason, now)
    endpoint = endpoint_of(tx, Human(schedule.human, row.human_name, "token"), schedule.endpoint_id, lock=True)
    try:
        new = plans.made(schedule.plan, schedule.name, slot)
        made = todos.create(tx, board, Source("schedule", schedule.id), endpoint, new)
    except Refused as refused:  # raised before anything is written
        return Fired(slot, "refused", None, None, str(refused), now)
    return Fired(slot, "todo", made.todo.summary.id, made.todo.summary.state, because, now)


def _unended(tx: Tx, row: sa.Row[Any]) -> bool:
    """Whether the newest todo that the schedule made has not ended: neither done, nor cancelled, nor dead."""
    ended = sa.select(tables.todos.c.ended).where(tables.todos.c.id == row.last_todo)
    found = tx.one(ended) if row.last_todo is not None else None
    return found is not None and found.ended is None


# --- rows -------------------------------------------------------------------------------------------------


def _select() -> sa.Select[Any]:
    table, endpoints, humans = tables.schedules, tables.endpoints, tables.humans
    return (
        sa.select(
            table,
            endpoints.c.slug,
            endpoints.c.state,
            endpoints.c.expires,
            humans.c.name.label("human_name"),
        )
        .join(endpoints, endpoints.c.id == table.c.endpoint)
        .join(humans, humans.c.id == table.c.human)
    )


def _mine(human: Human) -> sa.ColumnElement[bool]:
    return sa.and_(tables.schedules.c.human == human.id, tables.schedules.c.removed.is_(None))


def _read(row: sa.Row[Any], now: int) -> Schedule:
    state = endpoint_rules.state_at(row.state, row.expires, now)
    paused = row.paused if state == "active" else f"its endpoint {row.slug} is {state}"
    plan = Plan(**json.loads(row.definition))
    return Schedule(row.id, row.name, row.human, row.endpoint, row.slug, plan, paused, row.revision, row.created)


def _living(tx: Tx, human: Human, found: Schedule) -> Endpoint:
    """The schedule's endpoint, kept as it is. Raises Refused where it has ended: its schedules can be removed alone."""
    endpoint = endpoint_of(tx, human, found.endpoint_id, lock=True)
    writable(endpoint, tx.now())
    return endpoint


def _plan(raw: Mapping[str, Any], target: Endpoint) -> Plan:
    plan = granted(plans.plan(raw))
    if plan.queue is not None and plan.queue not in target.queues:
        raise Refused(invalid("queue", f"must be one of the endpoint's queues: {', '.join(target.queues)}."))
    return plan


def _spell(plan: Plan) -> str:
    return json.dumps(plan._asdict(), ensure_ascii=False, separators=(",", ":"))


def _update(tx: Tx, board: Board, human: Human, found: Schedule, action: str, **values: Any) -> Schedule:
    table = tables.schedules
    statement = sa.update(table).where(table.c.id == found.id, table.c.removed.is_(None))
    tx.execute(statement.values(revision=table.c.revision + 1, **values))
    return _changed(tx, board, human, found.id, action, tx.now())


def _changed(tx: Tx, board: Board, human: Human, schedule_id: str, action: str, now: int) -> Schedule:
    schedule = get(tx, board, human, schedule_id)
    _tell(tx, human, schedule, action, now)
    return schedule


def _tell(tx: Tx, human: Human, schedule: Schedule, action: str, now: int) -> None:
    summary = f"{schedule.name}: {schedule.plan.expression} on {schedule.endpoint_slug}"
    audit.write(tx, human.id, human, action, ("schedule", schedule.id), summary, now)
    tx.notify(*CHANGED)
    tx.notify("board", human.id)
