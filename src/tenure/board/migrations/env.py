"""Alembic's way in: it runs on the connection that `upgrade.py` hands over, or writes SQL down; it never connects."""

from alembic import context

from tenure.board.tables import metadata

given = context.config.attributes
how = {"dialect_name": given["dialect"], "literal_binds": True} if "dialect" in given else given
context.configure(
    connection=how.get("connection"),
    dialect_name=how.get("dialect_name"),
    literal_binds=how.get("literal_binds", False),
    target_metadata=metadata,
    version_table="board_version",
    transaction_per_migration=False,
)
context.run_migrations()
