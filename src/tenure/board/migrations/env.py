"""Alembic's way in: it runs on the connection that `upgrade.py` hands over, never on one of its own."""

from alembic import context

from tenure.board.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table="board_version",
    transaction_per_migration=False,
)
context.run_migrations()
