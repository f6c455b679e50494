"""Connections: where they come from, and how one is looked at before it is trusted.

A user's own pool or connection factory may be the source of them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

import psycopg
from psycopg import waiting
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus

from tenure.errors import StoreError, StoreTooOld, StoreUnavailable
from tenure.stores.postgres.refusals import lost, outdated, refusal, standby, unreachable
from tenure.stores.postgres.statements import spelled

T = TypeVar("T")

# `version` tells what a server is: 130000 is PostgreSQL 13.
OLDEST: Final = 130_000
_INSPECT: Final = """
    SELECT pg_catalog.pg_is_in_recovery() OR pg_catalog.current_setting('transaction_read_only')::bool,
        pg_catalog.current_setting('server_version_num')::int, pg_catalog.current_setting('server_version'),
        pg_catalog.current_setting('server_encoding'), pg_catalog.current_setting('synchronous_commit'),
        pg_catalog.current_schema(), pg_catalog.pg_backend_pid()"""
_TIMELINE: Final = spelled("SELECT $timeline", "")


class Timeline:
    """The newest timeline that any connection of the store has seen (R44): failovers make new ones."""

    def __init__(self, where: str) -> None:
        self.where, self.seen = where, 0

    def check(self, told: str) -> None:
        """Refuse the server of an older one. Raises StoreUnavailable."""
        number = int(told, 16)
        if number < self.seen:
            raise outdated(self.where, number, self.seen)
        self.seen = number


class Link(psycopg.AsyncConnection[Any]):
    """A connection of the store's own, or around that of a user. It never waits for a server that stands still."""

    where = ""
    timeline: Timeline
    watched = False
    """Whether each read looks at the timeline, because a pooler may change servers under us."""
    pooled = False
    """Whether a pooler stands between: the server's process is not the one that answered at the start."""
    schema: str | None = None
    asynchronous = False

    def __init__(self, pgconn: Any, *arguments: Any, **named: Any) -> None:
        super().__init__(pgconn, *arguments, **named)
        self.warnings: list[str] = []
        self.origin: psycopg.AsyncConnection[Any] | None = None
        self._heard: tuple[Any, Any] = (None, None)
        self.add_notice_handler(self._noticed)
        self._quick: psycopg.AsyncCursor[Any] | None = None

    @classmethod
    def around(cls, connection: psycopg.AsyncConnection[Any]) -> Link:
        """A second handle on a connection of somebody else's, until `part`."""
        heard = (connection.pgconn.notice_handler, connection.pgconn.notify_handler)
        link = cls(connection.pgconn)
        link.origin, link._heard, link._pool = connection, heard, None
        return link

    def part(self) -> psycopg.AsyncConnection[Any]:
        """The connection to give back: the one this was put around, as it was before, or itself."""
        if self.origin is None:
            return self
        self.origin.pgconn.notice_handler, self.origin.pgconn.notify_handler = self._heard
        return self.origin

    def _noticed(self, notice: psycopg.errors.Diagnostic) -> None:
        if notice.severity_nonlocalized == "WARNING":
            self.warnings.append(notice.message_primary or "a warning")

    async def wait(self, gen: PQGen[Any], interval: float = 0.1, timeout: float | None = None) -> Any:  # noqa: ASYNC109
        """As psycopg's, but who stops waiting gives the connection up instead of waiting for the server to agree."""
        try:
            return await waiting.wait_async(gen, self.pgconn.socket, interval=interval, timeout=timeout)
        except (asyncio.CancelledError, KeyboardInterrupt):
            self.pgconn.finish()
            raise

    async def rows(self, statement: str, parameters: Mapping[str, Any] | Sequence[Any]) -> list[tuple[Any, ...]]:
        """Run one statement and fetch all."""
        cursor = self._quick
        if cursor is None:
            cursor = self._quick = psycopg.AsyncCursor(self, row_factory=psycopg.rows.tuple_row)
            cursor.format = psycopg.pq.Format.BINARY
        await cursor.execute(statement, parameters)
        return await cursor.fetchall()

    async def undo(self) -> None:
        """Roll back what is open; a connection on which that fails is closed."""
        if self.closed or self.info.transaction_status == TransactionStatus.IDLE:
            return
        try:
            await self.execute("ROLLBACK")
        except BaseException:
            self.pgconn.finish()
            raise


class Source(Protocol):
    """Where connections come from. `lends`: they are wanted back as soon as they are not used."""

    lends: bool

    async def take(self) -> psycopg.AsyncConnection[Any]: ...

    async def give(self, connection: psycopg.AsyncConnection[Any]) -> None: ...

    async def close(self) -> None: ...


