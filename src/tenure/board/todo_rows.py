"""Todos and claims as the rules see them, read from their rows under locks.

The texts of these statements are the same for both databases but for locks and lists, and know no rule. Locks are taken
in the order of the todos' ids, and each todo's before its claim's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

import sqlalchemy as sa

from tenure.board.database import Tx
from tenure.rules.todo import Claim, Todo
from tenure.rules.todo_content import Content

TODO: Final = tuple(name for name in Todo._fields if name != "result")
CLAIM: Final = Claim._fields
CONTENT: Final = Content._fields


class Kept(NamedTuple):
    """A todo with what stands beside it in its row."""

    todo: Todo
    content: Content
    created: int
    depends_on: tuple[str, ...]


def columns(names: Iterable[str], table: str) -> str:
    """These columns of a table, for the text of a statement."""
    return ", ".join(f'{table}."{name}"' for name in names)


TODO_COLUMNS: Final = columns(TODO, "todos")
CLAIM_COLUMNS: Final = columns(CLAIM, "claims")
_CLAIM_AS: Final = ", ".join(f'claims."{name}" AS "claim_{name}"' for name in CLAIM)
_NEEDS: Final = {
    True: "(SELECT CAST(json_agg(needs) AS text) FROM dependencies WHERE todo = todos.id)",
    False: "(SELECT json_group_array(needs) FROM dependencies WHERE todo = todos.id)",
}


def kept_columns(tx: Tx) -> str:
    """The columns that `kept_from` reads."""
    return f"{TODO_COLUMNS}, {columns(CONTENT, 'todos')}, todos.created, {_NEEDS[tx.postgres]} AS depends_on"


def todo_from(row: Sequence[Any], at: int = 0) -> Todo:
    """The todo whose columns begin at this place of the row."""
    return Todo(*row[at : at + len(TODO)])


def claim_from(row: Sequence[Any], at: int = 0) -> Claim:
    """The claim whose columns begin at this place of the row."""
    return Claim(*row[at : at + len(CLAIM)])


def kept_from(row: Sequence[Any]) -> Kept:
    """What `kept_columns` named, from the row's beginning on."""
    at = len(TODO) + len(CONTENT)
    needs = tuple(sorted(json.loads(row[at + 1]))) if row[at + 1] else ()
    return Kept(todo_from(row), Content(*row[len(TODO) : at]), row[at], needs)


def among(tx: Tx, column: str, parameter: str) -> str:
    """`column` is one of a list of texts."""
    if tx.postgres:
        return f"{column} = ANY(CAST(:{parameter} AS text[]))"
    return f"{column} IN (SELECT value FROM json_each(:{parameter}))"


def listed(tx: Tx, values: Iterable[str]) -> Any:
    """A list of texts as the parameter that `among` compares with."""
    return list(values) if tx.postgres else json.dumps(list(values))


# --- reading under locks ----------------------------------------------------------------------------------


def locked(tx: Tx, select: str, parameters: dict[str, Any], of: str, *, skip: bool = False) -> tuple[list[Any], int]:
    """The rows of a SELECT, locked, and the database's time after the last lock (B15).

    The clock is read for each row as it comes out of the locked part: one round trip.
    """
    if not tx.postgres:
        return tx.all(_text(select), parameters), tx.now()
    statement = locking(select, of, skip)
    rows = tx.all(statement, parameters)
    return rows, (rows[-1][-1] + tx.offset_ms()) if rows else tx.now()


@cache
def _text(statement: str) -> sa.TextClause:
    return sa.text(statement)


@cache
def locking(select: str, of: str, skip: bool) -> sa.TextClause:
    skipped = " SKIP LOCKED" if skip else ""
    clock = "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS bigint)"
    return sa.text(
        f"WITH found AS MATERIALIZED ({select} FOR NO KEY UPDATE OF {of}{skipped}) SELECT found.*, {clock} FROM found"
    )


def of_owner(tx: Tx, todo_id: str, human: str) -> tuple[Todo, Claim | None, int] | None:
    """A human's todo under its lock, its open claim, and the time; None: another's or none at all."""
    select = (
        f"SELECT {TODO_COLUMNS} FROM todos WHERE todos.id = :id"
        " AND EXISTS (SELECT 1 FROM endpoints WHERE endpoints.id = todos.endpoint AND endpoints.human = :human)"
    )
    return _with_open_claim(tx, select, {"id": todo_id, "human": human})


def of_endpoint(tx: Tx, todo_id: str, endpoint: str) -> tuple[Todo, Claim | None, int] | None:
    """An endpoint's todo under its lock, its open claim, and the time; None: another's or none at all."""
    select = f"SELECT {TODO_COLUMNS} FROM todos WHERE todos.id = :id AND todos.endpoint = :endpoint"
    return _with_open_claim(tx, select, {"id": todo_id, "endpoint": endpoint})


