"""The audit: who did what, to what, and when, in the transaction that did it. Lines are added, never changed."""

from __future__ import annotations

from typing import Literal, NamedTuple

import sqlalchemy as sa

from tenure.board import ids, tables
from tenure.board.access import Human, Worker, storable
from tenure.board.board import Board
from tenure.board.database import Tx

Kind = Literal[
    "human", "session", "token", "agent", "endpoint", "credential", "todo", "webhook", "friendship", "schedule", "job"
]
Subject = tuple[Kind, str]  # and its id
LIMIT = 200


class Entry(NamedTuple):
    """One line of the audit."""

    id: str
    actor: Literal["human", "endpoint", "server"]
    actor_id: str
    action: str
    subject: str
    subject_id: str
    summary: str
    created: int


def write(
    tx: Tx, human: str, actor: Human | Worker | None, action: str, subject: Subject, summary: str, now: int
) -> None:
    """Add a line to the audit of `human` (an id). `actor` None: the server, or its command, did it by itself."""
    kind = "server" if actor is None else "human" if isinstance(actor, Human) else "endpoint"
    tx.execute(
        sa.insert(tables.audit).values(
            id=ids.new("au", now),
            human=human,
            actor=kind,
            actor_id="" if actor is None else actor.id,
            action=action,
            subject=subject[0],
            subject_id=subject[1],
            summary=summary,
            created=now,
        )
    )


def list_page(tx: Tx, board: Board, human: Human, *, before: str | None = None, limit: int = 50) -> list[Entry]:
    """The human's audit, newest first, from before the line of id `before` on."""
    table = tables.audit
    statement = sa.select(*(table.c[name] for name in Entry._fields)).where(table.c.human == human.id)
    if before is not None:
        statement = statement.where(table.c.id < before)
    statement = statement.order_by(table.c.id.desc()).limit(min(limit, LIMIT))
    return [Entry._make(row) for row in tx.all(statement)] if storable(before or "") else []
