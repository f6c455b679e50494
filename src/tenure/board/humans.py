"""Humans: the only accountable principals. They are added on the database itself, for there is no open registration.

Passwords are argon2id, hashed on a thread and outside of every transaction: a hash takes a fifth of a second.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

import sqlalchemy as sa

from tenure.board import audit, ids, tables
from tenure.board.board import Board
from tenure.board.database import Tx
from tenure.board.refused import Refused, granted
from tenure.rules import endpoints as rules
from tenure.rules.refusal import conflict


class Person(NamedTuple):
    """A human as others of the server's commands see them."""

    id: str
    name: str
    has_password: bool
    created: int


def add(tx: Tx, board: Board, name: str) -> Person:
    """Add a human without a password: a sign-in link, or a password, lets them in. Raises Refused."""
    checked = granted(rules.label(name, "name"))
    if tx.one(sa.select(tables.humans.c.id).where(tables.humans.c.name == checked)) is not None:
        raise Refused(conflict(f"There is a human of the name {checked} already; choose another.", "name_taken"))
    now = tx.now()
    person = Person(ids.new("hu", now), checked, False, now)
    tx.execute(sa.insert(tables.humans).values(id=person.id, name=person.name, friend_code=_friend_code(), created=now))
    audit.write(tx, person.id, None, "add", ("human", person.id), f"{checked} was added", now)
    return person


def _friend_code() -> str:
    """What others must know to ask for friendship: 80 bits, in groups that can be read out."""
    code = "".join(secrets.choice(ids.DIGITS) for _ in range(16)).upper()
    return "-".join(code[at : at + 4] for at in range(0, 16, 4))
