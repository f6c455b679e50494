"""Todos as they are read: one whole, pages of many, and how many stand where."""

from __future__ import annotations

from typing import Any, Final

import sqlalchemy as sa

from tenure.board import todo_views
from tenure.board.access import Human, Worker, storable
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused, granted
from tenure.board.shapes import Detail, Filters, Lane, Page, Summary
from tenure.board.telling import verb
from tenure.board.todo_rows import CONTENT, TODO, TODO_COLUMNS, todo_from
from tenure.rules import bounds, todo_content
from tenure.rules.instant import DAY
from tenure.rules.refusal import MISSING, invalid
from tenure.rules.todo_content import Content

# Each state that a list can be filtered by, as stored or as shown by the clock, in SQL.
_STATES: Final = {
    "pending": "todos.state = 'pending'",
    "claimed": "todos.state = 'claimed'",
    "done": "todos.state = 'done'",
    "failed": "todos.state = 'failed'",
    "cancelled": "todos.state = 'cancelled'",
    "blocked": "todos.state = 'pending' AND todos.blockers > 0",
    "waiting": "todos.state = 'pending' AND todos.blockers = 0 AND todos.not_before > :now",
    "lapsed": "todos.state = 'claimed' AND claims.expires <= :now",
    "retrying": "todos.state = 'failed' AND todos.ended IS NULL",
    "dead": "todos.state = 'failed' AND todos.ended IS NOT NULL",
}
_ENDED: Final = ("done", "failed", "cancelled", "dead")
_FROM: Final = "FROM todos JOIN endpoints ON endpoints.id = todos.endpoint LEFT JOIN claims ON claims.id = todos.claim"
_HELD: Final = "endpoints.slug, claims.worker, claims.human IS NOT NULL, claims.expires"


def get(tx: Tx, board: Board, caller: Human | Worker, todo_id: str) -> Detail:
    """The todo, whole, with its claims and notes."""
    if isinstance(caller, Worker):
        verb(caller, "get_todo")
    if not storable(todo_id):
        raise Refused(MISSING)
    row = tx.one(
        sa.text(f"SELECT {_HELD} {_FROM} WHERE todos.id = :id AND {_reach(caller)}"), {"id": todo_id, "me": caller.id}
    )
    kept = todo_views.kept_by_id(tx, todo_id) if row else None
    if row is None or kept is None:
        raise Refused(MISSING)
    attempts = todo_views.histories(tx, [kept.todo]).get(todo_id, ())
    return todo_views.detail(kept, row[0], tx.now(), _held(row[1:]), attempts, todo_views.notes(tx, todo_id))


def list_page(
    tx: Tx,
    board: Board,
    caller: Human | Worker,
    filters: Filters = Filters(),  # noqa: B008 - a value
    cursor: str | None = None,
    limit: int | None = None,
    *,
    in_turn: bool = False,
) -> Page:
    """Todos, newest first: all of a human's endpoints, or of the worker's own one (B33).

    in_turn: those that are claimed first come first instead; there is no second page then.
    """
    if isinstance(caller, Worker):
        verb(caller, "list_todos")
    limit = bounds.LIST_DEFAULT if limit is None else limit
    if type(limit) is not int or not 1 <= limit <= bounds.LIST_LIMIT:
        raise Refused(invalid("limit", f"must be a whole number from 1 to {bounds.LIST_LIMIT}."))
    now = tx.now()
    rules, values = _where(caller, filters, cursor, now)
    brief = ", ".join("''" if name == "body" else "NULL" if name == "payload" else f"todos.{name}" for name in CONTENT)
    order = "todos.order_ms, todos.id" if in_turn else "todos.id DESC"
    statement = (
        f"SELECT {TODO_COLUMNS}, {brief}, todos.created, {_HELD} {_FROM}"
        f" WHERE {' AND '.join(rules)} ORDER BY {order} LIMIT :limit"
    )
    rows = tx.all(
        sa.text(statement),
        {**values, "now": now, "limit": limit + 1} if ":now" in statement else {**values, "limit": limit + 1},
    )
    items = tuple(_summary(row, now) for row in rows[:limit])
    return Page(items, items[-1].id if len(rows) > limit and not in_turn else None, now)


def counts(tx: Tx, board: Board, human: Human) -> list[Lane]:
    """How many todos stand in which state, by endpoint: live ones, and those ended in the last day."""
    now = tx.now()
    state = (
        "CASE WHEN todos.state = 'pending' AND todos.blockers > 0 THEN 'blocked'"
        " WHEN todos.state = 'pending' AND todos.not_before > :now THEN 'waiting'"
        " WHEN todos.state = 'claimed' AND claims.expires <= :now THEN 'lapsed'"
        " WHEN todos.state = 'failed' AND todos.ended IS NULL THEN 'retrying'"
        " WHEN todos.state = 'failed' THEN 'dead' ELSE todos.state END"
    )
    part = f"SELECT todos.endpoint, {state} AS shown, todos.created {_FROM} WHERE endpoints.human = :me AND"
    statement = (
        f"SELECT endpoint, shown, count(*), min(created) FROM ({part} todos.ended IS NULL"
        f" UNION ALL {part} todos.ended > :since) AS every GROUP BY endpoint, shown ORDER BY endpoint, shown"
    )
    rows = tx.all(sa.text(statement), {"now": now, "me": human.id, "since": now - DAY})
    return [Lane._make(row) for row in rows]


def _reach(caller: Human | Worker) -> str:
    """What of the table a caller sees, as SQL: never by an id alone."""
    return "endpoints.human = :me" if isinstance(caller, Human) else "todos.endpoint = :me"


def _where(caller: Human | Worker, filters: Filters, cursor: str | None, now: int) -> tuple[list[str], dict[str, Any]]:
    rules: list[str] = [_reach(caller)]
    values: dict[str, Any] = {"me": caller.id}
    for name, column in (
        ("endpoint_id", "todos.endpoint"),
        ("queue", "todos.queue"),
        ("source", "todos.source"),
        ("claimed_by", "claims.worker"),
    ):
        if (value := getattr(filters, name)) is not None:
            granted(todo_content.text(value, name, bounds.BODY_BYTES))
            rules.append(f"{column} = :{name}")
            values[name] = value
    if filters.mine:
        rules.append("claims.human = :me" if isinstance(caller, Human) else "claims.endpoint = :me")
    if filters.states:
        unknown = [state for state in filters.states if state not in _STATES]
        if unknown:
            raise Refused(invalid("state", f"must be one of {', '.join(_STATES)}."))
        rules.append(f"({' OR '.join(_STATES[state] for state in filters.states)})")
        values |= {"now": now} if ":now" in rules[-1] else {}
        if not any(state in _ENDED for state in filters.states):
            rules.append("todos.ended IS NULL")
    if cursor is not None:
        if not cursor.startswith("td_") or not storable(cursor):
            raise Refused(invalid("cursor", "must be the one that the page before answered."))
        rules.append("todos.id < :cursor")
        values["cursor"] = cursor
    return rules, values


def _held(row: Any) -> todo_views.Held | None:
    worker, on_board, expires = row
    return None if expires is None else todo_views.Held(worker, bool(on_board), expires)


def _summary(row: Any, now: int) -> Summary:
    at = len(TODO) + len(CONTENT)
    return todo_views.summary(
        todo_from(row), Content(*row[len(TODO) : at]), row[at], row[at + 1], now, _held(row[at + 2 :])
    )
