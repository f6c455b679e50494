"""A use case in somebody else's transaction: the connection is lent, and is neither committed nor closed here.

The bridge writes a slot's todo so, in the transaction that ends the slot's run: both stand, or neither does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from tenure.board.database import Database, Notice, Tx

P = ParamSpec("P")
T = TypeVar("T")


class Borrower:
    """Runs use cases on connections that are lent by the runs half, on the same kind of database as the board's."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lent = threading.local()
        own = {"use_native_hstore": False} if database.postgres else {}  # or it would ask who the connection is
        self._engine = sa.create_engine(
            database.engine.url, creator=lambda: _Lent(self._lent.connection), poolclass=NullPool, **own
        )

    def within(
        self, connection: Any, case: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> tuple[T, list[Notice]]:
        """Run `case(tx, ...)` on the driver's connection; returns its value, and what to tell after the commit.

        On PostgreSQL the notices are in the transaction already, and are told with it.
        """
        self._lent.connection = connection
        with self._engine.connect() as lent, lent.begin():
            tx = Tx(lent, self._database.offset_ms, writes=True)
            value = case(tx, *args, **kwargs)
            self._database.send(tx, tx.notices)
        return value, tx.notices


class _Lent:
    """A driver's connection whose transaction is another's to end."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def commit(self) -> None:
        """The lender commits."""

    def rollback(self) -> None:
        """The lender rolls back."""

    def close(self) -> None:
        """The lender goes on with it."""