class OwnSource:
    """Connections made by the store."""

    lends = False

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self._parameters = parameters

    def look_elsewhere(self) -> None:
        """Of several servers named, try them in another order: the first one that answers is the wrong one."""
        if psycopg.pq.version() >= 160_000:  # an older libpq does not know the word
            self._parameters = {"load_balance_hosts": "random", **self._parameters}

    async def take(self) -> psycopg.AsyncConnection[Any]:
        return await Link.connect(autocommit=True, prepare_threshold=None, **self._parameters)

    async def give(self, connection: psycopg.AsyncConnection[Any]) -> None:
        await connection.close()

    async def close(self) -> None:
        pass


class FactorySource:
    """Connections made by a function of the user's."""

    lends = False

    def __init__(self, connect: Callable[[], Awaitable[psycopg.AsyncConnection[Any]]]) -> None:
        self._connect = connect

    async def take(self) -> psycopg.AsyncConnection[Any]:
        return await self._connect()

    async def give(self, connection: psycopg.AsyncConnection[Any]) -> None:
        await connection.close()

    async def close(self) -> None:
        pass


class PoolSource:
    """Connections of a user's `AsyncConnectionPool`, open on a loop of its own or to be opened on ours."""

    lends = True

    def __init__(self, pool: Any) -> None:
        self._pool = pool
        self._ours = False

    async def take(self) -> psycopg.AsyncConnection[Any]:
        if self._pool.closed:
            await self._pool.open()
            self._ours = True
        connection: psycopg.AsyncConnection[Any] = await self._there(self._pool.getconn)
        return connection

    async def give(self, connection: psycopg.AsyncConnection[Any]) -> None:
        await self._there(lambda: self._pool.putconn(connection))

    async def close(self) -> None:
        if self._ours:
            await self._pool.close()

    async def _there(self, work: Callable[[], Any]) -> Any:
        """Have the pool do it on the loop that it lives on, which may be the application's."""
        scheduler = getattr(self._pool, "_sched_runner", None)
        loop = scheduler.get_loop() if scheduler is not None else None
        if loop is None or loop is asyncio.get_running_loop():
            return await work()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), loop))


class Server:
    """Makes connections ready: looks at the server behind each, and refuses the wrong one."""

    def __init__(self, source: Source, where: str, timeline: Timeline, prepare: int | None) -> None:
        self.source, self.where, self.timeline, self._prepare = source, where, timeline, prepare
        self.known = False  # whether any connection was good before

    async def connect(self) -> Link:
        """A connection in autocommit mode to a server that can be written. Raises StoreError."""
        try:
            raw = await self.source.take()
        except (psycopg.Error, OSError, UnicodeError) as error:
            raise unreachable(error, self.where, self.known) from error
        except Exception as error:  # whatever it is that a user's factory raises
            raise unreachable(error, self.where, known=True) from error
        except asyncio.CancelledError:  # its time is over: the first of several servers may be one that hangs
            self._look_elsewhere()
            raise
        link = raw if isinstance(raw, Link) else Link.around(raw)
        link.where, link.timeline = self.where, self.timeline
        try:
            await link.set_autocommit(True)
            link.prepare_threshold = self._prepare
            await self._inspect(link)
        except psycopg.Error as error:
            await self.dismiss(link, broken=True)
            raise refusal(error, self.where) from error
        except BaseException as error:
            await self.dismiss(link, broken=True)
            if isinstance(error, StoreUnavailable):
                self._look_elsewhere()
            raise
        self.known = True
        return link

    def _look_elsewhere(self) -> None:
        if isinstance(self.source, OwnSource):
            self.source.look_elsewhere()

    async def _inspect(self, link: Link) -> None:
        ((read_only, version, spelled, encoding, synchronous, schema, pid),) = await link.rows(_INSPECT, ())
        if version < OLDEST:
            raise StoreTooOld(
                f"Tenure needs PostgreSQL 13 or newer, and {self.where} is {spelled}. Use a newer server."
            )
        if read_only:
            raise standby(self.where)
        if encoding != "UTF8":
            raise StoreError(f"{self.where} keeps its text in {encoding}, and Tenure needs UTF8. Use another database.")
        link.schema, link.asynchronous = schema, synchronous == "off"
        link.pooled = pid != link.pgconn.backend_pid
        try:
            ((told,),) = await link.rows(_TIMELINE, ())
        except psycopg.Error as error:
            if lost(error):
                raise
            return  # a managed server that does not let this be asked: it looks after its failovers itself
        self.timeline.check(told)
        link.watched = link.pooled

    async def dismiss(self, link: Link, broken: bool = False) -> None:
        """Give a connection back to where it came from; one that is broken is closed first. Never raises."""
        if broken:
            link.pgconn.finish()
        with contextlib.suppress(psycopg.Error, OSError, RuntimeError):
            await self.source.give(link.part())
