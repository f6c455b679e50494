"""Humans: the only accountable principals. They are added on the database itself, for there is no open registration.

`first_human`, `add`, `put_password` and `link_for` are for the server's own machine; the rest is a signed-in human's.
"""

from __future__ import annotations

import secrets
from typing import Final, NamedTuple

import sqlalchemy as sa

from tenure.board import audit, ids, tables
from tenure.board.access import Human
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused, granted
from tenure.rules import endpoints as rules
from tenure.rules.refusal import Refusal, conflict


class Person(NamedTuple):
    """A human as the commands on the server's machine see them."""

    id: str
    name: str
    has_password: bool
    created: int

    @property
    def human(self) -> Human:
        """The same, as who asks."""
        return Human(self.id, self.name, "link")


NO_HUMAN: Final = Refusal("not_found", "There is no human of that name on this board. Add one: tenure human add NAME")


def add(tx: Tx, board: Board, name: str) -> Person:
    """Add a human without a password: a sign-in link, or a password, lets them in. Raises Refused."""
    checked = granted(rules.label(name, "name"))
    now = tx.now()
    person = Person(ids.new("hu", now), checked, False, now)
    code = _friend_code()
    if not tx.insert_new(tables.humans, id=person.id, name=person.name, friend_code=code, created=now):
        raise Refused(conflict(f"There is a human of the name {checked} already; choose another.", "name_taken"))
    audit.write(tx, person.id, None, "add", ("human", person.id), f"{checked} was added", now)
    return person


def first_human(tx: Tx, board: Board, name: str) -> Person | None:
    """Add a human to a board that has none (B52). The caller holds the lock of migrations: no two servers do this."""
    return None if list_all(tx, board) else add(tx, board, name)


def list_all(tx: Tx, board: Board) -> list[Person]:
    """All humans of the board, by name; for the server's own machine alone."""
    table = tables.humans
    has_password = table.c.password.is_not(None).label("has_password")
    statement = sa.select(table.c.id, table.c.name, has_password, table.c.created).order_by(table.c.name)
    return [Person(row.id, row.name, bool(row.has_password), row.created) for row in tx.all(statement)]


def named(tx: Tx, board: Board, name: str) -> Person:
    """The human of this name; for the server's own machine alone. Raises Refused."""
    for person in list_all(tx, board):
        if person.name == name:
            return person
    raise Refused(NO_HUMAN)


def friend_code(tx: Tx, board: Board, human: Human) -> str:
    """What the human shows to those who may ask for friendship."""
    table = tables.humans
    return str(tx.execute(sa.select(table.c.friend_code).where(table.c.id == human.id)).scalar_one())


def new_friend_code(tx: Tx, board: Board, human: Human) -> str:
    """Another code; requests to the one before go nowhere."""
    code, now = _friend_code(), tx.now()
    tx.execute(sa.update(tables.humans).where(tables.humans.c.id == human.id).values(friend_code=code))
    audit.write(tx, human.id, human, "edit", ("human", human.id), "the friend code was changed", now)
    return code


def _friend_code() -> str:
    """80 bits, in groups that can be read out."""
    code = "".join(secrets.choice(ids.DIGITS) for _ in range(16)).upper()
    return "-".join(code[at : at + 4] for at in range(0, 16, 4))
