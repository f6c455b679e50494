"""Todos as producers make them: a human, a worker, a webhook or a schedule. What humans then do: `todo_actions`.

This is the doors' one place for todos: lists and actions are named here too. All raise Refused.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final, Literal

import sqlalchemy as sa

from tenure.board import access, audit, ids, tables, todo_rows, todo_views
from tenure.board.access import Endpoint, Human, Worker
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.engines import STATEMENT_SECONDS
from tenure.board.refused import Refused, granted
from tenure.board.repeats import Repeat
from tenure.board.shapes import Created, Detail, NewTodo, Source
from tenure.board.telling import tell, verb
from tenure.board.todo_actions import (
    add_note,
    board_claim,
    board_complete,
    board_extend,
    board_fail,
    board_release,
    cancel,
    move,
    retry,
)
from tenure.board.todo_lists import counts, get, list_page
from tenure.board.todo_rows import Kept
from tenure.board.todo_writes import Changes, insert
from tenure.rules import todo_commands as c
from tenure.rules import todo_content, todo_words
from tenure.rules.refusal import MISSING, conflict
from tenure.rules.todo import Origin
from tenure.rules.todo_content import Content
from tenure.rules.todos import decide, endpoint_ended

__all__ = [
    "Caller", "Source", "add_note", "board_claim", "board_complete", "board_extend", "board_fail", "board_release",
    "cancel", "cancel_by_key", "counts", "create", "create_many", "end_endpoint", "get", "list_page", "move", "retry",
    "target_of",
]  # fmt: skip

Caller = Human | Worker | Source


def create(
    tx: Tx, board: Board, caller: Caller, target: Endpoint, new: NewTodo, request_id: str | None = None
) -> Created:
    """Put a todo on the endpoint; the live one of the same key and content is given instead of a second (B6).

    request_id: a worker's, for `create_todo` (B12a).
    """
    if not isinstance(caller, Worker):
        return create_many(tx, board, caller, target, [new])[0]
    repeat = Repeat(tx, caller.id, "create_todo", request_id, [target.id, *new.as_asked])
    if repeat.answer is None:
        created = create_many(tx, board, caller, target, [new])[0]
        repeat.answered([created.todo.summary.id])
    else:
        kept = todo_views.kept_by_id(tx, repeat.answer[0])
        if kept is None:
            raise Refused(MISSING)
        created = Created(todo_views.detail(kept, target.slug, tx.now(), None), existing=True)
    if created.existing and created.todo.summary.endpoint_id != caller.id:
        return created._replace(todo=todo_views.elsewhere(created.todo))
    return created


def create_many(tx: Tx, board: Board, caller: Caller, target: Endpoint, news: Sequence[NewTodo]) -> list[Created]:
    """Put todos on the endpoint, all or, with a refusal, none."""
    if isinstance(caller, Worker):
        verb(caller, "create_todo")
    now = _still_writable(tx, target)
    kind, source_id = _source(caller)
    contents = [granted(todo_content.checked(new, target.queues, kind, source_id)) for new in news]
    waits = _needed(tx, target, news)
    rows = [
        Kept(
            todo_content.todo_of(new, ids.new("td", now), target.id, queues=target.queues, waits=waits, now=now),
            content,
            now,
            tuple(sorted(set(new.depends_on))),
        )
        for new, content in zip(news, contents, strict=True)
    ]
    made, same = _insert(tx, target, rows, now)
    edges = [{"todo": row.todo.id, "needs": one} for row in rows if row.todo.id in made for one in row.depends_on]
    if edges:
        tx.execute(sa.insert(tables.dependencies), edges)
    _tell_made(tx, caller, target, [row for row in rows if row.todo.id in made], now)
    return [
        Created(todo_views.detail(row, target.slug, now, None), existing=False)
        if row.todo.id in made
        else Created(same[row.todo.id], existing=True)
        for row in rows
    ]


def target_of(tx: Tx, board: Board, worker: Worker, to: str | None) -> Endpoint:
    """Where a worker's `create_todo` goes: its own endpoint, or a target that its scope lists (B7a)."""
    if to is None or to == worker.endpoint.slug:
        return worker.endpoint
    if to not in worker.endpoint.targets:
        raise Refused(MISSING)
    table = tables.endpoints
    statement = sa.select(*access.ENDPOINT).where(table.c.slug == to, table.c.human == worker.endpoint.human)
    row = tx.one(statement)
    if row is None:
        raise Refused(MISSING)
    return access.endpoint_from(row, tx.now())


def cancel_by_key(tx: Tx, board: Board, worker: Worker, key: str, reason: str = "") -> Detail:
    """Cancel the live todo of the worker's endpoint with this idempotency key (B1)."""
    verb(worker, "cancel_todo")
    granted(todo_content.reason(reason))
    target = worker.endpoint
    _still_writable(tx, target)
    row = tx.one(_LIVE, {"endpoint": target.id, "key": key})
    found = todo_rows.of_endpoint(tx, row.id, target.id) if row else None
    if found is None or found[0].ended is not None:
        raise Refused(MISSING)
    todo, claim, now = found
    changes = Changes()
    answer = changes.put(todo, decide(todo, c.Cancel(reason), now, claim)).answer
    if isinstance(answer, c.Refused):
        raise Refused(todo_words.refused(answer.reason))
    changes.write(tx)
    tell(tx, changes, target.human)
    kept = todo_views.kept(tx, changes.todos[todo.id])
    return todo_views.detail(kept, target.slug, now, None)


