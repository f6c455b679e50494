"""The store: reads on the caller's thread, commits on the writer's, hints from both.

A read never waits for a writer in this journal mode, and takes microseconds; a commit waits for the disk, so it
is the writer thread's. Whoever calls is the scheduler's own loop, on which no handler runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import sqlite3
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from tenure.errors import StoreError, TransactionTooLong
from tenure.stores.contract import Ask, Change, Mark, Reading, Record, Transaction, Verdict
from tenure.stores.sqlite.connecting import PATIENCE, Connection, Database, abandon, pauses, reopen
from tenure.stores.sqlite.documents import plain, read, read_plain
from tenure.stores.sqlite.file import DatabaseFile
from tenure.stores.sqlite.refusals import broken, busy, closed, forked, refusal, unanswered
from tenure.stores.sqlite.schema import BEGIN_READ, COMMIT, DATA_VERSION, statements
from tenure.stores.sqlite.settings import settings
from tenure.stores.sqlite.transaction import SqliteTransaction
from tenure.stores.sqlite.upkeep import Migration, check, plan, upgrade
from tenure.stores.sqlite.writer import Call, Writer

T = TypeVar("T")

# How often `watch` looks whether another process has written, and how often while looking fails.
POLL_SECONDS: Final = 0.1
POLL_FAILED_SECONDS: Final = 1.0


class SqliteStore:
    """The store in the file that a `sqlite:///` URL names.

    prefix: of the tables' names. synchronous: `full`, or `normal`, with which a power cut forgets commits that
    were acknowledged (a killed process loses nothing with either). timeout: seconds that one call may take.
    allow_network_fs: open a file on a network file system all the same; two machines will damage it.
    Raises ConfigError for a URL or an option that can't be.
    """

    pushes = True

    def __init__(
        self,
        url: str,
        *,
        prefix: str | None = None,
        synchronous: str | None = None,
        timeout: float | None = None,
        allow_network_fs: bool | None = None,
    ) -> None:
        self.url = url
        self._settings = settings(
            url, prefix=prefix, synchronous=synchronous, timeout=timeout, allow_network_fs=allow_network_fs
        )
        self.timeout = self._settings.timeout
        self._patience = self._settings.timeout * PATIENCE
        self._database = Database(
            DatabaseFile(self._settings.path),
            self._settings,
            statements(self._settings.prefix),
            secrets.token_hex(8),
        )
        self._pid = os.getpid()
        self._writer: Writer | None = None
        self._reader: Connection | None = None
        self._readers = 0  # how many there were: what one says of itself means nothing to the next
        self._calls: set[Call] = set()
        self._overseer: asyncio.TimerHandle | None = None
        self._watchers: list[_Watcher] = []
        self._transactions: weakref.WeakSet[SqliteTransaction] = weakref.WeakSet()

    # --- opening and closing ------------------------------------------------------------------------------

    async def open(self) -> tuple[str, ...]:
        """Connect; make the file and the tables where there are none. Returns warnings, one sentence each.

        Raises StoreError with a sentence; it may be tried again then.
        """
        if self._writer is not None:
            if os.getpid() != self._pid:
                raise forked(self._database.path)
            raise StoreError(f"The store {self._database.path} is open already.")
        self._pid = os.getpid()
        warnings = self._warnings()
        self._database.file.create()
        writer = Writer(self._database, self._tell)
        await writer.start()
        self._writer = writer
        try:
            self._connected()
        except BaseException as error:
            await self.close()
            if isinstance(error, sqlite3.Error):
                raise refusal(error, self._database.path) from error
            raise
        return warnings

    def _warnings(self) -> tuple[str, ...]:
        warnings = []
        network = self._database.file.network()
        if network is not None and not self._settings.allow_network_fs:
            raise StoreError(
                f"{self._database.path} is on a network file system ({network}), where SQLite's write-ahead log is not "
                f"safe. Put it on a local disk, use a server's store, or add ?allow_network_fs=1 if no other machine "
                f"uses it."
            )
        if network is not None:
            warnings.append(
                f"{self._database.path} is on a network file system ({network}): use it from this machine only, or it "
                f"will be damaged."
            )
        if self._settings.synchronous == "normal":
            warnings.append(
                f"{self._database.path} is used with synchronous=normal: a power cut forgets the last acknowledged "
                f"commits, so a finished run may run again."
            )
        return tuple(warnings)

    async def close(self) -> None:
        """Roll back what is open, finish what was asked, and end the thread. In a forked child: nothing."""
        if self._writer is None or os.getpid() != self._pid:
            return
        writer, self._writer = self._writer, None
        for watcher in self._watchers:
            watcher.changed.set()
        for transaction in tuple(self._transactions):
            with contextlib.suppress(TransactionTooLong):  # its user has been told, or will be
                await transaction.rollback()
        self._drop_reader()
        await writer.stop()  # the last connection: SQLite brings the log into the file here
        if self._overseer is not None:
            self._overseer.cancel()
            self._overseer = None
        for call in self._calls:
            if not call.answer.done():  # the disk holds the writer up, and nobody else will answer
                call.answer.set_exception(unanswered(self._database.path, self.timeout))

    def _writing(self) -> Writer:
        """The writer of an open store, in the process that opened it."""
        if os.getpid() != self._pid:
            raise forked(self._database.path)
        if self._writer is None:
            raise closed(self._database.path)
        return self._writer

    # --- the tables, for whoever operates them ------------------------------------------------------------

    async def plan(self) -> tuple[Migration, ...]:
        """What `upgrade` would apply, of a store that need not be open. Raises StoreError."""
        return await asyncio.to_thread(plan, self._database)

    async def upgrade(self) -> tuple[Migration, ...]:
        """Make the file and its tables; what was applied. Raises StoreError."""
        self._warnings()
        return await asyncio.to_thread(upgrade, self._database)

    async def check(self) -> tuple[str, ...]:
        """What is wrong with the file and its tables, one sentence each; nothing is changed. Raises StoreError."""
        return await asyncio.to_thread(check, self._database)

    # --- reading ------------------------------------------------------------------------------------------

    async def read(self, asks: Sequence[Ask]) -> Reading:
        sql = self._database.sql
        if plain(asks):
            return await self._look(lambda connection: read_plain(connection, sql, asks[0]), alone=True)
        return await self._look(lambda connection: read(connection, sql, asks))

    async def names(self, prefix: str) -> tuple[str, ...]:
        told = await self._look(
            lambda connection: connection.execute(self._database.sql.names, (prefix,) * 3).fetchone()[0]
        )
        return tuple(sorted(json.loads(told)))

    async def records(self, name: str, since: int, until: int, limit: int) -> tuple[Record, ...]:
        place = (name, since, until, limit)
        rows = await self._look(lambda connection: connection.execute(self._database.sql.records, place).fetchall())
        return tuple(Record(*row) for row in rows)

    async def marks(self, name: str, since: int, until: int, limit: int) -> tuple[Mark, ...]:
        place = (name, since, until, limit)
        rows = await self._look(lambda connection: connection.execute(self._database.sql.marks, place).fetchall())
        return tuple(Mark(*row) for row in rows)

    async def _look(self, work: Callable[[sqlite3.Connection], T], alone: bool = False) -> T:
        """Read at one moment; `alone`: by one statement. It waits only while SQLite recovers a file."""
        began = time.monotonic()
        waits: Iterator[float] | None = None
        while True:
            self._writing()
            try:
                return self._look_once(work, alone)
            except sqlite3.Error as error:
                waited = time.monotonic() - began
                if broken(error):
                    self._drop_reader()
                if not busy(error) or waited > self._patience:
                    raise refusal(error, self._database.path, waited) from error
            waits = waits or pauses()
            await asyncio.sleep(next(waits))

    def _look_once(self, work: Callable[[sqlite3.Connection], T], alone: bool) -> T:
        """What a single statement sees is of one moment by itself; several need a transaction."""
        connection = self._reader or self._connected()
        self._database.file.check_main()
        if alone:
            return work(connection)
        connection.execute(BEGIN_READ)
        try:
            answer = work(connection)
            connection.execute(COMMIT)
        except BaseException:
            if connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    connection.rollback()
            raise
        return answer

    def _connected(self) -> sqlite3.Connection:
        if self._reader is None:
            self._reader = reopen(self._database)
            self._readers += 1
        return self._reader

    def _drop_reader(self) -> None:
        if self._reader is not None:
            abandon(self._reader)
        self._reader = None

    # --- changing -----------------------------------------------------------------------------------------

    async def commit(self, changes: Sequence[Change]) -> Verdict:
        writer = self._writing()
        loop, began = asyncio.get_running_loop(), time.monotonic()
        call = Call(tuple(changes), loop.create_future(), began, began + self._patience)
        self._calls.add(call)
        if self._overseer is None:
            self._overseer = loop.call_later(self.timeout, self._oversee, loop)
        writer.put(call)
        try:
            return await call.answer
        finally:
            self._calls.discard(call)

    def _oversee(self, loop: asyncio.AbstractEventLoop) -> None:
        """End the calls whose time is over, whatever holds the writer up. One timer for all: each has its price."""
        now, self._overseer = time.monotonic(), None
        for call in self._calls:
            if call.began + self.timeout <= now and not call.answer.done():
                call.answer.set_exception(unanswered(self._database.path, self.timeout))
        first = min((call.began for call in self._calls if not call.answer.done()), default=None)
        if first is not None:
            self._overseer = loop.call_later(max(0.0, first + self.timeout - now), self._oversee, loop)

    async def begin(self, limit_seconds: float) -> Transaction:
        self._writing()
        transaction = SqliteTransaction(self._database, limit_seconds, self._tell)
        self._transactions.add(transaction)
        await transaction.begin()
        return transaction

    # --- hints --------------------------------------------------------------------------------------------

    async def watch(self) -> AsyncIterator[frozenset[str]]:
        """Names hinted by this store at once, by others within a tenth of a second or two."""
        self._writing()
        watcher = _Watcher()
        self._watchers.append(watcher)
        loop = asyncio.get_running_loop()
        try:
            while self._writer is not None and os.getpid() == self._pid:
                names = watcher.take() | self._news(watcher)
                if names:
                    yield frozenset(names)
                timer = loop.call_later(watcher.pause, watcher.changed.set)
                try:
                    await watcher.changed.wait()
                finally:
                    timer.cancel()
        finally:
            self._watchers.remove(watcher)

    def _tell(self, names: frozenset[str]) -> None:
        for watcher in self._watchers:
            watcher.names |= names
            watcher.changed.set()

    def _news(self, watcher: _Watcher) -> set[str]:
        """What other stores have hinted since the last look. Failures are left to those who rest on reads."""
        try:
            connection = self._connected()
            version = (self._readers, connection.execute(DATA_VERSION).fetchone()[0])
            if version == watcher.version:
                return set()
            if watcher.last is None:
                watcher.last = connection.execute(self._database.sql.newest_hint).fetchone()[0]
            hints = connection.execute(self._database.sql.hints, (watcher.last, self._database.origin)).fetchall()
        except (sqlite3.Error, StoreError) as error:
            if isinstance(error, sqlite3.Error) and broken(error):
                self._drop_reader()
            watcher.pause = POLL_FAILED_SECONDS
            return set()
        watcher.version, watcher.pause = version, POLL_SECONDS
        watcher.last = max((number for number, _ in hints), default=watcher.last)
        return {name for _, name in hints}


class _Watcher:
    """What one `watch` has heard and seen."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.changed = asyncio.Event()
        self.pause = POLL_SECONDS
        self.version: Any = None
        self.last: int | None = None

    def take(self) -> set[str]:
        names, self.names = self.names, set()
        self.changed.clear()
        return names
