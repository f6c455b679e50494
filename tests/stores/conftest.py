"""Halls in which the stores sit their exam, and SQLite files to break."""

import contextlib
import itertools
import sqlite3

import pytest

from tenure.stores.memory import MemoryStore
from tenure.stores.sqlite import SqliteStore
from tenure.stores.sqlite.settings import settings


class MemoryHall:
    """The yardstick itself: a second handle is the same store, for no other process can see it."""

    transactions = False

    async def fresh(self):
        return MemoryStore()

    async def second(self, store):
        return store


class SqliteHall:
    """A new file for each store."""

    transactions = True

    def __init__(self, folder, query=""):
        self.folder, self.query = folder, query
        self.numbers = itertools.count()

    async def fresh(self):
        return await self.opened(f"sqlite:///{self.folder}/store-{next(self.numbers)}.db{self.query}")

    async def second(self, store):
        return await self.opened(store.url)

    async def opened(self, url):
        store = SqliteStore(url)
        await store.open()
        return store

    async def write(self, connection, row):
        connection.execute("CREATE TABLE IF NOT EXISTS effects (what TEXT)")
        connection.execute("INSERT INTO effects VALUES (?)", (row,))

    async def rows(self, store):
        with contextlib.closing(sqlite3.connect(settings(store.url).path)) as reader:
            if not reader.execute("SELECT 1 FROM sqlite_master WHERE name = 'effects'").fetchone():
                return frozenset()
            return frozenset(row[0] for row in reader.execute("SELECT what FROM effects"))


@pytest.fixture(params=["memory", "sqlite"])
def hall(request, tmp_path):
    """Each store that needs no server."""
    return MemoryHall() if request.param == "memory" else SqliteHall(tmp_path)


@pytest.fixture
def opened(tmp_path):
    """Opens stores on the file `a.db`, and closes them all at the end."""

    @contextlib.asynccontextmanager
    async def open_them(count=1, query="", name="a.db"):
        async with contextlib.AsyncExitStack() as stack:
            stores = []
            for _ in range(count):
                store = SqliteStore(f"sqlite:///{tmp_path}/{name}{query}")
                stack.push_async_callback(store.close)
                await store.open()
                stores.append(store)
            yield stores[0] if count == 1 else stores

    return open_them
