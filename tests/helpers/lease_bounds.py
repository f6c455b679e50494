"""The bounds of B10, tried on one path after the other: a table with a column for each."""

from collections.abc import Callable

import sqlalchemy as sa

from tenure.board import tables
from tenure.rules import endpoints as rules
from tenure.rules.refusal import Refusal

# What is sent as `default_lease_ttl_seconds`, and whether it must be taken.
VALUES = [
    (59, False), (60, True), (86_400, True), (86_401, False), (60.0, False), ("60", False), (True, False),
    (None, True), (0, False), (-60, False), (60.5, False), (2**63, False),
]  # fmt: skip
_PUT = "UPDATE endpoints SET default_lease_ttl_seconds = ? WHERE id = ?"


def by_rules(value):
    """Whether the rule takes it."""
    return not isinstance(rules.default_lease(value), Refusal)


def by_check(board, endpoint_id) -> Callable[[object], bool]:
    """Whether the database takes it and keeps it as it is, with nothing before it: it goes in by plain SQL."""

    def taken(value):
        def put(tx):
            kept = tx.connection.begin_nested()
            try:
                tx.connection.exec_driver_sql(_PUT.replace("?", "%s" if tx.postgres else "?"), (value, endpoint_id))
                stored = tx.execute(
                    sa.select(tables.endpoints.c.default_lease_ttl_seconds).where(tables.endpoints.c.id == endpoint_id)
                ).scalar_one()
                return stored == value and type(stored) is type(value)
            except (sa.exc.DBAPIError, OverflowError):
                return False
            finally:
                kept.rollback()

        return board.database.writing(put)

    return taken


def table(columns):
    """Rows of text: each value, and what each path said to it. columns: name → function of the value."""
    lines = [f"{'value':>22}  " + "  ".join(f"{name:>8}" for name in columns)]
    for value, _ in VALUES:
        said = (("taken" if column(value) else "refused") for column in columns.values())
        lines.append(f"{value!r:>22}  " + "  ".join(f"{word:>8}" for word in said))
    return "\n".join(lines)