def _with_open_claim(tx: Tx, select: str, parameters: dict[str, Any]) -> tuple[Todo, Claim | None, int] | None:
    rows, now = locked(tx, select, parameters, "todos")
    if not rows:
        return None
    todo = todo_from(rows[0])
    if todo.claim is None:
        return todo, None, now
    # Its own statement, after the todo's lock: a heartbeat locks the claim alone.
    select = f"SELECT {CLAIM_COLUMNS} FROM claims WHERE claims.id = :id"
    rows, now = locked(tx, select, {"id": todo.claim}, "claims")
    return todo, claim_from(rows[0]), now


def by_token(
    tx: Tx, endpoint: str, todo_ids: Sequence[str], hashes: Sequence[str], *, lock: str = "todos, claims"
) -> tuple[dict[tuple[str, str], tuple[Todo, Claim]], int]:
    """The endpoint's claims with these tokens, by todo and hash, with their todos; and the time.

    lock: `claims` alone is enough while they are open: nobody changes a claimed todo but with its claim, so what was
    read of the todo before the lock still holds. Empty: nothing is locked.
    """
    select = (
        f"SELECT {TODO_COLUMNS}, {_CLAIM_AS} FROM todos JOIN claims ON claims.todo = todos.id"
        f" WHERE {among(tx, 'todos.id', 'todos')} AND {among(tx, 'claims.hash', 'hashes')}"
        " AND claims.endpoint = :endpoint ORDER BY todos.id"
    )
    parameters = {"todos": listed(tx, todo_ids), "hashes": listed(tx, hashes), "endpoint": endpoint}
    rows, now = locked(tx, select, parameters, lock) if lock else (tx.all(_text(select), parameters), tx.now())
    found = {}
    for row in rows:
        claim = claim_from(row, len(TODO))
        found[claim.todo, claim.hash or ""] = todo_from(row), claim
    return found, now


def by_claim(tx: Tx, endpoint: str, claim_ids: Sequence[str]) -> list[Claim]:
    """The endpoint's claims of these ids, in the order they were granted."""
    select = f"SELECT {CLAIM_COLUMNS} FROM claims WHERE endpoint = :endpoint AND {among(tx, 'id', 'ids')} ORDER BY id"
    rows = tx.all(_text(select), {"endpoint": endpoint, "ids": listed(tx, claim_ids)})
    return [claim_from(row) for row in rows]


def own(tx: Tx, endpoint: str, todo_ids: Sequence[str]) -> set[str]:
    """Which of these todos are the endpoint's."""
    if not todo_ids:
        return set()
    select = f"SELECT id FROM todos WHERE endpoint = :endpoint AND {among(tx, 'id', 'todos')}"
    return {row[0] for row in tx.all(_text(select), {"endpoint": endpoint, "todos": listed(tx, todo_ids)})}


def ready(tx: Tx, endpoint: str, queues: Sequence[str], limit: int) -> tuple[list[Kept], int]:
    """The first ready todos of these queues in their order (B3), locked; those that others hold are left out."""
    parameters = {"endpoint": endpoint, "limit": limit, **{f"q{place}": name for place, name in enumerate(queues)}}
    select = ready_select(kept_columns(tx), len(queues))
    rows, now = locked(tx, select, {**parameters, "window": limit + WINDOW}, "todos", skip=True)
    if not rows and len(queues) > 1:  # others may hold all that was looked at
        rows, now = locked(tx, select, {**parameters, "window": limit + WINDOW_LIMIT}, "todos", skip=True)
    return [kept_from(row) for row in rows], now


# Several queues are merged from so many todos of each beyond what is asked for, as others may hold some of them.
WINDOW: Final = 100
WINDOW_LIMIT: Final = 5_000


@cache
def ready_select(wanted: str, queues: int) -> str:
    """Each queue is a stretch of ix_todos_ready in the order of the claim; of several the heads are merged.

    Under the lock only the conditions on `todos` are looked at again, so they are said there too: a todo may have been
    claimed or moved since. `|| ''` keeps planners from using these for another way than by the id.
    """
    if queues == 1:
        return f"SELECT {wanted} FROM todos WHERE {_READY.format(0)} ORDER BY order_ms, id LIMIT :limit"
    heads = " UNION ALL ".join(
        f"SELECT * FROM (SELECT id, queue, order_ms FROM todos WHERE {_READY.format(place)}"
        f" ORDER BY order_ms, id LIMIT :window) AS head_{place}"
        for place in range(queues)
    )
    return (
        f"SELECT {wanted} FROM ({heads}) AS first JOIN todos ON todos.id = first.id WHERE todos.ready"
        " AND todos.endpoint || '' = :endpoint AND todos.queue || '' = first.queue"
        " ORDER BY first.order_ms, first.id LIMIT :limit"
    )


_READY: Final = "endpoint = :endpoint AND queue = :q{} AND ready"
