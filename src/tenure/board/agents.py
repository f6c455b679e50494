"""Agents: records of one human, under which endpoints are grouped. They grant nothing by themselves."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa

from tenure.board import audit, ids, tables
from tenure.board.access import Human
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import granted
from tenure.rules import endpoints as rules


class Agent(NamedTuple):
    """A row of `agents`."""

    id: str
    name: str
    created: int


def list_all(tx: Tx, board: Board, human: Human) -> list[Agent]:
    """The human's agents, by name."""
    table = tables.agents
    statement = sa.select(table.c.id, table.c.name, table.c.created).where(table.c.human == human.id)
    return [Agent._make(row) for row in tx.all(statement.order_by(table.c.name))]


def named(tx: Tx, board: Board, human: Human, name: str) -> Agent:
    """The human's agent of this name, made where there is none. Raises Refused."""
    checked = granted(rules.label(name, "agent"))
    table, now = tables.agents, tx.now()
    statement = sa.select(table.c.id, table.c.name, table.c.created).where(
        table.c.human == human.id, table.c.name == checked
    )
    row = tx.one(statement)
    if row is None:
        made = Agent(ids.new("ag", now), checked, now)
        if not tx.insert_new(table, **made._asdict(), human=human.id):  # made by another in this moment
            return Agent._make(tx.execute(statement).one())
        audit.write(tx, human.id, human, "add", ("agent", made.id), f"agent {checked} was added", now)
        return made
    return Agent._make(row)
