"""Columns and constraints as the board's tables use them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa


def key() -> sa.Column[Any]:
    """The id of a row."""
    return sa.Column("id", sa.Text, primary_key=True)


def owner(table: str, name: str = "", *, nullable: bool = False) -> sa.Column[Any]:
    """Whose the row is: the id of one of that table's."""
    name = name or table.rstrip("s")
    return sa.Column(name, sa.Text, sa.ForeignKey(f"{table}.id"), nullable=nullable)


def text(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    """Text, JSON included."""
    return sa.Column(name, sa.Text, nullable=nullable)


def time(name: str, *, nullable: bool = False) -> sa.Column[Any]:
    """Milliseconds since the epoch."""
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def count(name: str, default: int = 0) -> sa.Column[Any]:
    """A whole number that begins at `default`."""
    return sa.Column(name, sa.Integer, nullable=False, server_default=sa.text(str(default)))


def check(name: str, rule: str) -> sa.CheckConstraint:
    """A rule of the row."""
    return sa.CheckConstraint(rule, name=name)


def partial(name: str, *columns: str, where: str, unique: bool = False) -> sa.Index:
    """An index of the rows where the condition holds."""
    rule = sa.text(where)
    return sa.Index(name, *columns, unique=unique, postgresql_where=rule, sqlite_where=rule)


def one_of(column: str, words: Iterable[str]) -> sa.CheckConstraint:
    """The column holds one of these words."""
    return check(column, f"{column} IN ({', '.join(repr(word) for word in words)})")
