"""Bring a database to the schema that this version needs, one server at a time."""

from __future__ import annotations

import io
from importlib.resources import files
from typing import Final

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

from tenure.board.database import Database, Tx
from tenure.errors import StoreTooOld

# "tenure b", as a number: the advisory lock under which servers upgrade one after the other.
LOCK: Final = 0x74656E7572652062


def upgrade(database: Database) -> list[str]:
    """Run the steps that are missing, all in one transaction; returns their names. Blocks; call it from a thread.

    Raises Refused when the database does not answer and StoreTooOld when a later version of Tenure made it.
    """
    return database.writing(upgrade_in)


def missing(database: Database) -> list[str]:
    """The steps that `upgrade` would run."""
    return database.reading(_missing)


def sql(database: Database) -> str:
    """The SQL that `upgrade` would run; empty where nothing is missing."""
    steps = missing(database)
    if not steps:
        return ""
    config = _config()
    config.attributes["dialect"] = "postgresql" if database.postgres else "sqlite"
    config.output_buffer = io.StringIO()
    before = ScriptDirectory.from_config(config).get_revision(steps[0]).down_revision or "base"
    command.upgrade(config, f"{before}:head", sql=True)
    return str(config.output_buffer.getvalue())


def upgrade_in(tx: Tx) -> list[str]:
    """`upgrade` in a transaction of the caller's, which holds the lock of migrations from here to its end."""
    if tx.postgres:
        tx.unhurried()
        tx.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})
    steps = _missing(tx)
    if steps:
        config = _config()
        config.attributes["connection"] = tx.connection
        command.upgrade(config, "head")
    return steps


def _missing(tx: Tx) -> list[str]:
    context = MigrationContext.configure(tx.connection, opts={"version_table": "board_version"})
    script = ScriptDirectory.from_config(_config())
    here = context.get_current_revision()
    known = [step.revision for step in reversed(list(script.walk_revisions()))]
    if here is not None and here not in known:
        raise StoreTooOld(
            f"The board's database is at step {here}, which this version of Tenure does not know: a later one made it. "
            "Install that version again."
        )
    return known[known.index(here) + 1 :] if here else known


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(files("tenure.board").joinpath("migrations")))
    return config
