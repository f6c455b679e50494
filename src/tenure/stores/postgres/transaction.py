"""R39: the user's own writes and one change of ours in one transaction, on a connection of its own.

The document's row is locked at the end only, between `read` and `commit`: until then heartbeats go on, and
from then on batched commits pass over the row.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from typing import Any, NoReturn, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from tenure.errors import StoreError, StoreUnavailable
from tenure.stores.contract import Ask, Change, Outcome, Reading
from tenure.stores.postgres.connecting import Link
from tenure.stores.postgres.documents import IDLE, Hints, apply, read
from tenure.stores.postgres.holding import Links
from tenure.stores.postgres.refusals import forked, lost, refusal, unanswered, unconfirmed
from tenure.stores.postgres.statements import Statements

T = TypeVar("T")

_ENDS_ITSELF = (
    "run.transaction() ends its transaction itself, at the end of its block. Leave the block, or raise to roll back."
)


def _refuse() -> NoReturn:
    raise StoreError(_ENDS_ITSELF)


def _check(link: Link) -> None:
    """Nothing may be committed of a transaction that failed in the middle, or that the handler ended itself."""
    match link.info.transaction_status:
        case TransactionStatus.INERROR:
            raise StoreError(
                "A statement in run.transaction() failed, after which PostgreSQL takes no more: all was rolled back. "
                "Let its error out of the block, or wrap what may fail in `connection.transaction()`."
            )
        case TransactionStatus.IDLE:
            raise StoreError(f"{_ENDS_ITSELF} It was ended by a COMMIT or ROLLBACK of the handler's own.")
        case _:
            pass


class GuardedAsyncConnection(psycopg.AsyncConnection[Any]):
    """What an async handler gets: psycopg's own, that leaves the end of the transaction to us."""

    async def commit(self) -> None:
        _refuse()

    async def rollback(self) -> None:
        _refuse()

    async def close(self) -> None:
        _refuse()

    def __del__(self, *_: Any) -> None:
        """Nothing: the connection behind it is another's."""


class GuardedConnection(psycopg.Connection[Any]):
    """What a sync handler gets, in its own thread."""

    def commit(self) -> None:
        _refuse()

    def rollback(self) -> None:
        _refuse()

    def close(self) -> None:
        _refuse()

    def __del__(self, *_: Any) -> None:
        """Nothing: the connection behind it is another's."""


class HandlersConnection:
    """What the handler gets: the driver's own connection, of the kind that its first use shows to be needed.

    Used where a loop runs, as by an async handler, it is psycopg's AsyncConnection, else its Connection: both
    stand on the one connection to the server. The transaction is begun before it is known who uses it.
    """

    __slots__ = ("_chosen", "_link")

    def __init__(self, link: Link) -> None:
        object.__setattr__(self, "_link", link)
        object.__setattr__(self, "_chosen", None)

    def __getattr__(self, name: str) -> Any:
        return getattr(_chosen(self), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(_chosen(self), name, value)

    def __repr__(self) -> str:
        return repr(_chosen(self))

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """What asks `isinstance` is told what stands behind."""
        return type(_chosen(self))


def _chosen(handlers: HandlersConnection) -> Any:
    """The driver's connection; chosen at the first use."""
    own = object.__getattribute__(handlers, "_chosen")
    if own is None:
        link: Link = object.__getattribute__(handlers, "_link")
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            own = GuardedConnection(link.pgconn)
        else:
            own = GuardedAsyncConnection(link.pgconn)
        own.prepare_threshold = link.prepare_threshold
        if link.origin is not None:
            own.row_factory = link.origin.row_factory
        object.__setattr__(handlers, "_chosen", own)
    return own


class PostgresTransaction:
    """One transaction; see the contract. `told` hears of a document changed with a hint."""

    connection: Any

    def __init__(
        self,
        links: Links,
        sql: Statements,
        hints: Hints,
        seconds: float,
        told: Callable[[frozenset[str]], None],
    ) -> None:
        self._links, self._sql, self._hints, self._seconds, self._told = links, sql, hints, seconds, told
        self._pid = os.getpid()
        self._link: Link | None = None
        self._began: Any = None
        self._where = ""

    async def begin(self) -> None:
        """Get a connection and begin. Raises StoreError."""
        until = asyncio.get_running_loop().time() + self._seconds
        try:
            # A connection that was kept may have broken unnoticed: then another one does.
            if not await self._begun(await self._links.lend(until), until, last=False):
                await self._begun(await self._links.lend(until), until, last=True)
        except TimeoutError:
            raise unanswered(self._links.where, self._seconds, "BEGIN") from None

    async def _begun(self, link: Link, until: float, last: bool) -> bool:
        try:
            async with asyncio.timeout_at(until):
                await link.execute("BEGIN")
                ((self._began,),) = await link.rows("SELECT pg_catalog.now()", ())
        except BaseException as error:
            link.pgconn.finish()
            await self._links.back(link)
            if not isinstance(error, psycopg.Error):
                raise
            if last or not lost(error):
                raise refusal(error, link.where) from error
            return False
        self._link, self._where = link, link.where
        self.connection = HandlersConnection(link)
        return True

    async def read(self, ask: Ask) -> Reading:
        async def work(link: Link) -> Reading:
            _check(link)
            ((now, began, _),) = await link.rows(self._sql.lock_one, {"name": ask.name, "idle": IDLE})
            if began != self._began:
                raise StoreError(f"{_ENDS_ITSELF} It was ended by a COMMIT or ROLLBACK of the handler's own.")
            return await read(link, self._sql, [ask], now)

        return await self._ask(work)

    async def commit(self, change: Change | None) -> bool:
        """As the contract says. What a standby did not confirm, or no answer came to, is unknown: StoreUnavailable."""
        done = await self._ask(lambda link: self._write(link, change))
        if not done:
            await self.rollback()
            return False
        await self._ask(self._commit)
        await self._end()
        if change is not None and change.hint:
            self._told(frozenset((change.name,)))
        return True

    async def _write(self, link: Link, change: Change | None) -> bool:
        _check(link)
        if change is None:
            return True
        verdict, _ = await apply(link, self._sql, self._hints, [change])
        return verdict.outcomes[0] is Outcome.DONE

    async def _commit(self, link: Link) -> None:
        fresh = Link.around(link)  # hears the warnings, which went to the handler's connection
        await fresh.execute("COMMIT")
        if fresh.warnings:
            raise unconfirmed(link.where, fresh.warnings[0])

    async def rollback(self) -> None:
        if self._link is not None and os.getpid() == self._pid:
            with contextlib.suppress(psycopg.Error, TimeoutError):
                async with asyncio.timeout(self._seconds):
                    await self._link.undo()
            await self._end()

    async def _end(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await self._links.back(link)

    async def _ask(self, work: Callable[[Link], Awaitable[T]]) -> T:
        """Do it; whatever goes wrong ends the transaction, and the connection where it is no good any more."""
        if os.getpid() != self._pid:
            raise forked(self._where)
        if self._link is None:
            raise StoreError("This transaction has ended. Open another with run.transaction().")
        try:
            async with asyncio.timeout(self._seconds):
                return await work(self._link)
        except TimeoutError:
            self._link.pgconn.finish()
            await self._end()
            raise unanswered(self._where, self._seconds, "commit") from None
        except psycopg.IntegrityError as error:
            await self.rollback()
            raise StoreError(f"The writes break a constraint ({error}), and all was rolled back.") from error
        except psycopg.Error as error:
            await self.rollback()
            raise refusal(error, self._where) from error
        except StoreUnavailable:
            await self._end()
            raise
        except BaseException:
            await self.rollback()
            raise
