"""What a server's own upkeep may know of all its humans' boards together: numbers, and nobody's names."""

from __future__ import annotations

from typing import Final, NamedTuple

import sqlalchemy as sa

from tenure.board import tables
from tenure.board.database import Tx
from tenure.rules.bounds import PRIORITY_STEP_MS
from tenure.rules.instant import DAY

LAPSED: Final = "lapsed"


class Readings(NamedTuple):
    """How the board is, all humans together. `oldest_seconds`: how long the oldest ready todo has waited."""

    ready: int
    oldest_seconds: float
    waiting: int
    claimed: int
    lapsed: int
    retrying: int
    dead_today: int
    lapses_today: int
    skipped_slots_today: int


def readings(tx: Tx) -> Readings:
    """Count them, by the indexes of what is live and of what ended lately."""
    todos, claims, slots, now = tables.todos, tables.claims, tables.slots, tx.now()
    state = sa.case((todos.c.ready, "ready"), else_=todos.c.state)
    counted = (
        sa.select(state.label("state"), sa.func.count().label("total")).where(todos.c.ended.is_(None)).group_by(state)
    )
    live: dict[str, int] = {row.state: row.total for row in tx.all(counted)}
    since = sa.func.min(todos.c.order_ms + todos.c.priority * PRIORITY_STEP_MS)
    oldest = tx.execute(sa.select(since).where(todos.c.ready)).scalar_one()
    open_lapsed = sa.select(sa.func.count()).where(claims.c.ended.is_(None), claims.c.expires <= now)
    dead = sa.select(sa.func.count()).where(todos.c.ended >= now - DAY, todos.c.state == "failed")
    lapses = sa.select(sa.func.count()).where(claims.c.ended >= now - DAY, claims.c.end == LAPSED)
    skipped = sa.select(sa.func.count()).where(slots.c.created >= now - DAY, slots.c.outcome != "todo")
    return Readings(
        ready=live.get("ready", 0),
        oldest_seconds=0.0 if oldest is None else max(0, now - oldest) / 1000,
        waiting=live.get("pending", 0),
        claimed=live.get("claimed", 0),
        lapsed=tx.execute(open_lapsed).scalar_one(),
        retrying=live.get("failed", 0),
        dead_today=tx.execute(dead).scalar_one(),
        lapses_today=tx.execute(lapses).scalar_one(),
        skipped_slots_today=tx.execute(skipped).scalar_one(),
    )
