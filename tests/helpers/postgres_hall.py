"""The hall in which the PostgreSQL store sits its exam."""

import itertools
import os

import psycopg

from tenure.stores.postgres import PostgresStore


class PostgresHall:
    """A new schema for each store, on the server of a URL."""

    transactions = True
    numbers = itertools.count()

    def __init__(self, url):
        self.url = url
        self.schemas = []

    async def fresh(self):
        schema = f"exam_{os.getpid()}_{next(self.numbers)}"
        self.schemas.append(schema)
        return await self.opened(schema)

    async def second(self, store):
        return await self.opened(schema_of(store))

    async def opened(self, schema):
        store = PostgresStore(self.url, schema=schema)
        await store.open()
        return store

    async def write(self, connection, row):
        table = f"{self.schemas[-1]}.effects"
        await connection.execute(f"CREATE TABLE IF NOT EXISTS {table} (what text)")
        await connection.execute(f"INSERT INTO {table} VALUES (%s)", (row,))  # noqa: S608 - a schema of our own

    async def rows(self, store):
        table = f"{schema_of(store)}.effects"
        async with await psycopg.AsyncConnection.connect(self.url, prepare_threshold=None) as connection:
            cursor = await connection.execute("SELECT to_regclass(%s)", (table,))
            if (await cursor.fetchone())[0] is None:
                return frozenset()
            cursor = await connection.execute(f"SELECT what FROM {table}")  # noqa: S608 - a schema of our own
            return frozenset(what for (what,) in await cursor.fetchall())

    def clear(self):
        with psycopg.connect(self.url, autocommit=True, prepare_threshold=None) as connection:
            for schema in self.schemas:
                connection.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


def schema_of(store):
    return store.url.partition("schema=")[2]
