"""The driver's connection as a handler gets it in `run.transaction()`: all but the transaction's end is its own.

What it wrote may stand only together with the store's own change. So its code can neither commit nor roll
back, and once the transaction has ended nothing runs any more: else a statement that comes late would
be committed by itself.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from typing import Any, Final, NoReturn, Self

from tenure.errors import StoreError
from tenure.stores.sqlite.connecting import Connection, close
from tenure.stores.sqlite.refusals import code
from tenure.stores.sqlite.schema import ROLLBACK

# A running statement looks up this often, in steps of SQLite's machine, whether it is to stop (about a millisecond).
_STEPS: Final = 20_000

_OURS_TO_END: Final = (
    "run.transaction() commits and rolls back by itself, together with the run's token. Leave its block to "
    "commit, or raise to roll back; within it use execute() and SAVEPOINT."
)
_ROLLED_BACK: Final = (
    "SQLite rolled the transaction back after an error, so none of its writes stand. Leave the block of "
    "run.transaction() and try again."
)
_FORKED: Final = "This transaction belongs to the process that forked this one. Use it there."


class GuardedConnection(Connection):
    """A connection whose statements run only while its transaction does.

    lock: held while a statement runs; refused: why none may run any more.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.lock = threading.RLock()
        self.refused: StoreError | None = None
        self._ending = False
        self._cursors: weakref.WeakSet[sqlite3.Cursor] = weakref.WeakSet()
        self._pid = os.getpid()

    # --- for the transaction ------------------------------------------------------------------------------

    def hand_over(self) -> None:
        """From here on the user's code has it."""
        self.set_authorizer(self._authorize)
        self.set_progress_handler(self._stops, _STEPS)

    def end(self, how: str) -> None:
        """Commit or roll back, and close; the caller holds the lock. Raises sqlite3.Error."""
        self._ending = True
        if self.refused is None:
            self.refused = StoreError("This transaction has ended. Open another with run.transaction().")
        for cursor in tuple(self._cursors):
            sqlite3.Cursor.close(cursor)
        try:
            if self.in_transaction:
                sqlite3.Cursor(self).execute(how)
        finally:
            with contextlib.suppress(sqlite3.Error):
                if self.in_transaction:
                    sqlite3.Cursor(self).execute(ROLLBACK)
            close(self)

    def check(self) -> None:
        """Raise where the transaction has ended, be it by SQLite alone; the caller holds the lock."""
        if self.refused is None and not self.in_transaction:
            self.refused = StoreError(_ROLLED_BACK)
        if self.refused is not None:
            raise self.refused

    def _authorize(self, action: int, *_: str | None) -> int:
        refused = action == sqlite3.SQLITE_TRANSACTION and not self._ending
        return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK

    def _stops(self) -> int:
        return int(self.refused is not None and not self._ending)

    # --- for the user -------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def guard(self) -> Iterator[None]:
        """Run a statement of the user's, unless the transaction has ended."""
        if os.getpid() != self._pid:
            raise StoreError(_FORKED)
        with self.lock:
            self.check()
            try:
                yield
            except sqlite3.DatabaseError as error:
                if code(error) == sqlite3.SQLITE_INTERRUPT and self._stops():
                    raise self.refused or error from error
                if code(error) == sqlite3.SQLITE_AUTH:
                    raise StoreError(_OURS_TO_END) from error
                raise

    def cursor(self, factory: Any = None, /) -> Any:
        with self.guard():
            cursor = super().cursor(factory or GuardedCursor)
        self._cursors.add(cursor)
        return cursor

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        return self.cursor().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> Any:
        return self.cursor().executemany(sql, parameters)

    def executescript(self, sql_script: str, /) -> Any:
        return self.cursor().executescript(sql_script)

    def blobopen(self, *arguments: Any, **options: Any) -> Any:
        with self.guard():
            return super().blobopen(*arguments, **options)

    def commit(self) -> NoReturn:
        raise StoreError(_OURS_TO_END)

    def rollback(self) -> NoReturn:
        raise StoreError(_OURS_TO_END)

    def close(self) -> NoReturn:
        raise StoreError(_OURS_TO_END)

    def __enter__(self) -> NoReturn:
        raise StoreError(_OURS_TO_END)


class GuardedCursor(sqlite3.Cursor):
    """A cursor that runs and fetches nothing once the transaction has ended."""

    connection: GuardedConnection

    def execute(self, sql: str, parameters: Any = (), /) -> Self:
        with self.connection.guard():
            return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> Self:
        with self.connection.guard():
            return super().executemany(sql, parameters)

    def executescript(self, sql_script: str, /) -> NoReturn:
        raise StoreError("executescript() would commit before it begins. Call execute() for each statement.")

    def fetchone(self) -> Any:
        with self.connection.guard():
            return super().fetchone()

    def fetchmany(self, size: int | None = None) -> list[Any]:
        with self.connection.guard():
            return super().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> list[Any]:
        with self.connection.guard():
            return super().fetchall()

    def __next__(self) -> Any:
        with self.connection.guard():
            return super().__next__()
