"""The store: two statements for any batch, on a few connections that it holds for itself."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

import psycopg

from tenure.errors import StoreError
from tenure.stores.contract import Ask, Change, Mark, Outcome, Reading, Record, Transaction, Verdict
from tenure.stores.postgres.connecting import (
    FactorySource,
    Link,
    OwnSource,
    PoolSource,
    Server,
    Source,
    Timeline,
)
from tenure.stores.postgres.documents import Hints, commit, read
from tenure.stores.postgres.holding import Links
from tenure.stores.postgres.listening import Listener
from tenure.stores.postgres.migrations import Migration, Tables, prepare
from tenure.stores.postgres.refusals import closed, forked, refusal, unanswered, unencodable
from tenure.stores.postgres.settings import settings
from tenure.stores.postgres.statements import Statements
from tenure.stores.postgres.transaction import PostgresTransaction

T = TypeVar("T")


class PostgresStore:
    """The store in the database that a `postgresql://` URL names.

    prefix: of the tables' names. schema: where they are, else the first of the search path. timeout: seconds
    that one call may take. upgrade: whether `open` makes and upgrades the tables. direct_url: the server's own
    address, where the URL is a pooler's. prepare: after how many uses statements are prepared, never by default.
    connections: how many are held for the store's calls; transactions: how many `run.transaction()` may be open.
    pool: a psycopg_pool.AsyncConnectionPool to take connections from; or connect: a coroutine function that makes
    them. Raises ConfigError for a URL or an option that can't be.
    """

    def __init__(
        self,
        url: str = "postgresql://",
        *,
        prefix: str | None = None,
        schema: str | None = None,
        timeout: float | None = None,
        upgrade: bool | None = None,
        direct_url: str | None = None,
        prepare: int | None = None,
        connections: int | None = None,
        transactions: int | None = None,
        pool: Any = None,
        connect: Callable[[], Awaitable[psycopg.AsyncConnection[Any]]] | None = None,
    ) -> None:
        told = settings(
            url,
            prefix=prefix,
            schema=schema,
            timeout=timeout,
            upgrade=upgrade,
            direct_url=direct_url,
            prepare=prepare,
            connections=connections,
            transactions=transactions,
        )
        self.url, self.timeout, self.pushes = told.shown, told.timeout, True
        self._settings = told
        self._source = _source(told.server, pool, connect)
        timeline = Timeline(self.url)
        self._server = Server(self._source, self.url, timeline, told.prepare)
        # Where notifications are heard: past a pooler, if its address was given.
        self._ear = self._server if told.direct is None else Server(OwnSource(told.direct), self.url, timeline, None)
        self._pid = os.getpid()
        self._origin = secrets.token_hex(8)
        self._open: _Open | None = None
        self._watchers: list[_Watcher] = []
        self._transactions: weakref.WeakSet[PostgresTransaction] = weakref.WeakSet()

    # --- opening and closing ------------------------------------------------------------------------------

    async def open(self) -> tuple[str, ...]:
        """Connect; make and upgrade the tables where that is wanted. Returns warnings, one sentence each.

        Raises StoreError with a sentence; it may be tried again then.
        """
        if self._open is not None:
            if os.getpid() != self._pid:
                raise forked(self.url)
            raise StoreError(f"The store {self.url} is open already.")
        self._pid = os.getpid()
        return await self._within("start", self._set_up)

    async def _set_up(self) -> tuple[str, ...]:
        link = await self._server.connect()
        try:
            tables = self._tables(link)
            await prepare(link, tables, self._settings.upgrade)
        except BaseException:
            await self._server.dismiss(link, broken=True)
            raise
        warnings = _warnings(self.url, link)
        await self._server.dismiss(link)
        opened = self._made(tables)
        try:
            warning = await opened.listener.start(self._settings.direct is not None)
        except BaseException:
            await opened.close()
            raise
        self._open, self.pushes = opened, warning is None
        return (*warnings, warning) if warning else warnings

    def _made(self, tables: Tables) -> _Open:
        told, lends = self._settings, self._source.lends
        place = hashlib.sha256(f"{tables.schema}.{tables.prefix}".encode()).hexdigest()[:16]
        hints = Hints(f"tenure_{place}", self._origin)
        return _Open(
            Statements(tables.schema, tables.prefix),
            hints,
            Links(self._server, told.connections or (2 if lends else 3)),
            Links(self._server, told.transactions, keep=not lends),
            Listener(self._ear, hints, self._tell, told.timeout),
        )

    def _tables(self, link: Link) -> Tables:
        schema = self._settings.schema or link.schema
        if schema is None:
            raise StoreError(
                f"{self.url} has a search path that names no schema that exists. Say which one with ?schema=..."
            )
        return Tables(schema, self._settings.prefix, self.url)

    async def close(self) -> None:
        """Roll back what is open and give all connections back. In a forked child: nothing."""
        if self._open is None or os.getpid() != self._pid:
            return
        opened, self._open = self._open, None
        for watcher in self._watchers:
            watcher.changed.set()
        for transaction in tuple(self._transactions):
            await transaction.rollback()
        await opened.close()
        await self._source.close()

    def _opened(self) -> _Open:
        if os.getpid() != self._pid:
            raise forked(self.url)
        if self._open is None:
            raise closed(self.url)
        return self._open

    # --- the tables, for whoever operates them ------------------------------------------------------------

    async def plan(self) -> tuple[Migration, ...]:
        """What `upgrade` would apply, of a store that need not be open. Raises StoreError."""
        return await self._apart(lambda link, tables: tables.pending(link))

    async def upgrade(self) -> tuple[Migration, ...]:
        """Make or upgrade the tables; what was applied. Raises StoreError."""
        return await self._apart(lambda link, tables: tables.upgrade(link))

    async def check(self) -> tuple[str, ...]:
        """What is wrong with the tables, one sentence each; nothing is changed. Raises StoreError."""
        return await self._apart(lambda link, tables: tables.faults(link))

    async def _apart(self, work: Callable[[Link, Tables], Awaitable[T]]) -> T:
        """Do it on a connection of its own."""

        async def connected() -> T:
            link = await self._server.connect()
            try:
                return await work(link, self._tables(link))
            except psycopg.Error as error:
                raise refusal(error, self.url) from error
            finally:
                await self._server.dismiss(link)

        return await self._within("look at its tables", connected)

    # --- reading and changing -----------------------------------------------------------------------------

    async def read(self, asks: Sequence[Ask]) -> Reading:
        opened = self._opened()
        return await self._look(opened, lambda link: read(link, opened.sql, asks))

    async def names(self, prefix: str) -> tuple[str, ...]:
        opened = self._opened()
        rows = await self._look(opened, lambda link: link.rows(opened.sql.names, (prefix, prefix)))
        return tuple(sorted(name for (name,) in rows))

    async def records(self, name: str, since: int, until: int, limit: int) -> tuple[Record, ...]:
        opened = self._opened()
        rows = await self._look(opened, lambda link: link.rows(opened.sql.records, (name, since, until, limit)))
        return tuple(Record(*row) for row in rows)

    async def marks(self, name: str, since: int, until: int, limit: int) -> tuple[Mark, ...]:
        opened = self._opened()
        rows = await self._look(opened, lambda link: link.rows(opened.sql.marks, (name, since, until, limit)))
        return tuple(Mark(*row) for row in rows)

    async def _look(self, opened: _Open, work: Callable[[Link], Awaitable[T]]) -> T:
        return await self._within("read", lambda: opened.links.run(work, again=True))

    async def commit(self, changes: Sequence[Change]) -> Verdict:
        opened = self._opened()
        verdict = await self._within(
            "commit", lambda: opened.links.run(lambda link: commit(link, opened.sql, opened.hints, changes))
        )
        hinted = frozenset(
            change.name
            for change, outcome in zip(changes, verdict.outcomes, strict=True)
            if change.hint and outcome is Outcome.DONE
        )
        if hinted:
            self._tell(hinted)
        return verdict

    async def _within(self, what: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do it, or give up when a call's time has passed."""
        try:
            async with asyncio.timeout(self.timeout):
                return await work()
        except TimeoutError:
            raise unanswered(self.url, self.timeout, what) from None
        except UnicodeError as error:
            raise unencodable(self.url, error) from error

    async def begin(self, limit_seconds: float) -> Transaction:
        """A transaction on a connection of its own; it holds up nobody, so its length is not bounded."""
        opened = self._opened()
        transaction = PostgresTransaction(opened.lent, opened.sql, opened.hints, self.timeout, self._tell)
        await transaction.begin()
        self._transactions.add(transaction)
        return transaction

    # --- hints --------------------------------------------------------------------------------------------

    async def watch(self) -> AsyncIterator[frozenset[str]]:
        """Names hinted by this store at once, by others as soon as PostgreSQL tells of them."""
        self._opened()
        watcher = _Watcher()
        self._watchers.append(watcher)
        try:
            while self._open is not None:
                names = watcher.take()
                if names:
                    yield names
                await watcher.changed.wait()
        finally:
            self._watchers.remove(watcher)

    def _tell(self, names: frozenset[str]) -> None:
        for watcher in self._watchers:
            watcher.names |= names
            watcher.changed.set()


class _Open:
    """What there is while the store is open."""

    def __init__(self, sql: Statements, hints: Hints, links: Links, lent: Links, listener: Listener) -> None:
        self.sql, self.hints, self.links, self.lent, self.listener = sql, hints, links, lent, listener

    async def close(self) -> None:
        await self.listener.stop()
        await self.links.close()
        await self.lent.close()


class _Watcher:
    """What one `watch` has heard."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()
        self.changed = asyncio.Event()

    def take(self) -> frozenset[str]:
        names, self.names = self.names, frozenset()
        self.changed.clear()
        return names


def _source(parameters: Any, pool: Any, connect: Any) -> Source:
    if pool is not None:
        return PoolSource(pool)
    return FactorySource(connect) if connect is not None else OwnSource(parameters)


def _warnings(url: str, link: Link) -> tuple[str, ...]:
    if link.asynchronous:
        warning = (
            f"{url} commits with synchronous_commit=off: a crash of the server forgets the last acknowledged commits, "
            f"so a finished run may run again."
        )
        return (warning,)
    return ()