def end_endpoint(tx: Tx, board: Board, endpoint: Endpoint, reason: Literal["revoked", "expired"], now: int) -> None:
    """Close the endpoint's open claims and dead-letter its live todos (B25). The endpoint's row is locked already.

    It says in two statements for any number what `decide` says of each: a test holds them together.
    """
    live = (
        f"SELECT id FROM todos WHERE endpoint = :endpoint AND ended IS NULL ORDER BY id{_LOCK if tx.postgres else ''}"
    )
    parameters = {"endpoint": endpoint.id, "now": now, "how": reason, "reason": endpoint_ended(reason)}
    if tx.postgres:  # they may be many, and an end can't be left undone; but who stands still is waited for no longer
        tx.unhurried()
        tx.execute(sa.text(f"SET LOCAL lock_timeout = '{STATEMENT_SECONDS}s'"))
    tx.execute(sa.text(_END_CLAIMS.format(live)), parameters)
    tx.execute(sa.text(_END_TODOS.format(live)), parameters)
    tx.notify("board", endpoint.human)


_LOCK: Final = " FOR NO KEY UPDATE"
_END_CLAIMS: Final = (
    'WITH live AS MATERIALIZED ({0}) UPDATE claims SET ended = :now, "end" = :how'
    " WHERE ended IS NULL AND todo IN (SELECT id FROM live)"
)
_END_TODOS: Final = (
    "WITH live AS MATERIALIZED ({0}) UPDATE todos SET state = 'failed', ready = false, claim = NULL, retry_at = NULL,"
    " ended = :now, reason = :reason, version = version + 1 WHERE id IN (SELECT id FROM live)"
)
_LIVE: Final = sa.text("SELECT id FROM todos WHERE endpoint = :endpoint AND idempotency_key = :key AND ended IS NULL")


def _source(caller: Caller) -> tuple[Origin, str]:
    match caller:
        case Human():
            return "human", caller.id
        case Worker():
            return "endpoint", caller.id
        case Source():
            return caller.kind, caller.id


def _still_writable(tx: Tx, target: Endpoint) -> int:
    """The time, at which the endpoint had not ended, nor can it before the commit. Raises Refused (B25)."""
    table = tables.endpoints
    statement = sa.select(table.c.state, table.c.expires).where(table.c.id == target.id)
    row = tx.one(statement.with_for_update(read=True, key_share=True) if tx.postgres else statement)
    now = tx.now()
    if row is None:
        raise Refused(MISSING)
    access.writable(target._replace(state=row.state, expires=row.expires), now)
    return now


def _needed(tx: Tx, target: Endpoint, news: Sequence[NewTodo]) -> set[str]:
    """Those that new todos depend on and that are still to be done. They are marked as needed, and locked."""
    named = sorted({one for new in news for one in new.depends_on})
    if not named:
        return set()
    select = (
        f"SELECT {todo_rows.TODO_COLUMNS} FROM todos WHERE {todo_rows.among(tx, 'id', 'named')}"
        " AND endpoint = :endpoint ORDER BY id"
    )
    rows, _ = todo_rows.locked(tx, select, {"named": todo_rows.listed(tx, named), "endpoint": target.id}, "todos")
    found = [todo_rows.todo_from(row) for row in rows]
    if len(found) < len(named):
        raise Refused(MISSING)
    changes = Changes()
    changes.todos = {one.id: one._replace(needed=True) for one in found if not one.needed}
    changes.write(tx)
    return {one.id for one in found if one.state != "done"}


def _insert(tx: Tx, target: Endpoint, rows: Sequence[Kept], now: int) -> tuple[set[str], dict[str, Detail]]:
    """The ids of those that were made, and the live todos that others stand for; one that just ended keeps none out."""
    made: set[str] = set()
    same: dict[str, Detail] = {}
    while left := [row for row in rows if row.todo.id not in made | same.keys()]:
        made |= insert(tx, left)
        for row in left:
            if row.todo.id not in made and (live := _same(tx, target, row.content, now)) is not None:
                same[row.todo.id] = live
    return made, same


def _same(tx: Tx, target: Endpoint, content: Content, now: int) -> Detail | None:
    """The live todo that kept a new one of the same key out; other contents are a conflict (B6). None: it has ended."""
    row = tx.one(_LIVE, {"endpoint": target.id, "key": content.idempotency_key})
    kept = todo_views.kept_by_id(tx, row.id) if row else None
    if row is None or kept is None:
        return None
    if kept.content.content_hash != content.content_hash:
        message = "A live todo of this endpoint has this idempotency_key and other contents. Use another key."
        raise Refused(conflict(message, "idempotency_key", todo_id=row.id))
    return todo_views.detail(kept, target.slug, now, None)


def _tell_made(tx: Tx, caller: Caller, target: Endpoint, made: Sequence[Kept], now: int) -> None:
    if any(row.todo.ready for row in made):
        tx.notify("todo", target.id)
    if made:
        tx.notify("board", target.human)
    if isinstance(caller, Human):
        for row in made:
            told = json.dumps(row.content.title, ensure_ascii=False)
            audit.write(tx, caller.id, caller, "create", ("todo", row.todo.id), f"{told} on {target.slug}", now)
