"""Todos and claims as the rules have decided, written to their rows: on PostgreSQL all of it in one statement."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final

import sqlalchemy as sa

from tenure.board import tables, todo_rows
from tenure.board.database import Tx
from tenure.board.todo_rows import CLAIM, CONTENT, Kept
from tenure.rules.todo import Claim, Todo
from tenure.rules.todo_commands import Unblock
from tenure.rules.todos import Decision, decide

_CHANGING: Final = (
    "endpoint", "queue", "state", "ready", "order_ms", "blockers", "attempts", "failures", "lapses", "failures_cap",
    "lapses_cap", "retry_at", "claim", "reason", "ended", "needed",
)  # fmt: skip
_RENEWED: Final = (
    "expires", "ttl_seconds", "ttl_source", "heartbeats", "heartbeat", "ended", "end", "reason", "late", "late_at",
)  # fmt: skip


class Changes:
    """What a use case has decided so far: each todo and claim once, as it is to be, however often it was changed."""

    def __init__(self) -> None:
        self.todos: dict[str, Todo] = {}
        self.claims: dict[str, Claim] = {}

    def put(self, before: Todo, decision: Decision) -> Decision:
        """Note a decision; it comes back as it is."""
        if decision.todo is not before:
            self.todos[before.id] = decision.todo
        self.claims.update((claim.id, claim) for claim in decision.claims)
        return decision

    def write(self, tx: Tx) -> None:
        """Write it all: on PostgreSQL in one statement, whatever its number."""
        todos = [todo._asdict() for todo in self.todos.values()]
        claims = [claim._asdict() for claim in self.claims.values()]
        if tx.postgres:
            _write_json(tx, todos, claims)
            return
        if todos:
            tx.execute(_UPDATE_ONE, todos)
        if claims:
            tx.execute(_UPSERT_ONE, claims)


def _write_json(tx: Tx, todos: list[dict[str, Any]], claims: list[dict[str, Any]]) -> None:
    if todos and claims:
        tx.execute(_BOTH, {"todos": json.dumps(todos), "claims": json.dumps(claims)})
    elif todos:
        tx.execute(_UPDATE_ALL, {"todos": json.dumps(todos)})
    elif claims:
        tx.execute(_UPSERT_ALL, {"claims": json.dumps(claims)})


def unblock(tx: Tx, changes: Changes, now: int) -> None:
    """Those that waited for what is done now wait for less (B2). Their locks come last: they are younger."""
    done = [todo.id for todo in changes.todos.values() if todo.state == "done" and todo.needed]
    if not done:
        return
    select = f"SELECT todo FROM dependencies WHERE {todo_rows.among(tx, 'needs', 'done')}"
    waiting = Counter(row[0] for row in tx.all(sa.text(select), {"done": todo_rows.listed(tx, done)}))
    select = f"SELECT {todo_rows.TODO_COLUMNS} FROM todos WHERE {todo_rows.among(tx, 'id', 'waiting')} ORDER BY id"
    rows, _ = todo_rows.locked(tx, select, {"waiting": todo_rows.listed(tx, waiting)}, "todos")
    for row in rows:
        todo = changes.todos.get(row[0]) or todo_rows.todo_from(row)
        changes.put(todo, decide(todo, Unblock(waiting[todo.id]), now))


def insert(tx: Tx, rows: Sequence[Kept]) -> set[str]:
    """Add todos; the ids of those that were, for a live one of the same key keeps another out (B6)."""
    values = [{**row.todo._asdict(), **row.content._asdict(), "created": row.created, "result": None} for row in rows]
    names = (*Todo._fields, *CONTENT, "created")
    if tx.postgres:
        return {row[0] for row in tx.all(_insert_all(names), {"rows": json.dumps(values)})}
    return {value["id"] for value in values if tx.all(_insert_one(names), value)}


_UNLESS_LIVE: Final = (
    "ON CONFLICT (endpoint, idempotency_key) WHERE ended IS NULL AND idempotency_key IS NOT NULL"
    " DO NOTHING RETURNING id"
)  # fmt: skip


@cache
def _insert_all(names: tuple[str, ...]) -> sa.TextClause:
    listed_names = ", ".join(names)
    return sa.text(
        f"INSERT INTO todos ({listed_names}) SELECT {listed_names}"
        f" FROM json_to_recordset(CAST(:rows AS json)) AS given({_typed('todos', names)}) {_UNLESS_LIVE}"
    )


@cache
def _insert_one(names: tuple[str, ...]) -> sa.TextClause:
    values = ", ".join(f":{name}" for name in names)
    return sa.text(f"INSERT INTO todos ({', '.join(names)}) VALUES ({values}) {_UNLESS_LIVE}")


def _typed(table: str, names: Iterable[str]) -> str:
    """Names of columns with their types, as PostgreSQL reads a list of records."""
    dialect = sa.dialects.registry.load("postgresql")()
    return ", ".join(f'"{name}" {tables.metadata.tables[table].c[name].type.compile(dialect)}' for name in names)


_UPDATE_SETS: Final = "version = todos.version + 1, result = COALESCE({0}result, todos.result), "
_UPDATE_ONE: Final = sa.text(
    f"UPDATE todos SET {_UPDATE_SETS.format(':')}{', '.join(f'{name} = :{name}' for name in _CHANGING)} WHERE id = :id"
)
_UPDATE: Final = (
    f"UPDATE todos SET {_UPDATE_SETS.format('given.')}{', '.join(f'{name} = given.{name}' for name in _CHANGING)}"
    f" FROM json_to_recordset(CAST(:todos AS json)) AS given({_typed('todos', ('id', *_CHANGING, 'result'))})"
    " WHERE todos.id = given.id"
)
_RENEWING: Final = ", ".join(f'"{name}" = excluded."{name}"' for name in _RENEWED)
_UPSERT_SETS: Final = f" ON CONFLICT (id) DO UPDATE SET {_RENEWING}"
_NAMES: Final = ", ".join(f'"{name}"' for name in CLAIM)
_UPSERT_ONE: Final = sa.text(
    f"INSERT INTO claims ({_NAMES}) VALUES ({', '.join(f':{name}' for name in CLAIM)}){_UPSERT_SETS}"
)
_UPSERT: Final = (
    f"INSERT INTO claims ({_NAMES}) SELECT {_NAMES}"
    f" FROM json_to_recordset(CAST(:claims AS json)) AS given({_typed('claims', CLAIM)}){_UPSERT_SETS}"
)
_UPDATE_ALL: Final = sa.text(_UPDATE)
_UPSERT_ALL: Final = sa.text(_UPSERT)
_BOTH: Final = sa.text(f"WITH changed AS ({_UPDATE}) {_UPSERT}")
