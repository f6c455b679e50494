"""The tables, for whoever operates them: what is still to be made, making it, and what is wrong.

Each of these waits for the disk, in a thread that may, on a store that need not be open.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeVar

from tenure.errors import StoreError, StoreUnavailable
from tenure.stores.sqlite.connecting import Connection, Database, abandon, connect, patiently, set_up
from tenure.stores.sqlite.schema import SCHEMA, created, creation

T = TypeVar("T")

# Of what is damaged so many places are told.
_TOLD: Final = 3


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step of the schema: its SQL, as it is run."""

    number: int
    name: str
    sql: str


def plan(database: Database) -> tuple[Migration, ...]:
    """What `upgrade` would apply; it makes no file. Raises StoreError."""
    if database.file.identity() is not None and _look(database, lambda connection: _created(database, connection)):
        return ()
    statements = creation(database.settings.prefix)
    return (Migration(SCHEMA, "tables", "".join(f"{statement};\n" for statement in statements)),)


def upgrade(database: Database) -> tuple[Migration, ...]:
    """Make the file and the tables where there are none; what was applied. Raises StoreError."""
    pending = plan(database)
    if pending:
        database.file.create()
        abandon(patiently(lambda: set_up(database), database.path, database.patience))
    return pending


def check(database: Database) -> tuple[str, ...]:
    """What is wrong with the file and the tables, one sentence each; nothing is changed. Raises StoreUnavailable."""
    if database.file.identity() is None:
        return (f"There is no file {database.path}. Run `tenure db upgrade`, which makes it.",)
    try:
        return _look(database, lambda connection: _faults(database, connection))
    except StoreUnavailable:
        raise
    except StoreError as error:
        return (str(error),)


def _look(database: Database, work: Callable[[sqlite3.Connection], T]) -> T:
    """Read on a connection of its own."""

    def attempt() -> T:
        connection = connect(database, Connection)
        try:
            return work(connection)
        finally:
            abandon(connection)

    return patiently(attempt, database.path, database.patience)


def _created(database: Database, connection: sqlite3.Connection) -> bool:
    return created(connection, database.settings.prefix, database.path)


def _faults(database: Database, connection: sqlite3.Connection) -> tuple[str, ...]:
    told = [row[0] for row in connection.execute("PRAGMA integrity_check").fetchall()]
    if told != ["ok"]:
        places = " ".join("; ".join(told[:_TOLD]).split())
        damaged = (
            f"{database.path} is damaged ({places}). Nothing was repaired or deleted: stop all that use it, copy the "
            f"file and its -wal aside, and restore a backup."
        )
        return (damaged,)
    if not _created(database, connection):
        return (f"{database.path} has no tables of Tenure's. Run `tenure db upgrade`, which makes them.",)
    indexes = re.findall(r"^CREATE INDEX (\w+)", "\n".join(creation(database.settings.prefix)), re.MULTILINE)
    present = {row[0] for row in connection.execute("SELECT name FROM sqlite_master").fetchall()}
    return tuple(
        f"{database.path} lacks the index {name}, so reads are slow. Make it anew as `tenure db plan` shows it for a "
        f"new file."
        for name in indexes
        if name not in present
    )
