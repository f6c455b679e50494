"""The reaper: requeues what lapsed, wakes what is due, ends what expired, prunes what is old. Any number may run.

It puts into effect what the rules count as done by the clock already (B13, B24), and never decides.
Rows that others hold are left out and come up again, so that it blocks no claim and no other reaper.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import sqlalchemy as sa

from tenure.board import buckets, signing_in, tables, todo_rows, vending, webhooks
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused
from tenure.board.todo_rows import CLAIM_COLUMNS, TODO, TODO_COLUMNS, claim_from, todo_from
from tenure.board.todo_writes import Changes
from tenure.rules.instant import DAY, HOUR
from tenure.rules.todo_commands import Lapse, Wake
from tenure.rules.todos import decide

log = logging.getLogger("tenure.board")
BATCH: Final = 1_000
PRUNE_SECONDS: Final = 60


class Reaped(NamedTuple):
    """What one round did."""

    lapsed: int = 0
    retried: int = 0
    woken: int = 0

    @property
    def full(self) -> bool:
        """Whether a kind came up full: there may be more at once."""
        return max(self) >= BATCH


# In two steps: a planner that joins while it looks may walk all todos from the oldest on.
LAPSED: Final = "SELECT todo FROM claims WHERE ended IS NULL AND expires <= :now ORDER BY todo LIMIT :limit"
_HELD: Final = (
    f"SELECT {TODO_COLUMNS}, {CLAIM_COLUMNS} FROM todos JOIN claims ON claims.id = todos.claim"
    " WHERE {} AND claims.ended IS NULL AND claims.expires <= :now ORDER BY todos.id"
)
RETRY: Final = (
    f"SELECT {TODO_COLUMNS} FROM todos WHERE retry_at IS NOT NULL AND retry_at <= :now ORDER BY retry_at LIMIT :limit"
)
WAITING: Final = (
    f"SELECT {TODO_COLUMNS} FROM todos WHERE state = 'pending' AND NOT ready AND blockers = 0 AND not_before <= :now"
    " ORDER BY not_before LIMIT :limit"
)


def reap(tx: Tx, board: Board, limit: int = BATCH) -> Reaped:
    """One batch of each kind of what is due; call again at once while a kind comes up full."""
    woken = _wake(tx, RETRY, limit), _wake(tx, WAITING, limit)
    return Reaped(lapse(tx, board, limit), *woken)


def lapse(tx: Tx, board: Board, limit: int = BATCH) -> int:
    """Requeue a batch of todos whose leases have lapsed (B14). A heartbeat that raced it has won or lost whole."""
    now = tx.now()
    over = tx.all(sa.text(LAPSED), {"now": now, "limit": limit})
    if not over:
        return 0
    held = _HELD.format(todo_rows.among(tx, "todos.id", "over"))
    parameters = {"now": now, "over": todo_rows.listed(tx, [row[0] for row in over])}
    rows, now = todo_rows.locked(tx, held, parameters, "todos, claims", skip=True)
    changes = Changes()
    for row in rows:
        todo = todo_from(row)
        changes.put(todo, decide(todo, Lapse(), now, claim_from(row, len(TODO))))
    _put(tx, changes)
    return len(changes.todos)


def _wake(tx: Tx, due: str, limit: int) -> int:
    rows, now = todo_rows.locked(tx, due, {"now": tx.now(), "limit": limit}, "todos", skip=True)
    changes = Changes()
    for row in rows:
        todo = todo_from(row)
        changes.put(todo, decide(todo, Wake(), now))
    _put(tx, changes)
    return len(changes.todos)


def _put(tx: Tx, changes: Changes) -> None:
    """Write, and tell the endpoints that have something ready and the humans whose boards look different."""
    if not changes.todos:
        return
    changes.write(tx)
    touched = {todo.endpoint for todo in changes.todos.values()}
    for endpoint in {todo.endpoint for todo in changes.todos.values() if todo.ready}:
        tx.notify("todo", endpoint)
    of = sa.select(tables.endpoints.c.human).where(tables.endpoints.c.id.in_(touched)).distinct()
    for (human,) in tx.all(of):
        tx.notify("board", human)


# --- pruning ----------------------------------------------------------------------------------------------

# Todos that ended long ago, but never one that a live todo depends on (B7). What depends on them goes first, or with
# them: an edge is dropped with either end.
_OLD_TODOS: Final = (
    "SELECT id FROM todos WHERE ended <= :before AND NOT EXISTS (SELECT 1 FROM dependencies JOIN todos AS live"
    " ON live.id = dependencies.todo WHERE dependencies.needs = todos.id AND live.ended IS NULL)"
    " ORDER BY ended LIMIT :limit"
)


def prune(tx: Tx, board: Board, limit: int = BATCH) -> int:
    """Delete a batch of what is kept no longer (B7, B12a, B49): todos with their claims, remembered requests, slots.

    Buckets that are full again, and links and sessions that are over, go with them.
    """
    now, kept = tx.now(), board.settings
    old = tx.all(
        sa.text(_OLD_TODOS + (" FOR UPDATE SKIP LOCKED" if tx.postgres else "")),
        {"before": now - kept.retention_days * DAY, "limit": limit},
    )
    pruned = len(old)
    if old:
        gone = {"gone": todo_rows.listed(tx, [row[0] for row in old])}
        for name, column in (("dependencies", "needs"), ("todos", "id")):
            tx.execute(sa.text(f"DELETE FROM {name} WHERE {todo_rows.among(tx, column, 'gone')}"), gone)
    # A delivery may come again for as long as its todo can be there.
    requests, messages = tables.requests, now - kept.retention_days * DAY
    for table, before, also in (
        (
            requests,
            now - kept.requests_hours * HOUR,
            sa.or_(requests.c.verb != webhooks.VERB, requests.c.created <= messages),
        ),
        (tables.slots, now - kept.slots_days * DAY, sa.true()),
    ):
        keys = list(table.primary_key.columns)
        some = sa.select(*keys).where(table.c.created <= before, also).limit(limit)
        pruned += tx.execute(sa.delete(table).where(sa.tuple_(*keys).in_(some))).rowcount
    buckets.prune(tx, board)
    signing_in.prune(tx, board)
    return pruned


class Reaper:
    """The loops of a server: a round every `settings.reaper_seconds`, until it is stopped."""

    def __init__(self, board: Board) -> None:
        self.board = board
        self.behind = 0.0
        """How many seconds the last round took: what is due waits that much longer."""
        self._pruned = float("-inf")

    async def run(self) -> None:
        """Reap until cancelled; an unreachable database is waited for."""
        # Apart: an endpoint that expires may have very many todos, or one that somebody holds, and no lapse waits for
        # that (B14).
        await asyncio.gather(self._again(self._requeue), self._again(self._expire))

    async def _again(self, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await step()
            except Refused as refused:
                log.warning("reaper: %s", refused)
            except Exception:
                log.exception("reaper: a round failed; the next one tries again")
            await asyncio.sleep(self.board.settings.reaper_seconds)

    async def _requeue(self) -> None:
        await self._round()
        if time.monotonic() - self._pruned >= PRUNE_SECONDS:
            while await self.board.database.write(prune, self.board) >= BATCH:
                await self._round()  # what is due waits for one batch at most (B14)
            self._pruned = time.monotonic()

    async def _expire(self) -> None:
        while await self.board.database.write(vending.expire_due, self.board):
            pass

    async def _round(self) -> None:
        began = time.monotonic()
        while (await self.board.database.write(reap, self.board)).full:
            pass
        self.behind = time.monotonic() - began
