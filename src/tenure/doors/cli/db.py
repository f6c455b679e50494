"""`tenure db`: the tables of a store that keeps some, and of a board."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tenure.doors.cli import boards
from tenure.doors.cli.access import Access, missing_file, no_file, store_options, with_store
from tenure.doors.cli.output import put, put_json, say
from tenure.doors.cli.texts import CONTEXT, exits

if TYPE_CHECKING:
    from tenure.app import KeepsSchema, Migration

NOTHING = 5


@click.group(context_settings=CONTEXT)
def db() -> None:
    """Plan, upgrade, check and back up the tables of a store, or with --database of a board."""


store_options(db)
board_option = click.option("--database", metavar="URL", help="The database of a board, instead of a store.")


@db.command(
    context_settings=CONTEXT,
    epilog=exits(0, 1, 2, 5, 130, _0="there is something to apply", _5="nothing to apply"),
)
@board_option
@with_store
def plan(access: Access, database: str | None) -> int:
    """Show the SQL that `tenure db upgrade` would run. Nothing is changed."""
    if database is not None:
        return boards.plan(database, access.as_json)

    async def ask(store: KeepsSchema) -> Sequence[Migration]:
        return await store.plan()

    found = access.application().ask_schema(ask)
    if access.as_json:
        put_json(_told(access, "pending", found))
    elif found:
        for one in found:
            put(f"-- {one.number:04} {one.name}")
            put(one.sql.rstrip())
    return _end(access, found)


@db.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 5, 130, _0="applied", _5="nothing to apply"))
@board_option
@with_store
def upgrade(access: Access, database: str | None) -> int:
    """Make the tables, or bring them up to date. Instances and boards do it when they start, unless told not to."""
    if database is not None:
        return boards.upgrade(database, access.as_json)

    async def ask(store: KeepsSchema) -> Sequence[Migration]:
        return await store.upgrade()

    found = access.application().ask_schema(ask)
    if access.as_json:
        put_json(_told(access, "applied", found))
    else:
        for one in found or ():
            put(f"{one.number:04} {one.name} applied")
    return _end(access, found)


@db.command(
    context_settings=CONTEXT,
    epilog=exits(
        0, 1, 2, 3, 5, 130,
        _0="all is well", _1="something is wrong", _3="the store's file does not exist", _5="there are no tables",
    ),
)  # fmt: skip
@board_option
@with_store
def check(access: Access, database: str | None) -> int:
    """Look whether the tables are there, whole, of the right version and allowed. Nothing is changed."""
    if database is not None:
        return boards.check(database, access.as_json)
    from tenure.errors import NotFound

    async def ask(store: KeepsSchema) -> Sequence[str]:
        return await store.check()

    app = access.application()
    missing = missing_file(app.store_url)
    if missing is not None:
        raise NotFound(no_file(missing))
    faults = app.ask_schema(ask)
    if access.as_json:
        told = {"store": app.store_url, "keeps_schema": faults is not None}
        put_json({**told, "ok": not faults, "faults": list(faults or ())})
    if faults is None:
        return _no_schema(access)
    if not access.as_json:
        for one in faults or (f"ok: the tables of {app.store_url} are whole, and as this version needs them",):
            put(one)
    return 1 if faults else 0


@db.command(context_settings=CONTEXT, epilog=exits(0, 1, 2, 3, 130, _3="there is no such file"))
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@board_option
@with_store
def backup(access: Access, database: str | None, file: Path) -> int:
    """Copy a SQLite database whole to FILE, a store's or a board's, while it is used. Nothing is overwritten."""
    return boards.backup(database or access.application().store_url, file, access.as_json)


def _end(access: Access, found: Sequence[Migration] | None) -> int:
    if found is None:
        return _no_schema(access)
    if not found:
        say(f"{access.application().store_url} is up to date.")
    return 0 if found else NOTHING


def _no_schema(access: Access) -> int:
    say(f"{access.application().store_url} keeps no schema: there is nothing to upgrade or check.")
    return NOTHING


def _told(access: Access, what: str, found: Sequence[Migration] | None) -> dict[str, Any]:
    listed = [{"number": one.number, "name": one.name, "sql": one.sql} for one in found or ()]
    return {"store": access.application().store_url, "keeps_schema": found is not None, what: listed}
