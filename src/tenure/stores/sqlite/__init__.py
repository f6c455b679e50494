"""The store in one SQLite file, for any number of processes on one machine."""

from tenure.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
