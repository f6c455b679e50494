"""How deep a human's board was, over the last day: how many todos were live, how many of them held, at each time.

Counted from what todos and claims say of their own times, so that nothing has to be sampled or kept for it.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import sqlalchemy as sa

from tenure.board.access import Human
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.rules.instant import DAY

POINTS: Final = 96
# What is older than the window counts at its beginning; each part is one pass over what lived in it.
_LIVED: Final = (
    "FROM todos JOIN endpoints ON endpoints.id = todos.endpoint"
    " WHERE endpoints.human = :me AND (todos.ended IS NULL OR todos.ended > :since)"
)
_HELD: Final = (
    "FROM todos JOIN endpoints ON endpoints.id = todos.endpoint JOIN claims ON claims.todo = todos.id"
    " WHERE endpoints.human = :me AND (todos.ended IS NULL OR todos.ended > :since)"
    " AND (claims.ended IS NULL OR claims.ended > :since)"
)


class Depth(NamedTuple):
    """The board at one time: live todos, and those of them that were held on a lease."""

    at: int
    live: int
    held: int


def over_time(tx: Tx, board: Board, human: Human) -> list[Depth]:
    """The last day in `POINTS` steps, oldest first."""
    now = tx.now()
    step = DAY // POINTS
    values = {"me": human.id, "since": now - DAY, "step": step}

    def changes(column: str, among: str) -> dict[int, int]:
        place = f"CASE WHEN {column} <= :since THEN 0 ELSE ({column} - :since) / :step + 1 END"
        rows = tx.all(
            sa.text(f"SELECT {place} AS place, count(*) AS many {among} AND {column} IS NOT NULL GROUP BY 1"),
            values,
        )
        return {row.place: row.many for row in rows}

    born, ended = changes("todos.created", _LIVED), changes("todos.ended", _LIVED)
    granted, closed = changes("claims.granted", _HELD), changes("claims.ended", _HELD)
    found, live, held = [], 0, 0
    for place in range(POINTS + 1):
        live += born.get(place, 0) - ended.get(place, 0)
        held += granted.get(place, 0) - closed.get(place, 0)
        found.append(Depth(now - DAY + place * step, live, held))
    return found
