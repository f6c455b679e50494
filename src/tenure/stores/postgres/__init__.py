"""The store in a PostgreSQL database, for any number of processes on any number of machines."""

from tenure.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore"]
