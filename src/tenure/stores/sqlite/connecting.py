"""Connections: how one is made ready, how a lock is waited for, and what becomes of them in a forked child."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import sqlite3
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from tenure.errors import StoreCorrupt, StoreError, StoreTooOld
from tenure.stores.sqlite.file import DatabaseFile, Identity
from tenure.stores.sqlite.refusals import busy, forked, refusal
from tenure.stores.sqlite.schema import (
    BEGIN_WRITE,
    CLOCK,
    COMMIT,
    DURABILITY,
    LEAN,
    ROLLBACK,
    WRITE_AHEAD,
    Rows,
    Statements,
    prepare,
)
from tenure.stores.sqlite.settings import Settings

T = TypeVar("T")
C = TypeVar("C", bound=sqlite3.Connection)

# STRICT tables came with this one.
OLDEST: Final = (3, 37, 0)

# Of a call's time, the part in which a lock is asked for; the rest is for the answer to travel.
PATIENCE: Final = 0.9

# SQLite's own waiting sleeps longer and longer and is starved by those who come later: four writers were seen
# with shares of 1 to 14. Short random sleeps of our own keep the shares alike.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.0002, 0.01


class Connection(sqlite3.Connection):
    """A connection that can be referred to weakly, so that a forked child can find it."""


class Plain:
    """A connection for the store's own statements, past a guard and a row factory that it may have."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Rows:
        return sqlite3.Cursor(self._connection).execute(sql, parameters)


# The open connections of this process, and the files that its parent had open when it was forked.
_connections: weakref.WeakKeyDictionary[sqlite3.Connection, Identity | None] = weakref.WeakKeyDictionary()
_inherited: set[Identity | None] = set()


def _leave_to_the_parent() -> None:
    """In a forked child: neither free an inherited connection, nor open its file again.

    Freeing one closes it, and that waits for a lock which a thread of the parent may have held at the fork (one
    child in some hundred hung). And SQLite keeps for each file which locks this process holds: after a
    fork that is what the parent held, so a new connection would take none and the file would be damaged.
    What is leaked is some memory and two descriptors.
    """
    for connection, identity in tuple(_connections.items()):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))
        _inherited.add(identity)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_the_parent)


@dataclass(frozen=True, slots=True)
class Database:
    """What the parts of one store share. `origin` is the store's own name, random at each start."""

    file: DatabaseFile
    settings: Settings
    sql: Statements
    origin: str

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def patience(self) -> float:
        """For how many seconds a lock is asked for."""
        return self.settings.timeout * PATIENCE


def connect(database: Database, factory: type[C]) -> C:
    """A connection in autocommit mode, of the durability asked for, that never waits for a lock by itself."""
    identity = database.file.identity()
    if identity in _inherited:
        raise forked(database.path)
    connection = sqlite3.connect(
        Path(database.path).as_uri() + "?mode=rw",  # never makes a file: one that is gone stays gone
        uri=True,
        timeout=0,
        isolation_level=None,
        check_same_thread=False,
        factory=factory,
    )
    _connections[connection] = identity
    try:
        for pragma in (*DURABILITY[database.settings.synchronous], LEAN):
            Plain(connection).execute(pragma).fetchall()
    except BaseException:
        close(connection)
        raise
    return connection


def pauses() -> Iterator[float]:
    """How long to sleep before the lock is asked for once more: random, from nothing to 0.2 ms, doubling to 10 ms."""
    longest = _FIRST_PAUSE
    while True:
        yield random.random() * longest  # noqa: S311 - spreads processes, hides nothing
        longest = min(longest * 2, _LONGEST_PAUSE)


def patiently(attempt: Callable[[], T], path: str, seconds: float, given_up: Callable[[], bool] = lambda: False) -> T:
    """Attempt it until no other process is in the way; in a thread that may sleep.

    Raises StoreBusy after `seconds`, or once nobody wants it any more, and another StoreError for what no
    waiting helps against.
    """
    began = time.monotonic()
    waits = pauses()
    while True:
        try:
            return attempt()
        except sqlite3.Error as error:
            waited = time.monotonic() - began
            if not busy(error) or waited > seconds or given_up():
                raise refusal(error, path, waited) from error
        time.sleep(next(waits))


def set_up(database: Database) -> Connection:
    """Open the file for the first time: make it and its tables where there are none, check what there is.

    Raises StoreError with a sentence, and sqlite3.Error.
    """
    connection = connect(database, Connection)
    try:
        _check_library(connection, database.path)
        connection.execute(BEGIN_WRITE)
        prepare(connection, database.settings.prefix, database.path)
        connection.execute(COMMIT)
        database.file.settle()
    except BaseException:
        abandon(connection)
        raise
    return connection


def reopen(database: Database) -> Connection:
    """A connection to the file that was set up before. Raises StoreGone where it is not the same one."""
    database.file.check_main()
    connection = connect(database, Connection)
    try:
        connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchall()  # opens the log, if need be a new one
        database.file.settle()
    except BaseException:
        abandon(connection)
        raise
    return connection


def abandon(connection: sqlite3.Connection) -> None:
    """Roll back what is open and close; errors change nothing any more."""
    with contextlib.suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute(ROLLBACK)
    with contextlib.suppress(sqlite3.Error):
        close(connection)


def close(connection: sqlite3.Connection) -> None:
    """Close it, past a guard that it may have."""
    _connections.pop(connection, None)
    sqlite3.Connection.close(connection)


def _check_library(connection: sqlite3.Connection, path: str) -> None:
    """What the store needs of the library and of the file's format."""
    if sqlite3.sqlite_version_info < OLDEST:
        raise StoreTooOld(
            f"Tenure needs SQLite {'.'.join(map(str, OLDEST))} or newer, and this Python has {sqlite3.sqlite_version}. "
            f"Use a newer build of Python or of the system's SQLite."
        )
    if not isinstance(connection.execute(CLOCK).fetchone()[0], int):
        raise StoreTooOld(f"SQLite {sqlite3.sqlite_version} tells no time in milliseconds. Use another build of it.")
    mode = connection.execute(WRITE_AHEAD).fetchone()[0]
    if mode != "wal":
        raise StoreError(
            f"{path} can't keep a write-ahead log (its journal mode stays {mode}), which the store needs. "
            f"Put it on a local disk."
        )
    encoding = connection.execute("PRAGMA encoding").fetchone()[0]
    if encoding != "UTF-8":
        raise StoreCorrupt(f"{path} keeps its text in {encoding}, and Tenure needs UTF-8. Use another file.")
